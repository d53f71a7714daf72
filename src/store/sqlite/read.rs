//! What is read, as SQL.

use rusqlite::types::Value;
use rusqlite::{Connection, Params, Row, params, params_from_iter};

use super::failure::Error;
use crate::error::Failure;
use crate::model::action::Lane;
use crate::model::commit_status::Posted;
use crate::model::hold::Hold;
use crate::model::ids::{
    CommitId, ConfigKey, Digest, PlanId, ProjectName, RepositoryName, RunId, ServiceKey, StageName, WriterName,
};
use crate::model::object::{Kind, ObjectKey};
use crate::model::plan::Plan;
use crate::model::run::Run;
use crate::model::state::{ConfigState, ObjectState, RepositoryState, RevisionState};
use crate::model::time::Timestamp;
use crate::store::record::{Record, RevisionRecord, decode, kind_from, kind_text};
use crate::store::{AppliedDigest, EventRow, OutboxId, OutboxRow, RunFilter, Versioned};

type Result<T, E = Error> = std::result::Result<T, E>;

/// Fewer digits of a commit id than this name no revision.
const SHORTEST_PREFIX: usize = 4;

pub(super) fn run(connection: &Connection, id: &RunId) -> Result<Option<Versioned<Run>>> {
    one(connection, "SELECT version, record FROM runs WHERE id = ?", [id.as_str()], versioned)
}

pub(super) fn runs(connection: &Connection, filter: &RunFilter) -> Result<Vec<Versioned<Run>>> {
    let mut conditions = Conditions::default();
    conditions.equals("repository", filter.repository.as_ref().map(RepositoryName::as_str));
    conditions.equals("project", filter.project.as_ref().map(ProjectName::as_str));
    conditions.equals("stage", filter.stage.as_ref().map(StageName::as_str));
    conditions.equals("service", filter.service.as_deref());
    conditions.equals("config", filter.config.as_deref());
    conditions.equals("commit_id", filter.commit.as_ref().map(CommitId::as_str));
    conditions.holds("is_sequence", filter.sequences);
    conditions.holds("is_open", filter.open);
    let before = "(created_at, number) < (SELECT created_at, number FROM runs WHERE id = ?)";
    conditions.add(before, filter.before.as_ref().map(|run| run.as_str().to_owned()));
    let limit = if filter.limit == 0 { -1 } else { i64::from(filter.limit) };
    conditions.select(
        connection,
        "SELECT version, record FROM runs",
        &format!("ORDER BY created_at DESC, number DESC LIMIT {limit}"),
        versioned,
    )
}

pub(super) fn slot(connection: &Connection, service: &ServiceKey) -> Result<Vec<Versioned<Run>>> {
    let sql = "SELECT version, record FROM runs \
               WHERE project = ? AND stage = ? AND service = ? AND is_open AND is_sequence ORDER BY created_at, id";
    many(
        connection,
        sql,
        params![service.project.as_str(), service.stage.as_str(), service.service.as_str()],
        versioned,
    )
}

pub(super) fn events(connection: &Connection, run: Option<&RunId>, after: i64, limit: u32) -> Result<Vec<EventRow>> {
    let mut conditions = Conditions::default();
    conditions.equals("run", run.map(RunId::as_str));
    conditions.add("number > ?", Some(after));
    conditions.select(
        connection,
        "SELECT number, run, at, record FROM events",
        &format!("ORDER BY number LIMIT {limit}"),
        |row| {
            Ok(EventRow {
                number: row.get(0)?,
                run: RunId::new(row.get::<_, String>(1)?),
                at: Timestamp(row.get(2)?),
                event: record(row, 3)?,
            })
        },
    )
}

pub(super) fn config(connection: &Connection, key: &ConfigKey) -> Result<Option<Versioned<ConfigState>>> {
    let sql = "SELECT version, record FROM configs WHERE project = ? AND stage = ? AND name = ?";
    one(connection, sql, params![key.project.as_str(), key.stage.as_str(), key.name], versioned)
}

pub(super) fn configs(
    connection: &Connection,
    project: Option<&ProjectName>,
    stage: Option<&StageName>,
) -> Result<Vec<Versioned<ConfigState>>> {
    let mut conditions = Conditions::default();
    conditions.equals("project", project.map(ProjectName::as_str));
    conditions.equals("stage", stage.map(StageName::as_str));
    conditions.select(connection, "SELECT version, record FROM configs", "ORDER BY project, stage, name", versioned)
}

pub(super) fn objects(
    connection: &Connection,
    project: Option<&ProjectName>,
    stage: Option<&StageName>,
    kind: Option<&Kind>,
) -> Result<Vec<Versioned<ObjectState>>> {
    let mut conditions = Conditions::default();
    conditions.equals("project", project.map(ProjectName::as_str));
    conditions.equals("stage", stage.map(StageName::as_str));
    conditions.equals("kind", kind.map(kind_text));
    let order = "ORDER BY project, stage, kind, name";
    conditions.select(connection, "SELECT version, record FROM objects", order, versioned)
}

