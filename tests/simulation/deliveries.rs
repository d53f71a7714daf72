//! Stories in the simulated world: the real decisions over a pretended runtime, without waiting.

use std::time::Duration;

use launchway::model::project::{Project, TaskDefinition};
use launchway::model::run::{Phase, Run};
use launchway::model::shipyard::{Requirement, Sequence, SequenceTrigger, Shipyard, Stage, Task};
use launchway::simulation::runtime::Behaviour;
use launchway::simulation::world::World;
use launchway::testing::world::{deployment_config, hook, project};
use serde_json::{Value, json};

fn world() -> (tempfile::TempDir, World) {
    let folder = crate::folder();
    let world = World::open(folder.path()).unwrap();
    (folder, world)
}

fn two_stages() -> Shipyard {
    let task = |name: &str| Task::named(name);
    let stage = |name: &str| Stage {
        name: name.into(),
        sequences: vec![Sequence { name: "delivery".into(), tasks: vec![task("deployment")], ..Sequence::default() }],
    };
    Shipyard { name: "shop".into(), stages: vec![stage("dev"), stage("production")], ..Shipyard::default() }
}

fn with_hooks(policy: &str) -> Value {
    let params =
        json!({"maxSurge": 1, "maxUnavailable": 0, "pre": hook(policy), "mid": hook(policy), "post": hook(policy)});
    json!({"strategy": {"type": "Rolling", "rollingParams": params}})
}

