//! Listening sockets that another process has given to a shim.

use std::collections::BTreeMap;
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;

use super::channel::{self, Message, Port};
use super::ports::Ports;
use super::record::ServiceId;

/// Sockets by the service whose they are.
#[derive(Debug, Default)]
pub(super) struct Given(BTreeMap<ServiceId, Ports>);

impl Given {
    /// All that another one sends until it says that this was all.
    pub(super) fn receive(channel: &OwnedFd) -> io::Result<Self> {
        let mut given = Self::default();
        loop {
            match channel::receive(channel)? {
                Some((Message::Open { ports }, sockets)) => given.add(ports, sockets),
                Some((Message::Done, _)) => return Ok(given),
                Some(_) => return Err(io::Error::new(io::ErrorKind::InvalidData, "sockets were to come")),
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
    }

    /// Those of one message.
    pub(super) fn of(ports: Vec<Port>, sockets: Vec<TcpListener>) -> Self {
        let mut given = Self::default();
        given.add(ports, sockets);
        given
    }

    fn add(&mut self, ports: Vec<Port>, sockets: Vec<TcpListener>) {
        for (Port { service, number }, socket) in ports.into_iter().zip(sockets) {
            self.0.entry(service).or_default().insert(number, socket);
        }
    }

    /// The services whose sockets are here.
    pub(super) fn services(&self) -> Vec<ServiceId> {
        self.0.keys().cloned().collect()
    }

    /// Those of a service, which are here no longer.
    pub(super) fn take(&mut self, service: &ServiceId) -> Ports {
        self.0.remove(service).unwrap_or_default()
    }
}
