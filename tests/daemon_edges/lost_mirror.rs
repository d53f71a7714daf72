//! Mirrors that are damaged or lost.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use crate::support::daemon::{World, complaint, eventually, sleeper};

fn mirror(world: &World) -> PathBuf {
    world.state().join("mirrors/shop.git")
}

fn lose_objects(world: &World) {
    let objects = mirror(world).join("objects");
    fs::remove_dir_all(&objects).unwrap();
    fs::create_dir(&objects).unwrap();
}

#[test]
fn a_damaged_mirror_is_made_anew_and_pushes_are_deployed() {
    let world = World::new(&["poll: 1s"]);
    world.start();
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))], "success");
    lose_objects(&world);
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "2"))], "success");
    assert!(world.log().contains("the mirror is damaged and will be made anew"), "{}", world.log());
    world.kill();
    for name in ["refs/heads/main", "refs/notes/launchway"] {
        fs::write(mirror(&world).join(name), "").unwrap();
    }
    let commit = world.git.push_files(&[("web.yaml", &sleeper("web", "type: Recreate", "3"))]);
    world.start();
    world.status(&commit, "launchway/default", "success");
    // Nothing is pushed: what needs the mirror finds it whole after the next sync.
    // The daemon may be writing into it, so that it is taken away whole.
    fs::rename(mirror(&world), mirror(&world).with_extension("lost")).unwrap();
    let folder = format!("--git-dir={}", mirror(&world).display());
    let tree = format!("{commit}^{{tree}}");
    eventually("the mirror has the head", || {
        world.git.try_git_in(&world.git.bare(), &[&folder, "cat-file", "-e", &tree]).status.success()
    });
    world.tell(&["sync"]);
    assert!(!mirror(&world).with_extension("damaged").exists());
}

/// Rewrites the only branch, so that nothing of what was deployed is left in the remote.
fn rewrite(world: &World, first: &str) -> String {
    world.git.git(&["reset", "--quiet", "--hard", first]);
    let head = world.git.commit_files(&[("web.yaml", &sleeper("web", "type: Recreate", "3"))]);
    world.git.git(&["push", "--quiet", "--force", "origin", "HEAD"]);
    for arguments in [
        &["update-ref", "-d", "refs/notes/launchway"][..],
        &["reflog", "expire", "--expire=now", "--all"],
        &["gc", "--quiet", "--prune=now"],
    ] {
        world.git.git_in(&world.git.bare(), arguments);
    }
    head
}

#[test]
fn a_mirror_that_was_lost_together_with_what_is_applied_keeps_nobody_from_going_on() {
    let world = World::new(&[]);
    world.start();
    let first = world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))], "success");
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "2"))], "success");
    world.stop();
    fs::remove_dir_all(mirror(&world)).unwrap();
    let head = rewrite(&world, &first);
    world.start();
    let told = world.status(&head, "launchway/plan", "failure");
    assert!(told.contains("history was rewritten"), "{told}");
    world.tell(&["hold", "--reason", "a look"]);
    world.tell(&["hold", "dc/web", "--reason", "a look"]);
    for arguments in [&["release", "--all", "--dry-run"][..], &["release", "--all", "-y"]] {
        let output = world.run(arguments);
        let told = String::from_utf8_lossy(&output.stdout).into_owned() + &complaint(&output);
        assert!(output.status.success() && told.contains("nobody can tell what"), "{told}");
    }
    assert_eq!(world.json(&["get", "holds"])["items"], json!([]));
    world.tell(&["sync", "--accept-rewrite", &head]);
    world.status(&head, "launchway/default", "success");
}
