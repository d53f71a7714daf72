//! What a commit says in situations that are easy to get wrong.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::engine::sync::revised;
use crate::manifest::digest;
use crate::model::deployment_config::HookPoint;
use crate::model::ids::{ConfigKey, Destination, RunId, ServiceKey};
use crate::model::object::{Kind, Object, ObjectKey};
use crate::model::outcome::{FailureReason, Outcome, PodOutcome};
use crate::model::plan::{Change, Decision, PassedContent, Plan, ServicePlan, StagePlan, StageStart};
use crate::model::project::{OnFailure, Procedure, Procedures};
use crate::model::run::{
    Delivery, DeploymentFailure, DeploymentRef, DeploymentRun, DeploymentStep, HookRecord, Phase, Run, SequenceRun,
    SequenceState, TaskRecord,
};
use crate::model::shipyard::{Selector, Sequence, SequenceTrigger, Shipyard};
use crate::model::state::spec_of;
use crate::model::time::Timestamp;
use crate::model::wanted::Progress;
use crate::plan::summary::summary;

mod at_rest;
mod foreign;
mod history;

const SUPERSEDED: &str = "superseded by 0000002";

fn config(name: &str, policy: &str) -> Arc<Object> {
    let hook = json!({"failurePolicy": policy, "execNewPod": {"command": ["true"], "containerName": ""}});
    Arc::new(Object {
        key: ObjectKey { kind: Kind::DeploymentConfig, name: name.into() },
        service: "web".into(),
        location: crate::model::object::Location::default(),
        autoscaled_at: None,
        content: json!({"spec": {"strategy": {"type": "Recreate", "recreateParams": {"pre": hook}}}}).into(),
        digest: "sha256:1".into(),
    })
}

fn part(service: &str, configs: u32, decision: Decision, after: Option<&str>) -> ServicePlan {
    let key = ObjectKey { kind: Kind::DeploymentConfig, name: service.into() };
    let cause = "config change".to_owned();
    let object = Some(config(service, "Abort"));
    ServicePlan {
        service: service.into(),
        content: "sha256:1".into(),
        previous_stage: after.map(|stage| PassedContent {
            stage: stage.into(),
            content: "sha256:1".into(),
            sequence: None,
            alone: false,
        }),
        configs,
        changes: vec![Change { cause, object, ..Change::of(key, decision) }],
        runs_again: None,
    }
}

fn delivery() -> Sequence {
    Shipyard::implicit().stages.remove(0).sequences.remove(0)
}

fn stage(name: &str, start: StageStart, services: Vec<ServicePlan>) -> StagePlan {
    StagePlan {
        stage: name.into(),
        destination: Destination::local("shop".into()),
        start,
        sequence: Some(delivery()),
        services,
        carried: Arc::default(),
    }
}

fn after(stage: &str) -> StageStart {
    let event = format!("{stage}.delivery.finished");
    StageStart::After(vec![SequenceTrigger { event, selector: Selector::default() }])
}

/// One service in `dev`, and after it in `production`.
fn two_stages() -> Vec<StagePlan> {
    vec![
        stage("dev", StageStart::Push, vec![part("web", 1, Decision::Deploy, None)]),
        stage("production", after("dev"), vec![part("web", 1, Decision::Deploy, Some("dev"))]),
    ]
}

fn plan(stages: Vec<StagePlan>, statuses: StatusDetail) -> Plan {
    Plan {
        id: "p".into(),
        repository: "repo".into(),
        project: "shop".into(),
        commit: "0000001".into(),
        subject: String::new(),
        at: Timestamp(0),
        stages,
        statuses,
        procedures: digest::stored(Procedures::default()),
    }
}

fn revision(stages: Vec<StagePlan>, statuses: StatusDetail) -> RevisionState {
    let plan = plan(stages, statuses);
    RevisionState {
        repository: "repo".into(),
        commit: "0000001".into(),
        subject: String::new(),
        at: Timestamp(0),
        result: RevisionResult::Planned(Box::new(plan)),
        summary: None,
        again: 0,
        warnings: Vec::new(),
    }
}

