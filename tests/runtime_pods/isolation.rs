//! What a pod cannot reach: the daemon's state, its sockets, and what belongs to other pods.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use launchway::model::object::{Kind, ObjectKey};
use launchway::model::outcome::{FailureReason, PodOutcome};
use launchway::model::pod::Pod;
use launchway::runtime::local::Allow;
use serde_json::{Value, json};

use crate::program::install;
use crate::world::{SHIM_VARIABLE, World, allow_all, number_in, pod, read, shell, with};

/// Says what a try got, if it got something.
const TRY: &str = r#"
    try() { what=$1; shift; if got=$("$@" 2>/dev/null) && [ -n "$got" ]; then echo "leaked $what"; fi; }
"#;

/// Reads what is the daemon's.
const READER: &str = r#"
    try token cat "$STATE/operator-token"
    try store cat "$STATE/store.db"
    try forge cat "$STATE/../shop-token"
    try records find "$STATE/pods" -name pod.json -exec cat {} +
"#;

/// Reads what is another pod's.
const NEIGHBOUR: &str = r#"
    try secret-volumes find "$STATE/pods" -name password -exec cat {} +
    try variables cat "/proc/$VICTIM/environ"
    try folders cat "/proc/$VICTIM/cwd/mine"
    try shims cat "/proc/$SHIM/root$STATE/operator-token"
"#;

/// Undoes what is in the way, and changes what is not to be changed.
const BURGLAR: &str = r#"
    try namespaces nsenter --target "$SHIM" --mount cat "$STATE/operator-token"
    try unmounted sh -c 'umount "$STATE"; cat "$STATE/operator-token"'
    try nested unshare --user --map-root-user --mount sh -c 'umount -l "$STATE"; cat "$STATE/operator-token"'
    try written sh -c 'echo x > "$STATE/new" && echo wrote'
    try moved-nested unshare --user --map-root-user --mount sh -c \
        'R=${STATE%/*}; umount -l "$R"; mv "$R" "$R-moved" && mv "$R-moved" "$R" && echo moved'
    try sealed sh -c 'chmod u+w . bin bin/launch; echo x >> bin/launch && echo wrote'
    try sealed-new sh -c 'touch bin/new && echo wrote'
"#;

/// Moves what is above the state, after which it would not be where it is expected.
const MOVER: &str = r#"
    move() { mv "$1" "$1-moved" && mv "$1-moved" "$1" && echo moved; }
    try above move "${STATE%/*}"
"#;

/// How much of that succeeds if nothing is in the way.
const TRIES: usize = 8;

/// Says `connected` if the socket in the state folder takes a connection.
const CONNECTION: &str = r#"
    python3 -c 'import os, socket; socket.socket(socket.AF_UNIX).connect(os.environ["STATE"] + "/launchway.sock")' \
        2>/dev/null && echo connected
"#;

/// What is a pod's own works as ever.
const OWN: &str = r#"
    set -e
    echo moved > "$HOME/x"; cat bin/launch > /dev/null
    cd "$LAUNCHWAY_MOUNT_DATA"; echo y > y; mkdir deep; mv y deep; echo z > z; ls
    cat "$LAUNCHWAY_MOUNT_LOGIN/password"; echo
    mv "$HOME/x" .; cat x; cat "$STATE/../elsewhere" > /dev/null
    grep -q own-secret /proc/self/environ; kill -0 $$; ls / > /dev/null
"#;

/// And is where the mounts say.
const MOUNTED: &str = r#"
    set -e
    cd /not-there/data; echo y > y; mkdir deep; mv y deep; echo z > "$LAUNCHWAY_MOUNT_DATA/z"; ls
    cat /not-there/login/password; echo
    echo tmp > /tmp/$$.own; mv /tmp/$$.own "$HOME/moved"
    mv "$STATE/../elsewhere" "$STATE/../there"; mv "$STATE/../there" "$STATE/../elsewhere"
"#;

fn objects() -> BTreeMap<ObjectKey, Value> {
    let key = |kind, name: &str| ObjectKey { kind, name: name.into() };
    BTreeMap::from([(key(Kind::Secret, "login"), json!({"data": {"password": "aHVudGVyMg=="}}))])
}

