//! A repository of 10,000 deployment configs in 100,000 files, all applied: `cargo bench --bench plan`.
//!
//! Measured are the first look after a start, a push that touches one of them, and a poll that finds nothing.

#![expect(clippy::unwrap_used, reason = "a benchmark that fails has no result")]
#![expect(clippy::print_stdout, reason = "that is its result")]

mod support {
    pub(crate) mod figures;
    pub(crate) mod git;
    pub(crate) mod import;
    pub(crate) mod kernel;
}

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use launchway::clock::{SystemClock, Ulids};
use launchway::control::aside::{Aside, Hosts};
use launchway::control::watched::Watched;
use launchway::engine::transition::Input;
use launchway::executor::drive::Driver;
use launchway::executor::sync::Synced;
use launchway::manifest::Options;
use launchway::model::ids::{ConfigKey, RepositoryName};
use launchway::model::plan::Plan;
use launchway::model::seed::Seed;
use launchway::model::state::{ConfigState, RepositoryState, RevisionResult, Version};
use launchway::model::wanted::{Target, Wanted};
use launchway::source::{self, Limits, Mirror, Remote, RemoteUrl};
use launchway::store::sqlite::SqliteStore;
use launchway::store::{Versioned, Write};
use support::figures::tell;
use support::git;
use support::import::Importer;
use support::kernel::{kernel_says, mib};

const CONFIGS: u32 = 10_000;
/// Files of each service's code: with its deployment config, ten.
const FILES: u32 = 9;
const PUSHES: u32 = 50;
const POLLS: u32 = 50;

fn main() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let bare = git::bare(folder.path());
    let mut importer = Importer::start(&bare);
    importer.commit((0..CONFIGS).flat_map(service));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(measure(folder.path(), &bare, &mut importer));
    importer.end();
    println!("peak memory: {}", mib(kernel_says("self", "status", "VmHWM")));
}

/// The files of one service.
fn service(number: u32) -> Vec<(String, String)> {
    let config = format!(
        "apiVersion: apps.openshift.io/v1\nkind: DeploymentConfig\nmetadata: {{name: app-{number}}}\nspec:\n  \
         replicas: 2\n  selector: {{app: app-{number}}}\n  triggers: [{{type: ConfigChange}}]\n  template:\n    \
         metadata: {{labels: {{app: app-{number}}}}}\n    spec:\n      containers:\n      - name: app\n        \
         image: git:{home}\n        command: [python3, part-0.py]\n        env: [{{name: LOG_LEVEL, value: info}}, {{name: NUMBER, value: '{number}'}}]\n        \
         readinessProbe: {{httpGet: {{path: /healthz, port: 8080}}, periodSeconds: 1}}\n",
        home = home(number)
    );
    let code = (0..FILES).map(|file| (format!("{}/part-{file}.py", home(number)), code(number, file)));
    code.chain([(format!("deploy/{}/app-{number}.yaml", number / 100), config)]).collect()
}

fn home(number: u32) -> String {
    format!("services/{}/app-{number}", number / 100)
}

fn code(number: u32, file: u32) -> String {
    format!("def part_{file}():\n    return {number}\n")
}

async fn measure(folder: &Path, bare: &Path, importer: &mut Importer) {
    let store = Arc::new(SqliteStore::open(&folder.join("store.db"), Arc::new(SystemClock)).unwrap());
    let driver = Driver::new(store, Arc::new(SystemClock), Arc::new(Ulids::default()));
    apply_everything(&driver, &watched(folder, bare)).await;
    // As after a start: nothing of the repository is in memory yet.
    let watched = watched(folder, bare);
    importer.commit([("README".to_owned(), "A start\n".to_owned())]);
    let begin = Instant::now();
    assert_ne!(watched.sync(&driver).await.unwrap(), Synced::Unchanged);
    println!("first look after a start: {:.1?}", begin.elapsed());
    let (mut fetches, mut plans) = (Vec::new(), Vec::new());
    for push in 0..PUSHES {
        let touched = push * 7 % CONFIGS;
        importer.commit([(format!("{}/part-0.py", home(touched)), format!("pushed = {push}\n"))]);
        fetches.push(fetch(&watched).await);
        let begin = Instant::now();
        assert_ne!(watched.sync(&driver).await.unwrap(), Synced::Unchanged);
        plans.push(begin.elapsed());
        assert_plans(&newest_plan(&driver).await, touched);
    }
    tell("a push that touches one, its fetch", fetches);
    tell("a push that touches one, from the fetch to its stored plan and run", plans);
    poll(&watched, &driver).await;
}

