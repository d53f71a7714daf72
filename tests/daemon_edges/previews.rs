//! What merging a pull request would do, told in it by a real daemon on a small host.

use std::sync::Arc;

use launchway::clock::SystemClock;
use launchway::plan::build::effect;
use launchway::store::ReadStore as _;
use launchway::store::sqlite::SqliteStore;

use crate::daemon_edges::hosting::{Hosting, Kind};
use crate::support::daemon::{World, config, eventually, hook};
use crate::support::git_http::GitHttp;

/// A name with a generated value in it.
const TEMPLATE: &str = "\
apiVersion: template.openshift.io/v1
kind: Template
metadata: {name: t}
parameters:
- {name: PASSWORD, generate: expression, from: '[a-z]{12}'}
objects:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: 'x-${PASSWORD}'}, data: {a: b}}
";

/// A deployment config with a hook.
fn web(variable: &str) -> String {
    let container =
        format!("{{name: main, image: host, command: [sleep, '1000'], env: [{{name: V, value: '{variable}'}}]}}");
    config("web", &format!("type: Recreate, recreateParams: {{{}}}", hook("pre", "Abort", "exit 0")), &container)
}

/// A pull request that changes some files of the branch that is watched, or what one brings now.
fn open(world: &World, host: &Hosting, number: u64, is_fork: bool, files: &[(&str, &str)]) -> String {
    world.git.git(&["checkout", "-q", "-B", "topic", "origin/main"]);
    world.git.commit_files(files);
    let head = host.open(world, number, is_fork);
    world.git.git(&["checkout", "-q", "-B", "main", "origin/main"]);
    world.tell(&["sync"]);
    head
}

#[test]
fn a_pull_request_tells_the_plan_of_its_merge_result_and_merging_it_has_that_plan() {
    for kind in Kind::ALL {
        tells_the_plan(kind);
    }
}

fn tells_the_plan(kind: Kind) {
    let world = World::new(&[]);
    let (host, server, [success, broken]) = (Hosting::start(kind), GitHttp::start(world.git.root()), kind.states());
    host.configure(&world, &server.url("moody/origin.git"), &[]);
    let base = world.git.push_files(&[("web.yaml", &web("1")), ("readme", "1")]);
    world.start();
    world.status(&base, "launchway/default", "success");

    let first = open(&world, &host, 7, false, &[("web.yaml", &web("2"))]);
    eventually("a comment", || host.comment(7).contains(&first[..7]));
    let told = host.comment(7);
    assert!(told.starts_with(&kind.hidden("launchway/plan ")), "{kind:?}: {told}");
    for expected in ["**`default`**, with the push", "deploy `DeploymentConfig/web`", "runs `pre (Abort)"] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    eventually("a status", || host.plan_status(&first) == format!("{success} merging it: default: 1 deploy"));
    let config = &world.json(&["get", "dc", "web"])["items"][0];
    assert_eq!(config["serving"]["version"], 1, "nothing of it runs");

    // A fork's files are read, and that is all, or not even that.
    let forked = open(&world, &host, 8, true, &[("web.yaml", &web("3").replace("replicas: 1", "replicas: many"))]);
    if kind.shows_forks() {
        eventually("a problem", || host.comment(8).contains("web.yaml:5:13: error"));
        let told = format!("{broken} merging it: 1 problem: web.yaml:5:13");
        eventually("an error", || host.plan_status(&forked).starts_with(&told));
    } else {
        eventually("a reason", || host.comment(8).contains("another repository, from which nothing is read"));
    }

    // What a template generates is shown to nobody who could not push.
    for (number, is_fork) in [(9, false), (10, true)] {
        open(&world, &host, number, is_fork, &[("t.yaml", TEMPLATE)]);
        eventually("a comment", || !host.comment(number).is_empty());
    }
    let generated = |number: u64| {
        let told = host.comment(number);
        Some(told.split_once("create `ConfigMap/x-")?.1.split_once('`')?.0.to_owned())
    };
    assert!(generated(9).is_some_and(|it| Some(it) != generated(10)));
    assert_eq!(generated(10).is_some(), kind.shows_forks());
    assert!(kind.shows_forks() || host.plan_status(&forked) == " ", "nothing is known of the commit");

    // Checked again, nothing is written again.
    let writes = host.hosted().writes;
    let syncs = world.syncs();
    world.tell(&["sync"]);
    eventually("another sync", || world.syncs() > syncs);

    let second = open(&world, &host, 7, false, &[("web.yaml", &web("4"))]);
    eventually("the same comment tells the new plan", || host.comment(7).contains(&second[..7]));
    eventually("a status", || host.plan_status(&second).starts_with(success));
    assert_eq!(host.hosted().writes, writes + 2, "one comment and one status");

    world.stop();
    let foreseen = remembered(&world, async |store| {
        let state = store.repository(&"shop".into()).await.unwrap().unwrap().value;
        state.previews.iter().find(|preview| preview.number == 7).and_then(|preview| preview.plan.clone())
    });
    world.start();
    world.git.git(&["merge", "-q", "--no-ff", "-m", "Merge pull request 7", &second]);
    world.git.push();
    let merged = world.git.head();
    world.tell(&["sync"]);
    world.status(&merged, "launchway/default", "success");
    world.stop();
    let planned = remembered(&world, async |store| {
        let revision = store.revision(&"shop".into(), &merged).await.unwrap().unwrap();
        effect(revision.plan().unwrap())
    });
    assert_eq!(foreseen, Some(planned));
}

#[test]
fn a_repository_whose_previews_are_off_tells_nothing_and_asks_for_nothing() {
    let world = World::new(&[]);
    let (host, server) = (Hosting::start(Kind::Gitea), GitHttp::start(world.git.root()));
    let configure = |previews: &str| host.configure(&world, &server.url("moody/origin.git"), &[previews]);
    configure("previews: false");
    let base = world.git.push_files(&[("web.yaml", &web("1")), ("readme", "1")]);
    world.start();
    world.status(&base, "launchway/default", "success");
    let head = open(&world, &host, 7, false, &[("web.yaml", &web("2"))]);
    let syncs = world.syncs();
    world.tell(&["sync"]);
    eventually("another sync", || world.syncs() > syncs);
    world.stop();
    assert_eq!((host.comment(7), host.plan_status(&head)), (String::new(), " ".to_owned()));
    configure("previews: true");
    world.start();
    eventually("a comment", || host.comment(7).contains(&head[..7]));
}

/// Something that a daemon which has ended has left in its store.
fn remembered<T>(world: &World, read: impl AsyncFnOnce(&SqliteStore) -> T) -> T {
    let store = SqliteStore::open(&world.state().join("store.db"), Arc::new(SystemClock)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(read(&store))
}
