//! What happened in a repository beside pushes to its branch is told to the sequences that are triggered on it, once its head
//! has been synced. It is forgotten after that: whoever dies in between tells it again, which changes nothing.

use async_trait::async_trait;

use crate::engine::sequence::from_git;
use crate::engine::sequence::incoming;
use crate::engine::sequence::tags;
use crate::engine::transition::Transition;
use crate::error::{Class, Failure, Result};
use crate::executor::drive::Driver;
use crate::executor::sync::{self, Revisions};
use crate::model::cloud_event::CloudEvent;
use crate::model::git_event::GitEvent;
use crate::model::ids::RepositoryName;
use crate::model::state::RepositoryState;
use crate::model::tag::Tags;

/// The port to the tags of a repository.
#[async_trait]
pub trait ReadTags: Send + Sync {
    /// All that are there now.
    ///
    /// # Errors
    /// If the remote cannot be reached or read, or has too many.
    async fn tags(&self) -> Result<Tags>;
}

/// What has happened in a repository until its head is read. What comes later may be about what is not planned by then, and is
/// told after the next sync.
#[derive(Debug)]
pub struct Noted {
    events: Vec<GitEvent>,
    were_tags_awaited: bool,
    /// Whether more tags are new than are told after one sync.
    pub has_more: bool,
    /// Why nobody knows which tags are new, although a sequence waits for them.
    pub problem: Option<Failure>,
}

/// Notes which tags are new, if a sequence waits for any, and says what is to be told once the head has been synced.
///
/// # Errors
/// If the store fails.
pub async fn note(driver: &Driver, repository: &RepositoryName, tags: &dyn ReadTags) -> Result<Noted> {
    let are_awaited = driver.decide(|transition| tags::are_awaited(transition, repository)).await?;
    let read = if are_awaited { Some(tags.tags().await) } else { None };
    let (has_more, problem) = match read {
        Some(Ok(tags)) => {
            let life = driver.store.incarnation();
            let compare = |transition: &mut Transition<'_>| tags::compare(transition, repository, &tags, life);
            (driver.decide(compare).await?, None)
        }
        Some(Err(problem)) => (false, Some(problem)),
        None => (false, None),
    };
    let state = driver.store.repository(repository).await?;
    let events = state.map(|state| state.value.happened).unwrap_or_default();
    Ok(Noted { events, were_tags_awaited: are_awaited, has_more, problem })
}

/// Tells what was noted before the head was synced.
///
/// # Errors
/// If the repository cannot be read now, or the store fails; then it is told after the next sync.
pub async fn tell(driver: &Driver, revisions: &dyn Revisions, tags: &dyn ReadTags, noted: &Noted) -> Result<()> {
    let state = sync::state(driver, revisions).await?.value;
    for event in &noted.events {
        if !state.down {
            tell_one(driver, revisions, &state, event).await?;
        }
        driver.decide(|transition| from_git::remember(transition, &state.name, event)).await?;
    }
    if !noted.were_tags_awaited {
        // Where the head is the first that waits for tags, those that are there now are none that it waits for.
        note(driver, &state.name, tags).await?;
    }
    Ok(())
}

async fn tell_one(driver: &Driver, revisions: &dyn Revisions, state: &RepositoryState, event: &GitEvent) -> Result<()> {
    let commit = driver.decide(|transition| from_git::revision(transition, state, event)).await?;
    let Some(commit) = commit else { return Ok(()) };
    let Ok(project) = revisions.at(&commit).await?.head.declared else { return Ok(()) };
    for told in from_git::told(event, &state.name, &project, &commit) {
        let started = start(driver, revisions, state, (event, &told)).await;
        match started.map_err(|failure| (failure.class(), failure)) {
            Ok(()) => {}
            Err((Class::Stalled, failure)) => {
                let (repository, problem) = (&state.name, failure.one_line());
                tracing::warn!(%repository, event = told.id, problem, "nothing starts on what happened in Git");
            }
            Err((_, failure)) => return Err(failure),
        }
    }
    Ok(())
}

async fn start(
    driver: &Driver,
    revisions: &dyn Revisions,
    state: &RepositoryState,
    (event, told): (&GitEvent, &CloudEvent),
) -> Result<()> {
    let received = driver.decide(|transition| incoming::receive(transition, &state.name, told)).await?;
    if !received.delivers.is_empty() {
        sync::trigger_on(driver, revisions, told, &received.delivers, &event.title()).await?;
    }
    Ok(())
}
