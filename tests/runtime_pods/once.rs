//! Pods that run once: hooks and tasks.

use std::collections::BTreeMap;
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _};
use launchway::error::Class;
use launchway::model::outcome::{FailureReason, PodOutcome};
use launchway::model::time::Timestamp;
use launchway::runtime::Runtime;
use launchway::runtime::logs::LogQuery;
use serde_json::json;

use crate::world::{World, lives, number_in, once, pod, read, serving, shell, with};

#[tokio::test]
async fn a_command_that_succeeds_is_a_success() {
    let world = World::new();
    let pod = once("echo done");
    world.start(&pod).await;
    assert_eq!(world.ended(&pod).await, PodOutcome::Succeeded);
    assert_eq!(world.logs(&pod).await, "done\n");
}

#[tokio::test]
async fn output_is_chosen_by_line_by_time_and_by_run() {
    let world = World::new();
    let (count, all) = (world.file("count"), LogQuery::default());
    let script =
        format!("echo x >> {0}; n=$(wc -l < {0}); echo run $n; [ $n = 2 ] && exec sleep 1000", count.display());
    let pod = serving(&script);
    world.start(&pod).await;
    let mut output = world.runtime().logs(&pod.id, &LogQuery { follow: true, ..all.clone() }).await.unwrap();
    let mut followed = Vec::new();
    while followed != b"run 1\nrun 2\n" {
        followed.extend(output.next().await.unwrap().unwrap());
    }
    world.until(&pod, "restarted", |observed| observed.restarts == 1).await;
    assert_eq!(world.logs_of(&pod, &all).await, "run 1\nrun 2\n");
    assert_eq!(world.logs_of(&pod, &LogQuery { tail: Some(1), ..all.clone() }).await, "run 2\n");
    assert_eq!(world.logs_of(&pod, &LogQuery { bytes: Some(3), ..all.clone() }).await, " 2\n");
    assert_eq!(world.logs_of(&pod, &LogQuery { previous: true, ..all.clone() }).await, "run 1\n");
    let timed = world.logs_of(&pod, &LogQuery { timestamps: true, ..all.clone() }).await;
    let time = |line: &str| line.split_once(' ').unwrap().0.parse::<jiff::Timestamp>().unwrap();
    let times: Vec<jiff::Timestamp> = timed.lines().map(time).collect();
    assert!(times.len() == 2 && times[0] < times[1], "{timed}");
    let since = Some(Timestamp(times[1].as_millisecond()));
    assert_eq!(world.logs_of(&pod, &LogQuery { since, ..all.clone() }).await, "run 2\n");
    let mut never = once("echo done");
    never.id.name = "web-1-b".into();
    world.start(&never).await;
    world.ended(&never).await;
    let refused = world.runtime().logs(&never.id, &LogQuery { previous: true, ..all }).await;
    assert!(refused.is_err_and(|failure| failure.one_line().contains("was started again")));
}

#[tokio::test]
async fn output_goes_to_the_journal_too_line_by_line() {
    let mut world = World::new();
    let path = world.file("journal");
    let journal = UnixDatagram::bind(&path).unwrap();
    journal.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    world.journal = Some(path);
    world.restart();
    let pod = once("printf 'one\ntw'; printf 'o\n\nend'");
    world.start(&pod).await;
    assert_eq!(world.ended(&pod).await, PodOutcome::Succeeded);
    for line in ["one", "two", "end"] {
        let mut message = [0; 1024];
        let count = journal.recv(&mut message).unwrap();
        let told = String::from_utf8_lossy(&message[..count]).into_owned();
        let expected =
            ["PRIORITY=6", "SYSLOG_IDENTIFIER=web-1-a", "LAUNCHWAY_NAMESPACE=shop-dev", "LAUNCHWAY_CONTAINER=web"];
        assert!(expected.iter().all(|field| told.lines().any(|found| found == *field)), "{told}");
        assert!(told.ends_with(&format!("\nMESSAGE={line}\n")), "{told}");
    }
    assert_eq!(world.logs(&pod).await, "one\ntwo\n\nend");
    // A journal that is away holds nobody up.
    drop(journal);
    let mut second = once("echo done");
    second.id.name = "web-1-b".into();
    world.start(&second).await;
    assert_eq!(world.ended(&second).await, PodOutcome::Succeeded);
}

#[tokio::test]
async fn output_is_followed_until_the_pod_ends() {
    let world = World::new();
    let go = world.file("go");
    let pod = once(&format!("echo first; until [ -e {} ]; do sleep 0.02; done; seq 1 1000; printf end", go.display()));
    world.start(&pod).await;
    let mut output = world.runtime().logs(&pod.id, &LogQuery { follow: true, ..LogQuery::default() }).await.unwrap();
    assert_eq!(output.next().await.unwrap().unwrap(), b"first\n");
    std::fs::write(go, "").unwrap();
    let rest: Vec<Vec<u8>> = output.try_collect().await.unwrap();
    let numbers: String = (1..=1000).map(|number| format!("{number}\n")).collect();
    assert_eq!(String::from_utf8(rest.concat()).unwrap(), numbers + "end");
    assert_eq!(world.ended(&pod).await, PodOutcome::Succeeded);
}

#[tokio::test]
async fn a_command_that_fails_tells_its_code_and_its_last_lines() {
    let world = World::new();
    let pod = once("seq 1 5000; echo no such table >&2; exit 3");
    world.start(&pod).await;
    let PodOutcome::Failed { code, reason, message } = world.ended(&pod).await else { panic!() };
    assert_eq!((code, reason), (3, FailureReason::Error));
    assert!(message.ends_with("4999\n5000\nno such table") && message.len() <= 4096, "{message}");
}

