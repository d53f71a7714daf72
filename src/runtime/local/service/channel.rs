//! Messages between the daemon, the services' shim and their proxy, and the listening sockets that come along with them.
//!
//! A channel keeps messages apart. The daemon and whoever has sockets for a shim connect to the shim's socket in the folder
//! of the services; the proxy has its end from the shim that started it, as its standard input. The other end's closing
//! tells that its process is gone.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketAddrUnix, SocketFlags, SocketType, sockopt,
};
use serde::{Deserialize, Serialize};

use super::record::{self, ServiceId, ServicesDir};
use super::shim::complain;
use crate::runtime::local::host::files;
use crate::runtime::local::host::format;

/// The most sockets that one message takes along.
pub(super) const MAX_SOCKETS: usize = 64;
/// The most bytes of a message: the ports of that many sockets, or why as many do not answer.
const MAX_MESSAGE: usize = 64 << 10;
/// The shim's socket.
const SOCKET: &str = "shim.sock";
/// How many may wait to be let in.
const BACKLOG: i32 = 16;
/// The pause while too many sockets are on their way.
const CROWDED: Duration = Duration::from_millis(5);
/// How long they may be too many: whoever should receive them is stopped, and nobody may stop with it.
const TOO_LONG: Duration = Duration::from_secs(2);

/// What is said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum Message {
    /// The sockets that come along listen on these ports.
    Open {
        /// One for each, in their order.
        ports: Vec<Port>,
    },
    /// Nothing listens there any more.
    Close {
        /// Where.
        ports: Vec<Port>,
    },
    /// What was said before is done, or was all.
    Done,
    /// Another one has the sockets: who had them may let go.
    Relieved,
    /// To a shim: who are you?
    Who,
    /// A shim's answer to that.
    Shim {
        /// What its program is called.
        build: String,
    },
    /// To a shim: make true what the record of a service says.
    Follow {
        /// Which.
        service: ServiceId,
    },
    /// A shim's answer to that.
    Status(Status),
    /// To a shim: hand all sockets over to one that takes its place.
    HandOver,
}

/// A port of a service.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Port {
    /// Whose.
    pub(super) service: ServiceId,
    /// The number that clients use.
    pub(super) number: u16,
}

/// What became of a service's record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Status {
    /// The generation of the record that these facts are about; 0 if none was read.
    pub(super) generation: u64,
    /// Where it listens, if it is there.
    pub(super) address: Option<Ipv4Addr>,
    /// Why ports do not answer, a sentence each; empty if all do.
    pub(super) problems: Vec<String>,
}

/// A message as it is sent.
#[derive(Serialize, Deserialize)]
struct Envelope {
    v: u32,
    #[serde(flatten)]
    message: Message,
}

/// Two connected ends.
pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// The end that a parent process left as standard input.
pub(super) fn inherited() -> io::Result<OwnedFd> {
    io::stdin().as_fd().try_clone_to_owned()
}

/// Where others connect to a shim, in the place of what an earlier one has left. Only the one that has the lock may call this.
pub(super) fn listen(dir: &ServicesDir) -> io::Result<OwnedFd> {
    files::remove_if_there(&dir.path().join(SOCKET))?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    within(dir.path(), |address| rustix::net::bind(&socket, address))?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Connects to the living shim. What it does not answer or take in time fails.
pub(super) fn connect(dir: &ServicesDir, patience: Duration) -> io::Result<OwnedFd> {
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    be_patient(&socket, patience)?;
    within(dir.path(), |address| rustix::net::connect(&socket, address))?;
    Ok(socket)
}

/// From now on sending and receiving fail after so long.
pub(super) fn be_patient(channel: &OwnedFd, patience: Duration) -> io::Result<()> {
    sockopt::set_socket_timeout(channel, sockopt::Timeout::Recv, Some(patience))?;
    Ok(sockopt::set_socket_timeout(channel, sockopt::Timeout::Send, Some(patience))?)
}

/// The address of the socket in a folder whose path may be longer than an address can be.
fn within<T>(folder: &Path, act: impl Fn(&SocketAddrUnix) -> Result<T, Errno>) -> io::Result<T> {
    let folder = rustix::fs::open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let address = SocketAddrUnix::new(format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd()))?;
    Ok(act(&address)?)
}

