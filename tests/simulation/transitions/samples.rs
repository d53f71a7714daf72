//! Runs to begin with.

use std::collections::BTreeMap;

use launchway::engine::sequence::machine::task_records;
use launchway::manifest::digest;
use launchway::model::ids::{ConfigKey, ServiceKey};
use launchway::model::object::{Kind, Object};
use launchway::model::plan::{Change, Decision};
use launchway::model::project::{OnFailure, Procedure, TaskDefinition};
use launchway::model::run::{Delivery, DeploymentRun, DeploymentStep, Phase, SequenceRun};
use launchway::model::shipyard::{Condition, Sequence, Task};
use launchway::model::state::spec_of;
use launchway::model::time::Timestamp;
use launchway::model::wanted::Progress;
use launchway::testing::world::{deployment_config, hook};
use serde_json::{Value, json};

pub(crate) const NOW: Timestamp = Timestamp(1_000_000);

/// A second version of two replicas, of which the first serves; `hooks` holds `pre`, `mid`, `post` and
/// `analysis`.
pub(crate) fn deployment(strategy: &str, hooks: &Value) -> DeploymentRun {
    let block = match strategy {
        "Recreate" => "recreateParams",
        "Canary" => "canaryParams",
        "BlueGreen" => "blueGreenParams",
        "AB" => "abParams",
        _ => "rollingParams",
    };
    let mut params = hooks.clone();
    let judge = hooks.get("analysis").cloned().unwrap_or_else(|| hook("Abort"));
    let own = match strategy {
        "Canary" => json!({"steps": [{"weight": 10, "pause": "5m", "analysis": judge}, {"weight": 50, "pause": {}}]}),
        "BlueGreen" => json!({"keep": "10m", "analysis": judge}),
        "AB" => json!({"weight": 20}),
        _ => json!({}),
    };
    params.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
    let mut spec = json!({"strategy": {"type": strategy, block: params}});
    if strategy == "Custom" {
        spec["strategy"]["customParams"] = json!({"command": ["bin/deploy"]});
    }
    let object = deployment_config("web", "b", 2, spec);
    let config = ConfigKey { project: "shop".into(), stage: "dev".into(), name: "web".into() };
    DeploymentRun {
        id: config.deployment(2),
        service: "web".into(),
        destination: launchway::model::ids::Destination::local("shop-dev".into()),
        repository: "repo".into(),
        commit: "c".into(),
        parent: "parent".into(),
        config,
        version: 2,
        attempt: 1,
        cause: "config change".into(),
        causes: Vec::new(),
        is_rollback: false,
        spec: spec_of(&object).unwrap(),
        replicas: 2,
        object: object.into(),
        previous: Some(1),
        restored_as: None,
        restored_after: None,
        phase: Phase::New,
        step: DeploymentStep::Prepare,
        hooks: Vec::new(),
        generation: 0,
        progress: Progress::default(),
        problem: String::new(),
        not_listening: String::new(),
        waits: Default::default(),
        promoted: None,
        deployer: Default::default(),
        controllers: Default::default(),
        led_by: None,
        failure: None,
        on_failure: OnFailure::default(),
        created_at: NOW,
        ended_at: None,
        message: String::new(),
    }
}

/// A queued sequence of a deployment of `web` and `api`, then a test with one retry, after a pause.
pub(crate) fn sequence(id: &str) -> SequenceRun {
    let task = |name: &str, triggered_after_ms| Task { triggered_after_ms, ..Task::named(name) };
    let sequence = Sequence {
        name: "delivery".into(),
        tasks: vec![task("deployment", 0), task("test", 5_000)],
        ..Sequence::default()
    };
    let test = TaskDefinition {
        command: vec!["true".into()],
        image: "host".into(),
        env: Vec::new(),
        timeout_seconds: Some(60),
        retries: 1,
        stages: Vec::new(),
        services: Vec::new(),
        properties: Default::default(),
        location: Default::default(),
    };
    let tasks = BTreeMap::from([("test".to_owned(), test)]);
    let changes = ["web", "api"].map(|name| deploy(deployment_config(name, "b", 1, json!({}))));
    delivering(id, sequence, tasks, changes.into())
}

