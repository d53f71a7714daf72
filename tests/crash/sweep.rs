//! Every record, before and after: a delivery that dies there and is taken up again.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use launchway::config::Settings;
use launchway::control::app::App;
use launchway::store::ReadStore;
use launchway::store::sqlite::SqliteReader;
use launchway::testing::guarded_store::GuardedStore;
use serde_json::Value;

use crate::VERB;
use crate::crash::deadly_store::{Deadly, Moment};
use crate::support::daemon::{World, eventually, hook, sleeper};

/// Deliveries at the same time: they wait for the disk and for each other's processes more than they compute.
const SIDE_BY_SIDE: usize = 4;
/// A delivery of one service through two stages has fewer records; more would mean that something never ends.
const MOST_RECORDS: u32 = 200;

/// The daemon that dies at a record.
pub(crate) fn daemon(config: &str, state: &str, record: &str, moment: &str) {
    let settings = Settings::load(Path::new(config)).unwrap();
    let record = record.parse().unwrap();
    let moment = if moment == "before" { Moment::Before } else { Moment::After };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let deadly = |inner| -> Arc<dyn launchway::store::Store> {
            let guard = Deadly { record, moment, seen: AtomicU32::new(0) };
            Arc::new(GuardedStore { guard, store: inner })
        };
        let _app = App::start_over(&settings, Path::new(state), deadly).await.unwrap();
        std::future::pending::<()>().await;
    });
}

/// What is delivered while the daemon dies.
struct Delivery {
    name: &'static str,
    /// The content of `shipyard.yaml`, if there is one, and the stages.
    shipyard: Option<&'static str>,
    stages: &'static [&'static str],
    /// The strategy, and the key of its parameters.
    strategy: (&'static str, &'static str),
    points: &'static [&'static str],
    /// The version that is delivered; the ones before serve already.
    version: u32,
}

const DELIVERIES: [Delivery; 2] = [
    Delivery {
        name: "a first version",
        shipyard: None,
        stages: &["default"],
        strategy: ("Recreate", "recreateParams"),
        points: &["pre", "post"],
        version: 1,
    },
    Delivery {
        name: "a rolling second version through two stages",
        shipyard: Some(
            "apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nmetadata: {name: shop}\nspec:\n  stages:\n  \
             - {name: dev, sequences: [{name: delivery, tasks: [{name: deployment}]}]}\n  \
             - {name: production, sequences: [{name: delivery, tasks: [{name: deployment}]}]}\n",
        ),
        stages: &["dev", "production"],
        strategy: ("Rolling", "rollingParams"),
        points: &["pre", "mid", "post"],
        version: 2,
    },
];

/// Tries every record of every delivery until it gets through without dying.
pub(crate) fn run() {
    for (delivery, moment) in DELIVERIES.iter().flat_map(|delivery| [(delivery, "before"), (delivery, "after")]) {
        let (next, deaths, through) = (AtomicU32::new(1), AtomicU32::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            for _ in 0..SIDE_BY_SIDE {
                scope.spawn(|| {
                    while !through.load(Ordering::SeqCst) {
                        let record = next.fetch_add(1, Ordering::SeqCst);
                        assert!(record < MOST_RECORDS, "a delivery has no end of records");
                        match delivery.dies_and_goes_on(record, moment) {
                            true => deaths.fetch_add(1, Ordering::SeqCst),
                            false => u32::from(through.swap(true, Ordering::SeqCst)),
                        };
                    }
                });
            }
        });
        let deaths = deaths.load(Ordering::SeqCst);
        assert!(deaths >= delivery.fewest_records(), "{} has more than {deaths} records", delivery.name);
        println!("{}: killed {moment} each of {deaths} records", delivery.name);
    }
}

impl Delivery {
    /// The fewest records that it has, whichever share a sync: in each stage the push or what came before, each hook's end, its
    /// pods and its own end are heard of one after the other.
    fn fewest_records(&self) -> u32 {
        u32::try_from(self.stages.len() * (self.points.len() + 3)).unwrap()
    }

