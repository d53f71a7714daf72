//! What there is to be said of a revision, as SQL: read at one time, and of what is new alone.

use rusqlite::{Connection, Row, params};

use super::content::Contents;
use super::failure::Error;
use super::read::{last_event, record_of, rest_of_plan};
use super::revisions::{next_planned, outline};
use super::rows::{many, one, record, unsigned};
use crate::model::hold::ProjectHolds;
use crate::model::ids::{CommitId, PlanId, RepositoryName, ServiceName};
use crate::model::run::Run;
use crate::model::state::{RepositoryState, RevisionState};
use crate::store::record::{PlanPart, Record, join_plan};
use crate::store::{KnownServices, MovedServices, RecordKey, RevisionFacts, RunsMark, SERVICES_AT_ONCE, ServiceFacts};

type Result<T, E = Error> = std::result::Result<T, E>;

pub(super) fn revision_facts(
    connection: &Connection,
    repository: &RepositoryName,
    commit: &CommitId,
    known: &KnownServices,
) -> Result<Option<RevisionFacts>> {
    let Some(revision) = outline(connection, repository, commit.as_str())? else { return Ok(None) };
    let commit = &revision.commit;
    let state = value::<RepositoryState>(connection, repository.clone().into())?;
    let project = revision.plan().map(|plan| plan.project.clone());
    let holds = project.map(|project| value::<ProjectHolds>(connection, project.into())).transpose()?.flatten();
    let moved = moved_services(connection, &revision, known)?;
    let first = &moved.services[..moved.services.len().min(SERVICES_AT_ONCE)];
    let plan = revision.plan().map_or_else(|| PlanId::new(""), |plan| plan.id.clone());
    let services = service_facts(connection, repository, commit, &plan, first)?;
    let newer = next_planned(connection, repository, commit)?;
    let event = last_event(connection)?;
    Ok(Some(RevisionFacts { event, revision, repository: state, newer, holds, moved, services }))
}

fn value<T: Record>(connection: &Connection, key: RecordKey) -> Result<Option<T>> {
    Ok(record_of::<T>(connection, &key)?.map(|stored| stored.value))
}

fn moved_services(connection: &Connection, revision: &RevisionState, known: &KnownServices) -> Result<MovedServices> {
    let of = [revision.commit.as_str(), revision.repository.as_str()];
    let deleted = "SELECT runs_deleted FROM revisions WHERE commit_id = ? AND repository = ?";
    let deleted: Option<i64> = one(connection, deleted, of, |row| Ok(row.get(0)?))?;
    // Found at the end of the index, however many runs there are.
    let moved = "SELECT max(moved) FROM runs INDEXED BY runs_by_move WHERE commit_id = ? AND repository = ?";
    let moved = one(connection, moved, of, |row| Ok(row.get::<_, Option<i64>>(0)?))?.flatten();
    let mark = RunsMark::new(revision, unsigned(moved.unwrap_or_default()), unsigned(deleted.unwrap_or_default()));
    let service = |row: &Row<'_>| Ok(ServiceName::new(row.get::<_, String>(0)?));
    let Some(since) = known.mark.as_ref().filter(|since| since.leads_to(&mark)) else {
        let sql = "SELECT service FROM plan_parts WHERE plan = ? \
                   UNION SELECT service FROM runs WHERE commit_id = ? AND repository = ? ORDER BY 1";
        let plan = mark.plan.as_ref().map_or("", PlanId::as_str);
        let services = many(connection, sql, [plan, of[0], of[1]], service)?;
        return Ok(MovedServices { mark, services, are_all: true });
    };
    let sql = "SELECT DISTINCT service FROM runs INDEXED BY runs_by_move \
               WHERE commit_id = ? AND repository = ? AND moved > ? ORDER BY 1";
    let moved = many(connection, sql, params![of[0], of[1], since.moved.cast_signed()], service)?;
    Ok(MovedServices { mark, services: known.with_moved(moved), are_all: false })
}

pub(super) fn service_facts(
    connection: &Connection,
    repository: &RepositoryName,
    commit: &CommitId,
    plan: &PlanId,
    services: &[ServiceName],
) -> Result<Vec<ServiceFacts>> {
    let (rest, mut contents) = (rest_of_plan(connection, plan)?, Contents::new(connection));
    let part = "SELECT record FROM plan_parts WHERE plan = ? AND service = ?";
    // The planner would rather walk all runs of the commit than sort the few of a service.
    let runs = "SELECT version, record FROM runs INDEXED BY runs_by_revision \
                WHERE commit_id = ? AND service = ? AND repository = ? \
                ORDER BY created_at DESC, number DESC";
    let mut found = Vec::new();
    for service in services {
        let name = service.as_str();
        let part = one(connection, part, [plan.as_str(), name], |row| contents.fill(record::<PlanPart>(row, 0)?))?;
        let runs = many(connection, runs, [commit.as_str(), name, repository.as_str()], |row| {
            contents.fill(record::<Run>(row, 1)?)
        })?;
        let plan = rest.clone().map(|rest| join_plan(rest, part.into_iter().collect()));
        found.push(ServiceFacts { service: service.clone(), plan, runs });
    }
    Ok(found)
}
