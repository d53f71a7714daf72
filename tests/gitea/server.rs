//! The server: started once, ended with the test process.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

/// From the start of the process to its first answer; it takes one or two seconds.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

static SERVER: OnceLock<GiteaServer> = OnceLock::new();

/// A running Gitea. Its process ends when this one does, because its standard input closes then.
pub(crate) struct GiteaServer {
    http_port: u16,
    ssh_port: u16,
    state: PathBuf,
    admin_token: String,
    process: Child,
}

impl GiteaServer {
    /// The one of this process, ready for requests. Builds it first if need be, which takes minutes.
    pub(crate) async fn get() -> &'static Self {
        let server = tokio::task::spawn_blocking(|| SERVER.get_or_init(Self::start)).await.unwrap();
        server.wait_until_ready().await;
        server
    }

    fn start() -> Self {
        let (http_port, ssh_port) = free_ports();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gitea/serve");
        let mut process = Command::new(script)
            .args([http_port.to_string(), ssh_port.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut state = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut state).unwrap();
        let state = PathBuf::from(state.trim());
        let token = std::fs::read_to_string(state.join("admin-token"));
        let admin_token = token.expect("Gitea could not be started").trim().to_owned();
        Self { http_port, ssh_port, state, admin_token, process }
    }

    async fn wait_until_ready(&self) {
        let client = Client::new();
        let deadline = Instant::now() + READY_TIMEOUT;
        let url = self.url("/api/healthz");
        while !client.get(&url).send().await.is_ok_and(|answer| answer.status() == StatusCode::OK) {
            assert!(Instant::now() < deadline, "Gitea (process {}) is not ready", self.process.id());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The address of a page.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.http_port)
    }

    /// The address for Git over SSH.
    pub(crate) fn ssh_url(&self, owner: &str, name: &str) -> String {
        format!("ssh://git@127.0.0.1:{}/{owner}/{name}.git", self.ssh_port)
    }

    /// The file with the server's host key.
    pub(crate) fn known_hosts(&self) -> PathBuf {
        self.state.join("known_hosts")
    }

    /// A token that may do everything.
    pub(crate) fn admin_token(&self) -> &str {
        &self.admin_token
    }

    /// A request to the API as the administrator, which must be answered 2xx.
    pub(crate) async fn api(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        self.api_as(&self.admin_token, method, path, body).await
    }

    /// The same as whoever has this token.
    pub(crate) async fn api_as(&self, token: &str, method: Method, path: &str, body: Option<Value>) -> Value {
        let mut request = Client::new()
            .request(method.clone(), self.url(&format!("/api/v1{path}")))
            .header("authorization", format!("token {token}"));
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success(), "{method} {path}: {status} {text}");
        if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() }
    }

    /// Makes an ordinary user with a token of these scopes.
    pub(crate) async fn user_token(&self, name: &str, scopes: &[&str]) -> String {
        let password = "an-ordinary-password";
        let user = json!({
            "username": name, "email": format!("{name}@example.com"), "password": password, "must_change_password": false,
        });
        self.api(Method::POST, "/admin/users", Some(user)).await;
        let url = self.url(&format!("/api/v1/users/{name}/tokens"));
        let wanted = json!({"name": "suite", "scopes": scopes});
        let answer = Client::new().post(url).basic_auth(name, Some(password)).json(&wanted).send().await.unwrap();
        let token: Value = answer.json().await.unwrap();
        token["sha1"].as_str().unwrap().to_owned()
    }
}

/// Two ports that nobody listens on.
pub(crate) fn free_ports() -> (u16, u16) {
    let listen = || TcpListener::bind("127.0.0.1:0").unwrap();
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    let (http, ssh) = (listen(), listen());
    (port(&http), port(&ssh))
}
