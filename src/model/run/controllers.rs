//! Several replication controllers under one deployment: that of their deployment config leads, theirs follow.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{DeploymentRun, DeploymentStep};
use crate::model::ids::{ConfigKey, RunId};

/// The replication controllers that a deployment deploys beside its own pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Controllers {
    /// All that belong to its version, by name: the others as they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub all: Vec<Controlled>,
    /// Those that go once it is complete, because the version that comes back did not have them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub go: Vec<String>,
    /// The last step that the leading deployment has done itself, and in which it waits for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_at: Option<DeploymentStep>,
}

/// A replication controller of a deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Controlled {
    /// Its name.
    pub name: String,
    /// Its version that belongs to the deployment.
    pub version: u32,
    /// Whether this deployment brings that version: then it has a deployment of its own, which follows.
    pub is_new: bool,
    /// The last step of the leading deployment that it has done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached: Option<DeploymentStep>,
    /// Whether its deployment has ended by itself, and follows no more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_left: bool,
}

/// The deployment that leads one of a replication controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Leader {
    /// Which.
    pub run: RunId,
    /// How long a rollout may stand still, in seconds: as its strategy says.
    pub timeout_seconds: u64,
    /// The last step that it was told to be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<DeploymentStep>,
}

impl Controllers {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Those whose deployments follow.
    pub fn following(&self) -> impl Iterator<Item = &Controlled> {
        self.all.iter().filter(|controlled| controlled.is_new && !controlled.has_left)
    }
}

impl DeploymentRun {
    /// How long a rollout may stand still.
    pub fn timeout(&self) -> Duration {
        let of_leader = self.led_by.as_ref().map(|leader| Duration::from_secs(leader.timeout_seconds));
        of_leader.unwrap_or_else(|| self.spec.strategy.timeout())
    }

    /// A replication controller that it deploys.
    pub fn controller(&self, name: &str) -> ConfigKey {
        ConfigKey { name: name.to_owned(), ..self.config.clone() }
    }

    /// The deployment of a replication controller's version.
    pub fn deployment_of(&self, controlled: &Controlled) -> RunId {
        self.controller(&controlled.name).deployment(controlled.version)
    }
}
