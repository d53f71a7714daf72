//! Which of a service's ports are listened on, and why others are not.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, TcpListener};

use super::record::ServiceRecord;
use crate::runtime::ServiceSpec;

/// Connections that wait while a proxy is being replaced; the kernel may lower it.
const BACKLOG: i32 = 4096;

/// A service's listening sockets, by the port that clients use.
pub(super) type Ports = BTreeMap<u16, TcpListener>;

/// Listens on an address.
pub(super) fn listen(address: Ipv4Addr, port: u16) -> io::Result<TcpListener> {
    let socket = TcpListener::bind((address, port))?;
    socket.set_nonblocking(true)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Listens at an address on all ports of a service; nothing, if somebody else has one of them. A port that cannot be had
/// anywhere is left out: the shim says why.
pub(super) fn claim(address: Ipv4Addr, spec: &ServiceSpec) -> Option<Ports> {
    let mut claimed = Ports::new();
    for port in spec.port_numbers() {
        match listen(address, port) {
            Ok(socket) => drop(claimed.insert(port, socket)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => return None,
            Err(_) => {}
        }
    }
    Some(claimed)
}

/// Closes and opens sockets until they are what is wanted, those that are given first; returns what stands in the way.
pub(super) fn follow_ports(open: &mut Ports, mut given: Ports, record: &ServiceRecord) -> Vec<String> {
    let wanted = record.spec.port_numbers();
    open.retain(|port, _| wanted.contains(port));
    given.retain(|_, socket| address_of(socket) == Some(record.address));
    let mut problems = Vec::new();
    for port in wanted {
        if open.contains_key(&port) {
            continue;
        }
        match given.remove(&port).map_or_else(|| listen(record.address, port), Ok) {
            Ok(socket) => drop(open.insert(port, socket)),
            Err(error) => problems.push(explain(record, port, &error)),
        }
    }
    problems
}

/// Where a socket listens.
pub(super) fn address_of(socket: &TcpListener) -> Option<Ipv4Addr> {
    match socket.local_addr().ok()?.ip() {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}

/// Why a port does not answer and what to do, in a sentence.
fn explain(record: &ServiceRecord, port: u16, error: &io::Error) -> String {
    let address = record.address;
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("port {port} of {address} is in use by another process: end it or change the service's port")
        }
        io::ErrorKind::PermissionDenied => format!(
            "port {port} needs privileges: use a port above 1023, lower net.ipv4.ip_unprivileged_port_start, or give \
             launchway CAP_NET_BIND_SERVICE"
        ),
        io::ErrorKind::AddrNotAvailable => {
            format!("{address} is not an address of this machine: its loopback interface must have 127.0.0.0/8")
        }
        _ => format!("cannot listen on port {port} of {address}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ids::Namespace;
    use crate::model::pod::Scalar;
    use crate::runtime::ServicePort;

    fn record(ports: &[u16]) -> ServiceRecord {
        let port = |port: &u16| ServicePort { name: None, port: *port, target_port: Scalar::Number(1), protocol: None };
        let spec = ServiceSpec {
            namespace: Namespace::from("ns"),
            name: "web".into(),
            ports: ports.iter().map(port).collect(),
            selector: Default::default(),
            external: vec![],
            backends: vec![],
            earlier: vec![],
        };
        ServiceRecord { v: super::super::record::VERSION, generation: 1, address: Ipv4Addr::LOCALHOST, spec }
    }

    fn free_port() -> u16 {
        listen(Ipv4Addr::LOCALHOST, 0).unwrap().local_addr().unwrap().port()
    }

    #[test]
    fn a_kept_port_keeps_its_socket_while_others_come_and_go() {
        let (kept, dropped, added) = (free_port(), free_port(), free_port());
        let mut sockets = Ports::new();
        assert!(follow_ports(&mut sockets, Ports::new(), &record(&[kept, dropped])).is_empty());
        let before = std::os::fd::AsRawFd::as_raw_fd(&sockets[&kept]);
        assert!(follow_ports(&mut sockets, Ports::new(), &record(&[kept, added])).is_empty());
        assert_eq!(std::os::fd::AsRawFd::as_raw_fd(&sockets[&kept]), before);
        assert!(sockets.contains_key(&added) && !sockets.contains_key(&dropped));
    }

    #[test]
    fn a_port_in_use_is_a_problem_that_says_what_to_do_and_the_others_answer() {
        let taken = listen(Ipv4Addr::LOCALHOST, 0).unwrap();
        let (busy, free) = (taken.local_addr().unwrap().port(), free_port());
        let mut sockets = Ports::new();
        let problems = follow_ports(&mut sockets, Ports::new(), &record(&[busy, free]));
        let expected =
            format!("port {busy} of 127.0.0.1 is in use by another process: end it or change the service's port");
        assert_eq!(problems, [expected]);
        assert!(sockets.contains_key(&free));
    }

    #[test]
    fn a_socket_that_is_given_is_taken_if_it_listens_at_the_address() {
        let given = listen(Ipv4Addr::LOCALHOST, 0).unwrap();
        let elsewhere = listen(Ipv4Addr::new(127, 0, 0, 2), 0).unwrap();
        let port = |socket: &TcpListener| socket.local_addr().unwrap().port();
        let (here, there, unwanted) = (port(&given), port(&elsewhere), free_port());
        let before = std::os::fd::AsRawFd::as_raw_fd(&given);
        let mut sockets = Ports::new();
        let given = [(here, given), (there, elsewhere), (unwanted, listen(Ipv4Addr::LOCALHOST, 0).unwrap())].into();
        assert!(follow_ports(&mut sockets, given, &record(&[here, there])).is_empty());
        assert_eq!(std::os::fd::AsRawFd::as_raw_fd(&sockets[&here]), before);
        assert!(sockets.values().all(|socket| address_of(socket) == Some(Ipv4Addr::LOCALHOST)));
        assert_eq!(sockets.len(), 2);
    }

    #[test]
    fn every_reason_says_what_to_do() {
        let cases = [
            (io::ErrorKind::PermissionDenied, "use a port above 1023"),
            (io::ErrorKind::AddrNotAvailable, "must have 127.0.0.0/8"),
            (io::ErrorKind::OutOfMemory, "cannot listen on port 80"),
        ];
        for (kind, expected) in cases {
            let text = explain(&record(&[80]), 80, &io::Error::from(kind));
            assert!(text.contains(expected), "{text}");
        }
    }
}
