//! The writes of a transaction as SQL.

use std::fmt::Display;

use rusqlite::{Connection, ToSql, params, params_from_iter};

use super::failure::Error;
use super::outbox;
use crate::model::commit_status::Posted;
use crate::model::event::Event;
use crate::model::hold::Hold;
use crate::model::ids::{ConfigKey, ProjectName, RepositoryName, RunId, StageName, WriterName};
use crate::model::object::ObjectKey;
use crate::model::run::Run;
use crate::model::state::{ConfigState, ObjectState, RepositoryState, RevisionState};
use crate::model::time::Timestamp;
use crate::store::record::{RevisionRecord, encode, kind_text};
use crate::store::{Transaction, Versioned, Write};

/// A column and its value.
type Column<'a> = (&'static str, &'a dyn ToSql);

/// Does all writes of a transaction, in order.
///
/// # Errors
/// If a record is not at the version that was expected, or cannot be written; what was written before that stays to be
/// rolled back.
pub(super) fn apply(connection: &Connection, transaction: &Transaction, now: Timestamp) -> Result<(), Error> {
    transaction.writes.iter().try_for_each(|write| apply_one(connection, write, now))
}

fn apply_one(connection: &Connection, write: &Write, now: Timestamp) -> Result<(), Error> {
    match write {
        Write::Run(run) => put_run(connection, run),
        Write::Event { run, at, event } => append_event(connection, run, *at, event),
        Write::Ask { run, action, due, at } => outbox::ask(connection, run, action, *due, *at),
        Write::Withdraw { run, key } => outbox::withdraw(connection, run, key),
        Write::Done(id) => outbox::done(connection, *id),
        Write::Postpone { id, due, problem } => outbox::postpone(connection, *id, *due, problem),
        Write::Await { id, due, reason } => outbox::await_something(connection, *id, *due, reason),
        Write::Wake { id, due } => outbox::wake(connection, *id, *due),
        Write::Revive { lane, due, limit } => outbox::revive(connection, lane, *due, *limit),
        Write::Config(config) => put_config(connection, config),
        Write::RemoveConfig(key) => remove_config(connection, key),
        Write::Object(object) => put_object(connection, object),
        Write::RemoveObject { project, stage, key } => remove_object(connection, project, stage, key),
        Write::Repository(repository) => put_repository(connection, repository),
        Write::Revision(revision) => put_revision(connection, revision),
        Write::Passed { service, content, commit, at } => execute(
            connection,
            "INSERT OR REPLACE INTO passed (project, stage, service, content, commit_id, at) VALUES (?, ?, ?, ?, ?, ?)",
            params![
                service.project.as_str(),
                service.stage.as_str(),
                service.service.as_str(),
                content.as_str(),
                commit.as_str(),
                at.0
            ],
        ),
        Write::Hold(hold) => put_hold(connection, hold),
        Write::Release(id) => execute(connection, "DELETE FROM holds WHERE id = ?", params![id.as_str()]),
        Write::Posted { repository, writer, posted } => put_posted(connection, repository, writer, posted, now),
        Write::Delivery { repository, id, at } => put_delivery(connection, repository, id, *at),
    }
}