/// A run that deploys `configs`, each a deployment with the id `<config>-<attempt>`.
fn sequence(id: &str, stage: &str, service: &str, attempt: u32, configs: &[&str]) -> SequenceRun {
    let deployment = |config: &&str| DeploymentRef {
        run: Some(RunId::new(format!("{stage}/{config}-{attempt}"))),
        ..DeploymentRef::asked(*config)
    };
    let task = TaskRecord {
        started_at: Some(Timestamp(0)),
        deployments: configs.iter().map(deployment).collect(),
        ..TaskRecord::new("deployment", "deployment")
    };
    let service = ServiceKey { project: "shop".into(), stage: stage.into(), service: service.into() };
    let procedure = digest::stored(Procedure { sequence: delivery(), ..Procedure::default() });
    let revision = ("repo".into(), "0000001".into());
    SequenceRun {
        id: id.into(),
        plan: Some("p".into()),
        cause: "push".into(),
        attempt,
        delivery: Some(Delivery { content: "sha256:1".into(), changes: Vec::new(), configs: None }),
        state: SequenceState::Running { task: 0 },
        tasks: vec![task],
        ..SequenceRun::draft(service, Destination::local("shop".into()), revision, procedure)
    }
}

fn ended(mut run: SequenceRun, outcome: Outcome, message: &str) -> SequenceRun {
    (run.state, run.outcome, run.ended_at) = (SequenceState::Ended, Some(outcome), Some(Timestamp(9)));
    run.message = message.to_owned();
    run
}

/// The deployment of a config in an attempt, whose `pre` hook ended so, or runs.
fn deployment(parent: &SequenceRun, config_name: &str, policy: &str, hook: Option<PodOutcome>) -> DeploymentRun {
    let object = config(config_name, policy);
    let stage = parent.service.stage.clone();
    let (spec, id) = (spec_of(&object).unwrap(), format!("{stage}/{config_name}-{}", parent.attempt));
    let hook = HookRecord {
        point: HookPoint::Pre,
        by: parent.id.clone(),
        pod: "hook".into(),
        started_at: Timestamp(0),
        ended_at: hook.is_some().then_some(Timestamp(0)),
        outcome: hook,
    };
    DeploymentRun {
        id: id.as_str().into(),
        config: ConfigKey { project: "shop".into(), stage, name: config_name.into() },
        service: parent.service.service.clone(),
        destination: Destination::local("shop".into()),
        repository: "repo".into(),
        commit: "0000001".into(),
        parent: parent.id.clone(),
        version: 1,
        attempt: 1,
        cause: String::new(),
        causes: Vec::new(),
        is_rollback: false,
        object,
        replicas: spec.replicas.unwrap_or(1),
        spec,
        previous: None,
        restored_as: None,
        restored_after: None,
        phase: Phase::New,
        step: DeploymentStep::Pre,
        hooks: vec![hook],
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
        created_at: Timestamp(0),
        ended_at: None,
        message: String::new(),
    }
}

fn failed(mut run: DeploymentRun, step: DeploymentStep, outcome: Outcome, message: &str) -> DeploymentRun {
    run.failure = Some(DeploymentFailure { step, outcome, message: message.to_owned() });
    (run.phase, run.step, run.ended_at) = (Phase::Failed, DeploymentStep::Done, Some(Timestamp(9)));
    run
}

fn exit(code: i32, reason: FailureReason) -> Option<PodOutcome> {
    Some(PodOutcome::Failed { code, reason, message: String::new() })
}

fn runs(sequence: SequenceRun, deployments: Vec<DeploymentRun>) -> Vec<Run> {
    let deployments = deployments.into_iter().map(|run| Run::Deployment(Box::new(run)));
    std::iter::once(Run::Sequence(Box::new(sequence))).chain(deployments).collect()
}

/// All statuses, from all runs.
fn rendered(
    revision: &RevisionState,
    runs: &[Run],
    newer: Option<&CommitId>,
    known: &BTreeSet<String>,
) -> Vec<CommitStatus> {
    let services = services(revision, runs, &BTreeMap::new());
    render(&Facts { newer, known, ..facts(revision, &services, &comes_to(revision)) })
}

/// What a revision's plan comes to.
fn comes_to(revision: &RevisionState) -> PlanSummary {
    revision.plan().map(summary).unwrap_or_default()
}

/// For readers who know no contexts, and where nothing came after.
fn facts<'a>(
    revision: &'a RevisionState,
    services: &'a BTreeMap<ServiceName, ServiceReport>,
    summary: &'a PlanSummary,
) -> Facts<'a> {
    static NOTHING: BTreeSet<String> = BTreeSet::new();
    Facts { revision, summary, services, newer: None, down: false, known: &NOTHING }
}

