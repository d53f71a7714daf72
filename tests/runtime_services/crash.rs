//! Whoever dies, connections are not refused.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::support::{Client, Load, World, eventually, get, is_running, kill, namespace, open, spec, unused_port};

fn world_with_pod() -> (World, SocketAddr, crate::support::Pod) {
    let world = World::new();
    let (_, address) = world.web();
    let pod = world.pod("a");
    pod.make_ready();
    world.select(&[&pod]);
    assert_eq!(get(address, "/").unwrap().body, "a");
    (world, address, pod)
}

#[test]
fn the_proxys_death_refuses_no_connection() {
    let (world, address, _pod) = world_with_pod();
    let load = Load::start(address);
    for _ in 0..5 {
        let proxy = world.proxy();
        kill(proxy);
        eventually("another proxy answers", || world.proxy() != proxy && get(address, "/").is_ok());
    }
    let seen = load.end();
    assert_eq!(seen.refused, 0);
    assert_eq!(seen.answers.keys().collect::<Vec<_>>(), ["200 a"]);
    // What was in the proxy itself when it died is lost: at most what each client had under way.
    assert!(seen.broken.len() <= 5 * 4, "{:?}", seen.broken);
}

#[test]
fn the_shims_death_refuses_no_connection_and_breaks_none() {
    let (world, address, _pod) = world_with_pod();
    let load = Load::start(address);
    for _ in 0..3 {
        let (shim, proxy) = (world.shim(), world.proxy());
        kill(shim);
        eventually("another shim holds the sockets", || {
            !is_running(shim) && world.shim() != shim && world.listed("web").problem.is_none()
        });
        assert_ne!(world.proxy(), proxy);
        assert_eq!(get(address, "/").unwrap().body, "a");
    }
    let seen = load.end();
    assert_eq!((seen.refused, &seen.broken), (0, &vec![]));
    assert_eq!(seen.answers.keys().collect::<Vec<_>>(), ["200 a"]);
}

/// Clients of these addresses whose connections a proxy has that was orphaned by its shim's death, and that proxy.
fn left_with_an_orphan<const N: usize>(world: &World, addresses: [SocketAddr; N]) -> ([Client; N], i32) {
    let mut clients = addresses.map(|address| Client::connect(address).unwrap());
    let ask = |client: &mut Client| assert_eq!(client.get("/").unwrap().body, "a");
    clients.iter_mut().for_each(ask);
    let (shim, proxy) = (world.shim(), world.proxy());
    kill(shim);
    eventually("another shim and proxy serve", || world.shim() != shim && world.proxy() != proxy);
    clients.iter_mut().for_each(ask);
    (clients, proxy)
}

#[test]
fn a_removed_service_ends_also_where_a_proxy_has_lost_its_shim() {
    let (world, address, _pod) = world_with_pod();
    let other = world.apply(&spec("other", &[unused_port()]));
    let ([mut goes, mut stays], orphan) = left_with_an_orphan(&world, [address, other]);
    world.services.remove(&namespace(), "web").unwrap();
    assert!(goes.is_closed());
    assert_eq!(stays.get("/").unwrap().body, "a");
    drop(stays);
    eventually("the orphan ends with its last connection", || !is_running(orphan));
}

#[test]
fn a_proxy_that_only_finishes_ends_when_it_is_told_to() {
    let (world, address, _pod) = world_with_pod();
    let ([mut kept], orphan) = left_with_an_orphan(&world, [address]);
    rustix::process::kill_process(Pid::from_raw(orphan).unwrap(), Signal::TERM).unwrap();
    assert!(kept.is_closed());
    eventually("it ends", || !is_running(orphan));
}

#[test]
fn the_end_of_shim_and_proxy_is_healed_by_the_next_apply() {
    let (world, address, _pod) = world_with_pod();
    world.terminate();
    let (spec, again) = (spec("web", &[address.port()]), open(world.root.path()));
    assert_eq!(again.apply(&spec).unwrap().problem, None);
    // Nobody has told this daemon about pods yet: those of before stand.
    assert_eq!(get(address, "/").unwrap().body, "a");
}

#[test]
fn the_death_of_shim_and_proxy_is_noticed_by_a_daemon_that_lives() {
    let (world, address, _pod) = world_with_pod();
    for _ in 0..2 {
        let (shim, proxy) = (world.shim(), world.proxy());
        // It must not start another shim itself.
        rustix::process::kill_process(Pid::from_raw(proxy).unwrap(), Signal::STOP).unwrap();
        kill(shim);
        kill(proxy);
        eventually("both are back", || get(address, "/").is_ok_and(|answer| answer.body == "a"));
        assert!(world.shim() != shim && world.proxy() != proxy);
    }
}

/// Where a stand-in for the daemon finds its world.
const STAND_IN: &str = "SERVICES_STAND_IN";

