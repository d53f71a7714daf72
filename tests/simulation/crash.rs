//! The daemon dies at every single commit of a whole story, before or after it is on disk, and another takes its place:
//! the same end, nothing lost, nothing done twice. A seed chooses the order in which due actions are performed.
//!
//! By default the daemon dies again and again, after lives of a few commits: with lives of one commit that is on disk,
//! and of two of which the second is not, every commit is died at both ways. The story is also told
//! with a single death, at some commits of each part; `CRASH_SEEDS=3` tells it so for each commit, way and seed, which takes
//! minutes. A release build is ten times as fast, and tells more of either.

mod sequences;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use launchway::error::Result;
use launchway::forge::pull_request::PullRequestState;
use launchway::model::object::{Location, Object};
use launchway::model::project::{OnFailure, Project, TaskDefinition};
use launchway::model::proposal::Proposal;
use launchway::model::run::Run;
use launchway::model::shipyard::{Sequence, Shipyard, Stage, Task};
use launchway::simulation::runtime::{Behaviour, Deed};
use launchway::simulation::world::{Surroundings, World};
use launchway::store::sqlite::SqliteStore;
use launchway::testing::world::{deployment_config, hook, project};
use serde_json::json;
use similar::TextDiff;

use self::sequences::Ear;
use crate::mortal::{Death, MortalStore, Mortality};

/// More lives, and more commits, than a story that gets on can have.
const TOO_MANY: usize = 2_000;
/// After how many commits daemons die again and again, and whether the last one was on disk.
const LIVES: &[(usize, bool)] = if cfg!(debug_assertions) {
    &[(1, true), (2, false), (7, false), (12, true)]
} else {
    &[(1, true), (2, false), (2, true), (3, false), (4, true), (7, false), (12, true), (23, false), (50, true)]
};
/// Under how many seeds each of these is told.
const SEEDS: u64 = if cfg!(debug_assertions) { 1 } else { 4 };
/// About how many stories are told with a single death unless more are asked for.
const DEATHS: usize = if cfg!(debug_assertions) { 10 } else { 24 };

/// What must be the same at the end, however often the daemon died.
#[derive(Debug, PartialEq, Eq)]
struct End {
    /// What serves, is wanted and was attempted.
    configs: Vec<String>,
    /// How each delivery and deployment ended.
    runs: Vec<String>,
    /// Hooks and tasks that really ran, once for each time.
    ran_once: Vec<String>,
    /// What is written on the commits.
    statuses: Vec<String>,
    /// What sequences tell of themselves.
    told: Vec<String>,
    /// What was heard of them.
    heard: Vec<String>,
    /// What is proposed, and what the host has of that.
    proposed: Vec<String>,
    /// What was left to do.
    open: Vec<String>,
}

/// What a story is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plot {
    /// Two revisions are delivered, with hooks and tests.
    Deliveries,
    /// One revision, with tasks of all kinds, and other sequences beside it.
    Sequences,
    /// One fails; what ran before is proposed in a pull request, which a person merges.
    Proposals,
}

/// A daemon that may die, and what outlives it.
struct Life {
    world: World,
    store: Arc<MortalStore>,
}

impl Life {
    fn begin(folder: &Path, surroundings: Surroundings, death: Option<Death>, seed: u64) -> Self {
        let inner = SqliteStore::open(&folder.join("store.db"), surroundings.clock()).unwrap();
        let store = Arc::new(MortalStore { guard: Mortality::new(death, seed), store: Arc::new(inner) });
        Self { world: World::over(store.clone(), surroundings), store }
    }
}

impl Plot {
    fn surroundings(self, ear: &Ear) -> Surroundings {
        match self {
            Plot::Deliveries | Plot::Proposals => Surroundings::default(),
            Plot::Sequences => Surroundings::default().with_subscriber(ear.subscriber.clone()),
        }
    }

