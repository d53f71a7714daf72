//! Going back as a pull request: a branch of a plain repository, which a person merges.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::daemon_edges::verbs::assert_refused;
use crate::support::daemon::{World, config, eventually, hook};

const PROJECT: &str = "apiVersion: launchway.dev/v1\nkind: Project\nmetadata: {name: shop}\nspec: {rollback: {onFailure: pull-request}}\n";

/// A deployment config of one sleeping process with a variable and a remark, and with hooks.
fn declared(name: &str, variable: &str, hooks: &str) -> String {
    let container =
        format!("{{name: main, image: host, command: [sleep, '1000'], env: [{{name: V, value: '{variable}'}}]}}");
    let strategy = format!("type: Recreate, recreateParams: {{timeoutSeconds: 60, {hooks}}}");
    format!("# {name} with {variable}\n{}", config(name, &strategy, &container))
}

fn serving(world: &World, name: &str) -> u64 {
    world.json(&["get", "dc", name])["items"][0]["serving"]["version"].as_u64().unwrap_or_default()
}

/// A file on a branch of the repository that is watched.
fn on(world: &World, branch: &str, file: &str) -> String {
    world.git.git_in(&world.git.bare(), &["show", &format!("{branch}:{file}")])
}

fn state(world: &World) -> String {
    let proposals = world.json(&["get", "repositories"])["items"][0]["proposals"].clone();
    let last = proposals.as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
    last["state"].as_str().unwrap_or_default().to_owned()
}

/// The branches of proposals.
fn branches(world: &World) -> String {
    world.git.git_in(&world.git.bare(), &["branch", "--list", "launchway/*", "--format=%(refname:short)"])
}

/// Merges a branch as a person does, and pushes that.
fn merge(world: &World, branch: &str) -> String {
    world.git.git(&["fetch", "-q", "origin"]);
    world.git.git(&["merge", "-q", "--no-ff", "-m", "go back", &format!("origin/{branch}")]);
    world.git.push();
    world.git.head()
}

#[test]
fn a_failed_post_hook_proposes_what_ran_before_and_merging_deploys_it() {
    let world = World::new(&[]);
    world.start();
    let good = declared("web", "1", "");
    world.deploy(&[("launchway.yaml", PROJECT), ("web.yaml", &good)], "success");
    let hook = hook("post", "Abort", "echo no table orders; exit 3");
    let bad = world.deploy(&[("web.yaml", &declared("web", "2", &hook))], "failure");
    let branch = "launchway/rollback-web-1";
    eventually("it is proposed", || state(&world) == "open");
    assert_eq!(serving(&world, "web"), 2, "nothing is rolled back by itself");
    assert_eq!(on(&world, branch, "web.yaml"), good.trim_end(), "the whole file, comments included");
    let changed = world.git.git_in(&world.git.bare(), &["diff", "--name-only", &format!("main..{branch}")]);
    assert_eq!(changed, "web.yaml");
    let told = String::from_utf8(world.run(&["status", &bad[..9]]).stdout).unwrap();
    assert!(told.contains("rollback of web to version 1 in default is proposed on branch"), "{told}");
    let why = world.tell(&["why", "dc/web"]);
    assert!(why.contains(branch), "{why}");

    let merged = merge(&world, branch);
    world.status(&merged, "launchway/default", "success");
    eventually("what ran before serves", || serving(&world, "web") == 3);
    assert_eq!(state(&world), "restored");
    eventually("its branch is gone", || branches(&world).is_empty());

    // The rollback is reverted without a change: that is not deployed again before a person lets it.
    world.git.git(&["revert", "--no-edit", "-m", "1", "HEAD"]);
    world.git.push();
    let again = world.git.head();
    let told = world.status(&again, "launchway/default", "pending");
    assert!(told.contains("quarantined"), "{told}");
    assert_eq!(serving(&world, "web"), 3);
    let holds = world.json(&["get", "holds"])["items"].clone();
    assert_eq!((&holds[0]["kind"], &holds[0]["id"]), (&json!("quarantine"), &json!("dc/web")), "{holds}");
    let told = world.tell(&["release", "dc/web", "--yes"]);
    assert!(told.contains("this lets start") && told.contains("goes on"), "{told}");
    world.status(&again, "launchway/default", "failure");
}

