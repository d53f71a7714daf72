//! A blocking, time-limited view of an asynchronous connection.

use std::fmt;
use std::future::Future;
use std::io::{self, Read, Write};
use std::sync::{LazyLock, mpsc};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use super::Deadline;
use super::program::Program;
use crate::error::Failure;

/// One read from a connection; as large as a side-band packet of Git.
const CHUNK: usize = 64 * 1024;

type Reader = Box<dyn AsyncRead + Send + Unpin>;
type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// Drives all connections of this room. Its own, because libgit2 calls back from threads that know no runtime, and a
/// connection must outlive neither its pool nor its runtime.
static RUNTIME: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
    let threads = 1; // It only moves bytes; the work on them happens in the threads that wait.
    Builder::new_multi_thread().worker_threads(threads).thread_name("git-transport").enable_all().build()
});

/// Starts a task beside the connections.
pub(super) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> io::Result<JoinHandle<()>> {
    let runtime = RUNTIME.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))?;
    Ok(runtime.spawn(task))
}

/// Runs `future` to its end or for at most `limit`, while this thread waits.
pub(super) fn wait<T: Send + 'static>(
    limit: Duration,
    future: impl Future<Output = io::Result<T>> + Send + 'static,
) -> io::Result<T> {
    let (sender, receiver) = mpsc::sync_channel(1);
    spawn(async move {
        let timed_out = |_elapsed| Err(io::Error::from(io::ErrorKind::TimedOut));
        let outcome = tokio::time::timeout(limit, future).await.unwrap_or_else(timed_out);
        // Nobody waits any more only if this thread is gone.
        drop(sender.send(outcome));
    })?;
    receiver.recv().unwrap_or_else(|_gone| Err(io::Error::other("the connection's task ended unexpectedly")))
}

/// One direction or both of a connection.
pub(in super::super) struct Stream {
    reader: Option<Reader>,
    writer: Option<Writer>,
    deadline: Deadline,
    peer: String,
    program: Option<Program>,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stream").field(&self.peer).finish()
    }
}

impl Stream {
    /// `peer` is how messages call the other side.
    pub(super) fn new(reader: Reader, writer: Option<Writer>, deadline: Deadline, peer: String) -> Self {
        Self { reader: Some(reader), writer, deadline, peer, program: None }
    }

    pub(super) fn with_program(mut self, program: Program) -> Self {
        self.program = Some(program);
        self
    }

    /// Writes all of `data`.
    pub(super) fn send(&mut self, data: &[u8]) -> io::Result<()> {
        let mut writer = self.writer.take().ok_or(io::ErrorKind::NotConnected)?;
        let data = data.to_vec();
        let sent = wait(self.deadline.step(), async move {
            writer.write_all(&data).await?;
            writer.flush().await?;
            Ok(writer)
        })?;
        self.writer = Some(sent);
        Ok(())
    }

    /// What an error of this stream means. Asks the program that it comes from, if it does.
    pub(in super::super) fn explain(&mut self, error: io::Error) -> Failure {
        let peer = &self.peer;
        if error.kind() == io::ErrorKind::TimedOut {
            return Failure::transient(format!("{peer} did not answer in time"));
        }
        if let Some(failure) = self.program.as_mut().and_then(|program| program.explain(peer)) {
            return failure;
        }
        match error.kind() {
            io::ErrorKind::InvalidData => Failure::stalled(format!("{peer} does not answer as a Git server"))
                .hint("check the repository's address")
                .because(error),
            io::ErrorKind::UnexpectedEof => Failure::transient(format!("{peer} closed the connection")),
            _ => Failure::transient(format!("the connection to {peer} failed")).because(error),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(mut reader) = self.reader.take() else { return Err(io::ErrorKind::NotConnected.into()) };
        let wanted = buffer.len().min(CHUNK);
        let (reader, data) = wait(self.deadline.step(), async move {
            let mut data = vec![0; wanted];
            let length = reader.read(&mut data).await?;
            data.truncate(length);
            Ok((reader, data))
        })?;
        self.reader = Some(reader);
        for (target, byte) in buffer.iter_mut().zip(&data) {
            *target = *byte;
        }
        Ok(data.len())
    }
}

impl Write for Stream {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.send(data)?;
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
