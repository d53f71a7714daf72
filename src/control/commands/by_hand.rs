//! Makes what people ask for durable. What comes of it is decided in [`crate::engine::by_hand`].

use crate::engine::by_hand::{Cancelled, Images, Part, Resumed, Retried};
use crate::engine::deployment::deployer::{self, Ask};
use crate::engine::records::{Records, Undecided};
use crate::engine::rollback::{RolledBack, Started};
use crate::engine::transition::Transition;
use crate::engine::{by_hand, holds, rollback};
use crate::error::Result;
use crate::executor::drive::Driver;
use crate::model::event::Event;
use crate::model::hold::{Hold, HoldKind, HoldScope, Release};
use crate::model::ids::{ConfigKey, HoldId, PodName, ProjectName, RepositoryName, RunId, ServiceKey};
use crate::model::object::{Kind, ObjectKey};
use crate::model::rollback::Rollback;
use crate::model::run::{Run, SequenceRun};
use crate::model::transaction::Write;
use crate::store::RunFilter;

/// The most characters that are kept of a command that was run in a pod.
const MOST_OF_A_COMMAND: usize = 500;

/// Cancels what is under way for a deployment config's service; says what, or nothing if there is no such deployment config.
///
/// # Errors
/// If nothing is under way.
pub async fn cancel(driver: &Driver, config: &ConfigKey, by: &str) -> Result<Option<Cancelled>> {
    let Some(service) = service_of(driver, config).await? else { return Ok(None) };
    driver.decide(|transition| by_hand::cancel(transition, config, &service, by)).await.map(Some)
}

/// The service that a deployment config is delivered with now, also if a task comes before that gets to it; else the one that
/// has it.
async fn service_of(driver: &Driver, config: &ConfigKey) -> Result<Option<ServiceKey>> {
    let key = ObjectKey { kind: Kind::DeploymentConfig, name: config.name.clone() };
    let slots = driver.store.open_slots(Some(&config.project)).await?.into_iter().map(|slot| slot.value);
    for slot in slots.filter(|slot| slot.service.stage == config.stage) {
        let Some(id) = &slot.holder else { continue };
        let run = driver.store.run(id).await?.map(|run| run.value);
        let changes = run.as_ref().and_then(Run::sequence).map_or(&[][..], SequenceRun::changes);
        if changes.iter().any(|change| change.key == key) {
            return Ok(Some(slot.service));
        }
    }
    Ok(driver.store.config(config).await?.map(|state| state.value.service_key()))
}

/// Attempts the failed latest version again, with the rest of its sequence; says which version.
///
/// # Errors
/// If the latest version did not fail.
pub async fn retry(driver: &Driver, config: &ConfigKey, by: &str) -> Result<Retried> {
    driver.decide(|transition| by_hand::retry(transition, config, by)).await
}

/// Deploys what is declared now as a new version, although nothing changed; says which. A dry run changes nothing.
///
/// # Errors
/// If it is paused, or what is declared now waits for something, or a rollout is in progress.
pub async fn latest(driver: &Driver, config: &ConfigKey, images: Images, dry_run: bool, by: &str) -> Result<u32> {
    let latest = decide_unless(dry_run, driver, |transition| by_hand::latest(transition, config, images, by)).await?;
    Ok(latest.version)
}

/// Deploys an earlier version's template as a new version, and holds the service; says what that means. A dry run
/// changes nothing.
///
/// # Errors
/// If there is no such version.
pub async fn undo(driver: &Driver, config: &ConfigKey, to: Option<u32>, dry_run: bool, by: &str) -> Result<RolledBack> {
    decide_unless(dry_run, driver, |transition| rollback::undo(transition, config, to, by)).await
}

/// Has deployment configs go back, all or none; says which. A dry run changes nothing.
///
/// # Errors
/// If one of them cannot.
pub async fn roll_back(driver: &Driver, asked: &[Rollback], dry_run: bool, by: &str) -> Result<Started> {
    decide_unless(dry_run, driver, |transition| rollback::roll_back(transition, asked, by)).await
}