    /// What is declared, revision by revision.
    fn revisions(self) -> Vec<Project> {
        match self {
            Plot::Deliveries => vec![shop("a"), shop("b")],
            Plot::Sequences => vec![sequences::shop()],
            Plot::Proposals => ["a", "b", "a"].map(proposing).into(),
        }
    }

    /// What happens to one of them, as far as it has not happened yet.
    async fn play(self, world: &mut World, revision: &Project, number: u32, ear: &Arc<Ear>) -> Result<()> {
        if self == Plot::Proposals {
            meet(world, number);
        }
        deliver(world, revision, number).await?;
        match self {
            Plot::Deliveries | Plot::Proposals => Ok(()),
            Plot::Sequences => sequences::play(world, ear).await,
        }
    }
}

/// The story up to its end; `death` says when a life ends, given its number from 0. Also says how many commits there
/// were.
async fn story(plot: Plot, death: impl Fn(usize) -> Option<Death>, seed: u64) -> (End, usize) {
    let folder = crate::folder();
    let ear = Arc::new(Ear::default());
    let surroundings = plot.surroundings(&ear);
    let begin = |number: usize| {
        let seed = seed.wrapping_mul(1_000_003) + number as u64;
        Life::begin(folder.path(), surroundings.clone(), death(number), seed)
    };
    let (mut lives, mut commits) = (0, 0);
    let mut life = begin(lives);
    let runtime = life.world.runtime.clone();
    runtime.behave("shop-dev/api-2-hook-pre", Behaviour::fails(1)); // its first try; Retry
    runtime.behave("shop-dev/api-2-hook-pre-", Behaviour::Good);
    runtime.behave("shop-production/web-2-hook-post", Behaviour::fails(2)); // Abort: version 1 comes back
    let revisions = plot.revisions();
    for (number, shop) in (1..).zip(&revisions) {
        while let Err(failure) = plot.play(&mut life.world, shop, number, &ear).await {
            assert!(life.store.guard.is_dead() && lives < TOO_MANY, "after {lives} lives: {failure:#}");
            commits += life.store.guard.commits();
            lives += 1;
            drop(life);
            life = begin(lives);
        }
    }
    commits += life.store.guard.commits();
    // What is asked at the end must not be died at.
    drop(life);
    let last = Life::begin(folder.path(), surroundings.clone(), None, seed);
    (end(&last.world, &revisions[revisions.len() - 1], &ear).await.unwrap(), commits)
}

/// Pushes revision `number`, unless it was seen already, and lets it come to its end.
async fn deliver(world: &mut World, shop: &Project, number: u32) -> Result<()> {
    if world.pushed() < number {
        world.push(shop).await?;
    } else if !world.has_seen(number).await? {
        world.sync_again(shop, false).await?;
    }
    world.pass(Duration::from_secs(5)).await
}

async fn end(world: &World, shop: &Project, ear: &Ear) -> Result<End> {
    let store = &*world.driver.store;
    let configs = store.configs(None, None).await?.whole()?.into_iter().map(|config| {
        let config = config.value;
        let attempted = config.attempted.map(|attempt| (attempt.version.number, attempt.outcome));
        let serving = config.serving.map(|version| version.number);
        let (wanted, removed) = (config.wanted, config.removed);
        format!("{}: {serving:?} {attempted:?} {:?} {} {removed}", config.key, wanted.version(), wanted.replicas)
    });
    let mut runs: Vec<String> = world.runs().await?.iter().map(told).collect();
    runs.sort();
    let mut statuses = Vec::new();
    for push in 1..=world.pushed() {
        statuses.extend(world.statuses(push).await?.into_iter().map(|status| format!("{push}: {status}")));
    }
    let mut open: Vec<String> = store.outbox(None).await?.iter().map(|row| format!("{row:?}")).collect();
    open.extend(world.would_start(shop).await?.iter().map(|input| format!("{input:?}")));
    let [told, heard] = sequences::told(world, ear).await?;
    let repositories = store.repositories().await?.whole()?;
    let proposals = repositories.iter().flat_map(|repository| &repository.value.proposals);
    let proposed = proposals.map(Proposal::remark).chain(world.hosting.shown()).collect();
    Ok(End { configs: configs.collect(), runs, ran_once: ran_once(world), statuses, told, heard, proposed, open })
}

