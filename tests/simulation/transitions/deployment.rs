//! The deployment's machine.

use std::collections::BTreeSet;

use launchway::engine::deployment::machine::{begin, step};
use launchway::model::action::{Action, Decided, Effect};
use launchway::model::event::{Event, Timer};
use launchway::model::outcome::{Outcome, PodOutcome};
use launchway::model::run::{Asked, Controlled, Controllers, DeploymentRun, DeploymentStep, Leader, Phase, TrialPart};
use launchway::model::time::Timestamp;
use launchway::testing::world::hook;
use proptest::prelude::*;
use serde_json::json;

use super::samples::{NOW, deployment};
use super::table::{Block, check, decisions};
use super::{
    cancel, evaluated, executor_finished, executor_reported, executor_started, failed, measured, not_listening,
    not_measured, not_told, of_controllers, of_rollbacks, pod_ended, served, services_checked, timer,
};

/// Answers to what a run waits for, so that it goes on.
fn good_news(run: &DeploymentRun) -> Event {
    let running = run.hooks.last().filter(|hook| hook.outcome.is_none());
    match (running, run.step) {
        (Some(hook), _) => pod_ended(hook.pod.as_str(), PodOutcome::Succeeded),
        (None, DeploymentStep::Prepare) => Event::Prepared,
        (None, _) if run.waits_for_a_person() => resumed(),
        (None, DeploymentStep::Trial { part: TrialPart::Pause, .. }) => resumed(),
        (None, DeploymentStep::Pre | DeploymentStep::Mid | DeploymentStep::Post) => timer(Timer::Retry),
        (None, DeploymentStep::Trial { part: TrialPart::Analysis, .. }) => timer(Timer::Retry),
        (None, _) => served(run.generation, 2, true),
    }
}

/// A run that has come to `target` on the straight way.
fn at(target: DeploymentStep, strategy: &str, policy: &str) -> DeploymentRun {
    let hooks = json!({"pre": hook(policy), "mid": hook(policy), "post": hook(policy), "analysis": hook(policy)});
    let (mut run, _) = begin(&deployment(strategy, &hooks), NOW);
    while run.step != target {
        assert_ne!(run.step, DeploymentStep::Done, "{target:?} is not on the way");
        run = step(&run, &good_news(&run), NOW).0;
    }
    run
}

fn trial(step: u16, part: TrialPart) -> DeploymentStep {
    DeploymentStep::Trial { step, part }
}

fn paused() -> Event {
    Event::Paused { by: "ann".into() }
}

fn resumed() -> Event {
    Event::Resumed { by: "ann".into() }
}

fn asked(pod: &str, new: u32, old: u32) -> Event {
    Event::DeployerAsked { pod: pod.into(), asked: Asked::Scale { new, old: Some(old) }, replicas: 2 }
}

fn promoted() -> Event {
    Event::Promoted { by: "ann".into() }
}

fn told(run: &DeploymentRun, event: &Event) -> DeploymentRun {
    step(run, event, NOW).0
}

