//! What a run-once pod says of how it went, beside its exit code.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a run-once pod has left in the file that `LAUNCHWAY_RESULT` names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PodResult {
    /// JSON, without the values of Secrets that the pod refers to.
    Written(Value),
    /// Something that cannot be used: what is wrong with it, for people.
    Unusable(String),
}
