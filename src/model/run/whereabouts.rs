//! Where a sequence run is.

use std::time::Duration;

use super::{DeploymentRun, DeploymentStep, SequenceRun, SequenceState, TaskRecord};
use crate::model::ids::ServiceKey;
use crate::model::outcome::Outcome;
use crate::model::plan::{Change, Decision};
use crate::model::shipyard::DEPLOYMENT_TASK;
use crate::model::time::Timestamp;
use crate::model::transaction::ObjectPlace;

impl SequenceRun {
    /// The task that it is at, or that comes after its pause.
    pub fn task(&self) -> Option<&TaskRecord> {
        match self.state {
            SequenceState::Running { task }
            | SequenceState::Returning { task }
            | SequenceState::Ending { task, .. } => self.tasks.get(task),
            SequenceState::Queued | SequenceState::Ended => None,
        }
    }

    /// Whether its deployment has begun, or was begun.
    pub fn deployed(&self) -> bool {
        self.tasks.iter().any(|task| task.name == DEPLOYMENT_TASK && task.started_at.is_some())
    }

    /// Whether its deployment has applied `Service` objects, and no pods were brought up that waited for these to listen: it
    /// ends once they do.
    pub fn awaits_services(&self) -> bool {
        let SequenceState::Running { task } = self.state else { return false };
        self.tasks.get(task).is_some_and(|task| self.only_applies(task) && task.ended_at.is_none())
    }

    /// Whether it was stopped while it waited for that.
    pub fn stopped_awaiting_services(&self) -> bool {
        let stopped = |task: &TaskRecord| task.outcome == Some(Outcome::SUPERSEDED);
        self.outcome == Some(Outcome::SUPERSEDED) && self.tasks.iter().any(|it| self.only_applies(it) && stopped(it))
    }

    fn only_applies(&self, task: &TaskRecord) -> bool {
        let has_begun = task.name == DEPLOYMENT_TASK && task.started_at.is_some();
        let deploys_nothing = task.deployments.iter().all(|deployment| deployment.served_already);
        has_begun && deploys_nothing && self.changes().iter().any(Change::leaves_service)
    }

    /// Where the `Service` objects are that it leaves behind.
    pub fn services(&self) -> impl Iterator<Item = ObjectPlace> {
        let ServiceKey { project, stage, .. } = &self.service;
        let place =
            |change: &Change| ObjectPlace { project: project.clone(), stage: stage.clone(), key: change.key.clone() };
        self.changes().iter().filter(|change| change.leaves_service()).map(place)
    }

    /// Where the `Service` objects are that it changes.
    pub fn changed_services(&self) -> impl Iterator<Item = ObjectPlace> {
        let changes = |place: &ObjectPlace| {
            self.changes().iter().any(|change| change.key == place.key && change.decision != Decision::None)
        };
        self.services().filter(move |place| changes(place))
    }

    /// Until when it pauses before a task.
    pub fn pauses_until(&self) -> Option<Timestamp> {
        let SequenceState::Running { task: index } = self.state else { return None };
        let pause = Duration::from_millis(self.procedure.sequence.tasks.get(index)?.triggered_after_ms);
        let before = self.tasks.get(..index)?.iter().rev().find_map(|task| task.ended_at);
        let since = before.or(self.started_at);
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

impl DeploymentRun {
    /// Whether it goes on only once the `Service` objects listen that lead to its pods: nobody reaches what serves before.
    /// What is brought up before a hook in the middle is reached by nobody anyway, and going back waits for nothing, whoever
    /// goes back.
    pub fn awaits_services(&self) -> bool {
        self.step == DeploymentStep::Rollout && !self.is_rollback
    }
}
