//! Each thing that can be wrong has a clear error that says what to do, and nothing is lost by it.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::orders::task;
use crate::support::daemon::{World, complaint, config, eventually, hook, private, repository, sleeper};
use crate::support::git_http::GitHttp;

fn problem(world: &World) -> String {
    world.json(&["get", "repositories"])["items"][0]["problem"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_repository_that_cannot_be_read_says_why() {
    let cases = [
        ("http://127.0.0.1:9/shop.git", "127.0.0.1:9"),
        ("/nowhere/shop.git", "/nowhere/shop.git"),
        ("EMPTY", "no commits yet"),
    ];
    for (url, expected) in cases {
        let world = World::new(&[]);
        let bare = world.git.bare().display().to_string();
        world.configure(&repository("shop", if url == "EMPTY" { &bare } else { url }, &[]));
        world.start();
        eventually(&format!("a problem with {url}"), || !problem(&world).is_empty());
        let told = problem(&world);
        assert!(told.contains(expected), "{url}: {told}");
        let sync = world.run(&["sync"]);
        assert!(!sync.status.success() && complaint(&sync).contains(expected), "{}", complaint(&sync));
    }
}

#[test]
fn a_revision_that_is_refused_tells_each_of_its_warnings_once() {
    let world = World::new(&[]);
    world.start();
    let broken = sleeper("web", "type: Recreate", "1").replace("replicas: 1", "replicas: x\n  replicaz: 1");
    let commit = world.git.push_files(&[("web.yaml", &broken)]);
    let description = world.status(&commit, "launchway/plan", "error");
    assert!(description.starts_with("1 problem: web.yaml:"), "{description}");
    let told = String::from_utf8(world.run(&["status", &commit]).stdout).unwrap();
    for part in ["error: spec.replicas:", "warning: spec.replicaz:"] {
        let lines = told.lines().filter(|line| line.starts_with("  ") && line.contains(part));
        assert_eq!(lines.count(), 1, "{part}: {told}");
    }
}

#[test]
fn a_branch_that_was_deleted_is_named() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))], "success");
    world.git.git_in(&world.git.bare(), &["update-ref", "-d", "refs/heads/main"]);
    let sync = world.run(&["sync"]);
    let told = complaint(&sync);
    assert!(!sync.status.success() && told.contains("branch `main` of") && told.contains("was deleted"), "{told}");
    world.git.push();
    world.tell(&["sync"]);
    assert_eq!(problem(&world), "");
}

#[test]
fn what_cannot_be_started_fails_with_its_reason_and_the_old_version_serves() {
    let folder = tempfile::tempdir().unwrap();
    let another = folder.path().join("app.tar.gz");
    std::fs::write(&another, "another archive").unwrap();
    let archive = |path: &str| format!("file://{path}@sha256:{}", "0".repeat(64));
    let container = |image: &str, command: &str| format!("{{name: main, image: '{image}', command: [{command}]}}");
    let cases = [
        ("missing launchable", container("git:nowhere", "sleep, '1000'"), "nowhere"),
        ("missing archive", container(&archive("/nowhere/app.tar.gz"), "sleep, '1000'"), "/nowhere/app.tar.gz"),
        ("wrong digest", container(&archive(&another.to_string_lossy()), "sleep, '1000'"), "has the digest sha256:"),
        ("does not build", container("git:app", "sleep, '1000'"), "bin/build"),
        ("no such command", container("host", "no-such-command"), "no-such-command"),
    ];
    for (name, container, expected) in cases {
        let world = World::new(&[]);
        world.start();
        world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))], "success");
        world.git.write("app/bin/build", "#!/bin/sh\necho no compiler here >&2\nexit 4\n");
        std::fs::set_permissions(world.git.work().join("app/bin/build"), PermissionsExt::from_mode(0o755)).unwrap();
        let strategy = "type: Recreate, recreateParams: {timeoutSeconds: 3}";
        let commit = world.git.push_files(&[("web.yaml", &config("web", strategy, &container))]);
        eventually(&format!("{name} is told"), || {
            let notes = world.notes(&commit);
            notes.values().any(|(state, _)| state == "failure" || state == "error")
        });
        let notes = world.notes(&commit);
        assert!(notes.values().any(|(_, why)| why.contains(expected)), "{name}: {notes:#?}");
        eventually(&format!("version 1 serves after {name}"), || {
            let pods = world.json(&["get", "pods"])["items"].as_array().cloned().unwrap_or_default();
            pods.iter().any(|pod| pod["version"] == 1 && pod["status"] == "Ready")
        });
    }
}

