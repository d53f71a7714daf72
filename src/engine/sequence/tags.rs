//! Which tags of a repository are new: those that are there are compared with those that were there the last time. So nobody
//! needs a webhook, and the call of one that was missed is made up for.

use super::from_git::{MOST, awaits, is_known};
use crate::engine::records::{Needs, Undecided};
use crate::engine::transition::Transition;
use crate::model::git_event::{GitEvent, GitEventKind};
use crate::model::ids::{Incarnation, RepositoryName};
use crate::model::tag::{SeenTags, Tag, Tags};
use crate::model::transaction::Write;

/// So many are noted before the branch is synced again and they are told: pushes do not wait for a thousand tags.
const AT_ONCE: usize = 20;
/// With more, those are forgotten that were deleted.
const MOST_SEEN: usize = 20_000;

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
        remember(transition, repository, SeenTags { life: None, url: String::new(), tags: Tags::new() });
    }
    Ok(are_awaited)
}

/// Notes which of a repository's tags are new, or were moved, the lowest versions first; says whether there are more than are
/// noted at once. Those that were there when a sequence began to wait for any are not, nor those that come while the repository
/// is down, or with another one of its name.
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
    let goes_on = |before: &SeenTags| !state.down && before.life.as_ref() == Some(life) && before.url == state.url;
    let mut seen = before.clone().filter(goes_on).map_or_else(|| tags.clone(), |before| before.tags);
    name_commits(&mut state.happened, tags);
    let new = new(tags, &seen);
    let (mut settled, mut needs) = (0, Needs::default());
    for (reference, tag) in new.iter().copied().take(AT_ONCE) {
        let Some(is_known) = needs.of(is_known(transition, &state, &named(reference, tag)))? else { continue };
        if is_known || state.happened.len() < MOST {
            state.happened.extend((!is_known).then(|| GitEvent::tag(reference.clone(), tag.commit().to_owned())));
            seen.insert(reference.clone(), tag.clone());
            settled += 1;
        }
    }
    needs.none()?;
    if seen.len() > MOST_SEEN {
        seen.retain(|reference, _| tags.contains_key(reference));
    }
    let seen = SeenTags { life: Some(life.clone()), url: state.url.clone(), tags: seen };
    if before.as_ref() != Some(&seen) {
        remember(transition, repository, seen);
    }
    transition.records.repositories.put(repository, Some(state))?;
    Ok(settled < new.len())
}

/// The tags that were not seen where they are, by version.
fn new<'a>(tags: &'a Tags, seen: &Tags) -> Vec<(&'a String, &'a Tag)> {
    let mut new: Vec<_> = tags.iter().filter(|(reference, tag)| seen.get(*reference) != Some(tag)).collect();
    new.sort_by_cached_key(|(reference, _)| version(reference));
    new
}

/// What a name is sorted by so that `v1.10` comes after `v1.9`: its parts, of which numbers count by their size.
fn version(name: &str) -> Vec<(usize, Vec<u8>)> {
    let is_digit = u8::is_ascii_digit;
    let parts = name.as_bytes().chunk_by(|one, next| is_digit(one) == is_digit(next));
    let part = |part: &[u8]| match part.first().is_some_and(is_digit) {
        true => {
            let digits: Vec<u8> = part.iter().copied().skip_while(|digit| *digit == b'0').collect();
            (digits.len() + 1, digits)
        }
        false => (0, part.to_vec()),
    };
    parts.map(part).collect()
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
