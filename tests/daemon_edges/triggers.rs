//! Reasons to look at a repository: all mean the same, and many at once mean one.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use aws_lc_rs::hmac;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::daemon::{World, complaint, eventually, hook, http, private, repository, sleeper};
use crate::support::git_http::GitHttp;

pub(crate) const SECRET: &str = "a secret of at least some length";

pub(crate) fn sign(body: &[u8]) -> String {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes()), body);
    tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A world whose repository takes webhooks.
pub(crate) fn world_with_webhooks() -> World {
    let world = World::new(&["webhook: {secretFiles: [secret]}"]);
    private(&world.git.path("secret"), SECRET);
    world.start();
    world
}

/// Calls the webhook as a push of `after`; gives the answer's status.
pub(crate) fn call(address: &str, after: &str, id: &str, signature: Option<&str>) -> u16 {
    let body = json!({"ref": "refs/heads/main", "before": "0".repeat(40), "after": after});
    deliver(address, ("push", id), &body, signature).0
}

/// Calls the webhook of an event by a delivery; gives the answer.
pub(crate) fn deliver(address: &str, (event, id): (&str, &str), body: &Value, signature: Option<&str>) -> (u16, Value) {
    let body = body.to_string();
    let signed = sign(body.as_bytes());
    let headers = [
        ("content-type", "application/json"),
        ("x-gitea-event", event),
        ("x-gitea-delivery", id),
        ("x-gitea-signature", signature.unwrap_or(&signed)),
    ];
    let (status, answer) = http(address, "POST", "/webhooks/shop", &headers, body.as_bytes());
    (status, serde_json::from_str(&answer).unwrap_or_default())
}

/// A shipyard of these stages.
fn shipyard(stages: &str) -> String {
    format!("apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nmetadata: {{name: shop}}\nspec:\n  stages:\n  {stages}")
}

#[test]
fn a_tag_and_a_merged_pull_request_start_what_is_triggered_on_them_once() {
    let world = world_with_webhooks();
    let shipyard = &shipyard(
        "\
  - name: dev
    sequences:
    - {name: delivery, tasks: [{name: deployment}]}
    - {name: announce, triggeredOn: [{event: git.tag.created}], tasks: [{name: mail}]}
    - name: thank
      triggeredOn: [{event: git.pull-request.merged, selector: {match: {git.number: '7'}}}]
      tasks: [{name: mail}]
  - name: production
    sequences: [{name: delivery, triggeredOn: [{event: git.tag.created}], tasks: [{name: deployment}]}]
",
    );
    let web = sleeper("web", "type: Recreate", "1");
    let commit = world.git.push_files(&[("shipyard.yaml", shipyard), ("web.yaml", &web)]);
    world.status(&commit, "launchway/dev", "success");
    let waits = world.status(&commit, "launchway/production/web", "pending");
    assert_eq!(waits, "waits for git.tag.created");
    let why = world.tell(&["why", "dc/web", "-s", "production"]);
    assert!(why.contains("this stage is started by git.tag.created"), "{why}");
    let names = || -> Vec<String> {
        let runs = world.json(&["get", "runs"])["items"].as_array().cloned().unwrap_or_default();
        runs.iter()
            .filter(|run| run["kind"] == "sequence")
            .filter_map(|run| run["name"].as_str().map(str::to_owned))
            .collect()
    };
    let pushed = |name: &str, after: &str| json!({"ref": name, "before": "0".repeat(40), "after": after});
    let (tag, gone) = (pushed("refs/tags/v1", &commit), pushed("refs/tags/v1", &"0".repeat(40)));
    let syncs = world.syncs();
    let (_, ignored) = deliver(&world.address(), ("push", "0"), &gone, None);
    assert_eq!((&ignored["result"], world.syncs()), (&json!("ignored"), syncs), "{ignored}");
    let (status, _) = deliver(&world.address(), ("push", "1"), &tag, Some("00"));
    assert_eq!((status, names()), (401, vec!["delivery".to_owned()]), "whoever does not sign starts nothing");
    let (_, accepted) = deliver(&world.address(), ("push", "2"), &tag, None);
    assert_eq!((&accepted["result"], &accepted["ref"]), (&json!("accepted"), &json!("refs/tags/v1")), "{accepted}");
    world.kill();
    world.start();
    world.status(&commit, "launchway/production", "success");
    eventually("it is announced", || names() == ["delivery", "announce", "delivery"]);
    let again =
        || deliver(&world.address(), ("push", "3"), &tag, None).1["reason"].as_str().unwrap_or_default().to_owned();
    eventually("it is settled", || again().ends_with("was told before"));
    let merged = json!({"action": "closed", "number": 7, "pull_request": {
        "merged": true, "merge_commit_sha": commit, "base": {"ref": "main"},
    }});
    assert_eq!(deliver(&world.address(), ("pull_request", "4"), &merged, None).1["result"], "accepted");
    eventually("it is thanked for", || names().len() == 4);
    assert_eq!(names(), ["thank", "delivery", "announce", "delivery"]);
    let run = &world.json(&["get", "runs"])["items"][0];
    assert_eq!(
        (&run["service"], &run["cause"]),
        (&json!("web"), &json!("git.pull-request.merged by git/refs/heads/main"))
    );
}

