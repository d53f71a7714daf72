//! `launchway proxy`: carries a service's connections to its pods.
//!
//! ```text
//!                      ┌ HTTP/1 ─▶ http: each request ─▶ backends ─▶ upstream (kept connections)
//!  client ─▶ connection┤                                    │ lease: a place in a pod that is ready
//!            (sniff)   └ other ──▶ splice ──────────────────┘
//! ```

mod backends;
mod cached_file;
mod connection;
mod destination;
mod headers;
mod http;
mod pod;
mod relay;
mod sniff;
mod upstream;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::Interest;
use tokio::net::{TcpListener, UnixStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::backends::Backends;
use self::upstream::Upstreams;
use super::record::ServiceDir;
use super::shim::{self, complain};
use super::sockets::{self, Sockets};

/// The most connections at once; more wait in the sockets' queues.
const MAX_CONNECTIONS: u64 = 4096;
/// How long requests under way may take after the service was ended.
const LAST_REQUESTS: Duration = Duration::from_secs(10);
/// How long connections may live on after another proxy has taken over.
const LAST_CONNECTIONS: Duration = Duration::from_secs(3600);
/// The pause after an accept or a start that failed for want of resources.
const RETRY: Duration = Duration::from_millis(100);

/// Runs until the service is ended.
pub(super) fn run(dir: ServiceDir) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.and_then(|runtime| runtime.block_on(serve(dir))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("the proxy failed: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// What all connections use.
#[derive(Debug)]
struct Shared {
    backends: Backends,
    upstreams: Arc<Upstreams>,
    connections: TaskTracker,
    permits: Arc<Semaphore>,
}

/// A connection's place among all, for as long as it or what became of it lives, and what tells it that the service ends.
#[derive(Clone, Debug)]
struct Stay {
    _place: Arc<OwnedSemaphorePermit>,
    ending: CancellationToken,
}

/// How a proxy comes to its end.
enum End {
    /// The service ends.
    Stopped,
    /// Its shim died.
    Orphaned,
}

async fn serve(dir: ServiceDir) -> io::Result<()> {
    let control = Control::new(sockets::inherited()?)?;
    let permits = Arc::new(Semaphore::new(usize::try_from(connection_limit()).unwrap_or(Semaphore::MAX_PERMITS)));
    let shared = Arc::new(Shared {
        backends: Backends::new(&dir),
        upstreams: Arc::default(),
        connections: TaskTracker::new(),
        permits,
    });
    let upstreams = shared.upstreams.clone();
    tokio::spawn(async move { upstreams.sweep_forever().await });
    let mut listeners = Listeners { shared, ending: CancellationToken::new(), accepting: BTreeMap::new() };
    let mut terminate = signal(SignalKind::terminate())?;
    match listeners.follow(&control, &mut terminate, &dir).await? {
        End::Stopped => listeners.stop(control).await,
        End::Orphaned => listeners.hand_over(&dir, control).await,
    }
}

/// The sockets on which connections are accepted, by port.
struct Listeners {
    shared: Arc<Shared>,
    ending: CancellationToken,
    accepting: BTreeMap<u16, Accepting>,
}

/// One of them. The socket stays here as well, so that it can be handed over.
struct Accepting {
    socket: std::net::TcpListener,
    task: JoinHandle<()>,
}

impl Listeners {
    /// Does what the shim says until one of the two ends.
    async fn follow(&mut self, control: &Control, term: &mut Signal, dir: &ServiceDir) -> io::Result<End> {
        loop {
            let received = tokio::select! {
                biased;
                _ = term.recv() => return Ok(End::Stopped),
                received = control.receive() => received?,
            };
            match received {
                Some(sockets) => self.replace(sockets).await?,
                // Without sockets there is nothing to hand over; another proxy may still have them.
                None if dir.is_stopped() || self.accepting.is_empty() => return Ok(End::Stopped),
                None => return Ok(End::Orphaned),
            }
        }
    }

    /// Takes another set. Ports that stay go on with the socket that they have.
    async fn replace(&mut self, sockets: Sockets) -> io::Result<()> {
        let gone: Vec<u16> = self.accepting.keys().filter(|port| !sockets.contains_key(port)).copied().collect();
        for port in gone {
            self.close(port).await;
        }
        for (port, socket) in sockets {
            if !self.accepting.contains_key(&port) {
                let listener = TcpListener::from_std(socket.try_clone()?)?;
                let task = tokio::spawn(accept(self.shared.clone(), port, listener, self.ending.clone()));
                self.accepting.insert(port, Accepting { socket, task });
            }
        }
        Ok(())
    }

    async fn close(&mut self, port: u16) {
        if let Some(accepting) = self.accepting.remove(&port) {
            accepting.task.abort();
            // Its socket is closed when the task is gone; that it was aborted is no news.
            accepting.task.await.ok();
        }
    }

    async fn close_all(&mut self) {
        while let Some(port) = self.accepting.keys().next().copied() {
            self.close(port).await;
        }
    }

    /// Lets go of the sockets at once, and of connections when their requests are answered.
    async fn stop(mut self, control: Control) -> io::Result<()> {
        self.close_all().await;
        // The shim sees that the channel closes, and knows that the ports are free.
        drop(control);
        rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
        self.ending.cancel();
        self.finish(LAST_REQUESTS).await;
        Ok(())
    }

    /// Brings the shim back, which starts another proxy, and ends when that one has the sockets.
    async fn hand_over(mut self, dir: &ServiceDir, control: Control) -> io::Result<()> {
        drop(control);
        complain("the shim died; the proxy starts another one");
        while !dir.is_stopped() {
            match self.start_shim(dir).await {
                Ok(true) => break,
                Ok(false) => {}
                Err(error) => complain(&format!("cannot start a shim: {error}")),
            }
            sleep(RETRY).await;
        }
        self.close_all().await;
        self.finish(LAST_CONNECTIONS).await;
        Ok(())
    }

    /// Returns whether the sockets are in good hands. A shim answers when its proxy has them; one that ends well
    /// without an answer found another one alive, who opens sockets of its own.
    async fn start_shim(&self, dir: &ServiceDir) -> io::Result<bool> {
        let (ours, theirs) = sockets::channel()?;
        let copies: io::Result<Sockets> =
            self.accepting.iter().map(|(port, accepting)| Ok((*port, accepting.socket.try_clone()?))).collect();
        sockets::send(&ours, &copies?)?;
        let mut shim = shim::spawn(shim::this_program(), dir, Some(theirs))?;
        let answer = Control::new(ours)?.receive().await?;
        Ok(answer.is_some() || shim.wait()?.success())
    }

    async fn finish(self, patience: Duration) {
        self.shared.connections.close();
        // Whoever needs longer is cut off.
        timeout(patience, self.shared.connections.wait()).await.ok();
    }
}

/// An end of a channel. Tokio waits on it as on any connected socket of that family.
struct Control(UnixStream);

impl Control {
    fn new(channel: OwnedFd) -> io::Result<Self> {
        let channel = std::os::unix::net::UnixStream::from(channel);
        channel.set_nonblocking(true)?;
        Ok(Self(UnixStream::from_std(channel)?))
    }

    /// The next set of sockets; `None` if the other end is closed.
    async fn receive(&self) -> io::Result<Option<Sockets>> {
        match self.0.async_io(Interest::READABLE, || sockets::receive(&self.0)).await {
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
            received => received,
        }
    }
}

async fn accept(shared: Arc<Shared>, port: u16, listener: TcpListener, ending: CancellationToken) {
    loop {
        let Ok(permit) = shared.permits.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((client, _)) => {
                let stay = Stay { _place: Arc::new(permit), ending: ending.clone() };
                shared.connections.spawn(connection::serve(shared.clone(), port, client, stay));
            }
            // The client went away before it was accepted, or descriptors ran out.
            Err(_) => sleep(RETRY).await,
        }
    }
}

/// Raises the limit of open files as far as allowed; each connection needs two, and a pod's lock a third.
fn connection_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let current = if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current };
    current.map_or(MAX_CONNECTIONS, |files| (files.saturating_sub(64) / 3).clamp(1, MAX_CONNECTIONS))
}
