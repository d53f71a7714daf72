//! What people ask for by hand. Every change of a service takes its slot by a sequence run, like a push does.

use std::sync::Arc;

use crate::engine::sequence::machine::task_records;
use crate::error::{Failure, Result};
use crate::executor::drive::Driver;
use crate::executor::transition::Input;
use crate::manifest::digest;
use crate::model::event::Event;
use crate::model::hold::{Hold, HoldScope};
use crate::model::ids::{ConfigKey, HoldId, PlanId, RepositoryName, RunId, ServiceKey};
use crate::model::object::{Kind, Object, ObjectKey};
use crate::model::outcome::Verdict;
use crate::model::plan::{Change, Decision};
use crate::model::run::{DeploymentRun, Run, SequenceRun, SequenceState};
use crate::model::shipyard::Shipyard;
use crate::model::state::{ConfigState, RevisionResult};
use crate::store::{RunFilter, Write};

/// The sequence of one task that carries out what a person asked for a single deployment config.
const BY_HAND: &str = "rollout";
/// How far back the run is looked for that brought a failed version; it is among the last few.
const RUNS_ASKED: u32 = 100;
/// How many revisions are looked through for the newest plan of a service.
const REVISIONS_ASKED: u32 = 20;

/// Cancels the rollout that is in progress; says which version.
///
/// # Errors
/// If there is none.
pub async fn cancel(driver: &Driver, config: &ConfigKey, by: &str) -> Result<u32> {
    let state = config_state(driver, config).await?;
    let open = state.attempted.as_ref().filter(|attempt| attempt.verdict.is_none());
    let Some(attempt) = open else {
        return Err(Failure::stalled(match deployment(driver, config, state.latest_version).await? {
            Some(run) => format!(
                "no rollout is in progress (latest rollout #{} {})",
                run.version,
                run.phase.as_str().to_lowercase()
            ),
            None => "no rollout is in progress".to_owned(),
        }));
    };
    let version = attempt.version.number;
    let Some(run) = deployment(driver, config, version).await? else {
        return Err(Failure::stalled(format!("version {version} has no record")));
    };
    let event = Event::Cancel { verdict: Verdict::Cancelled, reason: format!("cancelled by {by}") };
    driver.tell(&run.parent, event).await?;
    Ok(version)
}

/// Attempts the failed latest version again, with the rest of its sequence; says which version.
///
/// # Errors
/// If the latest version did not fail.
pub async fn retry(driver: &Driver, config: &ConfigKey, by: &str) -> Result<u32> {
    let state = config_state(driver, config).await?;
    if state.spec().is_ok_and(|spec| spec.paused) {
        return Err(Failure::stalled(format!("unable to retry paused deployment config `{}`", config.name)));
    }
    let failed = state.attempted.as_ref().filter(|attempt| attempt.verdict.is_some());
    let Some(attempt) = failed else {
        let latest = state.latest_version;
        return Err(Failure::stalled(match (latest, &state.attempted) {
            (0, _) => format!("no rollouts found for `{}`", config.name),
            (_, Some(_)) => format!("rollout #{latest} is in progress; only failed deployments can be retried"),
            (_, None) => format!("rollout #{latest} is complete; only failed deployments can be retried"),
        })
        .hint("`launchway rollout latest` deploys again"));
    };
    refuse_if_down(driver, &state).await?;
    refuse_if_queued(driver, &state).await?;
    let version = attempt.version.number;
    let missing = || Failure::stalled(format!("the record of version {version} is gone"));
    let delivery = last_delivery(driver, &state, &attempt.version.object).await?.ok_or_else(missing)?;
    let again = rerun(driver, delivery, format!("retried by {by}")).await?;
    driver.commit(&[Input::Start(Box::new(again))]).await?;
    Ok(version)
}

/// The newest run that was to bring an object up.
async fn last_delivery(driver: &Driver, state: &ConfigState, object: &Object) -> Result<Option<SequenceRun>> {
    let ConfigKey { project, stage, .. } = state.key.clone();
    let filter = RunFilter {
        project: Some(project),
        stage: Some(stage),
        service: Some(state.service.to_string()),
        sequences: Some(true),
        limit: RUNS_ASKED,
        ..RunFilter::default()
    };
    let brings = |run: &SequenceRun| run.changes.iter().any(|change| is_same(change.object.as_ref(), object));
    let runs = driver.store.runs(&filter).await?.into_iter().filter_map(|run| match run.value {
        Run::Sequence(run) => Some(*run),
        Run::Deployment(_) => None,
    });
    Ok(runs.into_iter().find(brings))
}

