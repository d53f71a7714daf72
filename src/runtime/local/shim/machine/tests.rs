use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::model::ids::RunId;
use crate::model::pod::{PodId, PodOwner};

fn pod(spec: Value) -> Pod {
    Pod {
        id: PodId { namespace: "n".into(), name: "p".into() },
        owner: PodOwner::Run { run: RunId::new("r"), step: "s".into(), since: Default::default() },
        template: serde_json::from_value(json!({"spec": spec})).unwrap(),
        repository: "r".into(),
        commit: "c".into(),
        run_once_seconds: None,
        tells_result: false,
        deploys: false,
    }
}

fn once(spec: Value) -> Pod {
    Pod { run_once_seconds: Some(60), ..pod(spec) }
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn exit(code: i32) -> Exit {
    Exit { code: Some(code), message: "last words".into() }
}

fn key(purpose: Purpose) -> HandlerKey {
    HandlerKey { unit: 0, purpose }
}

/// A pod's machine after its first container's command began to run.
fn running(pod: &Pod) -> Machine {
    let mut machine = Machine::new(pod);
    assert_eq!(machine.step(seconds(0), Event::Tick), [Effect::Start(0)]);
    machine.step(seconds(0), Event::Started(0));
    machine
}

#[test]
fn init_containers_start_one_after_another() {
    let spec = json!({"initContainers": [{"name": "a"}, {"name": "b"}], "containers": [{"name": "c"}, {"name": "d"}]});
    let mut machine = running(&pod(spec));
    assert_eq!(machine.step(seconds(1), Event::Gone(0, exit(0))), [Effect::Clean(0), Effect::Start(1)]);
    machine.step(seconds(1), Event::Started(1));
    let effects = machine.step(seconds(2), Event::Gone(1, exit(0)));
    assert_eq!(effects, [Effect::Clean(1), Effect::Start(2), Effect::Start(3)]);
    machine.step(seconds(2), Event::Started(2));
    assert!(!machine.admitted());
    assert_eq!(machine.step(seconds(2), Event::Started(3)), [Effect::Admit(true)]);
}

#[test]
fn an_init_container_that_fails_is_tried_again_unless_the_policy_forbids_it() {
    for (policy, again) in [("Always", true), ("OnFailure", true), ("Never", false)] {
        let spec = json!({"restartPolicy": policy, "initContainers": [{"name": "a"}], "containers": [{"name": "b"}]});
        let mut machine = running(&pod(spec));
        machine.step(seconds(0), Event::Gone(0, exit(1)));
        assert_eq!(machine.step(seconds(1), Event::Tick).contains(&Effect::Start(0)), again, "{policy}");
        assert_eq!(matches!(machine.stage(), Stage::Sweeping(PodOutcome::Failed { .. })), !again, "{policy}");
    }
}

#[test]
fn the_policy_says_what_follows_an_exit() {
    let cases = [
        ("Always", 0, true),
        ("Always", 1, true),
        ("OnFailure", 0, false),
        ("OnFailure", 1, true),
        ("Never", 0, false),
        ("Never", 1, false),
    ];
    for (policy, code, again) in cases {
        let mut machine = running(&pod(json!({"restartPolicy": policy, "containers": [{"name": "a"}]})));
        machine.step(seconds(0), Event::Gone(0, exit(code)));
        let ended = matches!(machine.stage(), Stage::Sweeping(_));
        assert_eq!(ended, !again, "{policy} {code}");
        assert_eq!(machine.step(seconds(1), Event::Tick).contains(&Effect::Start(0)), again, "{policy} {code}");
    }
}

#[test]
fn a_pod_that_runs_once_is_never_started_again() {
    let mut machine = running(&once(json!({"restartPolicy": "Always", "containers": [{"name": "a"}]})));
    machine.step(seconds(1), Event::Gone(0, exit(3)));
    let expected = PodOutcome::Failed { code: 3, reason: FailureReason::Error, message: "last words".into() };
    assert_eq!(machine.stage(), &Stage::Sweeping(expected.clone()));
    machine.step(seconds(1), Event::Swept);
    assert_eq!(machine.stage(), &Stage::Ended(expected));
}

#[test]
fn pauses_between_restarts_double_up_to_five_minutes_and_are_forgotten_after_ten() {
    let mut machine = running(&pod(json!({"containers": [{"name": "a"}]})));
    let mut now = seconds(0);
    let mut pauses = Vec::new();
    for ran in [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 600, 0] {
        now += seconds(ran);
        machine.step(now, Event::Gone(0, exit(1)));
        let due = machine.next_due().unwrap();
        pauses.push((due - now).as_secs());
        now = due;
        machine.step(now, Event::Tick);
        machine.step(now, Event::Started(0));
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 1, 2]);
}