#[test]
fn a_tag_that_is_pushed_starts_what_waits_for_it_without_a_webhook() {
    let world = World::new(&[]);
    let shipyard = &shipyard(
        "\
  - name: dev
    sequences: [{name: delivery, tasks: [{name: deployment}]}]
  - name: production
    sequences:
    - {name: delivery, triggeredOn: [{event: git.tag.created}], tasks: [{name: deployment}]}
",
    );
    let web = |value: &str| sleeper("web", "type: Recreate", value);
    world.start();
    world.git.commit_files(&[("shipyard.yaml", shipyard), ("web.yaml", &web("1"))]);
    world.git.git(&["tag", "v1"]);
    world.git.git(&["push", "--quiet", "origin", "HEAD", "--tags"]);
    let first = world.git.git(&["rev-parse", "HEAD"]).trim().to_owned();
    world.status(&first, "launchway/dev", "success");
    world.git.git(&["tag", "--annotate", "--message", "the first", "v2"]);
    world.git.git(&["push", "--quiet", "origin", "v2"]);
    world.status(&first, "launchway/production", "success");
    let causes = || -> Vec<String> {
        let runs = world.json(&["get", "runs", "-s", "production"])["items"].as_array().cloned().unwrap_or_default();
        let sequences = runs.iter().filter(|run| run["kind"] == "sequence");
        sequences.map(|run| run["cause"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let cause = |tag: &str| format!("triggered by tag {tag}");
    assert_eq!(causes(), [cause("v2")], "what was there before anything waited for tags is not new");
    let second = world.git.push_files(&[("web.yaml", &web("2"))]);
    world.status(&second, "launchway/dev", "success");
    world.kill();
    world.git.git(&["tag", "web/v3"]);
    world.git.git(&["push", "--quiet", "origin", "web/v3", ":refs/tags/v2"]);
    world.start();
    world.status(&second, "launchway/production", "success");
    assert_eq!(causes(), [cause("web/v3"), cause("v2")], "it came while no daemon ran");
    world.git.git(&["tag", "v4"]);
    world.git.git(&["push", "--quiet", "origin", "v2", "v4"]);
    eventually("the newest is told", || causes().contains(&cause("v4")));
    assert_eq!(causes(), [cause("v4"), cause("web/v3"), cause("v2")], "what was told before is not told again");
}

#[test]
fn a_tag_that_is_pushed_with_its_commit_is_never_told_of_an_earlier_one() {
    const PUSHES: usize = 20;
    let world = World::new(&[]);
    let shipyard = &shipyard(
        "\
  - name: dev
    sequences:
    - {name: delivery, tasks: [{name: deployment}]}
    - {name: announce, triggeredOn: [{event: git.tag.created}], tasks: [{name: mail}]}
",
    );
    let settings =
        |round: usize| format!("kind: ConfigMap\napiVersion: v1\nmetadata: {{name: round}}\ndata: {{of: '{round}'}}\n");
    world.start();
    let files = [("shipyard.yaml", shipyard.as_str()), ("round.yaml", &settings(0))];
    let mut commits = vec![world.git.push_files(&files)];
    world.status(&commits[0], "launchway/dev", "success");
    for round in 1..=PUSHES {
        commits.push(world.git.commit_files(&[("round.yaml", &settings(round))]));
        let tag = format!("v{round}");
        world.git.git(&["tag", &tag]);
        world.git.git(&["push", "--quiet", "--atomic", "origin", "HEAD", &tag]);
    }
    let announced = || -> Vec<(usize, usize)> {
        let runs = world.json(&["get", "runs", "--limit", "100"])["items"].as_array().cloned().unwrap_or_default();
        let announced = runs.iter().filter(|run| run["name"] == "announce").map(|run| {
            let tag = run["cause"].as_str().unwrap().rsplit_once("/v").unwrap().1.parse().unwrap();
            (tag, commits.iter().position(|commit| run["commit"] == commit.as_str()).unwrap())
        });
        announced.collect()
    };
    eventually("all are told", || announced().len() == PUSHES);
    let early: Vec<_> = announced().into_iter().filter(|(tag, commit)| commit < tag).collect();
    assert_eq!(early, [], "tags with the commits that they are told of");
}

#[test]
fn a_push_is_seen_at_once_and_our_own_push_of_notes_is_no_reason_to_look() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))], "success");
    let syncs = world.syncs();
    let since = Instant::now();
    let commit = world.git.push_files(&[("web.yaml", &sleeper("web", "type: Recreate", "2"))]);
    eventually("the revision is seen", || world.json(&["status", &commit])["commit"] == commit.as_str());
    assert!(since.elapsed() < Duration::from_secs(2), "seen after {:?}", since.elapsed());
    world.status(&commit, "launchway/default", "success");
    let more = world.syncs() - syncs;
    assert!((1.0..=2.0).contains(&more), "one push, {more} syncs, and notes caused none");
}

