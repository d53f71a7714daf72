//! Actions that wait.

use std::time::Duration;

use launchway::model::action::{Action, Lane};
use launchway::model::event::Timer;
use launchway::model::pod::PodId;
use launchway::store::{Backlog, CommitError, OutboxId, OutboxRow, Retention, Store, Write};

use crate::Backend;
use crate::samples::{ask, at, commit, commit_id, run_id, timer};

async fn rows(store: &dyn Store) -> Vec<OutboxRow> {
    store.outbox(None).await.unwrap()
}

async fn row_ids(store: &dyn Store) -> Vec<OutboxId> {
    rows(store).await.iter().map(|row| row.id).collect()
}

async fn claimed(store: &dyn Store, lane: &Lane, now: i64, limit: u32) -> Vec<OutboxId> {
    store.claim(lane, at(now), limit).await.unwrap().iter().map(|row| row.id).collect()
}

fn report(repository: &str, digit: char, writer: &str) -> Action {
    Action::Report { repository: repository.into(), commit: commit_id(digit), writer: writer.into() }
}

fn statuses(repository: &str, writer: &str) -> Lane {
    Lane::Statuses { repository: repository.into(), writer: writer.into() }
}

pub(crate) async fn asking_again_replaces_the_row_under_a_new_id(backend: &dyn Backend) {
    let store = backend.open().await;
    let retry = |due| ask("s1", timer(Timer::Retry, at(due)), at(due));
    commit(&*store, [retry(1), ask("s2", timer(Timer::Retry, at(1)), at(1))]).await;
    let before = rows(&*store).await;
    let postponed = Write::Postpone { id: before[0].id, due: at(3), problem: "no".into() };
    commit(&*store, [postponed]).await;
    commit(&*store, [retry(5)]).await;
    let after = rows(&*store).await;
    assert_eq!(after.len(), 2);
    assert_eq!(after[0], before[1], "another run's row with the same key stays");
    assert!(after[1].id > before[1].id);
    assert_eq!((after[1].due, after[1].attempts, after[1].problem.as_str()), (Some(at(5)), 0, ""));
    assert_eq!(after[1].action, Ok(timer(Timer::Retry, at(5))));
    commit(&*store, [Write::Done(after[1].id), retry(6)]).await;
    assert!(rows(&*store).await[1].id > after[1].id, "ids are never used twice");
}

pub(crate) async fn done_and_postpone_touch_only_their_own_row(backend: &dyn Backend) {
    let store = backend.open().await;
    let retry = ask("s1", timer(Timer::Retry, at(1)), at(1));
    commit(&*store, [retry.clone()]).await;
    let old = rows(&*store).await[0].id;
    commit(&*store, [retry]).await;
    let replaced = rows(&*store).await;
    let late = [Write::Done(old), Write::Postpone { id: old, due: at(9), problem: "late".into() }];
    commit(&*store, late).await;
    assert_eq!(rows(&*store).await, replaced, "whoever performed the old row does not touch the new one");
    for attempt in 1..3 {
        let postpone = Write::Postpone { id: replaced[0].id, due: at(attempt), problem: format!("no {attempt}") };
        commit(&*store, [postpone]).await;
        let row = &rows(&*store).await[0];
        assert_eq!((i64::from(row.attempts), row.due), (attempt, Some(at(attempt))));
        assert_eq!(row.problem, format!("no {attempt}"));
    }
    commit(&*store, [Write::Done(replaced[0].id)]).await;
    assert_eq!(rows(&*store).await, []);
}

pub(crate) async fn what_is_longest_due_is_claimed_first(backend: &dyn Backend) {
    let store = backend.open().await;
    let asks = [("s1", 5), ("s2", -5), ("s3", 0), ("s4", 7)].map(|(run, due)| {
        let due = at(due);
        ask(run, timer(Timer::Retry, due), due)
    });
    commit(&*store, asks).await;
    let all = row_ids(&*store).await;
    assert_eq!(store.next_due(&Lane::Runs, at(0)).await.unwrap(), Some(at(5)));
    assert_eq!(store.next_due(&Lane::Runs, at(5)).await.unwrap(), Some(at(5) + Duration::from_secs(2)));
    assert_eq!(store.next_due(&Lane::Runs, at(7)).await.unwrap(), None);
    assert_eq!(store.next_due(&Lane::Images, at(0)).await.unwrap(), None);
    let backlog = |count, oldest: Option<i64>| Backlog { count, oldest: oldest.map(at) };
    assert_eq!(store.backlog(&Lane::Runs).await.unwrap(), backlog(4, Some(0)));
    assert_eq!(store.backlog(&Lane::Images).await.unwrap(), backlog(0, None));
    assert_eq!(claimed(&*store, &Lane::Runs, 0, 1).await, [all[1]]);
    assert_eq!(claimed(&*store, &Lane::Runs, 0, 10).await, [all[2]]);
    assert_eq!(claimed(&*store, &Lane::Images, 9, 10).await, []);
    assert_eq!(claimed(&*store, &Lane::Runs, 9, 10).await, [all[0], all[3]]);
}

