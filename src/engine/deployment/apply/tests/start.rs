//! What a deployment starts with.

use super::*;
use crate::engine::fixtures::{NOW, ended};
use crate::model::cause::Cause;
use crate::model::deployment_config::HookPoint;
use crate::model::run::HookRecord;

/// A run asks for a deployment.
fn start(memory: &Memory, parent: &SequenceRun, asked: &Change) -> Made<()> {
    let memory = memory.clone().with(run(parent));
    memory.decide(|transition| start_deployment(transition, &parent.id, asked)).expect("it is started")
}

fn fresh<T>(made: &Made<T>) -> &DeploymentRun {
    let run = made.written::<Run>().into_iter().find_map(|run| match run {
        Run::Deployment(run) => Some(&**run),
        Run::Sequence(_) => None,
    });
    run.expect("a deployment")
}

fn parent() -> SequenceRun {
    let mut run = deploying(delivery("s1", "b"), 2);
    run.tasks[0].deployments[0].run = None;
    run
}

#[test]
fn each_deployment_has_the_next_version_also_of_what_comes_back() {
    let asked = planned(Decision::Deploy, &object("b"));
    let before = deployed(deployment(6, "a", &parent(), Phase::Complete));
    for (memory, number, previous) in [
        (Memory::default(), 1, None),
        (Memory::default().with(serving(4, "a")), 5, Some(4)),
        (Memory::default().with(ConfigState { latest_version: 8, ..serving(4, "a") }), 9, Some(4)),
        (Memory::default().with(before), 7, None),
    ] {
        let made = start(&memory, &parent(), &asked);
        let (run, state) = (fresh(&made), made.only::<ConfigState>());
        assert_eq!((run.version, run.attempt, run.previous), (number, 1, previous));
        let version = Version { number, commit: "bbbbbbb".into(), object: object("b") };
        let attempt = Attempt { version, run: "s1".into(), outcome: None };
        assert_eq!((state.latest_version, state.attempted.as_ref()), (number, Some(&attempt)));
        assert_eq!((&state.object, &state.wanted.owner), (&object("b"), &Some(web().deployment(number))));
        let started = Event::DeploymentStarted { config: "web".into(), deployment: web().deployment(number) };
        assert_eq!(made.told(&"s1".into()), [&started]);
    }
}

#[test]
fn what_serves_already_is_not_deployed_again_unless_a_person_asks_for_it() {
    let memory = Memory::default().with(serving(1, "b"));
    let asked = planned(Decision::Deploy, &object("b"));
    let made = start(&memory, &parent(), &asked);
    let [first, Event::DeploymentEnded { deployment, outcome, message, .. }] = made.told(&"s1".into())[..] else {
        unreachable!("{made:#?}")
    };
    assert!(matches!(first, Event::DeploymentStarted { deployment, .. } if *deployment == web().deployment(1)));
    assert_eq!((deployment, *outcome, &**message), (&web().deployment(1), Outcome::PASS, "serves already"));
    assert!(made.written::<ConfigState>().is_empty());
    let by_hand = start(&memory, &parent(), &Change { reasons: Vec::new(), ..asked });
    assert_eq!(fresh(&by_hand).version, 2);
}

