//! The writes of a transaction as SQL.

use std::fmt::Display;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _, ToSql, params, params_from_iter};

use super::content::{self, User};
use super::failure::Error;
use super::outbox;
use super::place::{Place, place};
use crate::error::Context;
use crate::model::commit_status::Posted;
use crate::model::event::Event;
use crate::model::ids::{CommitId, PlanId, RepositoryName, RunId, WriterName};
use crate::model::plan::Plan;
use crate::model::run::Run;
use crate::model::slot::{PassedState, SlotState};
use crate::model::state::{ConfigState, ObjectState, RepositoryState, RevisionState};
use crate::model::tag::SeenTags;
use crate::model::time::Timestamp;
use crate::model::transaction::ObjectPlace;
use crate::model::webhook_call::WebhookCalls;
use crate::store::content::Refers;
use crate::store::record::{Record, RevisionRecord, encode, split_plan};
use crate::store::{Read, RecordKey, Transaction, Versioned, Write};

/// A column and its value.
type Column<'a> = (&'static str, &'a dyn ToSql);

/// Does all writes of a transaction, in order.
///
/// # Errors
/// If a record is not at the version that was expected, or cannot be written; what was written before that stays to be
/// rolled back.
pub(super) fn apply(connection: &Connection, transaction: &Transaction, now: Timestamp) -> Result<(), Error> {
    transaction.reads.iter().try_for_each(|read| check(connection, read))?;
    transaction.writes.iter().try_for_each(|write| apply_one(connection, write, now))
}

/// A record that something was decided on must still be what it was, also if it was not there.
fn check(connection: &Connection, read: &Read) -> Result<(), Error> {
    let Place { table, keys } = place(&read.key);
    let conditions: Vec<String> = keys.iter().map(|(name, _)| format!("{name} = ?")).collect();
    let sql = format!("SELECT version FROM {table} WHERE {}", conditions.join(" AND "));
    let values = params_from_iter(keys.iter().map(|(_, value)| value));
    let version: Option<i64> = connection.prepare_cached(&sql)?.query_row(values, |row| row.get(0)).optional()?;
    let version = version.map_or(0, |version| u64::try_from(version).unwrap_or_default());
    if version == read.version { Ok(()) } else { Err(Error::Conflict(read.key.to_string())) }
}

fn apply_one(connection: &Connection, write: &Write, now: Timestamp) -> Result<(), Error> {
    match write {
        Write::Run(run) => put_run(connection, run),
        Write::Event { run, at, event } => append_event(connection, run, *at, event),
        Write::Ask { run, action, due, at } => outbox::ask(connection, run, action, *due, *at),
        Write::AskOvertaken { repository, writer, at } => outbox::ask_overtaken(connection, repository, writer, *at),
        Write::Withdraw { run, key } => outbox::withdraw(connection, run, key),
        Write::Done(id) => outbox::done(connection, *id),
        Write::Postpone { id, due, problem } => outbox::postpone(connection, *id, *due, problem),
        Write::Await { id, due, reason } => outbox::await_something(connection, *id, *due, reason),
        Write::Wake { id, due } => outbox::wake(connection, *id, *due),
        Write::Revive { lane, due, limit } => outbox::revive(connection, lane, *due, *limit),
        Write::Config(config) => put_config(connection, config),
        Write::RemoveConfig(key) => remove(connection, &key.value.clone().into(), key.version),
        Write::Object(object) => put_object(connection, object),
        Write::RemoveObject(place) => remove(connection, &place.value.clone().into(), place.version),
        Write::Repository(repository) => put_repository(connection, repository),
        Write::RemoveRepository(key) => remove(connection, &key.value.clone().into(), key.version),
        Write::Plan(plan) => put_plan(connection, plan),
        Write::Revision(revision) => put_revision(connection, revision),
        Write::Slot(slot) => put_slot(connection, slot),
        Write::Passed(passed) => put_passed(connection, passed),
        Write::RemovePassed(key) => remove(connection, &key.value.clone().into(), key.version),
        Write::Holds(it) => put_plain(connection, it.value.project.clone().into(), &*it.value, it.version),
        Write::Name(it) => put_plain(connection, it.value.name.clone().into(), &*it.value, it.version),
        Write::FreeName(key) => remove(connection, &key.value.clone().into(), key.version),
        Write::Posted { repository, writer, posted } => put_posted(connection, repository, writer, posted, now),
        Write::WebhookCalls { repository, calls } => put_webhook_calls(connection, repository, calls),
        Write::Tags { repository, seen } => put_tags(connection, repository, seen),
        Write::Delivery { repository, id, at } => put_delivery(connection, repository, id, *at),
    }
}

