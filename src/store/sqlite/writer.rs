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

type Outcome = Result<(), CommitError>;

/// What is done in a transaction, for somebody who waits for it.
trait Job: Send {
    /// Does it, and keeps what it finds until that is known to be committed. It is done anew where another has undone it.
    fn work(&mut self, connection: &Connection) -> Result<(), Error>;

    /// Answers whoever has asked, who may have gone.
    fn answer(self: Box<Self>, outcome: Outcome);
}

struct Asked<T, F> {
    work: F,
    found: Option<T>,
    reply: oneshot::Sender<Result<T, CommitError>>,
}

impl<T, F> Job for Asked<T, F>
where
    T: Send,
    F: FnMut(&Connection) -> Result<T, Error> + Send,
{
    fn work(&mut self, connection: &Connection) -> Result<(), Error> {
        self.found = Some((self.work)(connection)?);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Outcome) {
        let Self { found, reply, .. } = *self;
        outcome.map(|()| found).transpose().map(|answer| reply.send(answer).ok());
    }
}

/// The way to the thread that writes. Dropping it waits until what was asked is done.
pub(super) struct Writer {
    jobs: Option<mpsc::Sender<Box<dyn Job>>>,
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
        F: FnMut(&Connection) -> Result<T, Error> + Send + 'static,
    {
        let stopped = || CommitError::Failed(Failure::stalled("the store was shut down"));
        let (reply, answer) = oneshot::channel();
        let jobs = self.jobs.as_ref().ok_or_else(stopped)?;
        jobs.send(Box::new(Asked { work, found: None, reply })).await.map_err(|_closed| stopped())?;
        answer.await.map_err(|_closed| stopped())?
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

fn serve(mut connection: Connection, fence: i64, mut queue: mpsc::Receiver<Box<dyn Job>>) {
    while let Some(first) = queue.blocking_recv() {
        let mut group = vec![first];
        while group.len() < GROUP
            && let Ok(job) = queue.try_recv()
        {
            group.push(job);
        }
        let outcomes = commit_group(&mut connection, fence, &mut group);
        for (job, outcome) in group.into_iter().zip(outcomes) {
            job.answer(outcome);
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

/// Does all jobs in one transaction; each outcome is that of its own job. Where one fails halfway, each gets a transaction of
/// its own: a savepoint before each would have SQLite copy every page that a job changes, and hardly any fails so.
fn commit_group(connection: &mut Connection, fence: i64, jobs: &mut [Box<dyn Job>]) -> Vec<Outcome> {
    match try_group(connection, fence, jobs) {
        Ok(Ok(outcomes)) => outcomes,
        Ok(Err(error)) if jobs.len() == 1 => vec![Err(refused(error))],
        Ok(Err(_)) => jobs.chunks_mut(1).flat_map(|job| commit_group(connection, fence, job)).collect(),
        Err(error) => jobs.iter().map(|_| error.outcome()).collect(),
    }
}

/// The same, or the error of a job that had written something by then, which is undone with everything else.
fn try_group(
    connection: &mut Connection,
    fence: i64,
    jobs: &mut [Box<dyn Job>],
) -> Result<Result<Vec<Outcome>, Error>, GroupError> {
    let group = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let owner: i64 = group.prepare_cached("SELECT number FROM fence")?.query_row([], |row| row.get(0))?;
    if owner != fence {
        return Err(GroupError::Fenced);
    }
    let mut outcomes = Vec::with_capacity(jobs.len());
    for job in jobs {
        let before = group.total_changes();
        match job.work(&group) {
            Ok(()) => outcomes.push(Ok(())),
            // Some errors, a full disk among them, make SQLite undo the whole transaction.
            Err(Error::Sqlite(error)) if group.is_autocommit() => return Err(error.into()),
            Err(error) if group.total_changes() == before => outcomes.push(Err(refused(error))),
            Err(error) => return Ok(Err(error)),
        }
    }
    group.commit()?;
    Ok(Ok(outcomes))
}

fn refused(error: Error) -> CommitError {
    match error {
        Error::Conflict(what) => CommitError::Conflict { what },
        other => CommitError::Failed(other.into_failure(WRITE)),
    }
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

    /// Writes a row, and then fails if it is to.
    fn insert(bytes: usize, fails: bool) -> impl FnMut(&Connection) -> Result<(), Error> + Send {
        move |connection| {
            connection.execute("INSERT INTO t VALUES (zeroblob(?))", [bytes as i64])?;
            if fails { Err(Error::Conflict("a row".to_owned())) } else { Ok(()) }
        }
    }

    fn jobs(works: impl IntoIterator<Item = (usize, bool)>) -> Vec<Box<dyn Job>> {
        let job = |(bytes, fails)| {
            let (reply, _) = oneshot::channel();
            Box::new(Asked { work: insert(bytes, fails), found: None, reply }) as Box<dyn Job>
        };
        works.into_iter().map(job).collect()
    }

    fn committed(connection: &mut Connection, works: &[(usize, bool)]) -> Vec<Outcome> {
        commit_group(connection, 1, &mut jobs(works.iter().copied()))
    }

    fn rows(connection: &Connection) -> i64 {
        connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_full_disk_undoes_the_whole_group_and_says_so_to_everybody() {
        let mut connection = database();
        for outcome in committed(&mut connection, &[(1, false), (1_000_000, false), (1, false)]) {
            let full = Failure::from(outcome.unwrap_err());
            assert_eq!(full.class(), Class::Transient);
            assert!(full.one_line().contains("the disk is full"), "{}", full.one_line());
        }
        assert_eq!(rows(&connection), 0);
        assert!(matches!(committed(&mut connection, &[(1, false)])[..], [Ok(())]));
        assert_eq!(rows(&connection), 1);
    }

    #[test]
    fn a_lost_fence_refuses_the_whole_group_before_any_work() {
        let mut connection = database();
        connection.execute("UPDATE fence SET number = 2", []).unwrap();
        let outcomes = committed(&mut connection, &[(1, false), (1, false)]);
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(CommitError::Fenced))), "{outcomes:?}");
        assert_eq!(rows(&connection), 0);
    }

    #[test]
    fn what_fails_halfway_undoes_nothing_but_itself() {
        let mut connection = database();
        let outcomes = committed(&mut connection, &[(1, false), (2, true), (3, false), (4, true), (5, false)]);
        let failed: Vec<bool> = outcomes.iter().map(|it| matches!(it, Err(CommitError::Conflict { .. }))).collect();
        assert_eq!(failed, [false, true, false, true, false], "{outcomes:?}");
        let lengths: i64 = connection.query_row("SELECT sum(length(x)) FROM t", [], |row| row.get(0)).unwrap();
        assert_eq!((rows(&connection), lengths), (3, 1 + 3 + 5));
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
            let asked = writer.perform(insert(1, false));
            // Polled once, so that the job is queued, then given up.
            assert!(futures::FutureExt::now_or_never(asked).is_none());
        }
        drop(writer);
        assert_eq!(rows(&Connection::open(&path).unwrap()), 5);
    }
}