/// Every state in which a run can be, by name.
fn states() -> Vec<(String, DeploymentRun)> {
    use DeploymentStep as At;
    let name = |run: &DeploymentRun| run.hooks.last().map(|hook| hook.pod.as_str().to_owned()).unwrap_or_default();
    let between_tries = |run: DeploymentRun| told(&run, &pod_ended(&name(&run), failed()));
    let ending = |run: DeploymentRun| told(&run, &cancel());
    let mut states = Vec::new();
    let mut add = |what: &str, run: DeploymentRun| states.push((format!("{:?}{what}", run.step), run));
    add("", at(At::Prepare, "Rolling", "Abort"));
    for point in [At::Pre, At::Mid, At::Post] {
        for policy in ["Abort", "Retry", "Ignore"] {
            add(&format!(", {policy}"), at(point, "Rolling", policy));
        }
        add(", Retry, between two tries", between_tries(at(point, "Rolling", "Retry")));
        add(", its hook is being ended", ending(at(point, "Rolling", "Abort")));
    }
    let deployer = at(At::Deployer, "Custom", "Abort");
    let started = told(&deployer, &Event::PodStarted { pod: "web-2-deploy".into() });
    let asks = told(&started, &asked("web-2-deploy", 2, 0));
    add("", deployer);
    add(", its pod was started", started);
    add(", it has asked", asks.clone());
    add(", that is there", told(&asks, &served(asks.generation, 2, true)));
    add(", that makes no progress", told(&asks, &timer(Timer::Progress)));
    add(", paused", told(&asks, &paused()));
    add(", it is being ended", ending(asks.clone()));
    add(", Custom", told(&asks, &pod_ended("web-2-deploy", PodOutcome::Succeeded)));
    add("", at(At::ScaleDown, "Recreate", "Abort"));
    add("", at(At::FirstPod, "Rolling", "Abort"));
    add("", at(At::Rollout, "Rolling", "Abort"));
    add(", Recreate", at(At::Rollout, "Recreate", "Abort"));
    let rollout = at(At::Rollout, "Rolling", "Abort");
    add(", nobody reaches it", told(&rollout, &not_listening(rollout.generation, false)));
    let rollout = at(At::Rollout, "Recreate", "Abort");
    let not_reached = told(&rollout, &not_listening(rollout.generation, false));
    add(", nobody reached it", told(&not_reached, &timer(Timer::Progress)));
    add("", ending(at(At::Rollout, "Rolling", "Abort")));
    for (step, part) in [(1, TrialPart::Weight), (1, TrialPart::Pause), (1, TrialPart::Analysis), (2, TrialPart::Pause)]
    {
        add(", Canary", at(trial(step, part), "Canary", "Abort"));
    }
    let judged = |strategy, policy| at(trial(1, TrialPart::Analysis), strategy, policy);
    add(", Canary, Retry, between two tries", between_tries(judged("Canary", "Retry")));
    add(", Canary, its analysis is being ended", ending(judged("Canary", "Abort")));
    add(", BlueGreen", at(trial(1, TrialPart::Weight), "BlueGreen", "Abort"));
    add(", BlueGreen", judged("BlueGreen", "Abort"));
    add(", BlueGreen", at(At::Rollout, "BlueGreen", "Abort"));
    add(", AB", at(At::Rollout, "AB", "Abort"));
    for (step, strategy) in [(At::Prepare, "Rolling"), (At::Pre, "Rolling"), (At::Rollout, "Rolling")] {
        add(&format!(", {strategy}, paused"), told(&at(step, strategy, "Abort"), &paused()));
    }
    add(", Canary, paused", told(&at(trial(1, TrialPart::Pause), "Canary", "Abort"), &paused()));
    add(", leading", leading(at(At::Prepare, "Custom", "Abort")));
    add(", leading", leading(at(At::Deployer, "Custom", "Abort")));
    let leading_rollout =
        told(&leading(at(At::Deployer, "Custom", "Abort")), &pod_ended("web-2-deploy", PodOutcome::Succeeded));
    add(", leading", leading_rollout.clone());
    add(", leading", ending(leading_rollout));
    add(", led", led(&[]));
    add(", led", led(&[At::Deployer]));
    add(", led, asked", told(&led(&[At::Deployer]), &asked("web-2-deploy", 2, 0)));
    add(", led", led(&[At::Deployer, At::Rollout]));
    add(", led", led(&[At::Deployer, At::Restore]));
    add("", at(At::Done, "Rolling", "Abort"));
    add(", failed", ending(at(At::Prepare, "Rolling", "Abort")));
    states
}

