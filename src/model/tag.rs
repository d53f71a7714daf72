//! The tags of a repository, and which of them were seen.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ids::Incarnation;

/// What the refs of all tags begin with.
pub const TAGS: &str = "refs/tags/";

/// A tag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tag {
    /// The object that it names. Of an annotated tag that is not the commit.
    pub object: String,
    /// What an annotated tag leads to in the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// Tags by their refs in full.
pub type Tags = BTreeMap<String, Tag>;

/// The tags that a repository had when they were compared last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenTags {
    /// In which life of the store; what another has seen says nothing of what is new now. Nothing: nobody waits for tags.
    pub life: Option<Incarnation>,
    /// Where the repository was, without credentials: elsewhere it may have any others.
    #[serde(default)]
    pub url: String,
    /// They, and some that were deleted since: one that comes back where it was is not new.
    pub tags: Tags,
}

impl Tag {
    /// One that names a commit itself.
    pub fn of(object: impl Into<String>) -> Self {
        Self { object: object.into(), target: None }
    }

    /// The commit, where it leads to one.
    pub fn commit(&self) -> &str {
        self.target.as_deref().unwrap_or(&self.object)
    }

    /// Whether somebody who says that it is at `id` means where it is: some hosts name the one, some the other.
    pub fn is_at(&self, id: &str) -> bool {
        id == self.object || id == self.commit()
    }
}
