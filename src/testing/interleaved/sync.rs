//! The daemon's own decision of a sync and of a trigger, over the simulated hosting instead of Git.

use crate::engine::records::Records;
use crate::engine::sync::{self, Allowance, Head, Trigger, Watched};
use crate::engine::transition::Transition;
use crate::error::{Failure, Result};
use crate::executor::applied::{Stages, surroundings};
use crate::executor::drive::{Driver, TRIES, keeps_changing};
use crate::model::hold::Release;
use crate::model::ids::{RepositoryName, ServiceName, StageName};
use crate::model::run::{Run, SequenceRun};
use crate::model::state::{RepositoryState, RevisionResult};
use crate::model::transaction::Write;
use crate::testing::interleaved::hosting::{Commit, Hosting};

/// Syncs once; decided again while what it was decided on moves.
pub(super) async fn sync(driver: &Driver, hosting: &Hosting, name: &RepositoryName) -> Result<()> {
    for _ in 0..TRIES {
        let stored = driver.store.repository(name).await?;
        let Some(commit) = hosting.head(name) else { return Ok(()) };
        if stored.as_ref().is_some_and(|stored| stored.value.seen.as_ref() == Some(&commit.id)) {
            return Ok(());
        }
        let mut records = Records::default();
        records.repositories.read(name.clone(), stored);
        let (mut head, applied) = surrounded(driver, &commit, &mut records).await?;
        let before = records.repositories.get(name).ok().flatten().and_then(|state| state.applied.clone());
        head.descends = hosting.descends(name, &commit, before.as_ref());
        let known = driver.store.revision(name, commit.id.as_str()).await?;
        let watched = watched(name);
        let decide = |transition: &mut Transition<'_>| {
            sync::decide(transition, &watched, &head, &applied, known.as_ref()).map(drop)
        };
        if driver.try_decide(&mut records, decide).await?.is_some() {
            return Ok(());
        }
    }
    Err(keeps_changing())
}

/// Makes the next sync plan the head anew, and perhaps delete more than the rule lets go, or take a rewritten history.
pub(super) async fn allow(driver: &Driver, name: &RepositoryName, allowed: Allowance) -> Result<()> {
    let change = |transition: &mut Transition<'_>| {
        if let Some(state) = transition.records.repositories.get_mut(name)? {
            allowed.give(state);
        }
        Ok(())
    };
    driver.decide(change).await
}

/// Starts a stage's deliveries by hand.
pub(super) async fn trigger(
    driver: &Driver,
    hosting: &Hosting,
    name: &RepositoryName,
    stage: &StageName,
    service: &ServiceName,
    (force, by): (Option<&str>, &str),
) -> Result<()> {
    for _ in 0..TRIES {
        let state = driver.store.repository(name).await?.map(|state| state.value);
        let commit = applied_commit(hosting, name, state.as_ref())?;
        let mut records = Records::default();
        let (head, applied) = surrounded(driver, &commit, &mut records).await?;
        let watched = watched(name);
        let decide = |transition: &mut Transition<'_>| {
            let asked = Trigger { stage, service: Some(service), force, by };
            sync::trigger(transition, &watched, &head, applied.clone(), asked).map(drop)
        };
        if driver.try_decide(&mut records, decide).await?.is_some() {
            return Ok(());
        }
    }
    Err(keeps_changing())
}

fn applied_commit(hosting: &Hosting, name: &RepositoryName, state: Option<&RepositoryState>) -> Result<Commit> {
    let applied = state.and_then(|state| state.applied.as_ref());
    let mut commits = hosting.commits(name).into_iter();
    let found = commits.find(|commit| Some(&commit.id) == applied);
    found.ok_or_else(|| Failure::stalled(format!("nothing of `{name}` was applied yet")))
}

/// The runs that a sync would start now if the head were pushed again; nothing if it would be refused.
pub(super) async fn would_start(driver: &Driver, name: &RepositoryName, commit: &Commit) -> Result<Vec<SequenceRun>> {
    let mut records = Records::default();
    let (head, applied) = surrounded(driver, commit, &mut records).await?;
    let watched = watched(name);
    let decide = |transition: &mut Transition<'_>| sync::decide(transition, &watched, &head, &applied, None);
    let (result, transaction, _) = driver.work_out(&mut records, decide).await?;
    if !matches!(result, RevisionResult::Planned(_)) {
        return Ok(Vec::new());
    }
    let started = |write: Write| match write {
        Write::Run(run) if run.version == 0 => match run.value {
            Run::Sequence(run) => Some(*run),
            Run::Deployment(_) => None,
        },
        _ => None,
    };
    Ok(transaction.writes.into_iter().filter_map(started).collect())
}

fn watched(name: &RepositoryName) -> Watched {
    let (url, branch) = (format!("file:///{name}"), "main".to_owned());
    Watched { name: name.clone(), url, branch, rewrite_allowed: false }
}

/// A head with what it is decided on.
async fn surrounded(driver: &Driver, commit: &Commit, records: &mut Records) -> Result<(Head, Stages)> {
    let seen = surroundings(&*driver.store, &commit.project, &Release::default(), records).await?;
    let subject = format!("push {}", commit.id.short());
    let lifted = seen.lifted;
    let declared = match commit.is_broken {
        true => Err(vec!["web.yaml:1: this is no YAML".to_owned()]),
        false => Ok(seen.project),
    };
    Ok((Head { commit: commit.id.clone(), subject, descends: true, declared, lifted }, seen.stages))
}
