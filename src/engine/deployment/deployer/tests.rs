use serde_json::{from_value, json};

use super::*;
use crate::engine::deployment::strategy::{fallback, next_step, pace_of, targets};
use crate::engine::fixtures::{Memory, attempted, delivery, deployed, deploying, deployment, serving, web};
use crate::model::deployment_config::DeploymentConfigSpec;
use crate::model::run::{DeploymentStep, HookRecord, Phase};
use crate::model::time::Timestamp;
use crate::model::wanted::{Pace, Portion, Target};

const POD: &str = "web-2-deploy";

/// Version 2, in the hands of its deployer, beside version 1.
fn at_work_on(strategy: serde_json::Value) -> DeploymentRun {
    let parent = deploying(delivery("s1", "b"), 2);
    let mut run = deployment(2, "b", &parent, Phase::Pending);
    let spec: DeploymentConfigSpec = from_value(json!({"strategy": strategy, "template": run.spec.template})).unwrap();
    (run.spec, run.replicas, run.previous, run.step) = (spec, 4, Some(1), DeploymentStep::Deployer);
    let (by, started_at) = (run.parent.clone(), Timestamp(1));
    let point = HookPoint::Deployer;
    run.hooks.push(HookRecord { point, by, pod: POD.into(), started_at, ended_at: None, outcome: None });
    run
}

fn custom() -> DeploymentRun {
    at_work_on(json!({"type": "Custom", "customParams": {"image": "host", "command": ["bin/deploy"]}}))
}

fn decorated(kind: &str, mid: bool) -> DeploymentRun {
    let mid = mid.then(|| json!({"failurePolicy": "Abort", "execNewPod": {"command": ["true"]}}));
    let block = json!({"maxSurge": 1, "maxUnavailable": 0, "mid": mid});
    let blocks = json!({"rollingParams": block, "recreateParams": {"mid": mid}});
    at_work_on(json!({"type": kind, "customParams": {"command": ["bin/deploy"]},
        "rollingParams": blocks["rollingParams"], "recreateParams": blocks["recreateParams"]}))
}

fn judged(run: &DeploymentRun, ask: Ask) -> Result<Asked, String> {
    judge(run, &ask).map_err(|failure| failure.one_line())
}

#[test]
fn a_deployer_may_say_how_many_pods_its_own_versions_have() {
    let scale = |new, old| Ask::Scale { controller: None, new, old };
    let mut run = custom();
    assert_eq!(judged(&run, scale(Some(4), Some(4))), Ok(Asked::Scale { new: 4, old: Some(4) }));
    assert_eq!(judged(&run, scale(Some(1), None)), Ok(Asked::Scale { new: 1, old: None }), "the old ones stay all");
    assert_eq!(judged(&run, scale(None, Some(1))), Ok(Asked::Scale { new: 0, old: Some(1) }));
    run.deployer.asked = Some(Asked::Scale { new: 2, old: Some(3) });
    assert_eq!(judged(&run, scale(None, Some(1))), Ok(Asked::Scale { new: 2, old: Some(1) }));
    assert_eq!(judged(&run, scale(Some(3), None)), Ok(Asked::Scale { new: 3, old: Some(3) }));
    assert!(judged(&run, scale(Some(5), None)).unwrap_err().contains("5 pods are more than the 4 replicas"));
    run.previous = None;
    run.deployer.asked = None;
    assert!(judged(&run, scale(Some(1), Some(1))).unwrap_err().contains("nothing served before"));
    assert_eq!(judged(&run, scale(Some(1), Some(0))), Ok(Asked::Scale { new: 1, old: Some(0) }));
    assert!(judged(&run, Ask::Until { percent: 10 }).unwrap_err().contains("exchanges no pods by itself"));
}

#[test]
fn a_strategy_that_is_decorated_exchanges_pods_until_so_many_are_new() {
    let until = |percent| Ask::Until { percent };
    let mut rolling = decorated("Rolling", true);
    assert_eq!(judged(&rolling, until(50)), Ok(Asked::Until { percent: 50 }));
    rolling.deployer.asked = Some(Asked::Until { percent: 50 });
    assert_eq!(judged(&rolling, until(10)), Ok(Asked::Until { percent: 50 }), "nothing is taken back");
    assert!(judged(&rolling, until(101)).is_err());
    assert!(
        judged(&rolling, Ask::Scale { controller: None, new: Some(1), old: None })
            .unwrap_err()
            .contains("by the strategy")
    );
    assert_eq!(judged(&decorated("Recreate", true), until(0)), Ok(Asked::Until { percent: 0 }));
    assert!(judged(&decorated("Recreate", true), until(1)).unwrap_err().contains("mid hook"));
    assert_eq!(judged(&decorated("Recreate", false), until(1)), Ok(Asked::Until { percent: 1 }));
}

