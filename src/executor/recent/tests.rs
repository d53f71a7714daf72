use super::*;
use crate::clock::{CountingIds, ManualClock};
use crate::engine::fixtures::{service, slot};
use crate::engine::records::{Lookup, Undecided};
use crate::engine::transition::Transition;
use crate::error::Failure;
use crate::executor::drive::Driver;
use crate::model::ids::RunId;
use crate::model::slot::SlotState;
use crate::model::time::Timestamp;
use crate::model::transaction::Write;
use crate::model::unique_name::{NameOwner, UniqueName};
use crate::simulation::memory_store::MemoryDisk;
use crate::store::{OutboxId, Read, Retention};
use crate::testing::guarded_store::{Guard, GuardedStore};

fn key() -> RecordKey {
    service("dev").into()
}

/// The slot with `runs` that wait for it.
fn with(runs: &[&str]) -> SlotState {
    SlotState { waiting: runs.iter().map(|run| RunId::new(*run)).collect(), ..slot(None, &[]) }
}

fn at(version: u64, runs: &[&str]) -> Remembered {
    Remembered::Slot(service("dev"), Some(Versioned { version, value: with(runs) }.shared()))
}

/// Writes the slot that was read at `version`.
fn write(version: u64, runs: &[&str]) -> Transaction {
    Transaction::of(vec![Write::Slot(Versioned { version, value: with(runs) }.shared())])
}

fn name() -> UniqueName {
    UniqueName::Project("shop".into())
}

fn named(version: u64) -> Transaction {
    let value = NameOwner {
        name: name(),
        repository: "repo".into(),
        project: "shop".into(),
        stage: None,
        claimants: [].into(),
    };
    Transaction::of(vec![Write::Name(Versioned { version, value }.shared())])
}

fn freed(version: u64) -> Transaction {
    Transaction::of(vec![Write::FreeName(Versioned { version, value: name() })])
}

#[test]
fn what_was_read_and_what_was_committed_is_remembered() {
    let recent = Recent::default();
    assert_eq!(recent.known(&key()), None);
    let absent = Remembered::Slot(service("dev"), None);
    recent.read(recent.ask(&key()), &absent);
    assert_eq!(recent.known(&key()), Some(absent));
    recent.committed(recent.begin(&write(0, &["a"])));
    assert_eq!(recent.known(&key()), Some(at(1, &["a"])), "at the version that it has in the store");
    recent.committed(recent.begin(&write(1, &["a", "b"])));
    assert_eq!(recent.known(&key()), Some(at(2, &["a", "b"])));
    recent.forget();
    assert_eq!(recent.known(&key()), None);
}

#[test]
fn a_read_that_comes_back_after_a_commit_does_not_put_the_older_record_back() {
    let recent = Recent::default();
    for old in [at(1, &["a"]), Remembered::Slot(service("dev"), None)] {
        let before = recent.ask(&key());
        let writing = recent.begin(&write(1, &["b"]));
        let meanwhile = recent.ask(&key());
        recent.committed(writing);
        for asked in [before, meanwhile] {
            recent.read(asked, &old);
            assert_eq!(recent.known(&key()), Some(at(2, &["b"])));
        }
        recent.forget();
    }
}

#[test]
fn a_read_that_was_asked_before_a_record_was_removed_does_not_bring_it_back() {
    let (recent, key) = (Recent::default(), RecordKey::from(name()));
    recent.committed(recent.begin(&named(0)));
    let there = recent.known(&key).unwrap();
    recent.forget();
    let asked = recent.ask(&key);
    recent.committed(recent.begin(&freed(1)));
    recent.read(asked, &there);
    assert_eq!(recent.known(&key), Some(Remembered::Name(name(), None)));
    // Made anew, it begins at the first version again.
    let asked = recent.ask(&key);
    recent.committed(recent.begin(&named(0)));
    recent.read(asked, &Remembered::Name(name(), None));
    assert_eq!(recent.known(&key), Some(there));
}

