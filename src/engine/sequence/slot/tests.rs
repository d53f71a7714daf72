use proptest::prelude::*;

use super::*;
use crate::engine::fixtures::{change, delivery, deploying, ended, holds, object, slot};
use crate::model::hold::HoldKind;
use crate::model::ids::ServiceKey;
use crate::model::plan::Decision;
use crate::model::project::Procedure;
use crate::model::run::TaskRecord;
use crate::model::shipyard::{Sequence, Task};
use crate::model::slot::Refused;

/// A run whose deployment serves, and whose test is under way.
fn testing(run: SequenceRun) -> SequenceRun {
    let mut run = deploying(run, 1);
    run.tasks.push(TaskRecord { name: "test".into(), step: "test".into(), ..run.tasks[0].clone() });
    SequenceRun { state: SequenceState::Running { task: 1 }, ..run }
}

fn ending(run: SequenceRun) -> SequenceRun {
    SequenceRun { state: SequenceState::Ending { task: 0, outcome: Outcome::ABORTED }, ..run }
}

/// What a person asks for: `web` alone, whatever its revision declares.
fn by_hand(id: &str, image: &str) -> SequenceRun {
    SequenceRun { plan: None, by: Some("ann".into()), cause: "rollout latest by ann".into(), ..delivery(id, image) }
}

fn rollback(id: &str) -> SequenceRun {
    SequenceRun { is_rollback: true, cause: "rollout undo by ann".into(), ..by_hand(id, "a") }
}

/// Goes back as the shipyard says, and brings nothing of its own.
fn goes_back(id: &str) -> SequenceRun {
    let sequence = Sequence { name: "rollback".into(), tasks: vec![Task::named(ROLLBACK_TASK)], ..Sequence::default() };
    let procedure = crate::manifest::digest::stored(Procedure { sequence, ..Procedure::default() });
    SequenceRun { delivery: None, procedure, ..delivery(id, "a") }
}

/// The same as it tests in another way.
fn otherwise(run: SequenceRun) -> SequenceRun {
    let mut procedure = (*run.procedure.value).clone();
    procedure.sequence.name = "thorough".into();
    SequenceRun { procedure: crate::manifest::digest::stored(procedure), ..run }
}

/// The same revision, planned anew once a person has lifted a pause: another content, and nothing that is not under way.
fn let_go(run: SequenceRun) -> SequenceRun {
    let mut run = run;
    run.delivery.iter_mut().for_each(|delivery| {
        delivery.content = "sha256:let-go".into();
        delivery.changes.iter_mut().for_each(|change| change.decision = Decision::None);
    });
    run
}

/// Waits for a person, after its deployment.
fn asking(run: SequenceRun) -> SequenceRun {
    let mut procedure = (*run.procedure.value).clone();
    procedure.sequence.tasks.push(Task::named("approval"));
    let mut run = deploying(run, 1);
    run.tasks.push(TaskRecord { started_at: Some(Timestamp(0)), ..TaskRecord::new("approval", "approval") });
    run.procedure = crate::manifest::digest::stored(procedure);
    SequenceRun { state: SequenceState::Running { task: 1 }, ..run }
}

/// Was answered, and goes on after that.
fn returning(run: SequenceRun) -> SequenceRun {
    SequenceRun { state: SequenceState::Returning { task: 1 }, ..asking(run) }
}

/// The same, of a sequence that says which of its runs have their turn.
fn of_queue(policy: QueuePolicy, run: SequenceRun) -> SequenceRun {
    let mut procedure = (*run.procedure.value).clone();
    procedure.sequence.queue = Some(policy);
    SequenceRun { procedure: crate::manifest::digest::stored(procedure), ..run }
}

/// What executors do for a service.
fn by_executors(id: &str, sequence: &str) -> SequenceRun {
    let sequence = Sequence { name: sequence.into(), tasks: vec![Task::named("build")], ..Sequence::default() };
    let procedure = crate::manifest::digest::stored(Procedure { sequence, ..Procedure::default() });
    SequenceRun { delivery: None, plan: None, procedure, ..delivery(id, "a") }
}

/// What is told to whom, in one word.
fn told(runs: &[SequenceRun], holds: &[Hold]) -> Vec<String> {
    let runs: Vec<&SequenceRun> = runs.iter().collect();
    let word = |event: Event| match event {
        Event::Admitted => "admitted".to_owned(),
        Event::Waiting { reason } | Event::Cancel { reason, .. } => reason,
        other => unreachable!("{other:?}"),
    };
    decide(&runs, holds).into_iter().map(|(id, event)| format!("{id} {}", word(event))).collect()
}

