//! The tags of a remote.

use std::path::Path;

use git2::ObjectType;

use super::Remote;
use super::git::{self, failed};
use super::ls_refs::{Asked, list};
use crate::error::{Failure, Result};
use crate::model::tag::{TAGS, Tag, Tags};

/// So many are compared with those of before: each time all are listed.
const MOST_TAGS: usize = 20_000;
/// Longer refs are none that people give, in bytes.
const LONGEST_NAME: usize = 1_000;
/// What follows the name of an annotated tag where a server says what it leads to.
const PEELED: &str = "^{}";

/// The remote's tags. `remote.branch` plays no part.
///
/// Fails as [`super::remote_head`] does, and as `Stalled` if there are too many.
pub fn remote_tags(remote: &Remote) -> Result<Tags> {
    let tags = match remote.url.local_path() {
        Some(path) => local_tags(path)?,
        None => list(remote, Asked::Tags)?.tags,
    };
    match tags.len() {
        ..=MOST_TAGS => Ok(tags),
        _ => Err(Failure::stalled(format!("`{}` has more than {MOST_TAGS} tags", remote.url))
            .hint("no sequence hears of new ones but by a webhook; delete old ones")),
    }
}

/// Takes in what a server says of a ref; no more than shows that there are too many.
pub(super) fn add(tags: &mut Tags, name: &str, id: &str) {
    match name.strip_suffix(PEELED) {
        Some(name) => lead(tags, name, id),
        None if is_tag(name) && is_object(id) && tags.len() <= MOST_TAGS => {
            tags.insert(name.to_owned(), Tag::of(id));
        }
        None => {}
    }
}

/// Takes in where a tag leads to in the end.
pub(super) fn lead(tags: &mut Tags, name: &str, target: &str) {
    if let Some(tag) = tags.get_mut(name).filter(|_| is_object(target)) {
        tag.target = Some(target.to_owned());
    }
}

/// Names that are no UTF-8 come with replacement characters, by which they cannot be told apart.
fn is_tag(name: &str) -> bool {
    name.starts_with(TAGS)
        && name.len() <= LONGEST_NAME
        && git::is_reference_name(name)
        && !name.contains(char::REPLACEMENT_CHARACTER)
}

/// Whether this is what an object may have for an id, in the spelling of servers.
fn is_object(id: &str) -> bool {
    id.len() == 40
        && id.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
        && !id.bytes().all(|it| it == b'0')
}

fn local_tags(path: &Path) -> Result<Tags> {
    let wrong = || format!("cannot read the tags of `{}`", path.display());
    let repository = git::open_local(path)?;
    let objects = repository.odb().map_err(failed(wrong))?;
    let mut tags = Tags::new();
    for reference in repository.references_glob(&format!("{TAGS}*")).map_err(failed(wrong))? {
        let reference = reference.map_err(failed(wrong))?;
        let (Ok(name), Some(id)) = (reference.name(), reference.target()) else { continue };
        add(&mut tags, name, &id.to_string());
        // One that leads nowhere is a tag all the same.
        if objects.read_header(id).is_ok_and(|(_, kind)| kind == ObjectType::Tag)
            && let Ok(target) = reference.peel(ObjectType::Any)
        {
            lead(&mut tags, name, &target.id().to_string());
        }
    }
    Ok(tags)
}