#[test]
fn a_stop_leaves_the_services_then_drains_then_runs_pre_stop_then_terminates_then_kills() {
    let container = json!({"name": "a", "lifecycle": {"preStop": {"exec": {"command": ["x"]}}}});
    let mut machine = running(&pod(json!({"terminationGracePeriodSeconds": 30, "containers": [container]})));
    assert!(machine.admitted());
    assert_eq!(machine.step(seconds(100), Event::StopRequested), [Effect::Admit(false)]);
    assert_eq!(machine.next_due(), Some(seconds(120)));
    let pre_stop = key(Purpose::PreStop);
    assert_eq!(machine.step(seconds(105), Event::Drained), [Effect::Handle(pre_stop, seconds(25))]);
    assert_eq!(machine.step(seconds(110), Event::Handled(pre_stop, Ok(()))), [Effect::Terminate(0)]);
    assert_eq!(machine.step(seconds(130), Event::Tick), [Effect::Kill(0)]);
    assert_eq!(machine.step(seconds(130), Event::Gone(0, exit(137))), [Effect::Clean(0)]);
    assert_eq!(machine.stage(), &Stage::Sweeping(PodOutcome::Succeeded));
}

#[test]
fn a_pre_stop_that_takes_the_whole_grace_period_leaves_two_seconds_for_sigterm() {
    let container = json!({"name": "a", "lifecycle": {"preStop": {"exec": {"command": ["x"]}}}});
    let mut machine = running(&pod(json!({"terminationGracePeriodSeconds": 9, "containers": [container]})));
    machine.step(seconds(0), Event::StopRequested);
    machine.step(seconds(0), Event::Drained);
    assert_eq!(machine.step(seconds(9), Event::Tick), [Effect::Terminate(0)]);
    assert_eq!(machine.step(seconds(11), Event::Tick), [Effect::Kill(0)]);
}

#[test]
fn connections_that_never_end_leave_a_third_of_the_grace_period_to_the_processes() {
    let mut machine = running(&pod(json!({"terminationGracePeriodSeconds": 30, "containers": [{"name": "a"}]})));
    machine.step(seconds(0), Event::StopRequested);
    assert_eq!(machine.step(seconds(19), Event::Tick), []);
    assert_eq!(machine.step(seconds(20), Event::Tick), [Effect::Terminate(0)]);
    assert_eq!(machine.step(seconds(30), Event::Tick), [Effect::Kill(0)]);
}

#[test]
fn a_shim_that_is_told_to_end_ends_its_pod_in_order_and_nobody_knows_what_it_would_have_come_to() {
    let spec = json!({"containers": [{"name": "a"}]});
    for pod in [pod(spec.clone()), once(spec)] {
        let mut machine = running(&pod);
        machine.step(seconds(1), Event::Interrupted);
        assert_eq!(machine.stage(), &Stage::Draining);
        assert_eq!(machine.step(seconds(1), Event::Drained), [Effect::Terminate(0)]);
        machine.step(seconds(2), Event::Gone(0, exit(0)));
        assert!(matches!(machine.stage(), Stage::Sweeping(PodOutcome::Unknown { interrupted: true, .. })));
    }
}

#[test]
fn a_deadline_and_a_request_are_told_apart() {
    let spec = json!({"terminationGracePeriodSeconds": 3, "containers": [{"name": "a"}]});
    let cases = [
        (seconds(60), Event::Tick, FailureReason::DeadlineExceeded),
        (seconds(1), Event::StopRequested, FailureReason::Cancelled),
    ];
    for (now, event, expected) in cases {
        let mut machine = running(&once(spec.clone()));
        machine.step(now, event);
        machine.step(now, Event::Drained);
        machine.step(now, Event::Gone(0, exit(143)));
        let as_expected = |reason, code| (reason, code) == (expected, 143);
        let stage = machine.stage();
        assert!(
            matches!(stage, Stage::Sweeping(PodOutcome::Failed { reason, code, .. }) if as_expected(*reason, *code))
        );
    }
}