/// What people and the host do before a revision is pushed. The answers to the first push of a branch and to opening its pull
/// request are lost.
fn meet(world: &World, number: u32) {
    match number {
        2 if world.pushed() < 2 => world.hosting.lose_answers(2),
        3 if world.pushed() < 3 => world.hosting.decide(1, PullRequestState::Merged),
        _ => {}
    }
}

fn told(run: &Run) -> String {
    match run {
        Run::Sequence(run) => {
            format!("{} of {} {:?} {}", run.service, run.commit.short(), run.outcome, run.attempt)
        }
        Run::Deployment(run) => {
            let hooks: Vec<String> = run.hooks.iter().map(|hook| format!("{} {:?}", hook.pod, hook.outcome)).collect();
            format!("{} {:?} {} {hooks:?}", run.id, run.phase, run.attempt)
        }
    }
}

/// Run-once pods in the order of their names; a task's is named after its run, whose number may differ.
fn ran_once(world: &World) -> Vec<String> {
    let started = world.runtime.deeds().into_iter().filter_map(|deed| match deed {
        Deed::Started(pod) => Some(pod.to_string()),
        Deed::Stopped(_) | Deed::Died(_) => None,
    });
    let once = started.filter(|name| name.contains("-hook-") || name.contains("-test-"));
    let mut names: Vec<String> = once
        .map(|name| match name.split_once("-test-") {
            Some((before, _)) => format!("{before}-test"),
            None => name,
        })
        .collect();
    names.sort();
    names
}

fn shop(image: &str) -> Project {
    with_test(project(shipyard(), &[config("web", image, "Abort"), config("api", image, "Retry")]))
}

/// What proposes that what failed goes back.
fn proposing(image: &str) -> Project {
    Project { on_failure: OnFailure::PullRequest, ..shop(image) }
}

/// Pods do `test`.
fn with_test(mut project: Project) -> Project {
    let test = TaskDefinition {
        command: vec!["true".into()],
        image: "host".into(),
        env: Vec::new(),
        timeout_seconds: Some(60),
        retries: 0,
        stages: Vec::new(),
        services: Vec::new(),
        properties: Default::default(),
        location: Location::default(),
    };
    for stage in &mut project.stages {
        stage.tasks.insert("test".into(), vec![test.clone()]);
    }
    project
}

fn config(name: &str, image: &str, policy: &str) -> Object {
    let params =
        json!({"maxSurge": 1, "maxUnavailable": 0, "pre": hook(policy), "mid": hook(policy), "post": hook(policy)});
    deployment_config(name, image, 2, json!({"strategy": {"type": "Rolling", "rollingParams": params}}))
}

fn shipyard() -> Shipyard {
    let task = |name: &str| Task::named(name);
    let stage = |name: &str, tasks: Vec<Task>| Stage {
        name: name.into(),
        sequences: vec![Sequence { name: "delivery".into(), tasks, ..Sequence::default() }],
    };
    let dev = stage("dev", vec![task("deployment"), task("test")]);
    Shipyard {
        name: "shop".into(),
        stages: vec![dev, stage("production", vec![task("deployment")])],
        ..Shipyard::default()
    }
}

fn difference(expected: &End, end: &End) -> String {
    let (expected, end) = (format!("{expected:#?}\n"), format!("{end:#?}\n"));
    TextDiff::from_lines(&expected, &end).unified_diff().header("undisturbed", "with deaths").to_string()
}