/// A queued sequence of a deployment of nothing, then what a person approves, what an executor does and tries once more, and
/// what another one does whatever became of that.
pub(crate) fn governed(id: &str) -> SequenceRun {
    let release = Task { retries: 1, heartbeat_ms: Some(30_000), ..Task::named("release") };
    let cleanup = Task { condition: Condition::Always, ..Task::named("cleanup") };
    let tasks = vec![Task::named("deployment"), Task::named("approval"), release, cleanup];
    let sequence = Sequence { name: "delivery".into(), tasks, timeout_ms: Some(60_000), ..Sequence::default() };
    delivering(id, sequence, BTreeMap::new(), Vec::new())
}

/// A queued sequence of a deployment of nothing, then of objectives that launchway judges, once more if they are missed, and
/// then once more by values that were given.
pub(crate) fn judged(id: &str) -> SequenceRun {
    let objectives = json!([{"sli": "time", "pass": [{"criteria": ["<600"]}]}]);
    let prometheus = json!({"url": "http://127.0.0.1:9090", "queries": {"time": "x{service=\"$SERVICE\"}"}});
    let measured = json!({"objectives": objectives, "prometheus": prometheus});
    let evaluation = |properties, retries| Task { properties, retries, ..Task::named("evaluation") };
    let given = evaluation(json!({"objectives": objectives}), 0);
    let tasks = vec![Task::named("deployment"), evaluation(measured, 1), given];
    let sequence = Sequence { name: "delivery".into(), tasks, ..Sequence::default() };
    delivering(id, sequence, BTreeMap::new(), Vec::new())
}

/// A queued sequence by which its service goes back, then of what an executor does.
pub(crate) fn going_back(id: &str) -> SequenceRun {
    let tasks = vec![Task::named("rollback"), Task::named("release")];
    let sequence = Sequence { name: "undo".into(), tasks, ..Sequence::default() };
    SequenceRun { delivery: None, ..delivering(id, sequence, BTreeMap::new(), Vec::new()) }
}

fn delivering(
    id: &str,
    sequence: Sequence,
    tasks: BTreeMap<String, TaskDefinition>,
    changes: Vec<Change>,
) -> SequenceRun {
    let service = ServiceKey { project: "shop".into(), stage: "dev".into(), service: "shop".into() };
    let destination = launchway::model::ids::Destination::local("shop-dev".into());
    SequenceRun {
        id: id.into(),
        plan: Some("plan".into()),
        cause: "push".into(),
        attempt: 1,
        tasks: task_records(&sequence),
        delivery: Some(Delivery { content: "sha256:1".into(), changes, configs: None }),
        created_at: NOW,
        ..SequenceRun::draft(
            service,
            destination,
            ("repo".into(), id.into()),
            digest::stored(Procedure { sequence, tasks, ..Procedure::default() }),
        )
    }
}

/// The same, which only applies a `Service` object.
pub(crate) fn applying(id: &str) -> SequenceRun {
    bringing(id, vec![service()])
}

/// The same, which deploys `web` as well.
pub(crate) fn deploying_and_applying(id: &str) -> SequenceRun {
    bringing(id, vec![service(), deploy(deployment_config("web", "b", 1, json!({})))])
}

fn bringing(id: &str, changes: Vec<Change>) -> SequenceRun {
    SequenceRun { delivery: Some(Delivery { content: "sha256:1".into(), changes, configs: None }), ..sequence(id) }
}

fn service() -> Change {
    let mut object = deployment_config("web", "b", 1, json!({}));
    object.key.kind = Kind::Service;
    Change { decision: Decision::Create, ..deploy(object) }
}

fn deploy(object: Object) -> Change {
    let change = Change::of(object.key.clone(), Decision::Deploy);
    Change { cause: "config change".into(), object: Some(object.into()), ..change }
}
