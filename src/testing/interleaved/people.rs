//! What people ask for by hand, each a task of its own.

use std::time::Duration;

use futures::FutureExt as _;

use crate::config::RetentionSettings;
use crate::control::commands::{by_hand, set_paused};
use crate::control::housekeeping::Housekeeping;
use crate::engine::by_hand::{self as commands, Images, Meant, Part, Verdict};
use crate::engine::sync::{Allowance, Trigger};
use crate::error::{Failure, Result};
use crate::executor::drive::Driver;
use crate::executor::{switch, sync};
use crate::model::hold::{Lifted, Release};
use crate::model::ids::{CommitId, ConfigKey, ProjectName, RepositoryName, RunId, ServiceKey, ServiceName, StageName};
use crate::model::run::SequenceRun;
use crate::store::RunFilter;
use crate::testing::interleaved::daemon::Daemon;
use crate::testing::interleaved::executors;
use crate::testing::interleaved::hosted::Hosted;
use crate::testing::interleaved::world::config_key;
use crate::testing::rerun::rerun;
use crate::testing::script::{deployer, number};
use crate::testing::world::hold_scope;

/// Who acts by hand.
const WHO: &str = "ann";
/// What people can ask for.
const VERBS: [&str; 28] = [
    "hold",
    "release",
    "cancel",
    "retry",
    "latest",
    "pause",
    "resume",
    "promote",
    "undo",
    "scale",
    "down",
    "up",
    "trigger",
    "sync",
    "allow-prune",
    "accept-rewrite",
    "prune",
    "approve",
    "reject",
    "abort",
    "rerun",
    "executor",
    "deployer",
    "tell",
    "pause-delivery",
    "resume-delivery",
    "pause-stage",
    "resume-stage",
];

/// Whether a line is something that people ask for.
pub(super) fn knows(words: &[&str]) -> bool {
    words.first().is_some_and(|verb| VERBS.contains(verb))
}

/// Asks; a refusal is an answer too.
pub(super) async fn ask(daemon: Daemon, repository: RepositoryName, project: ProjectName, words: Vec<String>) {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if let Err(refused) = carry_out(&daemon, &repository, &project, &words).await {
        tracing::debug!(words = words.join(" "), refused = refused.one_line(), "refused");
    }
}

async fn carry_out(daemon: &Daemon, repository: &RepositoryName, project: &ProjectName, words: &[&str]) -> Result<()> {
    let (driver, hosting) = (&daemon.driver, &daemon.hosting);
    let key = |word: &str| config_key(project, word);
    match words {
        ["hold", stage, service, reason @ ..] => {
            let scope = hold_scope(project, stage, service);
            by_hand::place_hold(driver, scope, reason.join(" "), WHO).await.map(drop)
        }
        ["release"] => {
            let holds = driver.store.holds().await?.whole()?.into_iter().map(|hold| hold.id).collect();
            release(daemon, project, Release { holds, ..Release::default() }).await
        }
        ["release", dc] => {
            let lifted = Lifted { config: key(dc)?, by: WHO.into(), since: driver.clock.now() };
            release(daemon, project, Release { paused: vec![lifted], ..Release::default() }).await
        }
        ["resume", dc] => {
            let (_, planned_anew) = by_hand::resume(driver, &key(dc)?, WHO).await?;
            planned_anew.iter().for_each(|repository| hosting.request_sync(repository));
            Ok(())
        }
        [verb @ ("cancel" | "retry" | "latest" | "pause" | "promote" | "undo" | "scale"), dc, rest @ ..] => {
            roll_out(driver, verb, &key(dc)?, rest).await
        }
        ["trigger", stage, service, force @ ..] => {
            let (stage, service, force) = (StageName::new(*stage), ServiceName::new(*service), force.first().copied());
            let asked = Trigger { stage: &stage, service: Some(&service), force, by: WHO, incoming: None };
            sync::trigger(driver, &hosted(daemon, repository), asked).await.map(drop)
        }
        ["executor", name, says, stage, service, rest @ ..] => {
            executors::say(daemon, &place(project, stage, service), name, says, rest.first().copied()).await
        }
        ["tell", rest @ ..] => executors::tells(daemon, repository, project, rest).await,
        ["approve" | "reject" | "abort" | "rerun" | "pause-delivery" | "resume-delivery", ..] => {
            judge(driver, project, words).await
        }
        ["pause-stage" | "resume-stage", stage] => pause_stage(daemon, project, stage, words[0] == "pause-stage").await,
        ["deployer", dc, rest @ ..] => deployer::asks(driver, &key(dc)?, rest).await.map(drop),
        ["down"] => switch::down(driver, repository, WHO).await.map(drop),
        ["up"] => {
            switch::up(driver, repository, WHO).await?;
            hosting.request_sync(repository);
            Ok(())
        }
        ["sync"] => {
            hosting.request_sync(repository);
            Ok(())
        }
        ["prune", most] => {
            let policy = RetentionSettings { age: Duration::ZERO, most: number(most)?, output: Duration::ZERO };
            let (driver, runtime) = (driver.clone(), daemon.runtime.clone());
            Housekeeping { driver, runtime, policy }.clean(false).await.map(drop)
        }
        ["allow-prune"] => allow(daemon, repository, hosting.head(repository).map(|head| head.id), None).await,
        ["accept-rewrite"] => allow(daemon, repository, None, hosting.accept_rewrite(repository)).await,
        _ => Err(Failure::stalled("this is no command")),
    }
}

