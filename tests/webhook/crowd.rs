//! Callers that nobody knows, and that an authentic call does not wait for.

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};

use crate::LIMIT;
use crate::receiver::{Call, Receiver, push, push_with};

/// Begins a large body from an address of this machine, and leaves it at that.
async fn stall(receiver: &Receiver, from: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{from}:0").parse().unwrap()).unwrap();
    let mut stream = socket.connect(receiver.address).await.unwrap();
    let head = "POST /webhooks/shop HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nx-github-event: push\r\n";
    let body = " ".repeat(2 * LIMIT);
    let begun = format!("{head}content-length: {}\r\n\r\n{body}", 25 * LIMIT);
    // The receiver reads no more of it once it has to wait for memory.
    let mut sent = 0;
    while sent < 128 * 1024 {
        sent += stream.write(&begun.as_bytes()[sent..]).await.unwrap();
    }
    stream
}

fn large(id: &str) -> Call {
    let padding = push_with("padding", json!("x".repeat(24 * LIMIT)));
    Call::github("push", &push(), id).signed_body(padding.to_string())
}

#[tokio::test]
async fn large_bodies_of_another_that_do_not_come_are_not_waited_for() {
    let receiver = Receiver::start().await;
    let mut stalled = Vec::new();
    for _ in 0..20 {
        stalled.push(stall(&receiver, "127.0.0.2").await);
    }
    assert_eq!(receiver.deliver(large("1")).await.0, 200);
    drop(stalled);
    receiver.stop().await;
}

#[tokio::test]
async fn a_small_body_is_not_kept_waiting_by_large_ones_from_the_same_address() {
    let receiver = Receiver::start().await;
    let mut stalled = Vec::new();
    for _ in 0..20 {
        stalled.push(stall(&receiver, "127.0.0.1").await);
    }
    assert_eq!(receiver.deliver(Call::github("push", &push(), "1")).await.0, 200);
    drop(stalled);
    receiver.stop().await;
}
