//! The content of declared objects: each is stored once, by its digest, for as long as a record refers to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::Value;

use super::failure::Error;
use super::read::many;
use super::write::execute;
use crate::error::{Context, Failure};
use crate::model::ids::Digest;
use crate::store::declared::Declares;

/// A row that refers to content.
#[derive(Clone, Copy)]
pub(super) struct User {
    /// Its table.
    pub(super) table: &'static str,
    /// Its number there.
    pub(super) number: i64,
}

/// Stores what a row refers to, and that it is this row which does.
///
/// # Errors
/// If it cannot be written.
pub(super) fn put(connection: &Connection, user: User, record: &impl Declares) -> Result<(), Error> {
    let User { table, number } = user;
    let used = "SELECT content FROM content_users WHERE user_table = ? AND user = ?";
    let mut before: BTreeSet<i64> =
        many(connection, used, params![table, number], |row| Ok(row.get(0)?))?.into_iter().collect();
    for object in record.objects() {
        let content = number_of(connection, &object.digest, &object.content)?;
        if !before.remove(&content) {
            let sql = "INSERT OR IGNORE INTO content_users (user_table, user, content) VALUES (?, ?, ?)";
            execute(connection, sql, params![table, number, content])?;
        }
    }
    for content in before {
        let sql = "DELETE FROM content_users WHERE user_table = ? AND user = ? AND content = ?";
        execute(connection, sql, params![table, number, content])?;
    }
    Ok(())
}

/// The row of a content, which is made if there is none.
fn number_of(connection: &Connection, digest: &Digest, content: &Value) -> Result<i64, Error> {
    let sql = "SELECT number FROM contents WHERE digest = ?";
    if let Some(number) = connection.prepare_cached(sql)?.query_row([digest.as_str()], |row| row.get(0)).optional()? {
        return Ok(number);
    }
    let text = serde_json::to_string(content).or_stalled(|| "cannot write a content".to_owned())?;
    let sql = "INSERT INTO contents (digest, content) VALUES (?, ?)";
    connection.prepare_cached(sql)?.execute([digest.as_str(), &text])?;
    Ok(connection.last_insert_rowid())
}

/// Reads content, each once, and shares it between those who refer to it.
pub(super) struct Contents<'a> {
    connection: &'a Connection,
    read: BTreeMap<Digest, Arc<Value>>,
}

impl<'a> Contents<'a> {
    /// Nothing was read yet.
    pub(super) fn new(connection: &'a Connection) -> Self {
        Self { connection, read: BTreeMap::new() }
    }

    /// Gives the objects of a record their content.
    ///
    /// # Errors
    /// If a content is missing or damaged.
    pub(super) fn fill<T: Declares>(&mut self, mut record: T) -> Result<T, Error> {
        for object in record.objects_mut() {
            let object = Arc::make_mut(object);
            object.content = self.content(&object.digest)?;
        }
        Ok(record)
    }

    fn content(&mut self, digest: &Digest) -> Result<Arc<Value>, Error> {
        if let Some(content) = self.read.get(digest) {
            return Ok(Arc::clone(content));
        }
        let mut statement = self.connection.prepare_cached("SELECT content FROM contents WHERE digest = ?")?;
        let mut rows = statement.query([digest.as_str()])?;
        let row = rows.next()?.ok_or_else(|| damaged(digest, "is missing"))?;
        let text = row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?;
        let content: Value = serde_json::from_str(text).map_err(|error| damaged(digest, error))?;
        let content = Arc::new(content);
        self.read.insert(digest.clone(), Arc::clone(&content));
        Ok(content)
    }
}

fn damaged(digest: &Digest, why: impl std::fmt::Display) -> Failure {
    Failure::stalled(format!("the stored content `{digest}` {why}"))
        .hint("restore a backup with `launchway store restore FILE`")
}
