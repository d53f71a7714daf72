//! Programs elsewhere that tell events: executors hear of a task that is left to them and tell how they get on, some of them
//! late, twice, too early, or of nothing at all; others start sequences, or tell what has happened.

use serde_json::{Value, json};

use crate::engine::sequence::incoming;
use crate::error::{Failure, Result};
use crate::executor::drive::Driver;
use crate::executor::sync;
use crate::model::cloud_event::{CloudEvent, PREFIX};
use crate::model::ids::{ProjectName, RepositoryName, ServiceKey};
use crate::model::run::{DoneBy, ExecutorRecord, Run, SequenceRun, SequenceState};
use crate::store::RunFilter;
use crate::testing::interleaved::daemon::Daemon;
use crate::testing::interleaved::hosted::Hosted;
use crate::testing::interleaved::people::place;
use crate::testing::script::number;

/// Who does what is left to nobody in particular, once everything is to come to its end.
const ANYBODY: &str = "anybody";
/// Who tells what is no executor's to tell, or what no executor should.
const STRANGER: &str = "stranger";

/// What an executor says of the task that it finds a sequence of the service to leave to executors. Whoever says the same
/// again tells the same event again.
pub(super) async fn say(
    daemon: &Daemon,
    service: &ServiceKey,
    name: &str,
    what: &str,
    result: Option<&str>,
) -> Result<()> {
    let phase = match what {
        "starts" => "started",
        "reports" => "status.changed",
        "finishes" => "finished",
        _ => return Err(Failure::stalled("an executor starts, reports or finishes")),
    };
    let offered = offered(&daemon.driver, service).await?;
    let (run, index) = offered.ok_or_else(|| Failure::stalled(format!("{service} leaves nothing to executors")))?;
    let Some(task) = run.tasks.get(index) else { return Ok(()) };
    let triggered = run.triggered_id(index);
    let data = json!({
        "project": service.project, "stage": service.stage, "service": service.service,
        "status": "succeeded", "result": result.unwrap_or("pass"), "message": format!("{phase} by {name}"),
    });
    let event = CloudEvent {
        source: name.to_owned(),
        triggeredid: Some(triggered.clone()),
        ..CloudEvent::of(format!("{PREFIX}{}.{phase}", task.name), format!("{name} {phase} {triggered}"), data)
    };
    tell(daemon, &run.repository, &event, false).await
}

/// Tells what is no word of who does a task that is open.
pub(super) async fn tells(
    daemon: &Daemon,
    repository: &RepositoryName,
    project: &ProjectName,
    words: &[&str],
) -> Result<()> {
    let at = |stage: &str, service: &str| place(project, stage, service);
    let (event, is_vain) = match words {
        ["again", back] => (daemon.events.told(number(back)?)?, false),
        ["sequence", stage, sequence, service] => {
            (happened(daemon, &format!("{stage}.{sequence}.triggered"), &at(stage, service)), false)
        }
        ["domain", kind, stage, service] => (happened(daemon, kind, &at(stage, service)), false),
        ["unknown", phase, stage, service] => {
            (of_task(daemon, &at(stage, service), &format!("verify.{phase}"), "nobody.0.1"), true)
        }
        ["approved", triggered, stage, service] => {
            (of_task(daemon, &at(stage, service), "approval.finished", triggered), false)
        }
        [how @ ("late" | "early" | "mistaken"), phase, stage, service] => {
            let service = at(stage, service);
            let found = sequences(&daemon.driver, &service).await?.into_iter().find_map(|run| chosen(&run, how));
            let none = || Failure::stalled(format!("no task of {service} is to be told of so"));
            let (task, triggered) = found.ok_or_else(none)?;
            (of_task(daemon, &service, &format!("{task}.{phase}"), &triggered), true)
        }
        _ => return Err(Failure::stalled("this is no way to tell an event")),
    };
    tell(daemon, repository, &event, is_vain).await
}

/// A task of a run of which nothing may be told, and the id by which that is tried: one that has ended, one that was not
/// asked for yet, or one that is open, by the name of another.
fn chosen(run: &SequenceRun, how: &str) -> Option<(String, String)> {
    let index = match (how, run.state) {
        ("late", _) => run.tasks.iter().rposition(|task| task.ended_at.is_some() && !task.done_before)?,
        ("early", SequenceState::Running { task }) => {
            let is_next = |index: &usize| run.done_by(*index) == DoneBy::Executors && run.tasks[*index].offers == 0;
            (task + 1..run.tasks.len()).find(is_next)?
        }
        ("mistaken", _) => run.offered()?.0,
        _ => return None,
    };
    let name = if how == "mistaken" { "another" } else { run.tasks[index].name.as_str() };
    Some((name.to_owned(), run.triggered_id(index)))
}

