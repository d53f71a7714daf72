//! A typo never deletes: what was declared runs on, and `validate`, `plan` and the commit say what was meant.

use crate::support::daemon::{World, complaint, config, hook, sleeper};

const SERVICE: &str =
    "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 8099}]}\n";

#[test]
fn a_typo_in_a_type_never_deletes() {
    let world = World::new(&[]);
    world.start();
    let (web, work) = (sleeper("web", "type: Recreate", "1"), world.git.work().display().to_string());
    let first = world.deploy(&[("web.yaml", &web), ("service.yaml", SERVICE)], "success");
    let service = |from: &str, to: &str| ("service.yaml", SERVICE.replace(from, to));
    let changed = |from: &str, to: &str| ("web.yaml", web.replace(from, to));
    // What it was, as only its place tells, and what `validate` can tell from the file alone.
    let table = [
        (changed("DeploymentConfig", "deploymentconfig"), "did you mean `DeploymentConfig`?", true),
        (changed("DeploymentConfig", "DeploymentConfg"), "did you mean `DeploymentConfig`?", true),
        (service("Service", "service"), "did you mean `Service`?", true),
        (service("v1", "v2"), "did you mean `v1`?", true),
        (service("apiVersion: v1\n", ""), "write `apiVersion: v1`", true),
        (service("kind:", "Kind:"), "did you mean `kind`?", true),
        (
            service("Service", "Srv"),
            "Service/web was declared here, and would be deleted: did you mean `Service`?",
            false,
        ),
        (changed("DeploymentConfig", "StatefulSet"), "DeploymentConfig/web was declared here", false),
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

#[test]
fn what_is_moved_and_mistyped_in_one_push_is_not_deleted() {
    let world = World::new(&[]);
    world.start();
    let (web, service) = (sleeper("web", "type: Recreate", "1"), ("service.yaml", SERVICE));
    let others = ["a", "b", "c"].map(|name| (format!("{name}.yaml"), sleeper(name, "type: Recreate", "1")));
    let others = others.iter().map(|(file, text)| (file.as_str(), text.as_str()));
    world.deploy(&others.chain([("web.yaml", web.as_str()), service]).collect::<Vec<_>>(), "success");
    for (kind, file) in [("StatefulSet", "deploy/web.yaml"), ("Rollout", "deploy/app.yaml")] {
        std::fs::remove_file(world.git.work().join("web.yaml")).ok();
        let commit = world.git.push_files(&[(file, &web.replace("DeploymentConfig", kind))]);
        let why = world.status(&commit, "launchway/plan", "error");
        let said = [file, "is not applied on the local runtime", "DeploymentConfig/web was declared in `web.yaml`"];
        assert!(said.iter().all(|words| why.contains(words)), "{why}");
        std::fs::remove_file(world.git.work().join(file)).unwrap();
    }
    let configs = world.json(&["get", "dc"])["items"].as_array().map_or(0, Vec::len);
    assert_eq!(configs, 4, "nothing was deleted");
    let moved = world
        .git
        .push_files(&[("deploy/web.yaml", &web), ("other.yaml", &web.replace("DeploymentConfig", "StatefulSet"))]);
    world.status(&moved, "launchway/default", "skipped");
}

#[test]
fn what_is_in_a_file_that_was_renamed_is_not_deleted_once_nobody_can_read_it() {
    const MANGLED: &str = "{{ nothing that is YAML\n";
    let world = World::new(&[]);
    world.start();
    let (web, api) = (sleeper("web", "type: Recreate", "1"), sleeper("api", "type: Recreate", "1"));
    world.deploy(&[("web.yaml", &web), ("api.yaml", &api), ("chart.yaml", MANGLED)], "success");
    let work = world.git.work();
    let refused = |commit: &str, hint: &str| {
        let why = world.status(commit, "launchway/plan", "error");
        assert!(why.contains("app.yaml:1:") && why.contains(hint), "{why}");
        let plan = world.run(&["plan", &work.display().to_string(), "--from", "applied"]);
        let told = String::from_utf8_lossy(&plan.stdout).into_owned();
        assert!(plan.status.code() == Some(1) && told.contains("app.yaml:1:"), "{told}");
    };
    std::fs::remove_file(work.join("web.yaml")).unwrap();
    let at_once = world.git.push_files(&[("app.yaml", MANGLED)]);
    refused(&at_once, "DeploymentConfig/web was declared in `web.yaml`");
    let renamed = world.git.push_files(&[("app.yaml", &web)]);
    world.status(&renamed, "launchway/default", "skipped");
    let later = world.git.push_files(&[("app.yaml", MANGLED)]);
    refused(&later, "app.yaml");
    assert_eq!(world.json(&["get", "dc"])["items"].as_array().map_or(0, Vec::len), 2, "nothing was deleted");
    // What was never read is nobody's any more.
    std::fs::remove_file(work.join("api.yaml")).unwrap();
    let meant = world.git.push_files(&[("app.yaml", &web), ("chart.yaml", &format!("{MANGLED}more\n"))]);
    world.status(&meant, "launchway/default", "success");
    assert_eq!(world.json(&["get", "dc"])["items"].as_array().map_or(0, Vec::len), 1, "what was taken out is gone");
}

#[test]
fn a_program_that_git_does_not_have_as_executable_refuses_its_revision_at_once() {
    let world = World::new(&[]);
    world.start();
    let web = config("web", "type: Recreate", "{name: main, image: 'git:app'}");
    let commit = world.git.push_files(&[("web.yaml", &web), ("app/bin/launch", "#!/bin/sh\nexec sleep 1000\n")]);
    let why = world.status(&commit, "launchway/plan", "error");
    assert!(why.contains("web.yaml:13:29: error:") && why.contains("`app/bin/launch` is not executable"), "{why}");
    world.git.git(&["update-index", "--chmod=+x", "app/bin/launch"]);
    world.git.git(&["commit", "--quiet", "--message=as the hint says"]);
    world.git.push();
    world.status(&world.git.head(), "launchway/default", "success");
    let program = world.git.work().join("app/bin/launch");
    std::fs::remove_file(&program).unwrap();
    std::os::unix::fs::symlink("/bin/true", &program).unwrap();
    let commit = world.git.push_files(&[]);
    let why = world.status(&commit, "launchway/plan", "error");
    assert!(why.contains("web.yaml:13:29: error:") && why.contains("`app/bin/launch` leads out"), "{why}");
}

#[test]
fn what_a_build_has_not_made_is_said_where_it_is_missed() {
    let world = World::new(&[]);
    world.start();
    world.git.write_program(&world.git.work().join("app/bin/build"), "#!/bin/sh\ntouch bin/other\n");
    let hook = "pre: {failurePolicy: Abort, execNewPod: {containerName: main, command: [bin/migrate]}}";
    let container = "{name: main, image: 'git:app', command: [sleep, '1000']}";
    let web = config("web", &format!("type: Recreate, recreateParams: {{{hook}}}"), container);
    let commit = world.git.push_files(&[("web.yaml", &web)]);
    let why = world.status(&commit, "launchway/default/web/pre", "failure");
    assert!(why.contains("there is no file `bin/migrate`, and `bin/build` has made none"), "{why}");
}

#[test]
fn a_build_that_makes_no_program_or_none_that_can_run_fails_its_deployment_at_once() {
    let world = World::new(&[]);
    world.start();
    for (makes, run, why) in [
        ("true", "", "there is no file `bin/launch`, and `bin/build` has made none"),
        ("echo '#!/bin/sh' >bin/launch; chmod 644 bin/launch", "", "`bin/launch` is not executable"),
        ("touch bin/other", ", command: [bin/server]", "there is no file `bin/server`, and `bin/build` has made none"),
    ] {
        world.git.write_program(&world.git.work().join("app/bin/build"), &format!("#!/bin/sh\n{makes}\n"));
        let web = config("web", "type: Recreate", &format!("{{name: main, image: 'git:app'{run}}}"));
        let commit = world.git.push_files(&[("web.yaml", &web)]);
        let told = world.status(&commit, "launchway/default/web", "failure");
        assert!(told.contains("container `main` cannot start: ") && told.contains(why), "{told}");
    }
}

#[test]
fn a_blank_image_that_a_trigger_brings_is_waited_for() {
    let world = World::new(&[]);
    let trigger = "{type: ImageChange, imageChangeParams: {containerNames: [main], from: {name: 'web:latest'}}}";
    let web = config("web", "type: Recreate", "{name: main, image: ' '}")
        .replace("  replicas: 1\n", &format!("  replicas: 1\n  triggers: [{{type: ConfigChange}}, {trigger}]\n"));
    world.git.commit_files(&[("web.yaml", &web)]);
    let plan = world.json(&["plan", &world.git.work().display().to_string()]);
    let change = &plan["changes"][0];
    assert_eq!(change["decision"], "wait", "{plan}");
    assert_eq!(change["cause"], "container `main` has no image yet");
}

#[test]
fn a_hook_in_an_unknown_container_is_a_warning_and_fails_by_its_policy_when_it_runs() {
    let world = World::new(&[]);
    world.start();
    let in_sidecar = |policy: &str| {
        let hook = hook("pre", policy, "exit 0").replace("containerName: main", "containerName: sidecar");
        sleeper("web", &format!("rollingParams: {{{hook}}}"), policy)
    };
    let commit = world.deploy(&[("web.yaml", &in_sidecar("Abort"))], "failure");
    let told = world.notes(&commit)["launchway/default/web/pre"].clone();
    let expected = "could not start: the template has no container `sidecar` with an image";
    assert_eq!((told.0.as_str(), told.1.as_str()), ("failure", expected));
    let validated = world.run(&["validate", &world.git.work().display().to_string()]);
    let said = String::from_utf8_lossy(&validated.stdout).into_owned();
    assert_eq!(validated.status.code(), Some(0), "{said}");
    assert!(
        said.contains("web.yaml:7:") && said.contains("warning") && said.contains("no container `sidecar`"),
        "{said}"
    );
    world.deploy(&[("web.yaml", &in_sidecar("Ignore"))], "success");
}

#[test]
fn a_glob_that_finds_nothing_is_told_where_files_are_checked_planned_and_deployed() {
    let world = World::new(&[]);
    world.start();
    let project = "apiVersion: launchway.dev/v1\nkind: Project\nmetadata: {name: shop}\nspec:\n  include: ['*.yaml', 'deply/**']\n";
    let web = sleeper("web", "type: Recreate", "1");
    let commit = world.deploy(&[("launchway.yaml", project), ("web.yaml", &web)], "success");
    let folder = world.git.work().display().to_string();
    for arguments in [["validate", &folder], ["plan", &folder], ["describe", &format!("revision/{commit}")]] {
        let said = world.run(&arguments);
        let said = String::from_utf8_lossy(&said.stdout).into_owned() + &complaint(&said);
        let expected = ["launchway.yaml:5:", "warning: ", "no file that declares something matches `deply/**`"];
        assert!(expected.iter().all(|words| said.contains(words)), "{arguments:?}: {said}");
    }
}
