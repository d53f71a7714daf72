//! Going back: which deployment configs are meant, and what people should know of it.

use crate::control::commands::operator::{Operator, conflict, undeclared};
use crate::control::commands::{Done, Refusal, RollbackCommand, by_hand};
use crate::engine::rollback::evaluate::{Stage, evaluate};
use crate::engine::rollback::{RolledBack, Started};
use crate::error::{Failure, Result};
use crate::manifest::rollback::RollbackRequest;
use crate::model::ids::{CommitId, ConfigKey, ProjectName, StageName};
use crate::model::rollback::Rollback;
use crate::model::state::ConfigState;
use crate::store::ReadStore;

/// Has deployment configs go back, or only says what that would do.
pub(super) async fn rollback(operator: &Operator, asked: RollbackCommand, by: &str) -> Result<Done, Refusal> {
    let store = &*operator.driver.store;
    let revision = match &asked.to_revision {
        Some(word) => Some(applied(operator, &asked.project, word).await?),
        None => None,
    };
    let stage = stage(store, &asked.project, &asked.stage).await?;
    let rollbacks = meant(&asked, revision.as_ref(), &stage.configs)?;
    let started = by_hand::roll_back(&operator.driver, &rollbacks, asked.dry_run, by).await.map_err(conflict)?;
    let runs = if asked.dry_run { Vec::new() } else { started.members.iter().map(RolledBack::run).collect() };
    let (message, evaluations) = (told(&started, asked.dry_run), evaluate(&started, &stage));
    Ok(Done { message, runs, evaluations, ..Done::default() })
}

/// Has a deployment config go back to the template of an earlier version, or only says what that would do.
pub(super) async fn undo(
    operator: &Operator,
    config: &ConfigKey,
    (to, dry_run): (Option<u32>, bool),
    by: &str,
) -> Result<Done, Refusal> {
    let title = operator.title(config).await?;
    let stage = stage(&*operator.driver.store, &config.project, &config.stage).await?;
    let undone = by_hand::undo(&operator.driver, config, to, dry_run, by).await.map_err(conflict)?;
    let version = undone.to;
    let message = match dry_run {
        true => format!("{title} would be rolled back to version {version} (dry run)"),
        false => format!("{title} rolled back to version {version}; its service is held"),
    };
    let started = Started { members: vec![undone], left: Vec::new() };
    Ok(Done { message, evaluations: evaluate(&started, &stage), ..Done::default() })
}

/// What a rollback is evaluated on: what there was before it.
async fn stage(store: &dyn ReadStore, project: &ProjectName, stage: &StageName) -> Result<Stage> {
    let configs = store.configs(Some(project), Some(stage)).await?.whole()?;
    let objects = store.objects(Some(project), Some(stage), None).await?.whole()?;
    Ok(Stage {
        configs: configs.into_iter().map(|config| config.value).collect(),
        objects: objects.into_iter().map(|object| object.value.object).collect(),
    })
}

/// A revision that was applied, by a person's word for it.
pub(super) async fn applied(operator: &Operator, project: &ProjectName, word: &CommitId) -> Result<CommitId, Refusal> {
    let repository = by_hand::declaring(&operator.driver, project).await?.ok_or_else(|| undeclared(project))?;
    let known = operator.driver.store.outline(&repository, word.as_str()).await?;
    let Some(known) = known else {
        let unknown = Failure::stalled(format!("no revision `{}` of `{repository}` is known", word.short()));
        return Err(Refusal::Unknown(unknown.hint("`launchway get revisions` lists those that are")));
    };
    if known.plan().is_none() {
        let message = format!("revision {} was never applied: it was refused", known.commit.short());
        return Err(Refusal::Conflict(Failure::stalled(message)));
    }
    Ok(known.commit)
}

/// What is asked for, of each deployment config.
pub(super) fn meant(
    asked: &RollbackCommand,
    revision: Option<&CommitId>,
    configs: &[ConfigState],
) -> Result<Vec<Rollback>, Refusal> {
    let key = |name: &str| {
        let (project, stage) = (asked.project.clone(), asked.stage.clone());
        ConfigKey { project, stage, name: name.to_owned() }
    };
    let read = |request: &RollbackRequest| request.read(key(&request.id), revision).map_err(Refusal::Invalid);
    let Some(settings) = &asked.all else { return asked.rollbacks.iter().map(read).collect() };
    if revision.is_none() || !asked.rollbacks.is_empty() {
        let message = "all of a stage go back to what was deployed when a revision had been applied";
        return Err(Refusal::Invalid(Failure::stalled(message).hint("name the revision, and nothing else")));
    }
    // A replication controller goes back with what deploys it.
    let there = configs.iter().filter(|state| !state.removed && !state.object.is_led());
    let all = there.map(|state| {
        let rollback = read(&RollbackRequest::new(state.key.name.clone(), settings.clone()))?;
        Ok(Rollback { may_be_absent: true, ..rollback })
    });
    all.collect()
}

fn told(started: &Started, dry_run: bool) -> String {
    let goes_back = |member: &RolledBack| {
        let (title, to, version) = (member.state.title(), member.to, member.version);
        match dry_run {
            true => format!("{title} would be rolled back to version {to} as version {version} (dry run)"),
            false => format!("{title} rolled back to version {to} as version {version}; its service is held"),
        }
    };
    let left = started.left.iter().map(|why| format!("{why}, and stays as it is"));
    started.members.iter().map(goes_back).chain(left).collect::<Vec<_>>().join("\n")
}