fn events(run: &DeploymentRun) -> Vec<(Event, &'static str)> {
    let hook = run.hooks.last().map_or("none", |hook| hook.pod.as_str());
    let ended = |deployment: &str| Event::DeploymentEnded {
        deployment: deployment.into(),
        outcome: Outcome::PASS,
        message: String::new(),
        served_already: false,
    };
    let mut events = vec![
        (Event::Queued { cause: "push".into() }, ""),
        (Event::Admitted, ""),
        (Event::Waiting { reason: "held".into() }, ""),
        (cancel(), ""),
        (Event::DeploymentStarted { config: "web".into(), deployment: run.id.clone() }, ""),
        (ended(run.id.as_str()), ""),
        (Event::Prepared, ""),
        (Event::PrepareFailed { message: "no such image".into() }, ""),
        (Event::PodStarted { pod: hook.into() }, ""),
        (Event::Delayed { message: "no space".into() }, ""),
        (pod_ended(hook, PodOutcome::Succeeded), "well"),
        (pod_ended(hook, failed()), "badly"),
        (pod_ended(hook, PodOutcome::unknown("")), "unknown"),
        (pod_ended("web-1-hook-pre", PodOutcome::Succeeded), "another"),
        (served(run.generation, 1, false), "partly"),
        (served(run.generation, 2, true), "wholly"),
        (served(run.generation + 1, 2, true), "something else"),
        (not_listening(run.generation, false), "without service"),
        (not_listening(run.generation, true), "without its service"),
        (services_checked("port 80 is in use"), ""),
        (Event::Disowned { reason: "taken down".into() }, ""),
        (timer(Timer::Deadline), ""),
        (timer(Timer::Progress), ""),
        (timer(Timer::Retry), ""),
        (timer(Timer::Delay), ""),
        (timer(Timer::Start), ""),
        (timer(Timer::Finish), ""),
        (asked(hook, 1, 1), "for one"),
        (asked("web-1-deploy", 1, 1), "as another"),
        (executor_started(0, "one"), ""),
        (executor_reported(0, "one"), ""),
        (executor_finished(0, "one", Outcome::PASS), ""),
        (measured(0), ""),
        (not_measured(0), ""),
        (evaluated(0, Outcome::PASS), ""),
        (Event::Scaled { version: Some(1), from: 1, to: 2, by: "ann".into() }, ""),
        (paused(), ""),
        (resumed(), ""),
        (promoted(), ""),
        (not_told(), ""),
        (Event::Executed { pod: "web-2-0".into(), command: "env".into(), by: "ann".into() }, ""),
        (Event::NotApproved { commit: "c1".into(), reason: "it is not signed".into() }, ""),
        (Event::NotDelivered { by: "tag v1".into(), reason: "held".into() }, ""),
    ];
    events.extend(of_controllers(run.step));
    events.extend(of_rollbacks(0));
    events
}

/// One that brings a new version of a replication controller.
fn leading(run: DeploymentRun) -> DeploymentRun {
    let east = Controlled { name: "east".into(), version: 2, is_new: true, reached: None, has_left: false };
    DeploymentRun { controllers: Controllers { all: vec![east], ..Controllers::default() }, ..run }
}

/// The deployment of a replication controller where the one that leads it has got to.
fn led(steps: &[DeploymentStep]) -> DeploymentRun {
    let led_by = Some(Leader { run: "shop/dev/all-3".into(), timeout_seconds: 60, told: None });
    let (run, _) = begin(&DeploymentRun { led_by, ..deployment("Rolling", &json!({})) }, NOW);
    steps.iter().fold(run, |run, step| told(&run, &Event::Led { step: *step }))
}

fn outcome(before: &DeploymentRun, after: &DeploymentRun, decided: &Decided) -> String {
    if before == after {
        assert_eq!(decided, &Decided::default(), "asks for something although nothing changed");
        return "-".into();
    }
    let moved = if before.step == after.step { "stays".to_owned() } else { format!("{:?}", after.step) };
    let phase = if before.phase == after.phase { String::new() } else { format!(" {}", after.phase.as_str()) };
    let failing = if before.failure.is_none() && after.failure.is_some() { " failing" } else { "" };
    let words: Vec<String> = std::iter::once(format!("{moved}{phase}{failing}")).chain(decisions(decided)).collect();
    words.join("; ")
}

