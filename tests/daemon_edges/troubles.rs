//! What keeps a rollout from getting on stands on the commit while it runs, where people look first.

use crate::support::daemon::{World, config, eventually, sleeper};

/// Waits until a commit says so of `web` while it is under way.
fn told_while_it_runs(world: &World, commit: &str, what: &str) {
    for context in ["launchway/default", "launchway/default/web"] {
        eventually(&format!("{context} tells `{what}`"), || {
            world.notes(commit).get(context).is_some_and(|(state, told)| state == "running" && told.contains(what))
        });
    }
    let shown = String::from_utf8(world.run(&["status", commit]).stdout).unwrap();
    assert!(shown.contains(what), "{shown}");
}

/// A deployment config whose pod runs a script and is ready when another one says so.
fn probed(script: &str, probe: &str) -> String {
    let probe = format!("{{exec: {{command: [sh, -c, '{probe}']}}, periodSeconds: 1}}");
    let container = format!("{{name: main, image: host, command: [sh, -c, '{script}'], readinessProbe: {probe}}}");
    config("web", "type: Recreate", &container)
}

#[test]
fn a_commit_tells_what_is_in_the_way_while_the_rollout_runs() {
    let world = World::new(&[]);
    world.start();
    let crashing = world.git.push_files(&[("web.yaml", &probed("echo no database; exit 3", "exit 1"))]);
    told_while_it_runs(&world, &crashing, "container `main` exited with code 3: no database");

    let unready = world.git.push_files(&[("web.yaml", &probed("exec sleep 1000", "echo warming up; exit 1"))]);
    told_while_it_runs(&world, &unready, "readiness probe: exit code 1: warming up");

    let lacking = sleeper("web", "type: Recreate", "1")
        .replace("command:", "envFrom: [{configMapRef: {name: colors}}], command:");
    let lacking = world.git.push_files(&[("web.yaml", &lacking)]);
    told_while_it_runs(&world, &lacking, "configmap \"colors\" not found");

    let fixed = world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "2"))], "success");
    let told = &world.notes(&fixed)["launchway/default/web"];
    assert!(told.1.contains("serves after") && !told.1.contains("warming"), "{told:?}");
}