/// Acts on a deployment config.
async fn roll_out(driver: &Driver, verb: &str, config: &ConfigKey, rest: &[&str]) -> Result<()> {
    match (verb, rest) {
        ("cancel", []) => by_hand::cancel(driver, config, WHO).await.map(drop),
        ("retry", []) => by_hand::retry(driver, config, WHO).await.map(drop),
        ("latest", []) => by_hand::latest(driver, config, Images::Newest, false, WHO).await.map(drop),
        ("pause", []) => by_hand::pause(driver, config, WHO).await.map(drop),
        ("promote", []) => by_hand::promote(driver, config, WHO).await.map(drop),
        ("undo", []) => by_hand::undo(driver, config, None, false, WHO).await.map(drop),
        ("undo", [to]) => by_hand::undo(driver, config, Some(number(to)?), false, WHO).await.map(drop),
        ("scale", [replicas]) => by_hand::scale(driver, config, number(replicas)?, WHO).await,
        _ => Err(Failure::stalled("this is no command")),
    }
}

/// Says of the sequences of a service whether they go on, end, or run again.
async fn judge(driver: &Driver, project: &ProjectName, words: &[&str]) -> Result<()> {
    let place = |stage: &str, service: &str| place(project, stage, service);
    match words {
        [verb @ ("approve" | "reject"), stage, service] => {
            let (service, verdict) = (
                place(stage, service),
                Verdict { approve: *verb == "approve", reason: "", meant: Meant::default(), by: WHO },
            );
            driver.decide(|transition| commands::decide(transition, &service, verdict)).await.map(drop)
        }
        ["abort", stage, service] => {
            let service = place(stage, service);
            driver.decide(|transition| commands::abort(transition, &service, WHO)).await.map(drop)
        }
        ["rerun", stage, service, from @ ..] => {
            rerun(driver, &place(stage, service), from == ["from-start"], WHO).await.map(drop)
        }
        [verb @ ("pause-delivery" | "resume-delivery"), stage, service, whole @ ..] => {
            let is_paused = *verb == "pause-delivery";
            pause(driver, &place(stage, service), whole.is_empty(), is_paused).await
        }
        _ => Err(Failure::stalled("this is no command")),
    }
}

/// A service in a stage of a project.
pub(super) fn place(project: &ProjectName, stage: &str, service: &str) -> ServiceKey {
    ServiceKey { project: project.clone(), stage: StageName::new(stage), service: ServiceName::new(service) }
}

/// Pauses or resumes all that is in a stage, as the daemon's command does.
async fn pause_stage(daemon: &Daemon, project: &ProjectName, stage: &str, is_paused: bool) -> Result<()> {
    let (driver, part) = (&daemon.driver, Part { project: project.clone(), context: None, stage: Some(stage.into()) });
    if is_paused {
        return set_paused(driver, &part, &[], true, WHO).await.map(drop);
    }
    let holds = by_hand::pauses(driver, &part).await?;
    release(daemon, project, Release { holds, ..Release::default() }).await
}

/// Pauses or resumes what is under way of a service, in its stage alone or in all, as the daemon's command does.
async fn pause(driver: &Driver, service: &ServiceKey, in_its_stage: bool, is_paused: bool) -> Result<()> {
    let open = RunFilter {
        project: Some(service.project.clone()),
        sequences: Some(true),
        open: Some(true),
        ..RunFilter::default()
    };
    let open = driver.store.runs(&open).await?.whole()?;
    let open: Vec<&SequenceRun> = open.iter().filter_map(|run| run.value.sequence()).collect();
    let context = open.iter().find(|run| &run.service == service).and_then(|run| run.context.clone());
    let context = context.ok_or_else(|| Failure::stalled("nothing is under way there"))?;
    let stage = in_its_stage.then(|| service.stage.clone());
    let is_part = |run: &&&SequenceRun| {
        run.context.as_ref() == Some(&context) && stage.as_ref().is_none_or(|stage| &run.service.stage == stage)
    };
    let runs: Vec<RunId> = open.iter().filter(is_part).map(|run| run.id.clone()).collect();
    let part = Part { project: service.project.clone(), context: Some(context), stage };
    let done = driver.decide(|transition| match is_paused {
        true => commands::pause_delivery(transition, &part, &runs, WHO),
        false => commands::resume_delivery(transition, &part, &runs, WHO),
    });
    done.await.map(drop)
}

/// Lets go on what is held, as the daemon's command does.
async fn release(daemon: &Daemon, project: &ProjectName, release: Release) -> Result<()> {
    if let Some(repository) = by_hand::release(&daemon.driver, project, &release, WHO).await? {
        daemon.hosting.request_sync(&repository);
    }
    Ok(())
}

/// Has a head judged anew with what is allowed for it.
async fn allow(
    daemon: &Daemon,
    repository: &RepositoryName,
    prune: Option<CommitId>,
    rewrite: Option<CommitId>,
) -> Result<()> {
    sync::allow(&daemon.driver, &hosted(daemon, repository), &Allowance { rewrite, prune }).await?;
    daemon.hosting.request_sync(repository);
    Ok(())
}

fn hosted(daemon: &Daemon, repository: &RepositoryName) -> Hosted {
    Hosted { hosting: daemon.hosting.clone(), name: repository.clone() }
}

/// The answer of something that never waits.
pub(super) fn now<T>(asked: impl Future<Output = Result<T>>) -> Result<T> {
    asked.now_or_never().unwrap_or_else(|| Err(Failure::stalled("something waits that never should")))
}