/// The sequences of a service, newest first.
async fn sequences(driver: &Driver, service: &ServiceKey) -> Result<Vec<SequenceRun>> {
    let of_service = RunFilter {
        project: Some(service.project.clone()),
        stage: Some(service.stage.clone()),
        service: Some(service.service.to_string()),
        sequences: Some(true),
        ..RunFilter::default()
    };
    let runs = driver.store.runs(&of_service).await?.whole()?;
    Ok(runs.iter().filter_map(|run| run.value.sequence()).cloned().collect())
}

/// Something that has happened to a service.
fn happened(daemon: &Daemon, kind: &str, service: &ServiceKey) -> CloudEvent {
    let data = json!({ "project": service.project, "stage": service.stage, "service": service.service });
    told_by_stranger(daemon, kind, data)
}

/// What a stranger says of a task.
fn of_task(daemon: &Daemon, service: &ServiceKey, kind: &str, triggered: &str) -> CloudEvent {
    let ServiceKey { project, stage, service } = service;
    let data =
        json!({ "project": project, "stage": stage, "service": service, "status": "succeeded", "result": "pass" });
    CloudEvent { triggeredid: Some(triggered.to_owned()), ..told_by_stranger(daemon, kind, data) }
}

fn told_by_stranger(daemon: &Daemon, kind: &str, data: Value) -> CloudEvent {
    let event = CloudEvent::of(format!("{PREFIX}{kind}"), daemon.events.fresh_id(), data);
    CloudEvent { source: STRANGER.to_owned(), ..event }
}

/// Tells the daemon an event, as its own way in does.
async fn tell(daemon: &Daemon, repository: &RepositoryName, event: &CloudEvent, is_vain: bool) -> Result<()> {
    daemon.events.tell(event, is_vain);
    incoming::check(event)?;
    let received = daemon.driver.decide(|transition| incoming::receive(transition, repository, event)).await?;
    if received.delivers.is_empty() {
        return Ok(());
    }
    let hosted = Hosted { hosting: daemon.hosting.clone(), name: repository.clone() };
    sync::trigger_on(&daemon.driver, &hosted, event, &received.delivers, STRANGER).await.map(drop)
}

/// The sequence of a service that leaves a task to executors now, with the place of the task.
async fn offered(driver: &Driver, service: &ServiceKey) -> Result<Option<(SequenceRun, usize)>> {
    let Some(slot) = driver.store.slot(service).await? else { return Ok(None) };
    for id in slot.value.open() {
        let run = driver.store.run(id).await?.map(|run| run.value);
        if let Some(Run::Sequence(run)) = run
            && let Some((index, _)) = run.offered().filter(|(index, _)| run.done_by(*index) == DoneBy::Executors)
        {
            return Ok(Some((*run, index)));
        }
    }
    Ok(None)
}

/// What has to be said for a task that is left to others to come to its end, as words of lines.
pub(super) fn answers(run: &SequenceRun, index: usize) -> Vec<String> {
    let ServiceKey { stage, service, .. } = &run.service;
    if run.done_by(index) == DoneBy::Approval {
        // By its own id: another sequence of the service may wait for approval, too.
        return vec![format!("tell approved {} {stage} {service}", run.triggered_id(index))];
    }
    let says = |name: &str, what: &str| format!("executor {name} {what} {stage} {service}");
    let known = run.tasks.get(index).map_or(&[][..], |task| &task.executors);
    let missing = |it: &&ExecutorRecord| !it.is_done();
    let what = |it: &ExecutorRecord| if it.started_at.is_none() { "starts" } else { "finishes" };
    let declared = run.declared(index).map_or(&[][..], |task| &task.executors);
    let absent = declared.iter().map(String::as_str).filter(|name| known.iter().all(|it| it.name != **name));
    let anybody = (known.is_empty() && declared.is_empty()).then_some(ANYBODY);
    let whole = absent.chain(anybody).flat_map(|name| [says(name, "starts"), says(name, "finishes")]);
    known.iter().filter(missing).map(|it| says(&it.name, what(it))).chain(whole).collect()
}
