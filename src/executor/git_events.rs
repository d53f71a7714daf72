//! What happened in a repository beside pushes to its branch is told to the sequences that are triggered on it, once its head
//! has been synced. It is forgotten after that: whoever dies in between tells it again, which changes nothing.

use crate::engine::sequence::from_git;
use crate::engine::sequence::incoming;
use crate::error::{Class, Result};
use crate::executor::drive::Driver;
use crate::executor::sync::{self, Revisions};
use crate::model::cloud_event::CloudEvent;
use crate::model::git_event::GitEvent;
use crate::model::state::RepositoryState;

/// Tells all that is noted in a repository's record.
///
/// # Errors
/// If the repository cannot be read now, or the store fails; then it is told after the next sync.
pub async fn tell(driver: &Driver, revisions: &dyn Revisions) -> Result<()> {
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