    /// A delivery during which the daemon dies at a record, if there are so many; says whether it did.
    fn dies_and_goes_on(&self, record: u32, moment: &str) -> bool {
        let world = World::new(&[]);
        for version in 1..self.version {
            world.start();
            let commit = self.push(&world, version);
            self.contexts().iter().for_each(|context| drop(world.status(&commit, context, "success")));
            world.stop();
            std::fs::remove_file(world.git.path("hooks")).unwrap();
        }
        let commit = self.push(&world, self.version);
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([VERB.as_ref(), world.config().as_os_str(), world.state().as_os_str()]);
        world.spawn(command.args([&record.to_string(), moment]).envs(world.git.environment()));
        eventually("the daemon's death or the delivery's end", || {
            !world.daemon_lives() || self.is_whole(&world, &commit)
        });
        let died = !world.daemon_lives();
        world.kill();
        world.start();
        self.assert_whole(&world, &commit, &format!("{}, killed {moment} record {record}", self.name));
        died
    }

    fn push(&self, world: &World, version: u32) -> String {
        let script = |point: &str| format!("echo {point} >> {}", world.git.path("hooks").display());
        let hooks: Vec<String> = self.points.iter().map(|point| hook(point, "Abort", &script(point))).collect();
        let (strategy, parameters) = self.strategy;
        let strategy = format!("type: {strategy}, {parameters}: {{{}}}", hooks.join(", "));
        let config = sleeper("web", &strategy, &version.to_string());
        let shipyard = self.shipyard.map(|shipyard| ("shipyard.yaml", shipyard));
        let files: Vec<(&str, &str)> = shipyard.into_iter().chain([("web.yaml", config.as_str())]).collect();
        world.git.push_files(&files)
    }

    /// Every status that the delivery leads to.
    fn contexts(&self) -> Vec<String> {
        let step = |stage: &str, point: &str| format!("launchway/{stage}/web/{point}");
        let steps = self.stages.iter().flat_map(|stage| self.points.iter().map(move |point| step(stage, point)));
        let stages = self.stages.iter().map(|stage| format!("launchway/{stage}"));
        stages.chain(steps).chain(["launchway/plan".to_owned()]).collect()
    }

    /// Whether everything is told, and no action waits to be performed.
    fn is_whole(&self, world: &World, commit: &str) -> bool {
        let notes = world.notes(commit);
        let told = |context: &String| notes.get(context).is_some_and(|(state, _)| state == "success");
        self.contexts().iter().all(told) && outbox_is_empty(&world.state().join("store.db"))
    }

    /// Each hook ran once in each stage, the version serves with one pod, and nothing else runs.
    fn assert_whole(&self, world: &World, commit: &str, place: &str) {
        self.contexts().iter().for_each(|context| drop(world.status(commit, context, "success")));
        let version = format!("web-{}", self.version);
        let serving = vec![format!("{version}-0"); self.stages.len()];
        eventually(&format!("a pod in each stage, {place}"), || pods(world, "Ready") == serving);
        let ended: Vec<String> = pods(world, "Succeeded").into_iter().filter(|pod| pod.starts_with(&version)).collect();
        assert_eq!(ended.len(), self.stages.len() * self.points.len(), "{place}: {ended:?}");
        let ran: Vec<&str> = self.stages.iter().flat_map(|_| self.points).copied().collect();
        assert_eq!(world.lines("hooks"), ran, "{place}");
        for config in world.json(&["get", "deployments"])["items"].as_array().unwrap() {
            let serving = (&config["serving"]["version"], &config["attempted"], &config["status"]);
            assert_eq!(
                serving,
                (&Value::from(self.version), &Value::Null, &Value::from("Complete")),
                "{place}: {config}"
            );
        }
        let expected = 2 * self.stages.len();
        eventually(&format!("shims and their processes, {place}"), || world.processes().len() == expected);
    }
}

fn outbox_is_empty(store: &Path) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let rows = |reader: SqliteReader| runtime.block_on(async move { reader.outbox(None).await });
    SqliteReader::open(store).and_then(rows).is_ok_and(|rows| rows.is_empty())
}

/// The names of the pods with a status, sorted.
fn pods(world: &World, status: &str) -> Vec<String> {
    let pods = world.json(&["get", "pods", "--all"])["items"].as_array().cloned().unwrap_or_default();
    let chosen = pods.iter().filter(|pod| pod["status"] == status);
    let mut names: Vec<String> = chosen.filter_map(|pod| pod["name"].as_str().map(str::to_owned)).collect();
    names.sort();
    names
}
