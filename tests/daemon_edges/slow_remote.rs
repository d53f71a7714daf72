//! A remote that is slow, or says nothing, delays what is in it alone.

use std::time::{Duration, Instant};

use crate::support::daemon::{World, complaint, eventually, repository, sleeper};
use crate::support::git_http::GitHttp;

/// Two repositories: `shop` on this machine, and `slow` on a server, whose branch is the one that the server says.
fn world(server: &GitHttp, world: &World) {
    world.git.git_in(world.git.root(), &["clone", "--quiet", "--bare", "origin.git", "slow.git"]);
    let slow = repository("slow", &server.url("moody/slow.git"), &["poll: 1s"]).replace("    branch: main\n", "");
    let shop = repository("shop", &world.git.bare().display().to_string(), &[]);
    world.configure(&(slow + &shop));
}

fn deployments(world: &World) -> Vec<String> {
    let items = world.json(&["get", "deployments"])["items"].as_array().cloned().unwrap_or_default();
    let ready = items.iter().filter(|item| item["status"] == "Complete");
    ready.map(|item| item["repository"].as_str().unwrap_or_default().to_owned()).collect()
}

fn branch_of_slow(world: &World) -> String {
    let items = world.json(&["repository", "list"])["items"].as_array().cloned().unwrap_or_default();
    let slow = items.iter().find(|item| item["name"] == "slow");
    slow.and_then(|slow| slow["branch"].as_str()).unwrap_or_default().to_owned()
}

#[test]
fn nothing_but_its_own_repository_waits_for_a_remote_that_says_nothing() {
    let both = World::new(&[]);
    let server = GitHttp::start(both.git.root());
    both.git.push_files(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))]);
    world(&server, &both);
    both.start();
    eventually("a pod of each", || deployments(&both).len() == 2 && both.processes().len() == 4);
    assert_eq!(branch_of_slow(&both), "main");
    both.kill();
    both.kill_processes();

    server.set_silent(true);
    let since = Instant::now();
    both.start();
    eventually("pods of both are there again, from the store", || both.processes().len() == 4);
    assert_eq!(deployments(&both).len(), 2, "what runs can be asked for");
    let commit = both.git.push_files(&[("web.yaml", &sleeper("web", "type: Recreate", "2"))]);
    both.status(&commit, "launchway/default", "success");
    assert_eq!(branch_of_slow(&both), "main", "as it was");
    assert!(since.elapsed() < Duration::from_secs(25), "all that before the silence counts as a failure");

    server.set_silent(false);
    both.git.git_in(&both.git.work(), &["push", "--quiet", &both.git.path("slow.git").display().to_string(), "HEAD"]);
    eventually("what was pushed meanwhile is deployed there too", || {
        let revision = both.json(&["status", &commit, "-r", "slow"]);
        revision["statuses"].as_array().is_some_and(|all| all.iter().any(|status| status["state"] == "success"))
    });
}

#[test]
fn the_main_branch_is_asked_for_again_when_the_one_that_was_is_gone() {
    let both = World::new(&[]);
    let server = GitHttp::start(both.git.root());
    both.git.push_files(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))]);
    world(&server, &both);
    both.start();
    eventually("a pod of each", || deployments(&both).len() == 2);
    let slow = both.git.path("slow.git");
    let problem = || both.json(&["repository", "list"]).to_string();
    both.git.git_in(&slow, &["update-ref", "-d", "refs/heads/main"]);
    for _ in 0..2 {
        let sync = both.run(&["sync", "slow"]);
        assert!(!sync.status.success());
        assert!(
            complaint(&sync).contains("branch `main` of") && complaint(&sync).contains("was deleted"),
            "{}",
            complaint(&sync)
        );
    }
    assert!(problem().contains("was deleted"), "{}", problem());
    both.git.git(&["push", "--quiet", &slow.display().to_string(), "HEAD:refs/heads/trunk"]);
    both.git.git_in(&slow, &["symbolic-ref", "HEAD", "refs/heads/trunk"]);
    eventually("the new main branch is watched", || branch_of_slow(&both) == "trunk");
    assert!(both.run(&["sync", "slow"]).status.success());
    assert_eq!(deployments(&both).len(), 2, "and nothing is deployed anew");
}