#[test]
fn what_is_paused_or_given_up_is_in_nobodys_hands() {
    let mut paused = custom();
    paused.waits.paused_by = Some("ann".into());
    let refused = judge(&paused, &Ask::Scale { controller: None, new: Some(1), old: None }).unwrap_err();
    assert!(refused.hint_text().is_some_and(|hint| hint.contains("rollout resume dc/web -s dev")), "{refused:?}");
    let mut over = custom();
    over.hooks[0].outcome = Some(PodOutcome::Succeeded);
    assert!(is_at_work(&custom(), &POD.into()) && !is_at_work(&over, &POD.into()));
    assert!(!is_at_work(&custom(), &"web-2-deploy-2".into()));
}

#[test]
fn what_is_asked_for_becomes_targets() {
    let at_most = |pods| Target { portion: Portion::AtMost(pods), ..Target::ALL };
    let rest = Target { portion: Portion::Rest, ..Target::ALL };
    let scaled = |new, old| Some(Asked::Scale { new, old });
    let until = |percent| Some(Asked::Until { percent });
    for (run, asked, expected, back, at_once) in [
        (custom(), None, vec![(1, Target::ALL), (2, at_most(0))], Some(1), false),
        (custom(), scaled(1, None), vec![(1, Target::ALL), (2, at_most(1))], None, true),
        (custom(), scaled(4, Some(0)), vec![(1, at_most(0)), (2, at_most(4))], None, true),
        (decorated("Rolling", false), None, vec![(1, Target::ALL), (2, at_most(0))], Some(1), false),
        (decorated("Rolling", false), until(30), vec![(1, rest), (2, at_most(2))], Some(1), false),
        (decorated("Rolling", false), until(100), vec![(1, rest), (2, at_most(4))], Some(1), false),
        (decorated("Recreate", false), None, vec![(1, Target::ALL), (2, at_most(0))], Some(1), false),
        (decorated("Recreate", false), until(0), vec![(2, at_most(0))], None, false),
        (decorated("Recreate", false), until(50), vec![(2, at_most(2))], None, false),
    ] {
        let mut run = run;
        run.deployer.asked = asked;
        assert_eq!(Vec::from_iter(targets(&run)), expected, "{asked:?}");
        assert_eq!((fallback(&run), pace_of(&run) == Pace::AT_ONCE), (back, at_once), "{asked:?}");
    }
}

#[test]
fn what_follows_a_deployer_does_not_undo_what_it_did() {
    use DeploymentStep::{Deployer, FirstPod, Mid, Pre, Rollout, ScaleDown};
    let next = |run: &DeploymentRun| next_step(run, Deployer);
    assert_eq!((next_step(&custom(), Pre), next(&custom())), (Deployer, Rollout));
    let with = |mut run: DeploymentRun, percent| {
        run.deployer.asked = Some(Asked::Until { percent });
        run
    };
    assert_eq!(next(&decorated("Recreate", true)), ScaleDown);
    assert_eq!(next(&with(decorated("Recreate", true), 0)), ScaleDown);
    assert_eq!(next(&with(decorated("Recreate", false), 50)), Rollout, "the new pods stay");
    let mut half = with(decorated("Rolling", true), 50);
    assert_eq!((next(&half), next_step(&half, FirstPod)), (FirstPod, Mid));
    half.step = FirstPod;
    assert_eq!(targets(&half)[&2].portion, Portion::AtMost(2));
    let mut ended = custom();
    (ended.step, ended.deployer.asked) = (Rollout, Some(Asked::Scale { new: 4, old: Some(0) }));
    assert_eq!(fallback(&ended), None, "the old version may not live with what the deployer has made");
    ended.deployer.asked = Some(Asked::Scale { new: 4, old: Some(1) });
    assert_eq!(fallback(&ended), Some(1));
}

