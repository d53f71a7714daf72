//! Images that come by the tags of image streams.

use crate::daemon_edges::verbs::assert_refused;
use crate::support::daemon::{World, config, eventually};

/// A stream whose tags lead to what is given, each as `<tag>=<image>`, or as `<tag>=@<other tag>`.
fn stream(tags: &[&str]) -> String {
    let tag = |text: &&str| {
        let (name, from) = text.split_once('=').unwrap();
        match from.strip_prefix('@') {
            Some(tag) => format!("  - {{name: {name}, from: {{kind: ImageStreamTag, name: '{tag}'}}}}\n"),
            None => format!("  - {{name: {name}, from: {{kind: DockerImage, name: '{from}'}}}}\n"),
        }
    };
    let tags: String = tags.iter().map(tag).collect();
    format!("apiVersion: image.openshift.io/v1\nkind: ImageStream\nmetadata: {{name: app}}\nspec:\n  tags:\n{tags}")
}

/// A deployment config with a container for each `<auto or hand> <container> <tag>`, which has no image but that of its
/// trigger, and writes what is in it to a file of its name. `more` are the triggers beside.
fn web(world: &World, more: &str, images: &[&str]) -> String {
    let (mut triggers, mut containers) = (more.to_owned(), String::new());
    for image in images {
        let (how, rest) = image.split_once(' ').unwrap();
        let (container, tag) = rest.split_once(' ').unwrap();
        let from = format!("from: {{kind: ImageStreamTag, name: 'app:{tag}'}}");
        let params = format!("automatic: {}, containerNames: [{container}], {from}", how == "auto");
        triggers += &format!("  - {{type: ImageChange, imageChangeParams: {{{params}}}}}\n");
        let file = world.git.path(container).display().to_string();
        let command = format!("[sh, -c, 'cat text >> {file}; exec sleep 1000']");
        containers += &format!("      - {{name: {container}, image: ' ', command: {command}}}\n");
    }
    format!(
        "apiVersion: apps.openshift.io/v1\nkind: DeploymentConfig\nmetadata: {{name: web}}\nspec:\n  replicas: 1\n  \
         selector: {{app: web}}\n  strategy: {{type: Recreate}}\n  triggers:\n{triggers}  template:\n    \
         metadata: {{labels: {{app: web}}}}\n    spec:\n      terminationGracePeriodSeconds: 1\n      containers:\n{containers}"
    )
}

const CONFIG_CHANGE: &str = "  - {type: ConfigChange}\n";

/// What `rollout history` says of the causes, and which version serves.
fn story(world: &World) -> String {
    let history = world.json(&["rollout", "history", "dc/web"]);
    let causes = history["items"].as_array().unwrap().iter().map(|row| row["cause"].as_str().unwrap().to_owned());
    let serving = &world.json(&["get", "dc", "web"])["items"][0]["serving"]["version"];
    format!("{} ({serving})", causes.collect::<Vec<_>>().join("; "))
}