#[test]
fn of_writes_that_overlap_nobody_knows_the_last() {
    for first_ends_first in [true, false] {
        let recent = Recent::default();
        let (first, second) = (recent.begin(&named(0)), recent.begin(&freed(1)));
        let ends = if first_ends_first { [first, second] } else { [second, first] };
        ends.into_iter().for_each(|writing| recent.committed(writing));
        assert_eq!(recent.known(&name().into()), None);
    }
}

#[test]
fn what_a_refused_transaction_was_decided_on_is_forgotten() {
    let recent = Recent::default();
    recent.committed(recent.begin(&write(0, &["a"])));
    recent.committed(recent.begin(&named(0)));
    let reads = vec![Read { key: name().into(), version: 1 }];
    recent.refused(recent.begin(&Transaction { reads, ..write(1, &["b"]) }));
    assert_eq!((recent.known(&key()), recent.known(&name().into())), (None, None));
}

#[test]
fn a_read_that_was_asked_before_everything_was_forgotten_counts_no_more() {
    let recent = Recent::default();
    let asked = recent.ask(&key());
    recent.forget();
    recent.ask(&key());
    recent.read(asked, &at(1, &["a"]));
    assert_eq!(recent.known(&key()), None);
}

#[test]
fn the_records_that_were_used_last_are_remembered() {
    let recent = Recent::of(2);
    let slots = ["a", "b", "c"].map(|stage| RecordKey::from(service(stage)));
    let read = |stage: &str| recent.read(recent.ask(&service(stage).into()), &Remembered::Slot(service(stage), None));
    read("a");
    read("b");
    assert!(recent.known(&slots[0]).is_some());
    read("c");
    assert_eq!(slots.map(|slot| recent.known(&slot).is_some()), [true, false, true]);
}

/// Counts what is asked of a store.
#[derive(Default)]
struct Asked(AtomicU64);

impl Guard for Asked {
    async fn pass(&self) -> Result<()> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// A driver, and the store behind it to which somebody else writes.
struct Desk {
    driver: Driver,
    store: Arc<GuardedStore<Asked>>,
}

impl Desk {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp(0)));
        let store = Arc::new(MemoryDisk::default().open(clock.clone()));
        let store = Arc::new(GuardedStore { guard: Asked::default(), store });
        Self { driver: Driver::new(store.clone(), clock, Arc::new(CountingIds::default())), store }
    }

    /// One more run waits for the slot; says which do.
    async fn wait(&self, run: &str) -> Vec<RunId> {
        let decision = |transition: &mut Transition<'_>| {
            let before = transition.records.slots.get(&service("dev"))?.cloned();
            let mut slot = before.unwrap_or_else(|| with(&[]));
            slot.waiting.push(run.into());
            let waiting = slot.waiting.clone();
            transition.records.slots.put(&service("dev"), Some(slot))?;
            Ok(waiting)
        };
        self.driver.decide(decision).await.unwrap()
    }

    /// Which runs wait for the slot; nobody is let in while none does.
    async fn waiting(&self) -> Result<Vec<RunId>> {
        let decision = |transition: &mut Transition<'_>| match transition.records.slots.get(&service("dev"))? {
            Some(slot) if !slot.waiting.is_empty() => Ok(slot.waiting.clone()),
            _ => Err(Undecided::Refused(Failure::stalled("nobody waits"))),
        };
        self.driver.decide(decision).await
    }

    async fn somebody_else(&self, transaction: Transaction) {
        self.store.store.commit(transaction).await.unwrap();
    }
}

fn runs(names: &[&str]) -> Vec<RunId> {
    names.iter().map(|name| RunId::new(*name)).collect()
}