/// What is said of each service.
fn services(
    revision: &RevisionState,
    runs: &[Run],
    left: &BTreeMap<StageName, bool>,
) -> BTreeMap<ServiceName, ServiceReport> {
    let mut services = BTreeMap::new();
    let plan = revision.plan().cloned().unwrap_or_else(|| plan(Vec::new(), StatusDetail::Stages));
    let planned = plan.stages.iter().flat_map(|stage| &stage.services).map(|part| part.service.clone());
    for name in planned.chain(runs.iter().map(|run| run.service().service)) {
        let own: Vec<Run> = runs.iter().filter(|run| run.service().service == name).cloned().collect();
        let report = ServiceReport::of(&name, &plan.about(&name), revision.again, &own, left);
        services.insert(name, report);
    }
    services
}

/// What is written, as `<state> <context>: <description>`, for readers who know some contexts.
fn told(revision: &RevisionState, runs: &[Run], newer: Option<&CommitId>, known: &[&str]) -> Vec<String> {
    let known = known.iter().map(|context| (*context).to_owned()).collect();
    let statuses = rendered(revision, runs, newer, &known);
    statuses.iter().map(|status| format!("{} {}: {}", status.state, status.context, status.description)).collect()
}

fn of<'a>(told: &'a [String], context: &str) -> &'a str {
    told.iter().find(|line| line.contains(&format!(" {context}: "))).map_or("nothing", String::as_str)
}

#[test]
fn a_hook_that_somebody_stopped_is_cancelled_as_its_service_is() {
    use DeploymentStep::{Pre, Rollout};
    use FailureReason::{Cancelled, Error};
    let (web, pre) = ("launchway/dev/web", "launchway/dev/web/pre");
    let success = Some(PodOutcome::Succeeded);
    let cases = [
        (exit(143, Cancelled), "Abort", Pre, Outcome::SUPERSEDED, format!("cancelled {pre}: {SUPERSEDED}")),
        (exit(143, Cancelled), "Ignore", Pre, Outcome::SUPERSEDED, format!("cancelled {pre}: {SUPERSEDED}")),
        (exit(143, Cancelled), "Retry", Pre, Outcome::ABORTED, format!("cancelled {pre}: {SUPERSEDED}")),
        (
            exit(1, Error),
            "Retry",
            Pre,
            Outcome::SUPERSEDED,
            format!("cancelled {pre}: {SUPERSEDED}; failed with exit code 1 after 0ms"),
        ),
        (exit(1, Error), "Abort", Pre, Outcome::FAIL, format!("failure {pre}: failed with exit code 1 after 0ms")),
        (
            exit(1, Error),
            "Ignore",
            Rollout,
            Outcome::SUPERSEDED,
            format!("success {pre}: ignored: failed with exit code 1 after 0ms"),
        ),
        (success, "Abort", Rollout, Outcome::SUPERSEDED, format!("success {pre}: succeeded in 0ms")),
    ];
    let revision = revision(two_stages(), StatusDetail::Hooks);
    for (hook, policy, step, outcome, expected) in cases {
        let run = ended(sequence("1", "dev", "web", 1, &["web"]), outcome, SUPERSEDED);
        let stopped = failed(deployment(&run, "web", policy, hook.clone()), step, outcome, SUPERSEDED);
        let told = told(&revision, &runs(run, vec![stopped]), None, &[]);
        assert_eq!(of(&told, pre), expected, "{hook:?} under {policy} in {step:?}");
        let is_cancelled = outcome != Outcome::FAIL;
        assert_eq!(of(&told, web).starts_with("cancelled"), is_cancelled, "{told:?}");
    }
}

