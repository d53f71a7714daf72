//! Commands in comments on pull requests, by webhook, to a real daemon on a small host.

use launchway::clock::{Clock, SystemClock};
use launchway::model::time::Timestamp;
use serde_json::Value;

use crate::daemon_edges::hosting::{Hosting, Kind, Written, event};
use crate::daemon_edges::triggers::{SECRET, sign};
use crate::support::daemon::{World, eventually, http, private, repository, sleeper};
use crate::support::git_http::GitHttp;

/// A repository whose host has pull requests and calls; ended with it.
struct Place {
    world: World,
    host: Hosting,
    _server: GitHttp,
}

impl Place {
    /// Two versions of `web` were deployed, and the daemon runs.
    fn new(kind: Kind) -> Self {
        let (world, host) = (World::new(&[]), Hosting::start(kind));
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
        let secret = self.world.git.path("hook");
        private(&secret, SECRET);
        let webhook = format!("webhook: {{secretFiles: [{}]}}", secret.display());
        let more = [&*webhook, "previews: false", commands];
        self.host.configure(&self.world, &self._server.url("moody/origin.git"), &more);
    }

    /// The host calls about a comment; what is answered.
    fn call(&self, delivery: &str, comment: &Written) -> (String, String) {
        let (headers, body) = self.host.kind.call(delivery, comment);
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, &**value)).collect();
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
        hosted.comments.iter().map(|said| format!("{} {}", said.on, said.text)).collect()
    }
}

/// A comment on pull request 7 that was just written.
fn comment(id: u64, login: &'static str, text: &str) -> Written {
    let (text, at) = (text.to_owned(), SystemClock.now());
    Written { id, login, text, at, is_edited: false, repository: "moody/origin" }
}

#[test]
fn who_may_write_commands_in_a_comment_once_and_is_answered() {
    for kind in Kind::ALL {
        commands_once(kind);
    }
}

fn commands_once(kind: Kind) {
    let place = Place::new(kind);
    let rollback = |login: &'static str| comment(1, login, "It is worse.\n\n/launchway rollback dc/web\n");
    let (result, reason) = place.call("1", &rollback("ben"));
    assert_eq!(
        (&*result, reason.contains(&format!("`{}` may not write to the repository", kind.login("ben")))),
        ("ignored", true),
        "{reason}"
    );
    place.host.hosted().tells_no_rights = Some(403);
    let (result, reason) = place.call("2", &rollback("ann"));
    assert_eq!((&*result, reason.contains("the token may not ask what people may do")), ("ignored", true), "{reason}");
    place.host.hosted().tells_no_rights = Some(503);
    let (result, reason) = place.call("2", &rollback("ann"));
    assert_eq!((&*result, reason.contains(" answers 503")), ("ignored", true), "{reason}");
    place.host.hosted().tells_no_rights = None;
    assert_eq!((place.serving(), place.answers()), (2, Vec::new()));

    // The host delivers it again, by the same id and by another.
    assert_eq!(place.call("2", &rollback("ann")).0, "accepted");
    eventually("the rollback serves", || place.serving() == 3);
    eventually("an answer", || place.answers().len() == 1);
    let told = place.answers().remove(0);
    assert!(told.starts_with(&format!("7 {}", kind.hidden("launchway/answer "))), "{told}");
    assert!(told.contains(&format!("`/launchway rollback dc/web` of `{}`:", kind.login("ann"))), "{told}");
    assert!(told.contains("rolled back to version 1 as version 3; its service is held"), "{told}");
    assert_eq!(place.world.json(&["get", "holds"])["items"][0]["by"], format!("{}:{}", kind.name(), kind.login("ann")));
    for delivery in ["2", "3"] {
        assert_eq!(place.call(delivery, &rollback("ann")).0, "duplicate");
    }

    // Two at once are one, and several commands of a comment are answered each. What Git says waits for the hold by then.
    let runs = || place.world.json(&["get", "runs"])["items"].as_array().cloned().unwrap_or_default();
    eventually("the head waits", || runs().iter().any(|run| run["endedAt"].is_null()));
    let several = comment(2, "ann", "/launchway retry web\n/launchway approve web\n/launchway dance");
    let results = std::thread::scope(|scope| {
        let calls = ["4", "5"].map(|delivery| scope.spawn(|| place.call(delivery, &several).0));
        calls.map(|call| call.join().unwrap())
    });
    assert!(results.contains(&"accepted".to_owned()) && results.contains(&"duplicate".to_owned()), "{results:?}");
    eventually("three answers", || place.answers().len() == 4);
    let told = place.answers().split_off(1).concat();
    let waits_for_the_hold = "nothing of shop/default/web waits for approval";
    for expected in ["only failed deployments can be retried", waits_for_the_hold, "`dance` is nothing"] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    assert!(place.answers().iter().all(|told| !told.lines().any(|line| line.starts_with("/launchway"))));

    // Its own answers, and what is no comment of now and here, command nothing.
    let asked = place.host.hosted().asked;
    let own = place.answers().remove(0).split_off(2);
    let asked_by = |id: u64| comment(id, "ann", "/launchway rollback web");
    let edited = Written { is_edited: true, ..asked_by(5) };
    let unread = if kind == Kind::Gitea { "not a new one" } else { "is not a push" };
    let foreign = format!("/other` on {}", kind.name());
    for (comment, why) in [
        (comment(3, "ann", &format!("{own}\n/launchway rollback web")), "launchway's own"),
        (comment(4, "ann", "> /launchway rollback web"), "no line of the comment"),
        (edited, unread),
        (Written { at: Timestamp(SystemClock.now().0 - 2 * 3600 * 1000), ..asked_by(6) }, "more than an hour old"),
        (Written { repository: "moody/other", ..asked_by(7) }, &foreign),
    ] {
        let (result, reason) = place.call(why, &comment);
        assert!(result == "ignored" && reason.contains(why), "{why}: {result} {reason}");
    }
    let many = comment(8, "ann", &"/launchway rollback web\n".repeat(6));
    assert_eq!(place.call("8", &many).0, "accepted");
    eventually("one answer", || place.answers().last().is_some_and(|told| told.contains("more than 5 commands")));
    assert_eq!((place.serving(), place.answers().len(), place.host.hosted().asked), (3, 5, asked + 1));
    let told = place.world.tell(&["repository", "deliveries", "shop"]);
    assert!(told.contains("may not write to the repository") && told.contains(event(kind, &many)), "{told}");
}

