//! Other protocols than HTTP/1 through a service, and protocols that HTTP/1 leads to.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};

use crate::support::{Client, DEADLINE, Pod, World, eventually, is_running, kill};

/// A pod whose server handles each connection by a function.
fn pod(world: &World, name: &str, handle: fn(TcpStream) -> io::Result<()>) -> Pod {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let pod = Pod::at(world.pod_dir(name), name, listener.local_addr().unwrap().port());
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || handle(stream?));
        }
    });
    pod.make_ready();
    pod
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream
}

fn read_all(mut stream: &TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn echo(stream: TcpStream) -> io::Result<()> {
    io::copy(&mut &stream, &mut &stream).map(drop)
}

#[test]
fn bytes_pass_both_ways_and_a_half_close_is_respected() {
    let world = World::new();
    let (_, address) = world.web();
    let echo = pod(&world, "echo", |mut stream| {
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        stream.write_all(text.to_uppercase().as_bytes())
    });
    world.select(&[&echo]);
    let mut stream = connect(address);
    stream.write_all(b"\x01binary and more").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_all(&stream), "\x01BINARY AND MORE");
    eventually("the pod is drained", || echo.is_drained());
}

#[test]
fn a_server_may_speak_first() {
    let world = World::new();
    let (_, address) = world.web();
    let greeter = pod(&world, "greeter", |mut stream| stream.write_all(b"220 ready\n"));
    world.select(&[&greeter]);
    assert_eq!(read_all(&connect(address)), "220 ready\n");
}

#[test]
fn a_connection_in_flight_keeps_its_pod_and_a_silent_one_does_not() {
    let world = World::new();
    let (_, address) = world.web();
    let first = pod(&world, "first", echo);
    world.select(&[&first]);
    let (mut speaking, mut silent) = (connect(address), connect(address));
    speaking.write_all(b"\x01").unwrap();
    speaking.read_exact(&mut [0]).unwrap();
    first.make_unready();
    let second = pod(&world, "second", echo);
    world.select(&[&first, &second]);
    speaking.write_all(b"\x02").unwrap();
    speaking.read_exact(&mut [0]).unwrap();
    assert!(!first.is_drained());
    speaking.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_all(&speaking), "");
    eventually("the first pod is drained", || first.is_drained());
    silent.write_all(b"\x03").unwrap();
    silent.read_exact(&mut [0]).unwrap();
}

#[test]
fn a_request_on_a_connection_that_was_silent_is_still_one() {
    let world = World::new();
    let (_, address) = world.web();
    let web = world.pod("web");
    web.make_ready();
    world.select(&[&web]);
    let mut client = Client::connect(address).unwrap();
    eventually("the silent connection waits at a pod", || !web.is_drained());
    assert_eq!(client.get("/").unwrap().body, "web");
    eventually("only the request was in flight", || web.is_drained());
}

/// Answers an upgrade and then echoes, as a WebSocket server does.
fn upgrade(stream: TcpStream) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        (&stream).read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).map_err(io::Error::other)?.to_ascii_lowercase();
    assert!(head.contains("upgrade: websocket\r\n") && head.contains("connection: upgrade\r\n"), "{head}");
    (&stream)
        .write_all(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhello")?;
    echo(stream)
}

/// A connection that was upgraded, and on which the server has said hello.
fn websocket(address: SocketAddr) -> TcpStream {
    let mut stream = connect(address);
    let request = "GET /chat HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\nhello") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        answer.push(byte[0]);
    }
    let answer = String::from_utf8(answer).unwrap().to_ascii_lowercase();
    assert!(answer.starts_with("http/1.1 101 ") && answer.contains("upgrade: websocket\r\n"), "{answer}");
    stream
}

#[test]
fn an_upgraded_connection_is_a_tunnel_that_keeps_its_pod() {
    let world = World::new();
    let (_, address) = world.web();
    let socket = pod(&world, "socket", upgrade);
    world.select(&[&socket]);
    let mut stream = websocket(address);
    socket.make_unready();
    stream.write_all(b"ping").unwrap();
    let mut pong = [0; 4];
    stream.read_exact(&mut pong).unwrap();
    assert_eq!((&pong, socket.is_drained()), (b"ping", false));
    drop(stream);
    eventually("the pod is drained", || socket.is_drained());
}

