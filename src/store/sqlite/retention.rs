//! What is deleted when it is old.

use rusqlite::Connection;

use super::failure::Error;
use super::writer::Writer;
use crate::store::{CommitError, Retention};

/// Rows that one transaction deletes, so that no commit waits long behind it.
const BATCH: u32 = 1_000;

/// `?1`: the oldest time that stays; `?2`: how many rows to take. Revisions go before their plans.
const DELETIONS: [&str; 7] = [
    "DELETE FROM events WHERE number IN (
       SELECT number FROM events WHERE at < ?1
       AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = events.run AND runs.is_open) LIMIT ?2)",
    "DELETE FROM revisions WHERE number IN (
       SELECT number FROM revisions WHERE at < ?1
       AND NOT EXISTS (SELECT 1 FROM repositories
         WHERE name = revisions.repository AND (applied = commit_id OR seen = commit_id))
       AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.commit_id = revisions.commit_id AND runs.is_open) LIMIT ?2)",
    "DELETE FROM plans WHERE number IN (
       SELECT number FROM plans WHERE at < ?1
       AND NOT EXISTS (SELECT 1 FROM revisions WHERE revisions.plan = plans.id)
       AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.plan = plans.id AND runs.is_open) LIMIT ?2)",
    // Every time for the whole table, because content has no time: only who refers to it counts.
    "DELETE FROM contents WHERE number IN (
       SELECT number FROM contents WHERE ?1 IS NOT NULL
       AND NOT EXISTS (SELECT 1 FROM content_users WHERE content_users.content = contents.number) LIMIT ?2)",
    "DELETE FROM outbox WHERE id IN (
       SELECT id FROM outbox WHERE asked_at < ?1 AND (run = 'report' OR due IS NULL) LIMIT ?2)",
    "DELETE FROM posted WHERE rowid IN (SELECT rowid FROM posted WHERE at < ?1 LIMIT ?2)",
    "DELETE FROM deliveries WHERE (repository, id) IN (SELECT repository, id FROM deliveries WHERE at < ?1 LIMIT ?2)",
];

/// Deletes what is older than allowed, batch by batch; returns how many rows went.
pub(super) async fn retain(writer: &Writer, retention: Retention) -> Result<u64, CommitError> {
    let mut gone = 0;
    for sql in DELETIONS {
        loop {
            let rows = writer.perform(move |connection| delete(connection, sql, retention)).await?;
            gone += rows;
            if rows < u64::from(BATCH) {
                break;
            }
        }
    }
    Ok(gone)
}

fn delete(connection: &Connection, sql: &str, retention: Retention) -> Result<u64, Error> {
    let rows = connection.prepare_cached(sql)?.execute((retention.before.0, BATCH))?;
    Ok(u64::try_from(rows).unwrap_or(u64::MAX))
}