#[test]
fn every_state_meets_every_fact() {
    let walk = |(state, run): (String, DeploymentRun)| {
        let row = |(event, word): (Event, &'static str)| {
            let (after, decided) = step(&run, &event, NOW);
            let outcome = outcome(&run, &after, &decided);
            (event, word, outcome)
        };
        Block { state, rows: events(&run).into_iter().map(row).collect() }
    };
    let states = states();
    for wanted in [
        DeploymentStep::Prepare,
        DeploymentStep::Pre,
        DeploymentStep::Deployer,
        DeploymentStep::ScaleDown,
        DeploymentStep::FirstPod,
        trial(1, TrialPart::Weight),
        trial(1, TrialPart::Pause),
        trial(1, TrialPart::Analysis),
        DeploymentStep::Mid,
        DeploymentStep::Rollout,
        DeploymentStep::Post,
        DeploymentStep::Restore,
        DeploymentStep::Done,
    ] {
        assert!(states.iter().any(|(_, run)| run.step == wanted), "{wanted:?} is walked");
    }
    check("deployment.txt", &states.into_iter().map(walk).collect::<Vec<_>>());
}

/// A run with everything that it ever asked for.
struct Watched {
    run: DeploymentRun,
    pods: BTreeSet<String>,
    settled: usize,
}

impl Watched {
    fn tell(&mut self, event: &Event) -> Result<(), TestCaseError> {
        let (next, decided) = step(&self.run, event, NOW);
        if self.run.step == DeploymentStep::Done {
            prop_assert!(next == self.run && decided == Decided::default(), "an ended run changed");
        }
        prop_assert!(rank(next.phase) >= rank(self.run.phase), "{:?} after {:?}", next.phase, self.run.phase);
        for action in &decided.actions {
            if let Action::RunPod { pod } = action {
                prop_assert!(self.pods.insert(pod.id.name.to_string()), "{} is asked for twice", pod.id.name);
            }
        }
        self.settled +=
            decided.effects.iter().filter(|effect| matches!(effect, Effect::DeploymentEnded { .. })).count();
        self.run = next;
        Ok(())
    }
}

fn rank(phase: Phase) -> u8 {
    match phase {
        Phase::New => 0,
        Phase::Pending => 1,
        Phase::Running => 2,
        Phase::Complete | Phase::Failed => 3,
    }
}

fn policy() -> impl Strategy<Value = Option<&'static str>> {
    prop::option::of(prop::sample::select(vec!["Retry", "Abort", "Ignore"]))
}

proptest! {
    #[test]
    fn whatever_happens_it_ends_once_and_for_all(
        strategy in prop::sample::select(vec!["Rolling", "Recreate", "Custom", "Canary", "BlueGreen", "AB"]),
        pre in policy(), mid in policy(), post in policy(), first in any::<bool>(),
        facts in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..60),
    ) {
        let mut hooks = json!({});
        for (point, policy) in [("pre", pre), ("mid", mid), ("post", post)] {
            if let Some(policy) = policy {
                hooks[point] = hook(policy);
            }
        }
        let mut fresh = deployment(strategy, &hooks);
        fresh.previous = fresh.previous.filter(|_| !first);
        let (run, _) = begin(&fresh, NOW);
        let mut watched = Watched { run, pods: BTreeSet::new(), settled: 0 };
        for (any, good) in facts {
            let events = events(&watched.run);
            let event = if good { good_news(&watched.run) } else { any.get(&events).0.clone() };
            watched.tell(&event)?;
        }
        // Where it waits, time stands still.
        while watched.run.waits.since.is_some() {
            watched.tell(&resumed())?;
        }
        // From anywhere, the deadline and answers to what it waits for bring it to its end.
        watched.tell(&timer(Timer::Deadline))?;
        for _ in 0..3 {
            let event = good_news(&watched.run);
            watched.tell(&event)?;
        }
        prop_assert_eq!(watched.run.step, DeploymentStep::Done);
        prop_assert_eq!(watched.settled, 1);
        for event in events(&watched.run) {
            watched.tell(&event.0)?;
        }
    }
}

fn later(run: &DeploymentRun, event: &Event, minutes: i64) -> (DeploymentRun, Decided) {
    step(run, event, Timestamp(NOW.0 + minutes * 60_000))
}

