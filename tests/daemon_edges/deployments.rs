//! Kubernetes' `Deployment`, with the hooks and rollbacks that it has nowhere else.

use serde_json::Value;

use crate::support::daemon::{World, complaint, config, eventually};

/// A `Deployment` of one sleeping process, with more lines of its metadata and of its spec.
fn deployment(metadata: &str, spec: &str, variable: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n{metadata}spec:\n{spec}  selector:\n    matchLabels: {{app: web}}\n  \
         template:\n    metadata: {{labels: {{app: web}}}}\n    spec:\n      terminationGracePeriodSeconds: 1\n      containers:\n        - \
         {{name: main, image: host, command: [sleep, '1000'], env: [{{name: V, value: '{variable}'}}]}}\n"
    )
}

/// The hooks of a `Deployment`: one that runs before anything changes.
fn checked(script: &str) -> String {
    format!(
        "  annotations:\n    launchway.dev/hooks: |\n      pre:\n        failurePolicy: Abort\n        execNewPod: {{command: [sh, -c, '{script}']}}\n"
    )
}

/// When the pods of the deployment were started, in order.
fn started(world: &World) -> Vec<String> {
    let pods = world.json(&["get", "pods"]);
    let names = pods["items"].as_array().into_iter().flatten().map(|pod| pod["name"].to_string());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

fn desired(world: &World) -> u64 {
    world.json(&["get", "deploy"])["items"][0]["desired"].as_u64().unwrap()
}

#[test]
fn a_deployment_has_hooks_and_goes_back_in_the_words_of_kubectl() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &deployment(&checked("true"), "", "1"))], "success");
    assert_eq!(world.json(&["get", "deploy"])["items"][0]["kind"], "Deployment");
    assert_eq!(desired(&world), 1, "as in Kubernetes, where nobody says how many");
    assert_eq!(world.tell(&["rollout", "status", "deploy/web"]), "deployment \"web\" successfully rolled out\n");
    assert!(world.tell(&["rollout", "history", "deployment/web"]).starts_with("deployment.apps/web\n"));

    let bad = world.deploy(&[("web.yaml", &deployment(&checked("exit 3"), "", "2"))], "failure");
    assert!(world.status(&bad, "launchway/default/web/pre", "failure").contains("exit code 3"));
    let good = world.deploy(&[("web.yaml", &deployment(&checked("true"), "", "3"))], "success");
    world.status(&good, "launchway/default/web/pre", "success");
    let undone = world.tell(&["rollout", "undo", "deploy/web"]);
    let lines = [
        "deployment.apps/web rolled back to version 1; its service is held",
        "",
        "deployment.apps/web: from version 3 to what version 1 was",
        "  environment main/V: 3 -> 1",
        "  runs pre (Abort): sh -c true",
        "  warning: the hooks that run are those that are declared now, not those of version 1",
    ];
    assert_eq!(undone.lines().collect::<Vec<_>>(), lines);
    eventually("version 4 serves", || started(&world).iter().all(|pod| pod.contains("web-4")));
}

#[test]
fn a_number_of_pods_that_is_declared_no_longer_stays() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &deployment("", "  replicas: 2\n", "1"))], "success");
    let pods = started(&world);
    world.deploy(&[("web.yaml", &deployment("", "", "1"))], "success");
    assert_eq!((desired(&world), started(&world)), (2, pods));
    world.tell(&["scale", "deploy/web", "--replicas", "3"]);
    world.deploy(&[("web.yaml", &deployment("", "", "2"))], "success");
    assert_eq!(desired(&world), 3, "what a person scaled stays too");
    world.deploy(&[("web.yaml", &deployment("", "  replicas: 1\n", "2"))], "success");
    assert_eq!(desired(&world), 1, "until Git asks for another number");
}

