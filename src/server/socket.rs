//! The sockets in the state folder by which programs of this machine reach the daemon: the kernel says who asks, and
//! files' permissions who may. That for deployers is in a folder that other pods do not see, and asks for their tokens.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use tokio::net::{UnixListener, UnixStream};

use super::listener::Door;
use super::origin::Origin;
use crate::control::accounts;
use crate::control::state_folder::StateFolder;
use crate::error::{Context, Failure, Result};
use crate::runtime::local::{API_SOCKET, LONGEST_SOCKET_PATH, api_folder, is_of_a_pod};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// A socket of the state folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Socket {
    /// For commands: whoever can open it may do everything.
    Commands,
    /// For hooks of other users: any user of this machine can open it.
    Hooks,
    /// For deployers in their pods: whoever can open it needs a token.
    Deployers,
}

impl Socket {
    fn name(self) -> &'static str {
        match self {
            Self::Commands => "launchway.sock",
            Self::Hooks => "hook.sock",
            Self::Deployers => API_SOCKET,
        }
    }

    /// Where it is.
    pub fn path(self, state: &Path) -> PathBuf {
        self.folder(state).join(self.name())
    }

    fn folder(self, state: &Path) -> PathBuf {
        match self {
            Self::Commands | Self::Hooks => state.to_owned(),
            Self::Deployers => api_folder(&StateFolder::new(state).local_runtime()),
        }
    }

    /// A path of it that the kernel takes, also where that of the state folder is too long for it.
    ///
    /// # Errors
    /// If the folder is not there.
    pub fn reach(self, state: &Path) -> io::Result<Reach> {
        Reach::to(&self.folder(state), self.name())
    }
}

/// A socket's path as the kernel takes it; only to be used by this process, and while this is kept.
#[derive(Debug)]
pub struct Reach {
    path: PathBuf,
    _folder: Option<OwnedFd>,
}

impl Reach {
    fn to(folder: &Path, name: &str) -> io::Result<Self> {
        let path = folder.join(name);
        if path.as_os_str().len() <= LONGEST_SOCKET_PATH {
            return Ok(Self { path, _folder: None });
        }
        let folder = rustix::fs::open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
        Ok(Self { path, _folder: Some(folder) })
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// A socket that is listened on.
#[derive(Debug)]
pub struct Listening {
    socket: Socket,
    listener: UnixListener,
    /// What the local runtime keeps.
    runtime: PathBuf,
}

impl Listening {
    /// Listens, in the place of what an earlier daemon has left. `group` may open the socket for commands too. Only the
    /// folder's one daemon may call this.
    ///
    /// # Errors
    /// If the socket cannot be made in `state`.
    pub fn open(socket: Socket, state: &Path, group: Option<u32>) -> Result<Self> {
        let path = socket.path(state);
        let listener = bind(state, socket, group).and_then(|listener| {
            listener.set_nonblocking(true)?;
            UnixListener::from_std(listener)
        });
        let listener = listener.map_err(|error| {
            let failure = Failure::stalled(format!("cannot listen on `{}`", path.display()));
            match group.filter(|_| error.kind() == ErrorKind::PermissionDenied) {
                Some(group) => failure.hint(format!("is the daemon's user in group {group}? see `access.socketGroup`")),
                None => failure,
            }
            .because(error)
        })?;
        Ok(Self { socket, listener, runtime: StateFolder::new(state).local_runtime() })
    }
}

/// Nobody can connect before the socket has its permissions, and nobody finds none while one takes another's place.
fn bind(state: &Path, socket: Socket, group: Option<u32>) -> io::Result<StdListener> {
    let (name, folder) = (format!("{}.new", socket.name()), socket.folder(state));
    let (new, reach) = (folder.join(&name), Reach::to(&folder, &name)?);
    remove(&new)?;
    let listener = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    rustix::net::bind(&listener, &SocketAddrUnix::new(reach.path())?)?;
    let mode = match (socket, group) {
        (Socket::Hooks | Socket::Deployers, _) => 0o666,
        (Socket::Commands, None) => 0o600,
        (Socket::Commands, Some(_)) => 0o660,
    };
    if let (Socket::Commands, Some(group)) = (socket, group) {
        chown(&new, None, Some(group))?;
    }
    fs::set_permissions(&new, Permissions::from_mode(mode))?;
    rustix::net::listen(&listener, BACKLOG)?;
    fs::rename(&new, socket.path(state))?;
    Ok(listener.into())
}

/// Takes the sockets away, so that nobody is led to a daemon that has ended.
///
/// # Errors
/// If one cannot be deleted.
pub fn withdraw(state: &Path) -> Result<()> {
    [Socket::Commands, Socket::Hooks, Socket::Deployers].into_iter().try_for_each(|socket| {
        let path = socket.path(state);
        remove(&path).or_stalled(|| format!("cannot delete `{}`", path.display()))
    })
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

impl Door for Listening {
    type Stream = UnixStream;

    async fn accept(&self) -> io::Result<(UnixStream, Origin)> {
        let (stream, peer) = loop {
            let (stream, _) = self.listener.accept().await?;
            let peer = stream.peer_cred()?;
            // Where the kernel hides no sockets, a pod of the daemon's own user gets here. It is told nothing.
            match peer.pid() {
                Some(pid) if self.socket != Socket::Deployers && is_of_a_pod(pid, &self.runtime) => {
                    tracing::debug!(pid, "a pod's process asked, or one that has ended; it gets no answer");
                }
                _ => break (stream, peer),
            }
        };
        let user = accounts::user_name(peer.uid());
        let origin = match self.socket {
            Socket::Commands => Origin::Commands { user },
            Socket::Hooks => Origin::Hooks { user },
            Socket::Deployers => Origin::Deployers { user },
        };
        Ok((stream, origin))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream as StdStream;

    use super::*;

    #[tokio::test]
    async fn who_asks_is_known_also_below_a_long_path_and_after_a_daemon_that_was_killed() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = folder.path().join("long".repeat(40));
        fs::create_dir(&state).expect("a folder");
        for _life in 0..2 {
            let listening = Listening::open(Socket::Commands, &state, None).expect("a socket");
            let reach = Socket::Commands.reach(&state).expect("a way");
            let _asking = StdStream::connect(reach.path()).expect("a connection");
            let (_, origin) = listening.accept().await.expect("accepted");
            let user = accounts::user_name(rustix::process::geteuid().as_raw());
            assert_eq!(origin, Origin::Commands { user });
        }
        let reach = Socket::Commands.reach(&state).expect("a way");
        let nobody = StdStream::connect(reach.path()).expect_err("nobody listens");
        assert_eq!(nobody.kind(), ErrorKind::ConnectionRefused);
        withdraw(&state).expect("taken away");
        withdraw(&state).expect("taking away nothing is fine");
        let nothing = StdStream::connect(reach.path()).expect_err("nothing is there");
        assert_eq!(nothing.kind(), ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn permissions_say_who_may_open_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = rustix::process::getegid().as_raw();
        for (socket, group, expected) in [
            (Socket::Commands, None, 0o600),
            (Socket::Commands, Some(own), 0o660),
            (Socket::Hooks, None, 0o666),
            (Socket::Hooks, Some(own), 0o666),
        ] {
            let _listening = Listening::open(socket, folder.path(), group).expect("a socket");
            let mode = fs::metadata(socket.path(folder.path())).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, expected, "{socket:?} {group:?}");
        }
    }
}