fn put_run(connection: &Connection, run: &Versioned<Arc<Run>>) -> Result<(), Error> {
    let Versioned { version, value } = run;
    let (config, plan, sequence, attempt, context) = match &**value {
        Run::Sequence(run) => {
            let plan = run.plan.as_ref().map(PlanId::as_str);
            (None, plan, run.only_tasks(), run.attempt, run.context.as_deref())
        }
        Run::Deployment(run) => (Some(run.config.name.as_str()), None, None, run.attempt, None),
    };
    let service = value.service();
    let (repository, commit) = value.revision();
    let key = RecordKey::Run(value.id().clone());
    // What a run belongs to never changes, but for the revision: an attempt at a version may be a later commit's.
    let fixed: [Column<'_>; 9] = [
        ("is_sequence", &config.is_none()),
        ("project", &service.project.as_str()),
        ("stage", &service.stage.as_str()),
        ("service", &service.service.as_str()),
        ("config", &config),
        ("plan", &plan),
        ("sequence", &sequence),
        ("context", &context),
        ("created_at", &value.created_at().0),
    ];
    let moved = next_move(connection, repository, commit)?;
    let columns: [Column<'_>; 6] = [
        ("repository", &repository.as_str()),
        ("commit_id", &commit.as_str()),
        ("is_open", &!value.is_ended()),
        ("attempt", &attempt),
        ("moved", &moved),
        ("record", &encode(&**value)?),
    ];
    if *version == 0 {
        insert(connection, &key, fixed.iter().chain(&columns))?;
    } else {
        leave_revision(connection, value.id(), (repository, commit))?;
        update(connection, &key, *version, &columns)?;
    }
    put_content(connection, &key, &**value)
}

/// A run that goes over to another revision is gone for the one that it was of.
fn leave_revision(
    connection: &Connection,
    run: &RunId,
    (repository, commit): (&RepositoryName, &CommitId),
) -> Result<(), Error> {
    let sql = "UPDATE revisions SET runs_deleted = runs_deleted + 1 \
               FROM (SELECT repository, commit_id FROM runs WHERE id = ?1 AND (repository, commit_id) <> (?2, ?3)) AS was \
               WHERE revisions.repository = was.repository AND revisions.commit_id = was.commit_id";
    execute(connection, sql, params![run.as_str(), repository.as_str(), commit.as_str()])
}

/// What tells that a run of a revision has changed after all others of it.
fn next_move(connection: &Connection, repository: &RepositoryName, commit: &CommitId) -> Result<i64, Error> {
    let sql =
        "SELECT coalesce(max(moved), 0) + 1 FROM runs INDEXED BY runs_by_move WHERE commit_id = ? AND repository = ?";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_row([commit.as_str(), repository.as_str()], |row| row.get(0))?)
}

/// Stores the content that a record refers to.
fn put_content(connection: &Connection, key: &RecordKey, record: &impl Refers) -> Result<(), Error> {
    let Place { table, keys } = place(key);
    let conditions: Vec<String> = keys.iter().map(|(name, _)| format!("{name} = ?")).collect();
    let sql = format!("SELECT number FROM {table} WHERE {}", conditions.join(" AND "));
    let values = params_from_iter(keys.iter().map(|(_, value)| value));
    let number = connection.prepare_cached(&sql)?.query_row(values, |row| row.get(0))?;
    content::put(connection, User { table, number }, record)
}

fn append_event(connection: &Connection, run: &RunId, at: Timestamp, event: &Event) -> Result<(), Error> {
    let record = encode(event)?;
    execute(connection, "INSERT INTO events (run, at, record) VALUES (?, ?, ?)", params![run.as_str(), at.0, record])
}

fn put_config(connection: &Connection, config: &Versioned<Arc<ConfigState>>) -> Result<(), Error> {
    let Versioned { version, value } = config;
    let in_use: Vec<RunId> = value.runs_in_use();
    let columns: [Column<'_>; 8] = [
        ("service", &value.service.as_str()),
        ("repository", &value.repository.as_str()),
        ("digest", &value.object.digest.as_str()),
        ("is_settled", &value.is_settled()),
        ("history_limit", &value.history_limit()),
        ("runs_in_use", &serde_json::to_string(&in_use).or_stalled(|| "cannot write run ids".to_owned())?),
        ("attempted_by", &value.attempted.as_ref().map(|attempt| attempt.run.as_str())),
        ("record", &encode(&**value)?),
    ];
    let key = value.key.clone().into();
    put(connection, &key, *version, &columns)?;
    put_content(connection, &key, &**value)
}