pub(crate) async fn what_ends_goes_before_what_begins_unless_that_has_waited_for_long(backend: &dyn Backend) {
    let store = backend.open().await;
    let stop = |name: &str| Action::StopPod { pod: PodId { namespace: "shop-dev".into(), name: name.into() } };
    let asks = [
        ask("s1", timer(Timer::Retry, at(-61)), at(-61)),
        ask("s2", timer(Timer::Retry, at(-59)), at(-59)),
        ask("s3", timer(Timer::Deadline, at(0)), at(0)),
        ask("s4", stop("web-1-pre"), at(-1)),
        // What a run asks for is in this order too: what it wants ended is not begun before.
        ask("s4", timer(Timer::Retry, at(-2)), at(-2)),
        ask("s5", stop("api-1-pre"), at(1)),
    ];
    commit(&*store, asks).await;
    let all = row_ids(&*store).await;
    assert_eq!(store.next_due(&Lane::Runs, at(-60)).await.unwrap(), Some(at(-59)));
    assert_eq!(store.next_due(&Lane::Runs, at(0)).await.unwrap(), Some(at(1)));
    assert_eq!(claimed(&*store, &Lane::Runs, 0, 2).await, [all[0], all[3]]);
    assert_eq!(claimed(&*store, &Lane::Runs, 0, 10).await, [all[2], all[1]]);
    commit(&*store, [Write::Done(all[3])]).await;
    assert_eq!(claimed(&*store, &Lane::Runs, 0, 10).await, [all[4]]);
}

pub(crate) async fn a_claimed_row_is_nobody_elses_until_it_is_put_off_or_given_back(backend: &dyn Backend) {
    let store = backend.open().await;
    commit(&*store, [ask("s1", timer(Timer::Retry, at(0)), at(0))]).await;
    let id = row_ids(&*store).await[0];
    let ends: [Option<Write>; 3] = [
        Some(Write::Postpone { id, due: at(1), problem: "no".into() }),
        Some(Write::Await { id, due: Some(at(1)), reason: "an image".into() }),
        None,
    ];
    for end in ends {
        assert_eq!(claimed(&*store, &Lane::Runs, 1, 10).await, [id]);
        assert_eq!(claimed(&*store, &Lane::Runs, 1, 10).await, []);
        match end {
            Some(write) => commit(&*store, [write]).await,
            None => store.give_back(id).await.unwrap(),
        }
    }
    assert_eq!(claimed(&*store, &Lane::Runs, 1, 10).await, [id]);
    commit(&*store, [Write::Done(id)]).await;
    assert_eq!(claimed(&*store, &Lane::Runs, 9, 10).await, []);
    // Another process takes everything up again, and the one that lost the store gets nothing more.
    commit(&*store, [ask("s1", timer(Timer::Retry, at(0)), at(0))]).await;
    let first = claimed(&*store, &Lane::Runs, 1, 10).await;
    let next = backend.open().await;
    assert_eq!(claimed(&*next, &Lane::Runs, 1, 10).await, first);
    assert!(matches!(store.claim(&Lane::Runs, at(1), 10).await, Err(CommitError::Fenced)));
    assert!(matches!(store.give_back(first[0]).await, Err(CommitError::Fenced)));
}

pub(crate) async fn the_rows_of_a_run_are_claimed_one_after_the_other_in_each_lane(backend: &dyn Backend) {
    let store = backend.open().await;
    let asks = [
        ask("s1", timer(Timer::Delay, at(0)), at(0)),
        ask("s1", timer(Timer::Retry, at(0)), at(0)),
        ask("s2", timer(Timer::Retry, at(1)), at(1)),
        ask("report", report("shop", '1', "notes"), at(0)),
        ask("report", report("shop", '2', "notes"), at(0)),
        ask("report", report("shop", '1', "gitea"), at(0)),
        ask("report", report("other", '1', "notes"), at(0)),
    ];
    commit(&*store, asks).await;
    let all = row_ids(&*store).await;
    assert_eq!(claimed(&*store, &Lane::Runs, 9, 10).await, [all[0], all[2]]);
    commit(&*store, [ask("s1", timer(Timer::Delay, at(0)), at(0))]).await;
    assert_eq!(claimed(&*store, &Lane::Runs, 9, 10).await, [], "its row was replaced, but it is still performed");
    commit(&*store, [Write::Done(all[0])]).await;
    assert_eq!(claimed(&*store, &Lane::Runs, 9, 10).await, [all[1]]);
    for (lane, expected) in [(statuses("shop", "notes"), all[3]), (statuses("shop", "gitea"), all[5])] {
        assert_eq!(claimed(&*store, &lane, 9, 10).await, [expected]);
        assert_eq!(claimed(&*store, &lane, 9, 10).await, []);
    }
    assert_eq!(claimed(&*store, &statuses("other", "notes"), 9, 10).await, [all[6]]);
}

