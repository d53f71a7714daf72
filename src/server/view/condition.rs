//! `Available` and `Progressing`, in the words of OpenShift's controller.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::deployment::observed::Observed;
use crate::engine::deployment::strategy;
use crate::model::deployment_config::DeploymentConfigSpec;
use crate::model::object::Kind;
use crate::model::outcome::Status;
use crate::model::run::{DeploymentFailure, DeploymentRun, Phase};
use crate::model::wanted::{Pace, Wanted};

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConditionView {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False`, or `Unknown` where no daemon runs that could tell.
    pub status: String,
    /// Upstream's word for why; absent where it has none.
    pub reason: Option<String>,
    /// Why, for people.
    #[serde(default)]
    pub message: String,
}

impl ConditionView {
    fn new(kind: &str, is_so: Option<bool>, reason: Option<&str>, message: String) -> Self {
        let status = match is_so {
            Some(true) => "True",
            Some(false) => "False",
            None => "Unknown",
        };
        Self { kind: kind.to_owned(), status: status.to_owned(), reason: reason.map(str::to_owned), message }
    }

    /// Upstream: as many pods as there are to be but for those that may be missing, and one at least; a test at rest lacks none.
    /// `observed` is what is there, if somebody can tell.
    pub(super) fn available(spec: &DeploymentConfigSpec, wanted: &Wanted, observed: Option<&Observed>) -> Self {
        let replicas = wanted.replicas;
        let Some(observed) = observed else {
            return Self::new("Available", None, None, "no daemon runs that could tell".to_owned());
        };
        if wanted.rests {
            let message = format!("all is as it is to be: a test has its {replicas} pods while it is deployed");
            return Self::new("Available", Some(true), None, message);
        }
        let pods: u32 = observed.versions.values().map(|count| count.available).sum();
        let missing = match strategy::pace(spec, replicas) {
            Pace::Rolling { max_unavailable, .. } => max_unavailable,
            Pace::Recreate => 0,
        };
        let is_so = pods > 0 && pods >= replicas.saturating_sub(missing);
        let message = format!("{pods} of {replicas} pods are available");
        Self::new("Available", Some(is_so), None, message)
    }

    /// How far a deployment is. `stalled` says why it makes no progress, if it has made none for long.
    pub(super) fn progressing(run: &DeploymentRun, stalled: Option<&str>) -> Self {
        let (subject, version) = (subject(run), run.version);
        let told = |message: String, more: &str| match more {
            "" => message,
            more => format!("{message}: {more}"),
        };
        let (is_so, reason, message) = match (&run.failure, stalled, run.phase) {
            (Some(failure), ..) if is_cancelled(failure) => {
                (false, "RolloutCancelled", told(format!("rollout of {subject} was cancelled"), &failure.message))
            }
            (Some(failure), ..) => (
                false,
                "ProgressDeadlineExceeded", // upstream's word for every failure
                told(format!("{subject} has failed progressing"), &failure.message),
            ),
            (None, Some(why), _) => {
                (false, "ProgressDeadlineExceeded", told(format!("{subject} makes no progress"), why))
            }
            (None, None, Phase::New | Phase::Pending) => {
                let created = format!("created new {subject} for version {version}");
                (true, "NewReplicationControllerCreated", told(created, &run.problem))
            }
            (None, None, Phase::Running) => {
                (true, "ReplicationControllerUpdated", told(format!("{subject} is progressing"), &run.problem))
            }
            (None, None, Phase::Complete | Phase::Failed) => {
                (true, "NewReplicationControllerAvailable", format!("{subject} successfully rolled out"))
            }
        };
        Self::new("Progressing", Some(is_so), Some(reason), message)
    }
}

fn is_cancelled(failure: &DeploymentFailure) -> bool {
    matches!(failure.outcome.status, Status::Aborted | Status::Superseded)
}

/// What upstream speaks of: what carries the version out.
fn subject(run: &DeploymentRun) -> String {
    match run.object.declared_kind() {
        Kind::Deployment => format!("deployment \"{}\"", run.config.name),
        _ => format!("replication controller \"{}-{}\"", run.config.name, run.version),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::deployment::observed::Count;
    use crate::engine::fixtures;
    use crate::model::outcome::Outcome;
    use crate::model::run::DeploymentStep;

    #[test]
    fn enough_pods_are_all_but_those_that_may_be_missing() {
        let spec = DeploymentConfigSpec::default(); // a quarter may be missing
        for (available, replicas, expected) in [(4, 4, "True"), (3, 4, "True"), (2, 4, "False"), (0, 0, "False")] {
            let count = Count { living: available, available, ..Count::default() };
            let observed = Observed { versions: [(1, count)].into(), ..Observed::default() };
            let wanted = Wanted { replicas, ..Wanted::default() };
            let condition = ConditionView::available(&spec, &wanted, Some(&observed));
            assert_eq!(condition.status, expected, "{available} of {replicas}");
        }
        let wanted = Wanted { replicas: 2, ..Wanted::default() };
        assert_eq!(ConditionView::available(&spec, &wanted, None).status, "Unknown");
        let (test, nothing) = (Wanted { rests: true, ..wanted }, Observed::default());
        assert_eq!(ConditionView::available(&spec, &test, Some(&nothing)).status, "True", "nothing is wrong");
    }

    #[test]
    fn every_end_of_a_deployment_has_upstreams_reason() {
        let parent = fixtures::deploying(fixtures::delivery("s1", "b"), 2);
        let failed = |outcome| {
            let message = "exit code 3".to_owned();
            Some(DeploymentFailure { step: DeploymentStep::Pre, outcome, message })
        };
        for (phase, failure, stalled, expected) in [
            (Phase::New, None, None, ("True", "NewReplicationControllerCreated")),
            (Phase::Pending, None, None, ("True", "NewReplicationControllerCreated")),
            (Phase::Running, None, None, ("True", "ReplicationControllerUpdated")),
            (Phase::Running, None, Some("no pod is ready"), ("False", "ProgressDeadlineExceeded")),
            (Phase::Complete, None, None, ("True", "NewReplicationControllerAvailable")),
            (Phase::Failed, failed(Outcome::FAIL), None, ("False", "ProgressDeadlineExceeded")),
            (Phase::Failed, failed(Outcome::ABORTED), None, ("False", "RolloutCancelled")),
            (Phase::Failed, failed(Outcome::SUPERSEDED), None, ("False", "RolloutCancelled")),
        ] {
            let run = DeploymentRun { failure, ..fixtures::deployment(2, "b", &parent, phase) };
            let condition = ConditionView::progressing(&run, stalled);
            let found = (condition.status.as_str(), condition.reason.as_deref().unwrap_or_default());
            assert_eq!(found, expected, "{phase:?}");
            assert_eq!(condition.message.contains("exit code 3"), run.failure.is_some(), "{}", condition.message);
        }
    }
}
