//! The proxies of the documentation before a daemon, as it gives their configuration.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::access::{deployed_with, operators_token};
use crate::support::daemon::{World, complaint, eventually};

const DOCUMENTATION: &str = include_str!("../../docs/operating.md");

/// A proxy, ended with the test, and the certificate that it shows.
struct Proxy {
    process: Child,
    port: u16,
    certificate: PathBuf,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // Its workers end with their master only if that is asked to end.
        let pid = i32::try_from(self.process.id()).unwrap();
        crate::support::daemon::send(pid, rustix::process::Signal::TERM);
        drop(self.process.wait());
    }
}

impl Proxy {
    /// Starts a proxy with the configuration that `write` makes of its port and of the certificate's and the key's file.
    fn start(world: &World, program: &str, write: impl FnOnce(u16, &Path, &Path) -> Command) -> Self {
        let (certificate, key) = (world.git.path("deploy.pem"), world.git.path("deploy.key"));
        let mut make = Command::new("openssl");
        make.args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "1",
        ]);
        make.args(["-subj", "/CN=deploy.example", "-addext", "subjectAltName=DNS:deploy.example"]);
        let made = make.arg("-keyout").arg(&key).arg("-out").arg(&certificate).output().unwrap();
        assert!(made.status.success(), "{}", complaint(&made));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = write(port, &certificate, &key);
        let log = fs::File::create(world.git.path(&format!("{program}.log"))).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let process = command.spawn().expect("the proxy, of which there is a package by its name");
        let proxy = Self { process, port, certificate };
        eventually(program, || proxy.status("GET", "/healthz", &[]) == 200);
        proxy
    }

    /// What the daemon answers to somebody who opens its public address.
    fn status(&self, method: &str, path: &str, headers: &[&str]) -> u16 {
        self.answer(method, path, headers, "{}")
    }

    /// The same of a request that has a body if it is a `POST`.
    fn answer(&self, method: &str, path: &str, headers: &[&str], body: &str) -> u16 {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--output", "/dev/null", "--write-out", "%{http_code}", "--noproxy", "*", "--http1.1"]);
        curl.arg("--cacert").arg(&self.certificate).args(["--request", method]);
        curl.arg("--connect-to").arg(format!("deploy.example:443:127.0.0.1:{}", self.port));
        curl.args(headers.iter().flat_map(|header| ["--header", header]));
        if method == "POST" {
            curl.args(["--header", "content-type: application/json", "--data", body]);
        }
        let output = curl.arg(format!("https://deploy.example{path}")).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().parse().unwrap_or_default()
    }

    fn lets_in_whom_it_should(&self, token: &str) {
        let (bearer, x_token) = (format!("authorization: Bearer {token}"), format!("x-token: {token}"));
        let (ours, theirs) = ("origin: https://deploy.example", "origin: https://evil.example");
        for (method, path, headers, expected) in [
            ("GET", "/", &[][..], 401),
            ("GET", "/metrics", &[], 401),
            ("GET", "/api/v1/deployments", &["x-forwarded-for: 127.0.0.1"], 401),
            ("GET", "/api/v1/deployments", &["authorization: Bearer guess"], 401),
            ("GET", "/", &[&bearer], 200),
            ("GET", "/api/v1/deployments", &[&x_token], 200),
            ("POST", "/api/v1/sync", &[], 401),
            ("POST", "/api/v1/sync", &[&bearer, ours], 200),
            ("POST", "/api/v1/sync", &[&bearer, theirs], 403),
            ("GET", "/readyz", &[], 200),
        ] {
            assert_eq!(self.status(method, path, headers), expected, "{method} {path} {headers:?}");
        }
        let (exec, upgrade) = ("/api/v1/deployments/shop/default/web/exec", "upgrade: launchway-exec.v1");
        let talks = self.answer("POST", exec, &[&bearer, "connection: upgrade", upgrade], r#"{"command": ["true"]}"#);
        assert_eq!(talks, 101);
    }
}

/// A code block of the documentation.
fn documented(language: &str) -> &'static str {
    let after = DOCUMENTATION.split_once(&format!("```{language}\n")).unwrap().1;
    after.split_once("```").unwrap().0
}

fn behind_deploy_example() -> World {
    deployed_with("listen: 127.0.0.1:0\npublicUrl: https://deploy.example")
}

fn nginx(world: &World, server: &str) -> Proxy {
    Proxy::start(world, "nginx", |port, certificate, key| {
        let server = server.replace("443 ssl", &format!("127.0.0.1:{port} ssl"));
        let server = server.replace("127.0.0.1:8787", &world.address());
        let server = server.replace("/etc/ssl/deploy.example.pem", &certificate.display().to_string());
        let server = server.replace("/etc/ssl/deploy.example.key", &key.display().to_string());
        let folder = world.git.path("nginx");
        fs::create_dir_all(&folder).unwrap();
        let temporary =
            ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(|kind| format!("{kind}_temp_path {kind};"));
        let whole = format!(
            "daemon off;\npid nginx.pid;\nevents {{}}\nhttp {{\naccess_log off;\n{}\n{server}}}\n",
            temporary.join("\n")
        );
        fs::write(folder.join("nginx.conf"), whole).unwrap();
        let mut command = Command::new("nginx");
        let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
        command.env("PATH", path).arg("-p").arg(&folder).args(["-c", "nginx.conf", "-e", "stderr"]);
        command
    })
}

#[test]
#[ignore = "needs nginx, curl and openssl"]
fn nginx_as_documented_lets_in_whom_it_should() {
    let world = behind_deploy_example();
    nginx(&world, documented("nginx")).lets_in_whom_it_should(&operators_token(&world));
}

#[test]
#[ignore = "needs nginx, curl and openssl"]
fn nginx_as_it_is_by_default_opens_nothing() {
    let world = behind_deploy_example();
    let plain: Vec<&str> = documented("nginx").lines().filter(|line| !line.contains("proxy_set_header")).collect();
    let proxy = nginx(&world, &(plain.join("\n") + "\n"));
    assert_eq!(proxy.status("GET", "/", &[]), 401);
    let bearer = format!("authorization: Bearer {}", operators_token(&world));
    assert_eq!(proxy.status("GET", "/", &[&bearer]), 200);
}

#[test]
#[ignore = "needs Caddy, curl and openssl"]
fn caddy_as_documented_lets_in_whom_it_should() {
    let world = behind_deploy_example();
    let proxy = Proxy::start(&world, "caddy", |port, certificate, key| {
        let tls = format!("tls {} {}", certificate.display(), key.display());
        let site =
            documented("caddy").replace("deploy.example {", &format!("https://deploy.example:{port} {{\n    {tls}"));
        let site = site.replace("127.0.0.1:8787", &world.address());
        let file = world.git.path("Caddyfile");
        fs::write(&file, format!("{{\n    admin off\n    auto_https disable_redirects\n}}\n{site}")).unwrap();
        let mut command = Command::new("caddy");
        command.env("HOME", world.git.root()).args(["run", "--adapter", "caddyfile", "--config"]).arg(file);
        command
    });
    proxy.lets_in_whom_it_should(&operators_token(&world));
}
