//! What is applied, and what becomes of it.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use launchway::error::Class;
use launchway::model::pod::Scalar;
use launchway::runtime::ServiceAddress;

use crate::support::{Client, Opens, World, eventually, get, is_running, namespace, open, spec, unused_port};

#[test]
fn applying_again_changes_nothing() {
    let world = World::new();
    let (spec, address) = world.web();
    let (shim, proxy) = (world.shim(), world.proxy());
    assert_eq!(world.apply(&spec), address);
    assert_eq!((world.shim(), world.proxy()), (shim, proxy));
}

#[test]
fn a_service_keeps_its_address_when_everything_else_is_gone() {
    let world = World::new();
    let (mut spec, address) = world.web();
    world.terminate();
    assert!(world.listed("web").problem.unwrap().contains("no shim"));
    spec.selector.insert("x".into(), "y".into());
    let after = open(world.root.path()).apply(&spec).unwrap();
    assert_eq!((after.address, after.problem), (address.ip(), None));
    TcpStream::connect(address).unwrap();
}

#[test]
fn launchways_that_start_at_the_same_time_do_not_meet_at_one_address() {
    let (worlds, port) = ([(); 6].map(|()| World::new()), unused_port());
    let start = Barrier::new(worlds.len());
    let apply = |world: &World| {
        start.wait();
        world.apply(&spec("web", &[port])).ip()
    };
    let addresses: BTreeSet<IpAddr> = thread::scope(|scope| {
        let applying: Vec<_> = worlds.iter().map(|world| scope.spawn(|| apply(world))).collect();
        applying.into_iter().map(|applied| applied.join().unwrap()).collect()
    });
    assert_eq!(addresses.len(), worlds.len(), "{addresses:?}");
}

#[test]
fn ports_come_and_go_and_connections_to_those_that_stay_live_on() {
    let world = World::new();
    let ports = [unused_port(), unused_port(), unused_port()];
    let address = world.apply(&spec("web", &ports[..2]));
    let pod = world.pod("a");
    pod.make_ready();
    world.select(&[&pod]);
    let mut client = Client::connect(address).unwrap();
    assert_eq!(client.get("/").unwrap().body, "a");
    let proxy = world.proxy();
    world.apply(&spec("web", &[ports[0], ports[2]]));
    assert_eq!(client.get("/").unwrap().body, "a");
    let at = |port| SocketAddr::new(address.ip(), port);
    assert_eq!(get(at(ports[2]), "/").unwrap().body, "a");
    eventually("the port is closed", || TcpStream::connect(at(ports[1])).is_err());
    assert_eq!(world.proxy(), proxy);
}

