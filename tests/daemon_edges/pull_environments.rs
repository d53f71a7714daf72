//! Environments of pull requests, by a real daemon on a small host.

use launchway::clock::{Clock, SystemClock};
use serde_json::{Value, json};

use crate::daemon_edges::hosting::{Hosting, Kind, Written};
use crate::daemon_edges::survival::SERVICE;
use crate::daemon_edges::triggers::{SECRET, deliver};
use crate::support::daemon::{BY_HAND, World, config, eventually, http, private, sleeper};
use crate::support::git_http::GitHttp;

/// A repository with two stages, whose pull requests get environments; ended with it.
struct Place {
    world: World,
    host: Hosting,
    server: GitHttp,
    base: String,
}

impl Place {
    /// Version `one` runs in the stages, and `previews` says which environments there are.
    fn new(previews: &str) -> Self {
        let (world, host) = (World::new(&[]), Hosting::start(Kind::Gitea));
        let mut place = Self { server: GitHttp::start(world.git.root()), world, host, base: String::new() };
        place.configure("previews: true");
        place.world.start();
        place.base = place.push("one", previews);
        place.world.status(&place.base, "launchway/production", "success");
        place
    }

    fn configure(&self, previews: &str) {
        let secret = self.world.git.path("hook");
        private(&secret, SECRET);
        let webhook = format!("webhook: {{secretFiles: [{}]}}", secret.display());
        let more = [&*webhook, previews, "commands: true"];
        self.host.configure(&self.world, &self.server.url("moody/origin.git"), &more);
    }

    /// Pushes a version to the branch that is watched.
    fn push(&self, version: &str, previews: &str) -> String {
        let project = format!(
            "apiVersion: launchway.dev/v1\nkind: Project\nmetadata: {{name: shop}}\nspec:\n  stages: {{production: {{path: live}}}}\n{previews}"
        );
        let files = [
            ("launchway.yaml", &*project),
            ("shipyard.yaml", BY_HAND),
            ("service.yaml", SERVICE),
            ("web.yaml", &self.web(version)),
            ("live/map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: live}\n"),
        ];
        let commit = self.world.git.push_files(&files);
        self.world.tell(&["sync"]);
        commit
    }

