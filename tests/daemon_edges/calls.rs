//! Calls that are signed and yet must not do what they say.

use serde_json::json;

use crate::daemon_edges::hosting::{Hosting, Kind};
use crate::daemon_edges::triggers::{SECRET, call, deliver, sign, world_with_webhooks};
use crate::support::daemon::{World, eventually, http, private, sleeper};
use crate::support::git_http::GitHttp;

/// How many KiB of memory a process has had at most.
fn peak(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn a_call_about_an_older_commit_deploys_nothing() {
    let world = world_with_webhooks();
    let [first, second] =
        ["1", "2"].map(|value| world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", value))], "success"));
    let pod = world.pod_in("shop-default/web-2-0", "ready");
    let runs = || world.json(&["get", "runs"])["items"].as_array().map(Vec::len);
    let before = runs();
    for (id, from, to) in
        [("1", "0".repeat(40), &first), ("2", second.clone(), &first), ("3", first.clone(), &"1".repeat(40))]
    {
        let syncs = world.syncs();
        let body = json!({"ref": "refs/heads/main", "before": from, "after": to});
        let (status, answer) = deliver(&world.address(), ("push", id), &body, None);
        assert_eq!((status, &answer["result"]), (200, &json!("accepted")), "{answer}");
        eventually("another look", || world.syncs() > syncs);
    }
    // Whoever waits for a look knows that those before have ended.
    world.tell(&["sync"]);
    assert_eq!((world.pod_in("shop-default/web-2-0", "ready"), runs()), (pod, before));
    let told = &world.json(&["get", "repositories"])["items"][0];
    assert_eq!((&told["seen"], &told["problem"]), (&json!(second), &json!(null)), "{told:#}");
}

#[test]
fn a_call_about_a_deleted_branch_deletes_and_deploys_nothing() {
    let world = world_with_webhooks();
    let commit = world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))], "success");
    let (pod, syncs) = (world.pod_in("shop-default/web-1-0", "ready"), world.syncs());
    let body = json!({"ref": "refs/heads/main", "before": commit, "after": "0".repeat(40), "deleted": true});
    let (status, answer) = deliver(&world.address(), ("push", "1"), &body, None);
    assert_eq!((status, &answer["reason"]), (200, &json!("the branch was deleted")), "{answer}");
    let event = json!({"ref": "main", "ref_type": "branch"});
    let (status, answer) = deliver(&world.address(), ("delete", "2"), &event, None);
    assert_eq!((status, &answer["result"]), (200, &json!("ignored")), "{answer}");
    assert!((world.syncs() - syncs).abs() < 0.5, "nothing was looked at");
    let ignored = world.metric("launchway_webhooks_total{repository=\"shop\",result=\"ignored\"}");
    assert!((ignored - 2.0).abs() < 0.5, "{ignored} were counted");
    assert_eq!(world.pod_in("shop-default/web-1-0", "ready"), pod);
}

#[test]
fn a_renamed_repository_is_synced_by_its_id_and_another_one_is_not_meant() {
    let (world, host) = (World::new(&[]), Hosting::start(Kind::Gitea));
    let server = GitHttp::start(world.git.root());
    let secret = world.git.path("hook");
    private(&secret, SECRET);
    let webhook = format!("webhook: {{secretFiles: [{}]}}", secret.display());
    host.configure(&world, &server.url("moody/origin.git"), &[&*webhook, "previews: false"]);
    world.start();
    let mut told = Vec::new();
    for (id, name, number) in [("1", "moody/origin", 7), ("2", "moody/renamed", 7), ("3", "moody/cart", 8)] {
        let repository = json!({"id": number, "full_name": name});
        let body = json!({"ref": "refs/heads/main", "before": "1".repeat(40), "after": "2".repeat(40), "repository": repository});
        let (_, answer) = deliver(&world.address(), ("push", id), &body, None);
        told.push((answer["result"].clone(), answer["reason"].as_str().unwrap_or_default().to_owned()));
    }
    let renamed = "the host calls the repository `moody/renamed`, and `moody/origin` is watched: set its address to where it is now";
    let another = "the call is about `moody/cart`, and `moody/origin` is watched";
    assert_eq!(
        told,
        [
            (json!("accepted"), String::new()),
            (json!("accepted"), renamed.to_owned()),
            (json!("ignored"), another.to_owned())
        ]
    );
    assert!(world.log().contains("a repository has another name on its host"), "{}", world.log());
    eventually("people see it", || world.tell(&["repository", "deliveries", "shop"]).contains(renamed));
    // What is known of it outlives the daemon.
    world.stop();
    world.start();
    let repository = json!({"id": 8, "full_name": "moody/cart"});
    let body = json!({"ref": "refs/heads/main", "after": "2".repeat(40), "repository": repository});
    let (_, answer) = deliver(&world.address(), ("push", "4"), &body, None);
    assert_eq!((&answer["result"], &answer["reason"]), (&json!("ignored"), &json!(another)));
}

#[test]
fn abusive_json_is_refused_in_bounded_memory() {
    // A body of 25 MiB at most is there twice, in the pieces in which it came and whole, beside what was not given back yet of
    // the one before.
    const GROWTH: u64 = 100 << 10;
    let world = world_with_webhooks();
    assert_eq!(call(&world.address(), &"1".repeat(40), "0", None), 200);
    let deep = "[".repeat(24 << 20);
    let keys: Vec<String> = (0..1_000_000).map(|key| format!("\"{key}\":1")).collect();
    let wide = format!("{{\"repository\":{{{}}}}}", keys.join(","));
    let twice = format!("{{{}\"ref\":2}}", "\"ref\":1,".repeat(1_000_000));
    let digits = format!("{{\"id\":{}}}", "9".repeat(8 << 20));
    let before = peak(world.pid());
    for body in [&deep, &wide, &twice, &digits, &deep, &wide] {
        let signature = format!("sha256={}", sign(body.as_bytes()));
        let headers = [
            ("content-type", "application/json"),
            ("x-github-event", "push"),
            ("x-github-delivery", "1"),
            ("x-hub-signature-256", &*signature),
        ];
        let (status, answer) = http(&world.address(), "POST", "/webhooks/shop", &headers, body.as_bytes());
        assert_eq!(status, 400, "{}: {answer}", &body[..40]);
    }
    let grown = peak(world.pid()) - before;
    assert!(grown < GROWTH, "{grown} KiB more at the peak");
}
