//! What people type, each in its usual use and refused once.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::access::operators_token;
use super::survival::SERVICE;
use crate::support::daemon::{BY_HAND, World, complaint, eventually, hook, http, repository, sleeper};

pub(crate) fn web(version: &str) -> String {
    sleeper("web", "type: Recreate", version)
}

/// A daemon that has deployed the first version of `web`.
pub(crate) fn deployed() -> World {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &web("1"))], "success");
    world
}

/// Asserts that a command is refused with this exit code, and says all of this.
pub(crate) fn assert_refused(world: &World, arguments: &[&str], code: i32, said: &[&str]) {
    let refused = world.run(arguments);
    let told = complaint(&refused);
    assert_eq!(refused.status.code(), Some(code), "{arguments:?}: {told}");
    assert!(said.iter().all(|words| told.contains(words)), "{arguments:?}: {told}");
}

fn only_config(world: &World) -> Value {
    world.json(&["get", "deployments", "web"])["items"][0].clone()
}

fn only_hold(world: &World) -> Value {
    let holds = world.json(&["get", "holds"])["items"].as_array().unwrap().clone();
    assert_eq!(holds.len(), 1, "{holds:#?}");
    holds[0].clone()
}

/// What a person at a terminal sees of a verb, who answers its question.
fn on_a_terminal(world: &World, verb: &str, answer: &str) -> String {
    let launchway = world.launchway();
    let mut script = Command::new("script");
    script.args(["--quiet", "--command", &format!("{} {verb}", env!("CARGO_BIN_EXE_launchway")), "/dev/null"]);
    let variables = launchway.get_envs().filter_map(|(name, value)| Some((name, value?)));
    script.env_clear().envs(variables).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = script.spawn().unwrap();
    child.stdin.take().unwrap().write_all(answer.as_bytes()).unwrap();
    String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout).into_owned()
}