#[test]
fn a_slot_is_given_to_one_run_and_each_of_the_others_knows_why_it_waits() {
    let (one, two) = (|| delivery("r1", "a"), || delivery("r2", "b"));
    for (case, runs, expected) in [
        ("the first", vec![one()], vec!["r1 admitted"]),
        ("a newer revision replaces it", vec![one(), two()], vec!["r1 superseded by bbbbbbb", "r2 admitted"]),
        (
            "what is being deployed gives way",
            vec![deploying(one(), 1), two()],
            vec!["r1 superseded by bbbbbbb", "r2 waits for delivery of aaaaaaa to end"],
        ),
        ("what is tested does not", vec![testing(one()), two()], vec!["r2 waits for delivery of aaaaaaa to end"]),
        (
            "unless the same is tested in another way",
            vec![testing(one()), otherwise(delivery("r2", "a"))],
            vec!["r1 superseded by aaaaaaa", "r2 waits for delivery of aaaaaaa to end"],
        ),
        (
            "nor for the same revision, of which it deploys already what was let go on",
            vec![deploying(one(), 1), let_go(delivery("r2", "a"))],
            vec!["r2 waits for delivery of aaaaaaa to end"],
        ),
        (
            "but for one that brings something else",
            vec![deploying(one(), 1), let_go(SequenceRun { commit: one().commit, ..two() })],
            vec!["r1 superseded by aaaaaaa", "r2 waits for delivery of aaaaaaa to end"],
        ),
        ("what ends was told", vec![ending(one()), two()], vec!["r2 waits for delivery of aaaaaaa to end"]),
        (
            "one config of several replaces no delivery",
            vec![one(), by_hand("r2", "b")],
            vec!["r2 waits for delivery of aaaaaaa", "r1 admitted"],
        ),
        (
            "what waits for a person keeps nobody from the slot",
            vec![asking(one()), by_hand("r2", "b")],
            vec!["r2 admitted"],
        ),
        (
            "but would bring back what a newer revision replaces",
            vec![asking(one()), two()],
            vec!["r1 superseded by bbbbbbb", "r2 admitted"],
        ),
        (
            "it takes its slot again once it is free",
            vec![returning(one()), testing(by_hand("r2", "b"))],
            vec!["r1 waits for delivery of bbbbbbb to end"],
        ),
        (
            "unless a newer revision has come meanwhile, and whoever is named first",
            vec![testing(by_hand("r3", "c")), two(), returning(one())],
            vec!["r1 superseded by bbbbbbb", "r2 waits for delivery of ccccccc to end"],
        ),
        (
            "before what came later",
            vec![returning(one()), by_hand("r2", "b")],
            vec!["r2 waits for delivery of aaaaaaa", "r1 admitted"],
        ),
        (
            "a rollback comes first",
            vec![one(), rollback("r2")],
            vec!["r1 waits for the rollout undo by ann", "r2 admitted"],
        ),
        (
            "and waits for no test",
            vec![testing(one()), rollback("r2")],
            vec!["r1 superseded by rollout undo by ann", "r2 waits for delivery of aaaaaaa to end"],
        ),
        (
            "so does what goes back as the shipyard says, and no newer delivery takes its place",
            vec![by_hand("r1", "b"), goes_back("r2"), delivery("r3", "c")],
            vec!["r1 superseded by ccccccc", "r3 waits for rollback of aaaaaaa", "r2 admitted"],
        ),
        (
            "but what runs goes on",
            vec![deploying(one(), 1), goes_back("r2")],
            vec!["r2 waits for delivery of aaaaaaa to end"],
        ),
        (
            "and a person's rollback comes before it",
            vec![goes_back("r1"), rollback("r2")],
            vec!["r1 waits for the rollout undo by ann", "r2 admitted"],
        ),
    ] {
        assert_eq!(told(&runs, &[]), expected, "{case}");
    }
}

#[test]
fn which_of_those_that_wait_have_their_turn_is_for_their_sequence_to_say() {
    let all = |run| of_queue(QueuePolicy::All, run);
    let newest = |id, sequence| of_queue(QueuePolicy::Newest, by_executors(id, sequence));
    let (one, two) = (|| delivery("r1", "a"), || delivery("r2", "b"));
    for (case, runs, expected) in [
        ("each delivery", vec![all(one()), all(two())], vec!["r2 waits for delivery of aaaaaaa", "r1 admitted"]),
        (
            "and goes to its end",
            vec![all(deploying(one(), 1)), all(two())],
            vec!["r2 waits for delivery of aaaaaaa to end"],
        ),
        (
            "but for a rollback",
            vec![all(deploying(one(), 1)), rollback("r2")],
            vec!["r1 superseded by rollout undo by ann", "r2 waits for delivery of aaaaaaa to end"],
        ),
        (
            "what was to be approved is not brought over what is newer",
            vec![all(asking(one())), all(two())],
            vec!["r1 superseded by bbbbbbb", "r2 admitted"],
        ),
        (
            "each of executors'",
            vec![by_executors("r1", "build"), by_executors("r2", "build")],
            vec!["r2 waits for build of aaaaaaa", "r1 admitted"],
        ),
        (
            "or the newest",
            vec![newest("r1", "build"), newest("r2", "build"), newest("r3", "check")],
            vec!["r1 superseded by a newer build", "r3 waits for build of aaaaaaa", "r2 admitted"],
        ),
    ] {
        assert_eq!(told(&runs, &[]), expected, "{case}");
    }
}

