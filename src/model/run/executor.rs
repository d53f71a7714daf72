//! Who does the tasks of a sequence run.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{SequenceRun, SequenceState, TaskRecord};
use crate::model::cloud_event::Phase;
use crate::model::data::merge;
use crate::model::evaluation::{self, Objectives};
use crate::model::ids::RunId;
use crate::model::outcome::Outcome;
use crate::model::project::TaskDefinition;
use crate::model::shipyard::{APPROVAL_TASK, DEPLOYMENT_TASK, DeploymentStrategy, EVALUATION_TASK, Task};
use crate::model::time::Timestamp;

/// What does a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoneBy {
    /// launchway deploys what changed.
    Deployment,
    /// launchway deploys what served before again.
    Rollback,
    /// A run-once pod, as its `Task` object says.
    Pod,
    /// A person decides, or what came before does.
    Approval,
    /// launchway judges what is measured by the task's objectives.
    Evaluation,
    /// Programs elsewhere that hear of it over the event API.
    Executors,
}

/// The run and the place of the task that an event with this id told to be done.
pub fn triggered_by(id: &str) -> Option<(RunId, usize)> {
    let (rest, _) = id.rsplit_once('.')?;
    let (run, index) = rest.rsplit_once('.')?;
    Some((RunId::new(run), index.parse().ok()?))
}

/// One program that has taken a task, or a person who has decided about it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutorRecord {
    /// The source of its events.
    pub name: String,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// The id of the event that said so.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub started_by: String,
    /// When it has told last how far it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported_at: Option<Timestamp>,
    /// The id of the event that said so.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reported_by: String,
    /// What that said, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reported: String,
    /// When it was last heard of since, where that matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard_at: Option<Timestamp>,
    /// When it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// The id of the event that said so.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub finished_by: String,
    /// How.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// What it says, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What it leaves to the tasks that follow.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
}

impl ExecutorRecord {
    /// One of which nothing is known but its name.
    pub fn of(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Whether it is to be completed by what an executor tells; word of how it gets on needs nothing.
    pub fn lacks(&self, phase: Phase) -> bool {
        match phase {
            Phase::Started => self.started_at.is_none(),
            Phase::StatusChanged => true,
            Phase::Finished => self.finished_at.is_none(),
        }
    }

    /// Whether it is of this name, and has not ended.
    pub fn is_at_work(&self, name: &str) -> bool {
        self.name == name && self.started_at.is_some() && self.finished_at.is_none()
    }

    /// When it was heard of last, if it has begun and is not done.
    pub fn last_sign(&self) -> Option<Timestamp> {
        self.heard_at.max(self.started_at).filter(|_| self.started_at.is_some() && self.finished_at.is_none())
    }

    /// Whether it has begun and is done, in whichever order that was told.
    pub fn is_done(&self) -> bool {
        self.started_at.is_some() && self.finished_at.is_some()
    }
}

impl SequenceRun {
    /// What does the task at `index`.
    pub fn done_by(&self, index: usize) -> DoneBy {
        let Some(task) = self.declared(index) else { return DoneBy::Executors };
        let is_theirs = self.is_foreign || task.deployment_strategy() == Some(DeploymentStrategy::UserManaged);
        match task.name.as_str() {
            DEPLOYMENT_TASK if !is_theirs => DoneBy::Deployment,
            _ if self.definition(index).is_some() => DoneBy::Pod,
            _ if !self.is_foreign && task.is_built_in_rollback() && !self.is_offered(index) => DoneBy::Rollback,
            APPROVAL_TASK => DoneBy::Approval,
            EVALUATION_TASK if evaluation::are_declared(&task.properties) => DoneBy::Evaluation,
            _ => DoneBy::Executors,
        }
    }

    /// Whether the task at `index` was left to executors, as by a program of before that left them more.
    fn is_offered(&self, index: usize) -> bool {
        self.tasks.get(index).is_some_and(|task| task.offers > 0)
    }

    /// The task at `index` as the shipyard declares it.
    pub fn declared(&self, index: usize) -> Option<&Task> {
        self.procedure.sequence.tasks.get(index)
    }

