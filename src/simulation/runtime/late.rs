//! Pods of tasks that take too long, which the real runtime ends.

use std::time::Duration;

use crate::model::outcome::{FailureReason, PodOutcome};
use crate::model::pod::{ObservedPod, Pod, PodPhase};
use crate::model::time::Timestamp;
use crate::simulation::runtime::PretendedRuntime;

/// The exit code of what was asked to end.
const TERMINATED: i32 = 143;

impl PretendedRuntime {
    /// When the next pod of a task has had all the time that it may take.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.state().pods.values().filter_map(|(pod, seen)| deadline(pod, seen)).min()
    }

    /// Ends the pods of tasks that have had all the time that they may take.
    pub fn end_late(&self) {
        let now = self.clock.now();
        let is_late = |(pod, seen): &&(Pod, ObservedPod)| deadline(pod, seen).is_some_and(|deadline| deadline <= now);
        let late: Vec<Pod> = self.state().pods.values().filter(is_late).map(|(pod, _)| pod.clone()).collect();
        for pod in late {
            let (code, reason) = (TERMINATED, FailureReason::DeadlineExceeded);
            let message = format!("took longer than {} s and was ended", pod.run_once_seconds.unwrap_or_default());
            self.set_phase(&pod.id, PodPhase::Ended { outcome: PodOutcome::Failed { code, reason, message } });
        }
    }
}

/// When the pod of a task that has not ended must have: nothing else ends it. Hooks and deployers are ended by their deployments.
fn deadline(pod: &Pod, seen: &ObservedPod) -> Option<Timestamp> {
    let limit = Duration::from_secs(pod.run_once_seconds?);
    (pod.tells_result && !matches!(seen.phase, PodPhase::Ended { .. })).then(|| seen.created_at + limit)
}
