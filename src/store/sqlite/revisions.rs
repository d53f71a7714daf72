//! Which revisions are known, and in which order, as SQL.

use rusqlite::{Connection, Row, params};

use super::failure::Error;
use super::read::{plan, rest_of_plan};
use super::rows::{many, one, record};
use crate::error::Failure;
use crate::model::ids::{CommitId, PlanId, RepositoryName};
use crate::model::plan::Plan;
use crate::model::state::RevisionState;
use crate::store::record::RevisionRecord;

type Result<T, E = Error> = std::result::Result<T, E>;

const REVISIONS: &str = "SELECT record, plan FROM revisions";

pub(super) fn revision(
    connection: &Connection,
    repository: &RepositoryName,
    commit: &str,
) -> Result<Option<RevisionState>> {
    one_revision(connection, repository, commit, plan)
}

/// The same with a plan that says nothing of services.
pub(super) fn outline(
    connection: &Connection,
    repository: &RepositoryName,
    commit: &str,
) -> Result<Option<RevisionState>> {
    one_revision(connection, repository, commit, rest_of_plan)
}

/// How a revision's plan is read.
type ReadPlan = fn(&Connection, &PlanId) -> Result<Option<Plan>>;

fn one_revision(
    connection: &Connection,
    repository: &RepositoryName,
    commit: &str,
    plan: ReadPlan,
) -> Result<Option<RevisionState>> {
    let Some(commit) = CommitId::word(commit) else { return Ok(None) };
    // Every id that begins with the digits lies between them and them followed by the letter after `f`.
    let sql = format!("{REVISIONS} WHERE repository = ?1 AND commit_id BETWEEN ?2 AND ?2 || 'g' LIMIT 2");
    let values = params![repository.as_str(), commit.as_str()];
    let mut found = many(connection, &sql, values, |row| joined(connection, row, plan))?;
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
    newest_revisions(connection, repository, limit, plan)
}

/// The same with plans that say nothing of services.
pub(super) fn outlines(connection: &Connection, repository: &RepositoryName, limit: u32) -> Result<Vec<RevisionState>> {
    newest_revisions(connection, repository, limit, rest_of_plan)
}

fn newest_revisions(
    connection: &Connection,
    repository: &RepositoryName,
    limit: u32,
    plan: ReadPlan,
) -> Result<Vec<RevisionState>> {
    let sql =
        format!("{REVISIONS} WHERE repository = ? ORDER BY revisions.at DESC, revisions.number DESC LIMIT {limit}");
    many(connection, &sql, [repository.as_str()], |row| joined(connection, row, plan))
}

fn joined(connection: &Connection, row: &Row<'_>, plan: ReadPlan) -> Result<RevisionState> {
    let revision: RevisionRecord = record(row, 0)?;
    let id = row.get_ref(1)?.as_str_or_null().map_err(rusqlite::Error::from)?.map(PlanId::new);
    let plan = id.map(|id| plan(connection, &id)).transpose()?.flatten();
    Ok(revision.join(plan)?)
}

pub(super) fn next_planned(
    connection: &Connection,
    repository: &RepositoryName,
    commit: &CommitId,
) -> Result<Option<CommitId>> {
    let sql = "SELECT newer.commit_id FROM revisions AS newer JOIN revisions AS this USING (repository) \
               WHERE this.repository = ? AND this.commit_id = ? AND newer.plan IS NOT NULL \
               AND (newer.at, newer.number) > (this.at, this.number) ORDER BY newer.at, newer.number LIMIT 1";
    let values = [repository.as_str(), commit.as_str()];
    one(connection, sql, values, |row| Ok(CommitId::new(row.get::<_, String>(0)?)))
}

pub(super) fn overtaken_by(
    connection: &Connection,
    repository: &RepositoryName,
    commit: &CommitId,
) -> Result<Vec<CommitId>> {
    let sql = "SELECT older.commit_id FROM revisions AS older JOIN revisions AS this USING (repository) \
               WHERE this.repository = ? AND this.commit_id = ? AND this.plan IS NOT NULL \
               AND (older.at, older.number) < (this.at, this.number) \
               AND NOT EXISTS (SELECT 1 FROM revisions AS first \
                 WHERE first.repository = this.repository AND first.plan IS NOT NULL \
                 AND (first.at, first.number) > (older.at, older.number) \
                 AND (first.at, first.number) < (this.at, this.number)) \
               ORDER BY older.at DESC, older.number DESC";
    let values = [repository.as_str(), commit.as_str()];
    many(connection, sql, values, |row| Ok(CommitId::new(row.get::<_, String>(0)?)))
}