#[tokio::test]
async fn a_decision_asks_for_nothing_that_was_just_written() {
    let desk = Desk::new();
    desk.wait("a").await;
    let before = desk.store.guard.0.load(Ordering::Relaxed);
    assert_eq!(desk.wait("b").await, runs(&["a", "b"]));
    assert_eq!(desk.store.guard.0.load(Ordering::Relaxed), before + 1, "it is written");
    assert_eq!(desk.driver.misremembered().await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn what_somebody_else_has_written_is_not_written_over() {
    let desk = Desk::new();
    desk.wait("a").await;
    desk.somebody_else(write(1, &["a", "else"])).await;
    assert_eq!(desk.driver.misremembered().await.unwrap(), [key().to_string()]);
    assert_eq!(desk.wait("b").await, runs(&["a", "else", "b"]));
    assert_eq!(desk.driver.misremembered().await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn an_answer_that_writes_nothing_is_what_the_store_says() {
    let desk = Desk::new();
    desk.wait("a").await;
    assert_eq!(desk.waiting().await.unwrap(), runs(&["a"]));
    desk.somebody_else(write(1, &["else"])).await;
    assert_eq!(desk.waiting().await.unwrap(), runs(&["else"]));
    desk.somebody_else(write(2, &[])).await;
    assert_eq!(desk.waiting().await.unwrap_err().one_line(), "nobody waits");
    desk.wait("b").await;
    desk.somebody_else(write(4, &[])).await;
    assert_eq!(desk.waiting().await.unwrap_err().one_line(), "nobody waits");
    desk.wait("c").await;
    desk.somebody_else(write(6, &["d"])).await;
    assert_eq!(desk.waiting().await.unwrap(), runs(&["d"]), "a refusal is one of the store too");
}

#[tokio::test]
async fn nothing_is_remembered_that_retention_may_have_deleted() {
    let desk = Desk::new();
    desk.wait("a").await;
    desk.driver.retain(Retention { before: Timestamp(0), most: 1 }).await.unwrap();
    let before = desk.store.guard.0.load(Ordering::Relaxed);
    desk.wait("b").await;
    assert_eq!(desk.store.guard.0.load(Ordering::Relaxed), before + 2, "it is read and written");
}

/// Takes an event that is to have an effect once, unless it has another one than to be remembered.
async fn take(desk: &Desk, remembers: bool) -> Result<bool> {
    let told = Lookup::WasDelivered("repo".into(), "event".into());
    let decision = |transition: &mut Transition<'_>| {
        if transition.records.number(told.clone())? > 0 {
            return Ok(false);
        }
        let other = || Write::Wake { id: OutboxId(1), due: Timestamp(0) };
        transition.write(if remembers { delivery() } else { other() });
        Ok(true)
    };
    desk.driver.decide(decision).await
}

fn delivery() -> Write {
    Write::Delivery { repository: "repo".into(), id: "event".into(), at: Timestamp(0) }
}

#[tokio::test]
async fn that_an_event_is_new_is_known_from_its_being_remembered() {
    let desk = Desk::new();
    let calls = || desk.store.guard.0.load(Ordering::Relaxed);
    assert!(take(&desk, true).await.unwrap());
    assert_eq!(calls(), 1, "it is only written");
    assert!(!take(&desk, true).await.unwrap(), "it was told before");
    assert_eq!(calls(), 3, "it is refused, and looked up");
}

#[tokio::test]
async fn that_an_event_is_new_is_looked_up_where_nothing_proves_it() {
    let desk = Desk::new();
    desk.somebody_else(Transaction::of(vec![delivery()])).await;
    assert!(!take(&desk, false).await.unwrap());
}

#[test]
fn what_was_found_of_plans_counts_until_one_is_written() {
    let newest = Lookup::NewestPlanOf("shop".into(), "web".into());
    let plan = || {
        let stages = crate::engine::fixtures::project(&["shipyard dev"]);
        crate::engine::fixtures::plan(&stages, "c1", &std::collections::BTreeMap::new())
    };
    let written = || Transaction::of(vec![Write::Plan(plan().into())]);
    let recent = Recent::default();
    let found = Found::Plan(None);
    let remember = || recent.has_found(recent.look_up(), &newest, &found);

    remember();
    recent.committed(recent.begin(&write(0, &["a"])));
    assert_eq!(recent.found(&newest), Some(found.clone()), "a slot is no plan");

    let before = recent.look_up();
    let writing = recent.begin(&written());
    let meanwhile = recent.look_up();
    recent.committed(writing);
    for asked in [before, meanwhile] {
        recent.has_found(asked, &newest, &found);
        assert_eq!(recent.found(&newest), None);
    }

    remember();
    recent.refused(recent.begin(&written()));
    assert_eq!(recent.found(&newest), None, "nobody knows whether it was written");
    remember();
    recent.forget();
    assert_eq!(recent.found(&newest), None);
}