#[test]
fn a_pause_counts_for_no_deadline() {
    let run = at(trial(2, TrialPart::Pause), "Canary", "Abort");
    assert!(run.waits_for_a_person() && run.problem.contains("step 2 of 2 with 50 %"), "{}", run.problem);
    assert!(run.problem.contains("launchway rollout resume dc/web -s dev"), "{}", run.problem);
    for fact in [timer(Timer::Deadline), timer(Timer::Progress), timer(Timer::Delay)] {
        assert_eq!(later(&run, &fact, 60 * 24).0, run, "it waits");
    }
    let (run, decided) = later(&run, &resumed(), 60 * 24);
    assert_eq!((run.step, run.waits.waited_ms), (DeploymentStep::Mid, 24 * 3_600_000));
    let due = decided.actions.iter().find_map(|action| match action {
        Action::SetTimer { timer: Timer::Deadline, due } => Some(due.0 - NOW.0),
        _ => None,
    });
    assert_eq!(due, Some((24 + 6) * 3_600_000), "six hours are left, as if it had not waited");
}

#[test]
fn a_pause_with_a_length_is_over_by_itself_or_by_a_person() {
    let run = at(trial(1, TrialPart::Pause), "Canary", "Abort");
    assert!(!run.waits_for_a_person() && run.problem.contains("step 1 of 2 with 10 % of the traffic until"));
    assert_eq!(later(&run, &timer(Timer::Delay), 4).0.step, run.step, "an earlier timer");
    for fact in [timer(Timer::Delay), resumed()] {
        assert_eq!(later(&run, &fact, 5).0.step, trial(1, TrialPart::Analysis));
    }
}

#[test]
fn what_is_told_to_stay_goes_on_where_it_was() {
    let during = told(&at(DeploymentStep::Pre, "Rolling", "Abort"), &paused());
    let hook = during.hooks[0].pod.as_str().to_owned();
    let ended = told(&during, &pod_ended(&hook, PodOutcome::Succeeded));
    assert_eq!((ended.step, ended.waits_for_a_person()), (DeploymentStep::Pre, true));
    assert_eq!(told(&ended, &resumed()).step, DeploymentStep::FirstPod, "the hook is not run again");
    let rollout = told(&at(DeploymentStep::Rollout, "Rolling", "Abort"), &paused());
    assert_eq!(told(&rollout, &served(rollout.generation, 2, true)).step, DeploymentStep::Rollout);
    let goes_on = told(&rollout, &resumed());
    assert_eq!(told(&goes_on, &served(goes_on.generation, 2, true)).step, DeploymentStep::Post);
    assert_eq!(told(&rollout, &cancel()).step, DeploymentStep::Restore, "it can be cancelled all the same");
}

#[test]
fn who_promotes_skips_what_is_left() {
    let at = |step, part| at(trial(step, part), "Canary", "Abort");
    assert_eq!(told(&at(1, TrialPart::Pause), &promoted()).step, DeploymentStep::Mid);
    let weighing = told(&at(1, TrialPart::Weight), &promoted());
    let there = told(&weighing, &served(weighing.generation, 1, true));
    assert_eq!((weighing.step, there.step), (trial(1, TrialPart::Weight), DeploymentStep::Mid));
    let judged = told(&at(1, TrialPart::Analysis), &promoted());
    let failed = told(&judged, &pod_ended(judged.hooks[1].pod.as_str(), failed()));
    assert_eq!(failed.step, DeploymentStep::Restore, "what is being judged may still fail");
}

#[test]
fn a_runtime_is_told_the_whole_template() {
    let mut run = deployment("Rolling", &json!({}));
    let mut object = (*run.object).clone();
    let mut content = object.content.value();
    content["spec"]["template"]["spec"]["containers"][0]["capabilities"] = json!({"drop": ["ALL"]});
    object.content = content.into();
    run.object = object.into();
    let set = launchway::engine::deployment::machine::replica_set(&run, 2);
    let template = set.whole_template().unwrap();
    assert_eq!(template["spec"]["containers"][0]["capabilities"], json!({"drop": ["ALL"]}));
    assert_eq!(template["spec"]["containers"][0]["name"], set.template.spec.containers[0].name);
}

