//! Webhooks over real HTTP: what is accepted, what is refused, and that a refused call touches nothing.

#![expect(clippy::unwrap_used, reason = "in a test, that is how it fails")]

mod about;
mod crowd;
mod receiver;

use std::time::{Duration, Instant};

use futures::future::join_all;
use launchway::server::listener::Bounds;
use receiver::{AFTER, BEFORE, Call, Receiver, SECRET, push, push_with};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The longest body that the generic host and Gitea may send.
const LIMIT: usize = 1024 * 1024;

/// A time that a test waits for.
const SHORT: Duration = Duration::from_millis(200);

#[tokio::test]
async fn a_push_is_accepted_from_every_host() {
    let receiver = Receiver::start().await;
    let calls = [Call::gitea(&push(), "1"), Call::github("push", &push(), "2"), Call::generic(&push(), "3")];
    for (number, call) in calls.into_iter().enumerate() {
        let (status, answer) = receiver.deliver(call).await;
        let expected = json!({
            "result": "accepted", "event": "push", "repository": "shop", "ref": "refs/heads/main",
            "before": BEFORE, "after": AFTER, "reason": null,
        });
        assert_eq!((status, answer, receiver.syncs()), (200, expected, number + 1));
    }
    receiver.stop().await;
}

#[tokio::test]
async fn hosts_with_words_of_their_own_are_understood() {
    let receiver = Receiver::start().await;
    let branch = json!({"type": "branch", "name": "main", "target": {"hash": AFTER}});
    let old = json!({"type": "branch", "name": "main", "target": {"hash": BEFORE}});
    let cloud = json!({"push": {"changes": [{"old": old, "new": branch}]}, "repository": {"full_name": "acme/shop"}});
    let data_center =
        json!({"changes": [{"ref": {"id": "refs/heads/main"}, "fromHash": BEFORE, "toHash": AFTER, "type": "UPDATE"}]});
    let update = json!({"name": "refs/heads/main", "oldObjectId": BEFORE, "newObjectId": AFTER});
    let azure =
        json!({"id": "03c164c2", "eventType": "git.push", "publisherId": "tfs", "resource": {"refUpdates": [update]}});
    let forgejo = ["x-forgejo-event", "x-forgejo-delivery", "x-forgejo-signature"];
    let gogs = ["x-gogs-event", "x-gogs-delivery", "x-gogs-signature"];
    let calls = [
        ("push", Call::like_gitea(forgejo, &push(), "1")),
        ("push", Call::like_gitea(gogs, &push(), "2")),
        ("Push Hook", Call::gitlab("Push Hook", &push(), "3")),
        ("repo:push", Call::bitbucket("repo:push", Some("{hook}"), &cloud, "4")),
        ("repo:refs_changed", Call::bitbucket("repo:refs_changed", None, &data_center, "5")),
        ("git.push", Call::azure(&azure)),
        ("push", Call::standard(&push(), "7", 0)),
    ];
    for (number, (event, call)) in calls.into_iter().enumerate() {
        let (status, answer) = receiver.deliver(call.clone()).await;
        let expected = json!({
            "result": "accepted", "event": event, "repository": "shop", "ref": "refs/heads/main",
            "before": BEFORE, "after": AFTER, "reason": null,
        });
        assert_eq!((status, answer, receiver.syncs()), (200, expected, number + 1));
        assert_eq!(receiver.deliver(call).await.1["result"], "duplicate", "{event}");
    }
    let ping = Call { body: Vec::new(), ..Call::bitbucket("diagnostics:ping", None, &json!({}), "8") };
    assert_eq!(receiver.deliver(ping.signed_body("")).await.1["result"], "ignored");
    receiver.stop().await;
}

#[tokio::test]
async fn what_happens_beside_pushes_counts_where_somebody_waits_for_it() {
    let receiver = Receiver::start().await;
    let tag = |name: &str| push_with("ref", json!(format!("refs/tags/{name}")));
    for (number, name, result, reason, syncs) in [
        ("1", "v1", "accepted", Value::Null, 1),
        ("1", "v1", "duplicate", json!("this delivery was taken before"), 1),
        ("2", "v2", "ignored", json!("no sequence waits for it"), 1),
        ("2", "v2", "ignored", json!("no sequence waits for it"), 1),
    ] {
        let (status, answer) = receiver.deliver(Call::gitea(&tag(name), number)).await;
        assert_eq!((status, &answer["result"], &answer["reason"]), (200, &json!(result), &reason), "{answer}");
        assert_eq!((&answer["ref"], receiver.syncs()), (&json!(format!("refs/tags/{name}")), syncs));
    }
    receiver.stop().await;
}