/// Says something that no socket comes along with.
pub(super) fn send(channel: impl AsFd, message: &Message) -> io::Result<()> {
    send_with(channel.as_fd(), message, &[])
}

/// Sends sockets, a few in each message. They stay open here as well.
pub(super) fn send_sockets<'a, S: AsFd + 'a>(
    channel: &OwnedFd,
    sockets: impl IntoIterator<Item = (Port, &'a S)>,
) -> io::Result<()> {
    let sockets: Vec<_> = sockets.into_iter().collect();
    for some in sockets.chunks(MAX_SOCKETS) {
        let ports = some.iter().map(|(port, _)| port.clone()).collect();
        let descriptors: Vec<BorrowedFd<'_>> = some.iter().map(|(_, socket)| socket.as_fd()).collect();
        send_with(channel.as_fd(), &Message::Open { ports }, &descriptors)?;
    }
    Ok(())
}

fn send_with(channel: BorrowedFd<'_>, message: &Message, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let text = serde_json::to_vec(&Envelope { v: record::VERSION, message: message.clone() })?;
    let deadline = Instant::now() + TOO_LONG;
    loop {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_SOCKETS))];
        let mut rights = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !rights.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("more than {MAX_SOCKETS} sockets")));
        }
        match rustix::net::sendmsg(channel, &[IoSlice::new(&text)], &mut rights, SendFlags::NOSIGNAL) {
            // The kernel counts what nobody has received yet against the limit of open files.
            Err(Errno::TOOMANYREFS) if Instant::now() < deadline => thread::sleep(CROWDED),
            Err(Errno::TOOMANYREFS) => {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "as many sockets as may be on their way are not received",
                ));
            }
            sent => return Ok(sent.map(drop)?),
        }
    }
}

