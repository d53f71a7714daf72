//! Which tags of a repository are new: those that are there are compared with those that were there the last time. So nobody
//! needs a webhook, and the call of one that was missed is made up for.

use super::from_git::{MOST, awaits, is_known};
use crate::engine::records::{Needs, Undecided};
use crate::engine::transition::Transition;
use crate::model::git_event::{GitEvent, GitEventKind};
use crate::model::ids::{Incarnation, RepositoryName};
use crate::model::tag::{SeenTags, Tag, Tags};
use crate::model::transaction::Write;

/// Whether a sequence waits for tags, so that they have to be read. As soon as none does, those that were seen are forgotten:
/// what comes until one does again is not new to it.
///
/// # Errors
/// If something must be read first.
pub fn are_awaited(transition: &mut Transition<'_>, repository: &RepositoryName) -> Result<bool, Undecided> {
    let Some(state) = transition.records.repositories.get(repository)?.cloned() else { return Ok(false) };
    let are_awaited = awaits(transition, &state, GitEventKind::TagCreated)?;
    let were_seen = transition.records.seen_tags(repository)?.is_some_and(|seen| seen.life.is_some());
    if !are_awaited && were_seen {
        remember(transition, repository, SeenTags { life: None, tags: Tags::new() });
    }
    Ok(are_awaited)
}

/// Notes which of a repository's tags are new, or were moved, as far as there is room for them; says whether more are. Those
/// that were there when a sequence began to wait for any are not, nor those that come while the repository is down.
///
/// # Errors
/// If something must be read first.
pub fn compare(
    transition: &mut Transition<'_>,
    repository: &RepositoryName,
    tags: &Tags,
    life: &Incarnation,
) -> Result<bool, Undecided> {
    let Some(mut state) = transition.records.repositories.get(repository)?.cloned() else { return Ok(false) };
    let before = transition.records.seen_tags(repository)?.cloned();
    let is_first = state.down || before.as_ref().is_none_or(|before| before.life.as_ref() != Some(life));
    let mut seen = match before.clone() {
        Some(before) if !is_first => before.tags,
        _ => tags.clone(),
    };
    seen.retain(|reference, _| tags.contains_key(reference));
    name_commits(&mut state.happened, tags);
    let new: Vec<_> = tags.iter().filter(|(reference, tag)| seen.get(*reference) != Some(tag)).take(MOST).collect();
    let mut needs = Needs::default();
    for (reference, tag) in new {
        let Some(is_known) = needs.of(is_known(transition, &state, &named(reference, tag)))? else { continue };
        if is_known || state.happened.len() < MOST {
            state.happened.extend((!is_known).then(|| GitEvent::tag(reference.clone(), tag.commit().to_owned())));
            seen.insert(reference.clone(), tag.clone());
        }
    }
    needs.none()?;
    let has_more = &seen != tags;
    let seen = SeenTags { life: Some(life.clone()), tags: seen };
    if before.as_ref() != Some(&seen) {
        remember(transition, repository, seen);
    }
    transition.records.repositories.put(repository, Some(state))?;
    Ok(has_more)
}

/// What is noted of tags names the commits that they lead to, whatever their hosts have named.
fn name_commits(happened: &mut [GitEvent], tags: &Tags) {
    for event in happened {
        let tag = tags.get(&event.reference).filter(|tag| event.commit.as_deref().is_some_and(|id| tag.is_at(id)));
        if let Some(tag) = tag {
            event.commit = Some(tag.commit().to_owned());
        }
    }
}

/// What has happened to a tag, by each of the ids that a host may name it by.
fn named(reference: &str, tag: &Tag) -> Vec<GitEvent> {
    [Some(&tag.object), tag.target.as_ref()]
        .into_iter()
        .flatten()
        .map(|id| GitEvent::tag(reference.to_owned(), id.clone()))
        .collect()
}

/// What a host tells, by each of the ids that it may have been known by before.
pub(super) fn spellings(
    transition: &Transition<'_>,
    repository: &RepositoryName,
    event: &GitEvent,
) -> Result<Vec<GitEvent>, Undecided> {
    if event.kind != GitEventKind::TagCreated {
        return Ok(vec![event.clone()]);
    }
    let seen = transition.records.seen_tags(repository)?;
    let tag = seen.and_then(|seen| seen.tags.get(&event.reference));
    let tag = tag.filter(|tag| event.commit.as_deref().is_some_and(|id| tag.is_at(id)));
    Ok(tag.map_or_else(|| vec![event.clone()], |tag| named(&event.reference, tag)))
}

fn remember(transition: &mut Transition<'_>, repository: &RepositoryName, seen: SeenTags) {
    transition.write(Write::Tags { repository: repository.clone(), seen: Box::new(seen) });
}

#[cfg(test)]
mod tests;