/// Whether both say the same, wherever they stand in files.
fn is_same(object: Option<&Arc<Object>>, other: &Object) -> bool {
    object.is_some_and(|object| object.key == other.key && object.digest == other.digest)
}

/// The same sequence once more, in which every failed version is attempted again and everything else is as it is now.
async fn rerun(driver: &Driver, delivery: SequenceRun, cause: String) -> Result<SequenceRun> {
    let now = driver.clock.now();
    let ServiceKey { project, stage, .. } = delivery.service.clone();
    let mut changes = Vec::new();
    for change in delivery.changes {
        let Some(object) = change.object.filter(|_| change.key.kind == Kind::DeploymentConfig) else { continue };
        let key = ConfigKey { project: project.clone(), stage: stage.clone(), name: change.key.name.clone() };
        let attempted = driver.store.config(&key).await?.and_then(|state| state.value.attempted);
        let failed =
            attempted.filter(|attempt| attempt.verdict.is_some() && is_same(Some(&attempt.version.object), &object));
        changes.extend(failed.map(|attempt| Change {
            key: change.key,
            decision: Decision::Deploy,
            reasons: Vec::new(),
            cause: "retry".into(),
            object: Some(object),
            retry: Some(attempt.version.number),
        }));
    }
    let id = RunId::new(driver.ids.next(now));
    let attempt = delivery.attempt + 1;
    Ok(queued(SequenceRun { id, cause, attempt, changes, ..delivery }, now))
}

/// Deploys what is declared now as a new version, although nothing changed; says which.
///
/// # Errors
/// If it is paused, or what is declared now waits for something, or a rollout is in progress.
pub async fn latest(driver: &Driver, config: &ConfigKey, by: &str) -> Result<u32> {
    let state = config_state(driver, config).await?;
    refuse_if_down(driver, &state).await?;
    refuse_if_busy(driver, &state).await?;
    refuse_if_queued(driver, &state).await?;
    if state.spec().is_ok_and(|spec| spec.paused) {
        return Err(Failure::stalled("cannot deploy a paused deployment config").hint("set `paused: false` and push"));
    }
    refuse_if_waiting(driver, &state).await?;
    let object = state.object.clone();
    let cause = format!("manual change by {by}");
    let run = by_hand(driver, &state, object, cause).await?;
    driver.commit(&[Input::Start(Box::new(run))]).await?;
    Ok(state.latest_version + 1)
}

/// What is declared now and may not be deployed yet must not be passed over for what was declared before. A plan leaves
/// out what an open delivery carries, so the newest one that names the service tells.
async fn refuse_if_waiting(driver: &Driver, state: &ConfigState) -> Result<()> {
    for revision in driver.store.revisions(&state.repository, REVISIONS_ASKED).await? {
        let RevisionResult::Planned(plan) = &revision.result else { continue };
        let Some(service) = plan.stage(&state.key.stage).and_then(|stage| stage.service(&state.service)) else {
            continue;
        };
        let waits = |change: &&Change| change.key == state.object.key && change.decision == Decision::Wait;
        return match service.changes.iter().find(waits) {
            None => Ok(()),
            Some(change) => Err(Failure::stalled(format!(
                "cannot deploy what {} declares: {}",
                revision.commit.short(),
                change.cause
            ))
            .hint(format!("`launchway why dc/{}` says more; push what lets it go on", state.key.name))),
        };
    }
    Ok(())
}

/// Deploys an earlier version's template as a new version, and holds the service so that the next push does not undo
/// it; says which version is restored.
///
/// # Errors
/// If there is no such version.
pub async fn undo(driver: &Driver, config: &ConfigKey, to: Option<u32>, by: &str) -> Result<u32> {
    let state = config_state(driver, config).await?;
    refuse_if_down(driver, &state).await?;
    refuse_if_busy(driver, &state).await?;
    let target = match to {
        Some(version) => version,
        None => last_complete_before(driver, &state).await?,
    };
    let gone = || Failure::stalled("unable to find the specified revision").hint("`launchway history` lists them");
    let run = deployment(driver, config, target).await?.ok_or_else(gone)?;
    let mut object = Object::clone(&state.object);
    let template = run.object.content.pointer("/spec/template").cloned().ok_or_else(gone)?;
    if let Some(spec) = object.content.get_mut("spec").and_then(serde_json::Value::as_object_mut) {
        spec.insert("template".into(), template);
    }
    object.digest = digest::of(&object.content);
    let mut sequence = by_hand(driver, &state, object.into(), format!("rollback to version {target} by {by}")).await?;
    sequence.is_rollback = true;
    let scope = HoldScope {
        project: config.project.clone(),
        stage: Some(config.stage.clone()),
        service: Some(state.service.clone()),
    };
    let reason =
        format!("{} was rolled back to version {target}; release it when Git says what should run", config.name);
    let hold = new_hold(driver, scope, reason, by);
    driver.commit(&[Input::Start(Box::new(sequence)), Input::Write(Box::new(Write::Hold(Box::new(hold))))]).await?;
    Ok(target)
}

