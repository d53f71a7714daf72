//! A service that goes through a shipyard whose tasks executors, people, pods and evaluations do, and a problem that is told
//! meanwhile; somebody listens.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use launchway::error::Result;
use launchway::executor::sink_lane::SinkLane;
use launchway::executor::sinks::Subscriber;
use launchway::model::cloud_event::{CloudEvent, PREFIX};
use launchway::model::project::Project;
use launchway::model::run::{DoneBy, Run, SequenceRun};
use launchway::model::shipyard::{Sequence, SequenceTrigger, Shipyard, Stage, Task};
use launchway::model::time::Timestamp;
use launchway::report::cloud_event;
use launchway::simulation::world::World;
use launchway::sinks::{Refusal, Sink};
use launchway::testing::world::{deployment_config, project};
use serde_json::{Value, json};

/// More rounds than the story has: something is told again and again without effect.
const TOO_MANY: usize = 100;

/// Hears everything.
pub(super) struct Ear {
    pub(super) subscriber: Arc<Subscriber>,
    heard: Mutex<Vec<CloudEvent>>,
}

impl Default for Ear {
    fn default() -> Self {
        let subscriber = Arc::new(Subscriber::new("ear".into(), "http://ear".into(), Vec::new()));
        Self { subscriber, heard: Mutex::default() }
    }
}

#[async_trait]
impl Sink for Ear {
    async fn post(&self, event: &CloudEvent, _now: Timestamp) -> Result<(), Refusal> {
        self.heard.lock().unwrap().push(event.clone());
        Ok(())
    }
}

/// Everybody does what is theirs to do, until nothing is left. Who comes after a death says again what may have been said.
pub(super) async fn play(world: &World, ear: &Arc<Ear>) -> Result<()> {
    let mut lane = SinkLane::new(world.driver.clone(), ear.subscriber.clone(), ear.clone());
    world.indicators.set("response-time", "300");
    world.tell(&problem(), "monitor").await?;
    for _ in 0..TOO_MANY {
        world.pass(Duration::from_secs(5)).await?;
        lane.work().await?;
        let mut is_over = true;
        for run in world.runs().await? {
            let Some(run) = run.sequence() else { continue };
            for event in run.offered().map(|(index, _)| said(run, index)).into_iter().flatten() {
                world.tell(&event, "ci").await?;
                is_over = false;
            }
        }
        if is_over {
            return Ok(());
        }
    }
    panic!("{:#?}", world.runs().await?);
}

/// Something has happened that a sequence is for.
fn problem() -> CloudEvent {
    let data = json!({"project": "shop", "stage": "dev", "service": "web"});
    CloudEvent { source: "monitor".into(), ..CloudEvent::of(format!("{PREFIX}problem.open"), "p1", data) }
}

/// What is said of a task that is open, always by the same events. What is verified first fails, once.
fn said(run: &SequenceRun, index: usize) -> Vec<CloudEvent> {
    let (task, triggered) = (&run.tasks[index], run.triggered_id(index));
    let fails = run.event_name() == "dev.delivery" && task.name == "verify" && task.offers == 1;
    let event = |phase: &str| {
        let data = json!({
            "project": run.service.project, "stage": run.service.stage, "service": run.service.service,
            "status": "succeeded", "result": if fails { "fail" } else { "pass" }, &task.name: {"by": run.event_name()},
        });
        let event = CloudEvent::of(format!("{PREFIX}{}.{phase}", task.name), format!("{triggered}-{phase}"), data);
        CloudEvent { source: "somebody".into(), triggeredid: Some(triggered.clone()), ..event }
    };
    match run.done_by(index) {
        DoneBy::Approval => vec![event("finished")],
        _ => vec![event("started"), event("finished")],
    }
}

pub(super) fn shop() -> Project {
    let task = |name: &str| Task::named(name);
    let sequence = |name: &str, on: &[&str], tasks: Vec<Task>| {
        let trigger = |event: &&str| SequenceTrigger { event: (*event).to_owned(), selector: Default::default() };
        let triggered_on = on.iter().map(trigger).collect();
        Sequence { name: name.into(), tasks, triggered_on, ..Sequence::default() }
    };
    let verify = Task { retries: 1, ..task("verify") };
    let evaluation = Task { properties: objectives(), ..task("evaluation") };
    let dev = vec![
        sequence("delivery", &[], vec![task("deployment"), verify, task("approval"), task("test")]),
        sequence("look", &["dev.delivery.finished"], vec![task("verify"), evaluation.clone()]),
        sequence("fix", &["problem.open"], vec![task("verify"), task("approval")]),
    ];
    let production = vec![sequence("delivery", &[], vec![task("deployment"), evaluation, task("release")])];
    let stages = [("dev", dev), ("production", production)];
    let stages = stages.map(|(name, sequences)| Stage { name: name.into(), sequences }).into();
    let web = deployment_config("web", "a", 1, json!({}));
    super::with_test(project(Shipyard { name: "shop".into(), stages, ..Shipyard::default() }, &[web]))
}

fn objectives() -> Value {
    json!({
        "prometheus": {"url": "http://prometheus:9090", "queries": {"response-time": "latency"}},
        "objectives": [{"sli": "response-time", "pass": [{"criteria": ["<500"]}]}],
        "total_score": {"pass": "90%", "warning": "50%"},
    })
}

/// What each sequence tells of itself, and what was heard of it: each once, in its order.
pub(super) async fn told(world: &World, ear: &Ear) -> Result<[Vec<String>; 2]> {
    let runs = world.runs().await?;
    let runs: Vec<&SequenceRun> = runs.iter().filter_map(Run::sequence).collect();
    let told: Vec<CloudEvent> = runs.iter().flat_map(|run| cloud_event::of_run(run)).collect();
    let heard = ear.heard.lock().unwrap().clone();
    let mut known = BTreeSet::new();
    let heard =
        heard.into_iter().filter(|event| known.insert((event.source.clone(), event.id.clone(), event.kind.clone())));
    let heard: Vec<CloudEvent> = heard.collect();
    let mut told: Vec<String> = told.iter().map(|event| line(event, &runs)).collect();
    let mut heard: Vec<String> = heard.iter().map(|event| line(event, &runs)).collect();
    // Those of one sequence stay in their order: it begins their lines.
    let of_run = |line: &String| line.split(": ").next().unwrap_or_default().to_owned();
    told.sort_by_key(of_run);
    heard.sort_by_key(of_run);
    Ok([told, heard])
}

/// An event, with what its sequence is called in place of an identity that deaths may change.
fn line(event: &CloudEvent, runs: &[&SequenceRun]) -> String {
    let answers = event.triggeredid.as_deref().unwrap_or(&event.id);
    let of = runs.iter().find(|run| answers.contains(run.id.as_str()));
    let of = of.map_or_else(|| event.short_kind().to_owned(), |run| called(run));
    let line = format!("{} {} {} {}", event.short_kind(), event.id, event.text("status"), event.text("result"));
    let line = runs.iter().fold(line, |line, run| line.replace(run.id.as_str(), &called(run)));
    format!("{of}: {}", line.trim_end())
}

fn called(run: &SequenceRun) -> String {
    format!("{}/{}#{}", run.event_name(), run.service.service, run.attempt)
}
