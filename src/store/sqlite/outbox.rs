//! Actions that wait, and who performs them now.
//!
//! A claim says that a row is being performed. It lives in a table of the connection that writes, not in the file: it
//! ends with the process that made it, and costs no sync to disk.

use std::collections::BTreeSet;

use rusqlite::{Connection, params};

use super::failure::Error;
use super::read::{OUTBOX, outbox_row};
use super::rows::many;
use super::write::execute;
use crate::model::action::{Action, Lane, Priority, REPORTS};
use crate::model::ids::{CommitId, RepositoryName, RunId, WriterName};
use crate::model::time::Timestamp;
use crate::store::record::encode;
use crate::store::{Backlog, OutboxId, OutboxRow};

/// Of a connection that was just opened for writing.
pub(super) fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "PRAGMA temp_store = MEMORY;
         CREATE TEMP TABLE claims (id INTEGER PRIMARY KEY, lane TEXT NOT NULL, run TEXT NOT NULL) STRICT;
         CREATE INDEX temp.claims_by_run ON claims (run, lane);",
    )
}

/// Takes what is due in a lane, one row of each run; the rows of one run are performed one after the other.
pub(super) fn claim(connection: &Connection, lane: &Lane, now: Timestamp, limit: u32) -> Result<Vec<OutboxRow>, Error> {
    let lane = lane.to_string();
    let sql = longest_due();
    let mut due: Vec<(Option<Timestamp>, OutboxRow)> = Vec::new();
    for priority in Priority::ALL {
        let rows = many(connection, &sql, params![lane, priority as u8, now.0, limit], outbox_row)?;
        due.extend(rows.into_iter().map(|row| (row.due.map(|due| priority.turn(due)), row)));
    }
    due.sort_by_key(|(turn, row)| (*turn, row.id));
    let mut runs: BTreeSet<RunId> = BTreeSet::new();
    let mut rows: Vec<OutboxRow> = due.into_iter().map(|(_, row)| row).collect();
    rows.retain(|row| runs.insert(row.run.clone()));
    rows.truncate(limit as usize);
    let mut claim = connection.prepare_cached("INSERT INTO temp.claims (id, lane, run) VALUES (?, ?, ?)")?;
    for row in &rows {
        claim.execute(params![row.id.0, lane, row.run.as_str()])?;
    }
    Ok(rows)
}

/// What is due of one priority, longest first, of runs of which nothing is performed.
fn longest_due() -> String {
    format!(
        "{OUTBOX} WHERE lane = ?1 AND priority = ?2 AND due <= ?3 \
         AND NOT EXISTS (SELECT 1 FROM temp.claims WHERE claims.run = outbox.run AND claims.lane = ?1) \
         ORDER BY due, id LIMIT ?4"
    )
}

const NEXT_DUE: &str = "SELECT min(due) FROM outbox WHERE lane = ? AND priority = ? AND due > ?";

/// When the next row of a lane comes due.
pub(super) fn next_due(connection: &Connection, lane: &Lane, now: Timestamp) -> Result<Option<Timestamp>, Error> {
    let (lane, mut next) = (lane.to_string(), None);
    let mut statement = connection.prepare_cached(NEXT_DUE)?;
    for priority in Priority::ALL {
        let due: Option<i64> = statement.query_row(params![lane, priority as u8, now.0], |row| row.get(0))?;
        next = next.into_iter().chain(due).min();
    }
    Ok(next.map(Timestamp))
}