fn put_run(connection: &Connection, run: &Versioned<Run>) -> Result<(), Error> {
    let Versioned { version, value } = run;
    let (config, plan, is_sequence) = match value {
        Run::Sequence(sequence) => (None, Some(sequence.plan.as_str()), true),
        Run::Deployment(deployment) => (Some(deployment.config.name.as_str()), None, false),
    };
    let service = value.service();
    let (repository, commit) = value.revision();
    let key: [Column<'_>; 1] = [("id", &value.id().as_str())];
    // What a run belongs to never changes.
    let fixed: [Column<'_>; 9] = [
        ("is_sequence", &is_sequence),
        ("repository", &repository.as_str()),
        ("project", &service.project.as_str()),
        ("stage", &service.stage.as_str()),
        ("service", &service.service.as_str()),
        ("config", &config),
        ("plan", &plan),
        ("commit_id", &commit.as_str()),
        ("created_at", &value.created_at().0),
    ];
    let columns: [Column<'_>; 2] = [("is_open", &!value.is_ended()), ("record", &encode(value)?)];
    if *version == 0 {
        insert(connection, "runs", key.iter().chain(&fixed).chain(&columns), value.id())
    } else {
        update(connection, "runs", &key, *version, &columns, value.id())
    }
}

fn append_event(connection: &Connection, run: &RunId, at: Timestamp, event: &Event) -> Result<(), Error> {
    let record = encode(event)?;
    execute(connection, "INSERT INTO events (run, at, record) VALUES (?, ?, ?)", params![run.as_str(), at.0, record])
}

fn put_config(connection: &Connection, config: &Versioned<ConfigState>) -> Result<(), Error> {
    let Versioned { version, value } = config;
    let columns: [Column<'_>; 4] = [
        ("repository", &value.repository.as_str()),
        ("digest", &value.object.digest.as_str()),
        ("is_settled", &value.is_settled()),
        ("record", &encode(value)?),
    ];
    let key = &value.key;
    let keys: [Column<'_>; 3] =
        [("project", &key.project.as_str()), ("stage", &key.stage.as_str()), ("name", &key.name)];
    put(connection, "configs", &keys, *version, &columns, key)
}

fn remove_config(connection: &Connection, key: &Versioned<ConfigKey>) -> Result<(), Error> {
    let Versioned { version, value } = key;
    let keys: [Column<'_>; 3] =
        [("project", &value.project.as_str()), ("stage", &value.stage.as_str()), ("name", &value.name)];
    remove(connection, "configs", &keys, *version, value)
}

fn put_object(connection: &Connection, object: &Versioned<ObjectState>) -> Result<(), Error> {
    let Versioned { version, value } = object;
    let key = &value.object.key;
    let columns: [Column<'_>; 3] = [
        ("repository", &value.repository.as_str()),
        ("digest", &value.object.digest.as_str()),
        ("record", &encode(value)?),
    ];
    let keys: [Column<'_>; 4] = [
        ("project", &value.project.as_str()),
        ("stage", &value.stage.as_str()),
        ("kind", &kind_text(&key.kind)),
        ("name", &key.name),
    ];
    put(connection, "objects", &keys, *version, &columns, key)
}

fn remove_object(
    connection: &Connection,
    project: &ProjectName,
    stage: &StageName,
    key: &Versioned<ObjectKey>,
) -> Result<(), Error> {
    let Versioned { version, value } = key;
    let keys: [Column<'_>; 4] = [
        ("project", &project.as_str()),
        ("stage", &stage.as_str()),
        ("kind", &kind_text(&value.kind)),
        ("name", &value.name),
    ];
    remove(connection, "objects", &keys, *version, value)
}

fn put_repository(connection: &Connection, repository: &Versioned<RepositoryState>) -> Result<(), Error> {
    let Versioned { version, value } = repository;
    let columns: [Column<'_>; 3] = [
        ("applied", &value.applied.as_ref().map(|commit| commit.as_str())),
        ("seen", &value.seen.as_ref().map(|commit| commit.as_str())),
        ("record", &encode(value)?),
    ];
    put(connection, "repositories", &[("name", &value.name.as_str())], *version, &columns, &value.name)
}

fn put_revision(connection: &Connection, revision: &RevisionState) -> Result<(), Error> {
    let (record, plan) = RevisionRecord::split(revision);
    if let Some(plan) = plan {
        let sql = "INSERT INTO plans (id, at, record) VALUES (?, ?, ?) \
                   ON CONFLICT (id) DO UPDATE SET at = excluded.at, record = excluded.record";
        execute(connection, sql, params![plan.id.as_str(), plan.at.0, encode(plan)?])?;
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

fn put_hold(connection: &Connection, hold: &Hold) -> Result<(), Error> {
    let sql = "INSERT INTO holds (id, since, record) VALUES (?, ?, ?) ON CONFLICT DO NOTHING";
    let values = params![hold.id.as_str(), hold.since.0, encode(hold)?];
    expect_one(connection.prepare_cached(sql)?.execute(values)?, &hold.id)
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

fn put_delivery(connection: &Connection, repository: &RepositoryName, id: &str, at: Timestamp) -> Result<(), Error> {
    let sql = "INSERT INTO deliveries (repository, id, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING";
    let added = connection.prepare_cached(sql)?.execute(params![repository.as_str(), id, at.0])?;
    expect_one(added, format_args!("delivery {id}"))
}

pub(super) fn execute(connection: &Connection, sql: &str, values: &[&dyn ToSql]) -> Result<(), Error> {
    connection.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

/// Compare and set: the row must be at version `expected`, or absent if that is 0, and gets the next version.
fn put(
    connection: &Connection,
    table: &str,
    keys: &[Column<'_>],
    expected: u64,
    columns: &[Column<'_>],
    what: impl Display,
) -> Result<(), Error> {
    if expected == 0 {
        insert(connection, table, keys.iter().chain(columns), what)
    } else {
        update(connection, table, keys, expected, columns, what)
    }
}

fn insert<'a>(
    connection: &Connection,
    table: &str,
    columns: impl Iterator<Item = &'a Column<'a>>,
    what: impl Display,
) -> Result<(), Error> {
    let (names, values): (Vec<_>, Vec<_>) = columns.copied().unzip();
    let marks = "?, ".repeat(values.len());
    let sql = format!("INSERT INTO {table} ({}, version) VALUES ({marks}1) ON CONFLICT DO NOTHING", names.join(", "));
    expect_one(connection.prepare_cached(&sql)?.execute(params_from_iter(values))?, what)
}

fn update(
    connection: &Connection,
    table: &str,
    keys: &[Column<'_>],
    expected: u64,
    columns: &[Column<'_>],
    what: impl Display,
) -> Result<(), Error> {
    let assignments: String = columns.iter().map(|(name, _)| format!("{name} = ?, ")).collect();
    let sql = format!("UPDATE {table} SET {assignments}version = version + 1 WHERE {}", condition(keys));
    let expected = i64::try_from(expected).unwrap_or(i64::MAX);
    let values = columns.iter().chain(keys).map(|(_, value)| *value).chain([&expected as &dyn ToSql]);
    expect_one(connection.prepare_cached(&sql)?.execute(params_from_iter(values))?, what)
}

/// Compare and delete: the row must be at version `expected`.
fn remove(
    connection: &Connection,
    table: &str,
    keys: &[Column<'_>],
    expected: u64,
    what: impl Display,
) -> Result<(), Error> {
    let sql = format!("DELETE FROM {table} WHERE {}", condition(keys));
    let expected = i64::try_from(expected).unwrap_or(i64::MAX);
    let values = keys.iter().map(|(_, value)| *value).chain([&expected as &dyn ToSql]);
    expect_one(connection.prepare_cached(&sql)?.execute(params_from_iter(values))?, what)
}

/// The row with these keys at the version that follows them.
fn condition(keys: &[Column<'_>]) -> String {
    let keys: String = keys.iter().map(|(name, _)| format!("{name} = ? AND ")).collect();
    format!("{keys}version = ?")
}

fn expect_one(changed: usize, what: impl Display) -> Result<(), Error> {
    if changed == 1 { Ok(()) } else { Err(Error::Conflict(what.to_string())) }
}
