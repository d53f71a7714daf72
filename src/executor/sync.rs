//! One sync of a repository: what its branch says now, and what follows from it. The daemon and the simulated worlds sync
//! alike; where revisions are read is behind a port.
//!
//! Whatever asked for it, a sync is the same: the head is compared with the one that was seen, and a new one is applied, or
//! refused with a status that says why. Nothing is taken from who asked.

use std::sync::Arc;

use async_trait::async_trait;

use crate::engine::holds;
use crate::engine::records::{Records, Undecided};
use crate::engine::rollback::propose;
use crate::engine::sequence::incoming::Incoming;
use crate::engine::sync::{self, Allowance, Head, Known, Planning, Trigger, Watched};
use crate::engine::transition::Transition;
use crate::engine::unreadable::{Earlier, Vanished};
use crate::error::{Class, Failure, Result};
use crate::executor::applied::{Stages, surroundings};
use crate::executor::drive::{Driver, TRIES, keeps_changing};
use crate::executor::switch;
use crate::manifest::Problem;
use crate::model::cloud_event::CloudEvent;
use crate::model::hold::{Hold, Release};
use crate::model::ids::{CommitId, ProjectName, RunId, ServiceKey, ServiceName, StageName};
use crate::model::project::Project;
use crate::model::run::{SequenceRun, SequenceState};
use crate::model::state::{RepositoryState, RevisionResult, Versioned};
use crate::store::{RunFilter, Transaction};

/// The port to the revisions of a repository.
#[async_trait]
pub trait Revisions: Send + Sync {
    /// The repository as its configuration says, as far as that is known by now.
    fn watched(&self) -> Watched;

    /// The head, unless it is the one that was `seen`.
    ///
    /// # Errors
    /// If the remote cannot be reached or read.
    async fn head(&self, seen: Option<&CommitId>, applied: Option<&CommitId>) -> Result<Option<Read>>;

    /// A revision that was applied.
    ///
    /// # Errors
    /// If it cannot be read any more.
    async fn at(&self, commit: &CommitId) -> Result<Read>;
}

/// A revision, read.
#[derive(Clone, Debug)]
pub struct Read {
    /// What it declares.
    pub head: Head,
    /// Problems that do not keep it from being read.
    pub problems: Vec<Problem>,
}

/// What a sync found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Synced {
    /// The head that was seen before.
    Unchanged,
    /// A new head, with what came of it.
    Revision(CommitId, Box<RevisionResult>),
}

/// Syncs once. The `first` time since a daemon started, what one before was killed in is done to its end: a repository that
/// was being taken down. And a head is read again that could not be read: this daemon may be allowed to read more.
///
/// # Errors
/// If the remote cannot be reached or read, or the store fails; then nothing was changed.
pub async fn sync(driver: &Driver, revisions: &dyn Revisions, first: bool) -> Result<Synced> {
    if first && state(driver, revisions).await?.value.down {
        switch::finish_down(driver, &revisions.watched().name).await?;
    }
    for _ in 0..TRIES {
        if let Some(found) = try_sync(driver, revisions, first).await? {
            return Ok(found);
        }
    }
    Err(keeps_changing())
}

/// Nothing, if what was decided on has moved meanwhile.
async fn try_sync(driver: &Driver, revisions: &dyn Revisions, first: bool) -> Result<Option<Synced>> {
    let stored = state(driver, revisions).await?;
    let name = stored.value.name.clone();
    let seen = match &stored.value.seen {
        Some(seen) if first && was_broken(driver, &stored.value, seen).await? => None,
        seen => seen.as_ref(),
    };
    let Some(read) = revisions.head(seen, stored.value.applied.as_ref()).await? else {
        if !stored.value.status_problems.is_empty() {
            driver.writers.retry(&name); // the token may have been replaced meanwhile
        }
        let head = stored.value.seen.as_ref();
        if stored.value.proposals.iter().any(|proposal| proposal.wants_attention(head)) {
            driver.decide(|transition| propose::look_after(transition, &name)).await?;
        }
        return Ok(Some(Synced::Unchanged));
    };
    let release = fulfilled(driver, &stored.value, &read.head).await?;
    let mut records = Records::default();
    records.repositories.read(name.clone(), known(stored));
    let (head, applied) = surrounded(driver, revisions, read, &release, &mut records).await?;
    let known = match driver.store.revision(&name, head.commit.as_str()).await? {
        Some(revision) => Some(Known { revision, overtaken: driver.store.overtaken_by(&name, &head.commit).await? }),
        None => None,
    };
    let (watched, planning) = (revisions.watched(), Planning::against(applied));
    let decide = |transition: &mut Transition<'_>| sync::decide(transition, &watched, &head, &planning, known.as_ref());
    let committed = driver.try_decide(&mut records, decide).await?;
    Ok(committed.map(|result| Synced::Revision(head.commit.clone(), Box::new(result))))
}

