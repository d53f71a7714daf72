//! What the shim listens on for each service, and what stands in the way.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::TcpListener;

use super::channel::{Port, Status};
use super::ports::{Ports, address_of, follow_ports};
use super::record::{self, ServiceId, ServiceRecord, ServicesDir};

/// All services of a shim.
#[derive(Debug)]
pub(super) struct Listening {
    dir: ServicesDir,
    services: BTreeMap<ServiceId, Service>,
    /// Those some of whose ports do not answer.
    troubled: BTreeSet<ServiceId>,
}

#[derive(Debug, Default)]
struct Service {
    sockets: Ports,
    status: Status,
}

/// The ports that another look at a record has opened and closed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) opened: Vec<Port>,
    pub(super) closed: Vec<Port>,
}

impl Listening {
    pub(super) fn new(dir: ServicesDir) -> Self {
        Self { dir, services: BTreeMap::new(), troubled: BTreeSet::new() }
    }

    /// Listens on the ports that a service's record names now; nothing, if it has none any more. What is `given` is taken
    /// before another socket is made. Sockets of ports that stay are never closed.
    pub(super) fn follow(&mut self, id: &ServiceId, given: Ports) -> Change {
        let mut service = self.services.remove(id).unwrap_or_default();
        let before: BTreeSet<u16> = service.sockets.keys().copied().collect();
        let is_there = match record::read::<ServiceRecord>(&self.dir.of(id).record()) {
            Ok(None) => {
                service.sockets.clear();
                false
            }
            Ok(Some(record)) => {
                service.make_true(&record, given);
                true
            }
            Err(error) => {
                service.go_on(given, &error);
                true
            }
        };
        let after: BTreeSet<u16> = service.sockets.keys().copied().collect();
        let port = |number: &u16| Port { service: id.clone(), number: *number };
        let opened = after.difference(&before).map(port).collect();
        let closed = before.difference(&after).map(port).collect();
        self.troubled.remove(id);
        if is_there {
            self.troubled.extend((!service.status.problems.is_empty()).then(|| id.clone()));
            self.services.insert(id.clone(), service);
        }
        Change { opened, closed }
    }

    /// What became of a service; the default, if there is none.
    pub(super) fn status(&self, id: &ServiceId) -> Status {
        self.services.get(id).map(|service| service.status.clone()).unwrap_or_default()
    }

    /// The services some of whose ports do not answer.
    pub(super) fn troubled(&self) -> Vec<ServiceId> {
        self.troubled.iter().cloned().collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.services.is_empty()
    }

    /// Everything that is listened on.
    pub(super) fn sockets(&self) -> impl Iterator<Item = (Port, &TcpListener)> {
        self.services.keys().flat_map(|id| self.of(id))
    }

    /// That of one service.
    pub(super) fn of(&self, id: &ServiceId) -> impl Iterator<Item = (Port, &TcpListener)> {
        let sockets = self.services.get(id).into_iter().flat_map(|service| &service.sockets);
        sockets.map(|(number, socket)| (Port { service: id.clone(), number: *number }, socket))
    }
}

impl Service {
    fn make_true(&mut self, record: &ServiceRecord, given: Ports) {
        let is_elsewhere = |socket: &TcpListener| address_of(socket) != Some(record.address);
        self.sockets.retain(|_, socket| !is_elsewhere(socket));
        let problems = follow_ports(&mut self.sockets, given, record);
        self.status = Status { generation: record.generation, address: Some(record.address), problems };
    }

