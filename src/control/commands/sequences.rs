//! Events from outside, and what people say of sequences.

use crate::control::commands::operator::{Operator, conflict, refuse_bad, said, undeclared};
use crate::control::commands::{Done, Refusal, SequenceCommand, by_hand as asked, release};
use crate::engine::by_hand::{self, Meant, Part, Verdict};
use crate::engine::sequence::incoming::{self, Received};
use crate::error::Failure;
use crate::executor::drive::Driver;
use crate::executor::sync;
use crate::model::cloud_event::CloudEvent;
use crate::model::ids::{ProjectName, RunId, ServiceKey};
use crate::store::RunFilter;

/// Carries out what is told to sequences.
pub(super) async fn act(operator: &Operator, told: SequenceCommand, by: &str) -> Result<Done, Refusal> {
    match told {
        SequenceCommand::Tell(event) => tell(operator, &event, by).await,
        SequenceCommand::Decide { service, approve, reason, run, asked, revision } => {
            if !reason.is_empty() {
                refuse_bad(&reason)?;
            }
            let (run, asked, revision) = (run.as_ref().map(RunId::as_str), asked.as_deref(), revision.as_deref());
            let meant = Meant { run, asked, revision };
            decide(operator, &service, Verdict { approve, reason: &reason, meant, by }).await
        }
        SequenceCommand::Abort { service } => abort(operator, &service, by).await,
        SequenceCommand::Rerun { run, from_start } => {
            let again = operator.driver.decide(|transition| by_hand::rerun(transition, &run, from_start, by)).await;
            let again = again.map_err(conflict)?;
            Ok(Done { runs: vec![again.clone()], ..said(format!("runs again as {again}")) })
        }
        SequenceCommand::Pause { project, context, stage, runs, paused } => {
            pause(operator, &Part { project, context: Some(context), stage }, &runs, paused, by).await
        }
        SequenceCommand::PauseStage { project, stage, paused } => {
            pause_stage(operator, &Part { project, context: None, stage: Some(stage) }, paused, by).await
        }
        SequenceCommand::AbortRuns { runs } => abort_runs(operator, &runs, by).await,
    }
}

/// Takes an event from outside: it has its effect once, and says why if it has none.
async fn tell(operator: &Operator, event: &CloudEvent, by: &str) -> Result<Done, Refusal> {
    incoming::check(event).map_err(Refusal::Invalid)?;
    let project = ProjectName::new(event.text("project"));
    let declaring = asked::declaring(&operator.driver, &project).await?;
    let repository = declaring.ok_or_else(|| undeclared(&project))?;
    let received = operator.driver.decide(|transition| incoming::receive(transition, &repository, event)).await;
    let Received { context, ignored, mut runs, delivers } = received.map_err(conflict)?;
    let mut refused = Vec::new();
    if !delivers.is_empty() {
        let watched = &operator.watcher(&repository)?.watched;
        let delivered = sync::trigger_on(&operator.driver, watched, event, &delivers, by).await;
        let delivered = delivered.map_err(conflict)?;
        runs.extend(delivered.runs);
        refused = delivered.refused;
    }
    if runs.is_empty() && !refused.is_empty() {
        return Err(conflict(refused.swap_remove(0).1));
    }
    let refused = refused.iter().map(|(stage, failure)| format!("{stage}: {failure}")).collect();
    let message = match (ignored.as_str(), runs.len()) {
        ("", 1) => format!("taken by {}", runs[0]),
        ("", several) => format!("taken by {several} runs"),
        (reason, _) => format!("ignored: {reason}"),
    };
    Ok(Done { message, context, ignored, refused, runs, ..Done::default() })
}

async fn decide(operator: &Operator, service: &ServiceKey, verdict: Verdict<'_>) -> Result<Done, Refusal> {
    let decided = operator.driver.decide(|transition| by_hand::decide(transition, service, verdict)).await;
    let (run, commit) = decided.map_err(conflict)?;
    let word = if verdict.approve { "approved" } else { "rejected" };
    Ok(Done { runs: vec![run], ..said(format!("{service} {word}: {}", commit.short())) })
}

async fn abort(operator: &Operator, service: &ServiceKey, by: &str) -> Result<Done, Refusal> {
    let run = operator.driver.decide(|transition| by_hand::abort(transition, service, by)).await;
    Ok(Done { runs: vec![run.map_err(conflict)?], ..said(format!("{service} is ending")) })
}

/// Pauses or resumes what has a context, of which `runs` were open a moment ago.
async fn pause(operator: &Operator, part: &Part, runs: &[RunId], paused: bool, by: &str) -> Result<Done, Refusal> {
    let set = set_paused(&operator.driver, part, runs, paused, by).await;
    let (is_new, runs) = set.map_err(conflict)?;
    let context = part.context.clone().unwrap_or_default();
    Ok(Done { runs, context, ..said(now_so(part, paused, is_new)) })
}

