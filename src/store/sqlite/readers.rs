//! Read-only connections, a few at a time, on threads that may block.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::connection::open_for_reading;
use super::failure::Error;
use super::schema;
use crate::error::{Context, Failure, Result};

/// How many reads run at once: a read takes microseconds, and more threads than this would only wait for a core.
const CONCURRENT_READS: usize = 4;

/// The connections.
pub(super) struct Readers {
    pool: Arc<Pool>,
    permits: Arc<Semaphore>,
}

struct Pool {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    /// Opens a first connection and checks that the file can be read as it is.
    ///
    /// # Errors
    /// If there is no such file, or it is of another version or not ours.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let connection = open_for_reading(path)?;
        schema::check(&connection, path)?;
        let pool = Arc::new(Pool { path: path.to_owned(), idle: Mutex::new(vec![connection]) });
        Ok(Self { pool, permits: Arc::new(Semaphore::new(CONCURRENT_READS)) })
    }

    /// The file.
    pub(super) fn path(&self) -> &Path {
        &self.pool.path
    }

    /// Runs `read` on a connection of its own.
    pub(super) async fn read<T, F>(&self, read: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    {
        let permit = Arc::clone(&self.permits).acquire_owned().await.or_stalled(stopped)?;
        let pool = Arc::clone(&self.pool);
        let work = move || {
            let connection = pool.take()?;
            let result = read_at_once(&connection, read).map_err(|error| error.into_failure("read the store"));
            pool.put_back(connection);
            drop(permit);
            result
        };
        tokio::task::spawn_blocking(work).await.or_stalled(stopped)?
    }
}

/// Everything is read as it was at one time, so that nothing that a record refers to is deleted before it was read too.
fn read_at_once<T>(connection: &Connection, read: impl FnOnce(&Connection) -> Result<T, Error>) -> Result<T, Error> {
    let snapshot = connection.unchecked_transaction()?;
    let result = read(&snapshot)?;
    snapshot.finish()?;
    Ok(result)
}

fn stopped() -> String {
    "cannot read the store: it was shut down".to_owned()
}

impl Pool {
    fn take(&self) -> Result<Connection, Failure> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(|| open_for_reading(&self.path), Ok)
    }

    fn put_back(&self, connection: Connection) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }
}

impl fmt::Debug for Readers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readers").field("path", &self.pool.path).finish_non_exhaustive()
    }
}
