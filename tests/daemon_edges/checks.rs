//! Check runs of a GitHub App, by a real daemon on a small GitHub.

use std::sync::Arc;

use base64::Engine as _;
use launchway::clock::SystemClock;
use serde_json::{Value, json};

use crate::daemon_edges::orders::task;
use crate::daemon_edges::triggers::{SECRET, sign};
use crate::support::daemon::{World, complaint, config, eventually, hook, http, private, repository, sleeper};
use crate::support::git_http::GitHttp;
use crate::support::github_app::{APP, Run, Shared, private_key, serve};

/// A repository on a GitHub that has the App, and the daemon that watches it; ended with it.
struct Place {
    world: World,
    github: Shared,
    server: GitHttp,
    forge: String,
    _runtime: tokio::runtime::Runtime,
}

impl Place {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (world, github) = (World::new(&[]), Shared::new(Arc::new(SystemClock)));
        let address = runtime.block_on(serve(github.clone(), "moody/origin"));
        let (key, secret) = (world.git.path("app.pem"), world.git.path("hook"));
        private(&key, &private_key());
        private(&secret, SECRET);
        let app = format!("app: {{id: {APP}, keyFile: {}}}", key.display());
        let forge = format!("forge: {{kind: github, url: 'http://{address}', {app}}}");
        let server = GitHttp::start(world.git.root());
        let place = Self { world, github, server, forge, _runtime: runtime };
        place.world.configure(&place.repository());
        place
    }

    fn repository(&self) -> String {
        let webhook = format!("webhook: {{secretFiles: [{}]}}", self.world.git.path("hook").display());
        let more = [&*self.forge, &*webhook, "previews: false", "notes: true"];
        repository("shop", &self.server.url("moody/origin.git"), &more)
    }

    /// GitHub calls; what is answered.
    fn call(&self, delivery: &str, event: &str, body: &Value) -> (String, String) {
        let body = body.to_string();
        let signature = format!("sha256={}", sign(body.as_bytes()));
        let headers = [
            ("content-type", "application/json"),
            ("x-github-event", event),
            ("x-github-delivery", delivery),
            ("x-hub-signature-256", &*signature),
        ];
        let (status, answer) = http(&self.world.address(), "POST", "/webhooks/shop", &headers, body.as_bytes());
        assert_eq!(status, 200, "{answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let text = |field: &str| answer[field].as_str().unwrap_or_default().to_owned();
        (text("result"), text("reason"))
    }

    fn run(&self, commit: &str, name: &str) -> Option<Run> {
        self.github.run(commit, name)
    }

    /// Waits until the newest run of a name ends so.
    fn ends(&self, commit: &str, name: &str, conclusion: &str) -> Run {
        let is_so = || self.run(commit, name).is_some_and(|run| run.text("/conclusion") == conclusion);
        eventually(&format!("{name} is {conclusion}"), is_so);
        self.run(commit, name).unwrap()
    }
}

fn rerequested(app: u64, commit: &str, name: &str) -> Value {
    json!({
        "action": "rerequested",
        "check_run": {"id": 1, "name": name, "head_sha": commit, "app": {"id": app}},
        "repository": {"full_name": "moody/origin"}, "sender": {"login": "ann", "type": "User"},
    })
}

#[test]
fn a_failed_hook_shows_its_output_and_the_button_tries_it_again() {
    let place = Place::new();
    place.world.start();
    let ready = place.world.git.path("ready");
    let script = format!("echo looking; test -f {} || {{ echo '<b>not ready</b>'; exit 3; }}", ready.display());
    let strategy = format!("type: Recreate, recreateParams: {{{}}}", hook("pre", "Abort", &script));
    let web = config("web", &strategy, "{name: main, image: host, command: [sleep, '1000']}");
    let commit =
        place.world.git.push_files(&[("web.yaml", &web), ("api.yaml", &sleeper("api", "type: Recreate", "1"))]);
    place.world.tell(&["sync"]);

    let failed = place.ends(&commit, "launchway/default/web/pre", "failure");
    let summary = failed.text("/output/summary").to_owned();
    assert!(summary.contains("Its last lines of output:\n\n    looking\n    <b>not ready</b>\n"), "{summary}");
    assert!(failed.text("/output/title").starts_with("failed with exit code 3"), "{failed:?}");
    place.ends(&commit, "launchway/default/web", "failure");
    place.ends(&commit, "launchway/default/api", "success");
    place.ends(&commit, "launchway/plan", "success");
    let seen = place.github.hub().tokens[0].0.clone();
    let basic = base64::engine::general_purpose::STANDARD.encode(format!("x-access-token:{seen}"));
    let by_app = |seen: &crate::support::git_http::Seen| seen.authorization.as_ref() == Some(&format!("Basic {basic}"));
    assert!(place.server.take_seen().iter().any(by_app), "Git is opened by the App too");

    let web = rerequested(APP, &commit, "launchway/default/web");
    let api = rerequested(APP, &commit, "launchway/default/api");
    let foreign = json!({"full_name": "moody/other"});
    let elsewhere = Value::Object(
        web.as_object().unwrap().clone().into_iter().chain([("repository".to_owned(), foreign)]).collect(),
    );
    for (body, why) in [
        (&rerequested(99, &commit, "launchway/default/web"), "the check is another App's"),
        (&api, "`launchway/default/api` is success; only what failed or was cancelled runs again"),
        (&rerequested(APP, &"1".repeat(40), "launchway/default/web"), "nothing was planned for 1111111"),
        (&elsewhere, "the check is in `moody/other` on github, and `moody/origin` is watched"),
        (&rerequested(APP, &commit, "launchway/other"), "nothing of stage other failed on"),
    ] {
        let (result, reason) = place.call(why, "check_run", body);
        assert!(result == "ignored" && reason.contains(why), "{why}: {result} {reason}");
    }
    let created = json!({"action": "created", "check_run": web["check_run"], "repository": web["repository"]});
    assert_eq!(place.call("0", "check_run", &created).0, "ignored");

    std::fs::write(&ready, "").unwrap();
    assert_eq!(place.call("1", "check_run", &web), ("accepted".to_owned(), String::new()));
    assert_eq!(place.call("1", "check_run", &web).0, "duplicate");
    let passed = place.ends(&commit, "launchway/default/web/pre", "success");
    assert!(passed.id > failed.id, "what has ended is followed by another run");
    place.ends(&commit, "launchway/default/web", "success");
    place.ends(&commit, "launchway/default", "success");
    let told = place.world.tell(&["get", "runs", "-o", "json"]);
    assert!(told.contains("github:ann"), "{told}");
    let (log, deliveries) = (place.world.log(), place.world.tell(&["repository", "deliveries", "shop"]));
    assert!(!log.contains("ghs_") && !deliveries.contains("ghs_") && !log.contains("PRIVATE"), "{log}");
}

