//! Going back to what ran before, as people ask for it.

use std::fs;

use serde_json::{Value, json};

use crate::daemon_edges::verbs::assert_refused;
use crate::support::daemon::{World, config, eventually, hook, http};

/// A deployment config of one sleeping process with a variable, and with hooks.
fn declared(name: &str, variable: &str, hooks: &str) -> String {
    let container =
        format!("{{name: main, image: host, command: [sleep, '1000'], env: [{{name: V, value: '{variable}'}}]}}");
    config(name, &format!("type: Recreate, recreateParams: {{timeoutSeconds: 60, {hooks}}}"), &container)
}

/// The versions that serve, by name, each with its variable's value.
fn serving(world: &World, name: &str) -> (u64, String) {
    let found = world.json(&["get", "dc", name])["items"][0].clone();
    let version = found["serving"]["version"].as_u64().unwrap_or_default();
    (version, found["status"].as_str().unwrap_or_default().to_owned())
}

fn history(world: &World, name: &str) -> Vec<Value> {
    world.json(&["rollout", "history", &format!("dc/{name}")])["items"].as_array().unwrap().clone()
}

#[test]
fn one_goes_back_as_a_new_version_with_its_notes_under_a_hold() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &declared("web", "1", ""))], "success");
    world.deploy(&[("web.yaml", &declared("web", "2", &hook("pre", "Abort", "true")))], "success");
    let told = world.tell(&["rollback", "dc/web", "--dry-run"]);
    let expected = "deploymentconfig/web would be rolled back to version 1 as version 3 (dry run)\n";
    assert!(told.starts_with(expected) && told.contains("  environment main/V: 2 -> 1\n"), "{told}");
    assert_eq!((serving(&world, "web").0, history(&world, "web").len()), (2, 2), "that was all");

    let done = world.json(&["rollback", "dc/web", "--notes", "orders fail", "--only", "application"]);
    assert_eq!(done["runs"], json!(["shop/default/web-3"]));
    let evaluation = &done["evaluations"][0];
    assert_eq!((&evaluation["from"], &evaluation["to"]), (&json!(2), &json!(1)));
    assert_eq!(evaluation["hooks"], json!(["pre (Abort): sh -c true"]), "those that are declared now");
    eventually("version 3 serves", || serving(&world, "web").0 == 3);
    let cause = history(&world, "web")[2]["cause"].as_str().unwrap().to_owned();
    assert!(cause.starts_with("rollback of the application to version 1 by ") && cause.ends_with(": orders fail"));

    world.git.push_files(&[("web.yaml", &declared("web", "4", ""))]);
    world.tell(&["sync"]);
    assert_eq!(serving(&world, "web").0, 3, "a push waits");
    let holds = world.json(&["get", "holds"]);
    assert_eq!(holds["items"][0]["kind"], "rollback");
    world.tell(&["release", "dc/web", "--yes"]);
    eventually("what was pushed serves", || serving(&world, "web").0 == 4);
}

