//! The verbs that change a user's files, on work trees as people have them.

#![expect(clippy::unwrap_used, reason = "a failing test panics")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

const WEB: &str = "\
# The shop's front.
apiVersion: apps.openshift.io/v1
kind: DeploymentConfig
metadata: {name: web}
spec:
  replicas: 1
  triggers:
  - type: ConfigChange   # every push
  strategy:
    type: Rolling
    rollingParams:
      timeoutSeconds: 60   # it is slow
  selector: {app: web}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: host
        command: [/bin/sleep, '1000']
";

const CART: &str = "\
apiVersion: v1
kind: Service
metadata: {name: cart}
spec: {selector: {app: cart}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: cart   # and nothing else
spec:
  selector: {matchLabels: {app: cart}}
  template:
    metadata: {labels: {app: cart}}
    spec:
      containers:
      - {name: cart, image: host, command: [/bin/sleep, '1000']}
";

fn work_tree(files: &[(&str, &str)]) -> TempDir {
    let tree = tempfile::tempdir().unwrap();
    fs::create_dir(tree.path().join(".git")).unwrap();
    for (name, text) in files {
        let path = tree.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    tree
}

fn launchway(tree: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_launchway"));
    command.args(arguments).current_dir(tree).env_clear().env("HOME", tree).output().unwrap()
}

/// What a command prints that succeeds, and what it remarks.
fn told(tree: &Path, arguments: &[&str]) -> (String, String) {
    let output = launchway(tree, arguments);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    (text(&output.stdout), text(&output.stderr))
}

fn refused(tree: &Path, arguments: &[&str], code: i32, said: &str) {
    let output = launchway(tree, arguments);
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {complaint}");
    assert!(complaint.contains(said), "{arguments:?}: {complaint}");
}

fn sound(tree: &Path) {
    told(tree, &["validate"]);
}

#[test]
fn triggers_are_listed_and_changed_in_their_file() {
    let tree = work_tree(&[("deploy/web.yaml", WEB), ("deploy/cart.yaml", CART)]);
    let at = tree.path();
    let file = at.join("deploy/web.yaml");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let (listed, _) = told(at, &["set", "triggers", "dc/web"]);
    assert_eq!(
        listed,
        "NAME                    TYPE     VALUE   AUTO\ndeploymentconfigs/web   config   -       true\n"
    );

    let (difference, _) = told(at, &["set", "triggers", "dc/web", "--manual", "--dry-run"]);
    assert!(difference.contains("--- a/deploy/web.yaml\n+++ b/deploy/web.yaml\n"), "{difference}");
    assert!(
        difference.contains("-  triggers:\n-  - type: ConfigChange   # every push\n+  triggers: []\n"),
        "{difference}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), WEB);

    let (done, remark) = told(at, &["set", "triggers", "dc/web", "--manual"]);
    assert_eq!(done, "deploymentconfig.apps.openshift.io/web triggers updated\n");
    assert!(remark.contains("`deploy/web.yaml` is changed: commit and push it"), "{remark}");
    let manual = WEB.replace("  triggers:\n  - type: ConfigChange   # every push\n", "  triggers: []\n");
    assert_eq!(fs::read_to_string(&file).unwrap(), manual);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    let (again, remark) = told(at, &["set", "triggers", "dc/web", "--manual"]);
    assert!(again.is_empty() && remark.contains("nothing to change in `deploy/web.yaml`"), "{again}{remark}");
    sound(at);

    told(at, &["set", "triggers", "deploy/cart", "--from-image=shop/cart:latest", "--containers=cart", "--manual"]);
    let (listed, _) = told(at, &["set", "triggers", "deploy/cart", "-o", "json"]);
    assert!(listed.contains("\"value\": \"shop/cart:latest (cart)\""), "{listed}");
    assert!(fs::read_to_string(at.join("deploy/cart.yaml")).unwrap().contains("  name: cart   # and nothing else\n"));
    sound(at);
}

#[test]
fn hooks_are_set_and_removed_in_their_file() {
    let tree = work_tree(&[("deploy/web.yaml", WEB), ("deploy/cart.yaml", CART)]);
    let at = tree.path();
    let set =
        ["set", "deployment-hook", "dc/web", "--pre", "-e", "STEP=pre", "--volumes=data", "--failure-policy=abort"];
    let (done, remark) = told(at, &[&set[..], &["--", "bin/migrate", "--all"]].concat());
    assert_eq!(done, "deploymentconfig.apps.openshift.io/web hooks updated\n");
    assert!(remark.contains("deployment config \"web\" does not have a volume named \"data\""), "{remark}");
    let hook = "      pre:\n        failurePolicy: Abort\n        execNewPod:\n          command:\n          - bin/migrate\n          - \"--all\"\n          containerName: web\n          env:\n          - name: STEP\n            value: pre\n          volumes:\n          - data\n";
    let slow = "      timeoutSeconds: 60   # it is slow\n";
    let with_hook = WEB.replace(slow, &format!("{slow}{hook}"));
    assert_eq!(fs::read_to_string(at.join("deploy/web.yaml")).unwrap(), with_hook);
    sound(at);
    told(at, &["set", "deployment-hook", "dc/web", "--remove", "--pre", "--post"]);
    assert_eq!(fs::read_to_string(at.join("deploy/web.yaml")).unwrap(), WEB);

    told(at, &["set", "deployment-hook", "deploy/cart", "--post", "--", "bin/check"]);
    let cart = fs::read_to_string(at.join("deploy/cart.yaml")).unwrap();
    let annotation = "  name: cart   # and nothing else\n  annotations:\n    launchway.dev/hooks: |\n      post:\n        failurePolicy: Ignore\n";
    assert!(cart.contains(annotation), "{cart}");
    sound(at);
    let (ours, _) = told(at, &["set", "deployment-hook", "deploy/cart", "--post", "--dry-run", "--", "bin/check"]);
    assert!(ours.is_empty(), "{ours}");
}

#[test]
fn what_is_asked_for_wrongly_changes_nothing() {
    let two = "{\"apiVersion\": \"v1\", \"kind\": \"DeploymentConfig\", \"metadata\": {\"name\": \"web\"}}";
    let tree = work_tree(&[("a/web.yaml", WEB), ("b/web.json", two)]);
    let at = tree.path();
    for (arguments, code, said) in [
        (&["set", "triggers", "dc/web", "--manual"][..], 2, "-f a/web.yaml (line 2)\n  -f b/web.json (line 1)"),
        (&["set", "triggers", "dc/api", "--manual"], 1, "there is no deployment config `api` in the work tree here"),
        (&["set", "triggers", "dc/web", "--auto", "--manual"], 2, "at most one of --auto or --manual"),
        (&["set", "triggers", "dc/web", "--remove"], 2, "--remove requires a flag"),
        (&["set", "triggers", "dc/web", "--from-image=web"], 2, "must include the tag"),
        (&["set", "triggers", "dc/web", "-f", "a/web.yaml", "--from-image=web:1", "-c", "db"], 1, "(accepts: web)"),
        (&["set", "deployment-hook", "dc/web", "--", "a"], 2, "you must specify one of --pre, --mid, or --post"),
        (&["set", "deployment-hook", "dc/web", "--pre"], 2, "you must specify a command"),
        (&["set", "deployment-hook", "dc/web", "--pre", "-e", "A", "--", "a"], 2, "write it as NAME=VALUE"),
        (
            &["set", "deployment-hook", "dc/web", "-f", "a/web.yaml", "--pre", "-e", "1A=b", "--", "a"],
            2,
            "`1A` must be",
        ),
        (&["migrate", "deploymentconfig", "c.yaml"], 3, "cannot read `c.yaml`"),
    ] {
        refused(at, arguments, code, said);
    }
    assert_eq!(fs::read_to_string(at.join("a/web.yaml")).unwrap(), WEB);
    std::os::unix::fs::symlink("a/web.yaml", at.join("link.yaml")).unwrap();
    refused(at, &["migrate", "deploymentconfig", "link.yaml", "--write"], 1, "no regular file");
}

#[test]
fn a_deployment_config_is_migrated_in_its_file() {
    let service = "apiVersion: v1\nkind: Service # mine\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n---\n";
    let hook = "      pre: {failurePolicy: Abort, execNewPod: {command: [/bin/true]}} # first\n";
    let slow = "      timeoutSeconds: 60   # it is slow\n";
    let text = format!("{service}{}", WEB.replace(slow, &format!("{slow}{hook}")));
    let tree = work_tree(&[("deploy/web.yaml", &text)]);
    let at = tree.path();
    let (printed, remarks) = told(at, &["migrate", "deploymentconfig", "deploy/web.yaml"]);
    assert!(remarks.contains("the comment `# every push` stood at something that is gone"), "{remarks}");
    assert_eq!(fs::read_to_string(at.join("deploy/web.yaml")).unwrap(), text);
    told(at, &["migrate", "dc", "deploy/web.yaml", "--write"]);
    assert_eq!(fs::read_to_string(at.join("deploy/web.yaml")).unwrap(), printed);
    assert!(printed.starts_with(service), "{printed}");
    let in_braces = "{name: web, annotations: {launchway.dev/hooks: \"pre: {failurePolicy: Abort";
    assert!(printed.contains(in_braces), "{printed}");
    sound(at);
    refused(at, &["migrate", "dc", "deploy/web.yaml"], 1, "there is no DeploymentConfig in `deploy/web.yaml`");
}

#[test]
fn a_shipyard_is_migrated_in_its_file() {
    let old = include_str!("manifest/shipyard-0.1.yaml");
    let tree = work_tree(&[("shipyard.yaml", old)]);
    let at = tree.path();
    let problems = String::from_utf8_lossy(&launchway(at, &["validate"]).stdout).into_owned();
    assert!(problems.contains("`launchway migrate shipyard FILE --write` makes it one of 0.2"), "{problems}");
    let (printed, remarks) = told(at, &["migrate", "shipyard", "shipyard.yaml"]);
    assert_eq!(printed, include_str!("manifest/shipyard-0.1-migrated.yaml"));
    assert!(remarks.contains("staging: `rollback` waits for `staging.artifact-delivery.finished`"), "{remarks}");
    let (json, _) = told(at, &["migrate", "shipyard", "shipyard.yaml", "-o", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((json["text"].as_str(), json["notes"].as_array().map(Vec::len)), (Some(&*printed), Some(5)), "{json}");
    assert_eq!(fs::read_to_string(at.join("shipyard.yaml")).unwrap(), old);
    told(at, &["migrate", "shipyard", "shipyard.yaml", "--write"]);
    assert_eq!(fs::read_to_string(at.join("shipyard.yaml")).unwrap(), printed);
    sound(at);
    refused(at, &["migrate", "shipyard", "shipyard.yaml"], 1, "there is no Shipyard of 0.1 in `shipyard.yaml`");
}

/// A project that moves to a `Deployment` deploys nothing.
#[test]
fn what_is_migrated_plans_to_nothing() {
    let tree = tempfile::tempdir().unwrap();
    let at = tree.path();
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"]);
        let output = command.args(arguments).current_dir(at).env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    git(&["init", "--quiet"]);
    fs::write(at.join("web.yaml"), WEB).unwrap();
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "one"]);
    told(at, &["migrate", "deploymentconfig", "web.yaml", "--write"]);
    git(&["commit", "--quiet", "-am", "two"]);
    let (plan, _) = told(at, &["plan", "--from", "HEAD~1", "-o", "json"]);
    assert!(!plan.contains("\"deploy\""), "{plan}");
    refused(at, &["plan", "--from", "nope"], 2, "`nope` names no commit");
    refused(at, &["plan", "--to", "nope"], 2, "`nope` names no commit");
    refused(at, &["plan", "-s", "prodcution"], 2, "has no stage `prodcution`");
}