#[tokio::test]
async fn a_command_that_is_missing_says_where_it_was_looked_for() {
    let world = World::new();
    let mut pod = pod(json!({"containers": [{"name": "web", "image": "host", "command": ["migrate-db"]}]}));
    pod.run_once_seconds = Some(60);
    world.start(&pod).await;
    let PodOutcome::Failed { code, reason, message } = world.ended(&pod).await else { panic!() };
    assert_eq!((code, reason), (127, FailureReason::StartError));
    assert!(message.contains("`migrate-db`") && message.contains("/usr/bin"), "{message}");
}

#[tokio::test]
async fn a_command_that_hangs_is_ended_at_its_deadline_with_all_its_children() {
    let world = World::new();
    let (child, orphan) = (world.file("child"), world.file("orphan"));
    let script = format!(
        "sleep 1000 & echo $! > {}; setsid sh -c 'env -i sleep 1000 & echo $! > {}'; trap '' TERM; wait",
        child.display(),
        orphan.display()
    );
    let mut pod = pod(json!({"containers": [shell(&script)], "terminationGracePeriodSeconds": 1}));
    pod.run_once_seconds = Some(1);
    let since = Instant::now();
    world.start(&pod).await;
    let PodOutcome::Failed { reason, message, .. } = world.ended(&pod).await else { panic!() };
    assert_eq!(reason, FailureReason::DeadlineExceeded, "{message}");
    assert!(since.elapsed().as_secs() < 30);
    assert!(!lives(number_in(&child)) && !lives(number_in(&orphan)));
}

#[tokio::test]
async fn a_flood_of_output_is_bounded_and_holds_up_nobody() {
    let world = World::new();
    let pod = once("head -c 80000000 /dev/zero | tr '\\0' 'x' | fold -w 99; echo end; exit 1");
    world.start(&pod).await;
    let PodOutcome::Failed { message, .. } = world.ended(&pod).await else { panic!() };
    assert!(message.ends_with("end") && message.len() <= 4096);
    let logs = std::fs::read_dir(world.dir(&pod).join("logs")).unwrap();
    let size: u64 = logs.map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    assert!(size < 32 << 20, "{size}");
}

#[tokio::test]
async fn starting_it_again_does_not_run_it_again() {
    let world = World::new();
    let count = world.file("count");
    let pod = once(&format!("echo run >> {}", count.display()));
    world.start(&pod).await;
    world.start(&pod).await;
    world.ended(&pod).await;
    world.start(&pod).await;
    assert_eq!(world.ended(&pod).await, PodOutcome::Succeeded);
    assert_eq!(read(&count), "run\n");
}

#[tokio::test]
async fn one_that_is_asked_to_end_was_cancelled() {
    let world = World::new();
    let started = world.file("started");
    let pod = once(&format!("echo $$ > {}; exec sleep 1000", started.display()));
    world.start(&pod).await;
    let pid = number_in(&started);
    let PodOutcome::Failed { reason, code, .. } = world.stop(&pod).await else { panic!() };
    assert_eq!((reason, code), (FailureReason::Cancelled, 143));
    assert!(!lives(pid));
}

#[tokio::test]
async fn what_ended_is_forgotten_when_asked_and_not_before() {
    let world = World::new();
    let started = world.file("started");
    let pod = once(&format!("echo $$ > {}; exec sleep 1000", started.display()));
    world.start(&pod).await;
    number_in(&started);
    world.forget(&pod).await;
    assert!(world.observe(&pod).await.is_some());
    world.stop(&pod).await;
    let ended = world.observe(&pod).await.unwrap();
    for twice in 1..=2 {
        world.runtime().remove_pod(&ended).await.unwrap();
        assert!(world.observe(&pod).await.is_none() && !world.dir(&pod).exists(), "{twice}");
    }
}

#[tokio::test]
async fn init_containers_run_one_after_another_before_the_others() {
    let world = World::new();
    let trace = world.file("trace");
    let step = |name: &str| with(shell(&format!("echo {name} >> {}", trace.display())), json!({"name": name}));
    let mut pod = pod(json!({"initContainers": [step("a"), step("b")], "containers": [step("c")]}));
    pod.run_once_seconds = Some(60);
    world.start(&pod).await;
    assert_eq!(world.ended(&pod).await, PodOutcome::Succeeded);
    assert_eq!(read(&trace), "a\nb\nc\n");
}

#[tokio::test]
async fn an_init_container_that_fails_fails_the_pod() {
    let world = World::new();
    let init = with(shell("echo broken; exit 4"), json!({"name": "init"}));
    let mut pod = pod(json!({"initContainers": [init], "containers": [shell("touch never")]}));
    pod.run_once_seconds = Some(60);
    world.start(&pod).await;
    let PodOutcome::Failed { code, message, .. } = world.ended(&pod).await else { panic!() };
    assert_eq!((code, message.as_str()), (4, "broken"));
}

#[tokio::test]
async fn what_is_not_allowed_is_refused_with_the_setting_that_allows_it() {
    let world = World::new();
    let mut stranger = once("true");
    stranger.repository = "other".into();
    let failure = world.runtime().start_pod(&stranger, &BTreeMap::new()).await.unwrap_err();
    assert_eq!(failure.class(), Class::Stalled);
    assert!(failure.one_line().contains("allow.hostImage"), "{failure}");
    let spec = json!({"containers": [with(shell("true"), json!({"securityContext": {"runAsUser": 12345}}))]});
    let failure = world.runtime().prepare(&pod(spec)).await.unwrap_err();
    assert!(failure.one_line().contains("allow.users"), "{failure}");
    assert!(world.observe(&stranger).await.is_none());
}
