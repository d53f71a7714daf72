//! Archives from a web server, over real TLS.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use launchway::error::Class;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::install::{archive, sha256};
use crate::support::{World, prepare};

/// A key pair that is trusted by these tests alone.
fn certificate(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/launchables/tls").join(file)
}

/// Answers every request with `answer`; returns the server's address.
fn serve(answer: Vec<u8>) -> String {
    let chain = vec![CertificateDer::from_pem_file(certificate("server.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(certificate("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let versions = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(versions.with_no_client_auth().with_single_cert(chain, key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            // A client that does not trust the server breaks off.
            stream.and_then(|stream| respond(stream, config.clone(), &answer)).ok();
        }
    });
    format!("https://localhost:{port}")
}

fn respond(stream: TcpStream, config: Arc<ServerConfig>, answer: &[u8]) -> std::io::Result<()> {
    let connection = ServerConnection::new(config).map_err(std::io::Error::other)?;
    let mut stream = BufReader::new(StreamOwned::new(connection, stream));
    let mut line = String::new();
    while line.trim_end() != "" || line.is_empty() {
        line.clear();
        stream.read_line(&mut line)?;
    }
    stream.get_mut().write_all(answer)?;
    stream.get_mut().conn.send_close_notify();
    stream.get_mut().flush()
}

fn world() -> World {
    let mut world = World::new(&[]);
    world.settings.ca_file = Some(certificate("server.pem"));
    world
}

fn ok(body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

#[test]
fn an_archive_is_downloaded_and_verified() {
    let world = world();
    archive(world.root.path(), "downloaded");
    let file = world.root.path().join("app.tar.gz");
    let (server, digest) = (serve(ok(&std::fs::read(&file).unwrap())), sha256(&file));
    let path = prepare(&world.open(), &format!("{server}/app.tar.gz@sha256:{digest}")).unwrap();
    assert_eq!(std::fs::read_to_string(path.join("bin/launch")).unwrap(), "downloaded");
}

#[test]
fn what_goes_wrong_is_said_without_what_may_be_secret() {
    let digest = "0".repeat(64);
    let redirect = b"HTTP/1.1 302 Found\r\nLocation: http://localhost/\r\nContent-Length: 0\r\n\r\n".to_vec();
    let cases = [
        (ok(b"something else"), Class::Stalled, "has the digest sha256:"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec(), Class::Stalled, "answered 404 Not Found"),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".to_vec(), Class::Transient, "answered 503"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort".to_vec(), Class::Transient, "cannot download"),
        (redirect, Class::Transient, "cannot download"),
        (ok(&[b'x'; 2000]), Class::Stalled, "the launchable has more than 1000 bytes"),
    ];
    for (answer, class, expected) in cases {
        let mut world = world();
        world.settings.limits.bytes = 1000;
        let image =
            format!("{}/app.tar.gz?token=hidden@sha256:{digest}", serve(answer).replace("://", "://me:hidden@"));
        let failure = prepare(&world.open(), &image).unwrap_err();
        let text = failure.one_line();
        assert!(failure.class() == class && text.contains(expected), "{text}");
        assert!(!text.contains("hidden"), "{text}");
    }
}

#[test]
fn a_server_that_is_not_trusted_gets_nothing_through() {
    let world = World::new(&[]);
    let image = format!("{}/app.tar.gz@sha256:{}", serve(ok(b"")), "0".repeat(64));
    let failure = prepare(&world.open(), &image).unwrap_err();
    assert!(failure.one_line().contains("certificate"), "{}", failure.one_line());
}
