//! What of HTTP/1 a proxy has to pass on, to take off, or to refuse.

use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;

use crate::support::{Answer, Client, Pod, World};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A pod that answers each connection's requests by a function of their heads, in lower case.
fn pod(world: &World, answer: impl Fn(&str, &mut Client) + Clone + Send + 'static) -> Pod {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let pod = Pod::at(world.pod_dir("scripted"), "scripted", listener.local_addr().unwrap().port());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut client, answer) = (Client::of(stream.unwrap()), answer.clone());
            thread::spawn(move || {
                while let Some(head) = head(&mut client) {
                    answer(&head, &mut client);
                }
            });
        }
    });
    pod.make_ready();
    world.select(&[&pod]);
    pod
}

/// The lines of the next head, if there is one.
fn head(from: &mut Client) -> Option<String> {
    let mut lines = Vec::new();
    loop {
        match from.line().ok()?.as_str() {
            "" => return Some(lines.join("\n")),
            line => lines.push(line.to_ascii_lowercase()),
        }
    }
}

fn ask(address: SocketAddr, request: &str) -> Client {
    let mut client = Client::connect(address).unwrap();
    client.write(request.as_bytes()).unwrap();
    client
}

/// All that comes until the connection ends.
fn all(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn interim_responses_are_passed_on_as_they_come() {
    let world = World::new();
    let (_, address) = world.web();
    let (go_on, goes_on) = mpsc::channel();
    let goes_on = std::sync::Arc::new(std::sync::Mutex::new(goes_on));
    let _pod = pod(&world, move |head, client| {
        client
            .write(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nConnection: x\r\nX: 1\r\n\r\n")
            .unwrap();
        if head.starts_with("get /slow") {
            goes_on.lock().unwrap().recv().unwrap();
        }
        client.write(&[b"HTTP/1.1 102 Processing\r\n\r\n", OK].concat()).unwrap();
    });
    let hints = "http/1.1 103 early hints\nlink: </a.css>; rel=preload";
    let mut client = ask(address, "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(head(&mut client).unwrap(), hints, "the final response is not there yet");
    go_on.send(()).unwrap();
    assert_eq!(head(&mut client).unwrap(), "http/1.1 102 processing");
    assert_eq!(client.answer().unwrap().body, "ok");
    // At once with the final one, and on a connection that was used before.
    for _ in 0..50 {
        client.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        assert_eq!(head(&mut client).unwrap(), hints);
        assert_eq!(head(&mut client).unwrap(), "http/1.1 102 processing");
        assert_eq!(client.answer().unwrap().body, "ok");
    }
    let old = all(address, "GET / HTTP/1.0\r\n\r\n");
    assert!(old.starts_with("HTTP/1.0 200 OK\r\n"), "HTTP/1.0 knows none: {old}");
}

#[test]
fn a_body_that_is_kept_back_follows_hints_and_100() {
    let world = World::new();
    let (_, address) = world.web();
    let _pod = pod(&world, |_, client| {
        client.write(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n").unwrap();
        let body = client.exactly(2).unwrap();
        client.write(&[b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", &*body].concat()).unwrap();
    });
    let expecting = "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    let mut client = ask(address, expecting);
    assert_eq!(head(&mut client).unwrap(), "http/1.1 103 early hints\nlink: </a>");
    assert_eq!(head(&mut client).unwrap(), "http/1.1 100 continue");
    client.write(b"hi").unwrap();
    assert_eq!(client.answer().unwrap().body, "hi");
}

#[test]
fn a_coding_that_is_not_taken_off_stays_said() {
    let world = World::new();
    let (_, address) = world.web();
    let _pod = pod(&world, |_, client| {
        client.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n").unwrap();
    });
    let mut client = ask(address, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    let told = head(&mut client).unwrap();
    assert_eq!(told, "http/1.1 200 ok\ntransfer-encoding: gzip, chunked");
    assert_eq!(client.exactly(13).unwrap(), b"3\r\nabc\r\n0\r\n\r\n");
    let old = all(address, "GET / HTTP/1.0\r\n\r\n");
    assert!(old.starts_with("HTTP/1.0 502 ") && old.contains("transfer coding"), "HTTP/1.0 knows no codings: {old}");
    let coded = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    let Answer { status, body } = ask(address, coded).answer().unwrap();
    assert!(status == 501 && body.contains("`chunked` alone"), "{status} {body}");
}

#[test]
fn another_protocol_is_only_for_whoever_has_asked_for_one() {
    let world = World::new();
    let (_, address) = world.web();
    let switching = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n";
    let _pod = pod(&world, |head, client| {
        client.write(if head.contains("\nupgrade: ") { OK } else { switching }).unwrap();
    });
    let Answer { status, body } = ask(address, "GET / HTTP/1.1\r\nHost: x\r\n\r\n").answer().unwrap();
    assert!(status == 502 && body.contains("nobody asked for"), "{status} {body}");
    let old = all(address, "GET / HTTP/1.0\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n");
    assert!(old.starts_with("HTTP/1.0 502 "), "what HTTP/1.0 cannot ask for is not passed on: {old}");
    assert_eq!(
        ask(address, "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n").answer().unwrap().body,
        "ok"
    );
}

#[test]
fn every_character_that_can_be_seen_is_taken_in_a_target() {
    let world = World::new();
    let (_, address) = world.web();
    let web = world.pod("a");
    web.make_ready();
    world.select(&[&web]);
    let mut client = Client::connect(address).unwrap();
    for byte in (b'!'..=b'~').filter(|byte| *byte != b'#').map(char::from) {
        let arrives = match byte {
            '"' | '<' | '>' | '`' => format!("%{:02X}", u32::from(byte)),
            legal => legal.to_string(),
        };
        let Answer { status, body } = client.get(&format!("/headers?a={byte}b")).unwrap();
        assert!(status == 200 && body.starts_with(&format!("/headers?a={arrives}b {{")), "`{byte}`: {status} {body}");
        assert_eq!(client.get(&format!("/no{byte}where")).unwrap().status, 404, "`{byte}` in a path");
    }
}
