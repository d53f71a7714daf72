//! What is remembered of a repository.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::model::environment::{Approval, Environment, EnvironmentSettings};
use crate::model::git_event::GitEvent;
use crate::model::ids::{CommitId, Incarnation, Namespace, ProjectName, RepositoryName, WriterName};
use crate::model::preview::Preview;
use crate::model::project::OnFailure;
use crate::model::proposal::Proposal;
use crate::model::time::Timestamp;
use crate::model::unique_name::UniqueName;

/// A watched repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryState {
    /// Its name.
    pub name: RepositoryName,
    /// Where it is, without credentials.
    pub url: String,
    /// The branch that is watched.
    pub branch: String,
    /// What its last readable revision declares itself to be.
    pub project: Option<ProjectName>,
    /// Where its stages lived in that revision.
    #[serde(default)]
    pub namespaces: BTreeSet<Namespace>,
    /// The head that was last applied or found to change nothing; what a new head is compared with.
    pub applied: Option<CommitId>,
    /// The head that was last synced, whatever came of it.
    pub seen: Option<CommitId>,
    /// When it was last synced.
    pub synced_at: Option<Timestamp>,
    /// When its newest plan was made, or right after the one before where the clock went back since.
    #[serde(default)]
    pub planned_at: Option<Timestamp>,
    /// What is wrong with it, for people.
    pub problem: Option<String>,
    /// Why a writer's statuses do not reach its commits, for people; syncs do not clear it.
    #[serde(default)]
    pub status_problems: BTreeMap<WriterName, String>,
    /// A revision that may replace history although it is no descendant.
    pub accepted_rewrite: Option<CommitId>,
    /// The name for which the newest head was refused, because another has it or something would be left behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_name: Option<UniqueName>,
    /// A revision that may delete more than the rule allows.
    pub allowed_prune: Option<CommitId>,
    /// Whether a person took it down; nothing starts until it is brought up again.
    pub down: bool,
    /// Who took it down, the last time.
    #[serde(default)]
    pub down_by: String,
    /// Who brought it up again, the last time.
    #[serde(default)]
    pub up_by: String,
    /// Counts what has changed that a head is compared with beside its files and the records of its services, such as what a person
    /// has started. A head that is compared meanwhile is compared again.
    #[serde(default)]
    pub generation: u64,
    /// What its last readable revision says of deployments that fail.
    #[serde(default, skip_serializing_if = "OnFailure::is_automatic")]
    pub on_failure: OnFailure,
    /// Rollbacks that are or were proposed as pull requests, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proposals: Vec<Proposal>,
    /// What was told of its open pull requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub previews: Vec<Preview>,
    /// What its last readable revision says of environments of pull requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environments_wanted: Option<EnvironmentSettings>,
    /// What becomes of the environments of its open pull requests, and of those that are not gone yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environments: Vec<Environment>,
    /// The life of the store in which it was last known which pull requests are open, or that nobody asks for environments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pulls_known: Option<Incarnation>,
    /// What people have approved of what forks bring.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<Approval>,
    /// What has happened in it and is not told to sequences yet, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub happened: Vec<GitEvent>,
    /// Up to which commit was read what signed commits say of what waits for approval, where that counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvals_read: Option<CommitId>,
}

impl RepositoryState {
    /// A repository that was not synced yet.
    pub fn new(name: RepositoryName, url: impl Into<String>, branch: impl Into<String>) -> Self {
        Self {
            name,
            url: url.into(),
            branch: branch.into(),
            project: None,
            namespaces: BTreeSet::new(),
            applied: None,
            seen: None,
            synced_at: None,
            planned_at: None,
            problem: None,
            status_problems: BTreeMap::new(),
            accepted_rewrite: None,
            refused_name: None,
            allowed_prune: None,
            down: false,
            down_by: String::new(),
            up_by: String::new(),
            generation: 0,
            on_failure: OnFailure::Automatic,
            proposals: Vec::new(),
            previews: Vec::new(),
            environments_wanted: None,
            environments: Vec::new(),
            pulls_known: None,
            approvals: Vec::new(),
            happened: Vec::new(),
            approvals_read: None,
        }
    }
}

impl RepositoryState {
    /// The next sync plans the head again, also one that has begun.
    pub fn plan_again(&mut self) {
        self.seen = None;
        self.generation += 1;
    }

    /// Whether the head that was synced last is what is applied: it was neither refused nor broken.
    pub fn has_applied_its_head(&self) -> bool {
        self.seen.is_some() && self.seen == self.applied
    }

    /// Why statuses do not reach its commits, if they do not.
    pub fn status_problem(&self) -> Option<String> {
        let problems = self.status_problems.iter().map(|(writer, problem)| format!("{writer}: {problem}"));
        (!self.status_problems.is_empty()).then(|| problems.collect::<Vec<_>>().join("; "))
    }

    /// Remembers what keeps a writer from writing, or that nothing does; says whether that is news.
    pub fn set_status_problem(&mut self, writer: &WriterName, problem: Option<&String>) -> bool {
        let news = self.status_problems.get(writer) != problem;
        match problem {
            Some(problem) => self.status_problems.insert(writer.clone(), problem.clone()),
            None => self.status_problems.remove(writer),
        };
        news
    }
}
