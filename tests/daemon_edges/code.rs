//! Statuses on the code's commits, where code and configuration live in two repositories.

use super::orders::web;
use crate::daemon_edges::hosting::{Hosting, Kind};
use crate::support::daemon::{World, eventually, hook, private, repository, sleeper};

const ONE: &str = "1111111111111111111111111111111111111111";
const TWO: &str = "2222222222222222222222222222222222222222";

/// A world whose code is on a host, while its configuration has no host at all.
fn world(host: &Hosting) -> World {
    let world = World::new(&[]);
    let token = world.git.path("token");
    private(&token, "d8a1c2e3f4051627384950617283940516273849\n");
    let (address, token) = (host.address, token.display());
    let code = format!(
        "code: [{{name: app, url: 'http://{address}/moody/app.git', forge: {{kind: gitea}}, credentials: {{tokenFile: {token}}}}}]"
    );
    let bare = world.git.bare().display().to_string();
    world.configure(&repository("shop", &bare, &[&code]));
    world
}

/// Pushes a deployment config with a message.
fn push(world: &World, files: &[(&str, &str)], message: &str) -> String {
    files.iter().for_each(|(path, content)| world.git.write(path, content));
    let commit = world.git.commit(message);
    world.git.push();
    commit
}

#[test]
fn the_commit_of_the_code_shows_what_becomes_of_it_where_another_repository_deploys_it() {
    let host = Hosting::start(Kind::Gitea);
    let world = world(&host);
    world.start();
    let first = push(&world, &[("web.yaml", &web("1"))], &format!("Deploy\n\nLaunchway-Code: app@{ONE}"));
    world.status(&first, "launchway/default", "success");
    let shown = |commit: &str| host.statuses(commit);
    // Each is written by itself.
    for context in ["launchway/default", "launchway/default/web"] {
        eventually("the code's commit says the same", || shown(ONE).get(context).is_some_and(|it| it == "success"));
    }
    assert!(!shown(ONE).contains_key("launchway/plan"), "the plan is about files of the configuration");

    // What names other code is about that, and another revision that names the same speaks for it from then on.
    let annotations = format!("metadata: {{annotations: {{launchway.dev/code: '{TWO}'}}, name: web");
    let second = push(&world, &[("web.yaml", &web("2").replace("metadata: {name: web", &annotations))], "Annotated");
    world.status(&second, "launchway/default", "success");
    eventually("its code says so", || shown(TWO).get("launchway/default/web").is_some_and(|state| state == "success"));
    assert_eq!(
        shown(TWO).into_keys().collect::<Vec<_>>(),
        ["launchway/default/web"],
        "what is about the service alone"
    );
    let fails = sleeper("web", &format!("type: Rolling, rollingParams: {{{}}}", hook("pre", "Abort", "exit 3")), "3");
    let third = push(&world, &[("web.yaml", &fails)], &format!("Again\n\nLaunchway-Code: {ONE}"));
    world.status(&third, "launchway/default", "failure");
    eventually("the code's commit says the same", || {
        shown(ONE).get("launchway/default").is_some_and(|state| state == "failure")
    });
    assert!([&first, &second, &third].iter().all(|commit| shown(commit).is_empty()), "the configuration is on no host");
}

#[test]
fn what_names_no_revision_of_code_is_told_with_its_place() {
    let world = World::new(&[]);
    let annotated =
        web("1").replace("metadata: {name: web", "metadata: {annotations: {launchway.dev/code: 1a2b3c4}, name: web");
    world.git.write("web.yaml", &annotated);
    let told = world.run(&["validate", "work"]);
    let told = String::from_utf8([told.stdout, told.stderr].concat()).unwrap();
    assert!(told.contains("web.yaml:3:") && told.contains("`1a2b3c4` names no revision of code"), "{told}");
}
