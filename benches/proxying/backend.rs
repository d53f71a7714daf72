//! What is led to: a server that answers every request alike, as cheaply as can be.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The size of an answer's body.
const BODY: usize = 1 << 10;

/// A server on a thread of its own, until the process ends.
pub(crate) struct Backend(SocketAddr);

impl Backend {
    pub(crate) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || runtime.block_on(serve(listener)));
        Self(address)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0
    }
}

async fn serve(listener: TcpListener) {
    let body = "x".repeat(BODY);
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {BODY}\r\n\r\n{body}");
    let answer: &'static [u8] = answer.into_bytes().leak();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(serve_one(stream, answer));
    }
}

/// Requests have no bodies, so that each ends with an empty line.
async fn serve_one(mut stream: TcpStream, answer: &[u8]) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut buffer, mut filled) = (vec![0; 4 << 10], 0);
    loop {
        let read = stream.read(&mut buffer[filled..]).await?;
        if read == 0 {
            return Ok(());
        }
        filled += read;
        if buffer[..filled].ends_with(b"\r\n\r\n") {
            stream.write_all(answer).await?;
            filled = 0;
        }
    }
}