#[test]
fn a_tag_that_leads_to_another_image_deploys_it() {
    let world = World::new(&[]);
    world.start();
    let dc = web(&world, CONFIG_CHANGE, &["auto main prod"]);
    let tags = |prod: &str| stream(&[&format!("prod=@{prod}"), "one=git:one", "two=git:two"]);
    let files = [("is.yaml", tags("one")), ("web.yaml", dc), ("one/text", "1\n".into()), ("two/text", "2\n".into())];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    world.deploy(&files, "success");
    assert_eq!(story(&world), "first deployment (1)");
    let written = |expected: &[&str]| eventually("what its image holds", || world.lines("main") == expected);
    written(&["1"]);

    world.deploy(&[("is.yaml", &tags("two"))], "success");
    assert_eq!(story(&world), "first deployment; image change (app:prod) (2)");
    written(&["1", "2"]);

    // The folder of the image is pushed, and nothing else: the tag leads to another image all the same.
    let commit = world.deploy(&[("two/text", "3\n")], "success");
    assert_eq!(story(&world), "first deployment; image change (app:prod); image change (app:prod) (3)");
    written(&["1", "2", "3"]);
    let plan = world.json(&["plan", &world.git.work().display().to_string(), "--from", "HEAD~1"]);
    let of_config = plan["changes"].as_array().unwrap().iter().find(|it| it["kind"] == "DeploymentConfig").unwrap();
    assert_eq!((&of_config["decision"], &of_config["cause"]), (&"deploy".into(), &"image change (app:prod)".into()));
    assert_eq!(of_config["reasons"].as_array().unwrap().len(), 1, "{of_config}");

    let details = &world.json(&["rollout", "history", "dc/web"])["items"][2]["details"];
    assert_eq!(
        *details,
        serde_json::json!({"message": "image change (app:prod)", "causes": [{
            "type": "ImageChange", "imageTrigger": {"from": {"kind": "ImageStreamTag", "name": "app:prod"}},
        }]})
    );

    // One that it does not lead to is of no concern to it.
    let aside = world.deploy(&[("one/text", "4\n")], "success");
    assert_ne!(aside, commit);
    assert_eq!(world.json(&["get", "dc"])["items"][0]["latestVersion"], 3);
    let listed = world.tell(&["get", "is"]);
    assert!(listed.lines().any(|line| line.starts_with("app:prod") && line.contains("git:two@")), "{listed}");
    assert_eq!(world.json(&["get", "dc"])["items"][0]["triggers"], "config,image(app:prod)");
}

#[test]
fn a_trigger_that_is_not_automatic_waits_for_a_person() {
    let world = World::new(&[]);
    world.start();
    let dc = web(&world, CONFIG_CHANGE, &["hand main prod"]);
    let is = stream(&["prod=git:one"]);
    let commit = world.deploy(&[("is.yaml", &is), ("web.yaml", &dc), ("one/text", "1\n")], "cancelled");
    let told = world.notes(&commit)["launchway/default/web"].1.clone();
    assert!(told.contains("an image trigger (`app:prod`) that is not automatic, `launchway rollout latest`"), "{told}");

    world.tell(&["rollout", "latest", "dc/web"]);
    world.tell(&["rollout", "status", "dc/web"]);
    eventually("what its image holds", || world.lines("main") == ["1"]);
    let described = world.tell(&["describe", "dc/web"]);
    assert!(described.contains("from app:prod (not automatic) in main"), "{described}");

    // What is pushed into the folder stays there, also where something else is deployed.
    world.deploy(&[("one/text", "2\n")], "success");
    assert_eq!(world.json(&["get", "dc"])["items"][0]["latestVersion"], 1);
    let dc = dc.replace("terminationGracePeriodSeconds: 1", "terminationGracePeriodSeconds: 2");
    world.deploy(&[("web.yaml", &dc)], "success");
    assert_eq!(world.json(&["get", "dc"])["items"][0]["latestVersion"], 2);
    eventually("what its image holds", || world.lines("main") == ["1", "1"]);
    world.tell(&["rollout", "latest", "dc/web"]);
    world.tell(&["rollout", "status", "dc/web"]);
    eventually("what its image holds", || world.lines("main") == ["1", "1", "2"]);

    // What serves is what was asked for: nothing is left to be done.
    let plan = world.json(&["plan", &world.git.work().display().to_string(), "--from", "applied"]);
    assert_eq!(plan["changes"], serde_json::json!([]), "{plan}");
}

