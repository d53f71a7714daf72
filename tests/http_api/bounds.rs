//! Clients that take what they can, and others that are answered all the same.

use std::time::{Duration, Instant};

use launchway::server::listener::Bounds;
use reqwest::StatusCode;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::support::{OPERATOR, Server, shop_within};

/// A time that a test waits for.
const SHORT: Duration = Duration::from_millis(200);
/// What is asked of a server whose answers nobody reads: more than sockets hold of them.
const MANY: usize = 1000;

async fn connect(server: &Server, from: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{from}:0").parse().unwrap()).unwrap();
    socket.connect(server.url.trim_start_matches("http://").parse().unwrap()).await.unwrap()
}

/// Clients that ask and ask, and read nothing.
async fn deaf(server: &Server, from: &str, number: usize) -> Vec<TcpStream> {
    let asked = "GET /api/v1/openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(MANY);
    let mut all = Vec::new();
    for _ in 0..number {
        let mut stream = connect(server, from).await;
        // Fails where the server has closed the connection, as it does where one has too many.
        stream.write_all(asked.as_bytes()).await.ok();
        all.push(stream);
    }
    all
}

#[tokio::test]
async fn clients_that_read_nothing_take_no_place_of_another() {
    let server = shop_within(Bounds { connections: 50, ..Bounds::default() }).await;
    let _deaf = deaf(&server, "127.0.0.2", 200).await;
    assert_eq!(server.get("/healthz").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_cut_off() {
    let server = shop_within(Bounds { connections: 50, answer: SHORT, ..Bounds::default() }).await;
    // A fifth of the places is theirs, and this one's.
    let _deaf = deaf(&server, "127.0.0.1", 15).await;
    assert_eq!(server.get("/healthz").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn headers_have_their_time_in_all() {
    let server = shop_within(Bounds { headers: SHORT, ..Bounds::default() }).await;
    let mut stream = connect(&server, "127.0.0.1").await;
    let begun = Instant::now();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nx-slow: ").await.unwrap();
    let mut drip = tokio::time::interval(SHORT / 20);
    let mut rest = [0; 1];
    loop {
        tokio::select! {
            read = stream.read(&mut rest) => break assert!(matches!(read, Ok(0) | Err(_)), "{read:?}"),
            _ = drip.tick() => stream.write_all(b"x").await.unwrap_or_default(),
        }
    }
    assert!((SHORT..SHORT * 20).contains(&begun.elapsed()), "cut off after {:?}", begun.elapsed());
}

#[tokio::test]
async fn a_body_that_does_not_come_is_told_so() {
    let server = shop_within(Bounds { body: SHORT, ..Bounds::default() }).await;
    let mut stream = connect(&server, "127.0.0.1").await;
    let head = format!(
        "POST /api/v1/sync HTTP/1.1\r\nhost: localhost\r\nx-token: {OPERATOR}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: 100\r\n\r\n{{"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 408 ") && head.contains("application/problem+json"), "{head}");
    let problem: Value = serde_json::from_str(body).unwrap();
    assert_eq!(problem["detail"], "the body did not arrive in time");
}