#[tokio::test]
async fn who_sends_no_secret_of_these_hosts_is_refused() {
    let receiver = Receiver::start().await;
    let gitlab = || Call::gitlab("Push Hook", &push(), "1");
    let cloud = || Call::bitbucket("repo:push", Some("{hook}"), &json!({}), "2");
    let azure = || Call::azure(&json!({"id": "1", "eventType": "git.push"}));
    for (name, call) in [
        ("GitLab with another token", gitlab().header("x-gitlab-token", "guess")),
        ("GitLab without one", gitlab().without("x-gitlab-token")),
        ("GitLab with a bad signature beside the token", {
            gitlab().header("webhook-id", "1").header("webhook-timestamp", "0").header("webhook-signature", "v1,AAAA")
        }),
        ("Bitbucket with the hook's id alone", cloud().without("x-hub-signature")),
        ("Bitbucket with SHA-1", cloud().header("x-hub-signature", "sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59")),
        ("Azure without a password", azure().without("authorization")),
        ("Azure with another", azure().header("authorization", "Basic OmFueQ==")),
        ("Standard Webhooks from five minutes ago", Call::standard(&push(), "3", -301)),
        ("Standard Webhooks of the future", Call::standard(&push(), "4", 301)),
    ] {
        let (status, answer) = receiver.deliver(call).await;
        assert_eq!(status, 401, "{name}: {answer}");
        assert!(!answer.to_string().contains(SECRET), "{name}");
    }
    assert_eq!(receiver.syncs(), 0);
    receiver.stop().await;
}

#[tokio::test]
async fn calls_that_are_not_authentic_are_refused() {
    let receiver = Receiver::start().await;
    let github = || Call::github("push", &push(), "1");
    let good = github().headers["x-hub-signature-256"].clone();
    let mutated = { Call { body: [github().body, b" ".to_vec()].concat(), ..github() } };
    let cases = [
        ("no signature", github().without("x-hub-signature-256")),
        ("sha1 only", {
            let sha1 = "sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59";
            github().without("x-hub-signature-256").header("x-hub-signature", sha1)
        }),
        (
            "sha1 in the place of sha256",
            github().header("x-hub-signature-256", "sha1=01dc10d0c83e72ed246219cdd91669667"),
        ),
        ("an empty signature", github().header("x-hub-signature-256", "sha256=")),
        ("Gitea without a secret", {
            Call::gitea(&push(), "1").header("x-gitea-signature", "").header("x-hub-signature-256", "sha256=")
        }),
        ("Gitea with GitHub's signature alone", Call::gitea(&push(), "1").without("x-gitea-signature")),
        ("an odd number of digits", github().header("x-hub-signature-256", &good[..good.len() - 1])),
        ("no hex", github().header("x-hub-signature-256", &good.replace(|c: char| c.is_ascii_digit(), "g"))),
        ("two joined signatures", github().header("x-hub-signature-256", &format!("{good}, {good}"))),
        ("a changed body", mutated),
        ("no signature at all", Call::generic(&push(), "1").without("x-signature")),
        ("a repository without secrets", github().to("closed")),
    ];
    for (name, call) in cases {
        let (status, answer) = receiver.deliver(call).await;
        assert_eq!(status, 401, "{name}: {answer}");
        assert!(!answer.to_string().contains(&good[7..]), "{name} reveals a signature");
    }
    assert_eq!(receiver.syncs(), 0);
    receiver.stop().await;
}

