//! What happens in a repository beside pushes to its branch, and the sequences that are triggered on it.
//!
//! It is noted in the repository's record when its host tells it, or when its tags are [compared](super::tags), and told once
//! the head has been synced: what was pushed together with a tag is planned by then.

use std::collections::BTreeSet;

use serde_json::Value;

use super::incoming::{derived_context, once_in_git};
use super::tags;
use crate::engine::records::{Lookup, Needs, Undecided};
use crate::engine::transition::Transition;
use crate::manifest::service::SHARED;
use crate::model::cloud_event::CloudEvent;
use crate::model::git_event::{GitEvent, GitEventKind};
use crate::model::ids::{CommitId, RepositoryName, ServiceName, StageName};
use crate::model::project::{Project, StageContent};
use crate::model::state::RepositoryState;
use crate::model::transaction::Write;
use crate::plan::build::delivery_sequences;
use crate::plan::triggered;

/// So much may wait to be told in a repository. More has happened at once than people do.
pub(super) const MOST: usize = 100;

/// Notes what has happened, if a sequence waits for that; else says why it does not count.
///
/// # Errors
/// If something must be read first.
pub fn note(
    transition: &mut Transition<'_>,
    repository: &RepositoryName,
    event: &GitEvent,
) -> Result<Result<(), String>, Undecided> {
    let stored = transition.records.repositories.get(repository)?.cloned();
    let Some(mut state) = stored.filter(|state| state.applied.is_some()) else {
        return Ok(Err(format!("`{repository}` has no revision yet that says what to do")));
    };
    let awaits = awaits(transition, &state, event.kind)?;
    let is_known = is_known(transition, &state, &tags::spellings(transition, repository, event)?)?;
    match () {
        () if state.down => return Ok(Err(format!("`{repository}` was taken down"))),
        () if !awaits => return Ok(Err(format!("no sequence is triggered on `{}`", event.kind.as_str()))),
        () if is_known => return Ok(Err(format!("`{}` was told before", event.identity()))),
        () if state.happened.len() >= MOST => return Ok(Err(format!("{MOST} others have to be told first"))),
        () => state.happened.push(event.clone()),
    }
    transition.records.repositories.put(repository, Some(state))?;
    Ok(Ok(()))
}

/// Whether a sequence of the applied revision waits for such a thing.
pub(super) fn awaits(
    transition: &Transition<'_>,
    state: &RepositoryState,
    kind: GitEventKind,
) -> Result<bool, Undecided> {
    let Some(commit) = state.applied.clone() else { return Ok(false) };
    let plan = transition.records.plan(Lookup::Outline(state.name.clone(), commit))?;
    Ok(plan.is_some_and(|plan| triggered::awaits(&plan.procedures.shipyard, kind.as_str())))
}

/// Whether what has happened, by whichever of the names that it may have been told, is noted already, or was told to all
/// that it concerns.
pub(super) fn is_known(
    transition: &Transition<'_>,
    state: &RepositoryState,
    spellings: &[GitEvent],
) -> Result<bool, Undecided> {
    let is_noted = spellings.iter().any(|event| state.happened.contains(event));
    Ok(is_noted || untold(transition, &state.name, spellings)?.len() < spellings.len())
}

/// By which of its names something was not told yet.
fn untold<'a>(
    transition: &Transition<'_>,
    repository: &RepositoryName,
    spellings: &'a [GitEvent],
) -> Result<Vec<&'a GitEvent>, Undecided> {
    let (mut untold, mut needs) = (Vec::new(), Needs::default());
    for spelling in spellings {
        let lookup = Lookup::WasDelivered(repository.clone(), once_in_git(spelling));
        if needs.of(transition.records.number(lookup))? == Some(0) {
            untold.push(spelling);
        }
    }
    needs.none()?;
    Ok(untold)
}

/// The revision that gets the event: the one that it is about, if that was planned here, else the applied one.
///
/// # Errors
/// If something must be read first.
pub fn revision(
    transition: &mut Transition<'_>,
    state: &RepositoryState,
    event: &GitEvent,
) -> Result<Option<CommitId>, Undecided> {
    transition.records.repositories.get(&state.name)?; // with which it moves
    if let Some(commit) = event.commit.as_deref().map(CommitId::new) {
        let lookup = Lookup::Outline(state.name.clone(), commit.clone());
        if transition.records.plan(lookup)?.is_some() {
            return Ok(Some(commit));
        }
    }
    Ok(state.applied.clone())
}

/// What it means to the sequences of a project: it happened to each service of each stage that waits for it, or to the one
/// that a tag names before a slash. A project that declares no service has one of its own name.
pub fn told(event: &GitEvent, repository: &RepositoryName, project: &Project, commit: &CommitId) -> Vec<CloudEvent> {
    let kind = event.kind.as_str();
    let mut all = Vec::new();
    for stage in &project.stages {
        for service in services(event, project, stage) {
            let (id, context) = (format!("{} {}/{service}", event.identity(), stage.name), context(event, &service));
            let mut data = event.data(repository);
            let about =
                [("project", project.name.as_str()), ("stage", stage.name.as_str()), ("service", service.as_str())];
            data.extend(about.map(|(key, value)| (key.to_owned(), Value::from(value))));
            all.push(CloudEvent {
                source: event.source(),
                shkeptncontext: Some(context),
                gitcommitid: Some(commit.to_string()),
                ..CloudEvent::of(kind, id, Value::Object(data))
            });
        }
    }
    all
}

/// One for all stages.
fn context(event: &GitEvent, service: &ServiceName) -> String {
    derived_context(&format!("{} {service}", event.identity()))
}

fn services(event: &GitEvent, project: &Project, stage: &StageContent) -> BTreeSet<ServiceName> {
    let all = |stage: &StageContent| -> BTreeSet<ServiceName> {
        stage.objects.iter().map(|object| object.service.clone()).collect()
    };
    let mut services = all(stage);
    if project.stages.iter().all(|stage| all(stage).is_empty()) {
        return BTreeSet::from([ServiceName::new(project.name.as_str())]);
    }
    let named = event.tag_name().and_then(|tag| tag.split_once('/')).map(|(service, _)| ServiceName::new(service));
    if let Some(named) = named.filter(|named| project.stages.iter().any(|stage| all(stage).contains(named))) {
        services.retain(|service| *service == named);
        return services;
    }
    // What several services share is delivered like one, and is none to anybody else.
    if services.len() > 1 && !delivers_on(event, project, &stage.name) {
        services.remove(&ServiceName::new(SHARED));
    }
    services
}

/// Whether a stage is delivered when it happens.
fn delivers_on(event: &GitEvent, project: &Project, stage: &StageName) -> bool {
    let sequences = delivery_sequences(project);
    sequences
        .get(stage)
        .is_some_and(|sequence| triggered::is_awaited_by(sequence, &project.shipyard, event.kind.as_str()))
}

/// Remembers that it was told to all that it concerns.
///
/// # Errors
/// If something must be read first.
pub fn remember(
    transition: &mut Transition<'_>,
    repository: &RepositoryName,
    event: &GitEvent,
) -> Result<(), Undecided> {
    let Some(mut state) = transition.records.repositories.get(repository)?.cloned() else { return Ok(()) };
    state.happened.retain(|other| other != event);
    let spellings = tags::spellings(transition, repository, event)?;
    let told = untold(transition, repository, &spellings)?;
    transition.records.repositories.put(repository, Some(state))?;
    for event in told {
        let (repository, at) = (repository.clone(), transition.now);
        transition.write(Write::Delivery { repository, id: once_in_git(event), at });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
