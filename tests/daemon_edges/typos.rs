//! A typo never deletes: what was declared runs on, and `validate`, `plan` and the commit say what was meant.

use crate::support::daemon::{World, sleeper};

const SERVICE: &str =
    "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 8099}]}\n";

#[test]
fn a_typo_in_a_type_never_deletes() {
    let world = World::new(&[]);
    world.start();
    let (web, work) = (sleeper("web", "type: Recreate", "1"), world.git.work().display().to_string());
    let first = world.deploy(&[("web.yaml", &web), ("service.yaml", SERVICE)], "success");
    let service = |from: &str, to: &str| ("service.yaml", SERVICE.replace(from, to));
    let config = |from: &str, to: &str| ("web.yaml", web.replace(from, to));
    // What it was, as only its place tells, and what `validate` can tell from the file alone.
    let table = [
        (config("DeploymentConfig", "deploymentconfig"), "did you mean `DeploymentConfig`?", true),
        (config("DeploymentConfig", "DeploymentConfg"), "did you mean `DeploymentConfig`?", true),
        (service("Service", "service"), "did you mean `Service`?", true),
        (service("v1", "v2"), "did you mean `v1`?", true),
        (service("apiVersion: v1\n", ""), "write `apiVersion: v1`", true),
        (service("kind:", "Kind:"), "did you mean `kind`?", true),
        (service("Service", "Srv"), "Service/web was declared here: did you mean `Service`?", false),
        (config("DeploymentConfig", "StatefulSet"), "DeploymentConfig/web was declared here", false),
    ];
    for ((file, text), hint, alone) in table {
        let commit = world.git.push_files(&[("web.yaml", &web), ("service.yaml", SERVICE), (file, &text)]);
        world.tell(&["sync"]);
        let why = world.status(&commit, "launchway/plan", "error");
        assert!(why.contains(&format!("{file}:")), "{text}: {why}");
        for from in [first.as_str(), "applied"] {
            let plan = world.run(&["plan", &work, "--from", from, "-o", "json"]);
            let told = String::from_utf8_lossy(&plan.stdout).into_owned();
            assert_eq!(plan.status.code(), Some(1), "{text}: {told}");
            assert!(told.contains(hint) && !told.contains("\"delete\""), "{text}: {told}");
        }
        let validated = world.run(&["validate", &work]);
        let told = String::from_utf8_lossy(&validated.stdout).into_owned();
        assert!(!alone || validated.status.code() == Some(1) && told.contains(hint), "{text}: {told}");
    }
    let kept = |kind: &str| world.json(&["get", kind])["items"].as_array().map_or(0, Vec::len);
    assert_eq!((kept("dc"), kept("services")), (1, 1), "nothing was deleted");
}