    /// What answers with its version.
    fn web(&self, version: &str) -> String {
        let folder = self.world.git.path(&format!("www-{version}"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("version"), version).unwrap();
        let script = format!("cd {} && exec python3 -m http.server --bind 127.0.0.1 $PORT", folder.display());
        let container = format!(
            "{{name: main, image: host, ports: [{{containerPort: 8080}}], command: [sh, -c, '{script}'], \
             readinessProbe: {{tcpSocket: {{port: 8080}}, periodSeconds: 1}}}}"
        );
        config("web", "type: Recreate", &container)
    }

    /// A pull request that brings a version, or what one brings now.
    fn open(&self, number: u64, is_fork: bool, version: &str) -> String {
        self.open_with(number, is_fork, &self.web(version))
    }

    /// The same with what its file says.
    fn open_with(&self, number: u64, is_fork: bool, web: &str) -> String {
        self.world.git.git(&["checkout", "-q", "-B", "topic", "origin/main"]);
        self.world.git.commit_files(&[("web.yaml", web)]);
        let head = self.host.open(&self.world, number, is_fork);
        self.world.git.git(&["checkout", "-q", "-B", "main", "origin/main"]);
        self.world.tell(&["sync"]);
        head
    }

    /// The first comment on a pull request: the one that tells its plan.
    fn comment(&self, number: u64) -> String {
        let hosted = self.host.hosted();
        hosted.comments.iter().find(|said| said.on == number).map(|said| said.text.clone()).unwrap_or_default()
    }

    /// The version that answers at the address that the comment names.
    fn answers(&self, number: u64) -> Option<String> {
        let comment = self.comment(number);
        let address = comment.split_once("- `web`: `")?.1.split_once('`')?.0.to_owned();
        Some(http(&address, "GET", "/version", &[], b"")).filter(|(status, _)| *status == 200).map(|(_, body)| body)
    }

    fn answers_with(&self, number: u64, version: &str) {
        eventually(version, || self.answers(number).as_deref() == Some(version));
    }

    fn says(&self, number: u64, what: &str) {
        eventually(&format!("{what} in {}", self.comment(number)), || self.comment(number).contains(what));
    }

    /// The stages in which there are deployment configs.
    fn stages(&self) -> Vec<String> {
        let all = self.world.json(&["get", "dc"]);
        let stage = |item: &Value| item["stage"].as_str().unwrap_or_default().to_owned();
        let mut stages: Vec<String> = all["items"].as_array().into_iter().flatten().map(stage).collect();
        stages.sort();
        stages
    }

    /// How the environment of a pull request stands as a repository; nothing, if there is none.
    fn repository(&self, number: u64) -> String {
        let view = self.world.json(&["get", "repositories", "-r", &format!("shop@pr-{number}")]);
        view["items"][0]["status"].as_str().unwrap_or_default().to_owned()
    }

    /// Waits until nothing of the environment of a pull request is there.
    fn gone(&self, number: u64) {
        let stage = format!("pr-{number}");
        eventually("the end of an environment", || {
            let pods = self.world.json(&["get", "pods", "-s", &stage]);
            let is_there = !pods["items"].as_array().is_none_or(Vec::is_empty);
            !is_there && self.repository(number).is_empty() && !self.stages().contains(&stage)
        });
        let pods = self.world.pod_folders();
        assert!(!pods.keys().any(|pod| pod.starts_with(&format!("shop-{stage}/"))), "{pods:?}");
    }
}

/// What there is to know of anything is lost.
fn lose_store(world: &World) {
    for file in ["store.db", "store.db-wal", "store.db-shm"] {
        let there = world.state().join(file);
        if there.exists() {
            std::fs::rename(there, world.git.path(file)).unwrap();
        }
    }
}

const TWO: &str = "  previews: {stage: dev, max: 2}\n";

#[test]
fn a_pull_request_has_an_environment_that_follows_it_and_ends_with_it() {
    let place = Place::new(TWO);
    let first = place.open(7, false, "two");
    place.world.status(&first, "launchway/pr-7", "success");
    place.world.status(&first, "launchway/pr-7/web", "success");
    place.answers_with(7, "two");
    place.says(7, "`pr-7`, made after `dev`: success on");
    assert!(place.comment(7).contains("deploy `DeploymentConfig/web`"), "the plan stays: {}", place.comment(7));
    assert_eq!(place.stages(), ["dev", "pr-7"], "and nothing of other stages");
    let contexts: Vec<String> = place.world.notes(&first).into_keys().collect();
    assert_eq!(contexts, ["launchway/pr-7", "launchway/pr-7/shared", "launchway/pr-7/web"]);
    for arguments in
        [&["why", "dc/web", "-s", "pr-7"][..], &["rollout", "history", "dc/web", "-s", "pr-7", "-r", "shop"]]
    {
        place.world.tell(arguments);
    }
    assert!(place.world.tell(&["status", &first]).contains("launchway/pr-7/web"));
    let runs = place.world.json(&["get", "runs", "-r", "shop", "-s", "pr-7"]);
    assert!(runs["items"].as_array().is_some_and(|runs| !runs.is_empty()), "{runs}");
    assert_eq!(place.repository(7), "Ready");
    place.world.tell(&["trigger", "delivery", "web", "-r", "shop@pr-7", "-s", "pr-7"]);
    assert_eq!(place.world.json(&["get", "repositories"])["items"].as_array().map(Vec::len), Some(1));

    // What is pushed while nobody looks is found, and the one that was killed in the middle of it goes on.
    let second = place.open(7, false, "three");
    place.world.kill();
    place.world.start();
    place.world.status(&second, "launchway/pr-7", "success");
    place.answers_with(7, "three");
    let pod = place.world.tell(&["exec", "dc/web", "-s", "pr-7", "--", "printenv", "POD_NAME"]);
    assert!(pod.starts_with("web-2-"), "{pod}");

    // A host that hides the repository ends nothing: it does not say that anything is closed.
    place.host.hosted().is_hidden = true;
    place.world.tell(&["sync"]);
    place.world.kill();
    place.world.start();
    place.world.tell(&["sync"]);
    assert_eq!(place.answers(7).as_deref(), Some("three"));
    place.host.hosted().is_hidden = false;

    // A host that does not answer ends nothing, and what is closed meanwhile is found.
    place.host.hosted().is_away = true;
    place.host.close(7);
    place.world.tell(&["sync"]);
    eventually("the host is asked", || place.world.log().contains("an action failed and is tried again"));
    assert_eq!(place.answers(7).as_deref(), Some("three"));
    place.world.kill();
    place.host.hosted().is_away = false;
    place.world.start();
    place.world.kill();
    place.world.start();
    place.gone(7);
    assert_eq!(place.stages(), ["dev"]);
    let dev = &place.world.json(&["get", "dc", "web", "-s", "dev"])["items"][0];
    assert_eq!(dev["serving"]["version"], 1, "the branch's own is as it was");
    assert_eq!(place.world.notes(&place.base)["launchway/dev"].0, "success");

    // It is opened again: another one, with versions that go on.
    place.open(7, false, "four");
    place.answers_with(7, "four");
}

#[test]
fn there_are_no_more_than_there_may_be_and_none_without_the_setting() {
    let place = Place::new("  previews: {stage: dev, max: 1}\n");
    place.open(7, false, "two");
    place.answers_with(7, "two");
    place.open(8, false, "three");
    place.says(8, "It waits: there may be 1 at once");
    let shown = &place.world.json(&["get", "repositories"])["items"][0]["environments"];
    let standing = |one: usize| shown[one]["standing"].as_str().unwrap_or_default().to_owned();
    assert_eq!([standing(0), standing(1)], ["Wanted", "Waiting"], "{shown}");
    place.host.close(7);
    place.world.tell(&["sync"]);
    place.answers_with(8, "three");
    place.gone(7);

    // Down: all of it ends, and comes back with the repository.
    place.world.tell(&["down", "shop"]);
    place.gone(8);
    place.world.tell(&["sync", "shop", "--up"]);
    place.answers_with(8, "three");

    // What cannot be read is told, and leaves what is there.
    let broken = place.open_with(8, false, &place.web("four").replace("replicas: 1", "replicas: many"));
    place.world.status(&broken, "launchway/pr-8", "error");
    place.says(8, "`pr-8`, made after `dev`: error on");
    assert_eq!(place.answers(8).as_deref(), Some("three"));

    // One that ends in the middle says so, and leaves nothing that would be awaited.
    let hung = place.web("five").replace("tcpSocket: {port: 8080}", "exec: {command: ['false']}");
    let hung = place.open_with(8, false, &hung);
    place.world.status(&hung, "launchway/pr-8/web", "running");
    place.push("one", "");
    place.gone(8);
    place.world.status(&hung, "launchway/pr-8/web", "cancelled");
    place.world.status(&hung, "launchway/pr-8", "cancelled");
    eventually("no more of it in the comment", || !place.comment(8).contains("environment"));
    place.push("one", "  previews: {stage: nowhere}\n");
    let told = place.world.run(&["validate", "."]);
    assert!(!told.status.success());
}

#[test]
fn one_that_is_too_old_ends_until_something_is_pushed() {
    let place = Place::new("  previews: {stage: dev, ttl: 1m}\n");
    place.open(7, false, "two");
    place.answers_with(7, "two");
    place.says(7, "nothing was pushed for 1m");
    place.gone(7);
    place.open(7, false, "three");
    place.answers_with(7, "three");
}

#[test]
fn a_fork_has_one_once_somebody_who_may_write_approves_just_that_commit() {
    let place = Place::new(TWO);
    let head = place.open(7, true, "two");
    place.says(7, &format!("comments `/launchway preview {head}`"));
    let said = |id: u64, login: &'static str, text: &str| {
        let comment = Written {
            id,
            login,
            text: text.to_owned(),
            at: SystemClock.now(),
            is_edited: false,
            repository: "moody/origin",
        };
        let (headers, body) = place.host.kind.call(&id.to_string(), &comment);
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, &**value)).collect();
        let (status, answer) = http(&place.world.address(), "POST", "/webhooks/shop", &headers, &body);
        assert_eq!(status, 200, "{answer}");
        answer
    };
    assert!(said(1, "ben", "/launchway preview").contains("may not write"));
    // The first digits may be those of another commit, too.
    said(2, "ann", &format!("/launchway preview {}", &head[..12]));
    let is_refused = |why: &str| place.host.hosted().comments.iter().any(|said| said.text.contains(why));
    eventually("a refusal", || is_refused("has to be named by its whole id"));
    said(3, "ann", &format!("/launchway preview {}", place.base));
    eventually("another refusal", || is_refused("it brings"));
    assert_eq!(place.stages(), ["dev"]);
    said(4, "ann", &format!("/launchway preview {head}"));
    place.answers_with(7, "two");

    // What is pushed after that was not approved.
    let next = place.open(7, true, "three");
    place.gone(7);
    place.says(7, &format!("comments `/launchway preview {next}`"));
    said(5, "ann", &format!("/launchway preview {next}"));
    place.answers_with(7, "three");
}

