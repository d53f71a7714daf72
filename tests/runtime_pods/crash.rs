//! Daemons, shims and machines that die.

use std::process::{Command, Stdio};

use launchway::model::outcome::PodOutcome;
use serde_json::{Value, json};

use crate::world::{World, eventually, kill, lives, number_in, once, read, serving};

fn unknown(outcome: &PodOutcome, why: &str) -> bool {
    matches!(outcome, PodOutcome::Unknown { message, .. } if message.contains(why))
}

#[tokio::test]
async fn pods_outlive_the_daemon() {
    let mut world = World::new();
    let pid = world.file("pid");
    let pod = serving(&format!("echo $$ >> {}; exec sleep 1000", pid.display()));
    world.start(&pod).await;
    let process = number_in(&pid);
    world.restart();
    world.ready(&pod).await;
    world.start(&pod).await;
    assert!(lives(process));
    world.stop(&pod).await;
    assert_eq!(read(&pid), format!("{process}\n"));
}

#[tokio::test]
async fn what_ended_while_there_was_no_daemon_is_known_afterwards() {
    let mut world = World::new();
    let go = world.file("go");
    let pod = once(&format!("while [ ! -f {} ]; do sleep 0.05; done; exit 9", go.display()));
    world.start(&pod).await;
    eventually("started", || world.dir(&pod).join("status.json").exists());
    world.kill_daemon();
    std::fs::write(&go, "").unwrap();
    eventually("ended", || world.status(&pod)["phase"] == "ended");
    world.restart();
    assert!(matches!(world.ended(&pod).await, PodOutcome::Failed { code: 9, .. }));
}

#[tokio::test]
async fn the_processes_of_a_killed_shim_end_and_nobody_knows_how() {
    let world = World::new();
    let (pid, orphan) = (world.file("pid"), world.file("orphan"));
    let script =
        format!("setsid sleep 1000 & echo $! > {}; echo $$ > {}; exec sleep 1000", orphan.display(), pid.display());
    let pod = serving(&script);
    world.start(&pod).await;
    world.ready(&pod).await;
    let pids = [number_in(&pid), number_in(&orphan)];
    kill(world.shim_pid(&pod));
    let outcome = world.ended(&pod).await;
    assert!(unknown(&outcome, "shim was killed"), "{outcome:?}");
    assert_eq!(pids.map(lives), [false; 2]);
    assert!(!world.dir(&pod).join("ready").exists());
}

#[tokio::test]
async fn a_command_whose_shim_was_killed_never_runs_again() {
    let mut world = World::new();
    let count = world.file("count");
    let pod = once(&format!("echo run >> {}; exec sleep 1000", count.display()));
    world.start(&pod).await;
    eventually("running", || read(&count) == "run\n");
    world.kill_daemon();
    kill(world.shim_pid(&pod));
    world.restart();
    world.start(&pod).await;
    assert!(unknown(&world.ended(&pod).await, "shim was killed"));
    assert_eq!(read(&count), "run\n");
}

#[tokio::test]
async fn a_shim_is_in_no_group_that_ends_with_the_daemon() {
    let world = World::new();
    let pod = serving("exec sleep 1000");
    world.start(&pod).await;
    world.ready(&pod).await;
    let shim = world.shim_pid(&pod);
    let stat = read(format!("/proc/{shim}/stat"));
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let (group, session) = (fields[2], fields[3]);
    assert_eq!((group, session), (shim.to_string().as_str(), shim.to_string().as_str()));
    let open: Vec<_> = std::fs::read_dir(format!("/proc/{shim}/fd")).unwrap().collect();
    assert!(open.len() < 16, "a shim keeps nothing of the daemon's open: {open:?}");
}

#[tokio::test]
async fn a_second_shim_ends_at_once() {
    let world = World::new();
    let pid = world.file("pid");
    let pod = serving(&format!("echo $$ >> {}; exec sleep 1000", pid.display()));
    world.start(&pod).await;
    let process = number_in(&pid);
    let second = Command::new(env!("CARGO_BIN_EXE_launchway"))
        .arg("shim")
        .arg(world.dir(&pod))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(second.status.success() && second.stderr.is_empty(), "{second:?}");
    assert!(lives(process));
    assert_eq!(read(&pid), format!("{process}\n"));
}

#[tokio::test]
async fn after_a_reboot_what_ran_is_unknown_and_what_ended_is_not() {
    let mut world = World::new();
    let mut finished = once("exit 2");
    finished.id.name = "hook".into();
    let running = serving("exec sleep 1000");
    world.start(&finished).await;
    world.start(&running).await;
    world.ended(&finished).await;
    world.ready(&running).await;
    world.kill_daemon();
    kill(world.shim_pid(&running));
    for pod in [&finished, &running] {
        let mut status: Value = world.status(pod);
        status["bootId"] = json!("an-earlier-boot");
        std::fs::write(world.dir(pod).join("status.json"), status.to_string()).unwrap();
    }
    world.restart();
    assert!(matches!(world.ended(&finished).await, PodOutcome::Failed { code: 2, .. }));
    assert!(unknown(&world.ended(&running).await, "machine was restarted"));
}

#[tokio::test]
async fn a_start_that_was_interrupted_leaves_no_pod() {
    let mut world = World::new();
    let pod = once("true");
    world.kill_daemon();
    std::fs::create_dir_all(world.dir(&pod)).unwrap();
    std::fs::write(world.dir(&pod).join(".pod.json.draft"), "{").unwrap();
    world.restart();
    assert!(world.observe(&pod).await.is_none());
    world.start(&pod).await;
    assert_eq!(world.ended(&pod).await, PodOutcome::Succeeded);
}