pub(super) fn object(
    connection: &Connection,
    project: &ProjectName,
    stage: &StageName,
    key: &ObjectKey,
) -> Result<Option<Versioned<ObjectState>>> {
    let sql = "SELECT version, record FROM objects WHERE project = ? AND stage = ? AND kind = ? AND name = ?";
    one(connection, sql, params![project.as_str(), stage.as_str(), kind_text(&key.kind), key.name], versioned)
}

pub(super) fn applied(connection: &Connection, project: &ProjectName, stage: &StageName) -> Result<Vec<AppliedDigest>> {
    let place = params![project.as_str(), stage.as_str()];
    let configs = "SELECT name, digest, is_settled FROM configs WHERE project = ?1 AND stage = ?2";
    let mut applied = many(connection, configs, place, |row| {
        let key = ObjectKey { kind: Kind::DeploymentConfig, name: row.get(0)? };
        Ok(AppliedDigest { key, digest: Digest::new(row.get::<_, String>(1)?), settled: row.get(2)? })
    })?;
    let objects = "SELECT kind, name, digest FROM objects WHERE project = ?1 AND stage = ?2";
    applied.extend(many(connection, objects, place, |row| {
        let key = ObjectKey { kind: kind_from(row.get(0)?), name: row.get(1)? };
        Ok(AppliedDigest { key, digest: Digest::new(row.get::<_, String>(2)?), settled: true })
    })?);
    applied.sort_by(|one, other| one.key.cmp(&other.key));
    Ok(applied)
}

pub(super) fn applied_stages(connection: &Connection, project: &ProjectName) -> Result<Vec<StageName>> {
    let sql =
        "SELECT stage FROM configs WHERE project = ?1 UNION SELECT stage FROM objects WHERE project = ?1 ORDER BY 1";
    many(connection, sql, [project.as_str()], |row| Ok(StageName::new(row.get::<_, String>(0)?)))
}

pub(super) fn repository(connection: &Connection, name: &RepositoryName) -> Result<Option<Versioned<RepositoryState>>> {
    one(connection, "SELECT version, record FROM repositories WHERE name = ?", [name.as_str()], versioned)
}

pub(super) fn repositories(connection: &Connection) -> Result<Vec<Versioned<RepositoryState>>> {
    many(connection, "SELECT version, record FROM repositories ORDER BY name", [], versioned)
}

const REVISIONS: &str = "SELECT revisions.record, plans.record FROM revisions LEFT JOIN plans ON plans.id = plan";

pub(super) fn revision(
    connection: &Connection,
    repository: &RepositoryName,
    commit: &str,
) -> Result<Option<RevisionState>> {
    let commit = commit.to_ascii_lowercase();
    if commit.len() < SHORTEST_PREFIX || !commit.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Ok(None);
    }
    // Every id that begins with the digits lies between them and them followed by the letter after `f`.
    let sql = format!("{REVISIONS} WHERE repository = ?1 AND commit_id BETWEEN ?2 AND ?2 || 'g' LIMIT 2");
    let mut found = many(connection, &sql, params![repository.as_str(), commit], joined)?;
    if found.len() > 1 {
        let problem = Failure::stalled(format!("`{commit}` is the beginning of several revisions of `{repository}`"));
        return Err(problem.hint("give more digits").into());
    }
    Ok(found.pop())
}

pub(super) fn revisions(
    connection: &Connection,
    repository: &RepositoryName,
    limit: u32,
) -> Result<Vec<RevisionState>> {
    let sql =
        format!("{REVISIONS} WHERE repository = ? ORDER BY revisions.at DESC, revisions.number DESC LIMIT {limit}");
    many(connection, &sql, [repository.as_str()], joined)
}

fn joined(row: &Row<'_>) -> Result<RevisionState> {
    let revision: RevisionRecord = record(row, 0)?;
    let plan = row.get_ref(1)?.as_str_or_null().map_err(rusqlite::Error::from)?.map(decode::<Plan>).transpose()?;
    Ok(revision.join(plan)?)
}

pub(super) fn plan(connection: &Connection, id: &PlanId) -> Result<Option<Plan>> {
    one(connection, "SELECT record FROM plans WHERE id = ?", [id.as_str()], |row| record(row, 0))
}

pub(super) fn has_passed(connection: &Connection, service: &ServiceKey, content: &Digest) -> Result<bool> {
    let sql = "SELECT 1 FROM passed WHERE project = ? AND stage = ? AND service = ? AND content = ?";
    let key = params![service.project.as_str(), service.stage.as_str(), service.service.as_str(), content.as_str()];
    Ok(connection.prepare_cached(sql)?.exists(key)?)
}