async fn was_broken(driver: &Driver, state: &RepositoryState, head: &CommitId) -> Result<bool> {
    let known = driver.store.revision(&state.name, head.as_str()).await?;
    Ok(known.is_some_and(|known| matches!(known.result, RevisionResult::Broken { .. })))
}

/// Starts the delivery sequence of a stage with what the applied revision declares; hands back the runs.
///
/// # Errors
/// If nothing was applied yet or it cannot be read, and as [`sync::trigger`].
pub async fn trigger(driver: &Driver, revisions: &dyn Revisions, asked: Trigger<'_>) -> Result<Vec<RunId>> {
    for _ in 0..TRIES {
        let stored = state(driver, revisions).await?;
        let name = stored.value.name.clone();
        let nothing = || Failure::stalled(format!("nothing of `{name}` was applied yet"));
        let commit = stored.value.applied.clone().ok_or_else(nothing)?;
        let read = revisions.at(&commit).await?;
        let mut records = Records::default();
        // Another revision that is applied meanwhile is met by deciding again.
        records.repositories.read(name.clone(), known(stored));
        let (head, applied) = surrounded(driver, revisions, read, &Release::default(), &mut records).await?;
        let watched = revisions.watched();
        let decide =
            |transition: &mut Transition<'_>| sync::trigger(transition, &watched, &head, applied.clone(), asked);
        if let Some(runs) = driver.try_decide(&mut records, decide).await? {
            return Ok(runs);
        }
    }
    Err(keeps_changing())
}

/// What became of deliveries that an event asks for.
#[derive(Debug, Default)]
pub struct Deliveries {
    /// The runs that were started.
    pub runs: Vec<RunId>,
    /// The stages that start nothing, with why.
    pub refused: Vec<(StageName, Failure)>,
}