#[test]
#[ignore = "started by the test below, as a process of its own"]
fn stand_in() {
    let root = PathBuf::from(std::env::var_os(STAND_IN).unwrap());
    let port = fs::read_to_string(root.join("port")).unwrap().parse().unwrap();
    open(&root).apply(&spec("web", &[port])).unwrap();
    fs::write(root.join("applied"), "").unwrap();
    loop {
        std::thread::park();
    }
}

#[test]
fn the_daemons_death_with_its_whole_group_is_not_noticed() {
    let world = World::new();
    let port = unused_port();
    fs::write(world.root.path().join("port"), port.to_string()).unwrap();
    let mut daemon = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::stand_in", "--ignored"])
        .env(STAND_IN, world.root.path())
        .stdout(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    eventually("the daemon has applied the service", || world.root.path().join("applied").exists());
    let address = SocketAddr::new(world.listed("web").address, port);
    let pod = world.pod("a");
    pod.make_ready();
    world.select(&[&pod]);
    let (shim, proxy) = (world.shim(), world.proxy());
    let load = Load::start(address);
    eventually("the load is answered", || get(address, "/").is_ok());
    let group = Pid::from_raw(i32::try_from(daemon.id()).unwrap()).unwrap();
    rustix::process::kill_process_group(group, Signal::KILL).unwrap();
    daemon.wait().unwrap();
    let next = world.pod("b");
    next.make_ready();
    world.select(&[&next]);
    eventually("the new pod answers", || get(address, "/").unwrap().body == "b");
    pod.retire();
    let seen = load.end();
    assert_eq!((seen.refused, &seen.broken), (0, &vec![]));
    assert_eq!((world.shim(), world.proxy()), (shim, proxy));
}

#[test]
fn a_shim_ends_by_sigterm_and_takes_its_proxy_along() {
    let (world, address, _pod) = world_with_pod();
    world.terminate();
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn a_proxy_that_is_told_to_end_answers_what_is_under_way() {
    let (world, address, pod) = world_with_pod();
    let mut client = Client::connect(address).unwrap();
    client.write(b"GET /slow/1000 HTTP/1.1\r\nHost: shop.example\r\n\r\n").unwrap();
    eventually("the request is under way", || !pod.is_drained());
    let proxy = Pid::from_raw(world.proxy()).unwrap();
    rustix::process::kill_process(proxy, Signal::TERM).unwrap();
    assert_eq!(client.answer().unwrap().body, "slow");
    assert_eq!(get(address, "/").unwrap().body, "a", "another one accepts");
}

#[test]
fn a_low_limit_of_open_files_leaves_room_for_some_services_instead_of_none() {
    use rustix::process::{Resource, Rlimit, prlimit};
    let world = World::new();
    let (names, addresses) = world.webs(60);
    let pod = world.pod("a");
    pod.make_ready();
    world.select(&[&pod]);
    // The proxy that comes next has a third of these for sockets.
    let limit = Rlimit { current: Some(102), maximum: Some(102) };
    prlimit(Pid::from_raw(world.shim()), Resource::Nofile, limit).unwrap();
    let proxy = world.proxy();
    kill(proxy);
    eventually("there is another", || world.proxy() != proxy);
    for address in &addresses[..34] {
        assert_eq!(get(*address, "/").unwrap().body, "a");
    }
    let log = fs::read_to_string(world.root.path().join("services/services.log")).unwrap();
    assert!(log.contains(&format!("of shop-dev/{}: the limit of open files is too low", names[34])), "{log}");
}

#[test]
fn a_shim_that_is_stopped_holds_up_who_asks_about_many_services_once() {
    let world = World::new();
    let (names, addresses) = world.webs(4);
    let shim = Pid::from_raw(world.shim()).unwrap();
    rustix::process::kill_process(shim, Signal::STOP).unwrap();
    let begun = Instant::now();
    let listed = world.services.list(&namespace()).unwrap();
    world.services.apply(&spec(&names[0], &[addresses[0].port(), unused_port()])).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(9), "after {:?}", begun.elapsed());
    assert_eq!(listed.len(), names.len());
    for service in listed {
        assert!(service.problem.unwrap().contains("does not answer"));
    }
    rustix::process::kill_process(shim, Signal::CONT).unwrap();
    eventually("all are well", || names.iter().all(|name| world.listed(name).problem.is_none()));
}

#[test]
fn lists_of_processes_show_which_is_which() {
    let (world, _, _pod) = world_with_pod();
    let (shim, proxy) = (world.shim(), world.proxy());
    kill(shim);
    // Who is started again, is so by another way.
    eventually("there are others", || world.shim() != shim && world.proxy() != proxy);
    for (process, expected) in [(world.shim(), "launchway-shim"), (world.proxy(), "launchway-proxy")] {
        let name = || fs::read_to_string(format!("/proc/{process}/comm")).unwrap();
        eventually(&format!("process {process} is called {expected}"), || name().trim_end() == expected);
    }
}

#[test]
fn a_shim_is_small() {
    let (world, _, _pod) = world_with_pod();
    let status = fs::read_to_string(format!("/proc/{}/status", world.shim())).unwrap();
    let kibibytes = |name: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    // Its own; the pages of the program's file are shared by all shims, and many more in a build for debugging.
    assert!(kibibytes("RssAnon:") < 1 << 10, "{status}");
    assert!(cfg!(debug_assertions) || kibibytes("VmRSS:") < 5 << 10, "{status}");
}

#[test]
fn a_damaged_record_is_written_anew_and_no_connection_is_refused() {
    let (world, address, _pod) = world_with_pod();
    let (shim, proxy) = (world.shim(), world.proxy());
    let record = world.service_dir("web").join("service.json");
    let load = Load::start(address);
    fs::write(&record, "{").unwrap();
    let again = open(world.root.path());
    let told = world.listed("web").problem.unwrap();
    assert!(told.contains(record.to_str().unwrap()) && told.contains("damaged"), "{told}");
    let applied = again.apply(&spec("web", &[address.port()])).unwrap();
    assert_eq!((applied.address, applied.problem), (address.ip(), None));
    assert_eq!(get(address, "/").unwrap().body, "a");
    assert_eq!((world.shim(), world.proxy()), (shim, proxy));
    assert_eq!(load.end().refused, 0);
}

#[test]
fn a_shim_that_came_after_the_damage_knows_the_address_from_the_sockets() {
    let (world, address, _pod) = world_with_pod();
    let (shim, load) = (world.shim(), Load::start(address));
    fs::write(world.service_dir("web").join("service.json"), "").unwrap();
    kill(shim);
    eventually("another shim has the sockets", || world.shim() != shim && world.listed("web").address == address.ip());
    let applied = open(world.root.path()).apply(&spec("web", &[address.port()])).unwrap();
    assert_eq!((applied.address, applied.problem), (address.ip(), None), "the address stays");
    let seen = load.end();
    assert_eq!((seen.refused, &seen.broken), (0, &vec![]));
}

#[test]
fn a_death_in_the_middle_of_many_services_refuses_nothing() {
    let world = World::new();
    let (names, addresses) = world.webs(150);
    let pod = world.pod("a");
    pod.make_ready();
    world.select(&[&pod]);
    for kill_one in [World::shim, World::proxy, World::shim] {
        let (shim, proxy) = (world.shim(), world.proxy());
        kill(kill_one(&world));
        eventually("there is another", || world.proxy() != proxy || world.shim() != shim);
        for address in &addresses {
            assert_eq!(get(*address, "/").unwrap().body, "a");
        }
    }
    eventually("all are told to be well", || names.iter().all(|name| world.listed(name).problem.is_none()));
}

#[test]
fn a_state_folder_that_is_gone_ends_both() {
    let (world, _, _pod) = world_with_pod();
    let (shim, proxy) = (world.shim(), world.proxy());
    fs::remove_dir_all(world.root.path().join("services")).unwrap();
    eventually("both are gone", || !is_running(shim) && !is_running(proxy));
}

#[test]
fn a_state_folder_that_is_replaced_ends_both_too() {
    let (world, _, _pod) = world_with_pod();
    let (shim, proxy) = (world.shim(), world.proxy());
    let (services, next) = (world.root.path().join("services"), world.root.path().join("next"));
    fs::create_dir(&next).unwrap();
    fs::write(next.join("shim.lock"), "").unwrap();
    fs::remove_dir_all(&services).unwrap();
    fs::rename(&next, &services).unwrap();
    eventually("both are gone", || !is_running(shim) && !is_running(proxy));
}

#[test]
fn a_damaged_service_is_listed_and_can_be_removed() {
    let (world, _, _pod) = world_with_pod();
    let (shim, proxy) = (world.shim(), world.proxy());
    fs::write(world.service_dir("web").join("service.json"), "{").unwrap();
    let again = open(world.root.path());
    let names: Vec<String> = again.list(&namespace()).unwrap().into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["web"]);
    again.remove(&namespace(), "web").unwrap();
    assert!(!world.service_dir("web").exists());
    eventually("both are gone", || !is_running(shim) && !is_running(proxy));
}

#[test]
fn a_damaged_list_of_pods_is_written_anew() {
    let (world, address, pod) = world_with_pod();
    let endpoints = world.service_dir("web").join("endpoints.json");
    fs::write(&endpoints, "[").unwrap();
    let next = world.pod("b");
    world.comes(&next);
    assert_eq!(get(address, "/").unwrap().body, "a");
    fs::write(&endpoints, "").unwrap();
    world.select(&[&pod]);
    assert_eq!(get(address, "/").unwrap().body, "a");
}
