//! Calls a webhook over a connection that is kept.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use aws_lc_rs::hmac;

/// What the daemon and the host know.
pub(crate) const SECRET: &str = "It's a Secret to Everybody";

/// A client with one connection.
pub(crate) struct Caller {
    connection: BufReader<TcpStream>,
    address: String,
}

impl Caller {
    pub(crate) fn new(address: &str) -> Self {
        let connection = TcpStream::connect(address).unwrap();
        connection.set_nodelay(true).unwrap();
        Self { connection: BufReader::new(connection), address: address.to_owned() }
    }

    /// Calls as Gitea does of a push, with this signature, if any; the status of the answer.
    pub(crate) fn call(&mut self, id: &str, body: &[u8], signature: Option<&str>) -> u16 {
        let mut request = format!(
            "POST /webhooks/shop HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             X-Gitea-Event: push\r\nX-Gitea-Delivery: {id}\r\n",
            self.address,
            body.len()
        );
        if let Some(signature) = signature {
            request += &format!("X-Gitea-Signature: {signature}\r\n");
        }
        let request = [request.as_bytes(), b"\r\n", body].concat();
        self.connection.get_mut().write_all(&request).unwrap();
        self.answer()
    }

    fn answer(&mut self) -> u16 {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            assert_ne!(self.connection.read_line(&mut line).unwrap(), 0, "the connection was closed");
            if line == "\r\n" {
                break;
            }
            lines.push(line.to_ascii_lowercase());
        }
        let length = lines.iter().find_map(|line| line.strip_prefix("content-length:")).unwrap();
        let mut body = vec![0; length.trim().parse().unwrap()];
        self.connection.read_exact(&mut body).unwrap();
        lines[0].split(' ').nth(1).unwrap().parse().unwrap()
    }
}

/// The signature of a body by a secret.
pub(crate) fn sign(secret: &str, body: &[u8]) -> String {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), body);
    tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A push as long as usual ones are told.
pub(crate) fn push(before: &str, after: &str) -> Vec<u8> {
    let commit = serde_json::json!({
        "id": after, "message": "Change what it says", "url": format!("https://git.example/acme/origin/commit/{after}"),
        "author": {"name": "Ada", "email": "ada@example.org"}, "added": [], "removed": [], "modified": ["web/bin/launch"],
    });
    let body = serde_json::json!({
        "ref": "refs/heads/main", "before": before, "after": after, "commits": vec![commit; 20],
        "repository": {"id": 1, "full_name": "acme/origin", "default_branch": "main"}, "pusher": {"login": "ada"},
    });
    serde_json::to_vec(&body).unwrap()
}
