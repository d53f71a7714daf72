//! `launchway proxy`: carries the connections of all services to their pods.
//!
//! ```text
//!                      ┌ a worker's thread ──────────────────────────────────────────────────────────┐
//!  client ─▶ entrance ─┤             ┌ HTTP/1 ─▶ http: each request ─▶ backends ─▶ upstream          ├─▶ pods
//!                      │ connection ─┤            (keep_alive)           │ lease: a place   (kept     │
//!                      │ (sniff)     └ other ──▶ relay ──────────────────┘ in a ready pod   by worker)│
//!                      └─────────────────────────────────────────────────────────────────────────────┘
//! ```

mod backends;
mod cached_file;
mod client;
mod connection;
mod destination;
mod entrance;
mod expect;
mod folders;
mod headers;
mod http;
mod interim;
mod keep_alive;
mod orphan;
mod patience;
mod pod;
mod relay;
mod sniff;
mod target;
mod upstream;
mod worker;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::backends::Backends;
use self::entrance::{Entrance, LAST_REQUESTS, ServedPort};
use self::folders::Folders;
use self::orphan::find_shim;
use self::worker::{Worker, Workers};
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
/// How often a proxy that leaves looks which ports are closed.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How long connections may live on after another proxy has taken over.
const LAST_CONNECTIONS: Duration = Duration::from_secs(3600);

/// Runs until its shim ends, or another proxy has taken over.
pub(super) fn run(dir: ServicesDir) -> ExitCode {
    // As the shim.
    rustix::thread::set_name(c"launchway-proxy").ok();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
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
    places: Arc<Shares<ServiceId>>,
}

/// A connection's place among all, for as long as it or what became of it lives, and what tells it that its port is closed.
#[derive(Clone, Debug)]
struct Stay {
    _place: Arc<Share<ServiceId>>,
    ending: CancellationToken,
    cut_off: CancellationToken,
}

/// A client's connection.
#[derive(Clone, Debug)]
struct Session {
    shared: Arc<Shared>,
    port: u16,
    worker: Arc<Worker>,
    stay: Stay,
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
        workers: Workers::start()?,
        places: Shares::new(room.connections, PARTS),
        most: room.sockets,
        services: BTreeMap::new(),
        entrances: BTreeMap::new(),
    };
    let mut terminate = signal(SignalKind::terminate())?;
    match listeners.follow(&control, &mut terminate).await? {
        End::Stopped => listeners.stop(control).await,
        End::Orphaned => listeners.give_away(control, &mut terminate).await,
        End::Relieved => listeners.let_go(control, &mut terminate).await,
    }
}

/// The sockets on which connections are accepted, and whose they are.
struct Listeners {
    dir: ServicesDir,
    folders: Arc<Folders>,
    workers: Workers,
    places: Arc<Shares<ServiceId>>,
    /// How many sockets there may be.
    most: usize,
    services: BTreeMap<ServiceId, Arc<Shared>>,
    entrances: BTreeMap<Port, Entrance>,
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
                None if self.entrances.is_empty() => return Ok(End::Stopped),
                None => return Ok(End::Orphaned),
            }
        }
    }

    /// Accepts on these too. Ports that it has go on with the socket that they have.
    fn open(&mut self, ports: Vec<Port>, sockets: Vec<TcpListener>) -> io::Result<()> {
        for (port, socket) in ports.into_iter().zip(sockets) {
            if self.entrances.contains_key(&port) {
                continue;
            }
            if self.entrances.len() >= self.most {
                complain(&format!("no connections to port {} of {}: {NO_ROOM}", port.number, port.service));
                continue;
            }
            let entrance = Entrance::open(self.shared(&port.service), port.number, socket, self.workers.clone())?;
            self.entrances.insert(port, entrance);
        }
        Ok(())
    }

    fn shared(&mut self, service: &ServiceId) -> Arc<Shared> {
        let new = || Shared {
            service: service.clone(),
            backends: Backends::new(&self.dir.of(service), self.folders.clone()),
            places: self.places.clone(),
        };
        self.services.entry(service.clone()).or_insert_with(|| Arc::new(new())).clone()
    }

    /// Lets go of sockets at once. The connections that were accepted there end when their requests are answered.
    async fn close(&mut self, ports: Vec<Port>) {
        for port in ports {
            if let Some(entrance) = self.entrances.remove(&port) {
                entrance.close().await.end();
            }
            if !self.entrances.keys().any(|other| other.service == port.service) {
                self.services.remove(&port.service);
            }
        }
    }

    async fn close_all(&mut self) {
        self.close(self.entrances.keys().cloned().collect()).await;
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
    async fn give_away(self, control: Control, terminate: &mut Signal) -> io::Result<()> {
        control.close()?;
        complain("the shim died; the proxy looks for another one, or starts it");
        let sockets = || self.entrances.iter().map(|(port, entrance)| (port.clone(), entrance.socket()));
        find_shim(&self.dir, sockets).await;
        self.leave(terminate).await;
        Ok(())
    }

    /// Another proxy accepts; what this one has accepted is its own until it ends.
    async fn let_go(self, control: Control, terminate: &mut Signal) -> io::Result<()> {
        control.close()?;
        self.leave(terminate).await;
        Ok(())
    }

    async fn leave(mut self, terminate: &mut Signal) {
        let mut ports = Vec::new();
        for (_, entrance) in std::mem::take(&mut self.entrances) {
            ports.push(entrance.close().await);
        }
        tokio::select! {
            () = self.finish(LAST_CONNECTIONS) => {}
            () = end_unwanted(ports, terminate) => self.finish(LAST_REQUESTS).await,
        }
    }

    async fn finish(&self, patience: Duration) {
        // Whoever needs longer is cut off.
        timeout(patience, self.workers.finish()).await.ok();
    }
}

/// Nobody tells a proxy that leaves which ports are closed: it looks by itself, and ends all when it is told to end.
async fn end_unwanted(mut ports: Vec<ServedPort>, terminate: &mut Signal) {
    while timeout(LOOK_AGAIN, terminate.recv()).await.is_err() {
        ports.extract_if(.., |port| !port.is_wanted()).for_each(ServedPort::end);
    }
    ports.into_iter().for_each(ServedPort::end);
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
    async fn receive(&self) -> io::Result<Option<(Message, Vec<TcpListener>)>> {
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
