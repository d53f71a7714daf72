//! Sequences as fast as they become durable: the real decisions and the real store, without HTTP.

use std::sync::Arc;
use std::time::{Duration, Instant};

use launchway::model::cloud_event::{CloudEvent, PREFIX};
use launchway::model::project::Project;
use launchway::model::shipyard::{Sequence, Shipyard, Stage, Task};
use launchway::simulation::world::{Surroundings, World};
use launchway::testing::world::project;
use serde_json::json;

use super::TASKS;
use crate::support::processor::processor_time;

/// How many services have sequences at once.
const SERVICES: usize = 64;
/// How many sequences each of them has.
const EACH: usize = 100;

pub(crate) fn measure() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for forgets in [true, false] {
        side_by_side(&runtime, forgets);
    }
    one_after_another(&runtime);
}

/// Many at once, by a driver that asks the store for everything or by the usual one.
fn side_by_side(runtime: &tokio::runtime::Runtime, forgets: bool) {
    let before = processor_time(std::process::id());
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let took = runtime.block_on(async {
        let surroundings = Surroundings::default();
        let surroundings = if forgets { surroundings.forgetful() } else { surroundings };
        let mut world = World::around(folder.path(), surroundings).unwrap();
        world.push(&shop()).await.unwrap();
        let world = Arc::new(world);
        let begin = Instant::now();
        let tasks: Vec<_> = (0..SERVICES).map(|number| tokio::spawn(service(world.clone(), number))).collect();
        for task in tasks {
            task.await.unwrap();
        }
        begin.elapsed()
    });
    let sequences = SERVICES * EACH;
    let rate = |of: usize| of as f64 / took.as_secs_f64();
    let each = (processor_time(std::process::id()) - before).as_secs_f64() * 1000.0 / sequences as f64;
    println!(
        "{sequences} sequences of {} tasks, {SERVICES} side by side{}: {:.0} a second, {:.0} events a second, \
         {each:.2} ms of processor time each",
        TASKS.len(),
        if forgets { ", nothing remembered" } else { "" },
        rate(sequences),
        rate(sequences * (1 + 2 * TASKS.len()))
    );
}

/// The same for one service alone, so that no two transitions share a sync to disk.
fn one_after_another(runtime: &tokio::runtime::Runtime) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let took: Duration = runtime.block_on(async {
        let mut world = World::open(folder.path()).unwrap();
        world.push(&shop()).await.unwrap();
        let begin = Instant::now();
        service(Arc::new(world), 0).await;
        begin.elapsed()
    });
    println!("… one after another: {:.0} a second", EACH as f64 / took.as_secs_f64());
}

/// The sequences of a service, one after the other, each to its end.
async fn service(world: Arc<World>, number: usize) {
    let name = format!("s{number}");
    let event = |kind: &str, id: String, triggered: Option<String>| {
        let data = json!({"project": "shop", "stage": "dev", "service": name, "status": "succeeded", "result": "pass"});
        CloudEvent {
            source: "ci".into(),
            triggeredid: triggered,
            ..CloudEvent::of(format!("{PREFIX}{kind}"), id, data)
        }
    };
    for turn in 0..EACH {
        let triggered = event("dev.check.triggered", format!("{name}-{turn}"), None);
        let run = world.tell(&triggered, "ci").await.unwrap().runs.remove(0);
        for (place, task) in TASKS.iter().enumerate() {
            let asked = format!("{run}.{place}.1");
            for phase in ["started", "finished"] {
                let told = event(&format!("{task}.{phase}"), format!("{asked}-{phase}"), Some(asked.clone()));
                let received = world.tell(&told, "ci").await.unwrap();
                assert_eq!(received.ignored, "");
            }
        }
    }
}

fn shop() -> Project {
    let tasks = TASKS.iter().map(|name| Task::named(*name)).collect();
    let check = Sequence { name: "check".into(), tasks, ..Sequence::default() };
    let dev = Stage { name: "dev".into(), sequences: vec![check] };
    project(Shipyard { name: "shop".into(), stages: vec![dev], ..Shipyard::default() }, &[])
}