    /// How the task at `index` runs, if a pod does it.
    pub fn definition(&self, index: usize) -> Option<&TaskDefinition> {
        self.procedure.definition(index)
    }

    /// What was left by the event that started it and by the first tasks, of which the newer has the last word.
    pub fn gathered(&self, tasks: usize) -> Value {
        let mut gathered = self.data.clone();
        for task in self.tasks.iter().take(tasks) {
            let mut executors: Vec<&ExecutorRecord> = task.executors.iter().collect();
            executors.sort_by_key(|executor| executor.finished_at);
            let left = executors.into_iter().filter(|executor| !executor.data.is_null());
            gathered = left.fold(gathered, |gathered, executor| merge(gathered, executor.data.clone()));
            if !task.evaluation.is_null() {
                // What was given for it was for it alone.
                let mut fields = gathered.as_object().cloned().unwrap_or_default();
                fields.insert(task.name.clone(), task.evaluation.clone());
                gathered = Value::Object(fields);
            }
        }
        gathered
    }

    /// The objectives of the task at `index`, if it has any; why they cannot be read, if they cannot.
    pub fn objectives(&self, index: usize) -> Option<Result<Objectives, String>> {
        self.declared(index).and_then(|task| Objectives::of(&task.properties))
    }

    /// Whether the task at `index` is under way: it neither pauses, nor has it ended, nor is it to be tried again.
    pub fn is_at(&self, index: usize) -> bool {
        let is_now = matches!(self.state, SequenceState::Running { task } if task == index);
        let is_open =
            |task: &TaskRecord| task.started_at.is_some() && task.ended_at.is_none() && task.again_at.is_none();
        is_now && self.tasks.get(index).is_some_and(is_open)
    }

    /// The task that executors may take or have taken, or about which a person is to decide.
    pub fn offered(&self) -> Option<(usize, &TaskRecord)> {
        let SequenceState::Running { task: index } = self.state else { return None };
        let task = self.tasks.get(index)?;
        let is_offered = matches!(self.done_by(index), DoneBy::Approval | DoneBy::Executors);
        (is_offered && self.is_at(index)).then_some((index, task))
    }

    /// Of whom something has to be heard next while the task at `index` is done, and by when; of nobody, if silence is no
    /// matter there.
    pub fn awaited_sign(&self, index: usize) -> Option<(&ExecutorRecord, Timestamp)> {
        let limit = Duration::from_millis(self.declared(index)?.heartbeat_ms?);
        let is_left_to_them = self.is_at(index) && self.done_by(index) == DoneBy::Executors;
        let executors = self.tasks.get(index).filter(|_| is_left_to_them)?.executors.iter();
        executors.filter_map(|it| Some((it, it.last_sign()? + limit))).min_by_key(|(_, due)| *due)
    }

    /// The id of the event by which the task at `index` is told to be done: each time that it is left to executors it has
    /// another one.
    pub fn triggered_id(&self, index: usize) -> String {
        self.triggered_id_of(index, self.tasks.get(index).map_or(0, |task| task.offers))
    }

    /// The same of an earlier time, counted from 1.
    pub fn triggered_id_of(&self, index: usize, offer: u32) -> String {
        format!("{}.{index}.{offer}", self.id)
    }

    /// The place of the task about which only a person decides now.
    pub fn awaits_approval(&self) -> Option<usize> {
        self.offered().map(|(index, _)| index).filter(|index| self.done_by(*index) == DoneBy::Approval)
    }

    /// The id of the event by which it asks about that.
    pub fn asks(&self) -> Option<String> {
        self.awaits_approval().map(|index| self.triggered_id(index))
    }

    /// Whether others may have its slot until it goes on: it waits for a person, or pauses before a task that lets them.
    pub fn yields_slot(&self) -> bool {
        let SequenceState::Running { task: index } = self.state else { return false };
        let pauses = self.tasks.get(index).is_some_and(|task| task.started_at.is_none());
        let lets_others = self.declared(index).is_some_and(|task| !task.holds_slot);
        self.awaits_approval().is_some() || (pauses && lets_others)
    }
}