/// What waits in a lane.
pub(super) fn backlog(connection: &Connection, lane: &Lane) -> Result<Backlog, Error> {
    let mut statement = connection.prepare_cached("SELECT count(*), min(asked_at) FROM outbox WHERE lane = ?")?;
    let (count, oldest): (i64, Option<i64>) =
        statement.query_row(params![lane.to_string()], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(Backlog { count: u64::try_from(count).unwrap_or_default(), oldest: oldest.map(Timestamp) })
}

/// Ends a claim, if there is one.
pub(super) fn give_back(connection: &Connection, id: OutboxId) -> Result<(), Error> {
    execute(connection, "DELETE FROM temp.claims WHERE id = ?", params![id.0])
}

/// A replaced row gets a new id, so that whoever performs the old one cannot mark the new one done.
pub(super) fn ask(
    connection: &Connection,
    run: &RunId,
    action: &Action,
    due: Timestamp,
    at: Timestamp,
) -> Result<(), Error> {
    // Cheaper than `INSERT OR REPLACE`, before which SQLite has to be able to undo the one statement.
    withdraw(connection, run, &action.key())?;
    execute(
        connection,
        "INSERT INTO outbox (lane, priority, run, key, due, asked_at, record) VALUES (?, ?, ?, ?, ?, ?, ?)",
        params![
            action.lane().to_string(),
            action.priority() as u8,
            run.as_str(),
            action.key(),
            due.0,
            at.0,
            encode(action)?
        ],
    )
}

pub(super) fn ask_overtaken(
    connection: &Connection,
    repository: &RepositoryName,
    writer: &WriterName,
    at: Timestamp,
) -> Result<(), Error> {
    let sql = "SELECT DISTINCT commit_id FROM posted WHERE repository = ? AND writer = ? AND is_open ORDER BY 1";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([repository.as_str(), writer.as_str()], |row| row.get::<_, String>(0))?;
    for commit in rows.collect::<Result<Vec<String>, _>>()? {
        ask(connection, &RunId::new(REPORTS), &Action::report(repository, &CommitId::new(commit), writer), at, at)?;
    }
    Ok(())
}

pub(super) fn withdraw(connection: &Connection, run: &RunId, key: &str) -> Result<(), Error> {
    execute(connection, "DELETE FROM outbox WHERE run = ? AND key = ?", params![run.as_str(), key])
}

pub(super) fn done(connection: &Connection, id: OutboxId) -> Result<(), Error> {
    execute(connection, "DELETE FROM outbox WHERE id = ?", params![id.0])?;
    give_back(connection, id)
}

pub(super) fn postpone(connection: &Connection, id: OutboxId, due: Timestamp, problem: &str) -> Result<(), Error> {
    let sql = "UPDATE outbox SET due = ?, problem = ?, attempts = attempts + 1 WHERE id = ?";
    execute(connection, sql, params![due.0, problem, id.0])?;
    give_back(connection, id)
}

pub(super) fn await_something(
    connection: &Connection,
    id: OutboxId,
    due: Option<Timestamp>,
    reason: &str,
) -> Result<(), Error> {
    let sql = "UPDATE outbox SET due = ?, problem = ? WHERE id = ?";
    execute(connection, sql, params![due.map(|due| due.0), reason, id.0])?;
    give_back(connection, id)
}

pub(super) fn wake(connection: &Connection, id: OutboxId, due: Timestamp) -> Result<(), Error> {
    execute(connection, "UPDATE outbox SET due = min(due, ?) WHERE id = ?", params![due.0, id.0])
}

pub(super) fn revive(connection: &Connection, lane: &Lane, due: Timestamp, limit: u32) -> Result<(), Error> {
    let sql = "UPDATE outbox SET due = ?1 WHERE id IN \
               (SELECT id FROM outbox WHERE lane = ?2 AND due IS NULL ORDER BY id DESC LIMIT ?3)";
    execute(connection, sql, params![due.0, lane.to_string(), limit])
}

#[cfg(test)]
mod tests {
    use super::super::{connection, migration};
    use super::*;

    /// How SQLite goes about a statement.
    fn plan(connection: &Connection, sql: &str) -> Vec<String> {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let parameters = vec![rusqlite::types::Null; statement.parameter_count()];
        let lines = statement.query_map(rusqlite::params_from_iter(parameters), |row| row.get(3)).unwrap();
        lines.map(Result::unwrap).collect()
    }

    #[test]
    fn what_is_due_is_found_by_an_index_in_its_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let mut connection = connection::open_for_writing(&path).unwrap();
        migration::migrate(&mut connection, &path).unwrap();
        prepare(&connection).unwrap();
        let cases: [(String, &[&str]); 2] = [
            (
                longest_due(),
                &[
                    "SEARCH outbox USING INDEX outbox_by_turn (lane=? AND priority=? AND due<?)",
                    "CORRELATED SCALAR SUBQUERY 1",
                    "SEARCH temp.claims USING COVERING INDEX claims_by_run (run=? AND lane=?)",
                ],
            ),
            (
                NEXT_DUE.to_owned(),
                &["SEARCH outbox USING COVERING INDEX outbox_by_turn (lane=? AND priority=? AND due>?)"],
            ),
        ];
        for (sql, expected) in cases {
            let plan = plan(&connection, &sql);
            assert_eq!(plan, expected, "{sql}");
        }
    }
}
