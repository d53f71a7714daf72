//! What is read, as SQL.

use std::collections::BTreeMap;

use rusqlite::{Connection, Row, params, params_from_iter};

use super::content::Contents;
use super::failure::Error;
use super::place::{Place, place};
use super::rows::{Conditions, filled, many, one, or_damaged, record, text, unsigned, versioned};
use crate::model::commit_status::Posted;
use crate::model::hold::{Hold, ProjectHolds};
use crate::model::ids::{
    CommitId, ConfigKey, Digest, PlanId, ProjectName, RepositoryName, RunId, ServiceKey, ServiceName, StageName,
    WriterName,
};
use crate::model::object::{Kind, ObjectKey};
use crate::model::plan::Plan;
use crate::model::run::Run;
use crate::model::slot::{Delivered, SlotState};
use crate::model::state::{ConfigState, ObjectState, RepositoryState};
use crate::model::tag::SeenTags;
use crate::model::time::Timestamp;
use crate::model::transaction::ObjectPlace;
use crate::model::webhook_call::WebhookCalls;
use crate::store::content::Refers;
use crate::store::record::{PlanPart, Record, join_plan, kind_from, kind_text};
use crate::store::{AppliedDigest, EventRow, Listing, OutboxId, OutboxRow, RecordKey, RunFilter, Versioned};

type Result<T, E = Error> = std::result::Result<T, E>;

pub(super) fn runs(connection: &Connection, filter: &RunFilter) -> Result<Listing<Versioned<Run>>> {
    let mut conditions = Conditions::default();
    conditions.equals("repository", filter.repository.as_ref().map(RepositoryName::as_str));
    conditions.equals("project", filter.project.as_ref().map(ProjectName::as_str));
    conditions.equals("stage", filter.stage.as_ref().map(StageName::as_str));
    conditions.equals("service", filter.service.as_deref());
    conditions.equals("config", filter.config.as_deref());
    conditions.equals("commit_id", filter.commit.as_ref().map(CommitId::as_str));
    conditions.equals("context", filter.context.as_deref());
    conditions.holds("is_sequence", filter.sequences);
    conditions.holds("is_open", filter.open);
    let before = "(created_at, number) < (SELECT created_at, number FROM runs WHERE id = ?)";
    conditions.add(before, filter.before.as_ref().map(|run| run.as_str().to_owned()));
    let limit = if filter.limit == 0 { -1 } else { i64::from(filter.limit) };
    let order = format!("ORDER BY created_at DESC, number DESC LIMIT {limit}");
    let key = |row: &Row<'_>| Ok(RunId::new(text(row, 2)?).into());
    let select = format!("SELECT version, record, id FROM runs INDEXED BY {}", index(filter));
    conditions.list(connection, &select, &order, filled(connection), key)
}

/// Which runs are gone through for a filter. SQLite itself, which does not know how many there are of what, goes through all of a
/// project to find the open ones.
fn index(filter: &RunFilter) -> &'static str {
    let of_service = filter.project.is_some() && filter.stage.is_some() && filter.service.is_some();
    match filter {
        RunFilter { context: Some(_), .. } => "runs_by_context",
        RunFilter { config: Some(_), .. } => "runs_by_config",
        _ if of_service => "runs_by_service",
        RunFilter { commit: Some(_), .. } => "runs_by_commit",
        RunFilter { open: Some(true), .. } => "runs_open",
        RunFilter { project: Some(_), .. } => "runs_by_project",
        _ => "runs_by_time",
    }
}

/// The record of a key that refers to content.
pub(super) fn filled_record_of<T: Refers>(connection: &Connection, key: &RecordKey) -> Result<Option<Versioned<T>>> {
    read_one(connection, key, filled(connection))
}

/// The record of a key.
pub(super) fn record_of<T: Record>(connection: &Connection, key: &RecordKey) -> Result<Option<Versioned<T>>> {
    read_one(connection, key, versioned)
}

