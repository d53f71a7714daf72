//! Clients that take nothing of what they have asked for.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Client, Pod, World, eventually};

/// More than all buffers on the way hold.
const LARGE: usize = 64 << 20;

/// A pod that answers `/large` with much, `/late` after more than a minute, and speaks another protocol where asked.
fn pod(world: &World) -> Pod {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let pod = Pod::at(world.pod_dir("large"), "large", listener.local_addr().unwrap().port());
    let serve = |mut stream: TcpStream| -> std::io::Result<()> {
        let mut head = vec![0; 4096];
        let read = stream.read(&mut head)?;
        let head = String::from_utf8_lossy(&head[..read]).to_ascii_lowercase();
        if head.contains("\nupgrade: ") {
            stream.write_all(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nhello")?;
            return std::io::copy(&mut &stream, &mut &stream).map(drop);
        }
        if head.starts_with("get /late") {
            thread::sleep(Duration::from_secs(75));
            return stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate");
        }
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n")?;
        stream.write_all(&vec![b'x'; LARGE])
    };
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || serve(stream?));
        }
    });
    pod.make_ready();
    world.select(&[&pod]);
    pod
}

fn ask(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    stream
}

/// What a process has in memory that is its own, in KiB.
fn own_memory(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// The same once it does not change any more.
fn own_memory_at_rest(pid: i32) -> u64 {
    let mut before = own_memory(pid);
    eventually("it comes to rest", || {
        thread::sleep(Duration::from_millis(300));
        let now = own_memory(pid);
        let is_at_rest = now.abs_diff(before) < 64;
        before = now;
        is_at_rest
    });
    before
}

#[test]
fn a_client_that_takes_nothing_costs_little() {
    const CLIENTS: u64 = 100;
    let world = World::new();
    let (_, address) = world.web();
    let _pod = pod(&world);
    let _first: Vec<TcpStream> = (0..20).map(|_| ask(address, "/large")).collect();
    let before = own_memory_at_rest(world.proxy());
    let _clients: Vec<TcpStream> = (0..CLIENTS).map(|_| ask(address, "/large")).collect();
    let each = (own_memory_at_rest(world.proxy()) - before) / CLIENTS;
    // At most four buffers of 64 KiB: what the client is to take, what comes after it, and what is read of the pod and is next.
    assert!(each < 300, "{each} KiB each");
}

#[test]
#[ignore = "takes more than a minute"]
fn only_a_client_that_takes_nothing_is_given_up() {
    let world = World::new();
    let (_, address) = world.web();
    let large = pod(&world);
    let begun = Instant::now();
    let takes_nothing = [(); 3].map(|()| ask(address, "/large"));
    let slow = thread::spawn(move || {
        let (mut stream, mut part, mut taken) = (ask(address, "/large"), vec![0; 16 << 10], 0);
        while begun.elapsed() < Duration::from_secs(140) {
            taken += stream.read(&mut part).unwrap();
            thread::sleep(Duration::from_millis(500));
        }
        taken
    });
    let late = thread::spawn(move || {
        let (mut stream, mut part) = (ask(address, "/late"), [0; 256]);
        let read = stream.read(&mut part).unwrap();
        String::from_utf8_lossy(&part[..read]).into_owned()
    });
    let mut upgraded = Client::connect(address).unwrap();
    upgraded.write(b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n").unwrap();
    while !upgraded.line().unwrap().is_empty() {}
    assert_eq!(upgraded.exactly(5).unwrap(), b"hello");

    for mut stream in takes_nothing {
        // What is in the kernel's hands is there; then it ends, long before all of it.
        thread::sleep(Duration::from_secs(75).saturating_sub(begun.elapsed()));
        let mut taken = Vec::new();
        stream.read_to_end(&mut taken).ok();
        assert!(taken.len() < LARGE, "it was given up after {:?}", begun.elapsed());
    }
    assert!(late.join().unwrap().starts_with("HTTP/1.1 200 OK"));
    assert!(slow.join().unwrap() > 1 << 20);
    upgraded.write(b"again").unwrap();
    assert_eq!(upgraded.exactly(5).unwrap(), b"again");
    drop(upgraded);
    eventually("the pod is drained", || large.is_drained());
}
