//! What a person asks for who goes back to what ran before. Source: OpenShift's proposal "Deployments", section
//! "Rollbacks".

use serde::{Deserialize, Serialize};

use super::ids::{CommitId, ConfigKey, Digest, RepositoryName, RunId};
use super::run::{DeploymentRun, Phase};
use super::state::Version;
use super::time::Timestamp;

/// One deployment config is to go back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rollback {
    /// Which.
    pub config: ConfigKey,
    /// To what.
    pub to: RollbackTo,
    /// What of it comes back.
    pub parts: RollbackParts,
    /// Why, for people; may be empty.
    pub notes: String,
    /// Whether it stays as it is where nothing of it was deployed then: all of a stage goes back.
    pub may_be_absent: bool,
}

/// What is gone back to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RollbackTo {
    /// The last complete version before the one that serves, or what serves where a later one was attempted.
    LastComplete,
    /// This version.
    Version(u32),
    /// What was deployed when this revision had been applied.
    Revision(CommitId),
}

/// What of an earlier version comes back. Source: the proposal's table of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RollbackParts {
    /// The labels of the deployment config (`config` in the proposal).
    pub labels: bool,
    /// The strategy with its hooks (`config` in the proposal, unless it is left out).
    pub strategy: bool,
    /// The template of the pods (`application` in the proposal).
    pub template: bool,
    /// Their number and their selector (`application` in the proposal).
    pub replication: bool,
}

impl RollbackParts {
    /// Everything that a rollback can bring back.
    pub const ALL: Self = Self { labels: true, strategy: true, ..Self::APPLICATION };
    /// The proposal's "configuration rollback".
    pub const CONFIG: Self = Self { labels: true, strategy: true, ..Self::NOTHING };
    /// The proposal's "application rollback".
    pub const APPLICATION: Self = Self { template: true, replication: true, ..Self::NOTHING };

    /// Nothing.
    pub const NOTHING: Self = Self { labels: false, strategy: false, template: false, replication: false };

    /// Whether nothing would come back.
    pub fn is_nothing(self) -> bool {
        self == Self::NOTHING
    }
}

/// A version of a deployment config in its history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    /// Its number.
    pub version: u32,
    /// Whether it has served, or is a version that had and comes back.
    pub is_complete: bool,
    /// Whether it failed, as one whose `post` hook did; it may have served all the same.
    pub failed: bool,
    /// Whose revision it is.
    pub repository: RepositoryName,
    /// The revision.
    pub commit: CommitId,
    /// What was declared.
    pub content: Digest,
    /// When it was made.
    pub created_at: Timestamp,
}

impl Past {
    /// Whether it is what people go back to who do not say to which version.
    pub fn is_good(&self) -> bool {
        self.is_complete && !self.failed
    }
}

impl From<&DeploymentRun> for Past {
    fn from(run: &DeploymentRun) -> Self {
        Self {
            version: run.version,
            is_complete: run.phase == Phase::Complete || run.restored_after.is_some(),
            failed: run.failure.is_some(),
            repository: run.repository.clone(),
            commit: run.commit.clone(),
            content: run.object.digest.clone(),
            created_at: run.created_at,
        }
    }
}

/// A rollback of several deployment configs, of which a sequence run is a part: all of them go back, or none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollbackGroup {
    /// The runs of all parts, in the order of their slots.
    pub runs: Vec<RunId>,
    /// What served before of the deployment configs of this part.
    pub before: Vec<Version>,
}