async fn last_complete_before(driver: &Driver, state: &ConfigState) -> Result<u32> {
    let none = || Failure::stalled(format!("no previous deployment exists for `{}`", state.key.name));
    let serving = state.serving.as_ref().map(|serving| serving.number);
    if let (Some(serving), Some(_)) = (serving, &state.attempted) {
        return Ok(serving); // the latest one failed: what serves is what to go back to
    }
    let filter = RunFilter {
        project: Some(state.key.project.clone()),
        stage: Some(state.key.stage.clone()),
        config: Some(state.key.name.clone()),
        sequences: Some(false),
        ..RunFilter::default()
    };
    let runs = driver.store.runs(&filter).await?;
    let complete = runs.into_iter().filter_map(|run| match run.value {
        Run::Deployment(run) => (run.phase == crate::model::run::Phase::Complete).then_some(run.version),
        Run::Sequence(_) => None,
    });
    complete.filter(|version| Some(*version) != serving).max().ok_or_else(none)
}

/// Changes the number of replicas until the next change in Git.
///
/// # Errors
/// If there is no such deployment config.
pub async fn scale(driver: &Driver, config: &ConfigKey, replicas: u32) -> Result<()> {
    config_state(driver, config).await?;
    driver.commit(&[Input::Scale(config.clone(), replicas)]).await
}

/// Places a hold.
///
/// # Errors
/// If the store fails.
pub async fn place_hold(driver: &Driver, scope: HoldScope, reason: String, by: &str) -> Result<Hold> {
    let hold = new_hold(driver, scope, reason, by);
    driver.commit(&[Input::Write(Box::new(Write::Hold(Box::new(hold.clone()))))]).await?;
    Ok(hold)
}

fn new_hold(driver: &Driver, scope: HoldScope, reason: String, by: &str) -> Hold {
    let now = driver.clock.now();
    Hold { id: HoldId::new(driver.ids.next(now)), scope, reason, by: by.to_owned(), since: now }
}

/// Lifts holds; what waited for them goes on.
///
/// # Errors
/// If the store fails.
pub async fn release(driver: &Driver, holds: &[HoldId]) -> Result<()> {
    let lift = |id: &HoldId| Input::Write(Box::new(Write::Release(id.clone())));
    let mut inputs: Vec<Input> = holds.iter().map(lift).collect();
    let open = RunFilter { sequences: Some(true), open: Some(true), ..RunFilter::default() };
    for run in driver.store.runs(&open).await? {
        inputs.push(Input::Examine(run.value.service()));
    }
    driver.commit(&inputs).await
}

/// Stops everything that a repository runs; nothing comes back by itself. Says how many deployment configs stop.
///
/// # Errors
/// If the store fails.
pub async fn down(driver: &Driver, repository: &RepositoryName, by: &str) -> Result<usize> {
    if driver.store.repository(repository).await?.is_none() {
        return Err(Failure::stalled(format!("nothing is known of repository `{repository}`")));
    }
    let mut inputs = vec![Input::Down(repository.clone(), true)];
    let filter = RunFilter {
        repository: Some(repository.clone()),
        sequences: Some(true),
        open: Some(true),
        ..RunFilter::default()
    };
    for run in driver.store.runs(&filter).await? {
        // Not `Cancelled`, which would wait for a retry: once it is up again, what Git says is deployed.
        let event = Event::Cancel { verdict: Verdict::Superseded, reason: format!("taken down by {by}") };
        inputs.push(Input::Tell(run.value.id().clone(), event));
    }
    let configs = configs_of(driver, repository).await?;
    inputs.extend(configs.iter().map(|config| Input::Quiesce(config.key.clone())));
    driver.commit(&inputs).await?;
    Ok(configs.len())
}

/// Brings back what a repository ran before it was taken down.
///
/// # Errors
/// If the store fails.
pub async fn up(driver: &Driver, repository: &RepositoryName) -> Result<()> {
    let known = driver.store.repository(repository).await?;
    if !known.is_some_and(|state| state.value.down) {
        return Ok(());
    }
    let mut inputs = vec![Input::Down(repository.clone(), false)];
    let configs = configs_of(driver, repository).await?;
    inputs.extend(configs.into_iter().map(|config| Input::Resume(config.key)));
    driver.commit(&inputs).await
}