fn read_one<T>(
    connection: &Connection,
    key: &RecordKey,
    read: impl FnMut(&Row<'_>) -> Result<Versioned<T>>,
) -> Result<Option<Versioned<T>>> {
    let Place { table, keys } = place(key);
    let conditions: Vec<String> = keys.iter().map(|(name, _)| format!("{name} = ?")).collect();
    let sql = format!("SELECT version, record FROM {table} WHERE {}", conditions.join(" AND "));
    let values = params_from_iter(keys.iter().map(|(_, value)| value));
    let found = one(connection, &sql, values, or_damaged(read, |_| Ok(key.clone())))?;
    Ok(found.transpose().map_err(|damaged| damaged.failure())?)
}

pub(super) fn open_slots(connection: &Connection, project: Option<&ProjectName>) -> Result<Vec<Versioned<SlotState>>> {
    let mut conditions = Conditions::default();
    conditions.equals("project", project.map(ProjectName::as_str));
    conditions.holds("is_open", Some(true));
    let order = "ORDER BY project, stage, service";
    conditions.select(connection, "SELECT version, record FROM slots INDEXED BY slots_open", order, versioned)
}

pub(super) fn open_slot_keys(connection: &Connection, project: Option<&ProjectName>) -> Result<Vec<ServiceKey>> {
    let mut conditions = Conditions::default();
    conditions.equals("project", project.map(ProjectName::as_str));
    conditions.holds("is_open", Some(true));
    let order = "ORDER BY project, stage, service";
    let select = "SELECT project, stage, service FROM slots INDEXED BY slots_open";
    conditions.select(connection, select, order, |row| {
        let (project, stage) = (ProjectName::new(text(row, 0)?), StageName::new(text(row, 1)?));
        Ok(ServiceKey { project, stage, service: ServiceName::new(text(row, 2)?) })
    })
}

pub(super) fn delivered(
    connection: &Connection,
    project: &ProjectName,
    stage: &StageName,
    except: Option<&Digest>,
) -> Result<BTreeMap<ServiceName, Delivered>> {
    // Each part is one range of the index: what goes on as it was declared, which is nearly everything, is not touched.
    let parts = ["< ?3", "> ?3", "= ?3 AND deployed = 0", "IS NOT NULL AND ?3 IS NULL"].map(|procedure| {
        format!(
            "SELECT service, run, content, procedure, deployed FROM slots INDEXED BY slots_delivered \
             WHERE project = ?1 AND stage = ?2 AND run IS NOT NULL AND procedure {procedure}"
        )
    });
    let given = (project.as_str(), stage.as_str(), except.map(Digest::as_str));
    let rows = many(connection, &parts.join(" UNION ALL "), given, |row| {
        let (run, content) = (RunId::new(text(row, 1)?), Digest::new(text(row, 2)?));
        let procedure = Digest::new(text(row, 3)?);
        Ok((ServiceName::new(text(row, 0)?), Delivered { run, content, procedure, deployed: row.get(4)? }))
    })?;
    Ok(rows.into_iter().collect())
}

pub(super) fn attempts(
    connection: &Connection,
    repository: &RepositoryName,
    commit: &CommitId,
    service: &ServiceKey,
    sequence: Option<&str>,
) -> Result<u32> {
    let sql = "SELECT ifnull(max(attempt), 0) FROM runs WHERE project = ? AND stage = ? AND service = ? \
               AND commit_id = ? AND repository = ? AND sequence IS ? AND is_sequence";
    let ServiceKey { project, stage, service } = service;
    let (project, stage, service) = (project.as_str(), stage.as_str(), service.as_str());
    let values = params![project, stage, service, commit.as_str(), repository.as_str(), sequence];
    Ok(connection.prepare_cached(sql)?.query_row(values, |row| row.get(0))?)
}

pub(super) fn events(connection: &Connection, run: Option<&RunId>, after: i64, limit: u32) -> Result<Vec<EventRow>> {
    let mut conditions = Conditions::default();
    conditions.equals("run", run.map(RunId::as_str));
    conditions.add("number > ?", Some(after));
    conditions.select(connection, EVENTS, &format!("ORDER BY number LIMIT {limit}"), event)
}

pub(super) fn newest_events(
    connection: &Connection,
    run: Option<&RunId>,
    before: i64,
    limit: u32,
) -> Result<Vec<EventRow>> {
    let mut conditions = Conditions::default();
    conditions.equals("run", run.map(RunId::as_str));
    conditions.add("number < ?", Some(before));
    conditions.select(connection, EVENTS, &format!("ORDER BY number DESC LIMIT {limit}"), event)
}

const EVENTS: &str = "SELECT number, run, at, record FROM events";

fn event(row: &Row<'_>) -> Result<EventRow> {
    Ok(EventRow {
        number: row.get(0)?,
        run: RunId::new(row.get::<_, String>(1)?),
        at: Timestamp(row.get(2)?),
        event: record(row, 3)?,
    })
}

pub(super) fn config_keys(connection: &Connection) -> Result<Vec<ConfigKey>> {
    let sql = "SELECT project, stage, name FROM configs ORDER BY project, stage, name";
    many(connection, sql, [], |row| config_key(row, 0))
}

/// Reads the columns of a deployment config's key, of which `first` is the first.
fn config_key(row: &Row<'_>, first: usize) -> Result<ConfigKey> {
    let (project, stage) = (ProjectName::new(text(row, first)?), StageName::new(text(row, first + 1)?));
    Ok(ConfigKey { project, stage, name: text(row, first + 2)? })
}

pub(super) fn configs(
    connection: &Connection,
    project: Option<&ProjectName>,
    stage: Option<&StageName>,
) -> Result<Listing<Versioned<ConfigState>>> {
    let mut conditions = Conditions::default();
    conditions.equals("project", project.map(ProjectName::as_str));
    conditions.equals("stage", stage.map(StageName::as_str));
    let sql = "SELECT version, record, project, stage, name FROM configs";
    let key = |row: &Row<'_>| Ok(config_key(row, 2)?.into());
    conditions.list(connection, sql, "ORDER BY project, stage, name", filled(connection), key)
}

pub(super) fn configs_of(connection: &Connection, service: &ServiceKey) -> Result<Vec<Versioned<ConfigState>>> {
    let ServiceKey { project, stage, service } = service;
    let sql = "SELECT version, record FROM configs WHERE project = ? AND stage = ? AND service = ? ORDER BY name";
    many(connection, sql, (project.as_str(), stage.as_str(), service.as_str()), filled(connection))
}

pub(super) fn objects(
    connection: &Connection,
    project: Option<&ProjectName>,
    stage: Option<&StageName>,
    kind: Option<&Kind>,
) -> Result<Listing<Versioned<ObjectState>>> {
    let mut conditions = Conditions::default();
    conditions.equals("project", project.map(ProjectName::as_str));
    conditions.equals("stage", stage.map(StageName::as_str));
    conditions.equals("kind", kind.map(kind_text));
    let order = "ORDER BY project, stage, kind, name";
    let sql = "SELECT version, record, project, stage, kind, name FROM objects";
    conditions.list(connection, sql, order, filled(connection), |row| {
        let (project, stage) = (ProjectName::new(text(row, 2)?), StageName::new(text(row, 3)?));
        let key = ObjectKey { kind: kind_from(text(row, 4)?), name: text(row, 5)? };
        Ok(ObjectPlace { project, stage, key }.into())
    })
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

pub(super) fn repositories(connection: &Connection) -> Result<Listing<Versioned<RepositoryState>>> {
    let key = |row: &Row<'_>| Ok(RepositoryName::new(text(row, 2)?).into());
    let sql = "SELECT version, record, name FROM repositories";
    Conditions::default().list(connection, sql, "ORDER BY name", versioned, key)
}

pub(super) fn plan(connection: &Connection, id: &PlanId) -> Result<Option<Plan>> {
    let Some(rest) = rest_of_plan(connection, id)? else { return Ok(None) };
    let sql = "SELECT record FROM plan_parts WHERE plan = ? ORDER BY service";
    let mut contents = Contents::new(connection);
    let parts = many(connection, sql, [id.as_str()], |row| contents.fill(record::<PlanPart>(row, 0)?))?;
    Ok(Some(join_plan(rest, parts)))
}

pub(super) fn plan_of(connection: &Connection, id: &PlanId, service: &ServiceName) -> Result<Option<Plan>> {
    let sql = "SELECT record FROM plan_parts WHERE plan = ? AND service = ?";
    let part = one(connection, sql, [id.as_str(), service.as_str()], |row| {
        Contents::new(connection).fill(record::<PlanPart>(row, 0)?)
    })?;
    let Some(rest) = rest_of_plan(connection, id)? else { return Ok(None) };
    Ok(Some(join_plan(rest, part.into_iter().collect())))
}

pub(super) fn newest_plan_of(
    connection: &Connection,
    project: &ProjectName,
    service: &ServiceName,
) -> Result<Option<Plan>> {
    let sql = "SELECT plan FROM plan_parts WHERE project = ? AND service = ? ORDER BY number DESC LIMIT 1";
    let newest: Option<String> = one(connection, sql, [project.as_str(), service.as_str()], |row| Ok(row.get(0)?))?;
    newest.map_or(Ok(None), |id| plan_of(connection, &PlanId::new(id), service))
}

/// A plan without what it says of services.
pub(super) fn rest_of_plan(connection: &Connection, id: &PlanId) -> Result<Option<Plan>> {
    let sql = "SELECT record FROM plans WHERE id = ?";
    one(connection, sql, [id.as_str()], |row| Contents::new(connection).fill(record(row, 0)?))
}

pub(super) fn holds(connection: &Connection) -> Result<Listing<Hold>> {
    let key = |row: &Row<'_>| Ok(ProjectName::new(text(row, 2)?).into());
    let sql = "SELECT version, record, project FROM holds";
    let projects: Listing<Versioned<ProjectHolds>> =
        Conditions::default().list(connection, sql, "ORDER BY project", versioned, key)?;
    let mut found: Vec<Hold> = projects.found.into_iter().flat_map(|project| project.value.holds).collect();
    found.sort_by(|one, other| (one.since, &one.id).cmp(&(other.since, &other.id)));
    Ok(Listing { found, damaged: projects.damaged })
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

pub(super) fn webhook_calls(connection: &Connection, repository: &RepositoryName) -> Result<WebhookCalls> {
    let sql = "SELECT record FROM webhook_calls WHERE repository = ?";
    Ok(one(connection, sql, [repository.as_str()], |row| record(row, 0))?.unwrap_or_default())
}

pub(super) fn seen_tags(connection: &Connection, repository: &RepositoryName) -> Result<Option<SeenTags>> {
    let sql = "SELECT record FROM tags WHERE repository = ?";
    one(connection, sql, [repository.as_str()], |row| record(row, 0))
}

/// The columns that [`outbox_row`] reads.
pub(super) const OUTBOX: &str = "SELECT id, run, key, due, asked_at, attempts, problem, record FROM outbox";

pub(super) fn outbox(connection: &Connection, run: Option<&RunId>) -> Result<Vec<OutboxRow>> {
    let mut conditions = Conditions::default();
    conditions.equals("run", run.map(RunId::as_str));
    conditions.select(connection, OUTBOX, "ORDER BY id", outbox_row)
}

/// An action that cannot be read is no reason not to read the others.
pub(super) fn outbox_row(row: &Row<'_>) -> Result<OutboxRow> {
    Ok(OutboxRow {
        id: OutboxId(row.get(0)?),
        run: RunId::new(row.get::<_, String>(1)?),
        key: row.get(2)?,
        due: row.get::<_, Option<i64>>(3)?.map(Timestamp),
        asked_at: Timestamp(row.get(4)?),
        attempts: row.get(5)?,
        problem: row.get(6)?,
        action: match record(row, 7) {
            Err(Error::Record(failure)) => Err(failure.one_line()),
            read => Ok(read?),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::{connection, migration};
    use super::*;

    #[test]
    fn runs_are_found_by_the_index_that_leads_to_the_fewest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let mut connection = connection::open_for_writing(&path).unwrap();
        migration::migrate(&mut connection, &path).unwrap();
        let of_project = || RunFilter { project: Some("shop".into()), limit: 50, ..RunFilter::default() };
        let of_service = || RunFilter { stage: Some("dev".into()), service: Some("web".to_owned()), ..of_project() };
        let open = Some(true);
        for (filter, expected) in [
            (RunFilter::default(), "runs_by_time"),
            (RunFilter { open, ..RunFilter::default() }, "runs_open"),
            (of_project(), "runs_by_project"),
            (RunFilter { open, ..of_project() }, "runs_open"),
            (RunFilter { open: Some(false), ..of_project() }, "runs_by_project"),
            (of_service(), "runs_by_service"),
            (RunFilter { open, ..of_service() }, "runs_by_service"),
            (RunFilter { commit: Some("aa".into()), ..of_project() }, "runs_by_commit"),
            (RunFilter { commit: Some("aa".into()), ..of_service() }, "runs_by_service"),
            (RunFilter { config: Some("web".to_owned()), ..of_service() }, "runs_by_config"),
            (RunFilter { context: Some("c".to_owned()), ..of_project() }, "runs_by_context"),
        ] {
            assert_eq!(index(&filter), expected, "{filter:?}");
            assert!(runs(&connection, &filter).unwrap().whole().unwrap().is_empty(), "SQLite takes it: {filter:?}");
        }
    }
}
