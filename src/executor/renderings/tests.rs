use std::collections::BTreeMap;

use super::*;
use crate::clock::ManualClock;
use crate::engine::fixtures::{delivery, deploying, deployment, plan, project, repository};
use crate::model::run::{Phase, SequenceRun};
use crate::model::state::{RepositoryState, RevisionResult};
use crate::model::time::Timestamp;
use crate::plan::build::Applied;
use crate::simulation::memory_store::{MemoryDisk, MemoryStore};
use crate::store::{Store, Versioned};

/// A run that brings a service of the revision `1111111` to `dev`.
fn run(id: &str, service: &str) -> Write {
    let run = delivery(id, "1");
    let service = ServiceKey { service: service.into(), ..run.service.clone() };
    let run = Run::Sequence(Box::new(SequenceRun { service, ..run }));
    Write::Run(Versioned { version: 0, value: run }.shared())
}

/// The revision, which declares `web` and `api`.
fn revision(again: u32) -> RevisionState {
    let plan = plan(
        &project(&["shipyard dev", "declare web image=1", "declare api image=1"]),
        "1111111",
        &BTreeMap::from([("dev".into(), Applied::default())]),
    );
    RevisionState {
        repository: plan.repository.clone(),
        commit: plan.commit.clone(),
        subject: plan.subject.clone(),
        at: plan.at,
        result: RevisionResult::Planned(Box::new(plan)),
        summary: None,
        again,
        warnings: Vec::new(),
    }
}

fn judged(again: u32) -> Write {
    Write::Revision(Box::new(revision(again)))
}

/// Commits writes as a driver does; whether anything was foretold.
async fn commit(renderings: &Renderings, store: &MemoryStore, writes: Vec<Write>) -> bool {
    let transaction = Transaction::of(writes);
    let foretold = renderings.foretell(store, &transaction).await;
    let early = renderings.report(store, &"repo".into(), &"1111111".into()).await.unwrap();
    assert!(early.is_none() || foretold.is_none(), "it is said before it is so: {early:?}");
    store.commit(transaction).await.unwrap();
    foretold.is_some()
}

/// The services that have to be read, and what is said then as what is said by whoever knows nothing.
async fn asked(renderings: &Renderings, store: &MemoryStore) -> Vec<String> {
    let (repository, commit) = ("repo".into(), "1111111".into());
    let known = renderings.of(&(repository, commit)).lock().await.known();
    let (repository, commit) = ("repo".into(), "1111111".into());
    let facts = store.revision_facts(&repository, &commit, known).await.unwrap().unwrap();
    let kept = renderings.report(store, &repository, &commit).await.unwrap();
    let read = Renderings::default().report(store, &repository, &commit).await.unwrap();
    assert_eq!(format!("{kept:?}"), format!("{read:?}"));
    facts.services.iter().map(|facts| facts.service.to_string()).collect()
}

fn store() -> MemoryStore {
    MemoryDisk::default().open(Arc::new(ManualClock::new(Timestamp(0))))
}

#[tokio::test]
async fn of_what_a_push_starts_nothing_is_read_until_it_moves() {
    let (renderings, store) = (Renderings::default(), store());
    let first = vec![judged(0), run("1", "web"), run("2", "api"), run("3", "declared by nobody")];
    assert!(commit(&renderings, &store, first).await);
    assert_eq!(asked(&renderings, &store).await, [""; 0]);
    assert!(!commit(&renderings, &store, vec![run("4", "web")]).await);
    assert_eq!(asked(&renderings, &store).await, ["web"]);
    assert_eq!(asked(&renderings, &store).await, [""; 0]);
    assert!(!commit(&renderings, &store, vec![judged(1)]).await, "what was said before may count");
    assert_eq!(asked(&renderings, &store).await, ["api", "declared by nobody", "web"]);
}

#[tokio::test]
async fn after_a_start_the_heads_are_read_before_anybody_asks() {
    let (renderings, store) = (Renderings::default(), store());
    let head = RepositoryState { applied: Some("1111111".into()), ..repository() };
    let head = Write::Repository(Versioned { version: 0, value: head }.shared());
    commit(&Renderings::default(), &store, vec![head, judged(0), run("1", "web")]).await;
    renderings.read_heads(&store).await.unwrap();
    assert_eq!(asked(&renderings, &store).await, [""; 0]);
}