fn pods(world: &World) -> Vec<String> {
    world.runtime.started().iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn a_push_deploys_with_its_hooks_from_stage_to_stage() {
    let (_folder, mut world) = world();
    let shop = project(two_stages(), &[deployment_config("web", "a", 2, with_hooks("Abort"))]);
    world.push(&shop).await.unwrap();
    world.settle().await.unwrap();
    let expected = ["hook-pre", "0", "hook-mid", "1", "hook-post"];
    let of_stage = |stage: &str| expected.iter().map(|pod| format!("shop-{stage}/web-1-{pod}")).collect::<Vec<_>>();
    assert_eq!(pods(&world), [of_stage("dev"), of_stage("production")].concat());
    assert_eq!(world.config("production", "web").await.unwrap().serving.unwrap().number, 1);
    assert!(world.plan_again(&shop).await.unwrap().is_empty(), "planning after convergence is empty");
    let statuses = world.statuses(1).await.unwrap();
    assert!(
        statuses.contains(&"success launchway/production: web: web version 1 serves after 0ms".to_owned()),
        "{statuses:#?}"
    );
    assert_eq!(statuses.len(), 11, "{statuses:#?}");
}

#[tokio::test]
async fn a_failing_pre_hook_leaves_everything_as_it_was() {
    let (_folder, mut world) = world();
    let shop = |image: &str| project(two_stages(), &[deployment_config("web", image, 2, with_hooks("Abort"))]);
    world.push(&shop("a")).await.unwrap();
    world.settle().await.unwrap();
    let before = pods(&world).len();
    world.runtime.behave("web-2-hook-pre", Behaviour::fails(3));
    world.push(&shop("b")).await.unwrap();
    world.settle().await.unwrap();
    assert_eq!(pods(&world)[before..], ["shop-dev/web-2-hook-pre"]);
    assert!(
        world.runtime.stopped().is_empty() || !world.runtime.stopped().iter().any(|pod| pod.name.as_str() == "web-1-0")
    );
    let statuses = world.statuses(2).await.unwrap();
    assert!(
        statuses
            .iter()
            .any(|status| status.starts_with("skipped launchway/production/web: never reached: dev stopped it")),
        "{statuses:#?}"
    );
    assert!(
        statuses.iter().any(|status| status.starts_with("failure launchway/dev/web/pre: failed with exit code 3")),
        "{statuses:#?}"
    );
    let again = world.plan_again(&shop("b")).await.unwrap();
    world.push(&shop("b")).await.unwrap();
    world.settle().await.unwrap();
    assert_eq!(pods(&world).len(), before + 1, "what failed is not tried again by itself: {again:#?}");
}

#[tokio::test]
async fn a_failing_post_hook_brings_the_previous_version_back() {
    let (_folder, mut world) = world();
    let shop = |image: &str| project(Shipyard::implicit(), &[deployment_config("web", image, 2, with_hooks("Abort"))]);
    world.push(&shop("a")).await.unwrap();
    world.settle().await.unwrap();
    world.runtime.behave("web-2-hook-post", Behaviour::fails(1));
    world.push(&shop("b")).await.unwrap();
    world.settle().await.unwrap();
    let state = world.config("default", "web").await.unwrap();
    assert_eq!((state.serving.unwrap().number, state.wanted.version()), (3, Some(3)), "as a version of its own");
    let mut runs = world.runs().await.unwrap();
    let (Some(Run::Deployment(back)), Some(Run::Deployment(failed))) = (runs.pop(), runs.pop()) else {
        panic!("deployments are the last runs")
    };
    assert_eq!((failed.version, failed.phase), (2, Phase::Failed));
    assert!(failed.message.ends_with("; version 3 serves, which is version 1 again"), "{}", failed.message);
    assert_eq!((back.version, back.phase, back.hooks.len()), (3, Phase::Complete, 0));
    assert!(back.cause.starts_with("rollback to version 1, because version 2 failed: post hook"), "{}", back.cause);
    assert!(!pods(&world).iter().any(|pod| pod.contains("web-3-hook")), "no hook runs again");
}

#[tokio::test]
async fn a_retried_hook_runs_again_after_growing_pauses() {
    let (_folder, mut world) = world();
    world.runtime.behave("web-1-hook-pre", Behaviour::fails(1));
    world.runtime.behave("web-1-hook-pre-3", Behaviour::Good);
    world.push(&project(Shipyard::implicit(), &[deployment_config("web", "a", 1, with_hooks("Retry"))])).await.unwrap();
    world.pass(Duration::from_millis(2_900)).await.unwrap();
    assert_eq!(pods(&world), ["shop-default/web-1-hook-pre", "shop-default/web-1-hook-pre-2"]);
    world.pass(Duration::from_millis(200)).await.unwrap();
    assert_eq!(world.config("default", "web").await.unwrap().serving.unwrap().number, 1);
}

#[tokio::test]
async fn a_newer_push_takes_the_place_of_a_rollout_that_hangs() {
    let (_folder, mut world) = world();
    let shop = |image: &str| project(Shipyard::implicit(), &[deployment_config("web", image, 2, json!({}))]);
    world.push(&shop("a")).await.unwrap();
    world.settle().await.unwrap();
    world.runtime.behave("web-2-", Behaviour::Hangs);
    world.push(&shop("b")).await.unwrap();
    world.settle().await.unwrap();
    world.push(&shop("c")).await.unwrap();
    world.settle().await.unwrap();
    assert_eq!(world.config("default", "web").await.unwrap().serving.unwrap().number, 3);
    let statuses = world.statuses(2).await.unwrap();
    assert!(
        statuses.iter().any(|status| status.starts_with("cancelled launchway/default/web: superseded by")),
        "{statuses:#?}"
    );
}

#[tokio::test]
async fn a_rollout_without_progress_fails_and_the_old_version_stays() {
    let (_folder, mut world) = world();
    let shop = |image: &str| project(Shipyard::implicit(), &[deployment_config("web", image, 2, json!({}))]);
    world.push(&shop("a")).await.unwrap();
    world.settle().await.unwrap();
    world.runtime.behave("web-2-", Behaviour::Hangs);
    world.push(&shop("b")).await.unwrap();
    world.pass(Duration::from_secs(700)).await.unwrap();
    assert_eq!(world.config("default", "web").await.unwrap().serving.unwrap().number, 1);
    assert!(!world.runtime.stopped().iter().any(|pod| pod.name.as_str().starts_with("web-1-")));
}

#[tokio::test]
async fn after_a_reboot_the_last_complete_version_starts_again_without_hooks() {
    let (_folder, mut world) = world();
    let shop = project(Shipyard::implicit(), &[deployment_config("web", "a", 2, with_hooks("Abort"))]);
    world.push(&shop).await.unwrap();
    world.settle().await.unwrap();
    let before = pods(&world).len();
    world.runtime.reboot();
    world.settle().await.unwrap();
    assert_eq!(pods(&world)[before..], ["shop-default/web-1-2", "shop-default/web-1-3"]);
}

/// `dev` delivers and tests; its end starts `report`, or `alarm` if it failed; the end of `report` lets production go on.
fn with_reports() -> Project {
    let task = |name: &str| Task::named(name);
    let trigger = |event: &str, result: &str| SequenceTrigger {
        event: event.into(),
        selector: [Requirement::is("result", result)].into_iter().collect(),
    };
    let sequence = |name: &str, triggered_on: Vec<SequenceTrigger>, tasks: &[&str]| Sequence {
        name: name.into(),
        triggered_on,
        tasks: tasks.iter().map(|name| task(name)).collect(),
        ..Sequence::default()
    };
    let dev = vec![
        sequence("delivery", vec![], &["deployment", "test"]),
        sequence("report", vec![trigger("dev.delivery.finished", "pass")], &["mail"]),
        // A circle: `report` is started by what it starts, and yet ends.
        sequence("echo", vec![trigger("dev.report.finished", "pass")], &["mail"]),
        sequence(
            "alarm",
            vec![trigger("dev.delivery.finished", "fail"), trigger("dev.echo.finished", "fail")],
            &["mail"],
        ),
    ];
    let production = vec![sequence("delivery", vec![trigger("dev.report.finished", "pass")], &["deployment"])];
    let stage = |name: &str, sequences| Stage { name: name.into(), sequences };
    let shipyard = Shipyard {
        name: "shop".into(),
        stages: vec![stage("dev", dev), stage("production", production)],
        ..Shipyard::default()
    };
    let mut shop = project(shipyard, &[deployment_config("web", "a", 1, json!({}))]);
    for stage in &mut shop.stages {
        stage.tasks = ["test", "mail"].map(|name| (name.to_owned(), vec![definition()])).into();
    }
    shop
}

fn definition() -> TaskDefinition {
    TaskDefinition {
        command: vec!["true".into()],
        image: "host".into(),
        env: Vec::new(),
        timeout_seconds: Some(60),
        retries: 0,
        stages: Vec::new(),
        services: Vec::new(),
        properties: Default::default(),
        location: Default::default(),
    }
}

async fn ended_sequences(world: &World) -> Vec<String> {
    let runs = world.runs().await.unwrap().into_iter().filter_map(|run| match run {
        Run::Sequence(run) => Some(format!("{}.{} {}", run.service.stage, run.sequence(), run.attempt)),
        Run::Deployment(_) => None,
    });
    let mut names: Vec<String> = runs.collect();
    names.sort();
    names
}

#[tokio::test]
async fn the_end_of_a_sequence_starts_others_and_what_waits_for_them() {
    let (_folder, mut world) = world();
    let shop = with_reports();
    world.push(&shop).await.unwrap();
    world.settle().await.unwrap();
    let expected = ["dev.delivery 1", "dev.echo 1", "dev.report 1", "production.delivery 1"];
    assert_eq!(ended_sequences(&world).await, expected);
    assert_eq!(world.config("production", "web").await.unwrap().serving.unwrap().number, 1);
    assert!(world.plan_again(&shop).await.unwrap().is_empty(), "planning after convergence is empty");
    let statuses = world.statuses(1).await.unwrap();
    for said in ["launchway/dev/web: web version 1 serves", "launchway/dev/web/test", "launchway/dev/web/report.mail"] {
        let said = format!("success {said}");
        assert!(statuses.iter().any(|status| status.starts_with(&said)), "{said}: {statuses:#?}");
    }
    assert_eq!(world.untrue_statuses().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_failed_sequence_starts_what_is_triggered_on_failure_and_nothing_else() {
    let (_folder, mut world) = world();
    world.runtime.behave("web-test-", Behaviour::fails(1));
    world.push(&with_reports()).await.unwrap();
    world.settle().await.unwrap();
    assert_eq!(ended_sequences(&world).await, ["dev.alarm 1", "dev.delivery 1"]);
}

#[tokio::test]
async fn what_waits_for_a_sequence_that_failed_is_never_reached() {
    let (_folder, mut world) = world();
    world.runtime.behave("web-mail-", Behaviour::fails(1));
    world.push(&with_reports()).await.unwrap();
    world.settle().await.unwrap();
    assert_eq!(ended_sequences(&world).await, ["dev.delivery 1", "dev.report 1"]);
    let statuses = world.statuses(1).await.unwrap();
    let said = "skipped launchway/production: web: never reached: dev.report stopped it".to_owned();
    assert!(statuses.contains(&said), "{statuses:#?}");
}