#[test]
fn a_deployment_takes_over_a_deployment_config_of_its_name_with_its_pods() {
    let world = World::new(&[]);
    world.start();
    let container = "{name: main, image: host, command: [sleep, '1000'], env: [{name: V, value: '1'}]}";
    let before = config("web", "type: Rolling", container);
    let first = world.deploy(&[("web.yaml", &before)], "success");
    let pods = started(&world);
    let after = before
        .replace("apps.openshift.io/v1", "apps/v1")
        .replace("kind: DeploymentConfig", "kind: Deployment")
        .replace("  strategy: {type: Rolling}\n", "")
        .replace("selector: {app: web}", "selector: {matchLabels: {app: web}}");
    let work = world.git.work().display().to_string();
    let second = world.deploy(&[("web.yaml", &after)], "success");
    let plan = world.json(&["plan", &work, "--from", &first]);
    let change = |key: &str| plan["changes"][0][key].clone();
    assert_eq!((change("kind"), change("decision")), (Value::from("Deployment"), Value::from("update")), "{plan}");
    assert_eq!(started(&world), pods, "what runs goes on");
    assert_eq!(world.tell(&["rollout", "history", "deploy/web"]).lines().count(), 3, "with its history");

    let both = world.git.push_files(&[("other.yaml", &before)]);
    let why = world.status(&both, "launchway/plan", "error");
    assert!(why.contains("Deployment/web is the same as DeploymentConfig/web"), "{why}");
    assert_eq!(started(&world), pods);
    let other = before.replace("{name: web}", "{name: other}").replace("app: web", "app: other");
    let left = world.deploy(&[("other.yaml", &other), ("web.yaml", "")], "success");
    let plan = world.json(&["plan", &work, "--from", &second, "--to", &left]);
    let changes = plan["changes"].as_array().unwrap();
    let gone = changes.iter().find(|change| change["decision"] == "delete").unwrap();
    assert_eq!((&gone["kind"], &gone["name"]), (&"Deployment".into(), &"web".into()));
}

#[test]
fn the_selector_of_a_deployment_stays() {
    let world = World::new(&[]);
    world.start();
    let web = deployment("", "", "1");
    world.deploy(&[("web.yaml", &web)], "success");
    let pods = started(&world);
    let changed = world.git.push_files(&[("web.yaml", &web.replace("app: web", "app: other"))]);
    let why = world.status(&changed, "launchway/plan", "failure");
    assert!(why.contains("the selector of Deployment/web cannot be changed (web.yaml:1:1)"), "{why}");
    assert_eq!(started(&world), pods);
    let work = world.git.work().display().to_string();
    let plan = world.run(&["plan", &work, "--from", "applied"]);
    assert_eq!(plan.status.code(), Some(1), "{}", complaint(&plan));
    world.deploy(&[("web.yaml", &deployment("", "  paused: true\n", "1"))], "success");
    let undo = world.run(&["rollout", "undo", "deploy/web"]);
    assert!(complaint(&undo).contains("cannot rollback a paused deployment"), "{}", complaint(&undo));
}

#[test]
fn a_hook_has_an_image_variables_and_retries_of_its_own() {
    let world = World::new(&[]);
    world.start();
    let tries = world.git.path("tries");
    let secret =
        "apiVersion: v1\nkind: Secret\nmetadata: {name: database}\nstringData: {URL: 'postgres://somewhere'}\n";
    let hook = format!(
        "  annotations:\n    launchway.dev/hooks: |\n      pre:\n        failurePolicy: Retry\n        retries: 1\n        image: git:migrations\n        \
         envFrom: [{{secretRef: {{name: database}}}}]\n        execNewPod: {{command: [bin/migrate, '{}']}}\n",
        tries.display()
    );
    let script = "#!/bin/sh\necho \"$URL\" >> \"$1\"\nexit 7\n";
    world.git.write_program(&world.git.work().join("migrations/bin/migrate"), script);
    let files = [("web.yaml", deployment(&hook, "", "1")), ("secret.yaml", secret.to_owned())];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    let failed = world.deploy(&files, "failure");
    let why = world.status(&failed, "launchway/default/web/pre", "failure");
    assert!(why.contains("exit code 7"), "{why}");
    assert_eq!(std::fs::read_to_string(&tries).unwrap(), "postgres://somewhere\n".repeat(2), "once, and once again");

    world.git.write_program(&world.git.work().join("migrations/bin/migrate"), "#!/bin/sh\nexit 0\n");
    world.deploy(&[], "success");
}
