//! The sequence's machine.

use std::collections::BTreeSet;

use launchway::engine::sequence::machine::step;
use launchway::model::action::{Action, Decided, Effect};
use launchway::model::event::{Event, Timer};
use launchway::model::ids::RunId;
use launchway::model::outcome::{Outcome, PodOutcome};
use launchway::model::run::{Asked, DeploymentStep, SequenceRun, SequenceState};
use proptest::prelude::*;

use super::samples::{NOW, applying, deploying_and_applying, going_back, governed, judged, sequence};
use super::table::{Block, check, decisions};
use super::{
    cancel, evaluated, executor_finished, executor_reported, executor_started, failed, measured, not_measured,
    not_told, of_controllers, of_rollbacks, pod_ended, served, services_checked, timer,
};

fn deployment(config: &str) -> RunId {
    RunId::new(format!("shop/dev/{config}-2"))
}

fn started(config: &str) -> Event {
    Event::DeploymentStarted { config: config.into(), deployment: deployment(config) }
}

fn ended(config: &str, outcome: Outcome) -> Event {
    let (deployment, message) = (deployment(config), "ended".into());
    Event::DeploymentEnded { deployment, outcome, message, served_already: false }
}

fn served_already(config: &str) -> Event {
    let (deployment, outcome, message) = (deployment(config), Outcome::PASS, "serves already".into());
    Event::DeploymentEnded { deployment, outcome, message, served_already: true }
}

fn after(run: &SequenceRun, events: &[Event]) -> SequenceRun {
    events.iter().fold(run.clone(), |run, event| step(&run, event, NOW).0)
}

/// The pod of the last try of the test.
fn last_pod(run: &SequenceRun) -> &str {
    run.tasks[1].tries.last().map_or("none", |attempt| attempt.pod.as_str())
}

/// The task that a run is at; the first, if it is at none.
fn at(run: &SequenceRun) -> usize {
    match run.state {
        SequenceState::Running { task } | SequenceState::Returning { task } | SequenceState::Ending { task, .. } => {
            task
        }
        SequenceState::Queued | SequenceState::Ended => 0,
    }
}

/// What a run with an approval and executors goes through.
fn governed_states() -> Vec<(&'static str, SequenceRun)> {
    let approval = after(&governed("00000007"), &[Event::Admitted]);
    let returning = after(&approval, &[executor_finished(1, "ann", Outcome::PASS)]);
    let offered = after(&returning, &[Event::Admitted]);
    let begun = after(&offered, &[executor_started(2, "one")]);
    let two = after(&begun, &[executor_started(2, "two"), executor_finished(2, "one", Outcome::FAIL)]);
    let again = after(&begun, &[executor_finished(2, "one", Outcome::FAIL)]);
    let last = after(&again, &[timer(Timer::Retry), executor_started(2, "one")]);
    let handled = after(&last, &[executor_finished(2, "one", Outcome::FAIL)]);
    vec![
        ("waits for approval", approval),
        ("approved, waits for its slot", returning),
        ("release, nobody has taken it", offered),
        ("release, somebody has taken it", begun.clone()),
        ("release, one of two has failed", two),
        ("release, is to be tried again", again),
        ("release, last time", last),
        ("cleanup after a failure", handled),
        ("release, being ended", after(&begun, &[cancel()])),
        ("release, paused", after(&begun, &[Event::Paused { by: "ann".into() }])),
    ]
}

/// What a run goes through whose objectives launchway judges.
fn judged_states() -> Vec<(&'static str, SequenceRun)> {
    let asked = after(&judged("00000007"), &[Event::Admitted]);
    let known = after(&asked, &[measured(1)]);
    let again = after(&known, &[evaluated(1, Outcome::FAIL)]);
    let last = after(&again, &[timer(Timer::Retry)]);
    let given = after(&last, &[measured(1), evaluated(1, Outcome::PASS)]);
    vec![
        ("evaluation, is measured", asked),
        ("evaluation, is judged", known),
        ("evaluation, is to be tried again", again),
        ("evaluation, last time", last),
        ("evaluation by what was given", given),
    ]
}

/// What a run goes through whose service goes back.
fn going_back_states() -> Vec<(&'static str, SequenceRun)> {
    let asked = after(&going_back("00000007"), &[Event::Admitted]);
    let back = after(&asked, &[of_rollbacks(0).swap_remove(0).0, started("web"), started("api")]);
    vec![
        ("rollback, is decided", asked),
        ("rollback, both go back", back.clone()),
        ("rollback, one has", after(&back, &[ended("web", Outcome::PASS)])),
        ("rollback, being ended", after(&back, &[cancel()])),
    ]
}

