//! An upgrade: the shim and the proxy of another program make room without a gap, and the shims that earlier versions had
//! for each service end.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use launchway::runtime::local::Program;
use launchway::runtime::local::service::Services;

use crate::support::{
    Client, Load, World, eventually, get, is_running, kill, namespace, open, service_of, spec, unused_port,
};

/// A copy of the program which says that it is of another build, and is the same in all else.
fn program_of_another_build(folder: &Path) -> PathBuf {
    let today = env!("CARGO_BIN_EXE_launchway-shim");
    let build = build_name(Path::new(today));
    let mut bytes = fs::read(today).unwrap();
    let mut other = build.clone();
    other[..4].copy_from_slice(b"zzzz");
    let found: Vec<usize> =
        bytes.windows(build.len()).enumerate().filter(|(_, at)| *at == build).map(|it| it.0).collect();
    for at in found {
        bytes[at..at + other.len()].copy_from_slice(&other);
    }
    let (image, copy) = (folder.join("image"), folder.join("launchway-of-another-build"));
    fs::write(&image, bytes).unwrap();
    // By a process of its own: what is open for writing here is so in whatever another test starts at that moment, and no such file runs.
    assert!(Command::new("cp").args([&image, &copy]).status().unwrap().success());
    fs::set_permissions(&copy, fs::metadata(today).unwrap().permissions()).unwrap();
    assert_eq!(build_name(&copy), other);
    copy
}

fn build_name(program: &Path) -> Vec<u8> {
    Command::new(program).arg("build-name").output().unwrap().stdout
}

/// A world whose shim and proxy are of another build, with a pod that answers `a`.
fn world_of_another_build() -> (World, SocketAddr, crate::support::Pod) {
    let world = World::new();
    let other = program_of_another_build(world.root.path());
    let before = Services::open(world.root.path().to_owned(), Program::at(other).into()).unwrap();
    let spec = spec("web", &[unused_port()]);
    let address = SocketAddr::new(before.apply(&spec).unwrap().address, spec.ports[0].port);
    let pod = world.pod("a");
    pod.make_ready();
    before.pods_changed(&namespace(), vec![pod.endpoint()]).unwrap();
    assert_eq!(get(address, "/").unwrap().body, "a");
    (world, address, pod)
}

#[test]
fn a_removed_service_ends_also_at_the_proxy_before() {
    let (world, address, _pod) = world_of_another_build();
    let (proxy, mut kept) = (world.proxy(), Client::connect(address).unwrap());
    assert_eq!(kept.get("/").unwrap().body, "a");
    world.apply(&spec("web", &[address.port()]));
    assert_eq!(kept.get("/").unwrap().body, "a");
    world.services.remove(&namespace(), "web").unwrap();
    assert!(kept.is_closed());
    eventually("it ends with its last connection", || !is_running(proxy));
}

fn program_of(process: i32) -> PathBuf {
    fs::read_link(format!("/proc/{process}/exe")).unwrap()
}

#[test]
fn another_build_takes_over_and_no_connection_is_refused_or_broken() {
    let (world, address, _pod) = world_of_another_build();
    let (shim, proxy) = (world.shim(), world.proxy());
    let mut kept = Client::connect(address).unwrap();
    assert_eq!(kept.get("/").unwrap().body, "a");
    let load = Load::start(address);
    assert_eq!(world.apply(&spec("web", &[address.port()])), address);
    let today = Path::new(env!("CARGO_BIN_EXE_launchway-shim"));
    assert_eq!([program_of(world.shim()), program_of(world.proxy())], [today, today]);
    assert_eq!(get(address, "/").unwrap().body, "a");
    let seen = load.end();
    assert_eq!((seen.refused, &seen.broken), (0, &vec![]));
    assert!(!is_running(shim));
    assert_eq!(kept.get("/").unwrap().body, "a", "what the one before has accepted is still its own");
    drop(kept);
    eventually("the proxy before ends with its last connection", || !is_running(proxy));
}

#[test]
fn whoever_dies_of_those_that_take_over_nothing_is_refused() {
    let (world, address, _pod) = world_of_another_build();
    let load = Load::start(address);
    for round in 0..12 {
        let mut successor = Command::new(env!("CARGO_BIN_EXE_launchway-shim"))
            .arg("service-shim")
            .args([world.root.path().join("services").as_os_str(), "--succeed".as_ref()])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        // Later each time: while it starts, has the sockets, has its proxy, is the shim.
        for _ in 0..=round * 4 {
            assert_eq!(get(address, "/").unwrap().body, "a");
        }
        successor.kill().unwrap();
        successor.wait().unwrap();
    }
    let web = spec("web", &[address.port()]);
    eventually("the last proxy has found a shim", || world.services.apply(&web).unwrap().problem.is_none());
    let (shim, proxy) = (world.shim(), world.proxy());
    kill(shim);
    eventually("the sockets survive", || world.shim() != shim && world.proxy() != proxy);
    assert_eq!(get(address, "/").unwrap().body, "a");
    let seen = load.end();
    assert_eq!((seen.refused, &seen.broken), (0, &vec![]));
}

/// Does what a shim of a single service did: holds its lock and its port, and says who it is.
const SHIM_OF_BEFORE: &str = "
import fcntl, json, os, signal, socket, sys
folder, address, port, obeys = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == 'obeys'
lock = open(folder + '/shim.lock', 'w')
fcntl.flock(lock, fcntl.LOCK_EX)
listener = socket.create_server((address, port))
if obeys: json.dump({'v': 1, 'pid': os.getpid(), 'proxy': None}, open(folder + '/draft', 'w'))
else: open(folder + '/draft', 'w').write('{')
os.rename(folder + '/draft', folder + '/shim.json')
while obeys or not os.path.exists(folder + '/stop'): signal.sigtimedwait([], 0.05)
";

fn shim_of_before(folder: &Path, address: SocketAddr, behaviour: &str) -> Child {
    let child = Command::new("python3")
        .args(["-c", SHIM_OF_BEFORE])
        .arg(folder)
        .args([address.ip().to_string(), address.port().to_string(), behaviour.to_owned()])
        .spawn()
        .unwrap();
    eventually("a shim of before serves", || folder.join("shim.json").exists());
    child
}

#[test]
fn a_service_of_before_is_served_at_its_address_once_its_own_shim_has_ended() {
    let world = World::new();
    let specs = ["web", "api"].map(|name| spec(name, &[unused_port()]));
    let addresses = specs.each_ref().map(|spec| world.apply(spec));
    world.terminate();
    let folders = specs.each_ref().map(|spec| world.service_dir(&spec.name));
    // The second has written no whole file: it sees that it is to stop.
    let mut shims =
        [shim_of_before(&folders[0], addresses[0], "obeys"), shim_of_before(&folders[1], addresses[1], "sees")];
    let today = open(world.root.path());
    for (spec, address) in specs.iter().zip(addresses) {
        assert_eq!(service_of(&today.apply(spec).unwrap(), spec), address);
        assert!(TcpStream::connect(address).is_ok());
    }
    for (shim, folder) in shims.iter_mut().zip(&folders) {
        eventually("it has ended", || shim.try_wait().unwrap().is_some());
        let mut left: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["endpoints.json", "service.json"]);
    }
}