#[test]
fn a_port_that_goes_takes_its_connections_along_when_they_are_answered() {
    let world = World::new();
    let ports = [unused_port(), unused_port()];
    let ip = world.apply(&spec("web", &ports)).ip();
    let pod = world.pod("a");
    pod.make_ready();
    world.select(&[&pod]);
    let connect = |port| Client::connect(SocketAddr::new(ip, port)).unwrap();
    let [mut stays, mut idle, mut busy] = [ports[0], ports[1], ports[1]].map(connect);
    for client in [&mut stays, &mut idle, &mut busy] {
        assert_eq!(client.get("/").unwrap().body, "a");
    }
    busy.write(b"GET /slow/1000 HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    eventually("the request is on its way", || !pod.is_drained());
    world.apply(&spec("web", &ports[..1]));
    let begun = Instant::now();
    assert!(idle.is_closed());
    assert!(begun.elapsed() < Duration::from_millis(900), "after {:?}", begun.elapsed());
    assert_eq!(busy.answer().unwrap().body, "slow");
    assert!(busy.is_closed());
    assert_eq!(stays.get("/").unwrap().body, "a");
}

#[test]
fn a_changed_target_needs_no_new_process() {
    let world = World::new();
    let (mut spec, address) = world.web();
    let pod = world.pod("a");
    pod.make_ready();
    world.select(&[&pod]);
    spec.ports[0].target_port = Scalar::Number(8080);
    world.apply(&spec);
    assert_eq!(get(address, "/").unwrap().body, "a");
    spec.ports[0].target_port = Scalar::Number(pod.port.into());
    world.apply(&spec);
    assert_eq!(get(address, "/").unwrap().body, "a");
}

#[test]
fn a_port_in_use_is_a_problem_until_it_is_free() {
    let world = World::new();
    // On all addresses of the machine, so that no other address helps.
    let taken = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let service = world.services.apply(&spec("web", &[port])).unwrap();
    let problem = service.problem.unwrap();
    assert!(problem.contains(&format!("port {port} of {} is in use", service.address)), "{problem}");
    drop(taken);
    eventually("the problem is gone", || world.listed("web").problem.is_none());
    TcpStream::connect((service.address, port)).unwrap();
}

#[test]
fn a_damaged_record_stands_in_the_way_of_no_other_service() {
    let world = World::new();
    world.apply(&spec("cart", &[unused_port()]));
    let (_, address) = world.web();
    fs::write(world.service_dir("cart").join("service.json"), "{").unwrap();

    let again = open(world.root.path());
    let names = |services: Vec<ServiceAddress>| services.into_iter().map(|it| it.name).collect::<Vec<_>>();
    assert_eq!(names(again.addresses(&namespace()).unwrap()), ["web"]);
    let pod = world.pod("a");
    pod.make_ready();
    again.pod_changed(&pod.id(), &|| Some(pod.endpoint())).unwrap();
    assert_eq!(get(address, "/").unwrap().status, 200);
    assert_eq!(again.apply(&spec("new", &[unused_port()])).unwrap().problem, None);
    again.remove(&namespace(), "cart").unwrap();
    assert!(!world.service_dir("cart").exists());
}

#[test]
fn a_new_service_reads_the_records_of_others_at_most_once() {
    let world = World::new();
    let names = ["a", "b", "c", "d"];
    let addresses: BTreeSet<SocketAddr> = names.iter().map(|name| world.apply(&spec(name, &[unused_port()]))).collect();
    assert_eq!(addresses.len(), names.len());
    let opens = Opens::within(&names.map(|name| world.service_dir(name)));
    world.proxy();
    opens.come_to_rest("service.json");
    world.apply(&spec("e", &[unused_port()]));
    assert_eq!(opens.of("service.json"), 0, "what is taken is known");

    let again = open(world.root.path());
    again.apply(&spec("f", &[unused_port()])).unwrap();
    assert_eq!(opens.of("service.json"), names.len(), "another daemon has to find it out");
    again.apply(&spec("g", &[unused_port()])).unwrap();
    assert_eq!(opens.of("service.json"), 0, "once");
}

#[test]
fn a_service_whose_record_was_deleted_has_its_address_again() {
    let world = World::new();
    let (spec, address) = world.web();
    world.services.addresses(&namespace()).unwrap();
    world.terminate();
    fs::remove_dir_all(world.service_dir("web")).unwrap();
    assert_eq!(world.apply(&spec), address);
}

#[test]
fn a_service_that_cannot_be_told_of_a_pod_keeps_the_news_from_no_other() {
    let world = World::new();
    world.apply(&spec("cart", &[unused_port()]));
    let (_, address) = world.web();
    let endpoints = world.service_dir("cart").join("endpoints.json");
    fs::remove_file(&endpoints).unwrap();
    fs::create_dir(&endpoints).unwrap();
    let pod = world.pod("a");
    pod.make_ready();
    let told = world.services.pod_changed(&pod.id(), &|| Some(pod.endpoint()));
    assert!(told.unwrap_err().to_string().contains("cart"));
    assert_eq!(get(address, "/").unwrap().status, 200);
}

#[test]
fn another_program_at_its_address_moves_a_new_service_aside() {
    let world = World::new();
    let port = unused_port();
    let usual = world.apply(&spec("web", &[port])).ip();
    world.services.remove(&namespace(), "web").unwrap();
    let mut taken = None;
    eventually("another program has the address", || {
        taken = TcpListener::bind((usual, port)).ok();
        taken.is_some()
    });
    let other = world.apply(&spec("web", &[port])).ip();
    assert_ne!(other, usual);
    assert!(matches!(other, IpAddr::V4(address) if address.is_loopback()));
}

#[test]
fn a_removed_service_answers_what_is_on_its_way_and_leaves_nothing() {
    let world = World::new();
    let (spec, address) = world.web();
    let pod = world.pod("a");
    pod.make_ready();
    world.select(&[&pod]);
    let (shim, proxy) = (world.shim(), world.proxy());
    let mut client = Client::connect(address).unwrap();
    client.write(b"GET /slow/300 HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    eventually("the request is on its way", || !pod.is_drained());
    world.services.remove(&namespace(), "web").unwrap();
    assert!(TcpStream::connect(address).is_err());
    assert_eq!(client.answer().unwrap().body, "slow");
    eventually("its processes are gone", || !is_running(shim) && !is_running(proxy));
    assert!(!world.service_dir("web").exists());
    world.services.remove(&namespace(), "web").unwrap();
    assert_eq!(world.apply(&spec), address);
}

#[test]
fn what_cannot_be_served_is_refused() {
    let world = World::new();
    let mut udp = spec("dns", &[53]);
    udp.ports[0].protocol = Some("UDP".into());
    let failure = world.services.apply(&udp).unwrap_err();
    assert_eq!(failure.class(), Class::Stalled);
    assert_eq!(
        failure.one_line(),
        "port 53 of service `dns` is UDP (the local runtime carries TCP only: remove the port, or deploy the stage to \
         a cluster)"
    );
    assert!(world.services.list(&namespace()).unwrap().is_empty());
}

#[test]
fn a_pod_is_told_to_the_services_that_select_it_and_to_no_other() {
    let world = World::new();
    let (web, _) = world.web();
    let mut other = spec("other", &[unused_port()]);
    other.selector = [("app".to_owned(), "other".to_owned())].into();
    world.apply(&other);
    let untouched = world.service_dir("other").join("endpoints.json");
    fs::write(&untouched, "as it is").unwrap();
    let pods = ["web-1", "web-2"].map(|name| world.pod(name));
    for (pod, ready) in pods.iter().zip(1..) {
        pod.make_ready();
        world.comes(pod);
        assert_eq!(world.listed("web").ready, ready);
    }
    let selected = |spec| world.services.selected(spec).iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!((selected(&web), selected(&other)), (vec!["web-1".to_owned(), "web-2".to_owned()], vec![]));
    world.goes(&pods[0].id());
    assert_eq!(world.listed("web").ready, 1);
    assert_eq!(fs::read_to_string(untouched).unwrap(), "as it is");
}
