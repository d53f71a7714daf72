//! What is remembered of lifecycle hooks.

use serde::{Deserialize, Serialize};

use crate::model::deployment_config::HookPoint;
use crate::model::ids::{PodName, RunId};
use crate::model::outcome::PodOutcome;
use crate::model::time::Timestamp;

/// One run of a lifecycle hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookRecord {
    /// Which hook.
    pub point: HookPoint,
    /// The sequence run that it was run for: each attempt at a deployment is another one's.
    pub by: RunId,
    /// Its pod.
    pub pod: PodName,
    /// When it was asked for.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How it ended.
    pub outcome: Option<PodOutcome>,
}
