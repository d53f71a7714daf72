//! What a pod prints of its Secrets stands nowhere that people look.

use std::fs;
use std::path::Path;

use crate::support::daemon::{World, config, http};

const PASSWORD: &str = "correct-horse-battery";
const BASE64: &str = "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5";

#[test]
fn a_failing_hook_that_prints_its_secret_puts_it_nowhere() {
    let world = World::new(&[]);
    world.start();
    let hook = "pre: {failurePolicy: Abort, execNewPod: {containerName: main, env: [{name: P, valueFrom: {secretKeyRef: \
                {name: login, key: password}}}], command: [sh, -c, 'printf %s $P | base64; echo no login with $P; exit 3']}}";
    let web =
        config("web", &format!("rollingParams: {{{hook}}}"), "{name: main, image: host, command: [sleep, '1000']}");
    let login = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: login}}\nstringData:\n  password: {PASSWORD}\n  port: '5432'\n"
    );
    let commit = world.deploy(&[("web.yaml", &web), ("login.yaml", &login)], "failure");
    let told = world.notes(&commit)["launchway/default/web/pre"].1.clone();
    assert!(told.contains("no login with ***"), "{told}");

    let run = world.json(&["get", "runs"])["items"][0]["id"].as_str().unwrap().to_owned();
    let page = |path: &str| http(&world.address(), "GET", path, &[], b"").1;
    let shown = [
        format!("{:?}", world.notes(&commit)),
        page("/"),
        page(&format!("/runs/{run}")),
        page("/api/v1/runs"),
        page("/api/v1/events"),
        world.tell(&["logs", &format!("run/{run}")]),
        world.tell(&["events"]),
        world.tell(&["history", "-o", "json"]),
        world.tell(&["get", "pods", "--all", "-o", "json"]),
        world.tell(&["describe", "dc/web"]),
        String::from_utf8(world.run(&["why", "dc/web"]).stdout).unwrap(),
        String::from_utf8(world.run(&["status", &commit]).stdout).unwrap(),
        world.output() + &world.log(),
    ];
    for text in &shown {
        assert!(!text.contains(PASSWORD) && !text.contains(BASE64), "{text}");
    }
    let masked = shown.iter().filter(|text| text.contains("no login with ***")).count();
    assert!(masked >= 8, "{masked} of {shown:#?}");
    assert_kept_nowhere(&world);
    let warned = String::from_utf8(world.run(&["validate", &world.git.work().display().to_string()]).stdout).unwrap();
    assert!(warned.contains("login.yaml:6:3: warning") && warned.contains("`port` (too short)"), "{warned}");
}

/// What the pod was asked for holds its Secrets, of which it is made; logs and statuses do not.
fn assert_kept_nowhere(world: &World) {
    let mut files = 0;
    for folder in world.pod_folders().values() {
        let logs = fs::read_dir(folder.join("logs")).into_iter().flatten().flatten().map(|entry| entry.path());
        for file in logs.chain([folder.join("status.json"), folder.join("shim.log")]) {
            let content = read(&file);
            assert!(!content.contains(PASSWORD) && !content.contains(BASE64), "{}: {content}", file.display());
            files += usize::from(content.contains("no login with ***"));
        }
    }
    assert!(files >= 2, "the log and the status of the hook's pod");
}

fn read(file: &Path) -> String {
    String::from_utf8_lossy(&fs::read(file).unwrap_or_default()).into_owned()
}
