//! What SQLite's errors mean for people.

use std::sync::Arc;

use rusqlite::ErrorCode;

use crate::error::Failure;

/// Why a statement or a record was not read or written.
#[derive(Debug)]
pub(super) enum Error {
    /// A record is not at the version that was expected.
    Conflict(String),
    /// A record cannot be read or written.
    Record(Failure),
    /// SQLite says no.
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Error::Sqlite(error)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Error::Record(failure)
    }
}

impl Error {
    /// The same for people. `doing` completes "cannot …".
    pub(super) fn into_failure(self, doing: &str) -> Failure {
        match self {
            Error::Conflict(what) => Failure::transient(format!("`{what}` changed meanwhile")),
            Error::Record(failure) => failure,
            Error::Sqlite(error) => failed(doing, error),
        }
    }
}

const REPAIR: &str = "stop the daemon; then restore a backup with `launchway store restore FILE`, or move `store.db`, \
                      `store.db-wal` and `store.db-shm` away, and it rebuilds its state from the repositories";

/// A failed operation on the database, with what to do about it. `doing` completes "cannot …".
pub(super) fn failed(doing: &str, error: impl Into<Arc<rusqlite::Error>>) -> Failure {
    let error = error.into();
    let failure = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => Failure::transient(format!("cannot {doing}: the disk is full"))
            .hint("free some space where the state folder is; nothing that was acknowledged is lost"),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            Failure::stalled(format!("cannot {doing}: the state folder is not writable"))
                .hint("make the folder and the files in it writable for the user who runs the daemon")
        }
        Some(ErrorCode::CannotOpen) => Failure::stalled(format!("cannot {doing}: the file cannot be opened"))
            .hint("check that the state folder exists and that this user may read and write it"),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            Failure::stalled(format!("cannot {doing}: the file is damaged")).hint(REPAIR)
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            Failure::transient(format!("cannot {doing}: another process keeps the file locked"))
        }
        Some(ErrorCode::SystemIoFailure) => {
            Failure::transient(format!("cannot {doing}: the disk does not read or write"))
                .hint("look into the system's log for errors of the disk")
        }
        _ => Failure::stalled(format!("cannot {doing}")),
    };
    failure.because(error)
}
