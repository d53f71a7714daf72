//! Commands in comments on pull requests, by webhook, to a real daemon on a small Gitea.

use launchway::clock::{Clock, SystemClock, rfc3339};
use launchway::model::time::Timestamp;
use serde_json::{Value, json};

use crate::daemon_edges::gitea::Gitea;
use crate::daemon_edges::triggers::{SECRET, sign};
use crate::support::daemon::{World, eventually, http, private, repository, sleeper};
use crate::support::git_http::GitHttp;

/// A repository whose host has pull requests and calls; ended with it.
struct Place {
    world: World,
    host: Gitea,
    _server: GitHttp,
}

impl Place {
    /// Two versions of `web` were deployed, and the daemon runs.
    fn new() -> Self {
        let (world, host) = (World::new(&[]), Gitea::start());
        let place = Self { _server: GitHttp::start(world.git.root()), world, host };
        place.configure("commands: true");
        place.world.start();
        for version in ["1", "2"] {
            let commit = place.world.git.push_files(&[("web.yaml", &sleeper("web", "type: Recreate", version))]);
            place.world.tell(&["sync"]);
            place.world.status(&commit, "launchway/default", "success");
        }
        place
    }

    fn configure(&self, commands: &str) {
        let (token, secret) = (self.world.git.path("token"), self.world.git.path("hook"));
        private(&token, "d8a1c2e3f4051627384950617283940516273849\n");
        private(&secret, SECRET);
        let more = [
            format!("forge: {{kind: gitea, url: 'http://{}'}}", self.host.address),
            format!("credentials: {{tokenFile: {}}}", token.display()),
            format!("webhook: {{secretFiles: [{}]}}", secret.display()),
            "notes: true".to_owned(),
            "previews: false".to_owned(),
            commands.to_owned(),
        ];
        let more: Vec<&str> = more.iter().map(String::as_str).collect();
        self.world.configure(&repository("shop", &self._server.url("moody/origin.git"), &more));
    }

    /// The host calls about a comment; what is answered.
    fn call(&self, delivery: &str, comment: &Value) -> (String, String) {
        let body = serde_json::to_vec(comment).unwrap();
        let headers = [
            ("content-type", "application/json"),
            ("x-gitea-event", "issue_comment"),
            ("x-gitea-delivery", delivery),
            ("x-gitea-signature", &*sign(&body)),
        ];
        let (status, answer) = http(&self.world.address(), "POST", "/webhooks/shop", &headers, &body);
        let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
        assert_eq!(status, 200, "{answer}");
        let text = |field: &str| answer[field].as_str().unwrap_or_default().to_owned();
        (text("result"), text("reason"))
    }

    /// The version that serves.
    fn serving(&self) -> u64 {
        self.world.json(&["get", "dc", "web"])["items"][0]["serving"]["version"].as_u64().unwrap_or_default()
    }

    /// The comments on pull request 7.
    fn answers(&self) -> Vec<String> {
        let hosted = self.host.hosted();
        hosted.comments.iter().map(|(on, comment)| format!("{on} {}", comment["body"].as_str().unwrap())).collect()
    }
}

/// A comment on pull request 7, as Gitea tells of a new one.
fn comment(id: u64, login: &str, text: &str) -> Value {
    let user = json!({"id": if login == "ann" { 3 } else { 4 }, "login": login});
    let at = rfc3339(SystemClock.now());
    json!({
        "action": "created", "is_pull": true, "issue": {"number": 7, "pull_request": {"merged": false}},
        "comment": {"id": id, "body": text, "user": user, "created_at": at, "updated_at": at},
        "repository": {"full_name": "moody/origin"}, "sender": user,
    })
}

