//! What merging a pull request would do, as its host was told.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ids::{CommitId, Digest};

/// How many open pull requests of a repository are planned at a time, the newest ones.
pub const MOST: usize = 50;

/// A pull request that is open, as its host lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenPullRequest {
    /// Its number in the repository.
    pub number: u64,
    /// What it brings; Bitbucket Cloud lists the first digits of its id alone.
    pub head: CommitId,
    /// The branch that this is on, in whichever repository.
    pub branch: String,
    /// Whether it may be of somebody who cannot push to the repository: from another one, as a rule.
    pub is_fork: bool,
    /// Where the watched repository has it, such as `refs/pull/7/head`; nothing, where another one has it alone.
    pub reference: Option<String>,
}

/// What was told of a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// Its number.
    pub number: u64,
    /// What it brings.
    pub head: CommitId,
    /// The head of the watched branch that it was merged into.
    pub base: CommitId,
    /// The identity of what merging it would do, whatever the revision is called; nothing, if it has no plan.
    pub plan: Option<Digest>,
    /// The digest of what was told; nothing, if there was nothing to tell.
    pub told: Option<Digest>,
    /// The comment that tells it.
    pub comment: Option<u64>,
    /// The digest of what was told of its environment, if anything was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Digest>,
}

impl Preview {
    /// Whether it is what there is to tell of a pull request that would be merged into `base`, and of its environment.
    pub fn is_of(&self, pull: &OpenPullRequest, base: &CommitId, environment: Option<&Digest>) -> bool {
        self.number == pull.number
            && self.head.is_named_by(Some(&pull.head))
            && &self.base == base
            && self.environment.as_ref() == environment
    }
}

/// Those of the open pull requests that need something new written, newest first. `environments` are digests of what there is
/// to tell of theirs.
pub fn due<'a>(
    open: &'a [OpenPullRequest],
    base: &CommitId,
    environments: &BTreeMap<u64, Digest>,
    known: &[Preview],
) -> Vec<&'a OpenPullRequest> {
    let is_told =
        |pull: &OpenPullRequest| known.iter().any(|known| known.is_of(pull, base, environments.get(&pull.number)));
    let mut due: Vec<_> = open.iter().filter(|pull| !is_told(pull)).collect();
    due.sort_by_key(|pull| std::cmp::Reverse(pull.number));
    due.truncate(MOST);
    due
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pull(number: u64, head: &str) -> OpenPullRequest {
        let reference = Some(format!("refs/pull/{number}/head"));
        OpenPullRequest { number, head: head.into(), branch: "topic".to_owned(), is_fork: false, reference }
    }

    fn preview(number: u64, head: &str, base: &str) -> Preview {
        Preview {
            number,
            head: head.into(),
            base: base.into(),
            plan: None,
            told: None,
            comment: None,
            environment: None,
        }
    }

    #[test]
    fn a_new_head_or_base_is_told_once() {
        let known = [preview(1, "aaaaaaaa", "base"), preview(2, "bbbbbbbb", "base"), preview(3, "cccc", "older")];
        let open = [pull(1, "aaaa"), pull(2, "new!"), pull(3, "cccc"), pull(4, "dddd")];
        let numbers = |base: &str| -> Vec<u64> {
            due(&open, &CommitId::from(base), &BTreeMap::new(), &known).iter().map(|pull| pull.number).collect()
        };
        assert_eq!(numbers("base"), [4, 3, 2]);
        assert_eq!(numbers("next"), [4, 3, 2, 1]);
        let news = BTreeMap::from([(1, Digest::from("sha256:1"))]);
        let due = due(&open, &CommitId::from("base"), &news, &known);
        assert_eq!(due.iter().map(|pull| pull.number).collect::<Vec<_>>(), [4, 3, 2, 1]);
    }

    #[test]
    fn only_the_newest_are_looked_at() {
        let open: Vec<_> = (1..=60).map(|number| pull(number, "a")).collect();
        let due = due(&open, &CommitId::from("base"), &BTreeMap::new(), &[]);
        assert_eq!((due.len(), due[0].number), (MOST, 60));
    }
}