/// Starts the deliveries to stages that an event asks for, each once. One that is refused keeps none of the others, and is noted
/// for whoever asks why nothing happens.
///
/// # Errors
/// If one of them cannot be started now.
pub async fn trigger_on(
    driver: &Driver,
    revisions: &dyn Revisions,
    event: &CloudEvent,
    stages: &[StageName],
    by: &str,
) -> Result<Deliveries> {
    let service = ServiceName::new(event.text("service"));
    let mut deliveries = Deliveries::default();
    for stage in stages {
        let incoming = Incoming::of(event).to(stage);
        let asked = Trigger { stage, service: Some(&service), force: None, by, incoming: Some(&incoming) };
        match trigger(driver, revisions, asked).await {
            Ok(runs) => deliveries.runs.extend(runs),
            Err(failure) if failure.class() == Class::Stalled => {
                let (project, stage) = (ProjectName::new(event.text("project")), stage.clone());
                let key = ServiceKey { project, stage: stage.clone(), service: service.clone() };
                let (by, reason) = (format!("`{}` ({by})", event.short_kind()), failure.to_string());
                tracing::warn!(service = %key, by, reason, "nothing is delivered on an event");
                driver.decide(|transition| sync::refused::note(transition, &key, &by, &reason)).await?;
                deliveries.refused.push((stage, failure));
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(deliveries)
}

/// What would start in a project if something were released; nothing is changed. In place of it, why nobody can
/// tell: the revision that is applied cannot be read.
///
/// # Errors
/// If the store fails.
pub async fn starts_after(
    driver: &Driver,
    revisions: &dyn Revisions,
    project: &ProjectName,
    release: &Release,
) -> Result<Result<Vec<SequenceRun>>> {
    let Some(commit) = state(driver, revisions).await?.value.applied else { return Ok(Ok(Vec::new())) };
    let read = match revisions.at(&commit).await {
        Ok(read) => read,
        Err(unreadable) => return Ok(Err(unreadable)),
    };
    let slots = driver.store.open_slot_keys(Some(project)).await?;
    let before = |transition: &mut Transition<'_>| {
        holds::release(transition, project, release, None)?;
        slots.iter().for_each(|slot| transition.examine(slot.clone()));
        Ok(())
    };
    let (_, transaction, applied) = foresee(driver, revisions, read, release, before).await?;
    let is_held = |run: &SequenceRun| {
        let seen = applied.get(&run.service.stage);
        seen.is_some_and(|seen| seen.holds.iter().any(|hold| run.is_held_by(hold)))
    };
    let let_go = held_before(driver, project, release).await?;
    let let_go = sync::let_go(let_go, &transaction.writes);
    let starting = transaction.writes.into_iter().filter_map(sync::starting).chain(let_go);
    Ok(Ok(starting.filter(|run| !is_held(run)).collect()))
}

/// The runs of a project that wait for their turn, and that something holds which is released.
async fn held_before(driver: &Driver, project: &ProjectName, release: &Release) -> Result<Vec<SequenceRun>> {
    let holds = driver.store.holds_of(project).await?.map(|known| known.value.holds).unwrap_or_default();
    let released: Vec<Hold> = holds.into_iter().filter(|hold| release.holds.contains(&hold.id)).collect();
    if released.is_empty() {
        return Ok(Vec::new());
    }
    let (project, open, sequences) = (Some(project.clone()), Some(true), Some(true));
    let open = driver.store.runs(&RunFilter { project, open, sequences, ..RunFilter::default() }).await?.whole()?;
    let queued = open.into_iter().filter_map(|run| run.value.sequence().cloned());
    let is_let_go =
        |run: &SequenceRun| run.state == SequenceState::Queued && released.iter().any(|hold| run.is_held_by(hold));
    Ok(queued.filter(is_let_go).collect())
}

/// What a sync of a revision would come to, and what is applied then; nothing is changed. `before` is decided in the same
/// transaction, once `release` was released.
///
/// # Errors
/// If the store fails, or the decision is refused.
pub async fn foresee(
    driver: &Driver,
    revisions: &dyn Revisions,
    read: Read,
    release: &Release,
    before: impl Fn(&mut Transition<'_>) -> Result<(), Undecided> + Sync,
) -> Result<(RevisionResult, Transaction, Stages)> {
    let mut records = Records::default();
    let (head, applied) = surrounded(driver, revisions, read, release, &mut records).await?;
    let (watched, planning) = (revisions.watched(), Planning::against(applied));
    let decide = |transition: &mut Transition<'_>| {
        before(transition)?;
        sync::decide(transition, &watched, &head, &planning, None)
    };
    let (result, transaction, _) = driver.work_out(&mut records, decide).await?;
    Ok((result, transaction, planning.into_applied()))
}

/// Makes the next sync plan the head anew, although it was seen before, with what a person allows for it.
///
/// # Errors
/// If the store fails.
pub async fn allow(driver: &Driver, revisions: &dyn Revisions, allowed: &Allowance) -> Result<()> {
    let unknown = unknown(revisions);
    let give = |transition: &mut Transition<'_>| {
        let stored = transition.records.repositories.get(&unknown.name)?.cloned();
        let mut state = stored.unwrap_or_else(|| unknown.clone());
        allowed.give(&mut state);
        transition.records.repositories.put(&unknown.name, Some(state))
    };
    driver.decide(give).await
}

/// The holds that a head makes needless: see [`propose::fulfilled`].
async fn fulfilled(driver: &Driver, state: &RepositoryState, head: &Head) -> Result<Release> {
    let (Ok(project), false) = (&head.declared, state.proposals.is_empty()) else { return Ok(Release::default()) };
    let known = driver.store.holds_of(&project.name).await?;
    let holds = known.map(|known| propose::fulfilled(state, project, &known.value)).unwrap_or_default();
    Ok(Release { holds, ..Release::default() })
}

/// What a head is decided on beside its files: what is applied, and whether anything of that hides in files that cannot be read.
async fn surrounded(
    driver: &Driver,
    revisions: &dyn Revisions,
    read: Read,
    release: &Release,
    records: &mut Records,
) -> Result<(Head, Stages)> {
    let Read { mut head, problems } = read;
    let Ok(project) = head.declared.clone() else { return Ok((head, Stages::default())) };
    let seen = surroundings(&*driver.store, &project, release, records).await?;
    let vanished = Vanished::of(&project, &problems, &seen.stages);
    let earlier = if vanished.needs_earlier() { earlier(driver, revisions).await? } else { None };
    let earlier = earlier.as_ref().map(|(project, problems)| Earlier { project, problems });
    let breaking = vanished.breaking(earlier);
    if !breaking.is_empty() {
        head.declared = Err(breaking.iter().map(ToString::to_string).collect());
        return Ok((head, Stages::default()));
    }
    let head = Head { declared: Ok(seen.project), lifted: seen.lifted, ..head };
    Ok((head, seen.stages))
}

/// What the applied revision declares, and what was wrong with its files; nothing, if it cannot be read any more.
async fn earlier(driver: &Driver, revisions: &dyn Revisions) -> Result<Option<(Arc<Project>, Vec<Problem>)>> {
    let Some(commit) = state(driver, revisions).await?.value.applied else { return Ok(None) };
    match revisions.at(&commit).await {
        Ok(Read { head, problems }) => Ok(head.declared.ok().map(|project| (project, problems))),
        Err(failure) if failure.class() == Class::Stalled => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// What is remembered of a repository, or what there is to know of one that nothing is remembered of.
///
/// # Errors
/// If the store fails.
pub async fn state(driver: &Driver, revisions: &dyn Revisions) -> Result<Versioned<RepositoryState>> {
    let unknown = unknown(revisions);
    let stored = driver.store.repository(&unknown.name).await?;
    Ok(stored.unwrap_or(Versioned { version: 0, value: unknown }))
}

fn known(stored: Versioned<RepositoryState>) -> Option<Versioned<RepositoryState>> {
    Some(stored).filter(|stored| stored.version > 0)
}

/// A repository that nothing is remembered of.
pub fn unknown(revisions: &dyn Revisions) -> RepositoryState {
    let Watched { name, url, branch, .. } = revisions.watched();
    RepositoryState::new(name, url, branch)
}
