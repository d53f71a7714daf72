//! Read-only connections, a few, each with a thread of its own: what large reads leave to the allocator is then kept by a
//! few threads, and a slow remote or disk, which holds threads up elsewhere, keeps no read waiting.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::{Semaphore, oneshot};

use super::connection::open_for_reading;
use super::failure::Error;
use super::schema;
use crate::error::{Context, Failure, Result};

/// How many reads run at once: a read takes microseconds, and more threads than this would only wait for a core.
const CONCURRENT_READS: usize = 4;

/// What is read, and then whom it is handed to.
type Work = Box<dyn FnOnce(&Connection) -> Reply + Send>;
type Reply = Box<dyn FnOnce() + Send>;

/// The threads that read.
pub(super) struct Readers {
    pool: Arc<Pool>,
    permits: Arc<Semaphore>,
}

struct Pool {
    path: PathBuf,
    idle: Mutex<Vec<Reader>>,
}

/// A thread with its connection. It ends when nobody can ask it any more.
struct Reader {
    work: mpsc::Sender<Work>,
    thread: JoinHandle<()>,
}

impl Readers {
    /// Opens a first connection and checks that the file can be read as it is.
    ///
    /// # Errors
    /// If there is no such file, or it is of another version or not ours.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let connection = open_for_reading(path)?;
        schema::check(&connection, path)?;
        let pool = Arc::new(Pool { path: path.to_owned(), idle: Mutex::new(vec![Reader::start(connection)?]) });
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
        let (reply, answer) = oneshot::channel();
        let work = move |connection: &Connection| -> Reply {
            let result = read_at_once(connection, read).map_err(|error| error.into_failure("read the store"));
            Box::new(move || drop(reply.send(result))) // whoever asked may have gone
        };
        self.ask(Box::new(work)).await?;
        answer.await.or_stalled(stopped)?
    }

    /// Has a reader work, which is idle again before its answer is known.
    async fn ask(&self, work: Work) -> Result<()> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.or_stalled(stopped)?;
        let (pool, reader) = (Arc::clone(&self.pool), self.pool.take()?);
        let asked = reader.work.clone();
        let work = move |connection: &Connection| -> Reply {
            let reply = work(connection);
            pool.idle().push(reader);
            drop(permit);
            reply
        };
        asked.send(Box::new(work)).map_err(|_closed| Failure::stalled(stopped()))
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        for Reader { work, thread } in self.pool.idle().drain(..) {
            drop(work);
            if thread.join().is_err() {
                tracing::error!("a thread that reads the store panicked");
            }
        }
    }
}

/// Everything is read as it was at one time, so that nothing that a record refers to is deleted before it was read too.
fn read_at_once<T>(connection: &Connection, read: impl FnOnce(&Connection) -> Result<T, Error>) -> Result<T, Error> {
    // Kept statements: to parse these two words takes as long as many a read.
    let step = |sql: &str| connection.prepare_cached(sql)?.execute([]);
    step("BEGIN")?;
    let result = read(connection);
    let ended = step("ROLLBACK"); // it wrote nothing
    let found = result?;
    ended?;
    Ok(found)
}

fn stopped() -> String {
    "cannot read the store: it was shut down".to_owned()
}

impl Pool {
    /// The one that read last, whose connection and memory are warm; another one if all are busy.
    fn take(&self) -> Result<Reader, Failure> {
        let idle = self.idle().pop();
        idle.map_or_else(|| Reader::start(open_for_reading(&self.path)?), Ok)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Reader>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reader {
    fn start(connection: Connection) -> Result<Self> {
        let (work, queue) = mpsc::channel::<Work>();
        let thread = std::thread::Builder::new().name("store-reader".to_owned());
        let thread = thread.spawn(move || queue.iter().for_each(|work| work(&connection)()));
        Ok(Self { work, thread: thread.or_transient(|| "cannot start a thread of the store".to_owned())? })
    }
}

impl fmt::Debug for Readers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readers").field("path", &self.pool.path).finish_non_exhaustive()
    }
}