#[test]
fn a_hold_keeps_everything_but_a_rollback() {
    let holds = holds(HoldKind::Person).holds;
    for (run, expected) in [
        (delivery("r1", "a"), "r1 held by bob: sale"),
        (by_hand("r1", "a"), "r1 held by bob: sale"),
        (rollback("r1"), "r1 admitted"),
    ] {
        assert_eq!(told(&[run], &holds), [expected]);
    }
    let of_web = |mut hold: Hold| {
        hold.scope.service = Some("web".into());
        [hold]
    };
    let moves = |takes_from: &[&str]| {
        let front = ServiceKey { service: "front".into(), ..delivery("r1", "a").service };
        let takes_from = takes_from.iter().map(|of| (*of).into()).collect();
        SequenceRun { service: front, takes_from, ..delivery("r1", "a") }
    };
    let web = of_web(holds[0].clone());
    assert_eq!(told(&[moves(&["web"])], &web), ["r1 held by bob: sale"], "what it takes is held where it is");
    assert_eq!(told(&[moves(&["other"])], &web), ["r1 admitted"]);
    let active = deploying(delivery("r1", "a"), 1);
    assert_eq!(told(&[active, delivery("r2", "b")], &holds), ["r2 held by bob: sale"], "what is under way goes on");
}

#[test]
fn what_was_delivered_last_is_what_ended_last_of_what_revisions_declare() {
    let at = |run: SequenceRun, at| SequenceRun { ended_at: Some(Timestamp(at)), ..run };
    let passed = |id: &str, time| at(ended(deploying(delivery(id, "a"), 1), Outcome::PASS), time);
    let superseded = at(ended(delivery("r9", "b"), Outcome::SUPERSEDED), 9);
    let asked_for = SequenceRun { plan: None, ..passed("r8", 8) };
    let stopped = |id: &str, time| at(ended(delivery(id, "b"), Outcome::ABORTED), time);
    for (case, runs, expected) in [
        ("nothing has ended", vec![delivery("r1", "a")], None),
        ("the later end", vec![passed("r2", 1), passed("r1", 2)], Some("r1")),
        ("a newer one that a person stopped while it waited", vec![stopped("r2", 1), passed("r1", 2)], Some("r2")),
        ("an older one that was stopped", vec![stopped("r1", 1), passed("r2", 2)], Some("r2")),
        ("what gave way brought nothing", vec![passed("r1", 1), superseded], Some("r1")),
        ("what a person wants is not what is declared", vec![passed("r1", 1), asked_for], Some("r1")),
    ] {
        let last = seated(&slot(None, &[]), &runs).last_delivery;
        assert_eq!(last.map(|last| last.run), expected.map(RunId::new), "{case}");
    }
    let known = seated(&slot(None, &[]), &[passed("r1", 1)]);
    assert_eq!(seated(&known, &[delivery("r2", "b")]).last_delivery, known.last_delivery, "it is remembered");
    let refused = Some(Refused { by: "tag v1".into(), reason: "it is held".into(), at: Timestamp(0) });
    let known = SlotState { refused, ..known };
    assert_eq!(seated(&known, &[delivery("r2", "b")]).refused, known.refused, "nothing has ended since");
    assert_eq!(seated(&known, &[passed("r2", 2)]).refused, None);
    let known = seated(&slot(None, &[]), &[stopped("r2", 1)]);
    assert_eq!(seated(&known, &[passed("r1", 2)]).last_delivery, known.last_delivery, "and stays stopped");
    let stopped = seated(&slot(None, &[]), &[ended(delivery("r1", "a"), Outcome::FAIL)]).last_delivery;
    assert!(!stopped.expect("it has ended").deployed);
}

#[test]
fn what_does_not_end_already_is_told_that_its_repository_is_down() {
    let (queued, active) = (delivery("r1", "a"), deploying(delivery("r2", "a"), 1));
    let runs = [queued, active, ending(delivery("r3", "a")), ended(delivery("r4", "a"), Outcome::PASS)];
    let runs: Vec<&SequenceRun> = runs.iter().collect();
    let told: Vec<RunId> = clear(&runs, "ann").into_iter().map(|(id, _)| id).collect();
    assert_eq!(told, ["r1", "r2"].map(RunId::new));
}