#[test]
fn what_was_written_is_brought_up_to_date_beyond_the_details_that_are_shown() {
    let services = (0..21).map(|number| part(&format!("s{number}"), 1, Decision::Deploy, None)).collect();
    let revision = revision(vec![stage("dev", StageStart::Push, services)], StatusDetail::Auto);
    let (context, hook) = ("launchway/dev/s3", "launchway/dev/s3/pre");
    let first = ended(sequence("1", "dev", "s3", 1, &["s3"]), Outcome::FAIL, "no");
    let hook_failed = deployment(&first, "s3", "Abort", exit(1, FailureReason::Error));
    let before = runs(first, vec![failed(hook_failed, DeploymentStep::Pre, Outcome::FAIL, "pre hook failed")]);
    let written = told(&revision, &before, None, &[]);
    assert_eq!(written.len(), 4, "only failures are shown below the stage: {written:?}");
    assert_eq!(of(&written, context), format!("failure {context}: no"));
    let second = ended(sequence("2", "dev", "s3", 2, &["s3"]), Outcome::PASS, "");
    let retried = [before, runs(second.clone(), vec![deployment(&second, "s3", "Abort", Some(PodOutcome::Succeeded))])];
    let now = told(&revision, &retried.concat(), None, &[context, hook]);
    assert!(of(&now, context).starts_with("success"), "{now:?}");
    assert_eq!(of(&now, hook), format!("success {hook}: succeeded in 0ms"));
    assert_eq!(told(&revision, &retried.concat(), None, &[]).len(), 2, "to whom it is new, nothing is said");
}

#[test]
fn a_step_that_a_later_attempt_does_not_reach_stays_neither_red_nor_open() {
    let revision = revision(two_stages(), StatusDetail::Hooks);
    let first = ended(sequence("1", "dev", "web", 1, &["web"]), Outcome::FAIL, "no");
    let hook_failed = deployment(&first, "web", "Abort", exit(1, FailureReason::Error));
    let before = runs(first, vec![failed(hook_failed, DeploymentStep::Pre, Outcome::FAIL, "pre hook failed")]);
    let (hook, second) = ("launchway/dev/web/pre", sequence("2", "dev", "web", 2, &[]));
    for (run, expected) in [
        (second.clone(), "pending launchway/dev/web/pre: not reached yet in this attempt"),
        (ended(second, Outcome::PASS, ""), "skipped launchway/dev/web/pre: not reached in the last attempt"),
    ] {
        let all = [before.clone(), runs(run, Vec::new())].concat();
        assert_eq!(of(&told(&revision, &all, None, &[hook]), hook), expected);
    }
}

/// A branch may be put back by force to a commit on which a hook still runs: that is refused until a person allows it, and
/// what readers know of the commit is told to its end all the same.
#[test]
fn what_was_begun_before_a_revision_lost_its_plan_is_told_to_its_end() {
    let planned = revision(two_stages(), StatusDetail::Hooks);
    // Attempts in `dev` count where `production` waits for them.
    let run = sequence("1", "dev", "web", 2, &["web"]);
    let hook = deployment(&run, "web", "Abort", None);
    let written = rendered(&planned, &runs(run.clone(), vec![hook.clone()]), None, &BTreeSet::new());
    let known: Vec<&str> = written.iter().map(|status| status.context.as_str()).collect();
    assert_eq!(written.iter().filter(|status| !status.state.is_final()).count(), 5, "{written:?}");
    let reason = "history was rewritten".to_owned();
    for result in [RevisionResult::Refused { reason }, RevisionResult::Broken { problems: vec!["no YAML".into()] }] {
        let again = RevisionState { result, ..planned.clone() };
        let again = revised(Some(&planned), again, false);
        let under_way = told(&again, &runs(run.clone(), vec![hook.clone()]), None, &known);
        assert_eq!(of(&under_way, "launchway/dev/web/pre"), "running launchway/dev/web/pre: running");
        let stopped = ended(run.clone(), Outcome::SUPERSEDED, SUPERSEDED);
        let hook = deployment(&run, "web", "Abort", exit(143, FailureReason::Cancelled));
        let hook = failed(hook, DeploymentStep::Pre, Outcome::SUPERSEDED, SUPERSEDED);
        let known: BTreeSet<String> = known.iter().map(|context| (*context).to_owned()).collect();
        let last = rendered(&again, &runs(stopped, vec![hook]), None, &known);
        let contexts: BTreeSet<String> = last.iter().map(|status| status.context.clone()).collect();
        assert_eq!(contexts, known, "all that readers know, and nothing else");
        for status in &last {
            let before = written.iter().find(|before| before.context == status.context).unwrap();
            assert!(status.state.is_final() && status.attempt > before.attempt, "{status:?}");
            let is_green = matches!(status.state, StatusState::Success | StatusState::Unchanged);
            assert!(!is_green, "nothing of it passed: {status:?}");
        }
        let waits = last.iter().find(|status| status.context == "launchway/production").unwrap();
        assert_eq!(waits.description, "not started: the revision has no plan any more");
        assert_eq!(told(&again, &[], None, &[]).len(), 1, "nothing was said of it, and nothing began");
    }
}