#[test]
fn a_fork_runs_no_hook_and_is_given_no_secret_whatever_its_webhook_says() {
    let place = Place::new(TWO);
    let login =
        "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: correct-horse-battery}\n";
    place.world.git.push_files(&[("login.yaml", login)]);
    place.world.tell(&["sync"]);
    let stolen = place.world.git.path("stolen");
    let hook = format!(
        "pre: {{failurePolicy: Abort, execNewPod: {{containerName: main, env: [{{name: P, valueFrom: {{secretKeyRef: \
         {{name: login, key: password}}}}}}], command: [sh, -c, 'printf %s $P > {}']}}}}",
        stolen.display()
    );
    let web = sleeper("web", &format!("type: Recreate, recreateParams: {{{hook}}}"), "two");
    let head = place.open_with(7, true, &web);
    for (id, action) in [("1", "opened"), ("2", "synchronized"), ("3", "reopened")] {
        let from = json!({"sha": head, "repo": {"fork": true, "full_name": "ben/origin"}});
        let body = json!({"action": action, "number": 7, "pull_request": {"head": from}});
        let (status, answer) = deliver(&place.world.address(), ("pull_request", id), &body, None);
        assert_eq!((status, &answer["result"]), (200, &json!("accepted")), "{answer}");
    }
    place.world.tell(&["sync"]);
    place.says(7, &format!("comments `/launchway preview {head}`"));
    assert!(!place.comment(7).contains("correct-horse"), "{}", place.comment(7));
    assert_eq!(place.stages(), ["dev"]);
    assert!(!place.world.pod_folders().keys().any(|pod| pod.starts_with("shop-pr-7/")));
    assert!(!stolen.exists());
    // The same hook of who may push does run.
    place.open_with(8, false, &web);
    eventually("its hook has run", || std::fs::read_to_string(&stolen).is_ok_and(|it| it == "correct-horse-battery"));
    assert_eq!(place.repository(7), "");
}

