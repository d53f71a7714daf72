//! Who reaches the daemon, and by which way.

use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use super::verbs::{deployed, web};
use crate::support::daemon::{World, complaint, config, eventually, http, repository};
use crate::support::program::install;

/// A user who owns nothing of ours.
pub(super) const STRANGER: u32 = 65_534;

/// A daemon that has deployed, with these settings beside its repository.
pub(crate) fn deployed_with(settings: &str) -> World {
    let world = World::new(&[]);
    let bare = world.git.bare().display().to_string();
    fs::write(world.config(), format!("{settings}\nrepositories:\n{}", repository("shop", &bare, &[]))).unwrap();
    world.start();
    world.deploy(&[("web.yaml", &web("1"))], "success");
    world
}

/// Who asks for what a test has done by a command.
pub(crate) fn me() -> String {
    launchway::control::accounts::user_name(rustix::process::geteuid().as_raw())
}

pub(crate) fn operators_token(world: &World) -> String {
    fs::read_to_string(world.state().join("operator-token")).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn after_a_crash_nobody_is_asked_but_the_store_until_the_next_daemon() {
    let world = deployed();
    let address = world.address();
    world.kill();
    assert!(world.state().join("launchway.sock").exists(), "what a daemon leaves that is killed");
    let thief = TcpListener::bind(&address).unwrap();
    thief.set_nonblocking(true).unwrap();
    let found = world.json(&["get", "dc"]);
    assert_eq!(found["items"][0]["name"], "web", "{found:#}");
    let refused = world.run(&["hold", "dc/web", "--reason", "audit"]);
    assert_eq!(refused.status.code(), Some(3), "{}", complaint(&refused));
    assert!(complaint(&refused).contains("no daemon runs"), "{}", complaint(&refused));
    assert_eq!(thief.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "somebody asked at the daemon's old address");

    world.start();
    world.tell(&["hold", "dc/web", "--reason", "audit"]);
    let holds = world.json(&["get", "holds"]);
    assert_eq!((&holds["items"][0]["by"], &holds["items"][0]["reason"]), (&Value::from(me()), &"audit".into()));
    world.stop();
    for socket in ["launchway.sock", "hook.sock"] {
        assert!(!world.state().join(socket).exists(), "{socket}");
    }
}

#[test]
fn commands_work_wherever_the_daemon_listens_and_everybody_else_needs_a_token() {
    for (settings, path) in [
        ("listen: 0.0.0.0:0", "/api/v1/deployments"),
        ("listen: 127.0.0.1:0\npublicUrl: https://Deploy.Example:443/", "/metrics"),
    ] {
        let world = deployed_with(settings);
        world.tell(&["get", "dc"]);
        world.tell(&["scale", "dc/web", "--replicas", "2"]);
        let port = world.address().rsplit_once(':').unwrap().1.to_owned();
        let address = format!("127.0.0.1:{port}");
        let bearer = format!("Bearer {}", operators_token(&world));
        for (headers, expected) in [(&[][..], 401), (&[("authorization", bearer.as_str())], 200)] {
            let (status, body) = http(&address, "GET", path, headers, b"");
            assert_eq!(status, expected, "{settings}: {body}");
        }
    }
}

#[test]
fn a_direct_request_on_loopback_reads_and_one_that_a_proxy_passes_on_does_not() {
    let world = deployed();
    let address = world.address();
    let get = |headers: &[(&str, &str)]| http(&address, "GET", "/api/v1/deployments", headers, b"").0;
    assert_eq!(get(&[]), 200);
    assert_eq!(get(&[("x-forwarded-for", "192.0.2.7")]), 401);
    assert_eq!(get(&[("host", "evil.example")]), 400, "a second Host");
    let act = http(&address, "POST", "/api/v1/sync", &[("content-type", "application/json")], b"{}");
    assert_eq!(act.0, 401, "{}", act.1);
}

#[test]
fn a_public_address_that_is_not_understood_opens_nothing() {
    let world = World::new(&[]);
    for address in ["https://deploy.example:port", "https://bücher.example"] {
        fs::write(world.config(), format!("listen: 127.0.0.1:0\npublicUrl: {address}\nrepositories: []\n")).unwrap();
        let refused = world.run(&["serve", "--config", world.config().to_str().unwrap()]);
        assert_eq!(refused.status.code(), Some(3), "{}", complaint(&refused));
        assert!(complaint(&refused).contains("names no host"), "{}", complaint(&refused));
    }
}

#[test]
fn a_state_folder_with_a_long_path_has_its_sockets_too() {
    let world = World::new(&[]);
    let state = world.git.path(&"long/".repeat(30));
    let launchway =
        |arguments: &[&str]| world.launchway().env("LAUNCHWAY_STATE", &state).args(arguments).output().unwrap();
    world.start_as(|command| command.env("LAUNCHWAY_STATE", &state));
    world.deploy(&[("web.yaml", &web("1"))], "success");
    let scaled = launchway(&["scale", "dc/web", "--replicas", "2"]);
    assert!(scaled.status.success(), "{}", complaint(&scaled));
    world.stop();
}

/// The program as another user runs it: from a place that is not closed to them, as a home folder is.
fn as_stranger(world: &World) -> Command {
    let launchway = world.launchway();
    let program = world.git.path("launchway");
    if !program.exists() {
        install(launchway.get_program(), &program);
    }
    let mut command = Command::new(program);
    let variables = launchway.get_envs().filter_map(|(name, value)| Some((name, value?)));
    command.env_clear().envs(variables).current_dir("/").uid(STRANGER).gid(STRANGER);
    command
}

#[test]
#[ignore = "needs root"]
fn another_user_gets_a_sync_followed_and_nothing_else() {
    assert!(rustix::process::geteuid().is_root(), "nobody else can become another user");
    let world = deployed();
    fs::set_permissions(world.git.root(), Permissions::from_mode(0o711)).unwrap();
    assert_eq!(mode(&world.state()), 0o711);
    for (entry, expected) in [("launchway.sock", 0o600), ("hook.sock", 0o666), ("store.db", 0o600), ("local", 0o700)] {
        assert_eq!(mode(&world.state().join(entry)), expected, "{entry}");
    }
    let told_stranger = |arguments: &[&str]| -> Output { as_stranger(&world).args(arguments).output().unwrap() };
    let commit = world.git.push_files(&[("web.yaml", &web("2"))]);
    let followed = told_stranger(&["sync", "shop", "--follow", &commit]);
    assert_eq!(followed.status.code(), Some(0), "{}", complaint(&followed));
    assert!(complaint(&followed).contains("launchway/default"), "{}", complaint(&followed));
    for arguments in [
        &["get", "dc"][..],
        &["hold", "dc/web", "--reason", "x"],
        &["sync", "shop", "--up"],
        &["exec", "dc/web", "--", "id"],
    ] {
        let refused = told_stranger(arguments);
        assert_eq!(refused.status.code(), Some(3), "{arguments:?}: {}", complaint(&refused));
    }
    assert!(complaint(&told_stranger(&["get", "dc"])).contains("is another user's"));
    world.kill();
    let refused = told_stranger(&["sync", "shop", "--follow", &commit]);
    assert!(complaint(&refused).contains("no daemon runs"), "{}", complaint(&refused));
}

#[test]
#[ignore = "needs root"]
fn another_user_runs_a_pod_from_a_folder_that_is_closed_otherwise() {
    let world = World::new(&[]);
    fs::set_permissions(world.git.root(), Permissions::from_mode(0o711)).unwrap();
    let bare = world.git.bare().display().to_string();
    let allow = format!("allow: {{users: ['{STRANGER}']}}");
    let text = format!("listen: 127.0.0.1:0\nrepositories:\n  - {{name: shop, url: {bare}, branch: main, {allow}}}\n");
    fs::write(world.config(), text).unwrap();
    world.start();
    let (ran, user) = (world.git.path("ran"), format!("securityContext: {{runAsUser: {STRANGER}}}"));
    fs::create_dir(&ran).unwrap();
    fs::set_permissions(&ran, Permissions::from_mode(0o777)).unwrap();
    let script = format!("#!/bin/sh\nid -u > {}/user; exec sleep 1000\n", ran.display());
    world.git.write("app/bin/launch", &script);
    fs::set_permissions(world.git.work().join("app/bin/launch"), Permissions::from_mode(0o755)).unwrap();
    let web = config("web", "type: Recreate", &format!("{{name: main, image: 'git:app', {user}}}"));
    world.deploy(&[("web.yaml", &web)], "success");
    assert_eq!(fs::read_to_string(ran.join("user")).unwrap(), format!("{STRANGER}\n"));
    for entry in ["mirrors", "store.db"] {
        assert_eq!(mode(&world.state().join(entry)) & 0o077, 0, "{entry}");
    }
}

#[test]
#[ignore = "needs root"]
fn a_group_of_another_user_may_be_let_in() {
    assert!(rustix::process::geteuid().is_root(), "nobody else can become another user");
    let world = deployed_with(&format!("listen: 127.0.0.1:0\naccess: {{socketGroup: \"{STRANGER}\"}}"));
    fs::set_permissions(world.git.root(), Permissions::from_mode(0o711)).unwrap();
    assert_eq!(mode(&world.state().join("launchway.sock")), 0o660);
    let scaled = as_stranger(&world).args(["scale", "dc/web", "--replicas", "2"]).output().unwrap();
    assert!(scaled.status.success(), "{}", complaint(&scaled));
    eventually("the new number", || world.json(&["get", "dc"])["items"][0]["ready"] == 2);
    let name = launchway::control::accounts::user_name(STRANGER);
    assert!(world.tell(&["history", "dc/web"]).contains(&name) || world.tell(&["events"]).contains(&name));
    world.stop();
    fs::write(world.config(), "access: {socketGroup: no-such-group}\nrepositories: []\n").unwrap();
    let refused = world.run(&["serve", "--config", world.config().to_str().unwrap()]);
    assert!(complaint(&refused).contains("no group `no-such-group`"), "{}", complaint(&refused));
}

/// What of a folder other users than its owner can read or change, if they get to it.
fn exposed(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (mut found, is_installed) = (Vec::new(), |path: &Path| path.ends_with("tree"));
    for path in entries.filter(|path| !path.is_symlink() && !is_installed(path)) {
        let mode = fs::symlink_metadata(&path).unwrap().permissions().mode();
        let asks_who_it_is = path.ends_with("hook.sock") || path.ends_with("deployers.sock");
        if mode & 0o006 != 0 && !asks_who_it_is {
            found.push(path.clone());
        }
        if path.is_dir() && mode & 0o001 != 0 {
            found.extend(exposed(&path));
        }
    }
    found
}

#[test]
fn whatever_the_umask_is_others_read_nothing_of_the_state() {
    for umask in ["000", "077"] {
        let world = World::new(&[]);
        let (bare, allow) = (world.git.bare().display().to_string(), format!("allow: {{users: ['{STRANGER}']}}"));
        let text =
            format!("listen: 127.0.0.1:0\nrepositories:\n  - {{name: shop, url: {bare}, branch: main, {allow}}}\n");
        fs::write(world.config(), text).unwrap();
        let (launchway, umasked) = (world.launchway(), format!("umask {umask} && exec \"$0\" \"$@\""));
        let mut command = Command::new("sh");
        command.args(["-c", &umasked]).arg(launchway.get_program()).arg("serve").arg("--config").arg(world.config());
        command.envs(launchway.get_envs().filter_map(|(name, value)| Some((name, value?))));
        world.spawn(&mut command);
        eventually("a daemon that serves", || world.output().contains("serving http"));
        world.git.write("app/bin/launch", "#!/bin/sh\necho x > \"$LAUNCHWAY_MOUNT_DATA/x\"; exec sleep 1000\n");
        world.git.write("app/bin/build", "#!/bin/sh\nmkdir made; umask > made/umask\n");
        for file in ["app/bin/launch", "app/bin/build"] {
            fs::set_permissions(world.git.work().join(file), Permissions::from_mode(0o755)).unwrap();
        }
        let container = "{name: main, image: 'git:app', volumeMounts: [{name: data, mountPath: /not-there}]}";
        let web = config("web", "type: Recreate", container);
        let volume = "volumes: [{name: data, emptyDir: {}}]\n";
        let web = web.replacen("containers:", &format!("{volume}      containers:"), 1);
        world.deploy(&[("web.yaml", &web)], "success");
        assert_eq!(mode(&world.state()), 0o711);
        assert_eq!(mode(&world.state().join("local")), 0o711);
        assert_eq!(exposed(&world.state()), Vec::<PathBuf>::new(), "{umask}");
        let through = ["pods", "pods/shop-default", "volumes", "launchables"];
        assert!(through.iter().all(|folder| mode(&world.state().join("local").join(folder)) == 0o711), "{umask}");
    }
}

#[test]
fn a_pod_gets_no_answer_from_the_sockets_also_where_they_cannot_be_hidden() {
    const WITHOUT: &str = "echo 0 > /proc/sys/user/max_mnt_namespaces && echo 0 > /proc/sys/user/max_user_namespaces \
                           && exec \"$0\" \"$@\"";
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "sh", "-c", script]);
        command
    };
    if !unshare("echo 0 > /proc/sys/user/max_mnt_namespaces").status().is_ok_and(|status| status.success()) {
        return; // this machine does not let users take that away from themselves
    }
    let world = World::new(&[]);
    let launchway = world.launchway();
    let mut command = unshare(WITHOUT);
    command.arg(launchway.get_program()).arg("serve").arg("--config").arg(world.config());
    command.envs(launchway.get_envs().filter_map(|(name, value)| Some((name, value?))));
    world.spawn(&mut command);
    eventually("a daemon that serves", || world.output().contains("serving http"));
    let (answer, state) = (world.git.path("answer"), world.state());
    fs::write(&answer, "").unwrap();
    let ask = format!(
        "import socket\nanswers = []\nfor name in [\"launchway.sock\", \"hook.sock\"]:\n    s = socket.socket(socket.AF_UNIX)\n    \
         s.connect(\"{}/\" + name)\n    s.settimeout(60)\n    try:\n        s.sendall(b\"GET /api/v1/repositories \
         HTTP/1.0\\r\\nhost: localhost\\r\\n\\r\\n\")\n        answers.append(s.recv(100))\n    except OSError as error:\n        \
         answers.append(b\"\")\nopen(\"{}\", \"w\").write(repr(answers))\n",
        state.display(),
        answer.display()
    );
    let script = world.git.path("ask.py");
    fs::write(&script, ask).unwrap();
    let outside = Command::new("python3").arg(&script).output().unwrap();
    assert!(fs::read_to_string(&answer).unwrap().contains("HTTP/1"), "{outside:?}");
    fs::write(&answer, "").unwrap();
    let run = format!("python3 {}; exec sleep 1000", script.display());
    let container = format!("{{name: main, image: host, command: [sh, -c, '{run}']}}");
    world.deploy(&[("web.yaml", &config("web", "type: Recreate", &container))], "success");
    eventually("the pod has asked", || !fs::read_to_string(&answer).unwrap().is_empty());
    assert_eq!(fs::read_to_string(&answer).unwrap(), "[b'', b'']");
}