fn states() -> Vec<(&'static str, SequenceRun)> {
    let queued = sequence("00000007");
    let deploying = after(&queued, &[Event::Admitted, started("web"), started("api")]);
    let half = after(&deploying, &[ended("web", Outcome::PASS)]);
    let pausing = after(&half, &[ended("api", Outcome::PASS)]);
    let testing = after(&pausing, &[timer(Timer::Delay)]);
    let between = after(&testing, &[pod_ended(last_pod(&testing), failed())]);
    let again = after(&between, &[timer(Timer::Retry)]);
    let applied = after(&applying("00000007"), &[Event::Admitted]);
    let both = after(&deploying_and_applying("00000007"), &[Event::Admitted, started("web")]);
    vec![
        ("queued", queued.clone()),
        ("deployment, not started yet", after(&queued, &[Event::Admitted])),
        ("deployment, both run", deploying.clone()),
        ("deployment, one has ended", half.clone()),
        ("deployment, one has failed", after(&deploying, &[ended("web", Outcome::FAIL)])),
        ("deployment, being ended", after(&half, &[cancel()])),
        ("deployment, waits for what it applied to listen", applied.clone()),
        ("deployment, what it applied does not listen", after(&applied, &[services_checked("port 80 is in use")])),
        ("deployment, waits for what it applied beside what serves already", after(&both, &[served_already("web")])),
        ("pause before the test", pausing),
        ("test, first try", testing.clone()),
        ("test, between two tries", between),
        ("test, last try", again.clone()),
        ("test, being ended", after(&testing, &[cancel()])),
        ("passed", after(&testing, &[pod_ended(last_pod(&testing), PodOutcome::Succeeded)])),
        ("failed", after(&again, &[pod_ended(last_pod(&again), failed())])),
    ]
}

fn events(run: &SequenceRun) -> Vec<(Event, &'static str)> {
    let mut events = vec![
        (Event::Queued { cause: "push".into() }, ""),
        (Event::Admitted, ""),
        (Event::Waiting { reason: "held".into() }, ""),
        (cancel(), ""),
        (started("web"), "web"),
        (started("other"), "other"),
        (ended("web", Outcome::PASS), "web well"),
        (ended("api", Outcome::PASS), "api well"),
        (ended("api", Outcome::FAIL), "api badly"),
        (ended("other", Outcome::FAIL), "other"),
        (Event::Prepared, ""),
        (Event::PrepareFailed { message: "no".into() }, ""),
        (Event::PodStarted { pod: last_pod(run).into() }, ""),
        (Event::Delayed { message: "no space".into() }, ""),
        (pod_ended(last_pod(run), PodOutcome::Succeeded), "well"),
        (pod_ended(last_pod(run), failed()), "badly"),
        (pod_ended(last_pod(run), PodOutcome::unknown("")), "unknown"),
        (pod_ended("other", failed()), "other"),
        (served(1, 2, true), ""),
        (services_checked(""), "well"),
        (services_checked("port 80 is in use"), "badly"),
        (Event::Disowned { reason: "taken down".into() }, ""),
        (timer(Timer::Deadline), ""),
        (timer(Timer::Progress), ""),
        (timer(Timer::Retry), ""),
        (timer(Timer::Delay), ""),
        (timer(Timer::Start), ""),
        (timer(Timer::Finish), ""),
        (executor_started(at(run), "one"), "one"),
        (executor_started(9, "one"), "elsewhere"),
        (executor_reported(at(run), "one"), ""),
        (executor_finished(at(run), "one", Outcome::PASS), "one well"),
        (executor_finished(at(run), "one", Outcome::FAIL), "one badly"),
        (executor_finished(9, "one", Outcome::PASS), "elsewhere"),
        (measured(at(run)), ""),
        (measured(9), "elsewhere"),
        (not_measured(at(run)), ""),
        (evaluated(at(run), Outcome::PASS), "well"),
        (evaluated(at(run), Outcome::FAIL), "badly"),
        (evaluated(9, Outcome::PASS), "elsewhere"),
        (Event::Scaled { version: Some(1), from: 1, to: 2, by: "ann".into() }, ""),
        (Event::Paused { by: "ann".into() }, ""),
        (Event::Resumed { by: "ann".into() }, ""),
        (Event::Promoted { by: "ann".into() }, ""),
        (not_told(), ""),
        (Event::DeployerAsked { pod: "web-2-deploy".into(), asked: Asked::Until { percent: 1 }, replicas: 2 }, ""),
        (Event::Executed { pod: "web-2-0".into(), command: "env".into(), by: "ann".into() }, ""),
        (Event::NotApproved { commit: "c1".into(), reason: "it is not signed".into() }, ""),
        (Event::NotDelivered { by: "tag v1".into(), reason: "held".into() }, ""),
    ];
    events.extend(of_controllers(DeploymentStep::Rollout));
    events.extend(of_rollbacks(at(run)));
    events
}