#[test]
fn what_no_record_names_after_a_store_was_lost_goes_unless_its_pull_request_is_open() {
    let place = Place::new(TWO);
    place.open(7, false, "two");
    place.answers_with(7, "two");
    place.open(8, false, "three");
    place.answers_with(8, "three");
    let before = place.world.pod_in("shop-pr-8/web-1-0", "ready");
    place.world.stop();
    lose_store(&place.world);
    place.host.close(7);
    // As long as the host does not say which are open, both serve on.
    place.host.hosted().is_away = true;
    place.world.start();
    eventually("the host is asked", || place.world.log().contains("an action failed and is tried again"));
    assert!(["7", "8"].iter().all(|number| {
        let pod = format!("shop-pr-{number}/web-1-0");
        place.world.pod(&pod)["phase"] == "ready"
    }));
    place.host.hosted().is_away = false;
    eventually("the end of what is closed", || {
        !place.world.pod_folders().keys().any(|pod| pod.starts_with("shop-pr-7/"))
    });
    let log = place.world.log();
    assert!(log.contains("the environment of a pull request that no record names is over"), "{log}");
    place.answers_with(8, "three");
    assert_eq!(place.world.pod_in("shop-pr-8/web-1-0", "ready"), before, "the same process");
    assert_eq!(place.stages(), ["dev", "pr-8"]);
}