async fn configs_of(driver: &Driver, repository: &RepositoryName) -> Result<Vec<ConfigState>> {
    let configs = driver.store.configs(None, None).await?;
    Ok(configs.into_iter().map(|config| config.value).filter(|config| &config.repository == repository).collect())
}

async fn refuse_if_down(driver: &Driver, state: &ConfigState) -> Result<()> {
    let repository = driver.store.repository(&state.repository).await?;
    match repository.is_some_and(|repository| repository.value.down) {
        false => Ok(()),
        true => Err(Failure::stalled(format!("repository `{}` is down", state.repository))
            .hint("`launchway up` brings it back")),
    }
}

async fn refuse_if_busy(driver: &Driver, state: &ConfigState) -> Result<()> {
    let Some(attempt) = state.attempted.as_ref().filter(|attempt| attempt.verdict.is_none()) else { return Ok(()) };
    let version = attempt.version.number;
    let phase = deployment(driver, &state.key, version).await?.map_or("New", |run| run.phase.as_str());
    Err(Failure::stalled(format!("#{version} is already in progress ({phase})."))
        .hint("`launchway rollout cancel` ends it"))
}

/// A newer revision that waits for its turn must not be overtaken by what was declared before it.
async fn refuse_if_queued(driver: &Driver, state: &ConfigState) -> Result<()> {
    let ConfigKey { project, stage, .. } = state.key.clone();
    for run in driver.store.slot(&ServiceKey { project, stage, service: state.service.clone() }).await? {
        if let Run::Sequence(run) = run.value
            && run.state == SequenceState::Queued
        {
            let message = format!("{} of {} comes first: {}", run.sequence.name, run.commit.short(), run.message);
            return Err(Failure::stalled(message.trim_end_matches(": ")));
        }
    }
    Ok(())
}

/// A sequence run of one deployment task for a single deployment config.
async fn by_hand(driver: &Driver, state: &ConfigState, object: Arc<Object>, cause: String) -> Result<SequenceRun> {
    let now = driver.clock.now();
    let implicit = Shipyard::implicit().stages.into_iter().next().and_then(|stage| stage.sequences.into_iter().next());
    let mut sequence = implicit.ok_or_else(|| Failure::stalled("there is no implicit sequence"))?;
    sequence.name = BY_HAND.into();
    let commit = state.serving.as_ref().or(state.attempted.as_ref().map(|attempt| &attempt.version));
    let repository = driver.store.repository(&state.repository).await?;
    let applied = repository.and_then(|repository| repository.value.applied);
    let commit = applied.or(commit.map(|version| version.commit.clone()));
    let ConfigKey { project, stage, .. } = state.key.clone();
    let run = SequenceRun {
        id: RunId::new(driver.ids.next(now)),
        service: ServiceKey { project, stage, service: state.service.clone() },
        namespace: state.namespace.clone(),
        repository: state.repository.clone(),
        commit: commit.ok_or_else(|| Failure::stalled("nothing was applied yet"))?,
        plan: PlanId::new("by-hand"),
        cause: cause.clone(),
        is_rollback: false,
        attempt: 1,
        tasks: Vec::new(),
        sequence,
        content: object.digest.clone(),
        changes: vec![Change {
            key: ObjectKey { kind: Kind::DeploymentConfig, name: state.key.name.clone() },
            decision: Decision::Deploy,
            reasons: Vec::new(),
            cause,
            object: Some(object),
            retry: None,
        }],
        definitions: std::collections::BTreeMap::new(),
        state: SequenceState::Queued,
        created_at: now,
        started_at: None,
        ended_at: None,
        verdict: None,
        message: String::new(),
    };
    Ok(queued(run, now))
}

fn queued(mut run: SequenceRun, now: crate::model::time::Timestamp) -> SequenceRun {
    run.tasks = task_records(&run.sequence);
    run.state = SequenceState::Queued;
    run.created_at = now;
    run.started_at = None;
    run.ended_at = None;
    run.verdict = None;
    run.message = String::new();
    run
}

async fn config_state(driver: &Driver, config: &ConfigKey) -> Result<ConfigState> {
    let state = driver.store.config(config).await?;
    let missing =
        || Failure::stalled(format!("deployment config `{}` does not exist in stage {}", config.name, config.stage));
    state.map(|state| state.value).ok_or_else(missing)
}

async fn deployment(driver: &Driver, config: &ConfigKey, version: u32) -> Result<Option<DeploymentRun>> {
    let run = driver.store.run(&config.deployment(version)).await?.map(|run| run.value);
    Ok(match run {
        Some(Run::Deployment(run)) => Some(*run),
        Some(Run::Sequence(_)) | None => None,
    })
}