#[test]
fn a_deployer_has_what_upstream_gives_it_and_a_way_to_the_daemon_that_no_file_changes() {
    let variable = |name: &str, value: &str| json!({"name": name, "value": value});
    let run = at_work_on(json!({
        "type": "Custom",
        "customParams": {"command": ["bin/deploy"], "environment": [
            variable("OPENSHIFT_DEPLOYMENT_NAME", "mine"), variable("LAUNCHWAY_API_TOKEN", "stolen"), variable("A", "b"),
        ]},
        "resources": {"limits": {"memory": "64Mi"}}, "labels": {"a": "b"}, "annotations": {"c": "d"},
    }));
    let pod = deployer_pod(&run, 2, 60);
    let container = &pod.template.spec.containers[0];
    assert_eq!(pod.id.name.as_str(), "web-2-deploy-2");
    assert!(pod.deploys && pod.run_once_seconds == Some(60));
    assert_eq!(container.image, run.spec.template.spec.containers[0].image, "it names none");
    assert!(!container.resources.is_empty() && pod.template.metadata.labels["a"] == "b");
    let names: Vec<&str> = container.env.iter().map(|variable| variable.name.as_str()).collect();
    let expected = [
        "OPENSHIFT_DEPLOYMENT_NAMESPACE",
        "OPENSHIFT_DEPLOYMENT_NAME",
        "A",
        "LAUNCHWAY_API_URL",
        "LAUNCHWAY_API_TOKEN",
    ];
    assert_eq!(names, expected);
    assert_eq!(container.env[1].value.as_deref(), Some("mine"));
    assert!(container.env[4].value.is_none() && container.env[4].value_from.is_some());
}

#[test]
fn exit_codes_that_are_reserved_say_why() {
    let failed = |code| PodOutcome::Failed { code, reason: FailureReason::Error, message: String::new() };
    let told = |text: &str, code| with_reason(text.to_owned(), &failed(code));
    assert_eq!(
        told("failed with exit code 69 after 1s", 69),
        "failed with exit code 69 after 1s (pods did not become available)"
    );
    assert_eq!(
        told("failed with exit code 75: no: host", 75),
        "failed with exit code 75 (something it needs is not there for now; a retry may help): no: host"
    );
    assert_eq!(told("failed with exit code 3: x", 3), "failed with exit code 3: x");
}

#[test]
fn the_same_asked_again_is_the_same_and_another_deployers_run_is_not_its_own() {
    let parent = deploying(delivery("s1", "b"), 2);
    let mut state = attempted(serving(1, "a"), "b", &parent, None);
    state.wanted.replicas = 4;
    state.wanted.owner = Some(web().deployment(2));
    let mut memory = Memory::default().with(state).with(deployed(custom()));
    let mut asks = |pod: &str| {
        let ask = Ask::Scale { controller: None, new: Some(1), old: None };
        let made = memory.commit(|transition| ask_of(transition, pod, ask.clone()));
        made.map(|made| made.answer).map_err(|failure| failure.one_line())
    };
    fn ask_of(transition: &mut Transition<'_>, pod: &str, ask: Ask) -> Result<u64, Undecided> {
        super::ask(transition, &web().deployment(2), &pod.into(), &ask)
    }
    assert_eq!((asks(POD), asks(POD)), (Ok(1), Ok(1)));
    assert!(asks("web-1-deploy").unwrap_err().contains("not in the hands"));
}

#[test]
fn settled_is_only_just_what_is_wanted() {
    let at_most = |pods| Target { portion: Portion::AtMost(pods), ..Target::ALL };
    let targets = BTreeMap::from([(1, at_most(1)), (2, at_most(2))]);
    let wanted = Wanted { replicas: 4, targets, ..Wanted::default() };
    let count = |living, available, leaving| Count { living, available, leaving, ended: 1 };
    for (one, two, three, expected) in [
        (count(1, 1, 0), count(2, 2, 0), count(0, 0, 0), true),
        (count(1, 0, 0), count(2, 2, 0), count(0, 0, 0), false),
        (count(1, 1, 1), count(2, 2, 0), count(0, 0, 0), false),
        (count(1, 1, 0), count(3, 3, 0), count(0, 0, 0), false),
        (count(1, 1, 0), count(2, 2, 0), count(0, 0, 1), false),
    ] {
        let versions = BTreeMap::from([(1, one), (2, two), (3, three)]);
        assert_eq!(has_converged(&wanted, &Observed { versions, next_available: None }), expected);
    }
}
