//! Records with one obvious default; tests change what they are about.

use std::collections::BTreeMap;
use std::sync::Arc;

use launchway::manifest::digest;
use launchway::model::action::Action;
use launchway::model::commit_status::{CommitStatus, StatusState};
use launchway::model::deployment_config::DeploymentConfigSpec;
use launchway::model::event::{Event, Timer};
use launchway::model::ids::{CommitId, ConfigKey, Destination, RunId, ServiceKey};
use launchway::model::object::{Kind, Location, Object, ObjectKey};
use launchway::model::outcome::Outcome;
use launchway::model::plan::{Change, Decision, Plan, ServicePlan, StagePlan, StageStart};
use launchway::model::project::{OnFailure, Procedure, Procedures, StatusDetail};
use launchway::model::run::{Delivery, DeploymentRun, DeploymentStep, Phase, Run, SequenceRun, SequenceState};
use launchway::model::shipyard::{Sequence, Shipyard};
use launchway::model::state::{
    Attempt, ConfigState, ObjectState, RepositoryState, RevisionResult, RevisionState, Version,
};
use launchway::model::time::Timestamp;
use launchway::model::wanted::Progress;
use launchway::store::{Store, Transaction, Versioned, Write};
use serde_json::json;

/// 2026-11-21T08:30:00Z.
pub(crate) const NOW: i64 = 1_795_249_800_000;

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp(NOW + 1_000 * seconds)
}

pub(crate) fn commit_id(digit: char) -> CommitId {
    CommitId::new(digit.to_string().repeat(40))
}

pub(crate) fn service(stage: &str, name: &str) -> ServiceKey {
    ServiceKey { project: "shop".into(), stage: stage.into(), service: name.into() }
}

pub(crate) fn config_key(stage: &str, name: &str) -> ConfigKey {
    ConfigKey { project: "shop".into(), stage: stage.into(), name: name.into() }
}

pub(crate) fn object(kind: Kind, name: &str, digest: &str) -> Arc<Object> {
    Arc::new(Object {
        key: ObjectKey { kind, name: name.into() },
        service: name.into(),
        autoscaled_at: None,
        location: Location { file: "web.yaml".into(), line: 1, column: 1 },
        content: json!({"digest": digest, "spec": {"replicas": 2}, "z": 1, "a": [null, 1.5, "é"]}).into(),
        digest: digest.into(),
    })
}

pub(crate) fn sequence(id: &str, service: ServiceKey) -> SequenceRun {
    let procedure = digest::stored(Procedure { sequence: delivery(), ..Procedure::default() });
    SequenceRun {
        id: id.into(),
        plan: Some("plan-1".into()),
        cause: "push".into(),
        attempt: 1,
        delivery: Some(Delivery { content: "sha256:web".into(), changes: vec![change("web")], configs: None }),
        state: SequenceState::Running { task: 0 },
        created_at: at(0),
        ..SequenceRun::draft(service, Destination::local("shop-dev".into()), ("shop".into(), commit_id('1')), procedure)
    }
}

fn delivery() -> Sequence {
    Sequence { name: "delivery".into(), ..Sequence::default() }
}

pub(crate) fn ended(mut run: SequenceRun) -> SequenceRun {
    run.state = SequenceState::Ended;
    run.ended_at = Some(at(9));
    run.outcome = Some(Outcome::PASS);
    run
}

pub(crate) fn deployment(key: &ConfigKey, version: u32) -> DeploymentRun {
    DeploymentRun {
        id: key.deployment(version),
        config: key.clone(),
        service: key.name.as_str().into(),
        destination: Destination::local("shop-dev".into()),
        repository: "shop".into(),
        commit: commit_id('1'),
        parent: "s1".into(),
        version,
        attempt: 1,
        cause: "config change".into(),
        causes: Vec::new(),
        is_rollback: false,
        object: object(Kind::DeploymentConfig, &key.name, "sha256:web"),
        spec: DeploymentConfigSpec { replicas: Some(2), ..DeploymentConfigSpec::default() },
        replicas: 3,
        previous: None,
        restored_as: None,
        restored_after: None,
        phase: Phase::New,
        step: DeploymentStep::Pre,
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
        created_at: at(0),
        ended_at: None,
        message: String::new(),
    }
}

pub(crate) fn config_state(key: &ConfigKey, digest: &str) -> ConfigState {
    let (destination, object) =
        (Destination::local("shop-dev".into()), object(Kind::DeploymentConfig, &key.name, digest));
    let declared = ConfigState::new(key.clone(), destination, "shop".into(), object, commit_id('1'));
    ConfigState { service: key.name.as_str().into(), latest_version: 1, ..declared }
}

