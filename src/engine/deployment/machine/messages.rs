//! What is reported about a deployment's hooks and its end.

use crate::model::deployment_config::HookPoint;
use crate::model::project::OnFailure;
use crate::model::run::{DeploymentFailure, DeploymentRun};

/// A hook as a message names it.
pub(super) fn hook_name(point: HookPoint) -> String {
    match point {
        HookPoint::Analysis(_) => point.to_string(),
        HookPoint::Deployer => "the deployer".to_owned(),
        HookPoint::Pre | HookPoint::Mid | HookPoint::Post => format!("{point} hook"),
    }
}

/// How a deployment failed, and what serves now.
pub(super) fn failed_message(run: &DeploymentRun, failure: &DeploymentFailure) -> String {
    let serving = match (run.previous, run.restored_as) {
        (Some(previous), Some(version)) => format!("version {version} serves, which is version {previous} again"),
        (Some(previous), None) => format!("version {previous} serves"),
        (None, _) => "there is no version to go back to".to_owned(),
    };
    format!("version {} failed: {}; {serving}", run.version, failure.message)
}

/// How a deployment failed whose version serves on.
pub(super) fn serves_on_message(run: &DeploymentRun, failure: &DeploymentFailure) -> String {
    let why = match run.on_failure {
        OnFailure::PullRequest => "a rollback is proposed instead (rollback.onFailure: pull-request)",
        OnFailure::None | OnFailure::Automatic | OnFailure::AutomaticAndPullRequest => {
            "nothing is rolled back by itself (rollback.onFailure: none)"
        }
    };
    format!("version {} failed: {}; it serves on: {why}", run.version, failure.message)
}