#[test]
fn who_may_write_commands_in_a_comment_once_and_is_answered() {
    let place = Place::new();
    let rollback = |login: &str| comment(1, login, "It is worse.\n\n/launchway rollback dc/web\n");
    let (result, reason) = place.call("1", &rollback("ben"));
    assert_eq!((&*result, reason.contains("`ben` may not write to the repository")), ("ignored", true), "{reason}");
    place.host.hosted().tells_no_rights = Some(403);
    let (result, reason) = place.call("2", &rollback("ann"));
    assert_eq!((&*result, reason.contains("the token may not ask what people may do")), ("ignored", true), "{reason}");
    place.host.hosted().tells_no_rights = Some(503);
    let (result, reason) = place.call("2", &rollback("ann"));
    assert_eq!((&*result, reason.contains("Gitea answers 503")), ("ignored", true), "{reason}");
    place.host.hosted().tells_no_rights = None;
    assert_eq!((place.serving(), place.answers()), (2, Vec::new()));

    // The host delivers it again, by the same id and by another.
    assert_eq!(place.call("2", &rollback("ann")).0, "accepted");
    eventually("the rollback serves", || place.serving() == 3);
    eventually("an answer", || place.answers().len() == 1);
    let told = place.answers().remove(0);
    assert!(told.starts_with("7 <!-- launchway/answer "), "{told}");
    assert!(told.contains("`/launchway rollback dc/web` of `ann`:"), "{told}");
    assert!(told.contains("rolled back to version 1 as version 3; its service is held"), "{told}");
    assert_eq!(place.world.json(&["get", "holds"])["items"][0]["by"], "gitea:ann");
    for delivery in ["2", "3"] {
        assert_eq!(place.call(delivery, &rollback("ann")).0, "duplicate");
    }

    // Two at once are one, and several commands of a comment are answered each.
    let several = comment(2, "ann", "/launchway retry web\n/launchway approve web\n/launchway dance");
    let results = std::thread::scope(|scope| {
        let calls = ["4", "5"].map(|delivery| scope.spawn(|| place.call(delivery, &several).0));
        calls.map(|call| call.join().unwrap())
    });
    assert!(results.contains(&"accepted".to_owned()) && results.contains(&"duplicate".to_owned()), "{results:?}");
    eventually("three answers", || place.answers().len() == 4);
    let told = place.answers().split_off(1).concat();
    for expected in ["only failed deployments can be retried", "nothing is under way of `web`", "`dance` is nothing"] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    assert!(place.answers().iter().all(|told| !told.lines().any(|line| line.starts_with("/launchway"))));

    // Its own answers, and what is no comment of now and here, command nothing.
    let asked = place.host.hosted().asked;
    let own = place.answers().remove(0).split_off(2);
    let old = rfc3339(Timestamp(SystemClock.now().0 - 2 * 3600 * 1000));
    let with = |id: u64, pointer: &str, value: &str| {
        let mut comment = comment(id, "ann", "/launchway rollback web");
        *comment.pointer_mut(pointer).unwrap() = json!(value);
        comment
    };
    for (comment, why) in [
        (comment(3, "ann", &format!("{own}\n/launchway rollback web")), "launchway's own"),
        (comment(4, "ann", "> /launchway rollback web"), "no line of the comment"),
        (with(5, "/action", "edited"), "not a new one"),
        (with(6, "/comment/created_at", &old), "more than an hour old"),
        (with(7, "/repository/full_name", "moody/other"), "the comment is in `moody/other` on gitea"),
    ] {
        let (result, reason) = place.call(why, &comment);
        assert!(result == "ignored" && reason.contains(why), "{why}: {result} {reason}");
    }
    let many = comment(8, "ann", &"/launchway rollback web\n".repeat(6));
    assert_eq!(place.call("8", &many).0, "accepted");
    eventually("one answer", || place.answers().last().is_some_and(|told| told.contains("more than 5 commands")));
    assert_eq!((place.serving(), place.answers().len(), place.host.hosted().asked), (3, 5, asked + 1));
    let told = place.world.tell(&["repository", "deliveries", "shop"]);
    assert!(told.contains("may not write to the repository") && told.contains("issue_comment"), "{told}");
}

#[test]
fn what_was_done_is_answered_once_although_the_host_was_down_and_the_daemon_died() {
    let place = Place::new();
    place.host.hosted().is_mute = true;
    assert_eq!(place.call("1", &comment(1, "ann", "/launchway rollback web")).0, "accepted");
    eventually("the rollback serves", || place.serving() == 3);
    place.world.kill();
    place.world.start();
    let waits = || place.world.log().contains("an action failed and is tried again");
    eventually("the host was asked", waits);
    assert_eq!(place.answers(), [] as [String; 0]);
    place.host.hosted().is_mute = false;
    eventually("an answer", || !place.answers().is_empty());
    let told = place.answers();
    assert!(told.len() == 1 && told[0].contains("rolled back to version 1 as version 3"), "{told:?}");
    assert_eq!(place.serving(), 3);
    assert_eq!(place.call("2", &comment(1, "ann", "/launchway rollback web")).0, "duplicate");
}

#[test]
fn without_the_setting_comments_are_of_no_interest() {
    let place = Place::new();
    place.world.stop();
    place.configure("commands: false");
    place.world.start();
    let (result, reason) = place.call("1", &comment(1, "ann", "/launchway rollback web"));
    assert_eq!((&*result, &*reason), ("ignored", "`issue_comment` is not a push"));
    assert_eq!((place.serving(), place.host.hosted().asked), (2, 0));
}