#[test]
fn what_a_version_runs_with_comes_back_with_it() {
    let world = World::new(&[]);
    world.start();
    let map = |name: &str, value: &str| {
        format!("kind: ConfigMap\napiVersion: v1\nmetadata: {{name: {name}}}\ndata: {{W: '{value}'}} # {value}\n")
    };
    let reading = |map: &str, image: &str, hooks: &str| {
        let reads = format!("envFrom: [{{configMapRef: {{name: {map}}}}}, {{secretRef: {{name: colors}}}}]");
        declared("web", image, hooks).replace("env: [", &format!("{reads}, env: ["))
    };
    let secret = |value: &str| {
        map("colors", value).replace("kind: ConfigMap", "kind: Secret").replace("\ndata:", "\nstringData:")
    };
    // The deployment config and the ConfigMap in one file, of which another part goes on being changed.
    let one_file = |name: &str, config: &str, note: &str| {
        format!("{config}---\n{}---\n# {note}\n{}", map(name, "1"), map("other", note))
    };
    let good = [
        ("launchway.yaml", PROJECT.to_owned()),
        ("web.yaml", one_file("red", &reading("red", "1", ""), "a")),
        ("secret.yaml", secret("old")),
    ];
    let push = |files: &[(&str, String)], expected: &str| {
        let files: Vec<(&str, &str)> = files.iter().map(|(path, content)| (*path, content.as_str())).collect();
        world.deploy(&files, expected)
    };
    push(&good, "success");
    let hook = hook("post", "Abort", "exit 3");
    let bad = [("web.yaml", one_file("blue", &reading("blue", "2", &hook), "b")), ("secret.yaml", secret("new"))];
    push(&bad, "failure");
    let branch = "launchway/rollback-web-1";
    eventually("it is proposed", || state(&world) == "open");
    let expected = format!("{}---\n{}", one_file("blue", &reading("red", "1", ""), "b"), map("red", "1"));
    assert_eq!(on(&world, branch, "web.yaml"), expected.trim_end());
    assert_eq!(on(&world, branch, "secret.yaml"), secret("old").trim_end(), "the same push has changed it");
    let merged = merge(&world, branch);
    world.status(&merged, "launchway/default", "success");
    eventually("what ran before serves", || serving(&world, "web") == 3);
    let pod = world.tell(&["exec", "dc/web", "--", "sh", "-c", "env"]);
    assert!(pod.contains("W=old"), "{pod}");
}

#[test]
fn with_none_nothing_follows_from_a_failure() {
    let world = World::new(&[]);
    world.start();
    let none = PROJECT.replace("pull-request", "none");
    world.deploy(&[("launchway.yaml", &none), ("web.yaml", &declared("web", "1", ""))], "success");
    let hook = hook("post", "Abort", "exit 3");
    let bad = world.deploy(&[("web.yaml", &declared("web", "2", &hook))], "failure");
    let told = world.status(&bad, "launchway/default", "failure");
    assert!(told.contains("nothing is rolled back by itself"), "{told}");
    assert_eq!((serving(&world, "web"), &*state(&world)), (2, ""));
}

#[test]
fn a_person_proposes_a_part_of_a_file_that_has_moved_on() {
    let world = World::new(&[]);
    world.start();
    let both = |web: &str, api: &str| format!("{}---\n{}", declared("web", web, ""), declared("api", api, ""));
    world.deploy(&[("all.yaml", &both("1", "1"))], "success");
    world.deploy(&[("all.yaml", &both("2", "1"))], "success");
    world.deploy(&[("all.yaml", &both("2", "2"))], "success");
    assert_refused(&world, &["rollback", "dc/web", "--pull-request", "--only", "config"], 1, &["leave out `--only`"]);
    let dry = world.tell(&["rollback", "dc/web", "--pull-request", "--dry-run"]);
    for expected in
        ["(dry run)", "branch: launchway/rollback-web-1", "-# web with 2", "+# web with 1", "title: Roll back"]
    {
        assert!(dry.contains(expected), "{expected}: {dry}");
    }
    assert_eq!(state(&world), "", "that was all");

    let done = world.json(&["rollback", "dc/web", "--pull-request", "--notes", "orders fail"]);
    assert_eq!(
        (&done["proposal"]["state"], &done["proposal"]["files"]),
        (&json!("open"), &json!(["all.yaml"])),
        "{done}"
    );
    assert_eq!(on(&world, "launchway/rollback-web-1", "all.yaml"), both("1", "2").trim_end());
    assert_eq!(serving(&world, "web"), 2, "it waits for a person");

    // The branch follows the head that is watched.
    world.deploy(&[("all.yaml", &both("2", "3"))], "success");
    eventually("the branch is on the new head", || {
        on(&world, "launchway/rollback-web-1", "all.yaml") == both("1", "3").trim_end()
    });
    let merged = merge(&world, "launchway/rollback-web-1");
    world.status(&merged, "launchway/default", "success");
    eventually("what ran before serves", || serving(&world, "web") == 3);
    assert_eq!((serving(&world, "api"), &*state(&world)), (3, "restored"));
}

