//! What happened in a repository beside pushes to its branch is told to the sequences that are triggered on it, once its head
//! has been synced. It is forgotten after that: whoever dies in between tells it again, which changes nothing.

use async_trait::async_trait;

use crate::engine::sequence::from_git;
use crate::engine::sequence::incoming;
use crate::engine::sequence::tags;
use crate::error::{Class, Result};
use crate::executor::drive::Driver;
use crate::executor::sync::{self, Revisions};
use crate::model::cloud_event::CloudEvent;
use crate::model::git_event::GitEvent;
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

/// Tells all that is noted in a repository's record, and which tags are new.
///
/// # Errors
/// If the repository cannot be read now, or the store fails; then it is told after the next sync.
pub async fn tell(driver: &Driver, revisions: &dyn Revisions, tags: &dyn ReadTags) -> Result<()> {
    let (name, life) = (revisions.watched().name, driver.store.incarnation());
    let tags = match driver.decide(|transition| tags::are_awaited(transition, &name)).await? {
        true => Some(tags.tags().await),
        false => None,
    };
    loop {
        let has_more = match &tags {
            Some(Ok(tags)) => driver.decide(|transition| tags::compare(transition, &name, tags, life)).await?,
            Some(Err(_)) | None => false,
        };
        // What a webhook has told is told also where tags cannot be read.
        tell_noted(driver, revisions).await?;
        if !has_more {
            return tags.transpose().map(drop);
        }
    }
}

async fn tell_noted(driver: &Driver, revisions: &dyn Revisions) -> Result<()> {
    let state = sync::state(driver, revisions).await?.value;
    for event in &state.happened {
        if !state.down {
            tell_one(driver, revisions, &state, event).await?;
        }
        driver.decide(|transition| from_git::settle(transition, &state.name, event)).await?;
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
