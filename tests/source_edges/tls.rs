//! Certificates: those that are not trusted, and those that a CA file vouches for.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use launchway::error::{Class, Failure};
use launchway::source::{Remote, RemoteUrl, remote_head};

use super::transport::wait_until;
use crate::support::git::GitFixture;

/// A TLS server with a certificate of a test authority, which answers everything with a web page.
struct TlsPage {
    child: Child,
    port: u16,
}

impl TlsPage {
    fn start(fixture: &GitFixture) -> Self {
        let authority = ["-out", "ca.pem", "-keyout", "ca.key", "-subj", "/CN=test authority"];
        certificate(fixture, &authority);
        let names = ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"];
        let signed =
            ["-out", "leaf.pem", "-keyout", "leaf.key", "-subj", "/CN=leaf", "-CA", "ca.pem", "-CAkey", "ca.key"];
        certificate(fixture, &[&signed[..], &names].concat());
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        let mut command = openssl(fixture);
        command.args(["s_server", "-www", "-quiet", "-cert", "leaf.pem", "-key", "leaf.key", "-accept"]);
        let child = command.arg(format!("127.0.0.1:{port}")).stdin(Stdio::null()).spawn().expect("a TLS server");
        wait_until(|| TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { child, port }
    }

    fn look(&self, fixture: &GitFixture, ca: Option<&str>) -> Failure {
        let url = RemoteUrl::parse(&format!("https://127.0.0.1:{}/x", self.port), false).expect("a url");
        let mut remote = Remote::new(url, "main");
        remote.credentials.ca_file = ca.map(|name| fixture.path(name));
        let failure = remote_head(&remote).expect_err("no Git server");
        assert_eq!(failure.class(), Class::Stalled, "{}", failure.one_line());
        failure
    }
}

impl Drop for TlsPage {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn openssl(fixture: &GitFixture) -> Command {
    let mut command = Command::new("openssl");
    command.current_dir(fixture.root()).stderr(Stdio::null()).stdout(Stdio::null());
    command
}

fn certificate(fixture: &GitFixture, arguments: &[&str]) {
    let mut command = openssl(fixture);
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "3650"]);
    assert!(command.args(arguments).status().expect("openssl").success());
}

#[test]
fn only_authorities_of_the_machine_and_of_the_ca_file_are_trusted() {
    let fixture = GitFixture::new();
    let server = TlsPage::start(&fixture);
    let untrusted = server.look(&fixture, None).one_line();
    assert!(untrusted.contains("is not trusted") && untrusted.contains("caFile"), "{untrusted}");
    let trusted = server.look(&fixture, Some("ca.pem")).one_line();
    assert!(trusted.contains("does not answer as a Git server"), "{trusted}");
    let missing = server.look(&fixture, Some("none.pem")).one_line();
    assert!(missing.contains("none.pem"), "{missing}");
}