#[tokio::test]
async fn what_calls_came_to_is_kept_and_strangers_push_out_nothing() {
    let receiver = Receiver::start().await;
    let other = push_with("ref", json!("refs/heads/topic"));
    let gitea = |body: &Value, id: &str| Call::gitea(body, id);
    receiver.deliver(gitea(&push(), "1")).await;
    receiver.deliver(gitea(&push(), "1")).await;
    receiver.deliver(gitea(&other, "2")).await;
    for _ in 0..300 {
        receiver.deliver(Call::generic(&push(), "3").without("x-signature")).await;
    }
    receiver.deliver(gitea(&push(), "4").to("unknown")).await;
    let unsigned = receiver.deliver(Call::generic(&push(), "3").without("x-signature")).await.1;
    receiver
        .kept(&[
            ("ignored", 1, "`refs/heads/main` is watched"),
            ("duplicate", 1, "this delivery was taken before"),
            ("accepted", 1, ""),
            ("refused", 301, unsigned["detail"].as_str().unwrap()),
        ])
        .await;
    receiver.stop().await;
}

/// A comment in the words of GitHub and its relatives.
fn comment(id: u64, login: &str, text: &str) -> Value {
    json!({
        "action": "created", "is_pull": true, "issue": {"number": 7, "pull_request": {}},
        "comment": {
            "id": id, "body": text, "created_at": "2026-11-26T12:00:00Z", "user": {"id": 3, "login": login},
        },
        "repository": {"full_name": "acme/shop"},
    })
}

#[tokio::test]
async fn a_comment_with_commands_is_taken_once_from_every_host() {
    let receiver = Receiver::start().await;
    let command = "/launchway retry web";
    let gitea = |names: [&'static str; 3], id: u64, delivery: &str| {
        Call::like_gitea(names, &comment(id, "ann", command), delivery).header(names[0], "issue_comment")
    };
    let note = json!({
        "object_kind": "note", "user": {"id": 3, "username": "ann"}, "merge_request": {"iid": 7},
        "project": {"path_with_namespace": "acme/shop"},
        "object_attributes": {
            "id": 5, "note": command, "noteable_type": "MergeRequest", "author_id": 3, "system": false,
            "created_at": "2026-11-26 12:00:00 UTC", "action": "create",
        },
    });
    let names = |host: &str| match host {
        "forgejo" => ["x-forgejo-event", "x-forgejo-delivery", "x-forgejo-signature"],
        "gogs" => ["x-gogs-event", "x-gogs-delivery", "x-gogs-signature"],
        _ => ["x-gitea-event", "x-gitea-delivery", "x-gitea-signature"],
    };
    let github = |delivery: &str| Call::github("issue_comment", &comment(4, "ann", command), delivery);
    let calls = [
        ("issue_comment", gitea(names("gitea"), 1, "1")),
        ("issue_comment", gitea(names("forgejo"), 2, "2")),
        ("issue_comment", gitea(names("gogs"), 3, "3")),
        ("issue_comment", github("4")),
        ("Note Hook", Call::gitlab("Note Hook", &note, "5")),
    ];
    for (event, call) in calls {
        let (status, answer) = receiver.deliver(call.clone()).await;
        let expected = json!({
            "result": "accepted", "event": event, "repository": "shop", "ref": null, "before": null, "after": null,
            "reason": null,
        });
        assert_eq!((status, answer), (200, expected));
        assert_eq!(receiver.deliver(call).await.1["result"], "duplicate");
    }
    assert_eq!(receiver.deliver(github("another delivery of it")).await.1["result"], "duplicate");
    assert_eq!((receiver.asked(), receiver.syncs()), (vec![1, 2, 3, 4, 5], 0));
    receiver.stop().await;
}

#[tokio::test]
async fn a_check_that_is_asked_for_again_runs_once_if_the_call_is_authentic() {
    let receiver = Receiver::start().await;
    let check = |action: &str| {
        json!({
            "action": action, "repository": {"full_name": "acme/shop"}, "sender": {"login": "ann"},
            "check_run": {"name": "launchway/dev/web", "head_sha": AFTER, "app": {"id": 1234}},
        })
    };
    let call = |action: &str, id: &str| Call::github("check_run", &check(action), id);
    let (status, _) = receiver.deliver(call("rerequested", "1").without("x-hub-signature-256")).await;
    assert_eq!((status, receiver.asked()), (401, Vec::new()));
    for (action, id, result) in [
        ("created", "2", "ignored"),
        ("completed", "3", "ignored"),
        ("rerequested", "4", "accepted"),
        ("rerequested", "4", "duplicate"),
    ] {
        let (status, answer) = receiver.deliver(call(action, id)).await;
        assert_eq!((status, answer["result"].as_str()), (200, Some(result)), "{action}: {answer}");
    }
    assert_eq!((receiver.asked(), receiver.syncs()), (vec![1], 0));
}