fn put_object(connection: &Connection, object: &Versioned<Arc<ObjectState>>) -> Result<(), Error> {
    let Versioned { version, value } = object;
    let digest = value.declared_digest();
    let columns: [Column<'_>; 4] = [
        ("service", &value.object.service.as_str()),
        ("repository", &value.repository.as_str()),
        ("digest", &digest.as_str()),
        ("record", &encode(&**value)?),
    ];
    let (project, stage, key) = (value.project.clone(), value.stage.clone(), value.object.key.clone());
    let key = ObjectPlace { project, stage, key }.into();
    put(connection, &key, *version, &columns)?;
    put_content(connection, &key, &**value)
}

fn put_repository(connection: &Connection, repository: &Versioned<Arc<RepositoryState>>) -> Result<(), Error> {
    let Versioned { version, value } = repository;
    let columns: [Column<'_>; 3] = [
        ("applied", &value.applied.as_ref().map(|commit| commit.as_str())),
        ("seen", &value.seen.as_ref().map(|commit| commit.as_str())),
        ("record", &encode(&**value)?),
    ];
    put(connection, &value.name.clone().into(), *version, &columns)
}

fn put_slot(connection: &Connection, slot: &Versioned<Arc<SlotState>>) -> Result<(), Error> {
    let Versioned { version, value } = slot;
    let last = value.last_delivery.as_ref();
    let columns: [Column<'_>; 6] = [
        ("is_open", &!value.is_free()),
        ("run", &last.map(|last| last.run.as_str())),
        ("content", &last.map(|last| last.content.as_str())),
        ("procedure", &last.map(|last| last.procedure.as_str())),
        ("deployed", &last.is_none_or(|last| last.deployed)),
        ("record", &encode(&**value)?),
    ];
    put(connection, &value.service.clone().into(), *version, &columns)
}

fn put_passed(connection: &Connection, passed: &Versioned<Arc<PassedState>>) -> Result<(), Error> {
    let Versioned { version, value } = passed;
    put(connection, &value.key.clone().into(), *version, &[("at", &value.at.0), ("record", &encode(&**value)?)])
}

/// A record without columns that are searched for.
fn put_plain<T: Record>(connection: &Connection, key: RecordKey, record: &T, version: u64) -> Result<(), Error> {
    put(connection, &key, version, &[("record", &encode(record)?)])
}

/// What a plan says never changes; one that is made again is only newer.
fn put_plan(connection: &Connection, plan: &Plan) -> Result<(), Error> {
    let (rest, parts) = split_plan(plan);
    let sql = "INSERT INTO plans (id, at, record) VALUES (?, ?, ?) \
               ON CONFLICT (id) DO UPDATE SET at = excluded.at, record = excluded.record";
    execute(connection, sql, params![plan.id.as_str(), plan.at.0, encode(&rest)?])?;
    let sql = "SELECT number FROM plans WHERE id = ?";
    let number = connection.prepare_cached(sql)?.query_row([plan.id.as_str()], |row| row.get(0))?;
    content::put(connection, User { table: "plans", number }, &rest)?;
    for (service, part) in parts {
        let (id, project, name) = (plan.id.as_str(), plan.project.as_str(), service.as_str());
        execute(connection, "DELETE FROM plan_parts WHERE plan = ? AND service = ?", params![id, name])?;
        let sql = "INSERT INTO plan_parts (plan, project, service, record) VALUES (?, ?, ?, ?)";
        execute(connection, sql, params![id, project, name, encode(&part)?])?;
        content::put(connection, User { table: "plan_parts", number: connection.last_insert_rowid() }, &part)?;
    }
    Ok(())
}

fn put_revision(connection: &Connection, revision: &RevisionState) -> Result<(), Error> {
    let (record, plan) = RevisionRecord::split(revision);
    if let Some(plan) = plan {
        put_plan(connection, plan)?;
    }
    let sql = "INSERT INTO revisions (repository, commit_id, at, plan, record) VALUES (?, ?, ?, ?, ?) \
               ON CONFLICT (repository, commit_id) \
               DO UPDATE SET at = excluded.at, plan = excluded.plan, record = excluded.record";
    execute(
        connection,
        sql,
        params![
            revision.repository.as_str(),
            revision.commit.as_str(),
            revision.at.0,
            plan.map(|plan| plan.id.as_str()),
            encode(&record)?
        ],
    )
}