#[test]
fn a_commit_tells_of_delays_and_of_what_pods_say() {
    let delayed = |message: &str| Event::Delayed { message: message.into() };
    let (told, _) = step(&at(DeploymentStep::Prepare, "Rolling", "Abort"), &delayed("no space"), NOW);
    assert!(told.is_delayed() && told.problem == "no space");
    assert!(!step(&told, &delayed(""), NOW).0.is_delayed(), "it is over");
    assert!(!step(&told, &Event::Prepared, NOW).0.is_delayed(), "it went well");
    let run = at(DeploymentStep::Rollout, "Rolling", "Abort");
    let served = |problem: &str| {
        let (generation, progress) = (run.generation, run.progress);
        let (problem, not_listening) = (problem.into(), String::new());
        Event::Served { generation, progress, converged: false, problem, not_listening, brought: false }
    };
    let (told, _) = step(&run, &served("readiness: status 500"), NOW);
    assert!(told.is_delayed() && told.problem.contains("status 500"));
    let (told, _) = step(&told, &served("ConfigMap `colors` is missing"), NOW);
    assert!(told.is_delayed() && told.problem.contains("colors"), "no pod is started");
    assert!(!step(&told, &served(""), NOW).0.is_delayed(), "it is there now");
}

#[test]
fn a_rollout_is_complete_once_its_services_listen() {
    let run = at(DeploymentStep::Rollout, "Rolling", "Abort");
    let (waits, _) = step(&run, &not_listening(run.generation, true), NOW);
    assert_eq!((waits.step, waits.problem.as_str()), (run.step, "service `web`: port 80 is in use"));
    let (goes_on, _) = step(&waits, &served(run.generation, 2, true), NOW);
    assert_eq!((goes_on.step, goes_on.problem.as_str()), (DeploymentStep::Post, ""));
    let (fails, _) = step(&waits, &timer(Timer::Progress), NOW);
    let told = fails.failure.as_ref().map(|failure| failure.message.as_str());
    assert_eq!(
        told,
        Some("no progress for 10m00s: 2 of 2 new pods available, 0 old ones left: service `web`: port 80 is in use")
    );
    let (ended, _) = step(&fails, &not_listening(fails.generation, true), NOW);
    assert_eq!(ended.step, DeploymentStep::Done, "going back waits for nothing");
}

#[test]
fn what_going_back_does_not_help_is_not_undone() {
    for late in [Timer::Progress, Timer::Deadline] {
        let run = at(DeploymentStep::Rollout, "Rolling", "Ignore");
        let waits = told(&run, &not_listening(run.generation, false));
        assert_eq!((waits.step, waits.problem.as_str()), (run.step, "service `web`: port 80 is in use"));
        let stays = told(&waits, &timer(late));
        assert_eq!(stays.step, DeploymentStep::Post, "its hook runs");
        let (complete, decided) = step(&stays, &good_news(&stays), NOW);
        assert_eq!((complete.step, complete.phase), (DeploymentStep::Done, Phase::Complete));
        assert_eq!(complete.message, "version 2 serves after 0ms and is not reached: service `web`: port 80 is in use");
        let settled = |effect: &Effect| match effect {
            Effect::DeploymentEnded { outcome, .. } => Some(("serves", *outcome)),
            Effect::Tell { event: Event::DeploymentEnded { outcome, .. }, .. } => Some(("is told", *outcome)),
            _ => None,
        };
        let settled: Vec<_> = decided.effects.iter().filter_map(settled).collect();
        assert_eq!(settled, [("serves", Outcome::PASS), ("is told", Outcome::FAIL)]);

        let listens = told(&waits, &served(waits.generation, 2, true));
        assert_eq!((listens.step, listens.not_listening.as_str()), (DeploymentStep::Post, ""));
        let dead = told(&waits, &served(waits.generation, 1, false));
        let back = told(&dead, &timer(late));
        assert_eq!(back.step, DeploymentStep::Restore, "pods are missing again");
    }
}