/// A host that was out of reach may come back after a run was forgotten: its hook does not stay under way.
#[test]
fn a_hook_whose_run_is_forgotten_does_not_stay_under_way() {
    let mut stages = two_stages();
    let hook = "launchway/dev/web/pre";
    let known = ["launchway/plan", "launchway/dev", "launchway/dev/web", hook];
    for is_planned in [true, false] {
        if !is_planned {
            stages.iter_mut().for_each(|stage| stage.services.clear());
        }
        let told = told(&revision(stages.clone(), StatusDetail::Hooks), &[], None, &known);
        assert_eq!(of(&told, hook), format!("skipped {hook}: what became of it is not remembered any more"));
    }
}

#[test]
fn what_the_service_declares_names_its_hooks_not_what_a_run_does() {
    let cases: [(u32, &[&str], &[&str]); 4] = [
        (1, &["web"], &["launchway/dev/web/pre"]),
        (2, &["front", "back"], &["launchway/dev/web/front.pre", "launchway/dev/web/back.pre"]),
        (2, &["back"], &["launchway/dev/web/back.pre"]),
        (1, &["front"], &["launchway/dev/web/pre"]),
    ];
    for (configs, deployed, expected) in cases {
        let part = part("web", configs, Decision::Deploy, None);
        let revision = revision(vec![stage("dev", StageStart::Push, vec![part])], StatusDetail::Hooks);
        let run = sequence("1", "dev", "web", 1, deployed);
        let hooks = deployed.iter().map(|name| deployment(&run, name, "Abort", None)).collect();
        let told = told(&revision, &runs(run, hooks), None, &[]);
        let contexts: Vec<_> = expected.iter().map(|context| format!("running {context}: running")).collect();
        assert_eq!(told[3..], contexts, "{configs} configs, of which {deployed:?} are deployed");
    }
    let nothing_planned = revision(vec![stage("dev", StageStart::Push, Vec::new())], StatusDetail::Hooks);
    for (config, expected) in [("web", "launchway/dev/web/pre"), ("back", "launchway/dev/web/back.pre")] {
        let run = sequence("1", "dev", "web", 1, &[config]);
        let hook = deployment(&run, config, "Abort", None);
        let told = told(&nothing_planned, &runs(run, vec![hook]), None, &[]);
        assert_ne!(of(&told, expected), "nothing", "{told:?}");
    }
    // A plan that is made again need not speak of it any more: its first delivery did.
    for (configs, name, expected) in [(1, "front", "launchway/dev/web/pre"), (2, "web", "launchway/dev/web/web.pre")] {
        let mut first = sequence("1", "dev", "web", 1, &[name]);
        first.delivery.as_mut().unwrap().configs = Some(configs);
        let second = sequence("2", "dev", "web", 2, &[name]);
        let hook = deployment(&second, name, "Abort", None);
        let all = [runs(first, Vec::new()), runs(second, vec![hook])].concat();
        assert_ne!(of(&told(&nothing_planned, &all, None, &[]), expected), "nothing", "{configs} {name}");
    }
}

