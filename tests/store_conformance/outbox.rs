//! Actions that wait.

use std::time::Duration;

use launchway::model::event::Timer;
use launchway::store::{OutboxId, OutboxRow, Store, Write};

use crate::Backend;
use crate::samples::{ask, at, commit, run_id, timer};

async fn rows(store: &dyn Store) -> Vec<OutboxRow> {
    store.outbox(None).await.unwrap()
}

async fn row_ids(store: &dyn Store) -> Vec<OutboxId> {
    rows(store).await.iter().map(|row| row.id).collect()
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
    assert_eq!((after[1].due, after[1].attempts, after[1].problem.as_str()), (at(5), 0, ""));
    assert_eq!(after[1].action, timer(Timer::Retry, at(5)));
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
        assert_eq!((i64::from(row.attempts), row.due), (attempt, at(attempt)));
        assert_eq!(row.problem, format!("no {attempt}"));
    }
    commit(&*store, [Write::Done(replaced[0].id)]).await;
    assert_eq!(rows(&*store).await, []);
}

pub(crate) async fn rows_come_due_in_the_order_of_their_ids(backend: &dyn Backend) {
    let store = backend.open().await;
    let asks = [("s1", 5), ("s2", -5), ("s3", 0), ("s4", 7)].map(|(run, due)| {
        let due = at(due);
        ask(run, timer(Timer::Retry, due), due)
    });
    commit(&*store, asks).await;
    let all = row_ids(&*store).await;
    let due = async |now, limit| -> Vec<OutboxId> {
        store.due(at(now), limit).await.unwrap().iter().map(|row| row.id).collect()
    };
    assert_eq!(due(0, 10).await, [all[1], all[2]]);
    assert_eq!(due(5, 10).await, all[..3]);
    assert_eq!(due(9, 2).await, all[..2]);
    assert_eq!(store.next_due(at(0)).await.unwrap(), Some(at(5)));
    assert_eq!(store.next_due(at(5)).await.unwrap(), Some(at(5) + Duration::from_secs(2)));
    assert_eq!(store.next_due(at(7)).await.unwrap(), None);
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
    let left: Vec<_> = rows(&*store).await.into_iter().map(|row| (row.run, row.action.key())).collect();
    assert_eq!(left, [(run_id("s2"), "timer/deadline".to_owned()), (run_id("s1"), "timer/retry".to_owned())]);
    assert_eq!(store.outbox(Some(&run_id("s2"))).await.unwrap().len(), 1);
}
