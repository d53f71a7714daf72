//! What somebody who may push, or who reads what is shown, must not get.

use std::fs;
use std::os::unix::fs::symlink;

use crate::daemon_edges::hosting::{Hosting, Kind};
use crate::daemon_edges::triggers::SECRET;
use crate::support::daemon::{World, complaint, config, eventually, http, private, repository, sleeper};
use crate::support::git::GitFixture;
use crate::support::git_http::GitHttp;

/// Anchors of which each is ten of the one before: a billion values in a few lines.
fn laughs() -> String {
    let mut text =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: laughs}\nx0: &x0 [a, a, a, a, a, a, a, a, a, a]\n"
            .to_owned();
    for level in 1..9 {
        let before = format!("*x{}", level - 1);
        text += &format!("x{level}: &x{level} [{}]\n", [&*before; 10].join(", "));
    }
    text
}

/// Makes `evil.yaml`, and what it leads to, in a work tree.
type Make = Box<dyn Fn(&GitFixture)>;

/// What `evil.yaml` must not be, by what it would be.
fn hostile() -> Vec<(&'static str, Make)> {
    let file = |text: String| -> Make { Box::new(move |git| git.write("evil.yaml", &text)) };
    let image = |image: &str| config("evil", "type: Recreate", &format!("{{name: main, image: '{image}'}}"));
    let keep = sleeper("evil", "type: BlueGreen, blueGreenParams: {keep: soon}", "1");
    let large = format!("{}# {}\n", sleeper("evil", "type: Recreate", "1"), "x".repeat(5 << 20));
    let manifest_link: Make = Box::new(|git| {
        fs::write(git.path("outside.yaml"), sleeper("evil", "type: Recreate", "1")).unwrap();
        symlink("../outside.yaml", git.work().join("evil.yaml")).unwrap();
    });
    let launchable = image("git:evil");
    let program_link: Make = Box::new(move |git| {
        git.write("evil.yaml", &launchable);
        fs::create_dir_all(git.work().join("evil/bin")).unwrap();
        symlink("../../../outside", git.work().join("evil/bin/launch")).unwrap();
    });
    vec![
        ("a manifest that is a link out of the repository", manifest_link),
        ("a program that is one", program_link),
        ("a launchable beside the repository", file(image("git:../outside"))),
        ("a launchable that is Git's own", file(image("git:.git/hooks"))),
        ("a file of this machine by a relative path", file(image("file:///srv/../etc"))),
        ("aliases that expand to a billion values", file(laughs())),
        ("a file beyond the limit", file(large)),
        ("a duration that is none", file(keep)),
        ("a mount outside its volume", {
            let mount = "{name: main, image: host, volumeMounts: [{name: v, mountPath: /v, subPath: ../../etc}]}";
            file(config("evil", "type: Recreate", mount) + "      volumes: [{name: v, emptyDir: {}}]\n")
        }),
    ]
}

#[test]
fn what_a_revision_must_not_hold_is_refused_with_its_place_and_stops_nobody_else() {
    let (world, bank) = (World::new(&[]), GitFixture::new());
    let bare = |git: &GitFixture| git.bare().display().to_string();
    world.configure(&(repository("shop", &bare(&world.git), &[]) + &repository("bank", &bare(&bank), &[])));
    bank.push_files(&[("app.yaml", &sleeper("app", "type: Recreate", "1"))]);
    world.start();
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))], "success");
    let pod = world.pod_in("shop-default/web-1-0", "ready");
    for (name, make) in hostile() {
        make(&world.git);
        let commit = world.git.commit(name);
        world.git.push();
        let plan = || world.notes(&commit).get("launchway/plan").cloned().unwrap_or_default();
        eventually(name, || ["error", "failure"].contains(&&*plan().0));
        assert!(plan().1.contains("evil.yaml"), "{name}: {}", plan().1);
        fs::remove_file(world.git.work().join("evil.yaml")).unwrap();
        drop(fs::remove_dir_all(world.git.work().join("evil")));
    }
    assert_eq!(world.pod_in("shop-default/web-1-0", "ready"), pod, "what served serves on");
    bank.push_files(&[("app.yaml", &sleeper("app", "type: Recreate", "2"))]);
    let serving = || world.json(&["get", "dc", "-r", "bank"])["items"][0]["serving"]["version"].clone();
    eventually("the other repository is deployed", || serving() == 2);
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "2"))], "success");
}

#[test]
fn what_opens_a_repository_and_its_webhook_is_shown_nowhere() {
    const TOKEN: &str = "d8a1c2e3f4051627384950617283940516273849";
    let (world, host) = (World::new(&[]), Hosting::start(Kind::Gitea));
    let server = GitHttp::start(world.git.root());
    let secret = world.git.path("hook");
    private(&secret, SECRET);
    let webhook = format!("webhook: {{secretFiles: [{}]}}", secret.display());
    host.configure(&world, &server.url("moody/origin.git"), &[&*webhook, "previews: true", "commands: true"]);
    let token = fs::read_to_string(world.git.path("token")).unwrap();
    assert_eq!(token.trim(), TOKEN, "what is looked for is what opens it");
    world.start();
    let commit = world.git.push_files(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))]);
    world.tell(&["sync"]);
    world.status(&commit, "launchway/default", "success");
    // Refusals and failures are what says most.
    host.hosted().is_away = true;
    server.fail_next(401);
    let failed = complaint(&world.run(&["sync"]));
    let headers = [("content-type", "application/json"), ("x-gitea-event", "push"), ("x-gitea-signature", "00")];
    let refused = http(&world.address(), "POST", "/webhooks/shop", &headers, b"{}").1;
    let page = |path: &str| http(&world.address(), "GET", path, &[], b"").1;
    let paths = ["/", "/metrics", "/api/v1/repositories", "/api/v1/repositories/shop/deliveries", "/api/v1/events"];
    let mut shown: Vec<String> = paths.into_iter().map(page).collect();
    let commands: [&[&str]; 4] = [
        &["get", "repositories", "-o", "json"],
        &["repository", "list"],
        &["repository", "check", "shop"],
        &["status", &commit],
    ];
    shown.extend(commands.into_iter().map(|arguments| complaint(&world.run(arguments))));
    shown.extend([failed, refused, world.output() + &world.log()]);
    for text in &shown {
        assert!(!text.contains(TOKEN) && !text.contains(SECRET), "{text}");
    }
    assert!(shown.iter().filter(|text| text.contains("shop")).count() > 5, "{shown:#?}");
}