#[test]
fn what_waits_is_superseded_by_the_next_plan_unless_its_own_is_under_way() {
    let by_hand = |decision| {
        let waiting = stage("rescue", StageStart::ByHand, vec![part("web", 1, decision, None)]);
        [two_stages(), vec![waiting]].concat()
    };
    let dev = |outcome| runs(ended(sequence("1", "dev", "web", 1, &["web"]), outcome, "it failed"), Vec::new());
    let by_a_person = || {
        let run = ended(sequence("2", "dev", "web", 2, &["web"]), Outcome::PASS, "");
        runs(SequenceRun { plan: None, ..run }, Vec::new())
    };
    let superseded = |stage: &str| format!("skipped launchway/{stage}/web: {SUPERSEDED}");
    let cases = [
        ("production", Vec::new(), Decision::Deploy, superseded("production")),
        // The end of dev would have started it in the same transaction, if a newer one had not had its turn.
        ("production", dev(Outcome::PASS), Decision::Deploy, superseded("production")),
        // What a person deploys afterwards passes nothing, and takes nothing back.
        ("production", [dev(Outcome::PASS), by_a_person()].concat(), Decision::Deploy, superseded("production")),
        (
            "production",
            dev(Outcome::FAIL),
            Decision::Deploy,
            "skipped launchway/production/web: never reached: dev stopped it".to_owned(),
        ),
        (
            "production",
            runs(sequence("1", "dev", "web", 1, &["web"]), Vec::new()),
            Decision::Deploy,
            "pending launchway/production/web: waits for dev to pass".to_owned(),
        ),
        ("rescue", Vec::new(), Decision::Deploy, superseded("rescue")),
        ("rescue", Vec::new(), Decision::Wait, superseded("rescue")),
        (
            "rescue",
            Vec::new(),
            Decision::None,
            "skipped launchway/rescue/web: DeploymentConfig/web config change".to_owned(),
        ),
        ("dev", dev(Outcome::PASS), Decision::Deploy, "success launchway/dev/web: ".to_owned()),
    ];
    for (stage, runs, decision, expected) in cases {
        let revision = revision(by_hand(decision), StatusDetail::Hooks);
        let now = told(&revision, &runs, Some(&"0000002000".into()), &[]);
        let context = format!("launchway/{stage}/web");
        assert_eq!(of(&now, &context).trim_end(), expected.trim_end(), "{decision:?} in {stage}");
    }
}

#[test]
fn what_an_earlier_revision_stopped_or_has_brought_is_not_waited_for() {
    let web = ServiceName::new("web");
    let production = |part| stage("production", StageStart::After(Vec::new()), vec![part]);
    let dev = |decision| stage("dev", StageStart::Push, vec![part("web", 1, decision, None)]);
    let waits = || production(part("web", 1, Decision::Deploy, Some("dev")));
    let by_hand = || {
        let mut run = ended(sequence("1", "dev", "web", 1, &["web"]), Outcome::PASS, "");
        run.plan = None;
        runs(run, Vec::new())
    };
    let delivered = || runs(sequence("1", "dev", "web", 1, &["web"]), Vec::new());
    // What the plan says, what ran on this revision, and whether the end of an earlier one matters.
    for (stages, runs, matters) in [
        (vec![waits()], Vec::new(), true),
        (vec![dev(Decision::None), waits()], Vec::new(), true),
        (vec![dev(Decision::Deploy), waits()], Vec::new(), false),
        (vec![dev(Decision::Wait), waits()], Vec::new(), false),
        (vec![dev(Decision::Deploy), waits()], delivered(), false),
        (vec![dev(Decision::Deploy), waits()], by_hand(), true),
    ] {
        let revision = revision(stages, StatusDetail::Hooks);
        let left = |passed| BTreeMap::from([("dev".into(), passed)]);
        for (left, expected) in [
            (BTreeMap::new(), "waits for dev to pass"),
            (left(false), if matters { "never reached: dev stopped it" } else { "waits for dev to pass" }),
            (left(true), if matters { "nothing changed" } else { "waits for dev to pass" }),
        ] {
            let services = services(&revision, &runs, &left);
            assert_eq!(!services[&web].awaited().is_empty(), matters, "{revision:?} with {runs:?}");
            let told = render(&facts(&revision, &services, &comes_to(&revision)));
            let line = told.iter().find(|status| status.context == "launchway/production/web").unwrap();
            assert_eq!(line.description, expected, "{revision:?} with {runs:?} and {left:?}");
        }
    }
}

#[test]
fn every_attempt_in_a_stage_before_is_a_new_one_for_what_it_stopped() {
    let revision = revision(two_stages(), StatusDetail::Hooks);
    let first = ended(sequence("1", "dev", "web", 1, &[]), Outcome::FAIL, "no");
    let second = sequence("2", "dev", "web", 2, &[]);
    let third = ended(sequence("3", "production", "web", 1, &[]), Outcome::PASS, "");
    let mut all = Vec::new();
    let mut attempts = Vec::new();
    for run in [first, second.clone(), ended(second, Outcome::PASS, ""), third] {
        all.retain(|known: &Run| known.id() != &run.id);
        all.extend(runs(run, Vec::new()));
        let told = rendered(&revision, &all, None, &BTreeSet::new());
        let of = |context: &str| told.iter().find(|status| status.context == context).unwrap();
        let (service, stage) = (of("launchway/production/web"), of("launchway/production"));
        assert_eq!(service.attempt, stage.attempt);
        attempts.push((service.state.as_str(), service.attempt));
    }
    assert_eq!(attempts, [("skipped", 1), ("pending", 2), ("skipped", 2), ("success", 3)]);
}