pub(super) fn holds(connection: &Connection) -> Result<Vec<Hold>> {
    many(connection, "SELECT record FROM holds ORDER BY since, id", [], |row| record(row, 0))
}

pub(super) fn posted(
    connection: &Connection,
    repository: &RepositoryName,
    writer: &WriterName,
    commit: &CommitId,
) -> Result<Vec<Posted>> {
    let sql = "SELECT rendering, record FROM posted \
               WHERE repository = ? AND writer = ? AND commit_id = ? ORDER BY context";
    many(connection, sql, [repository.as_str(), writer.as_str(), commit.as_str()], |row| {
        Ok(Posted { rendering: unsigned(row.get(0)?), status: record(row, 1)? })
    })
}

/// Events that retention deleted count too.
pub(super) fn last_event(connection: &Connection) -> Result<u64> {
    let number = one(connection, "SELECT seq FROM sqlite_sequence WHERE name = 'events'", [], |row| Ok(row.get(0)?))?;
    Ok(unsigned(number.unwrap_or_default()))
}

pub(super) fn was_delivered(connection: &Connection, repository: &RepositoryName, id: &str) -> Result<bool> {
    let sql = "SELECT 1 FROM deliveries WHERE repository = ? AND id = ?";
    Ok(connection.prepare_cached(sql)?.exists([repository.as_str(), id])?)
}

/// The columns that [`outbox_row`] reads.
pub(super) const OUTBOX: &str = "SELECT id, run, key, due, asked_at, attempts, problem, record FROM outbox";

pub(super) fn next_due(connection: &Connection, lane: &Lane, now: Timestamp) -> Result<Option<Timestamp>> {
    let mut statement = connection.prepare_cached("SELECT min(due) FROM outbox WHERE lane = ? AND due > ?")?;
    let due: Option<i64> = statement.query_row(params![lane.to_string(), now.0], |row| row.get(0))?;
    Ok(due.map(Timestamp))
}

pub(super) fn outbox(connection: &Connection, run: Option<&RunId>) -> Result<Vec<OutboxRow>> {
    let mut conditions = Conditions::default();
    conditions.equals("run", run.map(RunId::as_str));
    conditions.select(connection, OUTBOX, "ORDER BY id", outbox_row)
}

/// An action that cannot be read is no reason not to read the others.
pub(super) fn outbox_row(row: &Row<'_>) -> Result<OutboxRow> {
    let text = row.get_ref(7)?.as_str().map_err(rusqlite::Error::from)?;
    Ok(OutboxRow {
        id: OutboxId(row.get(0)?),
        run: RunId::new(row.get::<_, String>(1)?),
        key: row.get(2)?,
        due: row.get::<_, Option<i64>>(3)?.map(Timestamp),
        asked_at: Timestamp(row.get(4)?),
        attempts: row.get(5)?,
        problem: row.get(6)?,
        action: decode(text).map_err(|failure| failure.one_line()),
    })
}

/// Conditions of a query that all must hold, and the values that they compare with.
#[derive(Default)]
struct Conditions {
    sql: Vec<String>,
    values: Vec<Value>,
}

impl Conditions {
    /// `condition` has one `?`, for `value`; without a value it is left out.
    fn add(&mut self, condition: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.sql.push(condition.to_owned());
            self.values.push(value.into());
        }
    }

    fn equals(&mut self, column: &str, value: Option<impl Into<String>>) {
        self.add(&format!("{column} = ?"), value.map(Into::<String>::into));
    }

    /// Spelled out, so that an index on the rows of which `column` holds is used.
    fn holds(&mut self, column: &str, value: Option<bool>) {
        match value {
            Some(true) => self.sql.push(column.to_owned()),
            Some(false) => self.sql.push(format!("NOT {column}")),
            None => {}
        }
    }

    fn select<T>(
        self,
        connection: &Connection,
        select: &str,
        rest: &str,
        map: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let condition = if self.sql.is_empty() { "TRUE".to_owned() } else { self.sql.join(" AND ") };
        many(connection, &format!("{select} WHERE {condition} {rest}"), params_from_iter(self.values), map)
    }
}

pub(super) fn one<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    map: impl Fn(&Row<'_>) -> Result<T>,
) -> Result<Option<T>> {
    connection.prepare_cached(sql)?.query_and_then(params, map)?.next().transpose()
}

pub(super) fn many<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    map: impl Fn(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    connection.prepare_cached(sql)?.query_and_then(params, map)?.collect()
}

/// A row of `version, record`.
fn versioned<T: Record>(row: &Row<'_>) -> Result<Versioned<T>> {
    Ok(Versioned { version: unsigned(row.get(0)?), value: record(row, 1)? })
}

fn record<T: Record>(row: &Row<'_>, column: usize) -> Result<T> {
    let text = row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)?;
    Ok(decode(text)?)
}

/// Versions are written by this program alone and never negative.
fn unsigned(version: i64) -> u64 {
    u64::try_from(version).unwrap_or_default()
}
