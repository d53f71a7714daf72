//! What waits for a person is at rest: whoever waits for its end hears at once for whom it waits.

use std::process::Output;

use rustix::process::Signal;

use crate::daemon_edges::access::me;
use crate::daemon_edges::verbs::{deployed, web};
use crate::support::daemon::{BY_HAND, World, complaint, eventually, repository};

const WAIT: [&str; 4] = ["status", "--wait", "--timeout", "60"];

/// Everything that a verb says, which ends with this exit code.
fn said(world: &World, arguments: &[&str], code: i32) -> String {
    told(&world.run(arguments), code)
}

fn told(output: &Output, code: i32) -> String {
    let told = String::from_utf8_lossy(&output.stdout).into_owned() + &complaint(output);
    assert_eq!(output.status.code(), Some(code), "{told}");
    assert!(!told.contains("not at its end") && !told.contains("goes on without us"), "{told}");
    told
}

/// A world whose daemon knows its repository by the name that `up` gives it.
fn as_up_names_it() -> World {
    let world = World::new(&[]);
    world.configure(&repository("origin", &world.git.bare().display().to_string(), &[]));
    world
}

/// `up --once` on the repository of a world whose daemon has stopped.
fn once(world: &World, code: i32) -> String {
    said(world, &["up", &world.git.bare().display().to_string(), "--once"], code)
}

#[test]
fn a_push_to_what_is_down_says_so_and_nobody_waits_for_it() {
    let world = deployed();
    let first = world.git.head();
    world.tell(&["down"]);
    for verb in [&WAIT[..], &["sync", "--follow", &first]] {
        let told = said(&world, verb, 1);
        assert!(told.contains("shop is down (`launchway sync shop --up` brings it back)"), "{told}");
    }
    let told = said(&world, &["rollout", "status", "dc/web"], 1);
    assert!(told.contains("its repository is down") && told.contains("launchway sync shop --up"), "{told}");

    let second = world.git.push_files(&[("web.yaml", &web("2"))]);
    let written = world.status(&second, "launchway/default/web", "pending");
    assert_eq!(written, "shop is down: `launchway sync shop --up` brings it back");
    for verb in [&[&WAIT[..], &[&second]].concat()[..], &["sync", "--follow", &second]] {
        let told = said(&world, verb, 1);
        assert!(told.contains(&written) && told.contains("waits for a person: shop is down"), "{told}");
    }
    let told = said(&world, &["sync", "--up", "--follow", &second], 0);
    assert!(told.contains("success launchway/default/web"), "{told}");
    world.status(&second, "launchway/default/web", "success");
    said(&world, &WAIT, 0);
}

#[test]
fn what_is_held_or_paused_waits_for_a_person_whoever_asks() {
    let world = as_up_names_it();
    world.start();
    world.deploy(&[("web.yaml", &web("1"))], "success");
    world.tell(&["hold", "dc/web", "--reason", "sale"]);
    let held = world.git.push_files(&[("web.yaml", &web("2"))]);
    eventually("the push is known", || !world.json(&["status", &held])["statuses"].is_null());
    let id = world.json(&["get", "holds"])["items"][0]["id"].as_str().unwrap().to_owned();
    let hint = format!("`launchway release {id}` lifts the hold");
    let by = format!("origin/default/web is held by {}: sale", me());
    let waits = |told: String| {
        assert!(told.contains(&by) && told.contains(&hint), "{told}");
    };
    waits(said(&world, &[&WAIT[..], &[&held]].concat(), 1));
    waits(said(&world, &["sync", "--follow", &held], 1));
    assert_eq!(world.stop_with(Signal::TERM), Some(0));
    waits(once(&world, 1));
    waits(said(&world, &[&WAIT[..], &[&held]].concat(), 1));

    world.start();
    world.tell(&["release", "--all", "--yes"]);
    said(&world, &[&WAIT[..], &[&held]].concat(), 0);
    let paused = web("3").replace("replicas: 1", "replicas: 1\n  paused: true");
    let paused = world.git.push_files(&[("web.yaml", &paused)]);
    world.status(&paused, "launchway/default", "pending");
    let lets_go = "`launchway release dc/web -s default`";
    assert!(said(&world, &[&WAIT[..], &[&paused]].concat(), 1).contains(lets_go));
    assert_eq!(world.stop_with(Signal::TERM), Some(0));
    assert!(once(&world, 1).contains(lets_go));
    world.start();
    world.tell(&["release", "dc/web"]);
    said(&world, &[&WAIT[..], &[&paused]].concat(), 0);
}

#[test]
fn a_stage_that_nobody_has_started_fails_nothing() {
    let world = as_up_names_it();
    let commit = world.git.push_files(&[("shipyard.yaml", BY_HAND), ("web.yaml", &web("1"))]);
    let by_hand = "stage spare is started by hand (`launchway trigger delivery -s spare` starts it)";
    assert!(once(&world, 0).contains(by_hand));
    world.start();
    let told = said(&world, &[&WAIT[..], &[&commit]].concat(), 0);
    assert!(told.contains(by_hand) && told.contains("success   launchway/production"), "{told}");
    world.tell(&["trigger", "delivery", "-s", "spare"]);
    assert!(!said(&world, &[&WAIT[..], &[&commit]].concat(), 0).contains("by hand"));
}

#[test]
fn a_head_that_was_rolled_back_is_not_what_serves() {
    let world = deployed();
    let second = world.deploy(&[("web.yaml", &web("2"))], "success");
    world.tell(&["rollout", "undo", "dc/web"]);
    world.tell(&["rollout", "status", "dc/web"]);
    let told = said(&world, &WAIT, 1);
    assert!(told.contains("a rollback of web to version 1") && told.contains("launchway release"), "{told}");
    let why = world.status(&second, "launchway/default/web", "pending");
    assert!(why.contains("a rollback of web to version 1"), "{why}");

    // Git says the same as the rollback: nothing is left to be done, also before the hold is released.
    let agrees = world.git.push_files(&[("web.yaml", &web("1"))]);
    eventually("the push is planned", || world.notes(&agrees).contains_key("launchway/plan"));
    said(&world, &[&WAIT[..], &[&agrees]].concat(), 0);
    eventually("what waited gives way to it", || {
        world.notes(&second)["launchway/default/web"].1.contains(&agrees[..7])
    });
    world.tell(&["release", "--all", "--yes"]);
    said(&world, &WAIT, 0);
    assert_eq!(world.json(&["get", "deployments"])["items"][0]["serving"]["version"], 3, "no new version");
}
