//! Durable transitions a second: each commits a run's next state, the fact that caused it, the action that it asks for,
//! and the end of the action before. `cargo bench --bench store`; elements a second are transitions a second.

#![expect(clippy::unwrap_used, reason = "a benchmark that fails has no result")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use launchway::clock::SystemClock;
use launchway::model::action::Action;
use launchway::model::deployment_config::DeploymentConfigSpec;
use launchway::model::event::{Event, Timer};
use launchway::model::ids::ConfigKey;
use launchway::model::object::{Kind, Location, Object, ObjectKey};
use launchway::model::run::{DeploymentRun, DeploymentStep, Phase, Run};
use launchway::model::time::Timestamp;
use launchway::model::wanted::Progress;
use launchway::store::sqlite::SqliteStore;
use launchway::store::{OutboxId, Store, Transaction, Versioned, Write};
use serde_json::json;

/// A deployment as a small web service has it: about 2 KiB as a record.
fn deployment(name: &str) -> DeploymentRun {
    let config = ConfigKey { project: "shop".into(), stage: "dev".into(), name: name.to_owned() };
    let container = json!({
        "name": "web", "image": "git:web", "command": ["python3", "server.py"],
        "env": [{"name": "DATABASE", "value": "/data/shop.db"}, {"name": "LOG_LEVEL", "value": "info"}],
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 1},
    });
    let content = json!({
        "metadata": {"name": name, "labels": {"app": name, "launchway.dev/service": name}},
        "spec": {"replicas": 3, "selector": {"app": name}, "triggers": [{"type": "ConfigChange"}],
                 "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}},
    });
    DeploymentRun {
        controllers: Default::default(),
        led_by: None,
        id: config.deployment(1),
        service: name.into(),
        destination: launchway::model::ids::Destination::local("shop-dev".into()),
        repository: "shop".into(),
        commit: "0123456789abcdef0123456789abcdef01234567".into(),
        parent: "01KAG0000000000000000000".into(),
        version: 1,
        attempt: 1,
        cause: "config change".into(),
        causes: Vec::new(),
        is_rollback: false,
        object: Arc::new(Object {
            key: ObjectKey { kind: Kind::DeploymentConfig, name: name.to_owned() },
            service: name.into(),
            autoscaled_at: None,
            location: Location { file: "web.yaml".to_owned(), line: 1, column: 1 },
            content: content.into(),
            digest: "sha256:0".into(),
        }),
        config,
        spec: DeploymentConfigSpec::default(),
        replicas: 1,
        previous: None,
        restored_as: None,
        restored_after: None,
        phase: Phase::Running,
        step: DeploymentStep::Rollout,
        hooks: Vec::new(),
        generation: 1,
        progress: Progress::default(),
        problem: String::new(),
        not_listening: String::new(),
        waits: Default::default(),
        promoted: None,
        deployer: Default::default(),
        failure: None,
        on_failure: Default::default(),
        created_at: Timestamp(0),
        ended_at: None,
        message: String::new(),
    }
}

/// One run that goes from state to state.
struct Committer {
    store: Arc<SqliteStore>,
    run: DeploymentRun,
    version: u64,
}

impl Committer {
    async fn transition(&mut self) {
        let id = self.run.id.clone();
        self.run.generation += 1;
        let due = Timestamp(i64::MAX);
        let writes = vec![
            Write::Run(
                Versioned { version: self.version, value: Run::Deployment(Box::new(self.run.clone())) }.shared(),
            ),
            Write::Event { run: id.clone(), at: due, event: Box::new(served(self.run.generation)) },
            Write::Ask {
                run: id,
                action: Box::new(Action::SetTimer { timer: Timer::Progress, due }),
                due,
                at: Timestamp(0),
            },
            Write::Done(OutboxId(i64::try_from(self.version).unwrap())),
        ];
        self.store.commit(Transaction::of(writes)).await.unwrap();
        self.version += 1;
    }
}

fn served(generation: u64) -> Event {
    Event::Served {
        generation,
        progress: Progress { updated: 1, available: 1, old: 2 },
        converged: false,
        problem: String::new(),
        not_listening: String::new(),
        brought: false,
    }
}

/// How long `transitions` take when so many commit at once.
async fn run(committers: u64, transitions: u64) -> Duration {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let store = Arc::new(SqliteStore::open(&folder.path().join("launchway.db"), Arc::new(SystemClock)).unwrap());
    let begin = Instant::now();
    let tasks: Vec<_> = (0..committers)
        .map(|number| {
            let run = deployment(&format!("web{number}"));
            let mut committer = Committer { store: Arc::clone(&store), run, version: 0 };
            let share = transitions / committers + u64::from(number < transitions % committers);
            tokio::spawn(async move {
                for _ in 0..share {
                    committer.transition().await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    begin.elapsed()
}

fn transitions(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut group = criterion.benchmark_group("durable transitions");
    group.throughput(Throughput::Elements(1));
    for committers in [1_u64, 64] {
        group.bench_with_input(BenchmarkId::from_parameter(committers), &committers, |bencher, &committers| {
            bencher.iter_custom(|transitions| runtime.block_on(run(committers, transitions)));
        });
    }
    group.finish();
}

criterion_group!(benches, transitions);
criterion_main!(benches);
