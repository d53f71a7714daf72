//! What authentic calls are about: branches that are gone, repositories under other names, lists of signatures.

use serde_json::{Value, json};

use crate::receiver::{AFTER, BEFORE, Call, Receiver, push, push_with};

/// The deletion of `main` as each host tells it.
fn deletions() -> Vec<(&'static str, Call)> {
    let (zero, longer) = ("0".repeat(40), "0".repeat(64));
    let gone = push_with("after", json!(zero));
    let with = |field: &str, value: Value| {
        let mut body = gone.clone();
        body[field] = value;
        body
    };
    let old = json!({"type": "branch", "name": "main", "target": {"hash": BEFORE}});
    let cloud = json!({"push": {"changes": [{"old": old, "new": null, "closed": true}]}});
    let change = json!({"ref": {"id": "refs/heads/main"}, "fromHash": BEFORE, "toHash": zero, "type": "DELETE"});
    let update = json!({"name": "refs/heads/main", "oldObjectId": BEFORE, "newObjectId": zero});
    let azure = json!({"id": "1", "eventType": "git.push", "resource": {"refUpdates": [update]}});
    let event = json!({"ref": "main", "ref_type": "branch", "pusher_type": "user"});
    let forgejo = ["x-forgejo-event", "x-forgejo-delivery", "x-forgejo-signature"];
    let gogs = ["x-gogs-event", "x-gogs-delivery", "x-gogs-signature"];
    vec![
        ("Gitea", Call::gitea(&gone, "1")),
        ("Gitea, of SHA-256", Call::gitea(&push_with("after", json!(longer)), "2")),
        ("Gitea's own event", Call::gitea(&event, "3").header("x-gitea-event", "delete")),
        ("Forgejo", Call::like_gitea(forgejo, &gone, "4")),
        ("Gogs", Call::like_gitea(gogs, &gone, "5")),
        ("GitHub", Call::github("push", &with("deleted", json!(true)), "6")),
        ("GitHub's own event", Call::github("delete", &event, "7")),
        ("GitLab", Call::gitlab("Push Hook", &with("checkout_sha", Value::Null), "8")),
        ("Bitbucket Cloud", Call::bitbucket("repo:push", Some("{hook}"), &cloud, "9")),
        ("Bitbucket Data Center", Call::bitbucket("repo:refs_changed", None, &json!({"changes": [change]}), "10")),
        ("Azure DevOps", Call::azure(&azure)),
        ("a program", Call::generic(&gone, "12")),
        ("Standard Webhooks", Call::standard(&gone, "13", 0)),
    ]
}

#[tokio::test]
async fn a_deleted_branch_is_no_reason_to_look_whichever_host_tells_it() {
    let receiver = Receiver::start().await;
    for (name, call) in deletions() {
        let (status, answer) = receiver.deliver(call).await;
        assert_eq!((status, &answer["result"]), (200, &json!("ignored")), "{name}: {answer}");
        let why = answer["reason"].as_str().unwrap_or_default();
        assert!(["the branch was deleted", "`delete` is not a push"].contains(&why), "{name}: {answer}");
        assert_eq!(answer["ref"], "refs/heads/main", "{name}: {answer}");
    }
    assert_eq!(receiver.syncs(), 0);
    receiver.stop().await;
}

#[tokio::test]
async fn a_repository_that_was_renamed_is_known_by_its_id_and_said_so() {
    let receiver = Receiver::start().await;
    let about = |path: &str, id: u64| push_with("repository", json!({"id": id, "full_name": path}));
    let renamed =
        "the host calls the repository `acme/store`, and `acme/shop` is watched: set its address to where it is now";
    let another = "the call is about `acme/cart`, and `acme/shop` is watched";
    let calls = [
        ("as long as no id is known", "acme/store", 35, "accepted", json!(renamed), 1),
        ("as it is configured", "Acme/Shop", 35, "accepted", Value::Null, 2),
        ("renamed", "acme/store", 35, "accepted", json!(renamed), 3),
        ("another one of the same secret", "acme/cart", 36, "ignored", json!(another), 3),
    ];
    for (number, (name, path, id, result, reason, syncs)) in calls.into_iter().enumerate() {
        let (status, answer) = receiver.deliver(Call::gitea(&about(path, id), &number.to_string())).await;
        assert_eq!((status, &answer["result"], &answer["reason"]), (200, &json!(result), &reason), "{name}");
        assert_eq!(receiver.syncs(), syncs, "{name}");
    }
    let kept = [("ignored", 1, another), ("accepted", 1, renamed), ("accepted", 1, ""), ("accepted", 1, renamed)];
    receiver.kept(&kept).await;
    // What is written is known as well, and who is no Gitea has names of its own.
    let (_, answer) = receiver.deliver(Call::gitea(&about("acme/cart", 36), "5")).await;
    assert_eq!((&answer["result"], &answer["reason"]), (&json!("ignored"), &json!(another)));
    let (_, answer) = receiver.deliver(Call::github("push", &about("acme/cart", 36), "6")).await;
    assert_eq!((&answer["result"], &answer["reason"]), (&json!("accepted"), &Value::Null));
    receiver.stop().await;
}

#[tokio::test]
async fn what_happens_in_another_repository_of_the_same_secret_counts_for_nothing() {
    let receiver = Receiver::start().await;
    let tag = |path: &str, id: u64| {
        let mut body = push_with("repository", json!({"id": id, "full_name": path}));
        body["ref"] = json!("refs/tags/v1");
        body
    };
    receiver.deliver(Call::gitea(&push_with("repository", json!({"id": 35, "full_name": "acme/shop"})), "1")).await;
    assert_eq!(receiver.deliver(Call::gitea(&tag("acme/cart", 36), "2")).await.1["result"], "ignored");
    assert_eq!(receiver.syncs(), 1);
    assert_eq!(receiver.deliver(Call::gitea(&tag("acme/shop", 35), "3")).await.1["result"], "accepted");
    receiver.stop().await;
}

#[tokio::test]
async fn one_signature_that_fits_is_enough_only_where_the_host_has_lists_of_them() {
    let receiver = Receiver::start().await;
    let standard = |number: &str, list: fn(&str) -> String| {
        let call = Call::standard(&push(), number, 0);
        let list = list(&call.headers["webhook-signature"]);
        call.header("webhook-signature", &list)
    };
    let github = Call::github("push", &push(), "5");
    let signature = github.headers["x-hub-signature-256"].clone();
    let gitea = Call::gitea(&push(), "6");
    let bare = gitea.headers["x-gitea-signature"].clone();
    for (name, call, expected) in [
        ("Standard Webhooks, the second", standard("1", |good| format!("v1,AAAA {good}")), 200),
        ("Standard Webhooks, the first of two headers", standard("2", |good| format!("{good}, v1,AAAA")), 200),
        ("Standard Webhooks, none", standard("3", |_| "v1,AAAA v1,BBBB".to_owned()), 401),
        ("GitHub", github.header("x-hub-signature-256", &format!("{signature},{signature}")), 401),
        ("Gitea", gitea.header("x-gitea-signature", &format!("{bare}, {bare}")), 401),
    ] {
        let (status, answer) = receiver.deliver(call).await;
        assert_eq!(status, expected, "{name}: {answer}");
    }
    assert_eq!(receiver.syncs(), 2);
    assert_eq!(
        receiver.deliver(Call::standard(&push_with("after", json!(AFTER)), "1", 0)).await.1["result"],
        "duplicate"
    );
    receiver.stop().await;
}
