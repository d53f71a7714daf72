//! Listening sockets: made by the shim, passed to the proxy.
//!
//! They travel over a pair of connected sockets, one end of which is the receiver's standard input. Every message is
//! the whole set; the other end's closing tells that its process is gone.

use std::collections::BTreeMap;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType,
};

/// The most ports that a service may have: so many sockets fit into one message.
pub(super) const MAX_PORTS: usize = 64;
/// Connections that wait while a proxy is being replaced; the kernel may lower it.
const BACKLOG: i32 = 4096;

/// A service's listening sockets, by the port that clients use.
pub(super) type Sockets = BTreeMap<u16, TcpListener>;

/// Listens on an address.
pub(super) fn listen(address: Ipv4Addr, port: u16) -> io::Result<TcpListener> {
    let socket = TcpListener::bind((address, port))?;
    socket.set_nonblocking(true)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Two connected ends; what is written at one arrives at the other, message by message.
pub(super) fn channel() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Sends a whole set. The sockets stay open here as well.
pub(super) fn send(channel: &OwnedFd, sockets: &Sockets) -> io::Result<()> {
    let ports = serde_json::to_vec(&sockets.keys().collect::<Vec<_>>())?;
    let descriptors: Vec<BorrowedFd<'_>> = sockets.values().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_PORTS))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !rights.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("more than {MAX_PORTS} ports")));
    }
    rustix::net::sendmsg(channel, &[IoSlice::new(&ports)], &mut rights, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// The end of a channel at which a set has arrived.
pub(super) fn sent(sockets: &Sockets) -> io::Result<OwnedFd> {
    let (here, there) = channel()?;
    send(&here, sockets)?;
    Ok(there)
}

/// Receives a set; `None` if the other end is closed.
pub(super) fn receive(channel: impl AsFd) -> io::Result<Option<Sockets>> {
    let mut ports = [0; 8 * MAX_PORTS];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_PORTS))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let message =
        rustix::net::recvmsg(channel, &mut [IoSliceMut::new(&mut ports)], &mut rights, RecvFlags::CMSG_CLOEXEC)?;
    if message.bytes == 0 {
        return Ok(None);
    }
    let mut descriptors = Vec::new();
    for part in rights.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = part {
            descriptors.extend(received);
        }
    }
    let ports: Vec<u16> = serde_json::from_slice(ports.get(..message.bytes).unwrap_or_default())?;
    if ports.len() != descriptors.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "ports and sockets differ in number"));
    }
    Ok(Some(ports.into_iter().zip(descriptors.into_iter().map(TcpListener::from)).collect()))
}

/// The end of a channel that a parent process left as standard input.
pub(super) fn inherited() -> io::Result<OwnedFd> {
    io::stdin().as_fd().try_clone_to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_sockets_as_allowed_arrive_and_an_empty_set_too() {
        let (here, there) = channel().unwrap();
        for count in [0, 1, MAX_PORTS] {
            let sockets: Vec<TcpListener> = (0..count).map(|_| listen(Ipv4Addr::LOCALHOST, 0).unwrap()).collect();
            let port = |socket: &TcpListener| socket.local_addr().unwrap().port();
            let sent: Sockets = sockets.into_iter().map(|socket| (port(&socket), socket)).collect();
            send(&here, &sent).unwrap();
            let received = receive(&there).unwrap().unwrap();
            assert_eq!(received.len(), count);
            assert!(received.iter().all(|(number, socket)| port(socket) == *number));
        }
    }

    #[test]
    fn what_was_sent_arrives_although_the_sender_is_gone() {
        let socket = listen(Ipv4Addr::LOCALHOST, 0).unwrap();
        let port = socket.local_addr().unwrap().port();
        let there = sent(&Sockets::from([(port, socket)])).unwrap();
        assert!(receive(&there).unwrap().unwrap().contains_key(&port));
        assert!(receive(&there).unwrap().is_none());
    }

    #[test]
    fn the_end_of_the_other_side_is_seen() {
        let (here, there) = channel().unwrap();
        drop(here);
        assert!(receive(&there).unwrap().is_none());
    }
}