fn name() -> RepositoryName {
    RepositoryName::new("shop")
}

fn watched(folder: &Path, bare: &Path) -> Arc<Watched> {
    let limits = Limits::default();
    let remote = Remote::new(RemoteUrl::parse(&bare.display().to_string(), false).unwrap(), "main");
    let mirror = Arc::new(Mirror::open_or_create(&folder.join("mirror.git"), limits).unwrap());
    Arc::new(Watched::new(
        name(),
        remote,
        mirror,
        limits,
        Options { repository: name(), seed: Seed::NONE },
        false,
        Aside::new(Hosts::default().turns("")),
    ))
}

/// What the look that follows then finds on this machine.
async fn fetch(watched: &Arc<Watched>) -> Duration {
    let watched = watched.clone();
    let begin = Instant::now();
    let fetched = tokio::task::spawn_blocking(move || {
        let head = source::remote_head(&watched.remote).unwrap().unwrap();
        watched.mirror.fetch(&watched.remote, &head)
    });
    fetched.await.unwrap().unwrap();
    begin.elapsed()
}

/// Looks, and remembers everything that was found as if it had been deployed.
async fn apply_everything(driver: &Driver, watched: &Arc<Watched>) {
    // While a repository is down it is planned, and nothing starts.
    set_down(driver, watched, true).await;
    watched.sync(driver).await.unwrap();
    let plan = newest_plan(driver).await;
    let stage = &plan.stages[0];
    let changes = stage.services.iter().flat_map(|service| &service.changes);
    let applied = changes.map(|change| {
        let object = change.object.clone().unwrap();
        let key =
            ConfigKey { project: plan.project.clone(), stage: stage.stage.clone(), name: change.key.name.clone() };
        let serving = Version { number: 1, commit: plan.commit.clone(), object: object.clone() };
        let state = ConfigState {
            planned_at: None,
            beside: None,
            key,
            service: object.service.clone(),
            destination: stage.destination.clone(),
            repository: name(),
            object,
            declared_on: plan.commit.clone(),
            latest_version: 1,
            serving: Some(serving),
            attempted: None,
            wanted: Wanted { targets: BTreeMap::from([(1, Target::ALL)]), replicas: 2, ..Wanted::default() },
            scaled: None,
            removed: false,
            inherited: None,
            inherited_version: None,
            quarantined: Vec::new(),
            keeps: Vec::new(),
        };
        Input::Write(Box::new(Write::Config(Versioned { version: 0, value: state }.shared())))
    });
    let applied: Vec<Input> = applied.collect();
    assert_eq!(applied.len(), CONFIGS as usize);
    driver.commit(&applied).await.unwrap();
    set_down(driver, watched, false).await;
}

async fn set_down(driver: &Driver, watched: &Watched, down: bool) {
    let stored = driver.store.repository(&name()).await.unwrap();
    let unseen = || RepositoryState::new(name(), watched.remote.url.to_string(), "main");
    let mut stored = stored.unwrap_or_else(|| Versioned { version: 0, value: unseen() });
    stored.value.down = down;
    driver.commit(&[Input::Write(Box::new(Write::Repository(stored.shared())))]).await.unwrap();
}

async fn newest_plan(driver: &Driver) -> Plan {
    let newest = driver.store.revisions(&name(), 1).await.unwrap().remove(0);
    let RevisionResult::Planned(plan) = newest.result else { unreachable!("cannot be planned: {:?}", newest.result) };
    *plan
}

fn assert_plans(plan: &Plan, touched: u32) {
    let changes: Vec<_> = plan.stages[0].services.iter().flat_map(|service| &service.changes).collect();
    let names: Vec<_> = changes.iter().map(|change| change.key.name.as_str()).collect();
    assert_eq!(names, [format!("app-{touched}")]);
}

/// A poll that finds the head it knows.
async fn poll(watched: &Arc<Watched>, driver: &Driver) {
    let written = || kernel_says("self", "io", "wchar");
    let read = || kernel_says("self", "io", "rchar");
    let (before, mut times) = (written(), Vec::new());
    let read_before = read();
    for _ in 0..POLLS {
        let begin = Instant::now();
        assert_eq!(watched.sync(driver).await.unwrap(), Synced::Unchanged);
        times.push(begin.elapsed());
    }
    let bytes = (read() - read_before) / u64::from(POLLS);
    assert_eq!(written(), before, "a poll that finds nothing writes nothing");
    tell("a poll that finds nothing", times);
    println!("a poll that finds nothing reads {bytes} bytes, with the ref and the repository's record");
}
