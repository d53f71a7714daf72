//! Actions that wait, and who performs them now.
//!
//! A claim says that a row is being performed. It lives in a table of the connection that writes, not in the file: it
//! ends with the process that made it, and costs no sync to disk.

use rusqlite::{Connection, params};

use super::failure::Error;
use super::read::{OUTBOX, many, outbox_row};
use super::write::execute;
use crate::model::action::{Action, Lane};
use crate::model::ids::RunId;
use crate::model::time::Timestamp;
use crate::store::record::encode;
use crate::store::{OutboxId, OutboxRow};

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
    let sql = format!(
        "{OUTBOX} WHERE lane = ?1 AND due <= ?2 \
         AND NOT EXISTS (SELECT 1 FROM temp.claims WHERE claims.run = outbox.run AND claims.lane = ?1) \
         ORDER BY due, id LIMIT ?3"
    );
    let mut rows = many(connection, &sql, params![lane, now.0, limit], outbox_row)?;
    let mut claim = connection.prepare_cached("INSERT INTO temp.claims (id, lane, run) VALUES (?, ?, ?)")?;
    let mut runs: Vec<RunId> = Vec::new();
    rows.retain(|row| {
        let first = !runs.contains(&row.run);
        runs.push(row.run.clone());
        first
    });
    for row in &rows {
        claim.execute(params![row.id.0, lane, row.run.as_str()])?;
    }
    Ok(rows)
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
    execute(
        connection,
        "INSERT OR REPLACE INTO outbox (lane, run, key, due, asked_at, record) VALUES (?, ?, ?, ?, ?, ?)",
        params![action.lane().to_string(), run.as_str(), action.key(), due.0, at.0, encode(action)?],
    )
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
