//! Does what people ask for with the buttons of checks: what failed is tried again, by the command that everybody has. Whoever may
//! press one may write to the repository: their host sees to that.

use crate::control::commands::operator::Operator;
use crate::control::commands::{Command, Commands as _, Refusal};
use crate::control::comments::refuse_foreign;
use crate::control::reporter;
use crate::error::{Failure, Result};
use crate::forge::webhook;
use crate::model::commit_status::StatusState;
use crate::model::ids::{CommitId, ConfigKey, RepositoryName, ServiceKey, ServiceName, StageName};
use crate::model::rerun::Rerun;
use crate::model::run::Run;
use crate::model::state::Attempt;
use crate::report::status::PLAN;

/// What is wanted again.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wanted {
    /// That the head is looked at.
    Sync,
    /// That what failed of a service is tried.
    Service(StageName, ServiceName),
}

/// Does what people ask for with the buttons of checks of watched repositories.
#[derive(Clone, Debug)]
pub struct WatchedReruns {
    operator: Operator,
}

impl WatchedReruns {
    /// What is asked for is done by `operator`.
    pub fn new(operator: Operator) -> Self {
        Self { operator }
    }

    /// Does what is asked for, of which a host has told. It is durable then.
    ///
    /// # Errors
    /// Why it is not done.
    pub async fn take(&self, repository: &RepositoryName, from: webhook::Host, rerun: &Rerun) -> Result<()> {
        let host = self.operator.watchers.get(repository).and_then(|watcher| watcher.host.as_ref());
        let host = host.ok_or_else(|| Failure::stalled("no checks are written here"))?;
        refuse_foreign(host, from, "check", &rerun.repository)?;
        let by = format!("{}:{}", from.as_str(), rerun.login);
        match wanted(rerun.context.as_deref())? {
            Wanted::Sync => {
                tracing::info!(%repository, by, "a check is asked for again: the head is looked at");
                self.operator.look_anew(repository).await.map_err(Refusal::into_failure)
            }
            Wanted::Service(stage, service) => {
                let config = self.failed(repository, &rerun.commit, &stage, &service).await?;
                self.operator.act(Command::Retry { config }, &by).await.map(drop).map_err(Refusal::into_failure)
            }
        }
    }

    /// The deployment config of a service that failed on a commit, in a stage.
    async fn failed(
        &self,
        repository: &RepositoryName,
        commit: &CommitId,
        stage: &StageName,
        service: &ServiceName,
    ) -> Result<ConfigKey> {
        let store = &*self.operator.driver.store;
        let context = format!("launchway/{stage}/{service}");
        if store.outline(repository, commit.as_str()).await?.is_none() {
            return Err(Failure::stalled(format!("nothing was planned for {}", commit.short())));
        }
        let statuses = reporter::statuses(store, repository, commit).await?;
        let state = statuses.iter().find(|status| status.context == context).map(|status| status.state);
        if !matches!(state, Some(StatusState::Failure | StatusState::Error | StatusState::Cancelled)) {
            let now = state.map_or("not there", StatusState::as_str);
            let message = format!("`{context}` is {now}; only what failed or was cancelled runs again");
            return Err(Failure::stalled(message));
        }
        let state = store.repository(repository).await?;
        let project = state.and_then(|state| state.value.project);
        let project = project.ok_or_else(|| Failure::stalled(format!("nothing of `{repository}` was applied yet")))?;
        let key = ServiceKey { project, stage: stage.clone(), service: service.clone() };
        for config in store.configs_of(&key).await?.into_iter().map(|config| config.value) {
            let Some(attempt) = config.attempted.as_ref().filter(|_| !config.removed) else { continue };
            if self.is_of(attempt, commit).await? {
                return Ok(config.key);
            }
        }
        let message = format!("no deployment of `{service}` failed on {} that is still the last one", commit.short());
        let hint = format!("`launchway trigger delivery {service} -s {stage}` runs its sequence again");
        Err(Failure::stalled(message).hint(hint))
    }

    async fn is_of(&self, attempt: &Attempt, commit: &CommitId) -> Result<bool> {
        let run = self.operator.driver.store.run(&attempt.run).await?.map(|run| run.value);
        Ok(matches!(run, Some(Run::Sequence(run)) if run.commit == *commit))
    }
}

/// What a check is about: the plan, a service in a stage, or one of its steps.
fn wanted(context: Option<&str>) -> Result<Wanted> {
    let Some(context) = context.filter(|context| *context != PLAN) else { return Ok(Wanted::Sync) };
    let parts: Vec<&str> = context.split('/').collect();
    match parts.as_slice() {
        ["launchway", stage, service] | ["launchway", stage, service, _] => {
            Ok(Wanted::Service(StageName::new(*stage), ServiceName::new(*service)))
        }
        ["launchway", stage] => {
            Err(Failure::stalled(format!("stage {stage} runs again with the services that failed in it")))
        }
        _ => Err(Failure::stalled("the check is none of launchway's")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_says_what_runs_again() {
        let web = || Ok(Wanted::Service("dev".into(), "web".into()));
        for (context, expected) in [
            (None, Ok(Wanted::Sync)),
            (Some("launchway/plan"), Ok(Wanted::Sync)),
            (Some("launchway/dev/web"), web()),
            (Some("launchway/dev/web/pre"), web()),
            (Some("launchway/dev"), Err("stage dev runs again with the services that failed in it")),
            (Some("build"), Err("the check is none of launchway's")),
            (Some("other/dev/web"), Err("the check is none of launchway's")),
            (Some("launchway/dev/web/pre/x"), Err("the check is none of launchway's")),
        ] {
            let told = wanted(context).map_err(|failure| failure.to_string());
            assert_eq!(told, expected.map_err(str::to_owned), "{context:?}");
        }
    }
}