#[test]
fn a_kept_connection_to_a_pod_that_leaves_is_closed() {
    let world = World::new();
    let (_, address) = world.web();
    // Says that the connection was closed by answering the next one.
    let web = pod(&world, "web", |mut stream| {
        let mut bytes = [0; 1024];
        while stream.read(&mut bytes)? > 0 {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
        }
        std::fs::write(std::env::temp_dir().join(format!("closed-{}", stream.local_addr()?.port())), "")
    });
    world.select(&[&web]);
    assert_eq!(Client::connect(address).unwrap().get("/").unwrap().status, 200);
    web.make_unready();
    let closed = std::env::temp_dir().join(format!("closed-{}", web.port));
    eventually("the idle connection is closed", || std::fs::remove_file(&closed).is_ok());
}

#[test]
fn an_external_service_leads_outside() {
    let world = World::new();
    let outside = world.pod("outside");
    let (mut spec, _) = world.web();
    spec.selector.clear();
    let host = "localhost".to_owned();
    spec.external = vec![launchway::runtime::ExternalEndpoint { host, port: Some(outside.port) }];
    let address = world.apply(&spec);
    assert_eq!(Client::connect(address).unwrap().get("/").unwrap().body, "outside");
}

#[test]
fn connections_on_which_nothing_passes_do_not_hold_the_end_of_a_service_back() {
    let world = World::new();
    let (_, address) = world.web();
    let socket = pod(&world, "socket", upgrade);
    let raw = pod(&world, "raw", echo);
    world.select(&[&socket]);
    let upgraded = websocket(address);
    world.select(&[&raw]);
    let (mut spoken, silent) = (connect(address), connect(address));
    spoken.write_all(b"\x01").unwrap();
    spoken.read_exact(&mut [0]).unwrap();
    let (shim, proxy) = (world.shim(), world.proxy());
    let begun = Instant::now();
    rustix::process::kill_process(Pid::from_raw(shim).unwrap(), Signal::TERM).unwrap();
    eventually("both are gone", || !is_running(shim) && !is_running(proxy));
    assert!(begun.elapsed() < Duration::from_secs(8), "after {:?}", begun.elapsed());
    for stream in [&upgraded, &spoken, &silent] {
        assert_eq!(read_all(stream), "");
    }
}

#[test]
fn a_connection_on_which_something_passes_goes_on_for_some_time() {
    let world = World::new();
    let (_, address) = world.web();
    let raw = pod(&world, "raw", echo);
    world.select(&[&raw]);
    let mut stream = connect(address);
    stream.write_all(b"\x01").unwrap();
    stream.read_exact(&mut [0]).unwrap();
    let shim = world.shim();
    rustix::process::kill_process(Pid::from_raw(shim).unwrap(), Signal::TERM).unwrap();
    eventually("nobody listens any more", || TcpStream::connect(address).is_err());
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(2) {
        stream.write_all(b"\x02").unwrap();
        stream.read_exact(&mut [0]).unwrap();
    }
}

#[test]
fn upgraded_connections_count_among_all() {
    let world = World::new();
    let (_, address) = world.web();
    let socket = pod(&world, "socket", upgrade);
    world.select(&[&socket]);
    drop(websocket(address));
    // The proxy that comes next may have so few files open that it takes two connections of one service.
    let limit = Rlimit { current: Some(108), maximum: Some(108) };
    prlimit(Pid::from_raw(world.shim()), Resource::Nofile, limit).unwrap();
    kill(world.proxy());
    let (first, _second) = (websocket(address), websocket(address));
    let (taken, is_taken) = mpsc::channel();
    let third = thread::spawn(move || taken.send(websocket(address)));
    let early = is_taken.recv_timeout(Duration::from_millis(300));
    assert!(early.is_err(), "a third is taken beside two");
    drop(first);
    drop(is_taken.recv_timeout(DEADLINE).expect("one has made room"));
    third.join().unwrap().unwrap();
}