#[tokio::test]
async fn of_a_revision_that_was_forgotten_the_runs_that_were_not_are_read() {
    let (renderings, store) = (Renderings::default(), store());
    assert!(!commit(&renderings, &store, vec![run("1", "web")]).await);
    assert!(!commit(&renderings, &store, vec![judged(0), run("2", "api")]).await);
    assert_eq!(asked(&renderings, &store).await, ["api", "web"]);
}

#[tokio::test]
async fn of_what_is_not_there_and_what_does_not_come_nothing_is_kept() {
    let (renderings, store) = (Renderings::default(), store());
    let transaction = Transaction::of(vec![judged(0), run("1", "web")]);
    let foretold = renderings.foretell(&store, &transaction).await.unwrap();
    assert_eq!(renderings.all().foretold.len(), 1);
    renderings.take_back(&foretold);
    assert!(renderings.all().foretold.is_empty());
    let told = renderings.report(&store, &"repo".into(), &"1111111".into()).await.unwrap();
    assert!(told.is_none() && renderings.all().kept.is_empty());
}

#[tokio::test]
async fn what_is_told_of_a_run_of_another_revision_is_read_while_that_moves() {
    let (renderings, store) = (Renderings::default(), store());
    let by = deploying(delivery("1", "1"), 1);
    let elsewhere = |version, phase| {
        let run = Run::Deployment(Box::new(deployment(1, "2", &delivery("2", "2"), phase)));
        Write::Run(Versioned { version, value: run }.shared())
    };
    let run = Write::Run(Versioned { version: 0, value: Run::Sequence(Box::new(by)) }.shared());
    commit(&renderings, &store, vec![judged(0), run]).await;
    commit(&renderings, &store, vec![elsewhere(0, Phase::Pending)]).await;
    for (version, phase) in [(1, Phase::Running), (2, Phase::Complete)] {
        asked(&renderings, &store).await;
        commit(&renderings, &store, vec![elsewhere(version, phase)]).await;
        assert_eq!(asked(&renderings, &store).await, ["web"]);
    }
}

#[tokio::test]
async fn what_goes_on_after_its_deployment_is_not_read_again_for_that() {
    let (renderings, store) = (Renderings::default(), store());
    let by = deploying(delivery("1", "1"), 1);
    let own = deployment(1, "1", &by, Phase::Complete);
    let runs = [Run::Sequence(Box::new(by)), Run::Deployment(Box::new(own))];
    let runs = runs.map(|value| Write::Run(Versioned { version: 0, value }.shared()));
    commit(&Renderings::default(), &store, [judged(0)].into_iter().chain(runs).collect()).await;
    asked(&renderings, &store).await;
    assert_eq!(asked(&renderings, &store).await, [""; 0]);
}

#[tokio::test]
async fn pushes_do_not_drive_out_what_somebody_asks_for() {
    let (renderings, store) = (Renderings::default(), store());
    commit(&renderings, &store, vec![judged(0), run("1", "web")]).await;
    assert_eq!(asked(&renderings, &store).await, [""; 0]);
    for push in 0..2 * KEPT {
        let pushed = RevisionState { commit: CommitId::new(format!("{push:07}")), ..revision(0) };
        let transaction = Transaction::of(vec![Write::Revision(Box::new(pushed))]);
        assert!(renderings.foretell(&store, &transaction).await.is_some());
    }
    let all = renderings.all();
    assert_eq!((all.kept.len(), all.foretold.len()), (1, FORETOLD));
    assert_eq!(all.foretold[0].0.1.as_str(), format!("{:07}", 2 * KEPT - FORETOLD));
}

#[test]
fn a_plan_is_taken_apart_by_service() {
    let revision = revision(0);
    let plan = revision.plan().unwrap();
    let parts: Vec<(&ServiceName, Plan)> = plan.by_service().collect();
    assert_eq!(parts.iter().map(|(service, _)| service.as_str()).collect::<Vec<_>>(), ["api", "web"]);
    assert!(parts.iter().all(|(service, part)| *part == plan.about(service)));
}
