//! Many at once.

use std::sync::Arc;

use launchway::model::event::{Event, Timer};
use launchway::model::run::Run;
use launchway::store::{CommitError, RunFilter, Store, Transaction, Write};

use crate::Backend;
use crate::samples::{ask, at, commit, put, run_id, sequence, service, tell, timer};

/// Commits all transactions at once; the results are in the same order.
async fn commit_all(store: &Arc<dyn Store>, all: Vec<Vec<Write>>) -> Vec<Result<(), CommitError>> {
    let tasks: Vec<_> = all
        .into_iter()
        .map(|writes| {
            let store = Arc::clone(store);
            tokio::spawn(async move { store.commit(Transaction::of(writes)).await })
        })
        .collect();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.unwrap());
    }
    results
}

fn run_writes(number: usize) -> Vec<Write> {
    let id = format!("s{number}");
    vec![
        tell(&id, Event::Admitted),
        ask(&id, timer(Timer::Retry, at(0)), at(0)),
        put(0, sequence(&id, service("dev", "web"))),
    ]
}

pub(crate) async fn a_conflict_in_a_group_leaves_the_others_alone(backend: &dyn Backend) {
    let store = backend.open().await;
    let all = (0..200).map(|number| {
        let mut writes = run_writes(number);
        if number % 3 == 0 {
            writes.push(put(5, sequence(&format!("missing{number}"), service("dev", "web"))));
        }
        writes
    });
    let results = commit_all(&store, all.collect()).await;
    for (number, result) in results.into_iter().enumerate() {
        let run = run_id(&format!("s{number}"));
        match (number % 3, result) {
            (0, Err(CommitError::Conflict { what })) => assert_eq!(what, format!("missing{number}")),
            (1 | 2, Ok(())) => {}
            (_, other) => panic!("{number}: {other:?}"),
        }
        let there = usize::from(number % 3 != 0);
        assert_eq!(usize::from(store.run(&run).await.unwrap().is_some()), there);
        assert_eq!(store.events(Some(&run), 0, 10).await.unwrap().len(), there);
        assert_eq!(store.outbox(Some(&run)).await.unwrap().len(), there);
    }
}

pub(crate) async fn every_concurrent_commit_is_counted_once(backend: &dyn Backend) {
    let store = backend.open().await;
    commit(&*store, [put(0, sequence("s1", service("dev", "web")))]).await;
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                for _ in 0..10 {
                    count_one(&*store).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let found = store.run(&run_id("s1")).await.unwrap().unwrap();
    let Run::Sequence(run) = found.value else { panic!("a sequence became a deployment") };
    assert_eq!((run.attempt, found.version), (81, 81));
}

/// Reads, decides and commits until nobody was faster.
async fn count_one(store: &dyn Store) {
    loop {
        let mut run = store.run(&run_id("s1")).await.unwrap().unwrap();
        let Run::Sequence(sequence) = &mut run.value else { panic!("a sequence became a deployment") };
        sequence.attempt += 1;
        match store.commit(Transaction::of(vec![Write::Run(run.shared())])).await {
            Ok(()) => return,
            Err(CommitError::Conflict { .. }) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
}

pub(crate) async fn one_of_many_rivals_wins(backend: &dyn Backend) {
    let store = backend.open().await;
    let results = commit_all(&store, (0..50).map(|_| run_writes(1)).collect()).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    assert_eq!(store.events(None, 0, 100).await.unwrap().len(), 1);
}

pub(crate) async fn readers_see_whole_transactions_while_writers_write(backend: &dyn Backend) {
    let store = backend.open().await;
    let writing = {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            for number in 0..100 {
                commit(&*store, run_writes(2 * number).into_iter().chain(run_writes(2 * number + 1))).await;
            }
        })
    };
    let mut seen = 0;
    while seen < 200 {
        let now = store.runs(&RunFilter::default()).await.unwrap().whole().unwrap().len();
        assert!(now.is_multiple_of(2) && now >= seen, "{now} after {seen}");
        seen = now;
        tokio::task::yield_now().await;
    }
    writing.await.unwrap();
}