fn put_posted(
    connection: &Connection,
    repository: &RepositoryName,
    writer: &WriterName,
    posted: &Posted,
    now: Timestamp,
) -> Result<(), Error> {
    let Posted { status, rendering } = posted;
    execute(
        connection,
        "INSERT OR REPLACE INTO posted (repository, writer, commit_id, context, is_open, rendering, at, record) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            repository.as_str(),
            writer.as_str(),
            status.commit.as_str(),
            status.context,
            !status.state.is_final(),
            i64::try_from(*rendering).unwrap_or(i64::MAX),
            now.0,
            encode(status)?
        ],
    )
}

fn put_webhook_calls(connection: &Connection, repository: &RepositoryName, calls: &WebhookCalls) -> Result<(), Error> {
    let sql = "INSERT OR REPLACE INTO webhook_calls (repository, record) VALUES (?, ?)";
    execute(connection, sql, params![repository.as_str(), encode(calls)?])
}

fn put_tags(connection: &Connection, repository: &RepositoryName, seen: &SeenTags) -> Result<(), Error> {
    let sql = "INSERT OR REPLACE INTO tags (repository, record) VALUES (?, ?)";
    execute(connection, sql, params![repository.as_str(), encode(seen)?])
}

fn put_delivery(connection: &Connection, repository: &RepositoryName, id: &str, at: Timestamp) -> Result<(), Error> {
    let sql = "INSERT INTO deliveries (repository, id, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING";
    let added = connection.prepare_cached(sql)?.execute(params![repository.as_str(), id, at.0])?;
    expect_one(added, format_args!("delivery {id}"))
}

pub(super) fn execute(connection: &Connection, sql: &str, values: &[&dyn ToSql]) -> Result<(), Error> {
    connection.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

/// Compare and set: the record must be at version `expected`, or absent if that is 0, and gets the next version.
fn put(connection: &Connection, key: &RecordKey, expected: u64, columns: &[Column<'_>]) -> Result<(), Error> {
    if expected == 0 { insert(connection, key, columns.iter()) } else { update(connection, key, expected, columns) }
}

fn insert<'a>(
    connection: &Connection,
    key: &RecordKey,
    columns: impl Iterator<Item = &'a Column<'a>>,
) -> Result<(), Error> {
    let Place { table, keys } = place(key);
    let (mut names, mut values): (Vec<&str>, Vec<&dyn ToSql>) =
        keys.iter().map(|(name, value)| (*name, value as &dyn ToSql)).unzip();
    for (name, value) in columns {
        names.push(name);
        values.push(*value);
    }
    let marks = "?, ".repeat(values.len());
    let sql = format!("INSERT INTO {table} ({}, version) VALUES ({marks}1) ON CONFLICT DO NOTHING", names.join(", "));
    expect_one(connection.prepare_cached(&sql)?.execute(params_from_iter(values))?, key)
}

fn update(connection: &Connection, key: &RecordKey, expected: u64, columns: &[Column<'_>]) -> Result<(), Error> {
    let Place { table, keys } = place(key);
    let assignments: String = columns.iter().map(|(name, _)| format!("{name} = ?, ")).collect();
    let sql = format!("UPDATE {table} SET {assignments}version = version + 1 WHERE {}", condition(&keys));
    let expected = i64::try_from(expected).unwrap_or(i64::MAX);
    let keys = keys.iter().map(|(_, value)| value as &dyn ToSql);
    let values = columns.iter().map(|(_, value)| *value).chain(keys).chain([&expected as &dyn ToSql]);
    expect_one(connection.prepare_cached(&sql)?.execute(params_from_iter(values))?, key)
}

/// Compare and delete: the record must be at version `expected`.
fn remove(connection: &Connection, key: &RecordKey, expected: u64) -> Result<(), Error> {
    let Place { table, keys } = place(key);
    let sql = format!("DELETE FROM {table} WHERE {}", condition(&keys));
    let expected = i64::try_from(expected).unwrap_or(i64::MAX);
    let values = keys.iter().map(|(_, value)| value as &dyn ToSql).chain([&expected as &dyn ToSql]);
    expect_one(connection.prepare_cached(&sql)?.execute(params_from_iter(values))?, key)
}

/// The row with these keys at the version that follows them.
fn condition(keys: &[(&'static str, String)]) -> String {
    let keys: String = keys.iter().map(|(name, _)| format!("{name} = ? AND ")).collect();
    format!("{keys}version = ?")
}

fn expect_one(changed: usize, what: impl Display) -> Result<(), Error> {
    if changed == 1 { Ok(()) } else { Err(Error::Conflict(what.to_string())) }
}
