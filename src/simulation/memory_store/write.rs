//! The writes of a transaction.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Arc;

use rpds::RedBlackTreeMapSync as Map;

use crate::model::action::{Action, Lane, Priority, REPORTS};
use crate::model::ids::{CommitId, RepositoryName, RunId, WriterName};
use crate::model::plan::Plan;
use crate::model::run::Run;
use crate::model::state::{RevisionResult, RevisionState};
use crate::model::time::Timestamp;
use crate::simulation::memory_store::tables::{Row, Tables};
use crate::store::{EventRow, OutboxId, OutboxRow, RecordKey, Transaction, Versioned, Write};

/// Does all writes of a transaction, in order.
///
/// # Errors
/// Says which record is not at the version that was expected; the tables are then to be dropped.
pub(super) fn apply(tables: &mut Tables, transaction: Transaction, now: Timestamp) -> Result<(), String> {
    if let Some(moved) = transaction.reads.iter().find(|read| tables.version(&read.key) != read.version) {
        return Err(moved.key.to_string());
    }
    transaction.writes.into_iter().try_for_each(|write| apply_one(tables, write, now))
}

fn apply_one(tables: &mut Tables, write: Write, now: Timestamp) -> Result<(), String> {
    match write {
        Write::Run(run) => return put_run(tables, run),
        Write::Event { run, at, event } => {
            let number = tables.next_number();
            tables.events.insert_mut(number, Arc::new(EventRow { number, run, at, event: *event }));
        }
        Write::Ask { run, action, due, at } => ask(tables, run, *action, due, at),
        Write::AskOvertaken { repository, writer, at } => ask_overtaken(tables, &repository, &writer, at),
        Write::Withdraw { run, key } => withdraw(tables, run, key),
        Write::Done(id) => done(tables, id),
        Write::Postpone { id, due, problem } => {
            change(tables, id, |row| OutboxRow { due: Some(due), problem, attempts: row.attempts + 1, ..row });
        }
        Write::Await { id, due, reason } => change(tables, id, |row| OutboxRow { due, problem: reason, ..row }),
        Write::Wake { id, due } => {
            change(tables, id, |row| OutboxRow { due: row.due.map(|before| before.min(due)), ..row });
        }
        Write::Revive { lane, due, limit } => revive(tables, &lane, due, limit),
        Write::Config(config) => return put(&mut tables.configs, config.value.key.clone(), config),
        Write::RemoveConfig(key) => return remove(&mut tables.configs, key.value, key.version),
        Write::Object(object) => {
            return put(&mut tables.objects, (&*object.value).into(), object);
        }
        Write::RemoveObject(place) => return remove(&mut tables.objects, place.value, place.version),
        Write::Repository(repository) => {
            return put(&mut tables.repositories, repository.value.name.clone(), repository);
        }
        Write::RemoveRepository(key) => return remove(&mut tables.repositories, key.value, key.version),
        Write::Plan(plan) => put_plan(tables, &plan),
        Write::Revision(revision) => put_revision(tables, *revision),
        Write::Slot(slot) => return put(&mut tables.slots, slot.value.service.clone(), slot),
        Write::Passed(passed) => return put(&mut tables.passed, passed.value.key.clone(), passed),
        Write::RemovePassed(key) => return remove(&mut tables.passed, key.value, key.version),
        Write::Holds(holds) => return put(&mut tables.holds, holds.value.project.clone(), holds),
        Write::Name(owner) => return put(&mut tables.names, owner.value.name.clone(), owner),
        Write::FreeName(key) => return remove(&mut tables.names, key.value, key.version),
        Write::Posted { repository, writer, posted } => {
            let key = (repository, writer, posted.status.commit.clone(), posted.status.context.clone());
            tables.posted.insert_mut(key, (now, Arc::new(*posted)));
        }
        Write::WebhookCalls { repository, calls } => {
            tables.webhook_calls.insert_mut(repository, *calls);
        }
        Write::Tags { repository, seen } => {
            tables.tags.insert_mut(repository, *seen);
        }
        Write::Delivery { repository, id, at } => {
            let named = format!("delivery {id}");
            return put_new(&mut tables.deliveries, (repository, id), at, named);
        }
    }
    Ok(())
}

fn put_run(tables: &mut Tables, run: Versioned<Arc<Run>>) -> Result<(), String> {
    let Versioned { version, value } = run;
    let id = value.id().clone();
    let known = tables.runs.get(&id).map(|(order, run)| (*order, run.version));
    if known.map_or(0, |(_, version)| version) != version {
        return Err(id.to_string());
    }
    let order = match known {
        Some((order, _)) => order,
        None => (value.created_at(), tables.next_number()),
    };
    if value.is_ended() {
        tables.open_runs.remove_mut(&order);
    } else {
        tables.open_runs.insert_mut(order, id.clone());
    }
    tables.runs_in_order.insert_mut(order, id.clone());
    let (repository, commit) = value.revision();
    let before = tables.runs.get(&id).map(|(_, run)| run.value.revision());
    if before.is_some_and(|before| before != (repository, commit)) {
        tables.runs_deleted += 1; // for the revision that it was of, it is gone
    }
    let revision = (repository.clone(), commit.clone());
    let moved = 1 + tables.moves.get(&revision).copied().unwrap_or_default();
    tables.moves.insert_mut(revision, moved);
    tables.run_moves.insert_mut(id.clone(), moved);
    let value = Arc::unwrap_or_clone(value);
    tables.runs.insert_mut(id, (order, Arc::new(Versioned { version: version + 1, value })));
    Ok(())
}