/// How the story ends without any death.
async fn undisturbed(plot: Plot) -> (End, usize) {
    let (end, commits) = story(plot, |_| None, 0).await;
    assert!(end.open.is_empty(), "{:#?}", end.open);
    let (happens, least) = match plot {
        Plot::Deliveries => (end.ran_once.len(), 100),
        Plot::Sequences => (end.heard.len(), 80),
        Plot::Proposals => (end.ran_once.len(), 100),
    };
    let is_heard = |event: &&String| end.heard.contains(event);
    assert!(plot != Plot::Sequences || end.told.iter().all(|event| is_heard(&event)), "{:#?}", (&end.told, &end.heard));
    assert!(happens > 20 && commits > least, "the story is worth the trouble: {happens} of it in {commits} commits");
    (end, commits)
}

/// One way to tell the story.
#[derive(Clone, Copy, Debug)]
struct Telling {
    death: Death,
    /// Every life ends so, not only the first.
    again: bool,
    seed: u64,
}

/// Tells stories side by side; each must end like the undisturbed one.
async fn all_end_alike(plot: Plot, expected: End, stories: Vec<Telling>) {
    let (expected, stories) = (Arc::new(expected), Arc::new(Mutex::new(stories)));
    let mut tellers = tokio::task::JoinSet::new();
    for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
        let (expected, stories) = (expected.clone(), stories.clone());
        tellers.spawn(async move {
            loop {
                let next = stories.lock().unwrap().pop();
                let Some(telling) = next else { return };
                let death = |life| (life == 0 || telling.again).then_some(telling.death);
                let (end, _) = story(plot, death, telling.seed).await;
                assert!(end == *expected, "{telling:?}\n{}", difference(&expected, &end));
            }
        });
    }
    tellers.join_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn daemons_that_die_again_and_again_come_to_the_same_end() {
    die_again_and_again(Plot::Deliveries).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sequences_end_alike_and_are_told_once_although_daemons_die_again_and_again() {
    die_again_and_again(Plot::Sequences).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_is_proposed_once_although_daemons_die_again_and_again() {
    die_again_and_again(Plot::Proposals).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_death_at_any_commit_of_a_proposal_changes_nothing() {
    let (end, _) = undisturbed(Plot::Proposals).await;
    let pull = "pull request #1 of launchway/rollback-web-1: merged";
    assert!(end.proposed.len() == 2 && end.proposed[1] == pull, "one, and its branch is gone: {:#?}", end.proposed);
    assert!(end.proposed[0].starts_with("rollback of web to version 1 in production was merged with 0000003"));
    die_once(Plot::Proposals).await;
}

async fn die_again_and_again(plot: Plot) {
    let (expected, _) = undisturbed(plot).await;
    let of_seed =
        |seed: u64| LIVES.iter().map(move |&(at, durable)| Telling { death: Death { at, durable }, again: true, seed });
    all_end_alike(plot, expected, (1..=SEEDS).flat_map(of_seed).collect()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_death_at_any_commit_changes_nothing() {
    die_once(Plot::Deliveries).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_death_at_any_commit_of_sequences_changes_nothing() {
    die_once(Plot::Sequences).await;
}

async fn die_once(plot: Plot) {
    let seeds = std::env::var("CRASH_SEEDS").ok().map(|seeds| seeds.parse::<u64>().unwrap());
    let (expected, commits) = undisturbed(plot).await;
    let of_commit = |at: usize| {
        let both =
            move |seed| [true, false].map(|durable| Telling { death: Death { at, durable }, again: false, seed });
        (1..=seeds.unwrap_or(1)).flat_map(both)
    };
    let all: Vec<Telling> = (1..=commits).flat_map(of_commit).collect();
    let step = if seeds.is_some() { 1 } else { (all.len() / DEATHS).max(1) | 1 };
    let told: Vec<Telling> = all.into_iter().step_by(step).collect();
    assert!(told.len() >= DEATHS / 2, "only {} deaths", told.len());
    all_end_alike(plot, expected, told).await;
}