#[test]
fn problems_stand_at_their_lines_and_what_is_put_right_is_green() {
    let place = Place::new();
    place.world.start();
    let broken =
        "apiVersion: apps.openshift.io/v1\nkind: DeploymentConfig\nmetadata: {name: web}\nspec:\n  replicas: many\n";
    let commit = place.world.git.push_files(&[("deploy/web.yaml", broken)]);
    let suite = json!({
        "action": "rerequested", "check_suite": {"id": 5, "head_sha": commit, "app": {"id": APP}},
        "repository": {"full_name": "moody/origin"}, "sender": {"login": "ann"},
    });
    assert_eq!(place.call("1", "check_suite", &suite).0, "accepted", "it is as good as a push");
    let run = place.ends(&commit, "launchway/plan", "failure");
    let at: Vec<(&Value, &Value, &Value)> =
        run.annotations.iter().map(|it| (&it["path"], &it["start_line"], &it["annotation_level"])).collect();
    assert!(at.contains(&(&json!("deploy/web.yaml"), &json!(5), &json!("failure"))), "{run:?}");
    assert!(run.text("/output/summary").contains("    deploy/web.yaml:5:"), "{run:?}");

    let commit = place.world.git.push_files(&[("deploy/web.yaml", &sleeper("web", "type: Recreate", "1"))]);
    assert_eq!(place.call("2", "push", &json!({"ref": "refs/heads/main", "after": commit})).0, "accepted");
    assert!(place.ends(&commit, "launchway/plan", "success").annotations.is_empty());
    place.ends(&commit, "launchway/default", "success");

    // What people check before: the App is there, and what it lacks.
    place.github.hub().commits = Some(Vec::new());
    place.world.stop();
    let text = format!("listen: 127.0.0.1:0\npublicUrl: https://deploy.example\nrepositories:\n{}", place.repository());
    std::fs::write(place.world.config(), text.replace("previews: false", "previews: true")).unwrap();
    let config = place.world.config().display().to_string();
    let told = place.world.tell(&["repository", "check", "shop", "--config", &config]);
    for expected in [
        "statuses: the token may write them",
        "GitHub calls by the App's own: its settings → Webhook have to lead to https://deploy.example/webhooks/shop",
        "of the App: it may not write `pull_requests`",
        "of the App: it is not told of `pull_request`",
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    place.github.hub().is_installed = false;
    let output = place.world.run(&["repository", "check", "shop", "--config", &config]);
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.code() == Some(1) && told.contains("the App 1234 is not installed on `moody/origin`"),
        "{told}"
    );
}