/// A replaced row gets a new id, so that whoever performs the old one cannot mark the new one done.
fn ask(tables: &mut Tables, run: RunId, action: Action, due: Timestamp, asked_at: Timestamp) {
    let key = action.key();
    let asked = (run.clone(), key.clone());
    if let Some(old) = tables.asked.get(&asked).copied() {
        tables.outbox.remove_mut(&old);
    }
    let id = OutboxId(tables.next_number());
    tables.asked.insert_mut(asked, id);
    let problem = String::new();
    let row = OutboxRow { id, run, key, action: Ok(action), due: Some(due), asked_at, attempts: 0, problem };
    tables.outbox.insert_mut(id, Arc::new(row));
}

fn ask_overtaken(tables: &mut Tables, repository: &RepositoryName, writer: &WriterName, at: Timestamp) {
    let written = tables.posted.iter().filter(|((of, by, ..), _)| (of, by) == (repository, writer));
    let open = written.filter(|(_, (_, posted))| !posted.status.state.is_final());
    let commits: BTreeSet<CommitId> = open.map(|((.., commit, _), _)| commit.clone()).collect();
    for commit in commits {
        ask(tables, RunId::new(REPORTS), Action::report(repository, &commit, writer), at, at);
    }
}

fn withdraw(tables: &mut Tables, run: RunId, key: String) {
    if let Some(id) = tables.asked.get(&(run, key)).copied() {
        done(tables, id);
    }
}

fn done(tables: &mut Tables, id: OutboxId) {
    if let Some(row) = tables.outbox.get(&id).cloned() {
        tables.asked.remove_mut(&(row.run.clone(), row.key.clone()));
        tables.outbox.remove_mut(&id);
    }
}

fn change(tables: &mut Tables, id: OutboxId, change: impl FnOnce(OutboxRow) -> OutboxRow) {
    if let Some(row) = tables.outbox.get(&id).map(|row| OutboxRow::clone(row)) {
        tables.outbox.insert_mut(id, Arc::new(change(row)));
    }
}

fn revive(tables: &mut Tables, lane: &Lane, due: Timestamp, limit: u32) {
    let parked = |row: &&Arc<OutboxRow>| row.due.is_none() && is_of(lane, row);
    let newest_first = tables.outbox.values().rev().filter(parked).map(|row| row.id);
    for id in newest_first.take(limit as usize).collect::<Vec<_>>() {
        change(tables, id, |row| OutboxRow { due: Some(due), ..row });
    }
}

/// Whether a row is performed in a lane.
pub(super) fn is_of(lane: &Lane, row: &OutboxRow) -> bool {
    row.action.as_ref().is_ok_and(|action| action.lane() == *lane)
}

/// The order among what is due.
pub(super) fn turn(row: &OutboxRow) -> Option<Timestamp> {
    let priority = row.action.as_ref().map_or(Priority::Beginning, Action::priority);
    row.due.map(|due| priority.turn(due))
}

fn put_plan(tables: &mut Tables, plan: &Plan) {
    tables.plans.insert_mut(plan.id.clone(), Arc::new(plan.clone()));
    for part in plan.stages.iter().flat_map(|stage| &stage.services) {
        tables.newest_plans.insert_mut((plan.project.clone(), part.service.clone()), plan.id.clone());
    }
}

fn put_revision(tables: &mut Tables, revision: RevisionState) {
    if let RevisionResult::Planned(plan) = &revision.result {
        put_plan(tables, plan);
    }
    let key = (revision.repository.clone(), revision.commit.clone());
    let number = match tables.revisions.get(&key) {
        Some((number, _)) => *number,
        None => tables.next_number(),
    };
    tables.revisions.insert_mut(key, (number, Arc::new(revision)));
}

/// Compare and set: the record must be at the version that was read, or absent if that is 0, and gets the next one.
fn put<K: Ord + Clone + Into<RecordKey>, T: Clone>(
    map: &mut Map<K, Row<T>>,
    key: K,
    value: Versioned<Arc<T>>,
) -> Result<(), String> {
    let Versioned { version, value } = value;
    if map.get(&key).map_or(0, |stored| stored.version) != version {
        return Err(key.into().to_string());
    }
    let value = Arc::unwrap_or_clone(value);
    map.insert_mut(key, Arc::new(Versioned { version: version + 1, value }));
    Ok(())
}

/// Compare and delete.
fn remove<K: Ord + Into<RecordKey>, T>(map: &mut Map<K, Row<T>>, key: K, version: u64) -> Result<(), String> {
    if map.get(&key).is_none_or(|stored| stored.version != version) {
        return Err(key.into().to_string());
    }
    map.remove_mut(&key);
    Ok(())
}

fn put_new<K: Ord, T>(map: &mut Map<K, T>, key: K, value: T, named: impl Display) -> Result<(), String> {
    if map.contains_key(&key) {
        return Err(named.to_string());
    }
    map.insert_mut(key, value);
    Ok(())
}
