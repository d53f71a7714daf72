//! Programs elsewhere that do the tasks of sequences: they hear of a task that is left to them, and tell how they get on.

use serde_json::json;

use crate::engine::sequence::incoming;
use crate::error::{Failure, Result};
use crate::executor::drive::Driver;
use crate::model::cloud_event::{CloudEvent, PREFIX};
use crate::model::ids::ServiceKey;
use crate::model::run::{DoneBy, ExecutorRecord, Run, SequenceRun};

/// Who does what is left to nobody in particular, once everything is to come to its end.
const ANYBODY: &str = "anybody";

/// What an executor says of the task that it finds a sequence of the service to leave to executors. Whoever says the same
/// again tells the same event again.
pub(super) async fn say(
    driver: &Driver,
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
    let offered = offered(driver, service).await?;
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
    incoming::check(&event)?;
    driver.decide(|transition| incoming::receive(transition, &run.repository, &event)).await.map(drop)
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
        return vec![format!("approve {stage} {service}")];
    }
    let says = |name: &str, what: &str| format!("executor {name} {what} {stage} {service}");
    let known = run.tasks.get(index).map_or(&[][..], |task| &task.executors);
    let missing = |it: &&ExecutorRecord| !it.is_done();
    let what = |it: &ExecutorRecord| if it.started_at.is_none() { "starts" } else { "finishes" };
    match known.is_empty() {
        true => vec![says(ANYBODY, "starts"), says(ANYBODY, "finishes")],
        false => known.iter().filter(missing).map(|it| says(&it.name, what(it))).collect(),
    }
}