/// A state folder as a daemon has it.
fn furnish(world: &World) {
    fs::write(world.root().join("operator-token"), "the-token").unwrap();
    fs::write(world.root().join("store.db"), "the-store").unwrap();
    fs::write(world.file("shop-token"), "the-token-of-a-forge").unwrap();
    fs::write(world.file("elsewhere"), "what is nobody's").unwrap();
    let bin = world.image("app/bin");
    fs::create_dir_all(&bin).unwrap();
    fs::write(bin.join("launch"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(bin.join("launch"), fs::Permissions::from_mode(0o755)).unwrap();
}

/// A pod that has a secret in a volume, in a variable and in its home, and its process.
async fn victim(world: &World) -> (Pod, i32) {
    let script = "echo the-file > mine; echo $$ > $HOME/pid; exec sleep 600";
    let container = with(
        shell(script),
        json!({
            "env": [{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "login", "key": "password"}}}],
            "volumeMounts": [{"name": "login", "mountPath": "/not-there"}],
        }),
    );
    let volumes = json!([{"name": "login", "secret": {"secretName": "login"}}]);
    let victim = pod(json!({"containers": [container], "volumes": volumes}));
    world.start_with(&victim, &objects()).await;
    world.ready(&victim).await;
    let process = number_in(&world.dir(&victim).join("home/pid"));
    (victim, process)
}

/// A pod that runs a script once, in a launchable and with volumes of its own.
fn visitor(world: &World, name: &str, script: &str, (victim, process): (&Pod, i32)) -> Pod {
    let variable = |name: &str, value: String| json!({"name": name, "value": value});
    let container = with(
        shell(script),
        json!({
            "image": "app",
            "env": [
                variable("STATE", world.root().display().to_string()),
                variable("VICTIM", process.to_string()),
                variable("SHIM", world.shim_pid(victim).to_string()),
                variable("OWN", "own-secret".to_owned()),
            ],
            "volumeMounts": [{"name": "data", "mountPath": "/not-there/data"}, {"name": "login", "mountPath": "/not-there/login"}],
        }),
    );
    let volumes = json!([{"name": "data", "emptyDir": {}}, {"name": "login", "secret": {"secretName": "login"}}]);
    let mut visitor = pod(json!({"containers": [container], "volumes": volumes}));
    visitor.id.name = name.into();
    visitor.run_once_seconds = Some(60);
    visitor
}

/// The log without what launchway itself says in it.
async fn told(world: &World, pod: &Pod) -> String {
    world.start_with(pod, &objects()).await;
    world.ended(pod).await;
    let logs = world.logs(pod).await;
    logs.lines().filter(|line| !line.starts_with("launchway: ")).map(|line| format!("{line}\n")).collect()
}