#[test]
fn under_a_hold_a_push_waits_until_it_is_released() {
    let world = deployed();
    let told = world.tell(&["hold", "dc/web", "--reason", "audit until noon"]);
    let hold = only_hold(&world);
    let id = hold["id"].as_str().unwrap();
    assert!(told.contains(id) && hold["reason"] == "audit until noon", "{told}: {hold:#}");
    let commit = world.git.push_files(&[("web.yaml", &web("2"))]);
    let waits = || world.notes(&commit).values().any(|(_, description)| description.contains("audit until noon"));
    eventually("the commit says that it waits", waits);
    assert!(world.tell(&["why", "web"]).contains(&format!("launchway release {id}")));
    assert_eq!(only_config(&world)["serving"]["version"], 1);
    let question = on_a_terminal(&world, &format!("release {id}"), "no\n");
    assert!(question.contains("this lets start:") && question.contains("release? [y/N]"), "{question}");
    assert!(question.contains("nothing was released"), "{question}");
    assert_eq!(only_hold(&world)["id"], id);
    let told = on_a_terminal(&world, &format!("release {id}"), "y\n");
    assert!(told.contains("released"), "{told}");
    world.status(&commit, "launchway/default", "success");
    assert_eq!(only_config(&world)["serving"]["version"], 2);
    assert_refused(&world, &["release", id], 1, &["there is no hold", id]);
    assert_refused(&world, &["hold", "dc/cart", "--reason", "audit"], 1, &["no deployment config `cart`"]);
    let no_stage = ["project `shop` has no stage `prodution`", "its stages: default"];
    assert_refused(&world, &["hold", "-s", "prodution", "--reason", "audit"], 1, &no_stage);
    let bearer = format!("Bearer {}", operators_token(&world));
    let hold = |service: &str| {
        let body = format!(r#"{{"project": "shop", "stage": "default", "service": "{service}", "reason": "audit"}}"#);
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        http(&world.address(), "POST", "/api/v1/holds", &headers, body.as_bytes())
    };
    let (code, told) = hold("wbe");
    assert!(
        code == 404 && told.contains("stage `default` has no service `wbe`") && told.contains("its services: web"),
        "{told}"
    );
    assert_eq!(hold("web").0, 200);
    world.tell(&["release", only_hold(&world)["id"].as_str().unwrap()]);
    assert_refused(&world, &["hold", "dc/web", "--reason", " "], 2, &["a reason must say something"]);
    world.tell(&["hold", "dc/web"]);
    assert_eq!(only_hold(&world)["reason"], "no reason given");
}

#[test]
fn what_a_release_lets_start_is_told_also_while_something_ends_for_it() {
    let world = deployed();
    world.git.push_files(&[(
        "web.yaml",
        &sleeper("web", &format!("type: Recreate, recreateParams: {{{}}}", hook("pre", "Abort", "sleep 600")), "2"),
    )]);
    eventually("the hook runs", || world.tell(&["get", "pods"]).contains("hook-pre"));
    world.tell(&["hold", "dc/web"]);
    let commit = world.git.push_files(&[("web.yaml", &web("3"))]);
    eventually("its delivery waits", || world.tell(&["why", "web"]).contains("launchway release"));
    let foretold = world.tell(&["release", "dc/web", "--dry-run"]);
    assert!(foretold.contains("this lets start") && foretold.contains(&commit[..7]), "{foretold}");
    world.tell(&["release", "dc/web"]);
    world.status(&commit, "launchway/default", "success");
}

/// What moves the cursor, colours, sets a title, or turns the text around it, as others may write it.
const HOSTILE: &str = "\u{1b}[31mred \u{1b}]0;title\u{7} \u{9b}2J \u{202e}drawkcab";

#[test]
fn what_others_write_is_spelled_out_on_a_terminal() {
    let world = World::new(&[]);
    world.start();
    let failing = sleeper("web", &format!("type: Recreate, recreateParams: {{{}}}", hook("pre", "Abort", NOISY)), "1");
    world.git.write("web.yaml", &failing);
    let commit = world.git.commit(&format!("Change colours {HOSTILE}"));
    world.git.push();
    world.status(&commit, "launchway/default", "failure");
    let plain = |c: char| !c.is_control() && !('\u{202a}'..='\u{202e}').contains(&c) || matches!(c, '\r' | '\n' | '\t');
    for verb in
        ["status", "events", "why web", "describe dc/web", "get revisions", "get runs", "history", "get deployments"]
    {
        for format in ["human", "json", "yaml"] {
            let shown = on_a_terminal(&world, &format!("{verb} --no-color --output {format}"), "");
            assert!(
                (shown.contains("web") || shown.contains(&commit[..7])) && shown.chars().all(plain),
                "{verb} as {format}: {shown:?}"
            );
        }
    }
    let events = on_a_terminal(&world, "events --no-color", "");
    assert!(events.contains("\\u{1b}[31mred"), "{events}");
    let human = on_a_terminal(&world, "get revisions --no-color", "");
    assert!(human.contains("\\u{202e}drawkcab"), "{human}");
    let subject = world.json(&["get", "revisions"])["items"][0]["subject"].as_str().unwrap().to_owned();
    assert!(subject.ends_with("\u{202e}drawkcab"), "for scripts it is what was written: {subject:?}");
}

/// A hook that prints what [`HOSTILE`] says, and fails.
const NOISY: &str = r"printf '\033[31mred \033]0;title\007 \342\200\256drawkcab\n' >&2; exit 3";

#[test]
fn a_stage_that_is_started_by_hand_is_triggered() {
    let world = World::new(&[]);
    world.start();
    let commit = world.git.push_files(&[("shipyard.yaml", BY_HAND), ("web.yaml", &web("1"))]);
    world.status(&commit, "launchway/production", "success");
    let stages = || world.json(&["get", "deployments"])["items"].as_array().map_or(0, Vec::len);
    assert_eq!(stages(), 2, "not in the spare stage");
    world.tell(&["trigger", "delivery", "-s", "spare"]);
    eventually("a deployment in the spare stage", || {
        world.json(&["get", "deployments", "web", "-s", "spare"])["items"][0]["serving"]["commit"] == commit
    });
    assert_refused(&world, &["trigger", "delivery", "-s", "nowhere"], 1, &["no stage `nowhere`"]);
    let long = "x".repeat(201);
    assert_refused(
        &world,
        &["trigger", "delivery", "-s", "production", "--force", &long],
        2,
        &["200 characters, not 201"],
    );
    assert_refused(&world, &["trigger", "delivery"], 2, &["--stage"]);
}

#[test]
fn ended_pods_are_listed_where_they_are_asked_for() {
    let world = World::new(&[]);
    world.start();
    let hooked = format!("type: Recreate, recreateParams: {{{}}}", hook("pre", "Abort", "true"));
    world.deploy(&[("web.yaml", &sleeper("web", &hooked, "1"))], "success");
    let names = |arguments: &[&str]| {
        let pods = world.json(arguments)["items"].as_array().unwrap().clone();
        pods.iter().map(|pod| pod["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&["get", "pods"]), ["web-1-0"]);
    assert_eq!(names(&["get", "pods", "--all"]), ["web-1-0", "web-1-hook-pre"]);
    let kinds = world.tell(&["get"]);
    assert!(kinds.contains("deployments    dc        Deployment configs"), "{kinds}");
}

#[test]
fn everything_about_one_thing_is_described() {
    let world = deployed();
    let commit = world.git.head();
    let config = world.tell(&["describe", "dc/web"]);
    let pods = "1 wanted, 1 there, 1 ready";
    assert!(config.contains(&format!("version 1 of {}", &commit[..7])) && config.contains(pods), "{config}");
    let run = world.tell(&["describe", "run/shop/default/web-1"]);
    assert!(run.contains("web-1") && run.contains(&commit) && run.contains("success"), "{run}");
    let revision = world.tell(&["describe", &format!("revision/{}", &commit[..7])]);
    assert!(revision.contains(&commit) && revision.contains("DeploymentConfig/web"), "{revision}");
    assert_refused(&world, &["describe", "dc/cart"], 1, &["no deployment config `cart`"]);
    assert_refused(&world, &["describe", "run/shop/default/web-9"], 1, &["no run `shop/default/web-9`"]);
    assert_refused(&world, &["describe", "pod/web-1-0"], 2, &["launchway get pods"]);
}

#[test]
fn a_deployment_config_is_described_with_its_hooks_and_what_may_not_be_meant_so() {
    let world = World::new(&[]);
    world.start();
    let hooked = format!("type: Recreate, recreateParams: {{{}}}", hook("pre", "Abort", "true"))
        .replace("containerName: main", "containerName: main, env: [{name: TOKEN, value: hunter2}]");
    let follows = sleeper("web", &hooked, "1").replace(
        "  template:",
        "  triggers: [{type: ConfigChange}, {type: ImageChange, imageChangeParams: {automatic: true, containerNames: [main], \
         from: {kind: ImageStreamTag, name: 'app:live'}}}]\n  template:",
    );
    world.deploy(&[("web.yaml", &follows)], "success");
    let told = world.tell(&["describe", "dc/web"]);
    let hook = "Strategy:    Recreate\n  Pre-deployment hook (pod type, failure policy: Abort):\n    Container: main\n    \
                Command:   sh -c true\n    Env:       TOKEN\n";
    assert!(told.contains(hook) && !told.contains("hunter2"), "{told}");
    let conditions =
        ["Conditions", "Available     True", "NewReplicationControllerAvailable", "\"web-1\" successfully"];
    assert!(conditions.iter().all(|words| told.contains(words)), "{told}");
    let warnings = ["Warnings", "no container has a readiness probe", "follows `app:live`"];
    assert!(warnings.iter().all(|words| told.contains(words)), "{told}");
    assert_eq!(world.json(&["describe", "dc/web"])["hooks"][0]["environment"], serde_json::json!(["TOKEN"]));
}

#[test]
fn versions_are_asked_for_as_openshifts_users_do() {
    let world = deployed();
    world.deploy(&[("web.yaml", &web("2"))], "success");
    let first = world.tell(&["rollout", "history", "dc/web", "--revision=1"]);
    let shown = ["openshift.io/web with revision #1\n", "Cause:", "first deployment", "Pod template\n", "value: '1'"];
    assert!(shown.iter().all(|words| first.contains(words)), "{first}");
    let absent = "unable to find the specified revision";
    assert_refused(&world, &["rollout", "history", "dc/web", "--revision=9"], 1, &[absent, "launchway history dc/web"]);
    let told = world.tell(&["rollout", "status", "dc/web", "--revision=1"]);
    assert!(told.contains("replication controller \"web-1\" successfully rolled out"), "{told}");
    assert_refused(&world, &["rollout", "status", "dc/web", "--revision=9"], 1, &[absent]);
    world.tell(&["logs", "dc/web", "--version=2"]);
    assert_refused(&world, &["logs", "dc/web", "--version=9"], 1, &["no pod of version 9 is kept", "--all"]);
    assert_refused(&world, &["logs", "pod/web-2-0", "--version=2"], 2, &["only a deployment config has versions"]);

    let undone = world.tell(&["rollout", "undo", "dc/web", "--dry-run=client"]);
    let known = "\n\ndeploymentconfig/web: from version 2 to what version 1 was\n  environment main/V: 2 -> 1\n";
    assert_eq!(undone, format!("deploymentconfig/web would be rolled back to version 1 (dry run){known}"));
    assert_refused(&world, &["rollout", "undo", "dc/web", "--to-revision=9", "--dry-run"], 1, &[absent]);
    let latest = world.tell(&["rollout", "latest", "dc/web", "--dry-run"]);
    assert_eq!(latest, "deploymentconfig/web would be rolled out as version 3 (dry run)\n");
    assert_eq!(only_config(&world)["latestVersion"], 2, "that was all");
    assert_eq!(world.json(&["get", "holds"])["items"], serde_json::json!([]));
    let name = world.tell(&["rollout", "latest", "dc/web", "-o", "name"]);
    assert_eq!(name, "deploymentconfig.apps.openshift.io/web\n");
    world.tell(&["rollout", "status", "dc/web"]);
    assert_eq!(only_config(&world)["serving"]["version"], 3);
    assert_refused(&world, &["get", "dc", "-o", "name"], 2, &["for `rollout latest` alone"]);

    let is_version = "`web-1` is version 1 of dc/web: `launchway";
    for (typed, instead) in [
        (&["rollback", "rc/web-1"][..], "rollback dc/web --to-version 1 -s default`"),
        (&["rollout", "cancel", "rc/web-1"], "rollout cancel dc/web -s default`"),
        (&["rollout", "undo", "rc/web-1"], "rollout undo dc/web --to-revision 1 -s default`"),
        (&["describe", "rc/web-1"], "rollout history dc/web --revision 1 -s default`"),
    ] {
        let said = ["there is no deployment config `web-1`", is_version, instead];
        assert_refused(&world, typed, 1, &said);
    }
    assert_refused(&world, &["rollback", "rc/web-9"], 1, &["there is no deployment config `web-9`"]);
}

#[test]
fn what_runs_were_told_is_listed_oldest_first() {
    let world = deployed();
    let all = world.json(&["events"])["items"].as_array().unwrap().clone();
    let numbers: Vec<i64> = all.iter().filter_map(|event| event["number"].as_i64()).collect();
    assert!(!numbers.is_empty() && numbers.is_sorted(), "{all:#?}");
    let of_run = world.json(&["events", "run/shop/default/web-1"])["items"].as_array().unwrap().clone();
    let of_config = world.json(&["events", "dc/web"])["items"].as_array().unwrap().clone();
    assert!(of_run.iter().any(|event| event["event"] == "served"), "{of_run:#?}");
    assert!(of_run.iter().all(|event| event["run"] == "shop/default/web-1"), "{of_run:#?}");
    assert_eq!(of_run, of_config, "of a deployment config, those of its latest version");
    let later = world.json(&["events", "--after", &numbers[0].to_string()])["items"].as_array().unwrap().clone();
    assert_eq!(later, all[1..]);
    assert_refused(&world, &["events", "run/shop/default/web-9"], 1, &["no run `shop/default/web-9`"]);
    assert_refused(&world, &["events", "pod/web-1-0"], 2, &["launchway get runs"]);
}

#[test]
fn a_command_runs_beside_the_processes_of_a_pod() {
    let world = deployed();
    eventually("a pod that is ready", || only_config(&world)["ready"] == 1);
    assert_eq!(world.tell(&["exec", "dc/web", "--", "sh", "-c", "echo $V in $POD_NAME"]), "1 in web-1-0\n");
    assert_refused(&world, &["exec", "dc/web", "--", "sh", "-c", "echo no >&2; exit 7"], 7, &["no"]);
    assert_refused(&world, &["exec", "dc/web", "--pod", "web-9-9", "--", "true"], 1, &["no pod"]);
    world.tell(&["scale", "dc/web", "--replicas", "0"]);
    eventually("no process of a pod", || world.processes().is_empty());
    assert_refused(&world, &["exec", "dc/web", "--", "true"], 1, &["no pod"]);
}

#[test]
fn a_rollout_that_is_cancelled_leaves_what_served() {
    let world = deployed();
    assert_refused(&world, &["rollout", "cancel", "dc/web"], 1, &["no rollout is in progress", "#1 complete"]);
    let waits = hook("pre", "Abort", "while :; do sleep 0.05; done");
    let strategy = format!("type: Recreate, recreateParams: {{{waits}}}");
    let commit = world.git.push_files(&[("web.yaml", &sleeper("web", &strategy, "2"))]);
    eventually("the hook runs", || world.pod_folders().contains_key("shop-default/web-2-hook-pre"));
    let told = world.tell(&["rollout", "status", "dc/web", "--no-watch"]);
    assert!(
        told.starts_with("Waiting for rollout to finish: 0 out of 1 new replicas have been updated... (at pre)"),
        "{told}"
    );
    assert!(world.tell(&["rollout", "cancel", "dc/web"]).contains("cancelling"));
    assert_refused(&world, &["rollout", "status", "dc/web"], 1, &["web-2", "was cancelled"]);
    world.status(&commit, "launchway/default", "cancelled");
    let config = only_config(&world);
    assert_eq!((&config["serving"]["version"], &config["status"]), (&1.into(), &"Cancelled".into()), "{config:#}");
    eventually("only the first version runs", || world.processes().len() == 2);
}

#[test]
fn a_rollback_restores_an_earlier_version_and_holds_it() {
    let world = deployed();
    assert_refused(&world, &["rollout", "undo", "dc/web"], 1, &["no previous deployment"]);
    let second = world.deploy(&[("web.yaml", &web("2"))], "success");
    assert_refused(&world, &["rollout", "undo", "dc/web", "--to-revision", "9"], 1, &["specified revision"]);
    assert!(world.tell(&["rollout", "undo", "dc/web"]).contains("version 1"));
    let told = world.tell(&["rollout", "status", "dc/web"]);
    assert!(told.contains("web-3") && told.contains("successfully rolled out"), "{told}");
    eventually("a pod that is ready", || only_config(&world)["ready"] == 1);
    assert_eq!(world.tell(&["exec", "dc/web", "--", "sh", "-c", "echo $V"]), "1\n");
    // What serves is not what Git says: its commit and the deployment config say so, until the hold is released.
    let waits = "a rollback of web to version 1";
    eventually("the head says that it waits", || world.notes(&second)["launchway/default/web"].1.contains(waits));
    world.status(&second, "launchway/default", "pending");
    let drift = format!("{} is held by", &second[..7]);
    assert!(only_config(&world)["drift"].as_str().unwrap().starts_with(&drift), "{:#}", only_config(&world));
    let commit = world.git.push_files(&[("web.yaml", &web("4"))]);
    eventually("the push waits", || {
        world.notes(&commit).values().any(|(_, description)| description.contains("a rollback of web to version 1"))
    });
    world.tell(&["release", only_hold(&world)["id"].as_str().unwrap()]);
    world.status(&commit, "launchway/default", "success");
    let config = only_config(&world);
    assert_eq!((&config["serving"]["version"], config.get("drift")), (&4.into(), None));
}

#[test]
fn what_nothing_needs_is_pruned_and_an_old_version_can_still_be_rolled_back_to() {
    let world = World::new(&[]);
    let bare = world.git.bare().display().to_string();
    world.start();
    for version in ["1", "2", "3"] {
        world.deploy(&[("web.yaml", &web(version))], "success");
    }
    // Only now: on a busy machine the daemon itself would have deleted some of it by then.
    world.configure(&format!("{}retention: {{most: 1}}\n", repository("shop", &bare, &[])));
    world.kill_group();
    world.start();
    let announced = world.tell(&["prune", "--dry-run"]);
    assert!(announced.starts_with("would delete ") && announced.contains("2 runs"), "{announced}");
    assert!(announced.contains("2 revisions"), "{announced}");
    let done = world.tell(&["prune"]);
    assert_eq!(done.replace("deleted", "would delete"), announced);
    assert_eq!(world.tell(&["prune"]), "deleted nothing\n");
    assert_eq!(world.json(&["get", "revisions"])["items"].as_array().unwrap().len(), 1);
    world.tell(&["rollout", "undo", "dc/web", "--to-revision", "1"]);
    world.tell(&["rollout", "status", "dc/web"]);
    assert_eq!(world.tell(&["exec", "dc/web", "--", "sh", "-c", "echo $V"]), "1\n");
}

#[test]
fn the_end_of_a_rollout_is_waited_for_and_told() {
    let world = deployed();
    let told = world.tell(&["rollout", "status", "dc/web"]);
    assert!(told.contains("replication controller \"web-1\" successfully rolled out"), "{told}");
    let fails = format!("type: Recreate, recreateParams: {{{}}}", hook("pre", "Abort", "exit 3"));
    world.deploy(&[("web.yaml", &sleeper("web", &fails, "2"))], "failure");
    assert_refused(&world, &["rollout", "status", "dc/web"], 1, &["\"web-2\" has failed progressing"]);
    assert_refused(&world, &["rollout", "status", "dc/cart"], 1, &["no deployment config `cart`"]);
}

#[test]
fn why_answers_for_everything_that_is_in_the_way_and_names_what_to_do() {
    let world = World::new(&[]);
    world.start();
    let broken = world.git.push_files(&[("web.yaml", "kind: DeploymentConfig\napiVersion: v1\nspec: [\n")]);
    world.status(&broken, "launchway/plan", "error");
    assert_refused(&world, &["why", "web"], 1, &[&broken[..7], "web.yaml", "launchway validate"]);

    let fails = format!("type: Recreate, recreateParams: {{{}}}", hook("pre", "Abort", "exit 3"));
    let commit = world.git.push_files(&[("shipyard.yaml", BY_HAND), ("web.yaml", &sleeper("web", &fails, "1"))]);
    world.status(&commit, "launchway/dev", "failure");
    let says = |stage: &str, words: &[&str]| {
        let told = world.tell(&["why", "web", "-s", stage]);
        assert!(words.iter().all(|word| told.contains(word)), "{stage}: {told}");
    };
    says("dev", &["version 1 of web failed, nothing serves", "launchway rollout retry dc/web -s dev"]);
    says("production", &["stage `dev` has not passed", "launchway why dc/web -s dev"]);
    says("spare", &["started by hand", "launchway trigger delivery -s spare"]);

    let commit = world.git.push_files(&[("web.yaml", &web("2"))]);
    world.status(&commit, "launchway/production", "success");
    says("production", &["waits for nothing"]);
    let broken = world.git.push_files(&[("web.yaml", "kind: DeploymentConfig\napiVersion: v1\nspec: [\n")]);
    world.status(&broken, "launchway/plan", "error");
    says("production", &[&broken[..7], "cannot be read", "web.yaml", "launchway validate"]);

    let paused = web("3").replace("replicas: 1", "replicas: 1\n  paused: true");
    let commit = world.git.push_files(&[("web.yaml", &paused)]);
    world.status(&commit, "launchway/plan", "success");
    says("dev", &["paused", "set `paused: false`"]);
    let holds = world.json(&["get", "holds"])["items"].as_array().unwrap().clone();
    let in_dev = |hold: &&Value| hold["scope"] == "shop/dev/web" && hold["kind"] == "paused" && hold["id"] == "dc/web";
    assert_eq!(holds.iter().filter(in_dev).count(), 1, "{holds:#?}");
    assert!(world.tell(&["get", "holds"]).contains("web.yaml"));
}

#[test]
fn why_says_nothing_of_what_is_applied_of_a_service_that_serves() {
    let world = World::new(&[]);
    world.start();
    let colors = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: colors}\ndata: {sky: blue}\n";
    world.deploy(&[("web.yaml", &web("1")), ("service.yaml", SERVICE), ("colors.yaml", colors)], "success");
    assert!(world.tell(&["why", "dc/web"]).contains("waits for nothing"));
}

#[test]
fn what_pods_refer_to_and_is_missing_holds_them_back_with_its_name_on_the_commit() {
    let world = World::new(&[]);
    world.start();
    let refers = web("1").replace("image: host", "image: host, envFrom: [{configMapRef: {name: colors}}]");
    let commit = world.git.push_files(&[("web.yaml", &refers)]);
    let missing = "configmap \"colors\" not found";
    eventually("the commit names it", || world.status(&commit, "launchway/default", "running").contains(missing));
    assert!(world.tell(&["why", "dc/web"]).contains(missing));
    let hook = hook("pre", "Abort", "true").replace(
        "containerName: main",
        "containerName: main, env: [{name: SKY, valueFrom: {configMapKeyRef: {name: colors, key: sky}}}]",
    );
    let hooked = sleeper("web", &format!("type: Rolling, rollingParams: {{{hook}}}"), "2");
    let commit = world.git.push_files(&[("web.yaml", &hooked)]);
    eventually("the hook's, too", || world.status(&commit, "launchway/default", "running").contains(missing));
    let colors = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: colors}\ndata: {sky: blue}\n";
    world.deploy(&[("web.yaml", &hooked), ("colors.yaml", colors)], "success");
    let key = web("1").replace("env: [", "env: [{name: SKY, valueFrom: {configMapKeyRef: {name: colors, key: sky}}}, ");
    assert!(key.contains("SKY"));
    world.deploy(&[("web.yaml", &key), ("colors.yaml", colors)], "success");
    let without = world.git.push_files(&[("colors.yaml", "# none\n")]);
    world.status(&without, "launchway/default", "success");
    assert_eq!(world.json(&["why", "dc/web"])["waiting"], false);
    world.tell(&["scale", "dc/web", "--replicas", "2"]);
    eventually("what is declared no longer is there for what reads it", || {
        world.json(&["get", "dc"])["items"][0]["ready"] == 2
    });
    world.deploy(&[("colors.yaml", &colors.replace("sky", "sea"))], "success");
    assert_eq!(world.json(&["why", "dc/web"])["waiting"], false);
    world.tell(&["scale", "dc/web", "--replicas", "3"]);
    let missing = "couldn't find key sky in ConfigMap";
    eventually("nobody deploys it, and why tells all the same", || {
        let why = world.json(&["why", "dc/web"]);
        let says = |reason: &Value| reason["message"].as_str().unwrap().starts_with(&format!("web: {missing}"));
        why["reasons"].as_array().unwrap().iter().any(says)
    });
}