#[tokio::test]
async fn a_comment_that_is_not_taken_says_why_and_may_be_delivered_again() {
    let receiver = Receiver::start().await;
    let call = |login: &str, text: &str| Call::github("issue_comment", &comment(9, login, text), login);
    let unsigned = call("ann", "/launchway retry web").without("x-hub-signature-256");
    assert_eq!(receiver.deliver(unsigned).await.0, 401);
    for (login, text, reason) in [
        ("ann", "> /launchway retry web", "no line of the comment begins with `/launchway`"),
        ("ben", "/launchway retry web", "`ben` may not write"),
        ("slow", "/launchway retry web", "the host does not answer"),
        ("slow", "/launchway retry web", "the host does not answer"),
    ] {
        let (status, answer) = receiver.deliver(call(login, text)).await;
        assert_eq!((status, &answer["result"], &answer["reason"]), (200, &json!("ignored"), &json!(reason)));
    }
    assert_eq!(receiver.asked(), [] as [u64; 0]);
    assert_eq!(receiver.deliver(call("ann", "/launchway retry web")).await.1["result"], "accepted");
    receiver.stop().await;
}

#[tokio::test]
async fn upper_case_hex_is_accepted() {
    let receiver = Receiver::start().await;
    let call = Call::gitea(&push(), "1");
    let upper = call.headers["x-gitea-signature"].to_uppercase();
    assert_eq!(receiver.deliver(call.header("x-gitea-signature", &upper)).await.0, 200);
    receiver.stop().await;
}

#[tokio::test]
async fn calls_of_the_wrong_form_are_refused_before_they_are_read() {
    let receiver = Receiver::start().await;
    let gitea = || Call::gitea(&push(), "1");
    let cases = [
        (404, gitea().to("unknown")),
        (404, gitea().to("%ff")),
        (405, gitea().method(Method::GET)),
        (405, gitea().method(Method::PUT)),
        (415, gitea().header("content-encoding", "gzip")),
        (415, gitea().header("content-type", "application/x-www-form-urlencoded")),
        (415, gitea().without("content-type")),
        (400, Call::generic(&push(), "1").without("x-delivery")),
        (400, Call::generic(&push(), &"x".repeat(200))),
    ];
    for (expected, call) in cases {
        let (status, answer) = receiver.deliver(call).await;
        assert_eq!(status, expected, "{answer}");
        assert_eq!(answer["status"], expected, "{answer}");
        assert!(answer["detail"].as_str().is_some_and(|detail| detail.len() > 10), "{answer}");
    }
    assert_eq!(receiver.syncs(), 0);
    receiver.stop().await;
}

#[tokio::test]
async fn a_call_that_does_not_show_whose_it_is_is_told_how_to() {
    let receiver = Receiver::start().await;
    let unsigned = || Call::generic(&push(), "1").without("x-signature");
    for (call, told) in [
        (unsigned().header("x-gitlab-event", "Push Hook"), "`x-gitlab-token`"),
        (unsigned().header("x-gitlab-event", "Push Hook").header("x-gitlab-token", "a secret"), "does not fit"),
        (unsigned().header("x-event-key", "repo:push"), "`x-hub-signature: sha256=<64 hex digits>`"),
        (unsigned().header("user-agent", "VSServices/19.225.34309.2"), "the webhook's secret is required"),
    ] {
        let (status, answer) = receiver.deliver(call).await;
        assert_eq!(status, 401, "{answer}");
        assert!(answer["detail"].as_str().unwrap().contains(told), "{answer}");
    }
    receiver.stop().await;
}