#[test]
fn a_retry_is_another_attempt_at_the_same_version_and_keeps_what_its_hooks_did() {
    let (first, pod) = (ended(delivery("s0", "a"), Outcome::FAIL), "web-2-hook-pre".into());
    let (point, by) = (HookPoint::Pre, first.id.clone());
    let hook = HookRecord { point, by, pod, started_at: NOW, ended_at: Some(NOW), outcome: None };
    let failed = DeploymentRun {
        hooks: vec![hook.clone()],
        causes: vec![Cause::ConfigChange],
        ..deployment(2, "b", &first, Phase::Failed)
    };
    let state = attempted(serving(1, "a"), "b", &first, Some(Outcome::FAIL));
    let memory = Memory::default().with(state).with(deployed(failed));
    let causes = vec![Cause::ConfigChange, Cause::Manual { by: "ann".into() }];
    let asked = Change { retry: Some(2), causes: causes.clone(), ..planned(Decision::Deploy, &object("b")) };
    let made = start(&memory, &parent(), &asked);
    let run = fresh(&made);
    assert_eq!(run.causes, causes, "those of all attempts, each once");
    assert_eq!((run.version, run.attempt, &run.hooks, run.ended_at), (2, 2, &vec![hook], None));
    assert_eq!(made.only::<ConfigState>().latest_version, 2);
    let reported = |commit: &str| made.touched.reports.contains(&("repo".into(), commit.into()));
    assert!(reported("aaaaaaa") && reported("bbbbbbb"), "whose attempt it was reads of it: {:?}", made.touched);
}

#[test]
fn what_failed_before_something_came_back_is_attempted_as_the_next_version() {
    let first = ended(delivery("s0", "a"), Outcome::FAIL);
    let state = attempted(serving(1, "a"), "b", &first, Some(Outcome::FAIL));
    let back = ConfigState { latest_version: 3, serving: Some(version(3, "a")), ..state };
    let memory = Memory::default().with(back).with(deployed(deployment(2, "b", &first, Phase::Failed)));
    let asked = Change { retry: Some(2), ..planned(Decision::Deploy, &object("b")) };
    let made = start(&memory, &parent(), &asked);
    let run = fresh(&made);
    assert_eq!((run.version, run.attempt, run.previous), (4, 1, Some(3)));
    let state = made.only::<ConfigState>();
    assert_eq!((state.latest_version, state.attempted.as_ref().map(|it| it.version.number)), (4, Some(4)));
}

#[test]
fn a_deployment_begins_with_what_was_asked_of_its_config_before() {
    let scaled = Some(Scaled { replicas: 4, by: "ann".into(), at: Timestamp(0) });
    let memory = Memory::default().with(ConfigState { scaled, ..serving(1, "a") });
    let made = start(&memory, &parent(), &planned(Decision::Deploy, &object("b")));
    assert_eq!((fresh(&made).replicas, fresh(&made).generation), (4, 3), "generations are counted on");
}

#[test]
fn a_version_says_what_differs_and_who_started_it_and_forced_it() {
    let why = "ann although dev has not passed it: fire";
    let (changed, asked) = (Cause::ConfigChange, Cause::Manual { by: "ann".into() });
    for (by, started, forced, expected) in [
        (None, "push", None, "config change"),
        (Some("ann"), "triggered by ann", None, "config change, triggered by ann"),
        (Some("ann"), "config change", None, "config change"),
        (
            Some("ann"),
            "triggered by ann",
            Some(why),
            "config change, triggered by ann, forced by ann although dev has not passed it: fire",
        ),
    ] {
        let (by, forced) = (by.map(str::to_owned), forced.map(str::to_owned));
        let parent = SequenceRun { by, cause: started.into(), forced, ..parent() };
        let made = start(&Memory::default(), &parent, &planned(Decision::Deploy, &object("b")));
        assert_eq!(fresh(&made).cause, expected);
        let as_data = [Some(&changed), expected.contains("ann").then_some(&asked)];
        assert_eq!(fresh(&made).causes.iter().collect::<Vec<_>>(), as_data.into_iter().flatten().collect::<Vec<_>>());
    }
}

#[test]
fn nothing_is_started_of_what_cannot_be_read() {
    let mut broken = Object::clone(&object("b"));
    crate::manifest::digest::exchange(&mut broken, json!({"spec": 5}));
    let memory = Memory::default().with(run(&parent()));
    let asked = planned(Decision::Deploy, &broken.into());
    let made = memory.decide(|transition| start_deployment(transition, &"s1".into(), &asked));
    assert!(refused(made).starts_with("cannot read `DeploymentConfig/web`"));
}
