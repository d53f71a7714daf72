//! A rollback that is proposed as a pull request: Git is to say again what ran before.

use serde::{Deserialize, Serialize};

use super::ids::{CommitId, ConfigKey, Digest};
use super::time::Timestamp;

/// How many proposals a repository remembers: those that are over go first.
const MOST: usize = 20;

/// One incident, and what is proposed about it: there is never a second proposal for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Proposal {
    /// The branch that has it, without `refs/heads/`; its identity in the repository.
    pub branch: String,
    /// What goes back.
    pub members: Vec<Proposed>,
    /// What failed and why, for people; may be several lines.
    pub cause: String,
    /// Who asked; nobody, if a failure did.
    pub by: Option<String>,
    /// Why, in that person's words.
    pub notes: String,
    /// When.
    pub asked_at: Timestamp,
    /// What became of it.
    pub state: ProposalState,
    /// The head that it was made for the last time.
    pub base: Option<CommitId>,
    /// The commit that was pushed to the branch; nothing, once it is no longer ours to delete.
    pub pushed: Option<CommitId>,
    /// The pull request, where the host has those.
    pub pull_request: Option<PullRequestLink>,
    /// The digest of what the host was told of it.
    pub told: Option<Digest>,
    /// What keeps it, for people; empty if nothing does.
    pub problem: String,
}

/// A deployment config that is to go back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Proposed {
    /// Which.
    pub config: ConfigKey,
    /// The version whose files come back.
    pub to: u32,
    /// What Git says instead.
    pub bad: Digest,
    /// What it is to say.
    pub good: Digest,
}

impl Proposed {
    /// Of what Git is to say what instead of what; of which version that is may change.
    pub fn says(&self) -> (&ConfigKey, &Digest, &Digest) {
        (&self.config, &self.bad, &self.good)
    }
}

/// A pull request on its host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequestLink {
    /// Its number in the repository.
    pub number: u64,
    /// Its page.
    pub url: String,
}

/// What became of a proposal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "is")]
pub enum ProposalState {
    /// It is to be made.
    Asked,
    /// It is there, and waits for a person.
    Open,
    /// It cannot be made on this head: `problem` says why and what to do.
    Refused,
    /// It was merged; the branch that is watched was not read since.
    Merged,
    /// It was closed without being merged: what it was about is as it was.
    Closed,
    /// Git says again what is to run, since this revision.
    Restored {
        /// The revision.
        commit: CommitId,
    },
    /// Git says something else than what failed, since this revision.
    Overtaken {
        /// The revision.
        commit: CommitId,
    },
}

impl ProposalState {
    /// Its word.
    pub fn as_str(&self) -> &'static str {
        match self {
            ProposalState::Asked => "asked",
            ProposalState::Open => "open",
            ProposalState::Refused => "refused",
            ProposalState::Merged => "merged",
            ProposalState::Closed => "closed",
            ProposalState::Restored { .. } => "restored",
            ProposalState::Overtaken { .. } => "overtaken",
        }
    }
}

impl Proposal {
    /// Whether nothing more comes of it.
    pub fn is_over(&self) -> bool {
        matches!(self.state, ProposalState::Restored { .. } | ProposalState::Overtaken { .. })
    }

    /// Whether nothing is left of it to be closed or deleted.
    pub fn is_cleared(&self) -> bool {
        self.is_over() && self.pushed.is_none()
    }

    /// Whether there is something to do or to hear about it, given the head that is watched.
    pub fn wants_attention(&self, head: Option<&CommitId>) -> bool {
        match self.state {
            ProposalState::Asked => true,
            ProposalState::Open => self.pull_request.is_some() || self.base.as_ref() != head,
            ProposalState::Refused => self.base.as_ref() != head,
            ProposalState::Closed => self.pull_request.is_some(), // it may be opened again
            ProposalState::Merged => false,
            ProposalState::Restored { .. } | ProposalState::Overtaken { .. } => !self.is_cleared(),
        }
    }

    /// Whether it is about a deployment config.
    pub fn concerns(&self, config: &ConfigKey) -> bool {
        self.members.iter().any(|member| &member.config == config)
    }

    /// What it is about, for people: `rollback of web to version 3 in dev`.
    pub fn what(&self) -> String {
        let parts = self.members.iter().map(|member| format!("{} to version {}", member.config.name, member.to));
        let stage = self.members.first().map(|member| member.config.stage.to_string()).unwrap_or_default();
        format!("rollback of {} in {stage}", parts.collect::<Vec<_>>().join(" and "))
    }

    /// What there is to say of it, for people.
    pub fn remark(&self) -> String {
        let (what, place) = (self.what(), self.place());
        let told = match &self.state {
            ProposalState::Asked => format!("{what} is about to be proposed on branch `{}`", self.branch),
            ProposalState::Open if self.pull_request.is_some() => format!("{what} is proposed: {place}"),
            ProposalState::Open => format!("{what} is proposed on {place}: merge it"),
            ProposalState::Refused => format!("{what} cannot be proposed"),
            ProposalState::Merged => format!("{what} was merged: {place}"),
            ProposalState::Closed => {
                format!("{what} was closed without being merged, and what failed is as it was: {place}")
            }
            ProposalState::Restored { commit } => format!("{what} was merged with {}: {place}", commit.short()),
            ProposalState::Overtaken { commit } => {
                let left = match (&self.pushed, self.problem.is_empty(), &self.pull_request) {
                    (None, true, Some(_)) => "is closed",
                    (None, true, None) => "is gone",
                    _ => "may be closed",
                };
                format!("{what} is not needed any more since {}, and {place} {left}", commit.short())
            }
        };
        if self.problem.is_empty() { told } else { format!("{told}: {}", self.problem) }
    }

    /// Where it is, for people.
    pub fn place(&self) -> String {
        match &self.pull_request {
            Some(link) => format!("pull request #{} ({})", link.number, link.url),
            None => format!("branch `{}`", self.branch),
        }
    }
}

/// Puts a proposal among those of a repository, in the place of the one on the same branch.
pub fn put(proposals: &mut Vec<Proposal>, proposal: Proposal) {
    proposals.retain(|other| other.branch != proposal.branch);
    proposals.push(proposal);
    while proposals.len() > MOST {
        let cleared = proposals.iter().position(Proposal::is_cleared);
        let oldest = cleared.or_else(|| proposals.iter().position(Proposal::is_over)).unwrap_or_default();
        proposals.remove(oldest);
    }
}