#[test]
fn what_cannot_start_fails_a_hook_and_is_tried_again_for_a_server() {
    let failed = || Exit { code: None, message: "command not found: `x`".into() };
    let mut hook = Machine::new(&once(json!({"containers": [{"name": "a"}]})));
    hook.step(seconds(0), Event::Tick);
    hook.step(seconds(0), Event::Gone(0, failed()));
    let expected =
        PodOutcome::Failed { code: 127, reason: FailureReason::StartError, message: "command not found: `x`".into() };
    assert_eq!(hook.stage(), &Stage::Sweeping(expected));
    let mut server = Machine::new(&pod(json!({"containers": [{"name": "a"}]})));
    server.step(seconds(0), Event::Tick);
    server.step(seconds(0), Event::Gone(0, failed()));
    assert_eq!(server.units()[0].problem.as_deref(), Some("container `a` cannot start: command not found: `x`"));
    assert_eq!(server.step(seconds(1), Event::Tick), [Effect::Start(0)]);
}

#[test]
fn liveness_restarts_and_readiness_only_admits() {
    let probe = |failures: u32| json!({"exec": {"command": ["x"]}, "periodSeconds": 5, "failureThreshold": failures});
    let container = json!({"name": "a", "livenessProbe": probe(2), "readinessProbe": probe(1)});
    let mut machine = Machine::new(&pod(json!({"containers": [container]})));
    machine.step(seconds(0), Event::Tick);
    let (live, ready) = (key(Purpose::Liveness), key(Purpose::Readiness));
    let checks = [Effect::Handle(live, seconds(1)), Effect::Handle(ready, seconds(1))];
    assert_eq!(machine.step(seconds(0), Event::Started(0)), checks);
    let bad = || Err("no answer".to_owned());
    machine.step(seconds(1), Event::Handled(live, bad()));
    assert_eq!(machine.step(seconds(1), Event::Handled(ready, Ok(()))), [Effect::Admit(true)]);
    assert_eq!(machine.step(seconds(5), Event::Tick), checks);
    assert_eq!(machine.step(seconds(6), Event::Handled(ready, bad())), [Effect::Admit(false)]);
    assert_eq!(machine.step(seconds(6), Event::Handled(live, bad())), [Effect::Terminate(0)]);
    machine.step(seconds(7), Event::Gone(0, exit(143)));
    assert_eq!(machine.units()[0].problem.as_deref(), Some("container `a`: liveness probe failed: no answer"));
    assert_eq!(machine.step(seconds(8), Event::Tick), [Effect::Start(0)]);
    assert_eq!(machine.units()[0].restarts, 1);
}

#[test]
fn a_program_that_ends_well_before_its_pod_is_ready_is_a_problem_too() {
    let probe = json!({"exec": {"command": ["x"]}, "periodSeconds": 60});
    let mut machine = running(&pod(json!({"containers": [{"name": "a", "readinessProbe": probe}]})));
    machine.step(seconds(1), Event::Gone(0, exit(0)));
    assert_eq!(machine.units()[0].problem.as_deref(), Some("container `a` exited with code 0: last words"));
}

#[test]
fn what_a_probe_says_is_a_problem_after_some_seconds_and_an_end_is_one_until_it_is_ready() {
    let probe = json!({"exec": {"command": ["x"]}, "periodSeconds": 60});
    let mut machine = running(&pod(json!({"containers": [{"name": "a", "readinessProbe": probe}]})));
    let problem = |machine: &Machine| machine.units()[0].problem.clone().unwrap_or_default();
    let ready = key(Purpose::Readiness);
    machine.step(seconds(1), Event::Handled(ready, Err("no answer".into())));
    assert_eq!((problem(&machine).as_str(), machine.next_due()), ("", Some(seconds(3))));
    machine.step(seconds(3), Event::Tick);
    assert_eq!(problem(&machine), "container `a`: readiness probe: no answer");

    machine.step(seconds(4), Event::Gone(0, exit(3)));
    let ended = "container `a` exited with code 3: last words";
    assert_eq!(problem(&machine), ended);
    assert_eq!(machine.step(seconds(5), Event::Tick), [Effect::Start(0)]);
    machine.step(seconds(5), Event::Started(0));
    machine.step(seconds(6), Event::Handled(ready, Err("no answer".into())));
    assert_eq!(problem(&machine), ended, "it may still become ready");
    machine.step(seconds(65), Event::Tick);
    machine.step(seconds(66), Event::Handled(ready, Ok(())));
    assert_eq!((problem(&machine).as_str(), machine.admitted()), ("", true));
}

