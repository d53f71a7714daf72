//! Who has the store: each process that takes it over shuts out the one before, and the first of all begins a life of it.

use rusqlite::{Connection, TransactionBehavior};

use crate::clock::{Ids, Ulids};
use crate::model::ids::Incarnation;
use crate::model::time::Timestamp;

/// Takes the store over: the number that this process writes under, and which life of the store it is.
pub(super) fn take_over(connection: &mut Connection, now: Timestamp) -> rusqlite::Result<(i64, Incarnation)> {
    let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let sql = "INSERT INTO fence (only_row, number, taken_at) VALUES (1, 1, ?1) \
               ON CONFLICT DO UPDATE SET number = number + 1, taken_at = ?1 RETURNING number, incarnation";
    let (fence, known): (i64, Option<String>) = step.query_row(sql, [now.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let incarnation = match known {
        Some(known) => known,
        None => begin_life(&step, now)?,
    };
    step.commit()?;
    Ok((fence, Incarnation::new(incarnation)))
}

/// What was seen in another life says nothing about what came after it: every repository is to be read anew, and what is
/// reported of it is written again. What serves may be newer than what is recorded, and what was being removed may be there
/// again.
fn begin_life(connection: &Connection, now: Timestamp) -> rusqlite::Result<String> {
    let incarnation = Ulids::default().next(now);
    connection.execute("UPDATE fence SET incarnation = ?", [&incarnation])?;
    // A damaged record stays as it is, and is reported when it is read.
    connection.execute("UPDATE repositories SET version = version + 1, seen = NULL", [])?;
    let forget = "UPDATE repositories SET record = json_set(record, '$.record.seen', NULL) WHERE json_valid(record)";
    connection.execute(forget, [])?;
    let removed = "CASE WHEN json_valid(record) THEN json_extract(record, '$.record.removed') END";
    connection.execute(&format!("DELETE FROM configs WHERE {removed}"), [])?;
    let reached = ", '$.record.inherited_version', json_extract(record, '$.record.latest_version')";
    for (table, reached) in [("configs", reached), ("objects", "")] {
        let inherit = format!("json_set(record, '$.record.inherited', ?{reached})");
        let next = format!("UPDATE {table} SET version = version + 1, record = {inherit} WHERE json_valid(record)");
        connection.execute(&next, [now.0])?;
    }
    connection.execute("UPDATE posted SET rendering = 0", [])?;
    Ok(incarnation)
}