/// What becomes of runs that hear what they are told.
fn heard(runs: Vec<SequenceRun>, told: &[(RunId, Event)]) -> Vec<SequenceRun> {
    let mut runs = runs;
    for (id, event) in told {
        let run = runs.iter_mut().find(|run| &run.id == id).expect("it is one of them");
        *run = crate::engine::sequence::machine::step(run, event, Timestamp(9)).0;
    }
    runs.retain(|run| run.ended_at.is_none());
    runs
}

/// Up to one run that is under way, and some that wait, oldest first.
fn some_runs() -> impl Strategy<Value = Vec<SequenceRun>> {
    let waiting = proptest::collection::vec((0..4usize, 0..3usize), 0..6);
    (0..4usize, waiting).prop_map(|(active, waiting)| {
        let image = |number: usize| ["a", "b", "c"][number];
        let first = || delivery("r0", "a");
        let active = [None, Some(deploying(first(), 1)), Some(testing(first())), Some(ending(first()))][active].clone();
        let waiting = waiting.into_iter().enumerate().map(|(place, (kind, number))| {
            let id = format!("r{}", place + 1);
            match kind {
                0 => delivery(&id, image(number)),
                1 => by_hand(&id, image(number)),
                2 => rollback(&id),
                _ => {
                    let map = change(Decision::Update, &object(image(number)));
                    let mut run = delivery(&id, image(number));
                    run.delivery.iter_mut().for_each(|delivery| delivery.changes = vec![map.clone()]);
                    otherwise(run)
                }
            }
        });
        active.into_iter().chain(waiting).collect()
    })
}

proptest! {
    #[test]
    fn nobody_is_told_twice_and_never_two_have_the_slot(runs in some_runs(), held in any::<bool>()) {
        let holds = if held { holds(HoldKind::Person).holds } else { Vec::new() };
        let mut runs = runs;
        // Everybody who waits may be the next, once for each.
        for _ in 0..=runs.len() {
            let told = decide(&runs.iter().collect::<Vec<_>>(), &holds);
            runs = heard(runs, &told);
            prop_assert!(runs.iter().filter(|run| run.state != SequenceState::Queued).count() <= 1, "{:?}", runs);
            if told.is_empty() {
                break;
            }
        }
        prop_assert_eq!(decide(&runs.iter().collect::<Vec<_>>(), &holds), Vec::new());
        let moves = runs.iter().any(|run| run.state != SequenceState::Queued);
        prop_assert!(runs.is_empty() || moves || held, "something has its turn: {:?}", runs);
        prop_assert!(runs.iter().all(|run| run.state != SequenceState::Queued || !run.message.is_empty()));
    }
}

#[test]
fn what_is_paused_waits_and_keeps_nobody_else_from_the_slot() {
    let mut holds = holds(HoldKind::Pause).holds;
    holds[0].scope.context = Some("c1".into());
    holds[0].reason = "paused by bob".into();
    let of = |context: &str, run: SequenceRun| SequenceRun { context: Some(context.into()), ..run };
    let all = |run| of_queue(QueuePolicy::All, run);
    let only_tests = |id: &str| SequenceRun { delivery: None, ..delivery(id, "a") };
    for (case, runs, expected) in [
        ("alone", vec![of("c1", delivery("r1", "a"))], vec!["r1 paused by bob"]),
        (
            "another has its turn",
            vec![of("c1", only_tests("r1")), of("c2", only_tests("r2"))],
            vec!["r1 paused by bob", "r2 admitted"],
        ),
        (
            "a newer revision takes its place",
            vec![of("c1", delivery("r1", "a")), of("c2", delivery("r2", "b"))],
            vec!["r1 superseded by bbbbbbb", "r2 admitted"],
        ),
        (
            "and is not brought over it, where each goes to its end",
            vec![all(of("c1", delivery("r1", "a"))), all(of("c2", delivery("r2", "b")))],
            vec!["r1 paused by bob", "r1 superseded by bbbbbbb", "r2 admitted"],
        ),
        (
            "nor comes back to it",
            vec![all(of("c1", returning(delivery("r1", "a")))), all(of("c2", delivery("r2", "b")))],
            vec!["r1 paused by bob", "r1 superseded by bbbbbbb", "r2 admitted"],
        ),
        (
            "but what came later goes on later",
            vec![all(of("c2", delivery("r1", "b"))), all(of("c1", returning(delivery("r2", "a"))))],
            vec!["r2 paused by bob", "r1 admitted"],
        ),
        ("a rollback is not", vec![of("c1", rollback("r1"))], vec!["r1 admitted"]),
    ] {
        assert_eq!(told(&runs, &holds), expected, "{case}");
    }
}
