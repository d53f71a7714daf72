//! What a task says that has no effect: that depends on who does it.

use crate::model::shipyard::Task;

/// A key without effect, and what has that effect instead.
pub(super) type Idle = (&'static str, &'static str);

const BY_EXECUTORS: &str = "with `deploymentstrategy: user_managed` executors deploy";
const OF_DEPLOYMENTS: &str =
    "strategies of deployment configs have `timeoutSeconds` and `activeDeadlineSeconds`, and the sequence a `timeout`";
const OF_APPROVALS: &str = "`timeout` says until when somebody has to decide";
const OF_EVALUATIONS: &str = "`timeout` says for how long it may measure";

/// Where launchway deploys.
pub(super) const OF_DEPLOYMENT: [Idle; 5] = [
    ("executors", BY_EXECUTORS),
    ("heartbeat", BY_EXECUTORS),
    ("timeout", OF_DEPLOYMENTS),
    ("startTimeout", OF_DEPLOYMENTS),
    ("retries", "hooks have `failurePolicy: Retry`, and `launchway rollout retry` tries a version again"),
];

/// Where launchway goes back.
pub(super) const OF_ROLLBACK: [Idle; 4] = [
    ("heartbeat", "where the task names `executors`, they go back"),
    ("timeout", OF_DEPLOYMENTS),
    ("startTimeout", OF_DEPLOYMENTS),
    ("retries", "`launchway rerun` tries it again"),
];

/// Where people decide.
pub(super) const OF_APPROVAL: [Idle; 3] = [
    ("heartbeat", OF_APPROVALS),
    ("startTimeout", OF_APPROVALS),
    ("retries", "`launchway rerun` has people asked again"),
];

/// Where launchway judges objectives.
pub(super) const OF_EVALUATION: [Idle; 3] = [
    ("executors", "without `objectives` executors evaluate"),
    ("heartbeat", OF_EVALUATIONS),
    ("startTimeout", OF_EVALUATIONS),
];

/// Where a pod does it, as a `Task` object says.
pub(super) const OF_POD: [Idle; 3] = [
    ("executors", "without the Task object executors do it"),
    ("heartbeat", "`timeout` says how long its pod may run"),
    ("startTimeout", "`sequences.taskStartTimeout` of the daemon's configuration says by when its pod has to run"),
];

/// Those that a task says.
pub(super) fn said<'a>(task: &Task, keys: &'a [Idle]) -> impl Iterator<Item = &'a Idle> {
    keys.iter().filter(|(key, _)| match *key {
        "executors" => !task.executors.is_empty(),
        "heartbeat" => task.heartbeat_ms.is_some(),
        "timeout" => task.timeout_ms.is_some(),
        "startTimeout" => task.start_timeout_ms.is_some(),
        _ => task.retries > 0,
    })
}
