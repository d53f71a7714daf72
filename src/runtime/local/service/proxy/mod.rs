//! `launchway proxy`: carries the connections of all services to their pods.
//!
//! ```text
//!                      ┌ HTTP/1 ─▶ http: each request ─▶ backends ─▶ upstream (kept connections)
//!  client ─▶ connection┤                                    │ lease: a place in a pod that is ready
//!            (sniff)   └ other ──▶ splice ──────────────────┘
//! ```

mod backends;
mod cached_file;
mod client;
mod connection;
mod destination;
mod folders;
mod headers;
mod http;
mod keep_alive;
mod orphan;
mod pod;
mod relay;
mod sniff;
mod upstream;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::TcpListener as Socket;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::backends::Backends;
use self::folders::Folders;
use self::orphan::find_shim;
use self::upstream::Upstreams;
use super::channel::{self, Message, Port};
use super::record::{ServiceId, ServicesDir};
use super::shim::complain;
use crate::runtime::local::host::open_files;
use crate::shares::{Share, Shares};

/// The most connections of all services at once; more wait in the sockets' queues.
const MAX_CONNECTIONS: usize = 32_768;
/// The files that are neither sockets of services nor connections.
const OTHER_FILES: usize = 64;
/// A service that is alone may have one of so many parts of them; each one after it as much of what is left.
const PARTS: usize = 2;
/// What to do about services for which there is no room.
const NO_ROOM: &str = "the limit of open files is too low; raise it (LimitNOFILE of the unit), and kill the proxy";
/// The most processors that are used.
const MAX_WORKERS: usize = 4;
/// How long requests under way may take after their service was ended.
const LAST_REQUESTS: Duration = Duration::from_secs(10);
/// How long connections may live on after another proxy has taken over.
const LAST_CONNECTIONS: Duration = Duration::from_secs(3600);
/// The pause after an accept that failed for want of resources.
const RETRY: Duration = Duration::from_millis(100);