#[test]
fn a_schedule_syncs_without_any_event() {
    let world = World::new(&["schedule: {cron: '* * * * *'}"]);
    world.start();
    eventually("the first sync", || world.syncs() >= 1.0);
    let syncs = world.syncs();
    eventually("another sync within a minute", || world.syncs() > syncs);
}

/// Makes 1,000 signed calls from 50 clients; gives their answers.
fn call_a_thousand_times(address: &str) -> Vec<u16> {
    let client = |client: usize| (0..20).map(move |turn| format!("{client}-{turn}"));
    std::thread::scope(|scope| {
        let calls = |ids: Vec<String>| ids.iter().map(|id| call(address, &"1".repeat(40), id, None)).collect();
        let start = |number| scope.spawn(move || -> Vec<u16> { calls(client(number).collect()) });
        let clients: Vec<_> = (0..50).map(start).collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    })
}

#[test]
fn a_thousand_calls_during_a_sync_are_one_more_and_each_is_answered() {
    let world = World::new(&[]);
    // A remote that takes connections and says nothing until it is dropped: the look is under way all the time.
    let remote = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/shop.git", remote.local_addr().unwrap());
    world.configure(&repository("shop", &url, &["webhook: {secretFiles: [secret]}"]));
    private(&world.git.path("secret"), SECRET);
    world.start();
    eventually("the first sync", || world.syncs() >= 1.0);
    let answers = call_a_thousand_times(&world.address());
    assert_eq!(answers.len(), 1000);
    assert!(answers.iter().all(|status| matches!(status, 200 | 202)), "{answers:?}");
    assert!((world.syncs() - 1.0).abs() < 0.5, "one sync is in flight");
    drop(remote);
    eventually("the queued sync", || world.syncs() >= 2.0);
    // A look that a person waits for comes after all that was queued.
    assert!(!world.run(&["sync"]).status.success());
    assert!(world.syncs() <= 3.0, "{} syncs", world.syncs());
}

#[test]
fn a_webhook_whose_sync_failed_is_not_lost_for_as_long_as_a_poll_takes() {
    let world = World::new(&[]);
    let server = GitHttp::start(world.git.root());
    let url = server.url("moody/origin.git");
    world.configure(&repository("shop", &url, &["webhook: {secretFiles: [secret]}", "poll: 1h"]));
    private(&world.git.path("secret"), SECRET);
    world.start();
    let first = world.git.push_files(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))]);
    assert_eq!(call(&world.address(), &first, "0", None), 200);
    world.status(&first, "launchway/default", "success");
    let (since, syncs) = (Instant::now(), world.syncs());
    server.fail_next(503);
    let commit = world.git.push_files(&[("web.yaml", &sleeper("web", "type: Recreate", "2"))]);
    assert_eq!(call(&world.address(), &commit, "1", None), 200);
    world.status(&commit, "launchway/default", "success");
    assert!(since.elapsed() < Duration::from_secs(60), "tried again after {:?}", since.elapsed());
    assert!((world.syncs() - syncs - 2.0).abs() < 0.5, "one failed, one did not");
}

#[test]
fn a_webhook_without_its_signature_is_refused_and_no_reason_to_look() {
    let world = world_with_webhooks();
    eventually("the first sync", || world.syncs() >= 1.0);
    let (address, before) = (world.address(), world.syncs());
    assert_eq!(call(&address, &"1".repeat(40), "1", Some(&"0".repeat(64))), 401);
    let large = vec![b' '; 2 << 20];
    let headers = [("content-type", "application/json"), ("x-gitea-event", "push")];
    assert_eq!(http(&address, "POST", "/webhooks/shop", &headers, &large).0, 413);
    assert_eq!(http(&address, "POST", "/webhooks/other", &headers, b"{}").0, 404);
    assert!((world.syncs() - before).abs() < 0.5);
    let kept = || world.json(&["repository", "deliveries"])["items"].as_array().cloned().unwrap_or_default();
    eventually("both refusals are kept", || kept().len() == 2);
    let told: Vec<_> = kept().iter().map(|call| (call["status"].clone(), call["result"].clone())).collect();
    assert_eq!(told, [(413.into(), "refused".into()), (401.into(), "refused".into())]);
    assert_eq!(call(&address, &"2".repeat(40), "2", None), 200);
    eventually("what was accepted is shown first", || kept()[0]["result"] == "accepted");
    let shown = world.tell(&["repository", "deliveries", "shop"]);
    assert!(shown.contains("accepted") && shown.contains("refs/heads/main"), "{shown}");
}