#[test]
fn a_plan_that_is_made_again_takes_back_nothing() {
    let idle = || {
        let part = part("web", 1, Decision::None, None);
        revision(vec![stage("dev", StageStart::Push, vec![part])], StatusDetail::Auto)
    };
    let rest =
        || revision(vec![stage("dev", StageStart::Push, Vec::new()), two_stages().remove(1)], StatusDetail::Auto);
    let first = revised(None, revision(two_stages(), StatusDetail::Auto), true);
    let second = revised(Some(&first), rest(), false);
    let third = revised(Some(&second), rest(), false);
    for (again, state) in (0..).zip([&first, &second, &third]) {
        let status = rendered(state, &[], None, &BTreeSet::new()).remove(0);
        assert_eq!(status.description, "dev: 1 deploy; production: 1 deploy");
        assert_eq!((state.again, status.attempt), (again, again + 1));
    }
    assert_eq!(second.summary.as_ref().map(|summary| summary.details), Some(4));
    assert_eq!(revised(Some(&second), idle(), false), second, "it did what it says");
    let late = revised(Some(&idle()), rest(), false);
    assert_eq!(late.summary, None, "nothing was said yet");
}

#[test]
fn a_revision_names_those_that_bring_what_it_declares() {
    let carried = |commits: &[(&str, &str)]| {
        let mut stages = two_stages();
        for (stage, (service, commit)) in stages.iter_mut().zip(commits) {
            stage.services.clear();
            stage.carried = Arc::new([((*service).into(), (*commit).into())].into());
        }
        revision(stages, StatusDetail::Hooks)
    };
    let own = revision(Vec::new(), StatusDetail::Hooks).commit;
    for (commits, dev, plan) in [
        (vec![("web", "000000a"), ("web", "000000a")], "000000a does not bring", "000000a does not bring"),
        (vec![("web", "000000a"), ("web", "000000b")], "000000a does not bring", "000000a, 000000b do not bring"),
    ] {
        let told = told(&carried(&commits), &[], None, &[]);
        assert_eq!(of(&told, "launchway/dev"), format!("skipped launchway/dev: nothing changed that {dev}"));
        assert_eq!(of(&told, "launchway/plan"), format!("success launchway/plan: nothing to deploy that {plan}"));
    }
    let told = told(&carried(&[("web", own.as_str()), ("web", own.as_str())]), &[], None, &[]);
    assert_eq!(of(&told, "launchway/dev"), "skipped launchway/dev: nothing changed", "a plan that was made again");
}

#[test]
fn of_some_services_is_said_what_became_of_them_alone() {
    let stages =
        vec![stage("dev", StageStart::Push, ["api", "web"].map(|name| part(name, 1, Decision::Deploy, None)).to_vec())];
    let revision = revision(stages, StatusDetail::Stages);
    let api = runs(ended(sequence("1", "dev", "api", 1, &["api"]), Outcome::FAIL, "no room"), Vec::new());
    let web = runs(ended(sequence("2", "dev", "web", 1, &["web"]), Outcome::PASS, ""), Vec::new());
    let services = services(&revision, &[api, web].concat(), &BTreeMap::new());
    let summary = comes_to(&revision);
    let facts = facts(&revision, &services, &summary);
    let (api, web, gone) = (ServiceName::new("api"), ServiceName::new("web"), ServiceName::new("gone"));
    for (asked, expected) in [
        (vec![&api], Some((StatusState::Failure, "api: no room"))),
        (vec![&web], Some((StatusState::Success, "web:"))),
        (vec![&api, &web, &gone], Some((StatusState::Failure, "api: no room"))),
        (vec![&gone], None),
    ] {
        let told = in_stage(&facts, &"dev".into(), &asked.iter().copied().collect());
        let told = told.as_ref().map(|status| (status.state, status.description.as_str()));
        assert_eq!(told, expected, "{asked:?}");
    }
    assert!(in_stage(&facts, &"production".into(), &[&web].into()).is_none());
}