/// What somebody who is no pod gets: the tries are good ones.
fn told_outside(world: &World, (victim, process): (&Pod, i32), script: &str) -> String {
    let mut command = Command::new("sh");
    command.args(["-c", script]).env("STATE", world.root()).env("VICTIM", process.to_string());
    let output = command.env("SHIM", world.shim_pid(victim).to_string()).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What a machine lets pods be kept from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Machine {
    Whole,
    WithoutNamespaces,
}

/// Pods try everything, and get what is their own.
async fn isolated_on(machine: Machine) {
    let world = World::new();
    furnish(&world);
    let _listener = UnixListener::bind(world.root().join("launchway.sock")).unwrap();
    let (victim, process) = victim(&world).await;
    let visit = |name: &str, script: &str| visitor(&world, name, script, (&victim, process));
    let (reader, burglar) = (format!("{TRY}{READER}{NEIGHBOUR}"), format!("{TRY}{BURGLAR}{MOVER}"));
    assert_eq!(told_outside(&world, (&victim, process), &reader).matches("leaked").count(), TRIES);
    assert_eq!(told_outside(&world, (&victim, process), CONNECTION), "connected\n");
    for (name, script) in [("reader", &*reader), ("burglar", &*burglar)] {
        assert_eq!(told(&world, &visit(name, script)).await, "", "{name}");
    }
    assert!(!world.image("app/bin/new").exists() && read(world.image("app/bin/launch")) == "#!/bin/sh\n");
    // The pod reads its Secret; what it prints of it is masked in its log.
    assert_eq!(told(&world, &visit("owner", OWN)).await, "deep\nz\n***\nmoved\n");
    // A command that is run beside the pod's processes is no different.
    let script =
        format!("export STATE={}\n{TRY}{READER}{MOVER}cat $LAUNCHWAY_MOUNT_LOGIN/password", world.root().display());
    assert_eq!(world.exec(&victim, &["sh", "-c", &script]).await.unwrap(), (0, b"hunter2".to_vec(), Vec::new()));
    if machine == Machine::Whole {
        assert_eq!(told(&world, &visit("mounter", MOUNTED)).await, "deep\nz\n***\n");
        assert_eq!(told(&world, &visit("caller", CONNECTION)).await, "");
    }
}

#[tokio::test]
async fn a_pod_reaches_what_is_its_own_and_nothing_else() {
    isolated_on(Machine::Whole).await;
}

#[tokio::test]
async fn a_volume_of_the_machine_shows_nothing_that_is_hidden_in_it_and_moves_nothing_above_it() {
    volume_above_the_state_on(Machine::Whole).await;
}

/// A pod that has a folder of the machine that holds the state folder, or a part of it.
async fn volume_above_the_state_on(machine: Machine) {
    let world = World::new();
    furnish(&world);
    let (above, name) = (world.path().parent().unwrap(), world.path().file_name().unwrap().to_str().unwrap());
    let host_paths = vec![above.to_owned()];
    world.runtime().allow("shop".into(), Allow { host_paths, ..allow_all() });
    let visitor = |pod_name: &str, script: &str, sub_path: &str| {
        let mounts = json!([{"name": "machine", "mountPath": "/not-there/machine", "subPath": sub_path}]);
        let state = json!([{"name": "STATE", "value": world.root().display().to_string()}]);
        let container = with(shell(script), json!({"image": "app", "env": state, "volumeMounts": mounts}));
        let volumes = json!([{"name": "machine", "hostPath": {"path": above.display().to_string()}}]);
        let mut visitor = pod(json!({"containers": [container], "volumes": volumes}));
        visitor.id.name = pod_name.into();
        visitor.run_once_seconds = Some(60);
        visitor
    };
    let folder = if machine == Machine::Whole { "/not-there/machine" } else { "$LAUNCHWAY_MOUNT_MACHINE" };
    let script = format!(
        "{TRY}{MOVER}cd \"{folder}\" || exit; echo there; cat {name}/elsewhere; STATE=$PWD/{name}/runtime\n{READER}{MOVER}"
    );
    assert_eq!(told(&world, &visitor("above", &script, "")).await, "there\nwhat is nobody's\n");
    // The state folder itself, what is in it, and what would be made in it; by its own path, and by a link that leads there.
    std::os::unix::fs::symlink("runtime", world.file("way-in")).unwrap();
    for (number, inside) in ["runtime", "runtime/pods", "runtime/made", "way-in", "way-in/made"].iter().enumerate() {
        let script = format!("{TRY}try inside ls -A \"{folder}\"");
        let visitor = visitor(&format!("inside-{number}"), &script, &format!("{name}/{inside}"));
        world.start_with(&visitor, &objects()).await;
        let PodOutcome::Failed { reason, message, .. } = world.ended(&visitor).await else { panic!("{inside}") };
        assert_eq!(reason, FailureReason::StartError, "{inside}: {message}");
        assert!(message.contains("is in launchway's state folder, which no pod gets"), "{inside}: {message}");
    }
    assert!(!world.root().join("made").exists());
}

#[test]
#[ignore = "needs root"]
fn another_user_has_pods_that_reach_nothing_else_either() {
    assert!(rustix::process::geteuid().is_root(), "nobody else can become another user");
    let folder = tempfile::tempdir().unwrap();
    let copied = |program: &Path, name: &str| {
        let copy = folder.path().join(name);
        install(program, &copy);
        copy
    };
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let shim = copied(Path::new(env!("CARGO_BIN_EXE_launchway-shim")), "launchway-shim");
    let mut command = Command::new(copied(&std::env::current_exe().unwrap(), "tests"));
    command.env(SHIM_VARIABLE, shim).current_dir("/").uid(65534).gid(65534);
    passes(command.args(["--exact", "isolation::stand_in_of_a_machine", "--ignored", "--nocapture"]));
}

#[test]
fn without_namespaces_files_are_kept_from_a_pod_all_the_same() {
    const WITHOUT: &str = "echo 0 > /proc/sys/user/max_mnt_namespaces && echo 0 > /proc/sys/user/max_user_namespaces \
                           && exec \"$0\" \"$@\"";
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "sh", "-c", script]).arg(std::env::current_exe().unwrap());
        command
    };
    if !unshare("echo 0 > /proc/sys/user/max_mnt_namespaces").status().is_ok_and(|status| status.success()) {
        return; // this machine does not let users take that away from themselves
    }
    let stand_in = "isolation::stand_in_of_a_machine_without_namespaces";
    passes(unshare(WITHOUT).args(["--exact", stand_in, "--ignored", "--nocapture"]));
}

fn passes(command: &mut Command) {
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.contains("1 passed"), "{told}\n{complaint}");
}

#[tokio::test]
#[ignore = "started by a test above, as a process of its own"]
async fn stand_in_of_a_machine() {
    isolated_on(Machine::Whole).await;
}

#[tokio::test]
#[ignore = "started by a test above, as a process of its own"]
async fn stand_in_of_a_machine_without_namespaces() {
    isolated_on(Machine::WithoutNamespaces).await;
    volume_above_the_state_on(Machine::WithoutNamespaces).await;
}