pub(crate) fn attempt(outcome: Option<Outcome>) -> Attempt {
    let object = object(Kind::DeploymentConfig, "web", "sha256:new");
    Attempt { version: Version { number: 2, commit: commit_id('2'), object }, run: "s1".into(), outcome }
}

pub(crate) fn object_state(stage: &str, object: Arc<Object>) -> ObjectState {
    let destination = Destination::local("shop-dev".into());
    ObjectState::new(("shop".into(), stage.into()), destination, "shop".into(), object)
}

pub(crate) fn repository_state() -> RepositoryState {
    let state = RepositoryState::new("shop".into(), "https://git.example/shop.git", "main");
    RepositoryState { project: Some("shop".into()), ..state }
}

pub(crate) fn change(name: &str) -> Change {
    Change {
        cause: "first deployment".into(),
        object: Some(object(Kind::DeploymentConfig, name, "sha256:web")),
        ..Change::of(ObjectKey { kind: Kind::DeploymentConfig, name: name.into() }, Decision::Create)
    }
}

pub(crate) fn plan(id: &str, commit: CommitId, made: Timestamp) -> Plan {
    let service = ServicePlan {
        service: "web".into(),
        content: "sha256:web".into(),
        previous_stage: None,
        configs: 1,
        changes: vec![change("web")],
        runs_again: None,
    };
    let stage = StagePlan {
        stage: "dev".into(),
        destination: Destination::local("shop-dev".into()),
        start: StageStart::Push,
        sequence: None,
        services: vec![service],
        carried: Arc::new([("api".into(), "0000001".into())].into()),
    };
    Plan {
        id: id.into(),
        repository: "shop".into(),
        project: "shop".into(),
        commit,
        subject: "add web".into(),
        at: made,
        stages: vec![stage],
        statuses: StatusDetail::Auto,
        procedures: digest::stored(Procedures { shipyard: Shipyard::implicit(), tasks: BTreeMap::new() }),
    }
}

pub(crate) fn planned(plan: Plan) -> RevisionState {
    RevisionState {
        repository: plan.repository.clone(),
        commit: plan.commit.clone(),
        subject: plan.subject.clone(),
        at: plan.at,
        result: RevisionResult::Planned(Box::new(plan)),
        summary: None,
        again: 0,
        warnings: vec!["web.yaml:1:1: warning: unknown".into()],
    }
}

pub(crate) fn status(context: &str, state: StatusState) -> CommitStatus {
    CommitStatus::new(commit_id('1'), context, state, "it happened")
}

pub(crate) fn put(version: u64, run: SequenceRun) -> Write {
    Write::Run(Versioned { version, value: Run::Sequence(Box::new(run)) }.shared())
}

pub(crate) fn put_deployment(version: u64, run: DeploymentRun) -> Write {
    Write::Run(Versioned { version, value: Run::Deployment(Box::new(run)) }.shared())
}

pub(crate) fn put_config(version: u64, state: ConfigState) -> Write {
    Write::Config(Versioned { version, value: state }.shared())
}

pub(crate) fn put_object(version: u64, state: ObjectState) -> Write {
    Write::Object(Versioned { version, value: state }.shared())
}

pub(crate) fn put_repository(version: u64, state: RepositoryState) -> Write {
    Write::Repository(Versioned { version, value: state }.shared())
}

pub(crate) fn tell(run: &str, event: Event) -> Write {
    Write::Event { run: run.into(), at: at(0), event: Box::new(event) }
}

pub(crate) fn timer(timer: Timer, due: Timestamp) -> Action {
    Action::SetTimer { timer, due }
}

pub(crate) fn ask(run: &str, action: Action, due: Timestamp) -> Write {
    Write::Ask { run: run.into(), action: Box::new(action), due, at: at(0) }
}

/// Commits and expects that nothing is in the way.
pub(crate) async fn commit(store: &dyn Store, writes: impl IntoIterator<Item = Write>) {
    store.commit(Transaction::of(writes.into_iter().collect())).await.unwrap();
}

pub(crate) fn ids(runs: &[Versioned<Run>]) -> Vec<&str> {
    runs.iter().map(|run| run.value.id().as_str()).collect()
}

pub(crate) fn run_id(id: &str) -> RunId {
    RunId::new(id)
}
