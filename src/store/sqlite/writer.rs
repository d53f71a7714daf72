//! One thread that writes, with group commit: whoever asks while a commit is being synced to disk shares the next one.

use std::fmt;
use std::sync::Arc;
use std::thread::JoinHandle;

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use super::failure::{Error, failed};
use crate::error::{Context, Failure, Result};
use crate::store::CommitError;

/// Jobs that wait before those who ask have to.
const QUEUE: usize = 1024;
/// Jobs that share one sync to disk; bounds how long the first of them waits for the last.
const GROUP: usize = 256;

/// What is done; what it finds is kept until it is known to be committed.
type Work = Box<dyn FnOnce(&Connection) -> Result<(), Error> + Send>;
type Outcome = Result<(), CommitError>;

struct Job {
    work: Work,
    reply: oneshot::Sender<Outcome>,
}

/// The way to the thread that writes. Dropping it waits until what was asked is done.
pub(super) struct Writer {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread. `fence` is the number under which this process took the store over.
    pub(super) fn start(connection: Connection, fence: i64) -> Result<Self> {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let thread = std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || serve(connection, fence, queue))
            .or_transient(|| "cannot start the store's thread".to_owned())?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Has `work` done in a transaction; what it wrote is on disk when this returns what it found.
    pub(super) async fn perform<T, F>(&self, work: F) -> Result<T, CommitError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    {
        let stopped = || CommitError::Failed(Failure::stalled("the store was shut down"));
        let (reply, outcome) = oneshot::channel();
        let (found, finding) = oneshot::channel();
        // Nobody may wait for it any more; the work is done all the same.
        let work = move |connection: &Connection| work(connection).map(|value| drop(found.send(value)));
        let jobs = self.jobs.as_ref().ok_or_else(stopped)?;
        jobs.send(Job { work: Box::new(work), reply }).await.map_err(|_closed| stopped())?;
        outcome.await.map_err(|_closed| stopped())??;
        finding.await.map_err(|_closed| stopped())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the store's thread panicked");
        }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

fn serve(mut connection: Connection, fence: i64, mut queue: mpsc::Receiver<Job>) {
    while let Some(first) = queue.blocking_recv() {
        let mut group = vec![first];
        while group.len() < GROUP
            && let Ok(job) = queue.try_recv()
        {
            group.push(job);
        }
        let (works, replies): (Vec<_>, Vec<_>) = group.into_iter().map(|job| (job.work, job.reply)).unzip();
        let outcomes = commit_group(&mut connection, fence, works);
        for (reply, outcome) in replies.into_iter().zip(outcomes) {
            // Whoever asked may have gone; the work is done all the same.
            reply.send(outcome).ok();
        }
    }
}

/// Why no job of a group was committed.
enum GroupError {
    Fenced,
    Sqlite(Arc<rusqlite::Error>),
}

impl From<rusqlite::Error> for GroupError {
    fn from(error: rusqlite::Error) -> Self {
        GroupError::Sqlite(Arc::new(error))
    }
}

impl GroupError {
    fn outcome(&self) -> Outcome {
        Err(match self {
            GroupError::Fenced => CommitError::Fenced,
            GroupError::Sqlite(error) => CommitError::Failed(failed(WRITE, Arc::clone(error))),
        })
    }
}

const WRITE: &str = "write to the store";

/// Does all jobs in one transaction; each outcome is that of its own job.
fn commit_group(connection: &mut Connection, fence: i64, works: Vec<Work>) -> Vec<Outcome> {
    let jobs = works.len();
    match try_group(connection, fence, works) {
        Ok(outcomes) => outcomes,
        Err(error) => (0..jobs).map(|_| error.outcome()).collect(),
    }
}

fn try_group(connection: &mut Connection, fence: i64, works: Vec<Work>) -> Result<Vec<Outcome>, GroupError> {
    let group = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let owner: i64 = group.prepare_cached("SELECT number FROM fence")?.query_row([], |row| row.get(0))?;
    if owner != fence {
        return Err(GroupError::Fenced);
    }
    let outcomes = works.into_iter().map(|work| isolated(&group, work)).collect::<Result<_, GroupError>>()?;
    group.commit()?;
    Ok(outcomes)
}

/// Does one job so that its failure undoes nothing but itself.
fn isolated(group: &Connection, work: Work) -> Result<Outcome, GroupError> {
    let step = |sql: &str| group.prepare_cached(sql)?.execute([]);
    step("SAVEPOINT job")?;
    let outcome = match work(group) {
        Ok(()) => Ok(()),
        // Some errors, a full disk among them, make SQLite undo the whole transaction.
        Err(Error::Sqlite(error)) if group.is_autocommit() => return Err(error.into()),
        Err(error) => {
            step("ROLLBACK TO job")?;
            Err(match error {
                Error::Conflict(what) => CommitError::Conflict { what },
                other => CommitError::Failed(other.into_failure(WRITE)),
            })
        }
    };
    step("RELEASE job")?;
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Class;

    fn database() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        let sql =
            "CREATE TABLE fence (number); INSERT INTO fence VALUES (1); CREATE TABLE t (x); PRAGMA max_page_count = 20";
        connection.execute_batch(sql).unwrap();
        connection
    }

    fn insert(bytes: usize) -> Work {
        Box::new(move |connection| {
            connection.execute("INSERT INTO t VALUES (zeroblob(?))", [bytes as i64])?;
            Ok(())
        })
    }

    fn rows(connection: &Connection) -> i64 {
        connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_full_disk_undoes_the_whole_group_and_says_so_to_everybody() {
        let mut connection = database();
        for outcome in commit_group(&mut connection, 1, vec![insert(1), insert(1_000_000), insert(1)]) {
            let full = Failure::from(outcome.unwrap_err());
            assert_eq!(full.class(), Class::Transient);
            assert!(full.one_line().contains("the disk is full"), "{}", full.one_line());
        }
        assert_eq!(rows(&connection), 0);
        assert!(matches!(commit_group(&mut connection, 1, vec![insert(1)])[..], [Ok(())]));
        assert_eq!(rows(&connection), 1);
    }

    #[test]
    fn a_lost_fence_refuses_the_whole_group_before_any_work() {
        let mut connection = database();
        connection.execute("UPDATE fence SET number = 2", []).unwrap();
        let outcomes = commit_group(&mut connection, 1, vec![insert(1), insert(1)]);
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(CommitError::Fenced))), "{outcomes:?}");
        assert_eq!(rows(&connection), 0);
    }

    #[tokio::test]
    async fn what_was_asked_is_done_before_the_thread_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let connection = Connection::open(&path).unwrap();
        connection
            .execute_batch("CREATE TABLE fence (number); INSERT INTO fence VALUES (1); CREATE TABLE t (x)")
            .unwrap();
        let writer = Writer::start(connection, 1).unwrap();
        for _ in 0..5 {
            let asked = writer.perform(|connection| insert(1)(connection));
            // Polled once, so that the job is queued, then given up.
            assert!(futures::FutureExt::now_or_never(asked).is_none());
        }
        drop(writer);
        assert_eq!(rows(&Connection::open(&path).unwrap()), 5);
    }
}