#[tokio::test]
async fn authentic_calls_of_no_interest_are_ignored_and_cause_no_sync() {
    let receiver = Receiver::start().await;
    let zero = "0".repeat(40);
    let fork = json!({"action": "opened", "pull_request": {"head": {"repo": {"fork": true}}}});
    let cases = [
        Call::github("ping", &json!({"zen": "Keep it logically awesome."}), "1"),
        Call::github("something_new", &json!({}), "2"),
        Call::github("pull_request", &fork, "3"),
        Call::gitea(&push_with("ref", json!("refs/heads/next")), "4"),
        Call::gitea(&push_with("ref", json!("refs/tags/main")), "5"),
        Call::gitea(&push_with("ref", json!("refs/heads/../main")), "6"),
        Call::gitea(&push_with("ref", json!("refs/heads/main\0")), "7"),
        Call::gitea(&push_with("ref", json!("refs/heads/main\n")), "8"),
        Call::gitea(&push_with("ref", json!("--upload-pack=touch")), "9"),
        Call::gitea(&push_with("ref", json!("x".repeat(4096))), "10"),
        Call::gitea(&push_with("ref", Value::Null), "11"),
        Call::gitea(&push_with("after", json!(zero)), "12"),
        Call::gitea(&push_with("after", json!({})), "13"),
        Call::generic(&json!([]), "14"),
        Call::generic(&json!({}), "15"),
    ];
    for call in cases {
        let body = String::from_utf8_lossy(&call.body).into_owned();
        let (status, answer) = receiver.deliver(call).await;
        assert_eq!((status, &answer["result"]), (200, &json!("ignored")), "{body}");
        assert!(answer["reason"].is_string(), "{answer}");
    }
    assert_eq!((receiver.syncs(), receiver.answers()), (0, vec!["ignored"; 15]), "each is counted");
    receiver.stop().await;
}

#[tokio::test]
async fn malformed_json_is_refused_only_when_it_is_authentic() {
    let receiver = Receiver::start().await;
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let keys: Vec<String> = (0..1_000_000).map(|key| format!("\"{key}\":1")).collect();
    let wide = format!("{{{}}}", keys.join(","));
    let bodies = [
        "",
        "{",
        r#"{"ref": "refs/heads/main", "ref": "refs/heads/main"}"#,
        r#"{"id": NaN}"#,
        r#"{"name": "\ud800"}"#,
        r#"{"id": 99999999999999999999}"#,
        &deep,
        &wide,
    ];
    for body in bodies {
        let call = Call::github("push", &push(), "1").signed_body(body);
        let shown = body.get(..60).unwrap_or(body);
        assert_eq!(receiver.deliver(call.clone()).await.0, 400, "{shown}");
        let unsigned = call.header("x-hub-signature-256", &format!("sha256={}", "0".repeat(64)));
        assert_eq!(receiver.deliver(unsigned).await.0, 401, "{shown}");
    }
    assert_eq!(receiver.syncs(), 0);
    receiver.stop().await;
}

#[tokio::test]
async fn a_delivery_is_taken_once() {
    let receiver = Receiver::start().await;
    let call = Call::gitea(&push(), "f7b1c6de");
    assert_eq!(receiver.deliver(call.clone()).await.1["result"], "accepted");
    let (status, answer) = receiver.deliver(call).await;
    let expected = json!({
        "result": "duplicate", "event": "push", "repository": "shop", "ref": "refs/heads/main",
        "before": BEFORE, "after": AFTER, "reason": "this delivery was taken before",
    });
    assert_eq!((status, answer, receiver.syncs()), (200, expected, 1));
    receiver.stop().await;
}

#[tokio::test]
async fn every_answer_about_a_known_repository_is_counted() {
    let receiver = Receiver::start().await;
    let call = || Call::gitea(&push(), "f7b1c6de");
    let calls = [call(), call(), call().without("x-gitea-signature"), call().to("unknown"), call().to("closed")];
    for call in calls {
        receiver.deliver(call).await;
    }
    assert_eq!(receiver.answers(), ["accepted", "duplicate", "refused", "refused"]);
    receiver.stop().await;
}

#[tokio::test]
async fn of_many_equal_calls_at_once_one_is_taken() {
    let receiver = Receiver::start().await;
    let call = Call::github("push", &push(), "72d3162e");
    let answers = join_all((0..50).map(|_| receiver.deliver(call.clone()))).await;
    let accepted = answers.iter().filter(|(_, answer)| answer["result"] == "accepted").count();
    assert!(answers.iter().all(|(status, _)| *status == 200));
    assert_eq!((accepted, receiver.syncs()), (1, 1));
    receiver.stop().await;
}

#[tokio::test]
async fn many_different_calls_at_once_are_all_accepted() {
    let receiver = Receiver::start().await;
    let calls = (0..300).map(|id| receiver.deliver(Call::gitea(&push(), &id.to_string())));
    assert!(join_all(calls).await.iter().all(|(status, answer)| *status == 200 && answer["result"] == "accepted"));
    assert_eq!(receiver.syncs(), 300);
    receiver.stop().await;
}