    /// A record that cannot be read closes nothing, and says nothing against what listened before.
    fn go_on(&mut self, given: Ports, error: &io::Error) {
        for (port, socket) in given {
            self.sockets.entry(port).or_insert(socket);
        }
        let address = self.sockets.values().find_map(address_of);
        self.status.address = self.status.address.or(address);
        self.status.problems = vec![format!("its record cannot be read: {error}")];
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::super::ports::listen;
    use super::*;
    use crate::model::pod::Scalar;
    use crate::runtime::local::host::files::Durability;
    use crate::runtime::{ServicePort, ServiceSpec};

    struct World {
        listening: Listening,
        root: tempfile::TempDir,
        id: ServiceId,
    }

    impl World {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            let listening = Listening::new(ServicesDir::new(root.path()));
            Self { listening, root, id: ServiceId::new("shop-dev", "web").unwrap() }
        }

        fn write(&self, generation: u64, ports: &[u16]) {
            let port =
                |port: &u16| ServicePort { name: None, port: *port, target_port: Scalar::Number(1), protocol: None };
            let spec = ServiceSpec {
                namespace: "shop-dev".into(),
                name: "web".into(),
                ports: ports.iter().map(port).collect(),
                selector: BTreeMap::new(),
                external: vec![],
                backends: vec![],
                earlier: vec![],
            };
            let record = ServiceRecord { v: record::VERSION, generation, address: Ipv4Addr::LOCALHOST, spec };
            let dir = ServicesDir::new(self.root.path()).of(&self.id);
            std::fs::create_dir_all(dir.path()).unwrap();
            dir.write(&dir.record(), &record, Durability::Plain).unwrap();
        }

        fn damage(&self) {
            std::fs::write(ServicesDir::new(self.root.path()).of(&self.id).record(), "{").unwrap();
        }

        fn follow(&mut self) -> (Vec<u16>, Vec<u16>) {
            let Change { opened, closed } = self.listening.follow(&self.id.clone(), Ports::new());
            let numbers = |ports: Vec<Port>| ports.into_iter().map(|port| port.number).collect();
            (numbers(opened), numbers(closed))
        }
    }

    fn free_port() -> u16 {
        listen(Ipv4Addr::LOCALHOST, 0).unwrap().local_addr().unwrap().port()
    }

    #[test]
    fn ports_follow_the_record_until_it_is_gone() {
        let (mut world, a, b) = (World::new(), free_port(), free_port());
        assert_eq!(world.follow(), (vec![], vec![]), "there is no service");
        world.write(1, &[a]);
        assert_eq!(world.follow(), (vec![a], vec![]));
        world.write(2, &[b]);
        assert_eq!(world.follow(), (vec![b], vec![a]));
        assert_eq!(world.listening.status(&world.id).generation, 2);
        std::fs::remove_dir_all(world.root.path().join("shop-dev")).unwrap();
        assert_eq!(world.follow(), (vec![], vec![b]));
        assert!(world.listening.is_empty() && world.listening.sockets().next().is_none());
    }

    #[test]
    fn a_damaged_record_closes_nothing_and_is_told_with_the_address() {
        let (mut world, port) = (World::new(), free_port());
        world.write(3, &[port]);
        world.follow();
        world.damage();
        assert_eq!(world.follow(), (vec![], vec![]));
        let status = world.listening.status(&world.id);
        assert_eq!((status.generation, status.address), (3, Some(Ipv4Addr::LOCALHOST)));
        assert!(status.problems[0].contains("damaged"), "{:?}", status.problems);
    }

    #[test]
    fn sockets_that_are_given_say_the_address_of_a_record_that_cannot_be_read() {
        let mut world = World::new();
        world.write(3, &[]);
        world.damage();
        let given = [(80, listen(Ipv4Addr::LOCALHOST, 0).unwrap())].into();
        assert_eq!(world.listening.follow(&world.id.clone(), given).opened.len(), 1);
        assert_eq!(world.listening.status(&world.id).address, Some(Ipv4Addr::LOCALHOST));
    }

    #[test]
    fn a_service_is_troubled_until_its_ports_answer() {
        let mut world = World::new();
        let taken = listen(Ipv4Addr::LOCALHOST, 0).unwrap();
        world.write(1, &[taken.local_addr().unwrap().port()]);
        world.follow();
        assert_eq!(world.listening.troubled(), [world.id.clone()]);
        drop(taken);
        world.follow();
        assert!(world.listening.troubled().is_empty());
    }
}
