//! What a client speaks, told from its first bytes.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

/// How long a client may be silent, or stop in the middle of a request line, before that itself is an answer.
/// Protocols in which the server speaks first wait that long for nothing, so it is short.
const QUIET: Duration = Duration::from_millis(100);
/// How often an incomplete request line is read again.
const RECHECK: Duration = Duration::from_millis(5);
/// The part of a request line that is judged; longer ones are judged by their method.
const WINDOW: usize = 8 << 10;
/// The methods by which a request line that is not complete is believed.
const METHODS: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"];

/// What a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// HTTP/1.0 or 1.1.
    Http1,
    /// Something whose bytes are passed on as they are, TLS and HTTP/2 included.
    Raw,
    /// Nothing yet.
    Silent,
}

/// Looks at a client's first bytes, which stay unread.
pub(super) async fn detect(client: &TcpStream) -> io::Result<Protocol> {
    let mut window = vec![0; WINDOW];
    let Ok(first) = timeout(QUIET, client.peek(&mut window)).await else { return Ok(Protocol::Silent) };
    let (mut seen, deadline) = (first?, Instant::now() + QUIET);
    loop {
        let bytes = window.get(..seen).unwrap_or_default();
        if let Some(protocol) = classify(bytes) {
            return Ok(protocol);
        }
        if Instant::now() >= deadline || seen == WINDOW {
            return Ok(if starts_with_method(bytes) { Protocol::Http1 } else { Protocol::Raw });
        }
        sleep(RECHECK).await;
        seen = client.peek(&mut window).await?;
    }
}

/// `None` while more bytes may still tell. No bytes at all are a client that closed its side: nothing to interpret.
fn classify(bytes: &[u8]) -> Option<Protocol> {
    // A few clients send an empty line before a request; RFC 9112, 2.2 asks servers to ignore it.
    let start = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count().min(2);
    let bytes = bytes.get(start..).filter(|rest| !rest.is_empty() || start == 0)?;
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
        let method =
            bytes.iter().take_while(|byte| **byte != b' ').all(|byte| byte.is_ascii_uppercase() || *byte == b'-');
        return (bytes.is_empty() || !method).then_some(Protocol::Raw);
    };
    let line = bytes.get(..end).unwrap_or_default().trim_ascii_end();
    let is_http1 = line.ends_with(b" HTTP/1.1") || line.ends_with(b" HTTP/1.0");
    Some(if is_http1 { Protocol::Http1 } else { Protocol::Raw })
}

fn starts_with_method(bytes: &[u8]) -> bool {
    METHODS.iter().any(|method| bytes.strip_prefix(method.as_bytes()).is_some_and(|rest| rest.starts_with(b" ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_line_tells_what_a_client_speaks() {
        let cases: [(&[u8], Option<Protocol>); 14] = [
            (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", Some(Protocol::Http1)),
            (b"GET / HTTP/1.0\n", Some(Protocol::Http1)),
            (b"\r\nPOST /a HTTP/1.1\r\n", Some(Protocol::Http1)),
            (b"M-SEARCH * HTTP/1.1\r\n", Some(Protocol::Http1)),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Some(Protocol::Raw)),
            (b"\x16\x03\x01\x02\x00", Some(Protocol::Raw)),
            (b"PING\r\n", Some(Protocol::Raw)),
            (b"get key\r\n", Some(Protocol::Raw)),
            (b"CONNECT\naccept-version:1.2\n", Some(Protocol::Raw)),
            (b"*1\r\n$4\r\nPING\r\n", Some(Protocol::Raw)),
            (b"", Some(Protocol::Raw)),
            (b"GE", None),
            (b"GET /index", None),
            (b"\r\n", None),
        ];
        for (bytes, expected) in cases {
            assert_eq!(classify(bytes), expected, "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn an_incomplete_line_is_believed_by_its_method() {
        assert!(starts_with_method(b"GET /very-long"));
        assert!(!starts_with_method(b"GETX /") && !starts_with_method(b"HELLO "));
    }

    proptest! {
        #[test]
        fn a_decision_is_never_changed_by_what_follows(bytes: Vec<u8>, more: Vec<u8>) {
            if let (Some(decided), false) = (classify(&bytes), bytes.is_empty()) {
                prop_assert_eq!(classify(&[bytes, more].concat()), Some(decided));
            }
        }
    }
}