#[test]
fn the_branch_of_one_that_a_push_overtakes_goes_unless_somebody_works_on_it() {
    let world = World::new(&[]);
    world.start();
    let branch = "launchway/rollback-web-1";
    world.deploy(&[("web.yaml", &declared("web", "1", ""))], "success");
    world.deploy(&[("web.yaml", &declared("web", "2", ""))], "success");
    world.tell(&["rollback", "dc/web", "--pull-request"]);
    assert_eq!(branches(&world), branch);
    world.deploy(&[("web.yaml", &declared("web", "3", ""))], "success");
    eventually("it is gone", || branches(&world).is_empty());
    let repositories = || world.json(&["get", "repositories"])["items"][0]["proposals"].clone();
    eventually("and that is said", || repositories()[0]["message"].as_str().unwrap().ends_with("is gone"));
    assert_eq!(state(&world), "overtaken");

    let branch = "launchway/rollback-web-2";
    world.tell(&["rollback", "dc/web", "--pull-request", "--to-version", "2"]);
    world.git.git(&["fetch", "-q", "origin"]);
    world.git.git(&["checkout", "-q", "-B", "own", &format!("origin/{branch}")]);
    let theirs = world.git.commit_files(&[("more", "by hand")]);
    world.git.git(&["push", "-q", "origin", &format!("own:{branch}")]);
    world.git.git(&["checkout", "-q", "main"]);
    world.deploy(&[("web.yaml", &declared("web", "4", ""))], "success");
    eventually("it is left alone", || {
        let proposals = repositories();
        let last = proposals.as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
        last["problem"].as_str().unwrap_or_default().contains("somebody else has pushed")
    });
    assert_eq!(world.git.git_in(&world.git.bare(), &["rev-parse", branch]), theirs);
}

#[test]
fn what_comes_back_may_be_what_a_task_runs() {
    let world = World::new(&[]);
    world.start();
    let shipyard = "apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nmetadata: {name: shop}\nspec: {stages: [{name: dev, \
                    sequences: [{name: delivery, tasks: [{name: deployment}, {name: test}]}]}]}\n";
    let task = "apiVersion: launchway.dev/v1\nkind: Task\nmetadata: {name: test}\nspec: {image: 'git:web', command: \
                [bin/test]}\n";
    let declared = config("web", "type: Recreate", "{name: main, image: 'git:web', command: [bin/web]}");
    let push = |seconds: &str| {
        for (program, line) in [("web/bin/web", &*format!("exec sleep {seconds}")), ("web/bin/test", "true")] {
            world.git.write(program, &format!("#!/bin/sh\n{line}\n"));
            fs::set_permissions(world.git.work().join(program), Permissions::from_mode(0o755)).unwrap();
        }
        let commit = world.git.push_files(&[("shipyard.yaml", shipyard), ("task.yaml", task), ("web.yaml", &declared)]);
        world.status(&commit, "launchway/dev", "success");
    };
    push("1000");
    push("2000");
    let done = world.json(&["rollback", "dc/web", "-s", "dev", "--pull-request"]);
    assert_eq!((&done["proposal"]["state"], &done["proposal"]["files"]), (&json!("open"), &json!(["web/"])), "{done}");
    assert!(on(&world, "launchway/rollback-web-1", "web/bin/web").contains("1000"));
}

#[test]
fn what_shares_a_folder_goes_back_together_or_not_at_all() {
    let world = World::new(&[]);
    world.start();
    let declared = |name: &str| config(name, "type: Recreate", "{name: main, image: 'git:app', command: [bin/run]}");
    let push = |seconds: &str| {
        world.git.write("app/bin/run", &format!("#!/bin/sh\nexec sleep {seconds}\n"));
        fs::set_permissions(world.git.work().join("app/bin/run"), Permissions::from_mode(0o755)).unwrap();
        world.deploy(&[("web.yaml", &declared("web")), ("worker.yaml", &declared("worker"))], "success")
    };
    push("1000");
    world.tell(&["rollout", "latest", "dc/worker", "--again"]);
    eventually("it was deployed again", || serving(&world, "worker") == 2);
    let second = push("2000");
    push("3000");
    let expected = [
        "would also change DeploymentConfig/worker in default",
        "`launchway rollback dc/web dc/worker -s default --pull-request`",
    ];
    for arguments in
        [&["rollback", "dc/web", "--pull-request"][..], &["rollback", "dc/web", "--pull-request", "--dry-run"]]
    {
        assert_refused(&world, arguments, 1, &expected);
    }
    assert_eq!(branches(&world), "", "nothing is pushed");

    // Version 2 of one is not of the same time as version 2 of the other.
    let request = |name: &str| format!("id: {name}\nkind: DeploymentConfig\nrollback: {{release: {name}-2}}\n");
    let file = world.git.path("request.yaml");
    fs::write(&file, format!("{}---\n{}", request("web"), request("worker"))).unwrap();
    let arguments = ["rollback", "-f", &*file.display().to_string(), "--pull-request"];
    assert_refused(&world, &arguments, 1, &["had the folder `app` differently", "--to-revision"]);
    let both = ["rollback", "dc/web", "dc/worker", "--pull-request"];
    let done = world.json(&[&both[..], &["--to-revision", &second]].concat());
    assert_eq!((&done["proposal"]["state"], &done["proposal"]["files"]), (&json!("open"), &json!(["app/"])), "{done}");
    assert!(on(&world, "launchway/rollback-web-2-worker-3", "app/bin/run").contains("2000"));
    assert_eq!((serving(&world, "web"), serving(&world, "worker")), (3, 4), "it waits for a person");
}