#[tokio::test]
async fn a_store_that_takes_nothing_does_not_keep_a_push_from_being_seen() {
    let receiver = Receiver::start().await;
    let _other = receiver.lose_store();
    let (status, answer) = receiver.deliver(Call::gitea(&push(), "1")).await;
    assert_eq!((status, &answer["result"], receiver.syncs()), (200, &json!("accepted"), 1));
    receiver.stop().await;
}

#[tokio::test]
async fn large_bodies_are_for_github_alone() {
    let receiver = Receiver::start().await;
    let body = |length: usize| {
        let padding = "x".repeat(length - push_with("padding", json!("")).to_string().len());
        push_with("padding", json!(padding)).to_string()
    };
    let cases = [
        (200, Call::generic(&push(), "1").signed_body(body(LIMIT))),
        (413, Call::generic(&push(), "2").signed_body(body(LIMIT + 1))),
        (413, Call::gitea(&push(), "3").signed_body(body(LIMIT + 1))),
        (200, Call::github("push", &push(), "4").signed_body(body(25 * LIMIT))),
        (413, Call::github("push", &push(), "5").signed_body(body(25 * LIMIT + 1))),
        (413, Call::gitea(&push(), "6").signed_body(body(LIMIT + 1)).header("x-gitea-signature", "")),
    ];
    for (number, (expected, call)) in cases.into_iter().enumerate() {
        assert_eq!(receiver.deliver(call).await.0, expected, "case {number}");
    }
    receiver.stop().await;
}

#[tokio::test]
async fn an_announced_length_beyond_the_limit_is_refused_before_the_body_is_sent() {
    let receiver = Receiver::start().await;
    let mut stream = TcpStream::connect(receiver.address).await.unwrap();
    let head = "POST /webhooks/shop HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 10737418240\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(status_line(&mut stream).await, "HTTP/1.1 413 Payload Too Large");
    receiver.stop().await;
}

#[tokio::test]
async fn a_body_without_end_is_cut_at_the_limit() {
    let receiver = Receiver::start().await;
    let mut stream = TcpStream::connect(receiver.address).await.unwrap();
    let head = "POST /webhooks/shop HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    let mut sent = 0;
    // Sending fails as soon as the receiver has had enough.
    while sent <= 64 * LIMIT && stream.write_all(chunk.as_bytes()).await.is_ok() {
        sent += 0x10000;
    }
    assert!(sent < 64 * LIMIT, "{sent} bytes were taken");
    receiver.stop().await;
}

#[tokio::test]
async fn headers_that_do_not_come_end_the_connection() {
    let receiver = Receiver::with_bounds(Bounds { headers: SHORT, ..Bounds::default() }).await;
    for head in ["", "POST /webhooks/shop HTTP/1.1\r\nhost: x\r\nx-slow: "] {
        let start = Instant::now();
        let mut stream = TcpStream::connect(receiver.address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
        assert!(start.elapsed() >= SHORT, "{head:?} was cut off after {:?}", start.elapsed());
    }
    receiver.stop().await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_refused() {
    let receiver = Receiver::with_bounds(Bounds { body: SHORT, ..Bounds::default() }).await;
    let start = Instant::now();
    let mut stream = TcpStream::connect(receiver.address).await.unwrap();
    let head =
        "POST /webhooks/shop HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(status_line(&mut stream).await, "HTTP/1.1 408 Request Timeout");
    assert!(start.elapsed() >= SHORT);
    receiver.stop().await;
}

#[test]
fn clients_have_ten_seconds_for_headers_and_thirty_for_a_body() {
    let Bounds { headers, body, .. } = Bounds::default();
    assert_eq!((headers, body), (Duration::from_secs(10), Duration::from_secs(30)));
}

async fn status_line(stream: &mut TcpStream) -> String {
    let mut received = Vec::new();
    while !received.contains(&b'\r') {
        let read = stream.read_buf(&mut received).await.unwrap();
        assert_ne!(read, 0, "the connection closed without an answer");
    }
    String::from_utf8_lossy(&received).lines().next().unwrap_or_default().to_owned()
}