/// Makes a decision durable, unless it is a dry run: then it is only worked out.
async fn decide_unless<T: Send>(
    dry_run: bool,
    driver: &Driver,
    decide: impl Fn(&mut Transition<'_>) -> Result<T, Undecided> + Send + Sync,
) -> Result<T> {
    if dry_run {
        return driver.work_out(&mut Records::default(), decide).await.map(|(answer, ..)| answer);
    }
    driver.decide(decide).await
}

/// Changes the number of replicas until a revision declares another one.
///
/// # Errors
/// If there is no such deployment config, or a person holds it.
pub async fn scale(driver: &Driver, config: &ConfigKey, replicas: u32, by: &str) -> Result<()> {
    driver.decide(|transition| by_hand::scale(transition, config, replicas, by)).await
}

/// Lets nothing new start for the service of a deployment config until it is resumed; says whether that was not so before.
///
/// # Errors
/// If there is no such deployment config.
pub async fn pause(driver: &Driver, config: &ConfigKey, by: &str) -> Result<bool> {
    driver.decide(|transition| by_hand::pause(transition, config, by)).await
}

/// Lets a rollout that waits go on, and what is paused; says what that was. Tells the repository that declares the project, if
/// its head is to be planned anew.
///
/// # Errors
/// If there is no such deployment config, or something else holds it.
pub async fn resume(driver: &Driver, config: &ConfigKey, by: &str) -> Result<(Resumed, Option<RepositoryName>)> {
    let declaring = declaring(driver, &config.project).await?;
    let resumed = driver.decide(|transition| by_hand::resume(transition, config, declaring.as_ref(), by)).await?;
    if resumed.paused {
        driver.examine_slots(&config.project).await?;
    }
    Ok((resumed, declaring.filter(|_| resumed.paused)))
}

/// Gives a version everything that proves itself beside another; says which.
///
/// # Errors
/// If there is nothing to promote, or something holds it.
pub async fn promote(driver: &Driver, config: &ConfigKey, by: &str) -> Result<u32> {
    driver.decide(|transition| by_hand::promote(transition, config, by)).await
}

/// Has what a deployer asks for run, unless its deployment is no longer its own.
///
/// # Errors
/// If it is not, or it may not ask for that.
pub async fn deployer_asks(driver: &Driver, run: &RunId, pod: &PodName, ask: Ask) -> Result<u64> {
    driver.decide(|transition| deployer::ask(transition, run, pod, &ask)).await
}

/// Puts on record who ran a command beside the processes of a pod.
///
/// # Errors
/// If the store fails.
pub async fn executed(driver: &Driver, config: &ConfigKey, pod: &PodName, words: &[String], by: &str) -> Result<()> {
    let command: String = words.join(" ").chars().take(MOST_OF_A_COMMAND).collect();
    let record = |transition: &mut Transition<'_>| {
        let event = Event::Executed { pod: pod.clone(), command: command.clone(), by: by.to_owned() };
        transition.write(Write::Event { run: config.events(), at: transition.now, event: Box::new(event) });
        Ok(())
    };
    driver.decide(record).await
}

/// Places a hold.
///
/// # Errors
/// If the store fails.
pub async fn place_hold(driver: &Driver, scope: HoldScope, reason: String, by: &str) -> Result<Hold> {
    let place =
        |transition: &mut Transition<'_>| holds::place(transition, HoldKind::Person, scope.clone(), reason.clone(), by);
    driver.decide(place).await
}

/// Releases what a project holds or pauses; what waited for a hold goes on. Tells the repository that declares the project,
/// whose next sync plans its head anew.
///
/// # Errors
/// If the store fails.
pub async fn release(
    driver: &Driver,
    project: &ProjectName,
    release: &Release,
    by: &str,
) -> Result<Option<RepositoryName>> {
    let declaring = declaring(driver, project).await?;
    let paused = paused_by(driver, project, release).await?;
    driver
        .decide(|transition| by_hand::release(transition, project, release, declaring.as_ref(), (&paused, by)))
        .await?;
    driver.examine_slots(project).await?;
    Ok(declaring)
}

/// What pauses a part of a project's deliveries, or one of its stages.
///
/// # Errors
/// If the store fails.
pub async fn pauses(driver: &Driver, part: &Part) -> Result<Vec<HoldId>> {
    let holds = driver.store.holds_of(&part.project).await?.into_iter().flat_map(|stored| stored.value.holds);
    Ok(holds.filter(|hold| part.is_paused_by(hold)).map(|hold| hold.id).collect())
}

/// The runs that go on with their tasks without the pauses among some holds.
async fn paused_by(driver: &Driver, project: &ProjectName, release: &Release) -> Result<Vec<RunId>> {
    let holds = driver.store.holds_of(project).await?.map_or_else(Vec::new, |it| it.value.holds);
    let mut runs = Vec::new();
    for hold in holds.into_iter().filter(|hold| hold.pauses_tasks() && release.holds.contains(&hold.id)) {
        let filter = RunFilter {
            project: Some(project.clone()),
            stage: hold.scope.stage,
            context: hold.scope.context,
            sequences: Some(true),
            open: Some(true),
            ..RunFilter::default()
        };
        runs.extend(driver.store.runs(&filter).await?.whole()?.into_iter().map(|run| run.value.id().clone()));
    }
    Ok(runs)
}

/// The repository that declares a project.
///
/// # Errors
/// If the store fails.
pub async fn declaring(driver: &Driver, project: &ProjectName) -> Result<Option<RepositoryName>> {
    let states = driver.store.repositories().await?;
    let declaring = states.find(|state| state.value.project.as_ref() == Some(project))?;
    Ok(declaring.map(|state| state.value.name))
}

/// The answer to a person who took a repository down, of which so many deployment configs stop.
pub fn is_down(repository: &RepositoryName, stopped: usize, back: &str) -> String {
    let configs = if stopped == 1 { "deployment config" } else { "deployment configs" };
    format!("{repository} is down with {stopped} {configs}; `{back}` brings it back")
}