#[test]
fn a_pushers_terminal_shows_progress_and_outcome() {
    let world = World::new(&[]);
    world.start();
    let bare = world.git.bare().display().to_string();
    world.tell(&["repository", "install-hook", &bare, "-r", "shop"]);
    let failing = format!("type: Recreate, recreateParams: {{{}}}", hook("pre", "Abort", "exit 3"));
    world.git.commit_files(&[("web.yaml", &sleeper("web", &failing, "1"))]);
    let push = world.git.try_git_in(&world.git.work(), &["push", "origin", "HEAD"]);
    let told = complaint(&push);
    assert!(push.status.success(), "a push never fails: {told}");
    assert!(told.contains("remote:") && told.contains("launchway/default/web/pre"), "{told}");
    assert!(told.contains("failure"), "{told}");
}

#[test]
#[ignore = "needs root"]
fn a_hook_is_the_repository_owners_who_pushes_as_before() {
    const OWNER: u32 = 64_201;
    assert!(rustix::process::geteuid().is_root(), "this test needs root");
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))], "success");
    std::fs::set_permissions(world.git.root(), std::fs::Permissions::from_mode(0o755)).unwrap();
    for folder in [world.git.bare(), world.git.work()] {
        let chown = Command::new("chown").arg("-R").arg(format!("{OWNER}:{OWNER}")).arg(folder).status().unwrap();
        assert!(chown.success());
    }
    let bare = world.git.bare().display().to_string();
    let mut install = Command::new("sh");
    install.args(["-c", "umask 077 && exec \"$@\"", "sh", env!("CARGO_BIN_EXE_launchway"), "--state"]);
    install.arg(world.state()).args(["repository", "install-hook", &bare, "-r", "shop"]);
    let installed = install.output().unwrap();
    assert!(installed.status.success(), "{}", complaint(&installed));
    let hook = std::fs::metadata(world.git.bare().join("hooks/post-receive")).unwrap();
    assert_eq!((hook.uid(), hook.gid(), hook.mode() & 0o777), (OWNER, OWNER, 0o755));
    world.git.write("note.txt", "by the owner");
    for arguments in [&["add", "--all"][..], &["commit", "--quiet", "-m", "again"], &["push", "origin", "HEAD"]] {
        let mut git = world.git.command(&world.git.work());
        let done = git.uid(OWNER).gid(OWNER).args(arguments).output().unwrap();
        assert!(done.status.success(), "{arguments:?}: {}", complaint(&done));
    }
    std::fs::remove_file(world.git.bare().join("hooks/post-receive")).unwrap();
    std::os::unix::fs::symlink("/etc/launchway-was-here", world.git.bare().join("hooks/post-receive.new")).unwrap();
    let refused = world.run(&["repository", "install-hook", &bare, "-r", "shop"]);
    assert!(!refused.status.success() && !std::path::Path::new("/etc/launchway-was-here").exists());
    assert!(complaint(&refused).contains("as the owner of the repository"), "{}", complaint(&refused));
}

#[test]
fn a_push_goes_through_without_a_daemon_and_with_one_that_hangs() {
    let world = World::new(&[]);
    world.start();
    let bare = world.git.bare().display().to_string();
    world.tell(&["repository", "install-hook", &bare, "-r", "shop"]);
    crate::support::daemon::send(world.pid(), Signal::STOP);
    let (hangs, is_gone) = ("does not answer", "no daemon runs: what is pushed is deployed when it starts");
    for (name, daemon, said) in [("1", "hangs", hangs), ("2", "is gone", is_gone)] {
        world.git.commit_files(&[("note.txt", name)]);
        let since = Instant::now();
        let mut push = world.git.command(&world.git.work());
        let output = push.args(["push", "origin", "HEAD"]).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "the daemon {daemon}: {}", complaint(&output));
        assert!(since.elapsed() < Duration::from_secs(20), "the daemon {daemon}: {:?}", since.elapsed());
        let told = complaint(&output);
        assert!(told.contains(said), "the daemon {daemon}: {told}");
        world.kill();
    }
}

#[test]
fn a_repository_that_was_replaced_is_heard_of_as_before() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))], "success");
    let (bare, copy) = (world.git.bare(), world.git.path("copy.git"));
    let [from, to] = [&bare, &copy].map(|path| path.display().to_string());
    world.git.git_in(world.git.root(), &["clone", "--quiet", "--bare", &from, &to]);
    std::fs::rename(&bare, world.git.path("old.git")).unwrap();
    std::fs::rename(&copy, &bare).unwrap();
    for value in ["2", "3"] {
        world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", value))], "success");
    }
}
