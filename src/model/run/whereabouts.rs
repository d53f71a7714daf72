//! Where a sequence run is.

use std::time::Duration;

use super::{SequenceRun, SequenceState, TaskRecord};
use crate::model::shipyard::DEPLOYMENT_TASK;
use crate::model::time::Timestamp;

impl SequenceRun {
    /// The task that it is at, or that comes after its pause.
    pub fn task(&self) -> Option<&TaskRecord> {
        match self.state {
            SequenceState::Running { task } | SequenceState::Ending { task, .. } => self.tasks.get(task),
            SequenceState::Queued | SequenceState::Ended => None,
        }
    }

    /// Whether its deployment has begun, or was begun.
    pub fn deployed(&self) -> bool {
        self.tasks.iter().any(|task| task.name == DEPLOYMENT_TASK && task.started_at.is_some())
    }

    /// Until when it pauses before a task.
    pub fn pauses_until(&self) -> Option<Timestamp> {
        let SequenceState::Running { task: index } = self.state else { return None };
        let pause = Duration::from_millis(self.procedure.sequence.tasks.get(index)?.triggered_after_ms);
        let since = match index.checked_sub(1) {
            Some(before) => self.tasks.get(before)?.ended_at,
            None => self.started_at,
        };
        let waits = self.tasks.get(index)?.started_at.is_none();
        since.filter(|_| waits).map(|since| since + pause)
    }

    /// Where it is, for people.
    pub fn whereabouts(&self) -> String {
        let what = format!("{} of {}", self.sequence(), self.commit.short());
        match self.task() {
            Some(task) if task.started_at.is_none() => format!("{what} before `{}`", task.step),
            Some(task) => format!("{what} at `{}`", task.step),
            None => what,
        }
    }
}
