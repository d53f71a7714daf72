//! From the moment in which a hook after the rollout fails until nobody is answered by that version any more.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::customers;
use crate::support::daemon::{Daemon, wait_until};
use crate::support::import::Importer;
use crate::support::{figures, git};

/// Versions that fail, one after the other.
const ROUNDS: u32 = 10;
const GOOD: &str = "good";
/// Answers of the old version after which there are no others.
const IN_A_ROW: u32 = 50;
/// Of the service, on an address that is its own.
const PORT: u16 = 8080;

const SERVER: &str = "\
import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        body = os.environ['VERSION'].encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *arguments):
        pass
http.server.ThreadingHTTPServer(('127.0.0.1', int(os.environ['PORT'])), Handler).serve_forever()
";

/// The strategies that fail no request, as they are in a file.
const STRATEGIES: [(&str, &str); 2] = [
    ("Rolling, 3 pods", "type: Rolling, rollingParams: {maxSurge: 100%, maxUnavailable: 0, "),
    ("BlueGreen, 3 pods", "type: BlueGreen, blueGreenParams: {keep: 10m, "),
];

pub(crate) fn measure() {
    STRATEGIES.into_iter().for_each(|(name, strategy)| of_strategy(name, strategy));
}

fn of_strategy(name: &str, strategy: &'static str) {
    let mut shop = Shop::new(strategy);
    let (mut first, mut alone, mut failed, mut asked) = (Vec::new(), Vec::new(), 0, 0);
    for round in 1..=ROUNDS {
        let bad = format!("bad-{round}");
        let mut hook_failed = None;
        let (answers, none) = customers::ask(shop.address, || {
            shop.commit(&bad);
            wait_until("the hook fails", || shop.mark(&bad).exists());
            hook_failed = Some(Instant::now());
            wait_until("the old version serves alone", || shop.serves_the_old_version());
            shop.daemon.ask(&["status", "--wait"]);
        });
        let hook_failed = hook_failed.unwrap();
        let after: Vec<(Duration, bool)> = (answers.iter().filter(|(at, _)| *at > hook_failed))
            .map(|(at, version)| (at.saturating_duration_since(hook_failed), *version == GOOD))
            .collect();
        assert!(answers.iter().any(|(_, version)| *version == bad), "it has served");
        assert_eq!(answers.last().unwrap().1, GOOD, "the old version serves again");
        first.push(after.iter().find(|(_, is_good)| *is_good).unwrap().0);
        alone.push(after.iter().rfind(|(_, is_good)| !is_good).map_or(Duration::ZERO, |(at, _)| *at));
        (failed, asked) = (failed + none, asked + answers.len() + none);
    }
    figures::tell(&format!("{name}: from a failed hook to the first answer of the old version"), first);
    figures::tell(&format!("{name}: … to the last answer of the new one"), alone);
    println!("{name}: {failed} of {asked} requests failed");
    shop.importer.end();
}

/// A service whose hook lets only good versions pass.
struct Shop {
    // Before its folder: what it runs ends by what stands there.
    daemon: Daemon,
    folder: tempfile::TempDir,
    strategy: &'static str,
    importer: Importer,
    address: SocketAddr,
}

impl Shop {
    fn new(strategy: &'static str) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let bare = git::bare(folder.path());
        let mut importer = Importer::start(&bare);
        let files = [("code/server.py".to_owned(), SERVER.to_owned()), service()];
        importer.commit(files.into_iter().chain([config(folder.path(), strategy, GOOD)]));
        let daemon = Daemon::start(folder.path(), &bare);
        wait_until("it is complete", || daemon.ask(&["rollout", "status", "dc/web"]));
        let told = daemon.get("/api/v1/services").unwrap();
        let (_, body) = told.split_once("\r\n\r\n").unwrap();
        let services: serde_json::Value = serde_json::from_str(body).unwrap();
        let address = services["items"][0]["address"].as_str().unwrap();
        let address = SocketAddr::new(address.parse().unwrap(), PORT);
        wait_until("the good version serves", || customers::once(address).as_deref() == Some(GOOD));
        Self { folder, strategy, importer, daemon, address }
    }

    fn commit(&mut self, version: &str) {
        self.importer.commit([config(self.folder.path(), self.strategy, version)]);
    }

    fn mark(&self, version: &str) -> PathBuf {
        self.folder.path().join(version)
    }

    /// Whether no other version answers any more.
    fn serves_the_old_version(&self) -> bool {
        (0..IN_A_ROW).all(|_| customers::once(self.address).as_deref() == Some(GOOD))
    }
}

fn service() -> (String, String) {
    let text = format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: web}}\nspec: {{selector: {{app: web}}, ports: [{{port: {PORT}, targetPort: http}}]}}\n"
    );
    ("service.yaml".to_owned(), text)
}

/// The hook makes a file of the version's name in the last moment before it fails.
fn config(folder: &Path, strategy: &str, version: &str) -> (String, String) {
    let script = format!("[ $VERSION = {GOOD} ] || {{ : > {}/$VERSION; exit 1; }}", folder.display());
    let post =
        format!("post: {{failurePolicy: Abort, execNewPod: {{containerName: web, command: [sh, -c, '{script}']}}}}");
    let text = format!(
        "apiVersion: apps.openshift.io/v1\nkind: DeploymentConfig\nmetadata: {{name: web}}\nspec:\n  replicas: 3\n  \
         selector: {{app: web}}\n  strategy: {{{strategy}{post}}}}}\n  triggers: [{{type: ConfigChange}}]\n  template:\n    \
         metadata: {{labels: {{app: web}}}}\n    spec:\n      containers:\n      - name: web\n        image: 'git:code'\n        \
         command: [python3, server.py]\n        ports: [{{name: http, containerPort: 8080}}]\n        \
         env: [{{name: VERSION, value: {version}}}]\n        \
         readinessProbe: {{httpGet: {{path: /, port: http}}, periodSeconds: 1}}\n"
    );
    ("web.yaml".to_owned(), text)
}