fn outcome(before: &SequenceRun, after: &SequenceRun, decided: &Decided) -> String {
    if before == after {
        assert_eq!(decided, &Decided::default(), "asks for something although nothing changed");
        return "-".into();
    }
    let state = match (after.state, after.outcome) {
        (state, _) if state == before.state => "stays".to_owned(),
        (SequenceState::Queued, _) => "queued".into(),
        (SequenceState::Running { task }, _) => after.tasks[task].step.clone(),
        (SequenceState::Returning { task }, _) => format!("returns to {}", after.tasks[task].step),
        (SequenceState::Ending { task, outcome }, _) => format!("ends {} {}", after.tasks[task].step, outcome.word()),
        (SequenceState::Ended, outcome) => format!("ended {}", outcome.map_or("-", Outcome::word)),
    };
    std::iter::once(state).chain(decisions(decided)).collect::<Vec<_>>().join("; ")
}

#[test]
fn every_state_meets_every_fact() {
    let walk = |(state, run): (&str, SequenceRun)| {
        let row = |(event, word): (Event, &'static str)| {
            let (after, decided) = step(&run, &event, NOW);
            let outcome = outcome(&run, &after, &decided);
            (event, word, outcome)
        };
        Block { state: state.to_owned(), rows: events(&run).into_iter().map(row).collect() }
    };
    check(
        "sequence.txt",
        &states()
            .into_iter()
            .chain(governed_states())
            .chain(judged_states())
            .chain(going_back_states())
            .map(walk)
            .collect::<Vec<_>>(),
    );
}

proptest! {
    #[test]
    fn whatever_happens_it_ends_once_and_passes_only_with_success(
        facts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let mut run = sequence("00000007");
        let (mut pods, mut finished, mut passed) = (BTreeSet::new(), 0, 0);
        let mut tell = |run: &mut SequenceRun, event: &Event| -> Result<(), TestCaseError> {
            let (next, decided) = step(run, event, NOW);
            if run.ended_at.is_some() {
                prop_assert!(&next == run && decided == Decided::default(), "an ended run changed");
            }
            for action in &decided.actions {
                if let Action::RunPod { pod } = action {
                    prop_assert!(pods.insert(pod.id.name.to_string()), "asked for twice");
                }
            }
            finished += decided.effects.iter().filter(|effect| matches!(effect, Effect::Finished { .. })).count();
            passed += decided.effects.iter().filter(|effect| matches!(effect, Effect::Passed { .. })).count();
            *run = next;
            Ok(())
        };
        for any in facts {
            let event = any.get(&events(&run)).0.clone();
            tell(&mut run, &event)?;
            // A deployment starts in the transaction in which it was asked for.
            if matches!(run.state, SequenceState::Running { task: 0 }) {
                tell(&mut run, &started("web"))?;
                tell(&mut run, &started("api"))?;
            }
        }
        let last = [cancel(), ended("web", Outcome::ABORTED), ended("api", Outcome::ABORTED)];
        for event in last {
            tell(&mut run, &event)?;
        }
        let stopped = pod_ended(last_pod(&run), failed());
        tell(&mut run, &stopped)?;
        prop_assert_eq!(run.state, SequenceState::Ended);
        let success = usize::from(run.outcome == Some(Outcome::PASS));
        prop_assert_eq!((finished, passed), (1, success));
    }
}

#[test]
fn what_serves_already_waits_for_the_services_that_come_with_it() {
    let begun = after(&deploying_and_applying("00000007"), &[Event::Admitted, started("web")]);
    let (waits, decided) = step(&begun, &served_already("web"), NOW);
    assert!(waits.awaits_services() && waits.tasks[0].ended_at.is_none());
    assert!(matches!(decided.actions[..], [Action::SetTimer { timer: Timer::Start, .. }]), "{decided:?}");
    let told = after(&waits, &[services_checked("port 80 is in use")]);
    assert_eq!((told.awaits_services(), told.tasks[0].message.as_str()), (true, "port 80 is in use"));
    let listens = after(&told, &[services_checked("")]);
    assert_eq!(listens.tasks[0].outcome, Some(Outcome::PASS));
    assert_eq!(listens.tasks[0].message, "web serves already");
    let deployed = after(&begun, &[ended("web", Outcome::PASS)]);
    assert_eq!(deployed.tasks[0].outcome, Some(Outcome::PASS), "what was brought up has waited for them");
}
