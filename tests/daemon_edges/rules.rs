//! What is refused although it can be read, and how a person allows it.

use std::fs;

use super::pushed::here;
use crate::support::daemon::{World, complaint, eventually, repository, sleeper};
use crate::support::git::GitFixture;

fn ready_pods(world: &World) -> usize {
    let pods = world.json(&["get", "pods"])["items"].as_array().cloned().unwrap_or_default();
    pods.iter().filter(|pod| pod["status"] == "Ready").count()
}

#[test]
fn rewritten_history_is_refused_until_a_person_accepts_it() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))], "success");
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "2"))], "success");
    world.git.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    let rewritten = world.git.commit_files(&[("web.yaml", &sleeper("web", "type: Recreate", "3"))]);
    world.git.git(&["push", "--quiet", "--force", "origin", "HEAD"]);
    let why = world.status(&rewritten, "launchway/plan", "failure");
    assert!(why.contains("history was rewritten") && why.contains("--accept-rewrite"), "{why}");
    assert_eq!(world.json(&["get", "deployments"])["items"][0]["serving"]["version"], 2);
    for (word, code, said) in
        [("zzz", 2, "`zzz` names no commit"), ("HEAD~1", 1, &*format!("which is {}", &rewritten[..7]))]
    {
        let refused = here(&world, &["sync", "--accept-rewrite", word]);
        assert_eq!(refused.status.code(), Some(code), "{word}: {}", complaint(&refused));
        assert!(complaint(&refused).contains(said), "{word}: {}", complaint(&refused));
    }
    let allowed = here(&world, &["sync", "--accept-rewrite", "HEAD"]);
    assert!(allowed.status.success(), "{}", complaint(&allowed));
    world.status(&rewritten, "launchway/default", "success");
    assert_eq!(world.json(&["get", "deployments"])["items"][0]["serving"]["version"], 3);
}

#[test]
fn a_deleted_branch_deletes_nothing() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))], "success");
    let pod = world.pod_in("shop-default/web-1-0", "ready");
    world.git.git(&["push", "--quiet", "origin", "HEAD:refs/heads/other"]);
    world.git.git_in(&world.git.bare(), &["update-ref", "-d", "refs/heads/main"]);
    let sync = world.run(&["sync"]);
    assert!(!sync.status.success());
    let problem = world.json(&["get", "repositories"])["items"][0]["problem"].to_string();
    assert!(problem.contains("branch `main`"), "{problem}");
    assert_eq!(world.pod_in("shop-default/web-1-0", "ready"), pod);
    world.git.push();
    let fixed = || world.json(&["get", "repositories"])["items"][0]["problem"].is_null();
    eventually("the problem is gone", fixed);
}

#[test]
fn no_branch_is_guessed_while_the_remote_is_away() {
    let world = World::new(&[]);
    world.git.push_files(&[("web.yaml", &sleeper("web", "type: Recreate", "main"))]);
    world.git.git(&["checkout", "--quiet", "-b", "trunk"]);
    let trunk = world.git.commit_files(&[("web.yaml", &sleeper("web", "type: Recreate", "trunk"))]);
    world.git.git(&["push", "--quiet", "origin", "HEAD"]);
    world.git.git_in(&world.git.bare(), &["symbolic-ref", "HEAD", "refs/heads/trunk"]);
    let (there, away) = (world.git.bare(), world.git.path("away.git"));
    fs::rename(&there, &away).unwrap();
    world.configure(&repository("shop", &there.display().to_string(), &[]).replace("    branch: main\n", ""));
    world.start();
    let repository = || world.json(&["get", "repositories"])["items"][0].clone();
    eventually("the problem is known", || repository()["problem"].is_string());
    fs::rename(&away, &there).unwrap();
    world.tell(&["sync"]);
    assert_eq!(repository()["branch"], "trunk");
    world.status(&trunk, "launchway/default", "success");
}

