//! Whether a sequence goes on that asks for it, and which one is meant.

use super::*;
use crate::model::run::ExecutorRecord;

fn asking(id: &str, commit: &str) -> SequenceRun {
    let run = first(APPROVAL_TASK, delivery(id, "b"));
    SequenceRun { commit: commit.into(), ..run }
}

#[test]
fn the_one_that_is_meant_is_decided_about() {
    let (one, two) = (asking("s1", "c1c1c1c1c1"), asking("s2", "c2c2c2c2c2"));
    let none = Meant::default();
    let run = |run| Meant { run: Some(run), ..none };
    let revision = |revision| Meant { revision: Some(revision), ..none };
    let asked = |asked| Meant { asked: Some(asked), ..none };
    let place = service("dev");
    let choices = "2 sequences of shop/dev/web wait for approval";
    for (waiting, meant, expected) in [
        (&[&one][..], none, Ok("s1")),
        (&[&one], run("s1"), Ok("s1")),
        (&[&one], revision("c1c1"), Ok("s1")),
        (&[&one, &two], run("s2"), Ok("s2")),
        (&[&one, &two], revision("c2c2"), Ok("s2")),
        (&[&one, &two], Meant { revision: Some("c2c2"), ..run("s2") }, Ok("s2")),
        (&[&one, &two], asked("s2.0.0"), Ok("s2")),
        (&[&one], Meant { run: Some("s1"), ..asked("s1.0.0") }, Ok("s1")),
        (
            &[&one],
            Meant { run: Some("s1"), ..asked("s1.1.0") },
            Err("something else of shop/dev/web waits for approval, and not what was asked"),
        ),
        (&[], none, Err("nothing of shop/dev/web waits for approval")),
        (&[], run("s1"), Err("nothing of shop/dev/web waits for approval")),
        (&[&one], run("s2"), Err("s1 of shop/dev/web waits for approval, and not s2")),
        (
            &[&one],
            Meant { run: Some("s1"), ..revision("c2c2") },
            Err("c1c1c1c of shop/dev/web waits for approval, and not c2c2"),
        ),
        (&[&one], revision("c2c2"), Err("c1c1c1c of shop/dev/web waits for approval, and not c2c2")),
        (&[&one, &two], none, Err(choices)),
        (&[&one, &two], revision("c"), Err(choices)),
    ] {
        let found = meant.of(&place, waiting).map(|run| run.id.as_str());
        assert_eq!(found.map_err(|failure| failure.to_string()), expected.map_err(str::to_owned), "{meant:?}");
    }
    let unclear = none.of(&place, &[&one, &two]).expect_err("it is not clear");
    assert_eq!(unclear.hint_text(), Some("choose one: `--run s1` (c1c1c1c), `--run s2` (c2c2c2c)"));
    assert_eq!(unclear.fault(), Some(crate::error::Fault::Malformed));
}

#[test]
fn what_a_person_says_ends_the_task_that_asks() {
    let (one, two) = (asking("s1", "c1"), asking("s2", "c2"));
    let slot = SlotState { yielded: vec![one.id.clone(), two.id.clone()], ..slot(None, &[]) };
    let memory = serves().with(sequence(&one)).with(sequence(&two)).with(slot);
    for (approve, outcome, message) in
        [(true, Outcome::PASS, "approved by ann: seen by all"), (false, Outcome::FAIL, "rejected by ann: seen by all")]
    {
        let meant = Meant { run: Some("s2"), ..Meant::default() };
        let verdict = Verdict { approve, reason: "seen\nby all ", meant, by: "ann" };
        let made = memory.decide(|transition| decide(transition, &service("dev"), verdict)).expect("it waits");
        let is_decided = |event: &&Event| matches!(event, Event::ExecutorFinished { .. });
        assert!(!made.told(&one.id).into_iter().any(|event| is_decided(&event)), "that one is not meant");
        let decided = made.told(&two.id).into_iter().find(is_decided);
        let Some(Event::ExecutorFinished { task: 0, outcome: told, message: said, .. }) = decided else {
            unreachable!("{made:#?}")
        };
        assert_eq!((*told, said.as_str()), (outcome, message));
    }
}

#[test]
fn who_has_decided_is_not_asked_again() {
    let mut asks = asking("s1", "c1");
    asks.tasks[0].executors = vec![ExecutorRecord { finished_at: Some(NOW), ..ExecutorRecord::of("ann") }];
    asks.tasks[0].message = "waits for approval: waits for bob to start it".into();
    let slot = SlotState { yielded: vec![asks.id.clone()], ..slot(None, &[]) };
    let memory = serves().with(sequence(&asks)).with(slot);
    let said = |by| {
        let verdict = Verdict { approve: true, reason: "", meant: Meant::default(), by };
        memory.decide(|transition| decide(transition, &service("dev"), verdict)).map(drop)
    };
    let again = said("ann").expect_err("ann has decided").to_string();
    assert_eq!(again, "ann has decided already: it waits for approval: waits for bob to start it");
    said("bob").expect("bob has not");
}