#[test]
fn what_was_done_is_answered_once_although_the_host_was_down_and_the_daemon_died() {
    let place = Place::new(Kind::Gitea);
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
    let place = Place::new(Kind::Gitea);
    place.world.stop();
    place.configure("commands: false");
    place.world.start();
    let (result, reason) = place.call("1", &comment(1, "ann", "/launchway rollback web"));
    assert_eq!((&*result, &*reason), ("ignored", "`issue_comment` is not a push"));
    assert_eq!((place.serving(), place.host.hosted().asked), (2, 0));
}

/// Without a token nobody can be asked what the author may do. Nothing is sent to the host: what would be goes to a proxy that is
/// not there.
#[test]
fn a_command_is_refused_where_there_is_no_token_and_that_is_seen() {
    let world = World::new(&[]);
    let secret = world.git.path("hook");
    private(&secret, SECRET);
    let webhook = format!("webhook: {{secretFiles: [{}]}}", secret.display());
    let more = [&*webhook, "previews: false", "commands: true"];
    world.configure(&repository("shop", "https://github.com/moody/origin.git", &more));
    world.start_as(|command| command.env("HTTPS_PROXY", "http://127.0.0.1:9").env("NO_PROXY", ""));
    let user = serde_json::json!({"id": 3, "login": "ann", "type": "User"});
    let body = serde_json::json!({
        "action": "created", "issue": {"number": 7, "pull_request": {"url": "https://api.github.com/pulls/7"}},
        "comment": {
            "id": 1, "body": "/launchway rollback web", "user": user,
            "created_at": launchway::clock::rfc3339(SystemClock.now()),
        },
        "repository": {"full_name": "moody/origin"}, "sender": user,
    })
    .to_string();
    let signature = format!("sha256={}", sign(body.as_bytes()));
    let headers = [
        ("content-type", "application/json"),
        ("x-github-event", "issue_comment"),
        ("x-github-delivery", "1"),
        ("x-hub-signature-256", &*signature),
    ];
    let (status, answer) = http(&world.address(), "POST", "/webhooks/shop", &headers, body.as_bytes());
    let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
    assert_eq!((status, &answer["result"]), (200, &Value::from("ignored")), "{answer}");
    const WHY: &str = "without a token nobody can be asked what the author of the comment may do";
    assert!(answer["reason"].as_str().is_some_and(|reason| reason.contains(WHY)), "{answer}");
    let listed = || world.tell(&["repository", "deliveries", "shop", "-o", "json"]);
    eventually("it is listed", || listed().contains(WHY));
    assert!(world.log().contains(WHY), "{}", world.log());
}