#[test]
fn a_stage_stays_in_its_namespace() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))], "success");
    let project = "apiVersion: launchway.dev/v1\nkind: Project\nmetadata: {name: shop}\n";
    let moved = format!("{project}spec: {{stages: {{default: {{namespace: live}}}}}}\n");
    let commit = world.git.push_files(&[("launchway.yaml", &moved)]);
    let why = world.status(&commit, "launchway/plan", "failure");
    assert!(why.contains("`shop-default`") && why.contains("`live`"), "{why}");
    world.pod_in("shop-default/web-1-0", "ready");
}

#[test]
fn emptying_a_repository_is_refused_until_a_person_allows_it() {
    let world = World::new(&[]);
    world.start();
    let files: Vec<(String, String)> =
        (1..5).map(|n| (format!("s{n}.yaml"), sleeper(&format!("s{n}"), "type: Recreate", "1"))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    world.deploy(&files, "success");
    eventually("four pods", || ready_pods(&world) == 4);
    for (path, _) in &files {
        std::fs::remove_file(world.git.work().join(path)).unwrap();
    }
    world.git.write("README.md", "empty\n");
    let emptied = world.git.commit("Delete everything");
    world.git.push();
    let why = world.status(&emptied, "launchway/plan", "failure");
    assert!(why.contains("--allow-prune"), "{why}");
    assert_eq!(ready_pods(&world), 4);
    world.tell(&["sync", "--allow-prune", &emptied]);
    eventually("no process of a pod", || world.processes().is_empty());
}

#[test]
fn a_broken_file_is_an_error_with_its_place_and_what_runs_keeps_running() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))], "success");
    let pod = world.pod_in("shop-default/web-1-0", "ready");
    let broken = world.git.push_files(&[("web.yaml", "kind: DeploymentConfig\napiVersion: v1\nspec: [\n")]);
    let why = world.status(&broken, "launchway/plan", "error");
    assert!(why.contains("web.yaml:"), "{why}");
    let unknown = world.git.push_files(&[
        ("web.yaml", &sleeper("web", "type: Recreate", "1")),
        ("launchway.yaml", "apiVersion: launchway.dev/v1\nkind: Project\nmetadata: {name: shop}\nspec: {shipyrd: x}\n"),
    ]);
    let why = world.status(&unknown, "launchway/plan", "error");
    assert!(why.contains("launchway.yaml:4") && why.contains("shipyrd"), "{why}");
    assert_eq!(world.pod_in("shop-default/web-1-0", "ready"), pod);
}

#[test]
fn a_second_repository_may_not_declare_the_same_project() {
    let world = World::new(&[]);
    let other = world.git.path("other.git").display().to_string();
    let project = "apiVersion: launchway.dev/v1\nkind: Project\nmetadata: {name: shop}\n";
    let first =
        world.git.push_files(&[("launchway.yaml", project), ("web.yaml", &sleeper("web", "type: Recreate", "1"))]);
    world.start();
    world.status(&first, "launchway/default", "success");
    world.stop();
    world.git.git_in(world.git.root(), &["clone", "--quiet", "--bare", "origin.git", "other.git"]);
    let bare = world.git.bare().display().to_string();
    world.configure(&(repository("shop", &bare, &[]) + &repository("other", &other, &[])));
    world.start();
    eventually("a refusal", || {
        let status = world.json(&["status", &first, "-r", "other"]);
        status["statuses"][0]["description"].as_str().is_some_and(|why| why.contains("declares project `shop`"))
    });
    assert_eq!(ready_pods(&world), 1);
}

