//! Contents: each is stored once, by its digest, for as long as a record refers to it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, OptionalExtension as _, params};

use super::failure::Error;
use super::rows::many;
use super::write::execute;
use crate::error::Failure;
use crate::model::ids::Digest;
use crate::store::content::{Content, Refers, Stored};

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
pub(super) fn put(connection: &Connection, user: User, record: &impl Refers) -> Result<(), Error> {
    let User { table, number } = user;
    let used = "SELECT content FROM content_users WHERE user_table = ? AND user = ?";
    let mut before: BTreeSet<i64> =
        many(connection, used, params![table, number], |row| Ok(row.get(0)?))?.into_iter().collect();
    for content in record.contents() {
        let content = number_of(connection, content)?;
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
fn number_of(connection: &Connection, content: &dyn Content) -> Result<i64, Error> {
    let digest = content.digest().as_str();
    let sql = "SELECT number FROM contents WHERE digest = ?";
    if let Some(number) = connection.prepare_cached(sql)?.query_row([digest], |row| row.get(0)).optional()? {
        return Ok(number);
    }
    let sql = "INSERT INTO contents (digest, content) VALUES (?, ?)";
    connection.prepare_cached(sql)?.execute([digest, &content.text()?])?;
    Ok(connection.last_insert_rowid())
}

/// Reads content, each once, and shares it between those who refer to it.
pub(super) struct Contents<'a> {
    connection: &'a Connection,
    read: BTreeMap<Digest, Stored>,
}

impl<'a> Contents<'a> {
    /// Nothing was read yet.
    pub(super) fn new(connection: &'a Connection) -> Self {
        Self { connection, read: BTreeMap::new() }
    }

    /// Fills in what a record refers to.
    ///
    /// # Errors
    /// If a content is missing or damaged.
    pub(super) fn fill<T: Refers>(&mut self, mut record: T) -> Result<T, Error> {
        for content in record.contents_mut() {
            let stored = self.content(content.digest())?;
            content.fill(stored)?;
        }
        record.complete()?;
        Ok(record)
    }

    fn content(&mut self, digest: &Digest) -> Result<&Stored, Error> {
        let entry = match self.read.entry(digest.clone()) {
            Entry::Occupied(known) => return Ok(known.into_mut()),
            Entry::Vacant(entry) => entry,
        };
        let mut statement = self.connection.prepare_cached("SELECT content FROM contents WHERE digest = ?")?;
        let mut rows = statement.query([digest.as_str()])?;
        let row = rows.next()?.ok_or_else(|| damaged(digest, "is missing"))?;
        let text = row.get_ref(0)?.as_bytes().map_err(rusqlite::Error::from)?;
        let text = std::str::from_utf8(text).map_err(|error| damaged(digest, error))?;
        Ok(entry.insert(Stored::parse(text).map_err(|error| damaged(digest, error))?))
    }
}

fn damaged(digest: &Digest, why: impl std::fmt::Display) -> Failure {
    Failure::stalled(format!("the stored content `{digest}` {why}"))
        .hint("restore a backup with `launchway store restore FILE`")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::model::ids::{ConfigKey, Destination};
    use crate::model::state::ConfigState;
    use crate::model::time::Timestamp;
    use crate::store::{Retention, Transaction, Versioned, Write};
    use crate::testing::world::deployment_config;

    fn declared(name: &str, image: &str) -> ConfigState {
        let object = deployment_config(name, image, 1, json!({}));
        let key = ConfigKey { project: "shop".into(), stage: "dev".into(), name: name.into() };
        ConfigState::new(key, Destination::local("shop-dev".into()), "shop".into(), object.into(), "c1".into())
    }

    fn count(connection: &Connection) -> i64 {
        connection.query_row("SELECT count(*) FROM contents", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_content_is_stored_once_and_goes_with_the_last_record_that_refers_to_it() {
        let mut connection = Connection::open_in_memory().unwrap();
        super::super::migration::migrate(&mut connection, Path::new("test")).unwrap();
        let apply = |writes: Vec<Write>| {
            super::super::write::apply(&connection, &Transaction::of(writes), Timestamp(0)).unwrap();
            let retention = Retention { before: Timestamp(0), most: 1 };
            super::super::retention::delete_all(&connection, retention).unwrap();
            count(&connection)
        };
        let config = |version, value: ConfigState| Write::Config(Versioned { version, value }.shared());
        let (web, other) = (declared("web", "a"), declared("web", "b"));
        let twin = ConfigState { key: ConfigKey { stage: "production".into(), ..web.key.clone() }, ..web.clone() };
        assert_eq!(apply(vec![config(0, web.clone()), config(0, twin.clone())]), 1);
        assert_eq!(apply(vec![config(1, other)]), 2);
        let remove =
            |version, value: &ConfigState| Write::RemoveConfig(Versioned { version, value: value.key.clone() });
        assert_eq!(apply(vec![remove(1, &twin)]), 1);
        assert_eq!(apply(vec![remove(2, &web)]), 0);
    }
}
