//! Does what people ask for with the buttons of checks: what failed is tried again, by the command that everybody has. Whoever may
//! press one may write to the repository: their host sees to that.

use std::collections::BTreeSet;

use crate::control::commands::operator::Operator;
use crate::control::commands::{Command, Commands as _, Refusal, SequenceCommand};
use crate::control::comments::refuse_foreign;
use crate::control::reporter;
use crate::error::{Class, Failure, Result};
use crate::forge::webhook;
use crate::model::commit_status::{CommitStatus, StatusState};
use crate::model::ids::{CommitId, ConfigKey, ProjectName, RepositoryName, RunId, ServiceKey, ServiceName, StageName};
use crate::model::rerun::Rerun;
use crate::model::run::Run;
use crate::report::status::{PLAN, stage_context};

/// What is wanted again.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wanted {
    /// That the head is synced.
    Sync,
    /// That what failed of a service is tried.
    Service(StageName, ServiceName),
    /// That what failed of every service in a stage is tried.
    Stage(StageName),
}

/// A commit of which something may have failed.
struct Failed {
    project: ProjectName,
    commit: CommitId,
    statuses: Vec<CommitStatus>,
}

impl Failed {
    /// How a service stands in a stage.
    fn state(&self, stage: &StageName, service: &ServiceName) -> Option<StatusState> {
        let context = service_context(stage, service);
        self.statuses.iter().find(|status| status.context == context).map(|status| status.state)
    }

    /// Whether a service has failed in a stage, or was cancelled.
    fn is_of(&self, stage: &StageName, service: &ServiceName) -> bool {
        let state = self.state(stage, service);
        matches!(state, Some(StatusState::Failure | StatusState::Error | StatusState::Cancelled))
    }
}

fn service_context(stage: &StageName, service: &ServiceName) -> String {
    format!("{}/{service}", stage_context(stage))
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
                let failed = self.failed(repository, &rerun.commit).await?;
                self.retry(&failed, &stage, &service, &by).await
            }
            Wanted::Stage(stage) => {
                let failed = self.failed(repository, &rerun.commit).await?;
                self.retry_all(&failed, &stage, &by).await
            }
        }
    }

    /// Tries what failed of every service of a stage again. What cannot be tried keeps none of the others; it is done if one is.
    async fn retry_all(&self, failed: &Failed, stage: &StageName, by: &str) -> Result<()> {
        let store = &*self.operator.driver.store;
        let configs = store.configs(Some(&failed.project), Some(stage)).await?.found;
        let services: BTreeSet<ServiceName> = configs.into_iter().map(|config| config.value.service).collect();
        let (mut is_any_tried, mut why_not) = (false, None);
        for service in services.iter().filter(|service| failed.is_of(stage, service)) {
            match self.retry(failed, stage, service, by).await {
                Ok(()) => is_any_tried = true,
                Err(failure) if failure.class() == Class::Stalled => {
                    let problem = failure.one_line();
                    tracing::info!(%stage, %service, problem, "a service is not tried again with its stage");
                    why_not.get_or_insert(failure);
                }
                Err(failure) => return Err(failure),
            }
        }
        let nothing = || Failure::stalled(format!("nothing of stage {stage} failed on {}", failed.commit.short()));
        if is_any_tried { Ok(()) } else { Err(why_not.unwrap_or_else(nothing)) }
    }

    /// Tries what failed of a service in a stage again.
    async fn retry(&self, failed: &Failed, stage: &StageName, service: &ServiceName, by: &str) -> Result<()> {
        if !failed.is_of(stage, service) {
            let now = failed.state(stage, service).map_or("not there", StatusState::as_str);
            let context = service_context(stage, service);
            let message = format!("`{context}` is {now}; only what failed or was cancelled runs again");
            return Err(Failure::stalled(message));
        }
        let service = ServiceKey { project: failed.project.clone(), stage: stage.clone(), service: service.clone() };
        let command = match self.failed_config(&service, &failed.commit).await? {
            Some(config) => Command::Retry { config },
            None => Command::Sequence(self.failed_delivery(&service, &failed.commit).await?),
        };
        self.operator.act(command, by).await.map(drop).map_err(Refusal::into_failure)
    }

    /// What there is to know of a commit of which something may have failed.
    async fn failed(&self, repository: &RepositoryName, commit: &CommitId) -> Result<Failed> {
        let store = &*self.operator.driver.store;
        if store.outline(repository, commit.as_str()).await?.is_none() {
            return Err(Failure::stalled(format!("nothing was planned for {}", commit.short())));
        }
        let statuses = reporter::statuses(store, repository, commit).await?;
        let state = store.repository(repository).await?;
        let project = state.and_then(|state| state.value.project);
        let project = project.ok_or_else(|| Failure::stalled(format!("nothing of `{repository}` was applied yet")))?;
        Ok(Failed { project, commit: commit.clone(), statuses })
    }

    /// The deployment config of a service whose last deployment is of a commit and did not go well.
    async fn failed_config(&self, service: &ServiceKey, commit: &CommitId) -> Result<Option<ConfigKey>> {
        let configs = self.operator.driver.store.configs_of(service).await?;
        for config in configs.into_iter().map(|config| config.value).filter(|config| !config.removed) {
            if let Some(attempt) = &config.attempted
                && self.is_of(&attempt.run, commit).await?
            {
                return Ok(Some(config.key));
            }
        }
        Ok(None)
    }

    /// The last delivery of a service, if it is of a commit: all that it deployed went well, or it never got to that.
    async fn failed_delivery(&self, service: &ServiceKey, commit: &CommitId) -> Result<SequenceCommand> {
        let slot = self.operator.driver.store.slot(service).await?;
        let last = slot.and_then(|slot| slot.value.last_delivery).map(|last| last.run);
        match last {
            Some(run) if self.is_of(&run, commit).await? => Ok(SequenceCommand::Rerun { run, from_start: false }),
            _ => {
                let ServiceKey { stage, service, .. } = service;
                let what = format!("nothing of `{service}` that failed on {} is the last of it", commit.short());
                let hint = format!("`launchway trigger delivery {service} -s {stage}` delivers what is declared now");
                Err(Failure::stalled(what).hint(hint))
            }
        }
    }

    async fn is_of(&self, run: &RunId, commit: &CommitId) -> Result<bool> {
        let run = self.operator.driver.store.run(run).await?.map(|run| run.value);
        Ok(matches!(run, Some(Run::Sequence(run)) if run.commit == *commit))
    }
}

/// What a check is about: the plan, a stage, a service in one, or one of its steps.
fn wanted(context: Option<&str>) -> Result<Wanted> {
    let Some(context) = context.filter(|context| *context != PLAN) else { return Ok(Wanted::Sync) };
    let parts: Vec<&str> = context.split('/').collect();
    match parts.as_slice() {
        ["launchway", stage, service] | ["launchway", stage, service, _] => {
            Ok(Wanted::Service(StageName::new(*stage), ServiceName::new(*service)))
        }
        ["launchway", stage] => Ok(Wanted::Stage(StageName::new(*stage))),
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
            (Some("launchway/dev"), Ok(Wanted::Stage("dev".into()))),
            (Some("build"), Err("the check is none of launchway's")),
            (Some("other/dev/web"), Err("the check is none of launchway's")),
            (Some("launchway/dev/web/pre/x"), Err("the check is none of launchway's")),
        ] {
            let told = wanted(context).map_err(|failure| failure.to_string());
            assert_eq!(told, expected.map_err(str::to_owned), "{context:?}");
        }
    }
}
