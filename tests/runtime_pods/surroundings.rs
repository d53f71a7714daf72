//! What a pod's processes find: environment, volumes, users, launchables.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use launchway::error::Class;
use launchway::model::object::{Kind, ObjectKey};
use launchway::model::outcome::{FailureReason, PodOutcome};
use launchway::model::pod::{Pod, Scalar};
use launchway::runtime::{Runtime, ServiceAddress, ServicePort};
use serde_json::{Value, json};

use crate::world::{World, eventually, once, pod, read, shell, with};

fn objects() -> BTreeMap<ObjectKey, Value> {
    let key = |kind, name: &str| ObjectKey { kind, name: name.into() };
    BTreeMap::from([
        (key(Kind::ConfigMap, "settings"), json!({"data": {"colour": "blue", "size": "9"}})),
        // Too short to be masked, so that tests see what pods find.
        (key(Kind::Secret, "login"), json!({"data": {"password": "cHctNQ=="}})),
        (key(Kind::PersistentVolumeClaim, "data"), json!({"spec": {}})),
    ])
}

fn runs_once(spec: Value) -> Pod {
    Pod { run_once_seconds: Some(60), ..pod(spec) }
}

async fn output(world: &World, pod: &Pod) -> String {
    world.start_with(pod, &objects()).await;
    let outcome = world.ended(pod).await;
    let logs = world.logs(pod).await;
    assert_eq!(outcome, PodOutcome::Succeeded, "{logs}");
    logs
}