#[test]
fn how_a_container_ended_is_told_until_it_outlives_that_run() {
    // (how long it ran, for how long the next run is under its reason)
    for (ran, told) in [(0, 3), (1, 4), (20, 40), (90, 150), (599, 659), (600, 60), (86_400, 60)] {
        let mut machine = running(&pod(json!({"containers": [{"name": "a"}]})));
        machine.step(seconds(ran), Event::Gone(0, exit(1)));
        let starts = ran + 1;
        assert_eq!(machine.step(seconds(starts), Event::Tick), [Effect::Start(0)]);
        machine.step(seconds(starts), Event::Started(0));
        let problem = |machine: &Machine| machine.units()[0].problem.clone();
        assert!(machine.admitted() && problem(&machine).is_some(), "after {ran} s it is ready, and has ended before");
        assert_eq!(machine.next_due(), Some(seconds(starts + told)), "after {ran} s");
        machine.step(seconds(starts + told - 1), Event::Tick);
        assert!(problem(&machine).is_some(), "after {ran} s");
        machine.step(seconds(starts + told), Event::Tick);
        assert_eq!((problem(&machine), machine.next_due()), (None, None), "after {ran} s");
    }
}

#[test]
fn a_container_whose_post_start_fails_with_its_end_is_started_again() {
    let lifecycle = json!({"postStart": {"exec": {"command": ["x"]}}});
    let (gone, failed) = (Event::Gone(0, exit(1)), Event::Handled(key(Purpose::PostStart), Err("no".into())));
    for order in [[gone.clone(), failed.clone()], [failed, gone]] {
        let mut machine = running(&pod(json!({"containers": [{"name": "a", "lifecycle": lifecycle}]})));
        for event in order {
            machine.step(seconds(1), event);
        }
        assert_eq!(machine.step(seconds(3), Event::Tick), [Effect::Start(0)]);
        assert_eq!(machine.units()[0].restarts, 1);
    }
}

#[test]
fn a_pod_that_is_stopped_before_it_starts_never_starts() {
    let mut machine = Machine::new(&pod(json!({"containers": [{"name": "a"}]})));
    assert_eq!(machine.step(seconds(0), Event::StopRequested), []);
    assert_eq!(machine.step(seconds(0), Event::Drained), []);
    assert_eq!(machine.stage(), &Stage::Sweeping(PodOutcome::Succeeded));
}

fn event() -> impl Strategy<Value = Event> {
    let purposes = [Purpose::PostStart, Purpose::PreStop, Purpose::Startup, Purpose::Liveness, Purpose::Readiness];
    let handled =
        (0..3_usize, prop::sample::select(purposes.to_vec()), any::<bool>()).prop_map(|(unit, purpose, good)| {
            Event::Handled(HandlerKey { unit, purpose }, if good { Ok(()) } else { Err("bad".into()) })
        });
    prop_oneof![
        6 => Just(Event::Tick),
        4 => (0..3_usize).prop_map(Event::Started),
        3 => (0..3_usize, 0..2).prop_map(|(unit, code)| Event::Gone(unit, exit(code))),
        6 => handled,
        1 => Just(Event::StopRequested),
        1 => Just(Event::Interrupted),
        1 => Just(Event::Drained),
        1 => Just(Event::Swept),
    ]
}

proptest! {
    /// Whatever happens in whatever order: connections are let in only while it runs, nothing starts once it is
    /// ending, and the outcome stays once it is known.
    #[test]
    fn no_order_of_events_breaks_the_promises(events in prop::collection::vec((event(), 0..20_u64), 1..60)) {
        let probe = json!({"exec": {"command": ["x"]}, "failureThreshold": 1});
        let container = json!({"name": "b", "readinessProbe": probe, "livenessProbe": probe, "startupProbe": probe,
                               "lifecycle": {"preStop": {"sleep": {"seconds": 1}}, "postStart": {"sleep": {"seconds": 1}}}});
        let spec = json!({"initContainers": [{"name": "a"}], "containers": [container, {"name": "c"}]});
        let mut machine = Machine::new(&pod(spec));
        let (mut now, mut admitted) = (seconds(0), false);
        for (event, pause) in events {
            let before = machine.stage().clone();
            now += seconds(pause);
            for effect in machine.step(now, event) {
                match effect {
                    Effect::Admit(value) => {
                        prop_assert_ne!(value, admitted);
                        admitted = value;
                    }
                    Effect::Start(_) => prop_assert_eq!(&before, &Stage::Running),
                    _ => {}
                }
            }
            prop_assert_eq!(admitted, machine.admitted());
            prop_assert!(!admitted || *machine.stage() == Stage::Running);
            if let Stage::Sweeping(outcome) | Stage::Ended(outcome) = &before {
                let now = machine.stage();
                prop_assert!(matches!(now, Stage::Sweeping(after) | Stage::Ended(after) if after == outcome), "{now:?}");
            }
        }
    }
}