#[test]
fn a_hook_that_hangs_is_ended_and_one_that_floods_is_bounded() {
    let world = World::new(&[]);
    world.start();
    let hang = hook("pre", "Abort", "sleep 1000").replace("failurePolicy", "timeoutSeconds: 1, failurePolicy");
    let strategy = format!("type: Recreate, recreateParams: {{{hang}}}");
    let commit = world.deploy(&[("web.yaml", &sleeper("web", &strategy, "1"))], "failure");
    world.status(&commit, "launchway/default/web/pre", "failure");
    eventually("the hook's processes ended", || world.processes().is_empty());

    let flood = hook("pre", "Abort", "head -c 100000000 /dev/zero | tr '\\0' x; exit 5");
    let strategy = format!("type: Recreate, recreateParams: {{{flood}}}");
    let commit = world.deploy(&[("web.yaml", &sleeper("web", &strategy, "2"))], "failure");
    world.status(&commit, "launchway/default/web/pre", "failure");
    let used = Command::new("du").args(["-s", "-B1"]).arg(world.state()).output().unwrap();
    let used = String::from_utf8(used.stdout).unwrap();
    let bytes: u64 = used.split_whitespace().next().unwrap().parse().unwrap();
    assert!(bytes < 64 << 20, "the state folder holds {bytes} bytes");
}

#[test]
fn a_second_daemon_on_the_same_state_is_refused() {
    let world = World::new(&[]);
    world.start();
    let config = world.config().display().to_string();
    let second = world.run(&["serve", "--config", &config]);
    let told = complaint(&second);
    assert_eq!(second.status.code(), Some(3), "{told}");
    assert!(told.contains("another daemon uses state folder") && told.contains("--state"), "{told}");
    assert!(world.daemon_lives());
}

#[test]
fn an_address_in_use_is_told() {
    let world = World::new(&[]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    let text = std::fs::read_to_string(world.config()).unwrap().replace("127.0.0.1:0", &listen);
    std::fs::write(world.config(), text).unwrap();
    let refused = world.run(&["serve", "--config", &world.config().display().to_string()]);
    let told = complaint(&refused);
    assert_eq!(refused.status.code(), Some(3), "{told}");
    assert!(told.contains(&listen) && told.contains("listen"), "{told}");
}

#[test]
fn a_state_folder_that_cannot_be_written_is_told() {
    let world = World::new(&[]);
    // A file in the folder's place refuses root too, whom permissions do not stop.
    std::fs::write(world.git.path("file"), "").unwrap();
    let state = world.git.path("file/state").display().to_string();
    let refused = world.run(&["serve", "--config", &world.config().display().to_string(), "--state", &state]);
    let told = complaint(&refused);
    assert_eq!(refused.status.code(), Some(3), "{told}");
    assert!(told.contains("cannot use state folder") && told.contains(&state), "{told}");
}

#[test]
fn a_repository_that_asks_for_credentials_says_so_and_is_read_once_they_are_right() {
    let world = World::new(&[]);
    let server = GitHttp::start(world.git.root());
    let (user, password) = (world.git.path("user"), world.git.path("password"));
    std::fs::write(&user, "bot\n").unwrap();
    private(&password, "wrong\n");
    let files = format!("credentials: {{usernameFile: {}, passwordFile: {}}}", user.display(), password.display());
    world.configure(&repository("shop", &server.url("auth/origin.git"), &[&files, "poll: 100ms", "insecure: true"]));
    world.git.push_files(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))]);
    let config = world.config().display().to_string();
    let check = world.run(&["repository", "check", "--config", &config]);
    assert_eq!(check.status.code(), Some(1));
    let told = String::from_utf8_lossy(&check.stdout);
    assert!(
        told.contains("credentials") && told.contains("pods of this user are kept from the state folder"),
        "{told}"
    );
    world.start();
    eventually("a problem", || problem(&world).contains("credentials"));
    assert!(!problem(&world).contains("wrong"), "a secret is never told");
    private(&password, "secret\n");
    let check = world.json(&["repository", "check", "shop", "--config", &config]);
    assert_eq!((&check[0]["head"], &check[0]["isolation"]["files"]), (&world.git.head().into(), &true.into()));
    eventually("no problem", || problem(&world).is_empty());
    let commit = world.git.head();
    eventually("the deployment", || world.json(&["status", &commit])["statuses"][0]["state"] == "success");
    let unknown = world.run(&["repository", "check", "shoe", "--config", &config]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(complaint(&unknown).contains("it has shop"), "{}", complaint(&unknown));
}