#[tokio::test]
async fn the_environment_is_kubernetes_and_nothing_of_the_daemons_own() {
    let world = World::new();
    let port = |name: Option<&str>, port| ServicePort {
        name: name.map(str::to_owned),
        port,
        target_port: Scalar::Number(1),
        protocol: None,
    };
    *world.services.addresses.lock().unwrap() = vec![ServiceAddress {
        name: "front-end".into(),
        address: "127.1.2.3".parse().unwrap(),
        ports: vec![port(Some("http"), 80), port(Some("admin"), 90)],
        selects: None,
        ready: 0,
        problem: None,
    }];
    let container = with(
        shell("env"),
        json!({
            "ports": [{"name": "web-ui", "containerPort": 8080}],
            "envFrom": [{"prefix": "CFG_", "configMapRef": {"name": "settings"}}],
            "env": [
                {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "login", "key": "password"}}},
                {"name": "URL", "value": "http://$(FRONT_END_SERVICE_HOST):$(FRONT_END_SERVICE_PORT_ADMIN)/$$(x)"},
                {"name": "WHERE", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                {"name": "LABEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
                {"name": "MEMORY", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
                {"name": "NONE", "valueFrom": {"configMapKeyRef": {"name": "none", "key": "x", "optional": true}}},
            ],
            "resources": {"limits": {"memory": "64Mi"}},
        }),
    );
    let logs = output(&world, &runs_once(json!({"containers": [container]}))).await;
    let variables: BTreeMap<&str, &str> = logs.lines().filter_map(|line| line.split_once('=')).collect();
    let expected = [
        ("CFG_colour", "blue"),
        ("PASSWORD", "pw-5"),
        ("URL", "http://127.1.2.3:90/$(x)"),
        ("LABEL", "web"),
        ("MEMORY", "64"),
        ("FRONT_END_SERVICE_PORT", "80"),
        ("POD_NAME", "web-1-a"),
        ("LAUNCHWAY_REVISION", "0123456789012345678901234567890123456789"),
    ];
    for (name, value) in expected {
        assert_eq!(variables.get(name), Some(&value), "{name}\n{logs}");
    }
    assert_eq!(variables["WHERE"], variables["POD_IP"]);
    assert_eq!(variables["PORT"], variables["PORT_WEB_UI"]);
    let foreign = ["CARGO", "CARGO_MANIFEST_DIR", "NONE", "USER", "LD_LIBRARY_PATH"];
    assert!(foreign.iter().all(|name| !variables.contains_key(name)), "{logs}");
}

#[tokio::test]
async fn volumes_are_where_the_mounts_say_and_their_paths_are_told() {
    let world = World::new();
    let script = "cd $LAUNCHWAY_MOUNT_SETTINGS; echo $(ls) $(cat shade); stat -c %a shade
        cat /not-there/settings/shade /etc/not-there/password; echo
        echo x > $LAUNCHWAY_MOUNT_SCRATCH/x; cat /not-there/scratch/x; ls /etc/passwd
        echo run >> /not-there/data/count; cat $LAUNCHWAY_MOUNT_DATA/count
        cat $1";
    let mounts = json!([
        {"name": "settings", "mountPath": "/not-there/settings"},
        {"name": "login", "mountPath": "/etc/not-there", "readOnly": true},
        {"name": "scratch", "mountPath": "/not-there/scratch"},
        {"name": "data", "mountPath": "/not-there/data", "subPath": "a/b"},
    ]);
    let container = json!({
        "name": "web", "image": "host", "volumeMounts": mounts,
        "command": ["sh", "-ec", script, "sh", "$(LAUNCHWAY_MOUNT_LOGIN)/password"],
    });
    let items = json!([{"key": "colour", "path": "shade", "mode": 0o440}]);
    let spec = json!({
        "containers": [container],
        "volumes": [
            {"name": "settings", "configMap": {"name": "settings", "items": items}},
            {"name": "login", "secret": {"secretName": "login"}},
            {"name": "scratch", "emptyDir": {}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        ],
    });
    let first = runs_once(spec.clone());
    assert_eq!(output(&world, &first).await, "shade blue\n440\nbluepw-5\nx\n/etc/passwd\nrun\npw-5");
    assert!(!Path::new("/not-there").exists() && !Path::new("/etc/not-there").exists());
    world.forget(&first).await;
    let second = runs_once(spec);
    assert_eq!(output(&world, &second).await, "shade blue\n440\nbluepw-5\nx\n/etc/passwd\nrun\nrun\npw-5");
}

#[tokio::test]
async fn what_is_mounted_read_only_refuses_writing() {
    let world = World::new();
    let mounts = json!([
        {"name": "data", "mountPath": "/not-there/a"},
        {"name": "data", "mountPath": "/not-there/b", "readOnly": true},
    ]);
    let script = "echo x > /not-there/a/x; cat /not-there/b/x; echo y > /not-there/b/y || echo refused";
    let container = with(shell(script), json!({"volumeMounts": mounts}));
    let pod = runs_once(json!({"containers": [container], "volumes": [{"name": "data", "emptyDir": {}}]}));
    let logs = output(&world, &pod).await;
    assert!(logs.starts_with("x\n") && logs.ends_with("refused\n"), "{logs}");
}

#[tokio::test]
async fn a_sub_path_is_followed_through_links_of_its_volume_and_never_out_of_it() {
    let world = World::new();
    let outside = world.file("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("theirs"), "theirs").unwrap();
    let spec = |script: &str, sub_path: Option<&str>| {
        let mount = match sub_path {
            Some(path) => json!({"name": "data", "mountPath": "/not-there", "subPath": path}),
            None => json!({"name": "data", "mountPath": "/not-there"}),
        };
        let container = with(shell(script), json!({"volumeMounts": [mount]}));
        let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
        json!({"containers": [container], "volumes": volumes})
    };
    let mut number = 0;
    let mut named = |spec: Value| {
        number += 1;
        let mut pod = runs_once(spec);
        pod.id.name = format!("web-{number}").as_str().into();
        pod
    };
    let plant = format!(
        "cd /not-there; mkdir v1; echo ours > v1/x; ln -s v1 current; ln -s {0} out; ln -s ../../../pods up; ln -s {0} v1/out",
        outside.display()
    );
    output(&world, &named(spec(&plant, None))).await;
    assert_eq!(output(&world, &named(spec("cat /not-there/x", Some("./current")))).await, "ours\n");
    for way in ["out", "out/made", "up", "current/out"] {
        let pod = named(spec("ls /not-there", Some(way)));
        world.start_with(&pod, &objects()).await;
        let PodOutcome::Failed { reason, message, .. } = world.ended(&pod).await else { panic!() };
        assert_eq!(reason, FailureReason::StartError);
        assert!(message.contains("leaves it by a link"), "{way}: {message}");
    }
    assert!(!outside.join("made").exists());
    // A link that was made after the pod was: its next start, or a command, does not follow it either.
    let pod = named(spec("sleep 600", Some("late")));
    let late = Pod { run_once_seconds: None, ..pod };
    world.start_with(&late, &objects()).await;
    world.ready(&late).await;
    let swap = format!("cd /not-there; rmdir late; ln -s {} late", outside.display());
    output(&world, &named(spec(&swap, None))).await;
    let (code, _, complaint) = world.exec(&late, &["ls"]).await.unwrap();
    let complaint = String::from_utf8(complaint).unwrap();
    assert!(code == 127 && complaint.contains("leaves it by a link"), "{code}: {complaint}");
    world.stop(&late).await;
}

#[tokio::test]
async fn one_key_can_be_mounted_over_a_file_and_a_folder_under_the_launchable() {
    let world = World::new();
    std::fs::create_dir_all(world.image("app")).unwrap();
    let mounts = json!([
        {"name": "settings", "mountPath": "/etc/hostname", "subPath": "colour"},
        {"name": "data", "mountPath": "data"},
    ]);
    let script = "cat /etc/hostname; echo; touch data/x; ls data";
    let container = with(shell(script), json!({"image": "app", "volumeMounts": mounts}));
    let volumes = json!([{"name": "settings", "configMap": {"name": "settings"}}, {"name": "data", "emptyDir": {}}]);
    let pod = runs_once(json!({"containers": [container], "volumes": volumes}));
    assert_eq!(output(&world, &pod).await, "blue\nx\n");
    assert!(!world.image("app/data").exists());
}

#[tokio::test]
async fn what_is_not_declared_yet_is_waited_for() {
    let world = World::new();
    let lacking = [
        (json!({"name": "v", "secret": {"secretName": "none"}}), "secret \"none\" not found"),
        (json!({"name": "v", "persistentVolumeClaim": {"claimName": "no"}}), "persistentvolumeclaim \"no\" not found"),
        (
            json!({"name": "v", "configMap": {"name": "settings", "items": [{"key": "none", "path": "x"}]}}),
            "couldn't find key none in ConfigMap shop-dev/settings",
        ),
    ];
    for (volume, expected) in lacking {
        let pod = runs_once(json!({"containers": [shell("true")], "volumes": [volume]}));
        let failure = world.runtime().start_pod(&pod, &objects()).await.unwrap_err();
        assert_eq!((failure.class(), failure.one_line().as_str()), (Class::Waiting, expected));
        assert!(world.observe(&pod).await.is_none(), "nothing is there that would have to go again");
    }
    let optional = json!({"name": "v", "secret": {"secretName": "none", "optional": true}});
    let pod = runs_once(json!({"containers": [shell("echo started")], "volumes": [optional]}));
    assert_eq!(output(&world, &pod).await, "started\n");
}

#[tokio::test]
async fn what_a_volume_lacks_fails_the_start() {
    let world = World::new();
    let cases = [
        (json!({"name": "v", "hostPath": {"path": "/etc"}}), "allow.hostPaths"),
        (
            json!({"name": "v", "configMap": {"name": "settings", "items": [{"key": "size", "path": "../x"}]}}),
            "leaves the volume",
        ),
    ];
    for (number, (volume, expected)) in cases.into_iter().enumerate() {
        let container = with(shell("true"), json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]}));
        let mut pod = runs_once(json!({"containers": [container], "volumes": [volume]}));
        pod.id.name = format!("web-{number}").as_str().into();
        world.start_with(&pod, &objects()).await;
        let PodOutcome::Failed { reason, message, .. } = world.ended(&pod).await else { panic!() };
        assert_eq!(reason, FailureReason::StartError);
        assert!(message.contains(expected), "{message}");
    }
}