pub(crate) async fn waiting_is_no_failure_and_what_waits_is_woken_or_revived(backend: &dyn Backend) {
    let store = backend.open().await;
    let digits = ['1', '2', '3'];
    commit(&*store, digits.map(|digit| ask("report", report("shop", digit, "notes"), at(0)))).await;
    let (lane, ids) = (statuses("shop", "notes"), row_ids(&*store).await);
    let parked = |id| Write::Await { id, due: None, reason: "no such token".into() };
    commit(&*store, ids.clone().into_iter().map(parked)).await;
    let row = &rows(&*store).await[0];
    assert_eq!((row.due, row.attempts, row.problem.as_str()), (None, 0, "no such token"));
    assert_eq!(claimed(&*store, &lane, 9, 10).await, []);
    assert_eq!(store.next_due(&lane, at(-9)).await.unwrap(), None);
    commit(&*store, [Write::Wake { id: ids[0], due: at(0) }]).await;
    assert_eq!(claimed(&*store, &lane, 9, 10).await, [], "what waits to be revived is not woken");
    commit(&*store, [Write::Revive { lane: statuses("shop", "gitea"), due: at(1), limit: 9 }]).await;
    assert_eq!(claimed(&*store, &lane, 9, 10).await, []);
    commit(&*store, [Write::Revive { lane: lane.clone(), due: at(1), limit: 1 }]).await;
    assert_eq!(claimed(&*store, &lane, 9, 10).await, [ids[2]]);
    commit(&*store, [Write::Done(ids[2]), Write::Revive { lane: lane.clone(), due: at(1), limit: u32::MAX }]).await;
    assert_eq!(claimed(&*store, &lane, 9, 10).await, [ids[0]]);
    commit(&*store, [Write::Await { id: ids[0], due: Some(at(60)), reason: "an image".into() }]).await;
    commit(&*store, [Write::Wake { id: ids[0], due: at(0) }, Write::Wake { id: ids[1], due: at(5) }]).await;
    assert_eq!(claimed(&*store, &lane, 0, 10).await, [ids[0]]);
    assert_eq!(rows(&*store).await[1].due, Some(at(1)), "waking never puts off");
}

pub(crate) async fn what_nobody_takes_goes_when_it_is_old(backend: &dyn Backend) {
    let store = backend.open().await;
    let asks = ["s1", "s2"].map(|run| ask(run, timer(Timer::Retry, at(5)), at(5)));
    commit(&*store, asks).await;
    commit(&*store, [ask("report", report("shop", '1', "gone"), at(0))]).await;
    let ids = row_ids(&*store).await;
    commit(&*store, [Write::Await { id: ids[0], due: None, reason: "damaged".into() }]).await;
    let before = |time| Retention { before: time, most: 1_000 };
    assert_eq!(store.retain(before(at(0))).await.unwrap()["actions"], 0);
    assert_eq!(store.retain(before(at(1))).await.unwrap()["actions"], 2);
    assert_eq!(row_ids(&*store).await, [ids[1]]);
    commit(&*store, [ask("s1", timer(Timer::Retry, at(5)), at(5))]).await;
    assert_eq!(row_ids(&*store).await.len(), 2);
}

pub(crate) async fn withdrawing_removes_by_run_and_key(backend: &dyn Backend) {
    let store = backend.open().await;
    let deadline = timer(Timer::Deadline, at(1));
    let asks = ["s1", "s2"].map(|run| ask(run, deadline.clone(), at(1)));
    commit(&*store, asks).await;
    commit(&*store, [ask("s1", timer(Timer::Retry, at(2)), at(2))]).await;
    let withdraw = Write::Withdraw { run: run_id("s1"), key: deadline.key() };
    commit(&*store, [withdraw.clone()]).await;
    commit(&*store, [withdraw]).await;
    let left: Vec<_> = rows(&*store).await.into_iter().map(|row| (row.run, row.key)).collect();
    assert_eq!(left, [(run_id("s2"), "timer/deadline".to_owned()), (run_id("s1"), "timer/retry".to_owned())]);
    assert_eq!(store.outbox(Some(&run_id("s2"))).await.unwrap().len(), 1);
}