/// Pauses or resumes a part of what goes on, of which `runs` were open a moment ago. Says whether it was not so, and of which.
///
/// # Errors
/// If nothing of a delivery is under way, or the store fails.
pub async fn set_paused(
    driver: &Driver,
    part: &Part,
    runs: &[RunId],
    paused: bool,
    by: &str,
) -> Result<(bool, Vec<RunId>), Failure> {
    let mut runs = runs.to_vec();
    let is_new = pause_known(driver, part, &runs, paused, by).await?;
    if paused {
        // What has begun in between could not meet the pause; what begins from now on does.
        let begun = open_runs(driver, part).await?.into_iter().filter(|run| !runs.contains(run));
        let begun: Vec<RunId> = begun.collect();
        if !begun.is_empty() {
            pause_known(driver, part, &begun, paused, by).await?;
            runs.extend(begun);
        }
    }
    Ok((is_new, runs))
}

/// Pauses a stage, or has everything in it go on, and what was pushed meanwhile.
async fn pause_stage(operator: &Operator, part: &Part, paused: bool, by: &str) -> Result<Done, Refusal> {
    operator.refuse_unknown(&part.scope()).await?;
    if paused {
        return pause(operator, part, &[], true, by).await;
    }
    let holds = asked::pauses(&operator.driver, part).await?;
    let message = now_so(part, false, !holds.is_empty());
    Ok(Done { message, ..release::release(operator, holds, Vec::new(), false, by).await? })
}

fn now_so(part: &Part, paused: bool, is_new: bool) -> String {
    let what = part.context.clone().unwrap_or_else(|| part.scope().to_string());
    let word = if paused { "paused" } else { "resumed" };
    if is_new { format!("{what} {word}") } else { format!("{what} already {word}") }
}

async fn pause_known(driver: &Driver, part: &Part, runs: &[RunId], paused: bool, by: &str) -> Result<bool, Failure> {
    let decided = driver.decide(|transition| match paused {
        true => by_hand::pause_delivery(transition, part, runs, by),
        false => by_hand::resume_delivery(transition, part, runs, by),
    });
    decided.await
}

/// What of a delivery has not ended by now.
async fn open_runs(driver: &Driver, part: &Part) -> Result<Vec<RunId>, Failure> {
    let Part { project, context, stage } = part.clone();
    let (project, sequences, open) = (Some(project), Some(true), Some(true));
    let filter = RunFilter { project, context, stage, sequences, open, ..RunFilter::default() };
    Ok(driver.store.runs(&filter).await?.found.into_iter().map(|run| run.value.id().clone()).collect())
}

async fn abort_runs(operator: &Operator, runs: &[RunId], by: &str) -> Result<Done, Refusal> {
    let mut ended = Vec::new();
    for run in runs {
        if operator.driver.decide(|transition| by_hand::abort_run(transition, run, by)).await.map_err(conflict)? {
            ended.push(run.clone());
        }
    }
    let message = match ended.len() {
        0 => "nothing of it is under way".to_owned(),
        several => format!("ending {several}"),
    };
    Ok(Done { runs: ended, ..said(message) })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::config::RetentionSettings;
    use crate::control::housekeeping::Housekeeping;
    use crate::model::run::Run;
    use crate::model::shipyard::{Sequence, Shipyard, Stage, Task};
    use crate::simulation::world::World;
    use crate::testing::world::project;

    #[tokio::test]
    async fn what_begins_in_the_moment_of_a_pause_is_paused_too() {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::open(folder.path()).unwrap();
        let tasks = vec![Task::named("build")];
        let check = Sequence { name: "check".into(), tasks, ..Sequence::default() };
        let stages = vec![Stage { name: "dev".into(), sequences: vec![check] }];
        world.push(&project(Shipyard { name: "shop".into(), stages, ..Shipyard::default() }, &[])).await.unwrap();
        let mut begun = Vec::new();
        for service in ["web", "api"] {
            let data = json!({"project": "shop", "stage": "dev", "service": service});
            let event = CloudEvent::of("sh.keptn.event.dev.check.triggered", service, data);
            let event = CloudEvent { source: "ci".into(), shkeptncontext: Some("c1".into()), ..event };
            begun.extend(world.tell(&event, "ci").await.unwrap().runs);
        }
        world.settle().await.unwrap();
        let (driver, policy) = (world.driver.clone(), RetentionSettings::default());
        let housekeeping = Housekeeping { driver: driver.clone(), runtime: world.runtime.clone(), policy };
        let operator = Operator { driver, watchers: Arc::new(BTreeMap::new()), housekeeping };
        let (project, context) = ("shop".into(), "c1".to_owned());
        let known = begun[..1].to_vec();
        let pause = SequenceCommand::Pause { project, context, stage: None, runs: known, paused: true };
        let done = act(&operator, pause, "ann").await.unwrap();
        assert_eq!((done.message.as_str(), done.runs.len()), ("c1 paused", 2));
        let paused = |run: &Run| run.sequence().and_then(|run| run.paused.clone());
        let paused: Vec<Option<String>> = world.runs().await.unwrap().iter().map(paused).collect();
        assert_eq!(paused, [Some("ann".to_owned()), Some("ann".to_owned())]);
    }
}