/// Runs until its shim ends, or another proxy has taken over.
pub(super) fn run(dir: ServicesDir) -> ExitCode {
    let workers = thread::available_parallelism().map_or(1, usize::from).min(MAX_WORKERS);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build();
    match runtime.and_then(|runtime| runtime.block_on(serve(dir))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("the proxy failed: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// What all connections of a service use.
#[derive(Debug)]
struct Shared {
    service: ServiceId,
    backends: Backends,
    upstreams: Arc<Upstreams>,
    connections: TaskTracker,
    places: Arc<Shares<ServiceId>>,
    /// Tells that the service ends.
    ending: CancellationToken,
    /// Tells that whoever has not ended by now is cut off.
    cut_off: CancellationToken,
}

/// A connection's place among all, for as long as it or what became of it lives, and what tells it that the service ends.
#[derive(Clone, Debug)]
struct Stay {
    _place: Arc<Share<ServiceId>>,
    ending: CancellationToken,
}

/// How a proxy comes to its end.
enum End {
    /// Its shim ends.
    Stopped,
    /// Its shim died.
    Orphaned,
    /// Another proxy has the sockets.
    Relieved,
}

async fn serve(dir: ServicesDir) -> io::Result<()> {
    let control = Control::new(channel::inherited()?)?;
    let room = Room::find();
    let mut listeners = Listeners {
        dir,
        folders: Folders::new(),
        upstreams: Arc::default(),
        connections: TaskTracker::new(),
        places: Shares::new(room.connections, PARTS),
        most: room.sockets,
        services: BTreeMap::new(),
        accepting: BTreeMap::new(),
    };
    let upstreams = listeners.upstreams.clone();
    tokio::spawn(async move { upstreams.sweep_forever().await });
    let mut terminate = signal(SignalKind::terminate())?;
    match listeners.follow(&control, &mut terminate).await? {
        End::Stopped => listeners.stop(control).await,
        End::Orphaned => listeners.give_away(control).await,
        End::Relieved => listeners.let_go(control).await,
    }
}

/// The sockets on which connections are accepted, and whose they are.
struct Listeners {
    dir: ServicesDir,
    folders: Arc<Folders>,
    upstreams: Arc<Upstreams>,
    connections: TaskTracker,
    places: Arc<Shares<ServiceId>>,
    /// How many sockets there may be.
    most: usize,
    services: BTreeMap<ServiceId, Arc<Shared>>,
    accepting: BTreeMap<Port, Accepting>,
}

/// One of them. The socket stays here as well, so that it can be given away.
struct Accepting {
    socket: Arc<TcpListener>,
    task: JoinHandle<()>,
}

impl Accepting {
    /// Returns when the socket is closed, and all that was accepted there is among the connections.
    async fn end(self) {
        self.task.abort();
        // That it was aborted is no news.
        self.task.await.ok();
    }
}

impl Listeners {
    /// Does what the shim says until one of the two ends.
    async fn follow(&mut self, control: &Control, terminate: &mut Signal) -> io::Result<End> {
        loop {
            let received = tokio::select! {
                biased;
                _ = terminate.recv() => return Ok(End::Stopped),
                received = control.receive() => received?,
            };
            match received {
                Some((Message::Open { ports }, sockets)) => self.open(ports, sockets)?,
                Some((Message::Close { ports }, _)) => {
                    self.close(ports).await;
                    control.send(&Message::Done)?;
                }
                Some((Message::Relieved, _)) => return Ok(End::Relieved),
                Some(_) => {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "a shim does not say this to a proxy"));
                }
                // Without sockets there is nothing to give away; another proxy may still have them.
                None if self.accepting.is_empty() => return Ok(End::Stopped),
                None => return Ok(End::Orphaned),
            }
        }
    }

    /// Accepts on these too. Ports that it has go on with the socket that they have.
    fn open(&mut self, ports: Vec<Port>, sockets: Vec<Socket>) -> io::Result<()> {
        for (port, socket) in ports.into_iter().zip(sockets) {
            if self.accepting.contains_key(&port) {
                continue;
            }
            if self.accepting.len() >= self.most {
                complain(&format!("no connections to port {} of {}: {NO_ROOM}", port.number, port.service));
                continue;
            }
            let shared = self.shared(&port.service);
            let socket = Arc::new(TcpListener::from_std(socket)?);
            let task = tokio::spawn(accept(shared, port.number, socket.clone()));
            self.accepting.insert(port, Accepting { socket, task });
        }
        Ok(())
    }

    fn shared(&mut self, service: &ServiceId) -> Arc<Shared> {
        let new = || Shared {
            service: service.clone(),
            backends: Backends::new(&self.dir.of(service), self.folders.clone()),
            upstreams: self.upstreams.clone(),
            connections: self.connections.clone(),
            places: self.places.clone(),
            ending: CancellationToken::new(),
            cut_off: CancellationToken::new(),
        };
        self.services.entry(service.clone()).or_insert_with(|| Arc::new(new())).clone()
    }

    /// Lets go of sockets at once. The connections of a service that has none any more end when their requests are answered.
    async fn close(&mut self, ports: Vec<Port>) {
        for port in ports {
            if let Some(accepting) = self.accepting.remove(&port) {
                accepting.end().await;
            }
            if !self.accepting.keys().any(|other| other.service == port.service)
                && let Some(shared) = self.services.remove(&port.service)
            {
                tokio::spawn(async move { shared.end().await });
            }
        }
    }

    async fn close_all(&mut self) {
        self.close(self.accepting.keys().cloned().collect()).await;
    }

    /// Lets go of the sockets at once, and of connections when their requests are answered.
    async fn stop(mut self, control: Control) -> io::Result<()> {
        self.close_all().await;
        // The shim sees that the channel closes, and knows that the ports are free.
        control.close()?;
        self.finish(LAST_REQUESTS).await;
        Ok(())
    }

    /// Finds a shim that takes the sockets.
    async fn give_away(self, control: Control) -> io::Result<()> {
        control.close()?;
        complain("the shim died; the proxy looks for another one, or starts it");
        let sockets = || self.accepting.iter().map(|(port, accepting)| (port.clone(), &accepting.socket));
        find_shim(&self.dir, sockets).await;
        self.leave().await;
        Ok(())
    }

    /// Another proxy accepts; what this one has accepted is its own until it ends.
    async fn let_go(self, control: Control) -> io::Result<()> {
        control.close()?;
        self.leave().await;
        Ok(())
    }

    async fn leave(mut self) {
        for (_, accepting) in std::mem::take(&mut self.accepting) {
            accepting.end().await;
        }
        self.finish(LAST_CONNECTIONS).await;
    }

    async fn finish(self, patience: Duration) {
        self.connections.close();
        // Whoever needs longer is cut off.
        timeout(patience, self.connections.wait()).await.ok();
    }
}

impl Shared {
    /// Lets requests under way be answered.
    async fn end(&self) {
        self.ending.cancel();
        sleep(LAST_REQUESTS).await;
        self.cut_off.cancel();
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

    /// What comes next; `None` if the other end is closed.
    async fn receive(&self) -> io::Result<Option<(Message, Vec<Socket>)>> {
        self.0.async_io(Interest::READABLE, || channel::receive(&self.0)).await
    }

    /// Says something that is smaller than what a channel holds.
    fn send(&self, message: &Message) -> io::Result<()> {
        channel::send(&self.0, message)
    }

    /// Closes this end, which standard input keeps open too.
    fn close(self) -> io::Result<()> {
        drop(self);
        Ok(rustix::stdio::dup2_stdin(File::open("/dev/null")?)?)
    }
}

async fn accept(shared: Arc<Shared>, port: u16, listener: Arc<TcpListener>) {
    loop {
        match listener.accept().await {
            Ok((client, _)) => {
                let (placed, has_place) = oneshot::channel();
                let connection = carry(shared.clone(), port, client, placed);
                shared.connections.spawn(connection);
                // As long as this one gets no place, the next ones stay in the queue.
                has_place.await.ok();
            }
            // The client went away before it was accepted, or descriptors ran out.
            Err(_) => sleep(RETRY).await,
        }
    }
}

/// Carries a connection once it has its place, and tells when that is.
async fn carry(shared: Arc<Shared>, port: u16, client: TcpStream, placed: oneshot::Sender<()>) {
    let cut_off = shared.cut_off.clone();
    let carried = async {
        let place = Arc::new(shared.places.take(&shared.service, 1).await);
        placed.send(()).ok();
        let stay = Stay { _place: place, ending: shared.ending.clone() };
        connection::serve(shared, port, client, stay).await;
    };
    cut_off.run_until_cancelled(carried).await;
}

/// How much of what it may have open the proxy takes for what.
struct Room {
    /// Listening sockets, so that connections find room beside them.
    sockets: usize,
    /// Connections, each of which needs two.
    connections: usize,
}

impl Room {
    /// Raises the limit of open files as far as allowed.
    fn find() -> Self {
        open_files::raise();
        let files = open_files::limit().map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX));
        Self::within(files)
    }

    fn within(files: usize) -> Self {
        let sockets = files / 3;
        Self { sockets, connections: ((files - sockets).saturating_sub(OTHER_FILES) / 2).clamp(PARTS, MAX_CONNECTIONS) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_leave_room_for_connections() {
        let room = |files| {
            let Room { sockets, connections } = Room::within(files);
            (sockets, connections)
        };
        let cases = [
            (0, (0, PARTS)),
            (90, (30, PARTS)),
            (1024, (341, 309)),
            (20_000, (6666, 6635)),
            (usize::MAX, (usize::MAX / 3, MAX_CONNECTIONS)),
        ];
        for (files, expected) in cases {
            assert_eq!(room(files), expected, "{files}");
        }
    }
}
