//! Files of pods that are damaged or deleted.

use std::fs;
use std::time::Instant;

use launchway::model::outcome::PodOutcome;
use launchway::model::pod::{ObservedPod, Pod, PodOwner, PodPhase};
use launchway::runtime::Runtime;
use rustix::fs::{FlockOperation, flock};
use serde_json::json;

use crate::world::{PATIENCE, World, eventually, kill, lives, number_in, once, pod, read, serving, shell, with};

/// A pod whose process is known and that is ready.
async fn running(world: &World, file: &str) -> (Pod, i32) {
    let pid = world.file(file);
    let pod = serving(&format!("echo $$ >> {}; exec sleep 1000", pid.display()));
    world.start(&pod).await;
    world.ready(&pod).await;
    (pod, number_in(&pid))
}

async fn until_forgotten(world: &World, pod: &Pod) {
    let since = Instant::now();
    while world.observe(pod).await.is_some() {
        assert!(since.elapsed() < PATIENCE, "it is not forgotten");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_living_shim_writes_anew_what_was_damaged_or_deleted() {
    let mut world = World::new();
    let (pod, process) = running(&world, "pid").await;
    let (record, status) = (world.dir(&pod).join("pod.json"), world.dir(&pod).join("status.json"));
    let before = (read(&record), world.status(&pod));
    for damaged in [&[&status][..], &[&record], &[&record, &status]] {
        for delete in [false, true] {
            world.kill_daemon();
            damaged.iter().for_each(|file| if delete { fs::remove_file(file) } else { fs::write(file, "") }.unwrap());
            world.restart();
            world.ready(&pod).await;
            assert_eq!((read(&record), world.status(&pod)), before, "{damaged:?}");
        }
    }
    assert!(lives(process));
    world.stop(&pod).await;
    assert_eq!(read(world.file("pid")), format!("{process}\n"), "it was never started again");
}

#[tokio::test]
async fn a_status_that_is_damaged_while_the_daemon_runs_is_written_anew() {
    let world = World::new();
    let (pod, _) = running(&world, "pid").await;
    let status = world.dir(&pod).join("status.json");
    let before = world.status(&pod);
    fs::write(&status, "{").unwrap();
    fs::write(world.root().join("changes/shop-dev~web-1-a"), "").unwrap();
    eventually("the status is whole", || serde_json::from_str(&read(&status)).ok() == Some(before.clone()));
    let is_well = |seen: &ObservedPod| matches!(seen.phase, PodPhase::Ready { .. }) && seen.message.is_empty();
    world.until(&pod, "well", is_well).await;
}

#[tokio::test]
async fn what_a_pod_did_whose_shim_and_status_are_gone_is_unknown_and_never_done_again() {
    for delete in [false, true] {
        let mut world = World::new();
        let count = world.file("count");
        let pod = once(&format!("echo run >> {}; exec sleep 1000", count.display()));
        world.start(&pod).await;
        eventually("running", || read(&count) == "run\n");
        let (shim, status) = (world.shim_pid(&pod), world.dir(&pod).join("status.json"));
        world.kill_daemon();
        kill(shim);
        if delete { fs::remove_file(&status) } else { fs::write(&status, "") }.unwrap();
        world.restart();
        assert!(matches!(world.ended(&pod).await, PodOutcome::Unknown { .. }));
        assert_eq!(read(&count), "run\n");
    }
}

#[tokio::test]
async fn a_pod_without_record_and_without_process_makes_room_for_another() {
    let mut world = World::new();
    let (pod, process) = running(&world, "pid").await;
    let shim = world.shim_pid(&pod);
    world.kill_daemon();
    fs::write(world.dir(&pod).join("pod.json"), "{").unwrap();
    kill(shim);
    eventually("its process is gone", || !lives(process));
    world.restart();
    assert!(world.observe(&pod).await.is_none());
    assert!(!world.dir(&pod).exists());
    world.start(&pod).await;
    world.ready(&pod).await;
}

#[tokio::test]
async fn what_may_still_run_of_a_pod_without_record_is_left_and_told() {
    let mut world = World::new();
    let pod = once("true");
    world.kill_daemon();
    fs::create_dir_all(world.dir(&pod)).unwrap();
    fs::write(world.dir(&pod).join("pod.json"), "{").unwrap();
    let inode = std::os::unix::fs::MetadataExt::ino(&fs::metadata(world.dir(&pod)).unwrap());
    let mut left = std::process::Command::new("sleep");
    let mut left = left.arg("1000").env("LAUNCHWAY_POD", format!("shop-dev/web-1-a:{inode:x}-1")).spawn().unwrap();
    world.restart();
    let told = world.observe(&pod).await.unwrap();
    assert_eq!((&told.owner, &told.phase), (&PodOwner::Unknown, &PodPhase::Stopping { interrupted: false }));
    let why = world.runtime().start_pod(&pod, &Default::default()).await.unwrap_err().one_line();
    for text in [told.message, why] {
        let expected = format!("end them ({}), then `{}` goes", left.id(), world.dir(&pod).display());
        assert!(text.contains("pod.json") && text.contains(&expected), "{text}");
    }
    assert!(left.try_wait().unwrap().is_none(), "nothing is ended by guess");
    left.kill().unwrap();
    left.wait().unwrap();
    eventually("the folder goes", || !world.dir(&pod).exists());
    world.start(&pod).await;
    assert_eq!(world.ended(&pod).await, PodOutcome::Succeeded);
}

#[tokio::test]
async fn a_shim_that_does_not_write_anew_is_asked_to_end() {
    let mut world = World::new();
    let pod = once("true");
    world.kill_daemon();
    fs::create_dir_all(world.dir(&pod)).unwrap();
    fs::write(world.dir(&pod).join("pod.json"), "{").unwrap();
    let shim = fs::File::create(world.dir(&pod).join("shim.lock")).unwrap();
    flock(&shim, FlockOperation::LockExclusive).unwrap();
    world.restart();
    let told = world.observe(&pod).await.unwrap();
    assert!(told.message.contains("its shim is asked to write it anew"), "{}", told.message);
    eventually("it is asked to end", || world.dir(&pod).join("stop").exists());
    assert!(world.dir(&pod).exists());
    drop(shim);
    until_forgotten(&world, &pod).await;
    assert!(!world.dir(&pod).exists());
}

#[tokio::test]
async fn a_pod_whose_folder_is_deleted_ends_and_is_forgotten() {
    let world = World::new();
    let pid = world.file("pid");
    let probe = json!({"readinessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 1}});
    let script = format!("echo $$ >> {}; exec sleep 1000", pid.display());
    let pod = pod(json!({"containers": [with(shell(&script), probe)], "terminationGracePeriodSeconds": 1}));
    world.start(&pod).await;
    world.ready(&pod).await;
    let (process, shim) = (number_in(&pid), world.shim_pid(&pod));
    fs::remove_dir_all(world.dir(&pod)).unwrap();
    eventually("both are gone", || !lives(process) && !lives(shim));
    until_forgotten(&world, &pod).await;
    world.start(&pod).await;
    world.ready(&pod).await;
}

#[tokio::test]
async fn a_pod_whose_folder_is_replaced_ends_and_leaves_the_other_one_alone() {
    let world = World::new();
    let pid = world.file("pid");
    let probe = json!({"readinessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 1}});
    let script = format!("echo $$ >> {}; exec sleep 1000", pid.display());
    let pod = pod(json!({"containers": [with(shell(&script), probe)], "terminationGracePeriodSeconds": 1}));
    world.start(&pod).await;
    world.ready(&pod).await;
    let (process, shim) = (number_in(&pid), world.shim_pid(&pod));
    let (folder, next) = (world.dir(&pod), world.file("next"));
    fs::create_dir(&next).unwrap();
    for file in ["ready", "shim.lock"] {
        fs::write(next.join(file), "theirs").unwrap();
    }
    fs::remove_dir_all(&folder).unwrap();
    fs::rename(&next, &folder).unwrap();
    eventually("both are gone", || !lives(process) && !lives(shim));
    assert_eq!(fs::read_to_string(folder.join("ready")).unwrap(), "theirs");
}

#[tokio::test]
async fn a_deleted_folder_of_changes_is_made_and_watched_again() {
    let world = World::new();
    let go = world.file("go");
    let pod = once(&format!("while [ ! -f {} ]; do sleep 0.05; done; exit 9", go.display()));
    world.start(&pod).await;
    let changes = world.root().join("changes");
    for round in ["deleted", "replaced"] {
        if round == "deleted" { fs::remove_dir_all(&changes) } else { fs::rename(&changes, world.file("away")) }
            .unwrap();
        eventually("the folder is there again", || changes.exists());
        let mut other = serving("exec sleep 1000");
        other.id.name = round.into();
        world.start(&other).await;
        world.ready(&other).await;
    }
    fs::write(&go, "").unwrap();
    assert!(matches!(world.ended(&pod).await, PodOutcome::Failed { code: 9, .. }));
}