/// Receives a message with what comes along; `None` if the other end is closed. Of more sockets than this process may have
/// open the first ones come, and the ports of these are what the message names.
pub(super) fn receive(channel: impl AsFd) -> io::Result<Option<(Message, Vec<TcpListener>)>> {
    let mut text = vec![0; MAX_MESSAGE];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_SOCKETS))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = rustix::net::recvmsg(channel, &mut [IoSliceMut::new(&mut text)], &mut rights, flags);
    let bytes = match received {
        Err(Errno::CONNRESET) => return Ok(None),
        received => received?.bytes,
    };
    if bytes == 0 {
        return Ok(None);
    }
    let mut sockets = Vec::new();
    for part in rights.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = part {
            sockets.extend(descriptors.map(TcpListener::from));
        }
    }
    let text = text.get(..bytes).unwrap_or_default();
    let invalid = |problem| io::Error::new(io::ErrorKind::InvalidData, problem);
    let Envelope { mut message, .. } = format::parse(text, record::VERSION).map_err(invalid)?;
    if let Message::Open { ports } = &mut message {
        let missing = ports.split_off(sockets.len().min(ports.len()));
        if !missing.is_empty() {
            complain(&format!("the limit of open files leaves no room for {} ports of services", missing.len()));
        }
    }
    Ok(Some((message, sockets)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::local::host::files::tests::as_nobody;

    fn port(number: u16) -> Port {
        Port { service: ServiceId::new("shop-dev", "web").unwrap(), number }
    }

    fn free_socket() -> TcpListener {
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()
    }

    #[test]
    fn every_message_arrives_as_it_was_sent() {
        let (here, there) = pair().unwrap();
        let status = Status { generation: 7, address: Some(Ipv4Addr::LOCALHOST), problems: vec!["a".into()] };
        let messages = [
            Message::Close { ports: vec![port(80)] },
            Message::Done,
            Message::Relieved,
            Message::Who,
            Message::Shim { build: "b".into() },
            Message::Follow { service: port(80).service },
            Message::Status(status),
            Message::HandOver,
        ];
        for message in messages {
            send(&here, &message).unwrap();
            assert_eq!(receive(&there).unwrap().unwrap().0, message);
        }
    }

    #[test]
    fn any_number_of_sockets_arrives() {
        for count in [0, 1, MAX_SOCKETS, 3 * MAX_SOCKETS + 1] {
            let (here, there) = pair().unwrap();
            let sent: Vec<_> = (0..count).map(|number| (port(number.try_into().unwrap()), free_socket())).collect();
            let expected: Vec<_> = sent.iter().map(|(port, it)| (port.clone(), it.local_addr().unwrap())).collect();
            let sending = thread::spawn(move || send_sockets(&here, sent.iter().map(|(port, it)| (port.clone(), it))));
            let mut received = Vec::new();
            while let Some((Message::Open { ports }, sockets)) = receive(&there).unwrap() {
                let addresses = sockets.iter().map(|it| it.local_addr().unwrap());
                received.extend(ports.into_iter().zip(addresses));
            }
            sending.join().unwrap().unwrap();
            assert_eq!(received, expected);
        }
    }

    #[test]
    fn sockets_that_nobody_receives_hold_their_sender_up_for_a_moment() {
        let send_until_it_fails = || {
            let socket = free_socket();
            let (message, sockets) = (Message::Done, [socket.as_fd(); MAX_SOCKETS]);
            let mut ends = Vec::new();
            loop {
                // As many as one channel holds, then others.
                ends.push(pair().unwrap());
                let (here, _) = ends.last().unwrap();
                be_patient(here, Duration::from_millis(10)).unwrap();
                let begun = Instant::now();
                let sent = std::iter::repeat_with(|| send_with(here.as_fd(), &message, &sockets)).find_map(Result::err);
                if let Some(error) = sent.filter(|error| error.kind() == io::ErrorKind::TimedOut) {
                    return (error, begun.elapsed());
                }
            }
        };
        // Of root the kernel puts up with any number.
        let (error, time) = as_nobody(send_until_it_fails);
        assert!(error.to_string().contains("are not received"), "{error}");
        assert!((TOO_LONG..2 * TOO_LONG).contains(&time), "after {time:?}");
    }

    #[test]
    fn what_was_sent_arrives_although_the_sender_is_gone_whose_end_is_seen_then() {
        let (here, there) = pair().unwrap();
        send_sockets(&here, [(port(80), &free_socket())]).unwrap();
        drop(here);
        assert_eq!(receive(&there).unwrap().unwrap().1.len(), 1);
        assert!(receive(&there).unwrap().is_none());
    }

    #[test]
    fn what_a_newer_program_says_is_told() {
        let (here, there) = pair().unwrap();
        rustix::net::send(&here, br#"{"v":9,"type":"sing"}"#, SendFlags::empty()).unwrap();
        let problem = receive(&there).unwrap_err().to_string();
        assert!(problem.contains("a newer launchway wrote it"), "{problem}");
    }

    #[test]
    fn a_folder_with_a_long_path_has_a_socket_too() {
        let root = tempfile::tempdir().unwrap();
        let long = root.path().join("n".repeat(120));
        std::fs::create_dir(&long).unwrap();
        let dir = ServicesDir::new(long);
        let entrance = listen(&dir).unwrap();
        let caller = connect(&dir, Duration::from_secs(5)).unwrap();
        send(&caller, &Message::Who).unwrap();
        let called = rustix::net::accept(&entrance).unwrap();
        assert_eq!(receive(&called).unwrap().unwrap().0, Message::Who);
    }
}
