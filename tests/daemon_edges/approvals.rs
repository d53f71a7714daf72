//! What people say in the trailers of signed commits of what waits for approval.

use std::fs;
use std::process::Command;

use super::orders::web;
use crate::support::daemon::{World, eventually, repository};

const SHIPYARD: &str = "\
apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shop}
spec:
  stages:
  - name: dev
    sequences: [{name: delivery, tasks: [{name: deployment}]}]
  - name: production
    sequences:
    - name: delivery
      triggeredOn: [{event: dev.delivery.finished}]
      tasks: [{name: approval, properties: {pass: manual, warning: manual}}, {name: deployment}]
";

/// A daemon that takes the word of Ann, of whom and of a stranger there are keys.
fn shop() -> World {
    let world = World::new(&[]);
    for name in ["ann", "stranger"] {
        let mut command = Command::new("ssh-keygen");
        command.args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]).arg(world.git.path(name));
        assert!(command.status().unwrap().success());
    }
    let key = fs::read_to_string(world.git.path("ann.pub")).unwrap();
    fs::write(world.git.path("signers"), format!("ann@example.org namespaces=\"git\" {key}")).unwrap();
    let bare = world.git.bare().display().to_string();
    let approvals = format!("approvals: {{allowedSignersFile: {}}}", world.git.path("signers").display());
    world.configure(&repository("shop", &bare, &[&approvals]));
    world.start();
    world
}

/// Pushes a commit that changes nothing and says something, signed by a key if there is one.
fn say(world: &World, trailer: &str, key: Option<&str>) -> String {
    let key = key.map(|key| format!("user.signingkey={}", world.git.path(key).display()));
    let mut words = vec!["-c", "gpg.format=ssh"];
    words.extend(key.iter().flat_map(|key| ["-c", key.as_str()]));
    words.extend(["commit", "--quiet", "--allow-empty", "-m", "Say so", "-m", trailer]);
    words.extend(key.iter().map(|_| "-S"));
    world.git.git(&words);
    world.git.push();
    world.git.head()
}

fn waits(world: &World) -> bool {
    world.tell(&["why", "dc/web", "-s", "production"]).contains("waits for approval")
}

#[test]
fn only_what_is_said_in_commits_that_an_allowed_signer_has_signed_counts_and_once() {
    let world = shop();
    let commit = world.git.push_files(&[("shipyard.yaml", SHIPYARD), ("web.yaml", &web("1"))]);
    world.status(&commit, "launchway/dev/web", "success");
    eventually("it waits for approval", || waits(&world));
    for (trailer, key, why) in [
        ("Launchway-Approve: web -s production", None, "it is not signed"),
        ("Launchway-Approve: web -s production", Some("stranger"), "none of the allowed signers has signed it"),
        ("Launchway-Approve: web -s dev", Some("ann"), "nothing is under way of `web` in stage dev"),
        ("Launchway-Approve: -s dev", Some("ann"), "nothing waits for approval in stage `dev`"),
        ("Launchway-Approve: web --force", Some("ann"), "`--force` is nothing that is known here"),
    ] {
        let said = say(&world, trailer, key);
        let told = format!("what {} approves does not count: {why}", &said[..7]);
        eventually(&told, || world.tell(&["events", "-r", "shop"]).contains(&told));
        assert!(waits(&world), "{trailer}");
    }
    let said = say(&world, "Launchway-Approve: web -s production", Some("ann"));
    world.status(&commit, "launchway/production/web", "success");
    let approved = format!("approved by git:ann@example.org: in {}", &said[..7]);
    assert!(world.tell(&["events"]).contains(&approved), "{}", world.tell(&["events"]));

    let commit = world.git.push_files(&[("web.yaml", &web("2"))]);
    world.status(&commit, "launchway/dev/web", "success");
    eventually("the next one waits", || waits(&world));
    world.kill();
    world.start();
    world.tell(&["sync"]);
    assert!(waits(&world), "no commit counts twice");
    say(&world, "launchway-reject: -s production", Some("ann"));
    let told = world.status(&commit, "launchway/production/web", "failure");
    assert!(told.contains("rejected by git:ann@example.org"), "{told}");
}

#[test]
fn what_commits_said_while_nobodys_word_counted_never_counts() {
    let world = shop();
    let configuration = fs::read_to_string(world.config()).unwrap();
    let without = configuration.lines().filter(|line| !line.contains("approvals:")).collect::<Vec<_>>().join("\n");
    world.stop();
    fs::write(world.config(), without).unwrap();
    world.start();
    let commit = world.git.push_files(&[("shipyard.yaml", SHIPYARD), ("web.yaml", &web("1"))]);
    world.status(&commit, "launchway/dev/web", "success");
    eventually("it waits for approval", || waits(&world));
    let said = say(&world, "Launchway-Approve: web -s production", Some("ann"));
    world.status(&said, "launchway/plan", "success");
    world.stop();
    fs::write(world.config(), configuration).unwrap();
    world.start();
    world.tell(&["sync"]);
    assert!(waits(&world));
    say(&world, "Launchway-Approve: web -s production", Some("ann"));
    world.status(&commit, "launchway/production/web", "success");
}
