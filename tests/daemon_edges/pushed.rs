//! What `status` tells of whom, where somebody names no commit.

use std::process::Output;

use crate::daemon_edges::verbs::web;
use crate::support::daemon::{World, complaint, eventually, hook, repository, sleeper};
use crate::support::git_http::GitHttp;

const WAIT: [&str; 4] = ["status", "--wait", "--timeout", "60"];

/// A verb as somebody types it in the work tree.
pub(super) fn here(world: &World, arguments: &[&str]) -> Output {
    world.launchway().current_dir(world.git.work()).args(arguments).output().unwrap()
}

fn first_line(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned()
}

/// Nothing tells the daemon of a push: whoever asks is the first from whom it hears.
fn unannounced(world: &World) -> GitHttp {
    let server = GitHttp::start(world.git.root());
    let url = server.url("origin.git");
    world.git.git(&["remote", "set-url", "origin", &url]);
    world.configure(&repository("shop", &url, &["poll: 0s", "insecure: true"]));
    server
}

/// A daemon whose only deployment is in a hook that does not end.
fn waiting_for_its_hook() -> World {
    let world = World::new(&[]);
    world.start();
    let waits = hook("pre", "Abort", "while :; do sleep 0.05; done");
    let strategy = format!("type: Recreate, recreateParams: {{{waits}}}");
    let commit = world.git.push_files(&[("web.yaml", &sleeper("web", &strategy, "1"))]);
    world.status(&commit, "launchway/default/web/pre", "running");
    world
}

#[test]
fn a_push_that_is_asked_about_at_once_is_the_one_that_is_told() {
    let world = World::new(&[]);
    let server = unannounced(&world);
    world.git.push_files(&[("web.yaml", &web("1"))]);
    world.start();
    let first = world.git.head();
    eventually("the first sync", || world.json(&["get", "repositories"])["items"][0]["seen"] == first);
    assert!(first_line(&here(&world, &WAIT)).starts_with(&first[..7]));

    let second = world.git.push_files(&[("web.yaml", &web("2"))]);
    let told = here(&world, &WAIT);
    assert_eq!((told.status.code(), &first_line(&told)[..7]), (Some(0), &second[..7]), "{}", complaint(&told));

    let told = complaint(&here(&world, &["sync", "--follow", "HEAD"]));
    assert!(told.contains("success launchway/default/web"), "{told}");
    let told = complaint(&here(&world, &["describe", "revision/HEAD~1"]));
    assert!(told.contains(&first), "{told}");

    // Somebody who has no work tree means what the remote has.
    let third = world.git.push_files(&[("web.yaml", &web("3"))]);
    assert!(world.tell(&WAIT).starts_with(&third[..7]));

    world.git.git(&["checkout", "--quiet", &second]);
    assert!(first_line(&here(&world, &["status"])).starts_with(&second[..7]), "what is checked out was pushed, too");

    world.git.git(&["checkout", "--quiet", "-B", "main", &third]);
    let unpushed = world.git.commit_files(&[("web.yaml", &web("4"))]);
    let told = here(&world, &["status"]);
    assert!(first_line(&told).starts_with(&third[..7]), "{}", complaint(&told));
    assert!(complaint(&told).contains(&format!("note: {}", &unpushed[..7])), "{}", complaint(&told));

    let told = here(&world, &["sync", "--follow", "HEAD", "--timeout", "0"]);
    assert_eq!(told.status.code(), Some(1), "it was not pushed: {}", complaint(&told));

    // Whoever waits goes by the exit code, and hears of no other commit's.
    let told = here(&world, &WAIT);
    assert_eq!((told.status.code(), told.stdout.is_empty()), (Some(1), true), "{}", complaint(&told));
    assert!(complaint(&told).contains(&format!("{} is not known as a head", &unpushed[..7])), "{}", complaint(&told));
    drop(server);
    let told = world.run(&WAIT);
    assert_eq!((told.status.code(), told.stdout.is_empty()), (Some(3), true), "{}", complaint(&told));
}

#[test]
fn in_a_work_tree_its_own_repository_is_meant() {
    let world = World::new(&[]);
    let bare = world.git.bare().display().to_string();
    let other = world.git.path("other.git");
    world.git.git_in(world.git.root(), &["clone", "--quiet", "--bare", &bare, &other.display().to_string()]);
    let both = [repository("shop", &bare, &[]), repository("other", &other.display().to_string(), &[])].concat();
    world.configure(&both);
    let commit = world.git.push_files(&[("web.yaml", &web("1"))]);
    world.start();
    assert_eq!(world.json(&["get", "repositories"])["items"].as_array().map(Vec::len), Some(2), "from the beginning");
    let told = here(&world, &WAIT);
    assert!(first_line(&told).starts_with(&commit[..7]), "{}", complaint(&told));
    let unclear = world.run(&["status"]);
    assert_eq!(unclear.status.code(), Some(2), "{}", complaint(&unclear));
    assert!(complaint(&unclear).contains("-r other"), "{}", complaint(&unclear));
}

#[test]
fn a_commit_whose_deployment_was_cancelled_is_not_good() {
    let world = waiting_for_its_hook();
    world.tell(&["rollout", "cancel", "dc/web"]);
    let told = here(&world, &WAIT);
    assert_eq!(told.status.code(), Some(1), "{}", complaint(&told));
    assert!(complaint(&told).contains("cancelled"), "{}", complaint(&told));
    let why = world.tell(&["why", "dc/web"]);
    assert!(why.contains("version 1 of web was cancelled, nothing serves"), "{why}");
}

#[test]
fn a_refused_head_is_not_judged_anew_by_whoever_asks_about_it() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &web("1"))], "success");
    world.git.git(&["commit", "--quiet", "--amend", "--message", "Another past"]);
    world.git.git(&["push", "--quiet", "--force", "origin", "main"]);
    world.status(&world.git.head(), "launchway/plan", "failure");
    let told = world.json(&["status"]);
    assert_eq!((&told["commit"], &told["result"]), (&world.git.head().into(), &"refused".into()), "{told:#}");
    assert_eq!(world.json(&["status"]), told, "asking changes nothing");
}

#[test]
fn nobody_waits_for_what_no_daemon_will_end() {
    let world = waiting_for_its_hook();
    world.stop();
    let told = here(&world, &WAIT);
    assert_eq!(told.status.code(), Some(3), "{}", complaint(&told));
    assert!(complaint(&told).contains("no daemon runs"), "{}", complaint(&told));
}