#[test]
fn the_button_of_a_stage_tries_every_service_again_that_failed_in_it() {
    let place = Place::new();
    place.world.start();
    let ready = place.world.git.path("ready");
    let failing = |name: &str| {
        let strategy = format!(
            "type: Recreate, recreateParams: {{{}}}",
            hook("pre", "Abort", &format!("test -f {}", ready.display()))
        );
        config(name, &strategy, "{name: main, image: host, command: [sleep, '1000']}")
    };
    let commit = place.world.git.push_files(&[
        ("web.yaml", &failing("web")),
        ("worker.yaml", &failing("worker")),
        ("api.yaml", &sleeper("api", "type: Recreate", "1")),
    ]);
    place.world.tell(&["sync"]);
    for service in ["web", "worker"] {
        place.ends(&commit, &format!("launchway/default/{service}"), "failure");
    }
    place.ends(&commit, "launchway/default/api", "success");
    place.ends(&commit, "launchway/default", "failure");
    let stage = rerequested(APP, &commit, "launchway/default");
    std::fs::write(&ready, "").unwrap();
    assert_eq!(place.call("1", "check_run", &stage), ("accepted".to_owned(), String::new()));
    for service in ["web", "worker"] {
        place.ends(&commit, &format!("launchway/default/{service}"), "success");
    }
    place.ends(&commit, "launchway/default", "success");
    let versions = |name: &str| place.world.json(&["get", "dc", name])["items"][0]["serving"]["version"].clone();
    assert_eq!(versions("api"), 1, "what was good is left alone");
    let (result, reason) = place.call("2", "check_run", &stage);
    assert!(result == "ignored" && reason.contains("nothing of stage default failed"), "{result} {reason}");
}

/// An App has one webhook, which tells of all the repositories that it is installed on.
#[test]
fn the_webhook_of_an_app_speaks_for_the_other_repositories_that_take_its_secret() {
    let place = Place::new();
    let other = |name: &str, secret: &str| {
        let webhook = format!("webhook: {{secretFiles: [{}]}}", place.world.git.path(secret).display());
        repository(
            name,
            &place.server.url(&format!("moody/{name}.git")),
            &[&*place.forge, &*webhook, "previews: false"],
        )
    };
    private(&place.world.git.path("another"), &"x".repeat(40));
    let plain = repository("plain", &place.server.url("moody/plain.git"), &["forge: {kind: none}"]);
    let all = [place.repository(), other("stock", "hook"), other("closed", "another"), plain];
    place.world.configure(&all.concat());
    place.world.start();
    let pushed =
        |path: &str| json!({"ref": "refs/heads/main", "after": "1".repeat(40), "repository": {"full_name": path}});
    for (delivery, path, result, why) in [
        ("1", "moody/origin", "accepted", ""),
        ("2", "Moody/Stock", "accepted", ""),
        ("2", "moody/stock", "duplicate", "taken before"),
        ("3", "moody/closed", "ignored", "`closed` does not take the secret of this webhook"),
        ("4", "moody/plain", "accepted", ""),
    ] {
        let (told, reason) = place.call(delivery, "push", &pushed(path));
        assert!(told == result && reason.contains(why), "{path}: {told} {reason}");
    }
    let deliveries = |name: &str| place.world.json(&["repository", "deliveries", name])["items"].clone();
    eventually("they are listed", || deliveries("stock").as_array().is_some_and(|all| all.len() == 2));
    eventually("the rest is the first one's", || deliveries("shop").as_array().is_some_and(|all| all.len() == 3));
    assert_eq!(deliveries("plain"), json!([]), "what has no App is spoken for by nobody");
}

#[test]
fn a_failed_test_runs_again_by_its_button_or_by_hand_and_what_serves_stays() {
    let place = Place::new();
    place.world.start();
    let ready = place.world.git.path("ready");
    let shipyard = "apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nmetadata: {name: shop}\nspec: {stages: [{name: dev, \
                    sequences: [{name: delivery, tasks: [{name: deployment}, {name: test}]}]}]}\n";
    let script = format!("test -f {} || {{ echo not yet; exit 3; }}", ready.display());
    let commit = place.world.git.push_files(&[
        ("shipyard.yaml", shipyard),
        ("test.yaml", &task("test", "host", &script)),
        ("web.yaml", &sleeper("web", "type: Recreate", "1")),
    ]);
    place.world.tell(&["sync"]);
    place.ends(&commit, "launchway/dev/web", "failure");
    let pod = || place.world.pod_in("shop-dev/web-1-0", "ready");
    let (first, rerun) = (pod(), ["rerun", "web", "-s", "dev"]);
    assert!(
        place.world.tell(&["why", "web", "-s", "dev"]).contains("`launchway rerun web -s dev --sequence delivery`")
    );
    let runs_of = |attempt: u64, outcome: &str| {
        eventually(&format!("attempt {attempt} is {outcome}"), || {
            let runs = place.world.json(&["get", "runs"]);
            let mut runs = runs["items"].as_array().unwrap().iter();
            runs.any(|run| run["name"] == "delivery" && run["attempt"] == attempt && run["status"] == outcome)
        });
    };
    place.world.tell(&rerun);
    runs_of(2, "failure");
    std::fs::write(&ready, "").unwrap();
    let button = rerequested(APP, &commit, "launchway/dev/web/test");
    assert_eq!(place.call("1", "check_run", &button), ("accepted".to_owned(), String::new()));
    place.ends(&commit, "launchway/dev/web/test", "success");
    place.ends(&commit, "launchway/dev", "success");
    runs_of(3, "success");
    assert_eq!(pod(), first, "nothing was deployed again");
    let passed = place.world.run(&rerun);
    assert!(complaint(&passed).contains("has passed\nhint: `--from-start` runs all of it again"));
}