#[tokio::test]
async fn a_launchable_is_where_its_pods_work() {
    let world = World::new();
    let bin = world.image("app/bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::write(bin.join("launch"), "#!/bin/sh\necho \"$0 $1\"; pwd\n").unwrap();
    std::fs::set_permissions(bin.join("launch"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let pod = runs_once(json!({"containers": [{"name": "web", "image": "app", "args": ["$(POD_NAME)"]}]}));
    let folder = world.image("app");
    let expected = format!("{}/bin/launch web-1-a\n{}\n", folder.display(), folder.display());
    assert_eq!(output(&world, &pod).await, expected);
}

#[tokio::test]
async fn a_user_that_is_allowed_is_become() {
    let Some(world) = world_for_others() else { return };
    let container = with(
        shell("id -u; id -g; id -G; touch $HOME/x $LAUNCHWAY_MOUNT_TMP/x"),
        json!({"volumeMounts": [{"name": "tmp", "mountPath": "/v"}]}),
    );
    let spec = json!({
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
        "securityContext": {"runAsUser": 65534},
    });
    assert_eq!(output(&world, &runs_once(spec)).await, "65534\n65534\n65534\n");
}

/// A world whose folders let other users pass, if this user can become another one.
fn world_for_others() -> Option<World> {
    let world = rustix::process::geteuid().is_root().then(World::new)?;
    for folder in [world.path().to_owned(), world.root()] {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o711)).unwrap();
    }
    Some(world)
}

/// A container that reads and writes wherever it may, as some user.
fn using_volumes(name: &str, user: u32) -> Value {
    let script =
        "cat login/password && for folder in $HOME tmp data tmp/sub; do touch $folder/$(id -u) || exit 1; done";
    let mount = |volume: &str| json!({"name": volume, "mountPath": volume});
    let sub_path = json!({"name": "tmp", "mountPath": "tmp/sub", "subPath": "sub"});
    let mounts = json!([mount("login"), mount("tmp"), sub_path, mount("data")]);
    with(shell(script), json!({"name": name, "volumeMounts": mounts, "securityContext": {"runAsUser": user}}))
}

#[tokio::test]
async fn users_of_one_pod_share_its_volumes_and_its_home() {
    let volumes = json!([
        {"name": "login", "secret": {"secretName": "login"}},
        {"name": "tmp", "emptyDir": {}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
    ]);
    for [first, second] in [[0, 65534], [65534, 0]] {
        let Some(world) = world_for_others() else { return };
        let spec = json!({
            "initContainers": [using_volumes("first", first)],
            "containers": [using_volumes("second", second)],
            "volumes": volumes,
        });
        let pod = runs_once(spec);
        assert_eq!(output(&world, &pod).await, "first pw-5\nsecond pw-5\n", "{first} before {second}");
        let mode = |name: &str| std::fs::metadata(world.dir(&pod).join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("volumes/tmp"), mode("volumes/login"), mode("")), (0o777, 0o755, 0o711));
    }
}

#[tokio::test]
async fn a_claim_is_open_to_the_user_of_the_next_pod() {
    let Some(world) = world_for_others() else { return };
    let mounts = json!([{"name": "data", "mountPath": "data"}]);
    for (name, user) in [("web-1-a", 0), ("web-1-b", 65534), ("web-1-c", 0)] {
        let container = with(shell("touch data/$(id -u); ls data"), json!({"volumeMounts": mounts}));
        let mut pod = runs_once(json!({
            "containers": [with(container, json!({"securityContext": {"runAsUser": user}}))],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        }));
        pod.id.name = name.into();
        assert_eq!(output(&world, &pod).await, if user == 0 && name == "web-1-a" { "0\n" } else { "0\n65534\n" });
    }
}

#[tokio::test]
async fn a_host_port_is_the_pods_and_no_other_gets_it() {
    let world = World::new();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let ports = json!([{"containerPort": 80, "hostPort": free}, {"containerPort": 81}]);
    let container = with(shell("echo $PORT; sleep 1000"), json!({"ports": ports}));
    let first = pod(json!({"containers": [container]}));
    world.start(&first).await;
    world.ready(&first).await;
    eventually("the port is told", || read(world.dir(&first).join("logs/web.cri")).ends_with(&format!(" F {free}\n")));
    let mut second = first.clone();
    second.id.name = "web-1-b".into();
    let refused = world.runtime().start_pod(&second, &BTreeMap::new()).await.unwrap_err();
    assert_eq!(refused.class(), Class::Waiting);
    assert_eq!(refused.to_string(), format!("another pod has `hostPort` {free}"));
    world.stop(&first).await;
    world.start(&second).await;
    world.ready(&second).await;
}

#[tokio::test]
async fn limits_are_sane_whatever_the_daemon_has() {
    let world = World::new();
    let logs = output(&world, &once("ulimit -c; test $(ulimit -n) -le 65536 && echo fine; umask")).await;
    assert_eq!(logs, "0\nfine\n0022\n");
}

#[tokio::test]
async fn the_record_of_a_pod_is_private() {
    let world = World::new();
    let pod = once("true");
    output(&world, &pod).await;
    let mode = |name: &str| std::fs::metadata(world.dir(&pod).join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("pod.json"), mode("status.json"), mode("")), (0o600, 0o600, 0o700));
}