#[test]
fn two_tags_at_once_make_one_version_and_none_comes_without_the_other() {
    let world = World::new(&[]);
    world.start();
    let dc = web(&world, "", &["auto a one", "auto b two"]);
    let files = [
        ("is.yaml", stream(&["one=git:one"])),
        ("web.yaml", dc),
        ("one/text", "1\n".into()),
        ("two/text", "1\n".into()),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let commit = world.deploy(&files, "cancelled");
    let told = world.notes(&commit)["launchway/default/web"].1.clone();
    assert!(
        told.contains("not all of the tags `app:one`, `app:two` of its image triggers lead to an image yet"),
        "{told}"
    );
    assert_refused(&world, &["rollout", "latest", "dc/web"], 1, &[]);

    world.deploy(&[("is.yaml", &stream(&["one=git:one", "two=git:two"]))], "success");
    eventually("both", || world.lines("a") == ["1"] && world.lines("b") == ["1"]);
    world.deploy(&[("one/text", "2\n"), ("two/text", "2\n")], "success");
    assert_eq!(story(&world), "first deployment; image change (app:one, app:two) (2)");
    eventually("both", || world.lines("a") == ["1", "2"] && world.lines("b") == ["1", "2"]);
}

/// A deployment config of one container, whose hook gives a tag its image.
fn tags(name: &str, image: &str, tag: &str) -> String {
    let to = format!("to: {{kind: ImageStreamTag, name: '{tag}'}}");
    let post = format!("post: {{failurePolicy: Abort, tagImages: [{{containerName: main, {to}}}]}}");
    let container = format!("{{name: main, image: '{image}', command: [sleep, '1000']}}");
    config(name, &format!("type: Recreate, recreateParams: {{{post}}}"), &container)
}

#[test]
fn a_hook_that_tags_an_image_deploys_whoever_follows_the_tag() {
    let world = World::new(&[]);
    world.start();
    let follower = web(&world, "", &["auto main live"]);
    let (is, one, two) =
        (stream(&["built=git:one"]), tags("tried", "git:one", "app:live"), tags("tried", "git:two", "app:live"));
    let commit = world.git.push_files(&[
        ("is.yaml", &is),
        ("web.yaml", &follower),
        ("tried.yaml", &one),
        ("one/text", "1\n"),
        ("two/text", "2\n"),
    ]);
    // Nobody pushes, and it follows all the same.
    eventually("what its image holds", || world.lines("main") == ["1"]);
    world.status(&commit, "launchway/default", "success");
    let told = world.notes(&commit)["launchway/default/tried/post"].clone();
    assert_eq!(told.0, "success", "{told:?}");
    let listed = world.json(&["get", "is"]);
    let live = listed["items"].as_array().unwrap().iter().find(|it| it["tag"] == "live").unwrap();
    assert_eq!((&live["from"], &live["taggedBy"]), (&"".into(), &"version 1 of tried".into()), "{listed}");
    let described = world.tell(&["describe", "is/app"]);
    assert!(described.contains("built") && described.contains("version 1 of tried"), "{described}");

    world.git.push_files(&[("tried.yaml", &two)]);
    eventually("what its image holds", || world.lines("main") == ["1", "2"]);
    eventually("the causes", || story(&world).contains("image change (app:live) (2)"));
    // It stays so whatever is pushed, until the file says something of the tag.
    world.deploy(&[("aside", "")], "skipped");
    assert!(story(&world).ends_with("(2)"));
    world.deploy(&[("is.yaml", &stream(&["built=git:one", "live=@built"]))], "success");
    eventually("what its image holds", || world.lines("main") == ["1", "2", "1"]);
    let plan = world.json(&["plan", &world.git.work().display().to_string(), "--from", "applied"]);
    assert_eq!(plan["changes"], serde_json::json!([]), "{plan}");
}

#[test]
fn hooks_that_hand_images_round_do_not_deploy_for_ever() {
    let world = World::new(&[]);
    world.start();
    let dc = web(&world, CONFIG_CHANGE, &["auto a one", "auto b two"]);
    let to = |container: &str, tag: &str| {
        format!("{{containerName: {container}, to: {{kind: ImageStreamTag, name: 'app:{tag}'}}}}")
    };
    let post = format!("post: {{failurePolicy: Abort, tagImages: [{}, {}]}}", to("a", "two"), to("b", "one"));
    let dc = dc.replace("{type: Recreate}", &format!("{{type: Recreate, recreateParams: {{{post}}}}}"));
    let is = stream(&["one=git:one", "two=git:two"]);
    let files = [("is.yaml", &*is), ("web.yaml", &*dc), ("one/text", "1\n"), ("two/text", "2\n")];
    let commit = world.git.push_files(&files);
    world.status(&commit, "launchway/default/web", "success");
    let why = || world.tell(&["why", "dc/web"]);
    eventually("it is held", || why().contains("hooks handed the image of `app:one`, `app:two` round"));
    assert_eq!(story(&world), "first deployment; image change (app:one, app:two) (2)");
    assert_eq!(
        (world.lines("a"), world.lines("b")),
        (vec!["1".to_owned(), "2".into()], vec!["2".to_owned(), "1".into()])
    );
    eventually("the commit says so", || world.notes(&commit)["launchway/default/web"].1.contains("held: "));
    let checked = world.run(&["validate", &world.git.work().display().to_string()]);
    let checked = String::from_utf8_lossy(&checked.stdout).into_owned() + &String::from_utf8_lossy(&checked.stderr);
    assert!(
        checked.contains("web.yaml:10:5: warning") && checked.contains("`app:one` → `app:two` (by `web`)"),
        "{checked}"
    );

    // A person's word makes one version, and it is held again.
    world.tell(&["rollout", "latest", "dc/web"]);
    world.tell(&["rollout", "status", "dc/web"]);
    eventually("what its images hold", || world.lines("a") == ["1", "2", "1"] && world.lines("b") == ["2", "1", "2"]);
    eventually("it is held", || {
        world.json(&["plan", &world.git.work().display().to_string(), "--from", "applied"])["changes"][0]["decision"]
            == "wait"
    });
    assert!(story(&world).ends_with("(3)"), "{}", story(&world));
    // So does a push that changes it.
    world.git.push_files(&[("web.yaml", &dc.replace("PeriodSeconds: 1", "PeriodSeconds: 2"))]);
    eventually("both", || story(&world).ends_with("(5)"));
    eventually("it is held", || why().contains("handed the image"));
}

#[test]
fn what_is_read_deploys_whoever_asks_for_that() {
    let world = World::new(&[]);
    world.start();
    let container = "{name: main, image: host, command: [sleep, '1000'], envFrom: [{configMapRef: {name: text}}, {secretRef: {name: key}}]}";
    let config = |name: &str| config(name, "type: Recreate", container);
    let follows = config("web")
        .replace("{name: web}\nspec", "{name: web, annotations: {launchway.dev/trigger-on: configmaps}}\nspec");
    let map =
        |value: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: text}}\ndata: {{A: '{value}'}}\n");
    let secret =
        |value: &str| format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: key}}\nstringData: {{B: '{value}'}}\n");
    world.deploy(
        &[("a.yaml", &map("1")), ("b.yaml", &secret("1")), ("c.yaml", &follows), ("d.yaml", &config("other"))],
        "success",
    );
    world.deploy(&[("a.yaml", &map("2"))], "success");
    assert_eq!(story(&world), "first deployment; content change (2)");
    world.deploy(&[("b.yaml", &secret("2"))], "success");
    world.deploy(&[("e", "")], "skipped");
    let versions = world.json(&["get", "dc"]);
    let versions: Vec<_> = versions["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["name"].clone(), it["latestVersion"].clone()))
        .collect();
    assert_eq!(versions, [("other".into(), 1.into()), ("web".into(), 2.into())]);
}

#[test]
fn a_tag_in_no_stream_fails_by_the_hooks_policy() {
    let world = World::new(&[]);
    world.start();
    let commit = world.deploy(&[("web.yaml", &tags("web", "git:one", "app:live")), ("one/text", "1\n")], "failure");
    let told = world.notes(&commit)["launchway/default/web/post"].clone();
    let expected = "there is no ImageStream `app` in stage default to tag `app:live` in";
    assert!(told.0 == "failure" && told.1.contains(expected), "{told:?}");
}
