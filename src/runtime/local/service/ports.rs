//! Which of a service's ports are listened on, and why others are not.

use std::io;
use std::net::Ipv4Addr;

use super::record::ServiceRecord;
use super::sockets::{self, Sockets};
use crate::runtime::ServiceSpec;

/// Listens at an address on all ports of a service; nothing, if somebody else has one of them. A port that cannot be had
/// anywhere is left out: the shim says why.
pub(super) fn claim(address: Ipv4Addr, spec: &ServiceSpec) -> Option<Sockets> {
    let mut claimed = Sockets::new();
    for port in spec.ports.iter().map(|port| port.port) {
        match sockets::listen(address, port) {
            Ok(socket) => drop(claimed.insert(port, socket)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => return None,
            Err(_) => {}
        }
    }
    Some(claimed)
}

/// Closes and opens sockets until they are what is wanted; returns what stands in the way.
pub(super) fn follow_ports(sockets: &mut Sockets, record: &ServiceRecord) -> Vec<String> {
    let wanted: Vec<u16> = record.spec.ports.iter().map(|port| port.port).collect();
    sockets.retain(|port, _| wanted.contains(port));
    let mut problems = Vec::new();
    for port in wanted {
        if sockets.contains_key(&port) {
            continue;
        }
        match sockets::listen(record.address, port) {
            Ok(socket) => {
                sockets.insert(port, socket);
            }
            Err(error) => problems.push(explain(record, port, &error)),
        }
    }
    problems
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
        };
        ServiceRecord { v: super::super::record::VERSION, generation: 1, address: Ipv4Addr::LOCALHOST, spec }
    }

    fn free_port() -> u16 {
        sockets::listen(Ipv4Addr::LOCALHOST, 0).unwrap().local_addr().unwrap().port()
    }

    #[test]
    fn a_kept_port_keeps_its_socket_while_others_come_and_go() {
        let (kept, dropped, added) = (free_port(), free_port(), free_port());
        let mut sockets = Sockets::new();
        assert!(follow_ports(&mut sockets, &record(&[kept, dropped])).is_empty());
        let before = std::os::fd::AsRawFd::as_raw_fd(&sockets[&kept]);
        assert!(follow_ports(&mut sockets, &record(&[kept, added])).is_empty());
        assert_eq!(std::os::fd::AsRawFd::as_raw_fd(&sockets[&kept]), before);
        assert!(sockets.contains_key(&added) && !sockets.contains_key(&dropped));
    }

    #[test]
    fn a_port_in_use_is_a_problem_that_says_what_to_do_and_the_others_answer() {
        let taken = sockets::listen(Ipv4Addr::LOCALHOST, 0).unwrap();
        let (busy, free) = (taken.local_addr().unwrap().port(), free_port());
        let mut sockets = Sockets::new();
        let problems = follow_ports(&mut sockets, &record(&[busy, free]));
        let expected =
            format!("port {busy} of 127.0.0.1 is in use by another process: end it or change the service's port");
        assert_eq!(problems, [expected]);
        assert!(sockets.contains_key(&free));
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
