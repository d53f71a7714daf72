//! Verbs as a hand expects them: from any folder, into any pipe, with an answer at once.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::daemon_edges::pushed::here;
use crate::daemon_edges::verbs::{assert_refused, deployed, web};
use crate::support::daemon::{World, complaint, eventually, repository};

#[test]
fn up_tells_its_story_from_any_folder_of_a_work_tree_and_nothing_of_its_log() {
    let world = World::new(&[]);
    world.git.commit_files(&[("deploy/web.yaml", &web("1"))]);
    let folder = world.git.work().join("deploy");
    world.spawn(world.launchway().current_dir(&folder).args(["up", "--branch", "main"]));
    let told = |words: &str| eventually(words, || world.output().contains(words));
    told("success launchway/default/web");
    assert!(world.output().starts_with(&format!("watching {}", world.git.work().display())), "{}", world.output());

    let second = world.launchway().current_dir(&folder).arg("up").output().unwrap();
    let process = format!("process {} serves http://", world.pid());
    assert_eq!(second.status.code(), Some(3), "{}", complaint(&second));
    assert!(complaint(&second).contains(&process) && complaint(&second).contains("--state"), "{}", complaint(&second));

    world.git.git(&["checkout", "--quiet", "-b", "aside"]);
    world.git.git(&["branch", "--quiet", "-D", "main"]);
    told("cannot be synced: branch `main` of");
    world.git.git(&["branch", "--quiet", "main"]);
    told("is synced again");
    world.stop();
    assert_eq!(world.log(), "", "that is told in the story");
}

#[test]
fn a_plan_is_made_in_any_folder_of_a_work_tree() {
    let world = World::new(&[]);
    world.git.commit_files(&[("deploy/web.yaml", &web("1"))]);
    let plan = |folder: &str| {
        let plan = world.launchway().current_dir(world.git.work().join(folder)).arg("plan").output().unwrap();
        assert!(plan.status.success(), "{}", complaint(&plan));
        complaint(&plan)
    };
    assert!(plan("deploy").contains("create DeploymentConfig/web"));
    assert_eq!(plan("deploy"), plan(""));
    assert_refused(&world, &["plan", "nowhere"], 3, &["`nowhere` does not exist"]);
}

#[test]
fn pods_are_watched() {
    let world = deployed();
    let mut watch = world.launchway();
    let mut watch = watch.args(["get", "pods", "-w"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().starts_with("NAME"));
    assert!(lines.next().unwrap().starts_with("web-1-0"));
    world.tell(&["scale", "dc/web", "--replicas", "2"]);
    assert!(lines.any(|line| line.starts_with("web-1-1") && line.contains("Ready")));
    let watch_pid = rustix::process::Pid::from_child(&watch);
    rustix::process::kill_process(watch_pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(watch.wait().unwrap().code(), Some(0));
}

#[test]
fn a_commit_that_is_no_head_is_not_waited_for_once_the_head_is_known() {
    let world = deployed();
    world.git.commit_files(&[("web.yaml", &web("2"))]);
    let since = Instant::now();
    let followed = here(&world, &["sync", "--follow", "HEAD"]);
    let told = complaint(&followed);
    assert_eq!(followed.status.code(), Some(1), "{told}");
    assert!(told.contains(&format!("`{}` is not known as a head of `shop`", &world.git.head()[..7])), "{told}");
    assert!(since.elapsed() < Duration::from_secs(9), "{:?}", since.elapsed());
}

#[test]
fn latest_is_deployed_again_in_the_words_of_oc() {
    let world = deployed();
    assert_eq!(world.tell(&["rollout", "latest", "--again", "dc/web"]), "deploymentconfig/web rolled out\n");
    assert!(world.tell(&["rollout", "status", "dc/web"]).contains("web-2"));
}

#[test]
fn a_hook_is_only_installed_where_somebody_pushes_and_somebody_watches() {
    let world = World::new(&[]);
    let (bare, work) = (world.git.bare().display().to_string(), world.git.work().display().to_string());
    let other = world.git.path("other.git").display().to_string();
    world.git.git_in(world.git.root(), &["clone", "--quiet", "--bare", &bare, &other]);
    let remote = repository("remote", "http://127.0.0.1:9/shop.git", &["insecure: true"]);
    world.configure(&[repository("shop", &bare, &[]), remote].concat());
    world.git.push_files(&[("web.yaml", &web("1"))]);
    world.start();
    let install = ["repository", "install-hook"];
    assert_refused(&world, &[&install[..], &[&work]].concat(), 2, &["has a work tree", "noticed without a hook"]);
    let unwatched = format!("nobody watches `{other}`");
    assert_refused(&world, &[&install[..], &[&other]].concat(), 2, &[&unwatched, "-r remote"]);
    assert_refused(&world, &[&install[..], &[&other, "-r", "shop"]].concat(), 2, &[&unwatched]);
    eventually("what its main branch is", || !world.json(&["get", "repositories"])["items"][0]["branch"].is_null());
    world.tell(&[&install[..], &[&bare]].concat());
    world.tell(&[&install[..], &[&other, "-r", "remote"]].concat());
    for (repository, name) in [(&bare, "shop"), (&other, "remote")] {
        let hook = fs::read_to_string(format!("{repository}/hooks/post-receive")).unwrap();
        assert!(hook.contains(&format!("sync '{name}' --follow")), "{hook}");
    }
}

#[test]
fn whoever_reads_no_further_is_no_mistake() {
    let world = deployed();
    let work = world.git.work().display().to_string();
    for verb in [
        "--help",
        "get",
        "get dc",
        "get pods -w",
        "get pods -o json",
        "get runs -o yaml",
        "describe dc/web",
        "status",
        "history",
        "logs dc/web",
        "events",
        "why dc/web",
        "rollout history dc/web",
        "rollout status dc/web",
        "repository list",
        "completion zsh",
        "man",
        "schema project",
        "hold dc/web",
        "get holds",
        "release dc/web",
        "sync",
        "sync --follow HEAD",
        &format!("plan {work}"),
        &format!("validate {work}"),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = world.launchway();
        let ended = command.current_dir(&work).args(verb.split(' ')).stdout(writer).output().unwrap();
        assert_eq!((ended.status.code(), complaint(&ended)), (Some(0), String::new()), "{verb}");
    }
}
