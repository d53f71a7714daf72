//! Rows, and what they are made into.

use rusqlite::types::Value;
use rusqlite::{Connection, Params, Row, params_from_iter};

use super::content::Contents;
use super::failure::Error;
use crate::store::content::Refers;
use crate::store::record::{Record, decode};
use crate::store::{Damaged, Listing, RecordKey, Versioned};

type Result<T, E = Error> = std::result::Result<T, E>;

/// Conditions of a query that all must hold, and the values that they compare with.
#[derive(Default)]
pub(super) struct Conditions {
    sql: Vec<String>,
    values: Vec<Value>,
}

impl Conditions {
    /// `condition` has one `?`, for `value`; without a value it is left out.
    pub(super) fn add(&mut self, condition: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.sql.push(condition.to_owned());
            self.values.push(value.into());
        }
    }

    pub(super) fn equals(&mut self, column: &str, value: Option<impl Into<String>>) {
        self.add(&format!("{column} = ?"), value.map(Into::<String>::into));
    }

    /// Spelled out, so that an index on the rows of which `column` holds is used.
    pub(super) fn holds(&mut self, column: &str, value: Option<bool>) {
        match value {
            Some(true) => self.sql.push(column.to_owned()),
            Some(false) => self.sql.push(format!("NOT {column}")),
            None => {}
        }
    }

    pub(super) fn select<T>(
        self,
        connection: &Connection,
        select: &str,
        rest: &str,
        map: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let condition = if self.sql.is_empty() { "TRUE".to_owned() } else { self.sql.join(" AND ") };
        many(connection, &format!("{select} WHERE {condition} {rest}"), params_from_iter(self.values), map)
    }

    /// The same of what may be damaged: `key` names it.
    pub(super) fn list<T>(
        self,
        connection: &Connection,
        select: &str,
        rest: &str,
        read: impl FnMut(&Row<'_>) -> Result<T>,
        key: impl Fn(&Row<'_>) -> Result<RecordKey>,
    ) -> Result<Listing<T>> {
        Ok(self.select(connection, select, rest, or_damaged(read, key))?.into_iter().collect())
    }
}

pub(super) fn one<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    map: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Option<T>> {
    connection.prepare_cached(sql)?.query_and_then(params, map)?.next().transpose()
}

pub(super) fn many<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    map: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    connection.prepare_cached(sql)?.query_and_then(params, map)?.collect()
}

/// A row of `version, record`.
pub(super) fn versioned<T: Record>(row: &Row<'_>) -> Result<Versioned<T>> {
    Ok(Versioned { version: unsigned(row.get(0)?), value: record(row, 1)? })
}

/// Reads rows of `version, record` that refer to content.
pub(super) fn filled<'a, T: Refers>(connection: &'a Connection) -> impl FnMut(&Row<'_>) -> Result<Versioned<T>> + 'a {
    let mut contents = Contents::new(connection);
    move |row| {
        let Versioned { version, value } = versioned(row)?;
        Ok(Versioned { version, value: contents.fill(value)? })
    }
}

/// Reads rows that may hold what is damaged, which `key` names; a failure of the database is one of the whole.
pub(super) fn or_damaged<T>(
    mut read: impl FnMut(&Row<'_>) -> Result<T>,
    key: impl Fn(&Row<'_>) -> Result<RecordKey>,
) -> impl FnMut(&Row<'_>) -> Result<Result<T, Damaged>> {
    move |row| match read(row) {
        Err(Error::Record(failure)) => Ok(Err(Damaged { key: key(row)?, problem: failure.one_line() })),
        read => read.map(Ok),
    }
}

pub(super) fn record<T: Record>(row: &Row<'_>, column: usize) -> Result<T> {
    let bytes = row.get_ref(column)?.as_bytes().map_err(rusqlite::Error::from)?;
    Ok(decode(bytes)?)
}

pub(super) fn text(row: &Row<'_>, column: usize) -> Result<String> {
    Ok(row.get(column)?)
}

/// Versions are written by this program alone and never negative.
pub(super) fn unsigned(version: i64) -> u64 {
    u64::try_from(version).unwrap_or_default()
}
