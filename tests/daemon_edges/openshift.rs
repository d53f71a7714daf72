//! Deployment configs as OpenShift's clients ask for them, and have them deployed.

use std::fs;

use serde_json::{Value, json};

use crate::daemon_edges::access::operators_token;
use crate::support::daemon::{World, config, eventually, hook, http};

const WEB: &str = "/apis/apps.openshift.io/v1/namespaces/shop-default/deploymentconfigs/web";

/// What an operator is answered.
fn ask(world: &World, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let bearer = format!("Bearer {}", operators_token(world).trim());
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let (code, answer) = http(&world.address(), method, path, &headers, body.to_string().as_bytes());
    (code, serde_json::from_str(&answer).unwrap_or_else(|_| json!(answer)))
}

/// A deployment config of one sleeping process with a variable, whose pre hook waits until there is a file.
fn declared(world: &World, variable: &str) -> String {
    let flag = world.git.path("flag").display().to_string();
    let hook = hook("pre", "Abort", &format!("until test -e {flag}; do sleep 0.05; done"));
    let container =
        format!("{{name: main, image: host, command: [sleep, '1000'], env: [{{name: V, value: '{variable}'}}]}}");
    config("web", &format!("type: Recreate, recreateParams: {{timeoutSeconds: 60, {hook}}}"), &container)
}

fn serves(world: &World, version: u32, variable: &str) {
    eventually("what serves", || {
        let web = ask(world, "GET", WEB, &json!({})).1;
        let variables = &web["spec"]["template"]["spec"]["containers"][0]["env"];
        let serving = world.json(&["get", "dc", "web"])["items"][0]["serving"]["version"] == version;
        serving && web["status"]["availableReplicas"] == 1 && variables == &json!([{"name": "V", "value": variable}])
    });
}

#[test]
fn a_version_is_asked_for_and_a_rollback_is_generated_and_put() {
    let world = World::new(&[]);
    world.start();
    let flag = world.git.path("flag");
    fs::write(&flag, "").unwrap();
    world.deploy(&[("web.yaml", &declared(&world, "1"))], "success");
    world.deploy(&[("web.yaml", &declared(&world, "2"))], "success");
    serves(&world, 2, "2");

    fs::remove_file(&flag).unwrap();
    let instantiate = format!("{WEB}/instantiate");
    let request = json!({"kind": "DeploymentRequest", "apiVersion": "apps.openshift.io/v1", "name": "web", "latest": true, "force": true});
    let (code, web) = ask(&world, "POST", &instantiate, &request);
    assert_eq!((code, &web["status"]["latestVersion"], &web["kind"]), (201, &json!(3), &json!("DeploymentConfig")));
    let (code, busy) = ask(&world, "POST", &instantiate, &request);
    assert_eq!((code, &busy["kind"], &busy["reason"]), (409, &json!("Status"), &json!("Conflict")), "{busy}");
    assert!(busy["message"].as_str().unwrap().contains("#3 is already in progress"), "{busy}");
    fs::write(&flag, "").unwrap();
    serves(&world, 3, "2");

    let rollback = json!({"name": "web", "spec": {"revision": 1, "includeTemplate": true}});
    let (code, candidate) = ask(&world, "POST", &format!("{WEB}/rollback"), &rollback);
    assert_eq!((code, &candidate["status"]["latestVersion"]), (201, &json!(4)), "{candidate}");
    assert_eq!(candidate["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"], "1");
    let mut other = candidate.clone();
    other["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"] = json!("3");
    let (code, refused) = ask(&world, "PUT", WEB, &other);
    assert_eq!((code, &refused["reason"]), (422, &json!("Invalid")), "{refused}");
    serves(&world, 3, "2");
    let (code, web) = ask(&world, "PUT", WEB, &candidate);
    assert_eq!((code, &web["status"]["latestVersion"]), (200, &json!(4)), "{web}");
    serves(&world, 4, "1");
    let history = world.json(&["rollout", "history", "dc/web"])["items"].clone();
    assert_eq!(history[3]["cause"], "rollback of the template to version 1 by operator");
    assert_eq!(world.json(&["get", "holds"])["items"][0]["kind"], "rollback", "the next push does not undo it");
    let (code, moved) = ask(&world, "PUT", WEB, &candidate);
    assert_eq!((code, &moved["reason"]), (409, &json!("Conflict")), "{moved}");
}

#[test]
fn the_generator_brings_the_images_to_which_tags_lead_now() {
    let world = World::new(&[]);
    world.start();
    let stream = |image: &str| {
        format!(
            "apiVersion: image.openshift.io/v1\nkind: ImageStream\nmetadata: {{name: app}}\nspec:\n  tags:\n  \
             - {{name: prod, from: {{kind: DockerImage, name: '{image}'}}}}\n"
        )
    };
    let trigger = "  triggers:\n  - {type: ImageChange, imageChangeParams: {automatic: false, containerNames: [main], \
                   from: {kind: ImageStreamTag, name: 'app:prod'}}}\n";
    let web = config("web", "type: Recreate", "{name: main, image: 'git:one', command: [sleep, '1000']}") + trigger;
    let files = |image: &str| {
        [("is.yaml", stream(image)), ("web.yaml", web.clone()), ("one/a", "1".into()), ("two/a", "2".into())]
    };
    let push = |image: &str| {
        let files = files(image);
        world.git.push_files(&files.each_ref().map(|(path, text)| (*path, text.as_str())));
        world.tell(&["sync"]);
    };
    let image = |config: &Value| {
        config["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap_or_default().to_owned()
    };
    let files = files("git:one").map(|(path, text)| (path, text.replace("name: prod", "name: other")));
    world.git.push_files(&files.each_ref().map(|(path, text)| (*path, text.as_str())));
    world.tell(&["sync"]);
    let newest = json!({"name": "web", "latest": true, "force": true});
    let (code, refused) = ask(&world, "POST", &format!("{WEB}/instantiate"), &newest);
    assert_eq!((code, &refused["reason"]), (400, &json!("BadRequest")), "{refused} {}", world.tell(&["get", "dc"]));
    let expected = "cannot trigger a deployment for \"web\" because it contains unresolved images";
    assert!(refused["message"].as_str().unwrap().starts_with(expected), "{refused}");

    push("git:one");
    let generator = "/generateDeploymentConfigs/web";
    let (code, first) = ask(&world, "GET", generator, &json!({}));
    assert_eq!((code, image(&first).contains("one")), (200, true), "{first}");
    let (code, put) = ask(&world, "PUT", "/deploymentConfigs/web", &first);
    assert_eq!((code, &put["status"]["latestVersion"]), (200, &json!(1)), "{put}");
    eventually("version 1 serves", || world.json(&["get", "dc", "web"])["items"][0]["serving"]["version"] == 1);

    push("git:two");
    let same = ask(&world, "GET", WEB, &json!({})).1;
    let (code, next) = ask(&world, "GET", generator, &json!({}));
    assert_eq!((code, image(&same).contains("one"), image(&next).contains("two")), (200, true, true), "{next}");
    assert_eq!(next["status"]["latestVersion"], 2);
    let again = json!({"name": "web", "latest": false, "force": true});
    let (code, web) = ask(&world, "POST", &format!("{WEB}/instantiate"), &again);
    assert_eq!((code, image(&web).contains("one")), (201, true), "{web}");
}