#[test]
fn the_longest_name_works_in_the_longest_namespace_and_a_longer_one_is_refused_where_it_stands() {
    let world = World::new(&[]);
    world.start();
    let (task_name, namespace) = ("t".repeat(63), "n".repeat(63));
    let named = |length: usize| {
        let strategy = format!("type: Rolling, rollingParams: {{{}}}", hook("post", "Abort", "exit 0"));
        sleeper("web", &strategy, "1")
            .replace("metadata: {name: web}", &format!("metadata: {{name: {}}}", "w".repeat(length)))
    };
    let shipyard = format!(
        "apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nmetadata: {{name: shop}}\nspec:\n  stages:\n  \
         - {{name: dev, sequences: [{{name: delivery, tasks: [{{name: deployment}}, {{name: {task_name}}}]}}]}}\n"
    );
    let project = format!(
        "apiVersion: launchway.dev/v1\nkind: Project\nmetadata: {{name: shop}}\n\
         spec: {{stages: {{dev: {{namespace: {namespace}}}}}}}\n"
    );
    let test = task(&task_name, "host", "exit 0");
    let files = [("shipyard.yaml", &*shipyard), ("launchway.yaml", &project), ("test.yaml", &test)];
    let commit = world.git.push_files(&[&files[..], &[("web.yaml", &*named(100))]].concat());
    world.status(&commit, "launchway/dev", "success");
    let longer = world.git.push_files(&[("web.yaml", &named(101))]);
    let why = world.status(&longer, "launchway/plan", "error");
    assert!(why.contains("web.yaml:3") && why.contains("100"), "{why}");
}

#[test]
fn a_submodule_as_launchable_is_called_one() {
    let world = World::new(&[]);
    for (image, here) in [("git:apps/web", "apps/web"), ("git:apps/web/src", "apps/web")] {
        let container = format!("{{name: main, image: '{image}', command: [sleep, '1000']}}");
        world.git.write("web.yaml", &config("web", "type: Recreate", &container));
        let submodule = format!("160000,{},{here}", "1".repeat(40));
        world.git.git(&["add", "--all"]);
        world.git.git(&["update-index", "--add", "--cacheinfo", &submodule]);
        world.git.git(&["commit", "--quiet", "--message", "A submodule"]);
        let plan = world.run(&["plan", "work"]);
        let told = complaint(&plan);
        assert_eq!(plan.status.code(), Some(1), "{told}");
        assert!(told.contains("web.yaml:13:") && told.contains("`apps/web` is a submodule"), "{told}");
        std::fs::create_dir_all(world.git.work().join(here).join("src")).unwrap();
        std::fs::write(world.git.work().join(here).join(".git"), "gitdir: elsewhere\n").unwrap();
        let validate = complaint(&world.run(&["validate", "work"]));
        assert!(validate.contains("`apps/web` is a submodule"), "of a checkout too: {validate}");
        std::fs::remove_dir_all(world.git.work().join("apps")).unwrap();
    }
}