#[test]
fn two_stages_never_meet_in_one_namespace_and_it_is_free_once_one_has_left() {
    let world = World::new(&[]);
    let shipyard = |stage: &str| {
        format!(
            "apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nmetadata: {{name: s}}\nspec:\n  stages:\n  \
             - {{name: {stage}, sequences: [{{name: delivery, tasks: [{{name: deployment}}]}}]}}\n"
        )
    };
    let project = |name: &str| format!("apiVersion: launchway.dev/v1\nkind: Project\nmetadata: {{name: {name}}}\n");
    let web = sleeper("web", "type: Recreate", "1");
    let other = GitFixture::new();
    let bare = |git: &GitFixture| git.bare().display().to_string();
    world.configure(&(repository("shop", &bare(&world.git), &[]) + &repository("other", &bare(&other), &[])));
    let first = world.git.push_files(&[
        ("launchway.yaml", &project("shop")),
        ("shipyard.yaml", &shipyard("api-dev")),
        ("web.yaml", &web),
    ]);
    world.start();
    world.status(&first, "launchway/api-dev", "success");
    let second = other.push_files(&[
        ("launchway.yaml", &project("shop-api")),
        ("shipyard.yaml", &shipyard("dev")),
        ("web.yaml", &web),
    ]);
    let statuses = || world.json(&["status", &second, "-r", "other"])["statuses"].to_string();
    let both = ["stage `dev` of project `shop-api`", "stage `api-dev` of project `shop`", "namespace `shop-api-dev`"];
    eventually("a refusal with both names", || both.iter().all(|name| statuses().contains(name)));
    assert_eq!(ready_pods(&world), 1);

    let renamed = world.git.push_files(&[("shipyard.yaml", &shipyard("qa"))]);
    let refused = world.status(&renamed, "launchway/plan", "failure");
    assert!(refused.contains("it has no stage `api-dev` any more"), "{refused}");
    world.tell(&["sync", "shop", "--allow-prune", &renamed]);
    world.status(&renamed, "launchway/qa", "success");
    eventually("the stage is empty", || world.json(&["get", "dc", "-s", "api-dev"])["items"] == serde_json::json!([]));
    world.tell(&["sync", "other"]);
    eventually("the other goes on", || ready_pods(&world) == 2);
    let serving = world.json(&["get", "dc", "-r", "other"])["items"][0]["namespace"].clone();
    assert_eq!(serving, "shop-api-dev");
}

#[test]
fn what_is_paused_together_with_a_change_is_not_passed_over_for_what_was_before() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))], "success");
    let paused = sleeper("web", "type: Recreate", "2").replace("replicas: 1", "replicas: 1\n  paused: true");
    let commit = world.git.push_files(&[("web.yaml", &paused)]);
    let plan = world.status(&commit, "launchway/plan", "success");
    let refused = world.run(&["rollout", "latest", "dc/web"]);
    let told = complaint(&refused);
    assert_eq!(refused.status.code(), Some(1), "{plan}: {told}");
    assert!(told.contains("paused") && told.contains(&commit[..7]), "{told}");
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "2"))], "success");
    assert_eq!(world.json(&["get", "deployments"])["items"][0]["serving"]["version"], 2);
}

#[test]
fn a_repository_that_moved_is_told_where_it_is_now() {
    let world = World::new(&[]);
    let commit = world.git.push_files(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))]);
    world.start();
    world.status(&commit, "launchway/plan", "success");
    world.stop();
    let moved = world.git.path("moved.git");
    std::fs::rename(world.git.bare(), &moved).unwrap();
    world.git.git_in(&moved, &["branch", "--quiet", "--move", "main", "live"]);
    let moved = moved.display().to_string();
    world.configure(&repository("shop", &moved, &[]).replace("branch: main", "branch: live"));
    world.start();
    let told = &world.json(&["get", "repositories"])["items"][0];
    assert_eq!((&told["url"], &told["branch"]), (&moved.into(), &"live".into()), "{told:#}");
    assert_eq!(told["seen"], commit, "what was synced stands: {told:#}");
}

#[test]
fn a_head_beyond_the_limits_says_so_until_it_may_be_read() {
    let world = World::new(&["limits: {entries: 3}"]);
    world.start();
    let small = world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))], "success");
    let pod = world.pod_in("shop-default/web-1-0", "ready");
    let files = ["a.txt", "b.txt", "c.txt", "d.txt"].map(|path| (path, "x\n"));
    let large = world.git.push_files(&files);
    let why = world.status(&large, "launchway/plan", "error");
    assert!(why.contains("more than 3 entries"), "{why}");
    assert_eq!(world.pod_in("shop-default/web-1-0", "ready"), pod, "what runs goes on");
    assert_eq!(world.notes(&small)["launchway/default"].0, "success");
    world.stop();
    world.configure(&repository("shop", &world.git.bare().display().to_string(), &["limits: {entries: 100}"]));
    world.start();
    world.status(&large, "launchway/plan", "success");
}
