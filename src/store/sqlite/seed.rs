//! What generated values are derived from: made by the first process that has the store.

use aws_lc_rs::rand;
use rusqlite::{Connection, OptionalExtension as _};

use super::failure::failed;
use crate::error::{Context as _, Result};
use crate::model::seed::Seed;

/// Makes it, unless it is there.
///
/// # Errors
/// If the store cannot be written, or the machine gives no random numbers.
pub(super) fn make(connection: &Connection) -> Result<()> {
    let mut bytes = [0; 32];
    rand::fill(&mut bytes).or_transient(|| "the machine gives no random numbers".to_owned())?;
    let sql = "INSERT OR IGNORE INTO seed (only_row, bytes) VALUES (1, ?)";
    connection.execute(sql, [bytes]).map(drop).map_err(|error| failed("make the seed of generated values", error))
}

/// It, if it was made.
pub(super) fn read(connection: &Connection) -> rusqlite::Result<Option<Seed>> {
    let bytes: Option<[u8; 32]> = connection.query_row("SELECT bytes FROM seed", [], |row| row.get(0)).optional()?;
    Ok(bytes.map(Seed::new))
}