#[test]
fn what_cannot_go_back_is_refused_and_nothing_changes() {
    let world = World::new(&[]);
    world.start();
    let first = world.deploy(&[("web.yaml", &declared("web", "1", ""))], "success");
    let web = ["rollback", "dc/web"];
    let with = |more: &[&'static str]| [&web[..], more].concat();
    assert_refused(&world, &web, 1, &["no previous deployment exists for `web`"]);
    assert_refused(&world, &with(&["--to-version", "1"]), 1, &["version 1 of `web` serves already"]);
    assert_refused(&world, &with(&["--to-version", "7"]), 1, &["there is no version 7 of `web`", "launchway history"]);
    assert_refused(&world, &with(&["--to-revision", "abcdef"]), 1, &["no revision `abcdef` of `shop` is known"]);
    assert_refused(&world, &["rollback", "dc/web", "--to-revision", &first], 1, &["version 1 of `web` serves already"]);
    assert_refused(&world, &["rollback"], 2, &["nothing is named"]);
    assert_refused(&world, &["rollback", "--all"], 2, &["--to-revision"]);
    assert_refused(&world, &["rollback", "dc/gone"], 1, &["there is no deployment config `gone`"]);
    let file = world.git.path("back.yaml");
    fs::write(&file, "id: web\nrollback:\n  release: api-1\n").unwrap();
    let path = file.display().to_string();
    assert_refused(&world, &["rollback", "-f", &path], 1, &[&format!("{path}:3:12: error: rollback.release:")]);
    world.deploy(&[("web.yaml", &declared("web", "2", ""))], "success");
    world.tell(&["hold", "dc/web", "--reason", "audit"]);
    assert_refused(&world, &web, 1, &["audit", "launchway release"]);
    assert_eq!((serving(&world, "web").0, history(&world, "web").len()), (2, 2));
}

#[test]
fn a_group_goes_back_together_and_all_are_brought_back_where_one_fails() {
    let world = World::new(&[]);
    world.start();
    let flag = world.git.path("flag");
    let judge = hook("post", "Abort", &format!("test ! -e {}", flag.display()));
    let files =
        |variable: &str| [("api.yaml", declared("api", variable, "")), ("web.yaml", declared("web", variable, &judge))];
    let push = |variable: &str| {
        let files = files(variable);
        world.deploy(&files.each_ref().map(|(name, content)| (*name, content.as_str())), "success")
    };
    let first = push("1");
    push("2");
    fs::write(&flag, "").unwrap();
    let requests = world.git.path("back.yaml");
    fs::write(
        &requests,
        "- {id: web, rollback: {release: web-1}}\n- {id: api, rollback: {release: api-1, notes: both}}\n",
    )
    .unwrap();
    world.tell(&["rollback", "-f", &requests.display().to_string()]);
    eventually("web has failed", || history(&world, "web").iter().any(|row| row["status"] == "Failed"));
    eventually("api is as before", || {
        serving(&world, "api").0 != 3 && history(&world, "api").last().unwrap()["status"] != "Running"
    });
    eventually("its own deployment has gone back by itself", || {
        let last = history(&world, "web").pop().unwrap();
        let is_back = last["cause"].as_str().unwrap().starts_with("rollback to version 2, because version 3 failed: ");
        serving(&world, "web").0 == 4 && is_back && last["status"] == "Complete"
    });
    let last = history(&world, "api").last().unwrap()["cause"].as_str().unwrap().to_owned();
    let gave_way = history(&world, "api").last().unwrap()["status"] == "Failed";
    assert!(gave_way || last.starts_with("back to version 2, because the rollback of web failed"), "{last}");
    eventually("api runs what it ran", || {
        let pods = world.json(&["get", "pods"]).to_string();
        pods.contains("api-4-0") || (gave_way && pods.contains("api-2-"))
    });

    fs::remove_file(&flag).unwrap();
    let all = world.tell(&["rollback", "--all", "--to-revision", &first]);
    // The revision's newest version of `api` that was complete is the one that went back to it.
    let both = [("api", 3), ("web", 1)];
    let said = |(name, version): &(&str, u32)| format!("deploymentconfig/{name} rolled back to version {version} ");
    assert!(both.iter().all(|back| all.contains(&said(back))), "{all}");
    eventually("both serve", || {
        both.iter().all(|(name, version)| {
            let rows = history(&world, name);
            let (last, cause) = (rows.last().unwrap(), format!("rollback to version {version} "));
            last["status"] == "Complete" && last["cause"].as_str().unwrap().starts_with(&cause)
        })
    });
}

#[test]
fn the_same_is_asked_for_over_http() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &declared("web", "1", ""))], "success");
    world.deploy(&[("web.yaml", &declared("web", "2", ""))], "success");
    let token = fs::read_to_string(world.state().join("operator-token")).unwrap();
    let bearer = format!("Bearer {}", token.trim());
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let post =
        |body: &Value| http(&world.address(), "POST", "/api/v1/rollbacks", &headers, body.to_string().as_bytes());
    let request = json!({"id": "web", "kind": "DeploymentConfig", "rollback": {"release": "web-1", "notes": "n"}});
    let body =
        |dry_run: bool| json!({"project": "shop", "stage": "default", "rollbacks": [request], "dryRun": dry_run});
    let (code, answer) = post(&body(true));
    assert!(code == 200 && answer.contains("(dry run)") && answer.contains("\"area\":\"environment\""), "{answer}");
    let (code, answer) =
        post(&json!({"project": "shop", "stage": "default", "rollbacks": [{"id": "web", "rollbak": {}}]}));
    assert!(code == 422 && answer.contains("unknown field `rollbak`"), "{code} {answer}");
    let (code, answer) = post(&json!({"project": "shop", "stage": "default", "all": {}}));
    assert!(code == 422 && answer.contains("name the revision"), "{code} {answer}");
    let (code, answer) = post(&body(false));
    assert!(code == 200 && answer.contains("rolled back to version 1 as version 3"), "{answer}");
    eventually("version 3 serves", || serving(&world, "web").0 == 3);
}
