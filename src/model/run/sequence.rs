//! The run of a sequence.

use std::collections::BTreeSet;
use std::iter;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{TaskLimits, TaskRecord};
use crate::model::by_digest::ByDigest;
use crate::model::hold::Hold;
use crate::model::ids::{CommitId, Destination, Digest, PlanId, RepositoryName, RunId, ServiceKey, ServiceName};
use crate::model::object::Kind;
use crate::model::outcome::Outcome;
use crate::model::plan::Change;
use crate::model::project::Procedure;
use crate::model::rollback::RollbackGroup;
use crate::model::shipyard::QueuePolicy;
use crate::model::time::Timestamp;

/// A sequence of a stage, run for one service on one revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequenceRun {
    /// Its identity, a ULID: later ones sort after earlier ones.
    pub id: RunId,
    /// What it holds the slot of.
    pub service: ServiceKey,
    /// Where the stage's objects live.
    pub destination: Destination,
    /// Whose revision.
    pub repository: RepositoryName,
    /// The revision.
    pub commit: CommitId,
    /// The plan of the revision that started it; none for what a person asked for.
    pub plan: Option<PlanId>,
    /// What starts it: a push, a person, the stage before.
    pub cause: String,
    /// The person who started it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Whether a person goes back to what ran before: it comes before what is queued, and no hold keeps it.
    #[serde(default)]
    pub is_rollback: bool,
    /// The rollback of several deployment configs that it is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<RollbackGroup>,
    /// When what it brings was planned: of two revisions the newer one is later. Nothing, if a person asked for something
    /// else than what a revision declares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_at: Option<Timestamp>,
    /// Why a person started it although the stage before has not passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forced: Option<String>,
    /// 1, and more for each retry on the same revision.
    pub attempt: u32,
    /// The sequences whose ends led to it, as `<stage>.<sequence>`, the first one first: they bound how often one comes round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// The sequence as it was when planned, with how its tasks run.
    pub procedure: ByDigest<Procedure>,
    /// What it brings; nothing, if it only runs tasks.
    pub delivery: Option<Delivery>,
    /// The other services that have what it makes until then: what holds one of them holds that too.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub takes_from: BTreeSet<ServiceName>,
    /// How long tasks may take.
    #[serde(default)]
    pub limits: TaskLimits,
    /// What its runs, in all stages, have in common in events; nothing, if that follows from what started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The id of the event that started it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triggered_by: Option<String>,
    /// What else is known of that event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<TriggerEvent>,
    /// Whether its service is nothing that is declared here: executors do all of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_foreign: bool,
    /// What the event that started it leaves to its tasks, or the sequence before.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
    /// How the sequence ended that leads to it, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preceded: Option<Outcome>,
    /// Who wants it to begin no further task for now, if somebody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
    /// Where it is.
    pub state: SequenceState,
    /// One per task of the sequence.
    pub tasks: Vec<TaskRecord>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it got the slot.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// Why it waits, or how it ended, for people.
    pub message: String,
}

/// An event that started a sequence: by its source and id events are told apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerEvent {
    /// Its type.
    pub kind: String,
    /// Who told it.
    pub source: String,
}

/// What a sequence run brings to a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// Everything that the service declares, as a digest.
    pub content: Digest,
    /// What the deployment task does.
    pub changes: Vec<Change>,
    /// How many deployment configs the service declares, if whoever made it knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configs: Option<u32>,
}

/// Where a sequence run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SequenceState {
    /// Waits for its slot.
    Queued,
    /// The task at this index is under way.
    Running {
        /// Index into `tasks`.
        task: usize,
    },
    /// It has let others have its slot, and waits for it again.
    Returning {
        /// The task that it goes on with, as an index into `tasks`.
        task: usize,
    },
    /// It is to end, and waits for what it started.
    Ending {
        /// Index into `tasks`.
        task: usize,
        /// How it will have ended.
        outcome: Outcome,
    },
    /// Nothing follows.
    Ended,
}

impl SequenceRun {
    /// A queued run without identity: what it brings, why, and for whom is still to be said.
    pub fn draft(
        service: ServiceKey,
        destination: Destination,
        (repository, commit): (RepositoryName, CommitId),
        procedure: ByDigest<Procedure>,
    ) -> Self {
        Self {
            id: RunId::new(""),
            service,
            destination,
            repository,
            commit,
            plan: None,
            cause: String::new(),
            by: None,
            is_rollback: false,
            group: None,
            planned_at: None,
            forced: None,
            attempt: 0,
            after: Vec::new(),
            procedure,
            delivery: None,
            takes_from: BTreeSet::new(),
            limits: TaskLimits::default(),
            context: None,
            triggered_by: None,
            trigger: None,
            is_foreign: false,
            data: Value::Null,
            preceded: None,
            paused: None,
            state: SequenceState::Queued,
            tasks: Vec::new(),
            created_at: Timestamp::default(),
            started_at: None,
            ended_at: None,
            outcome: None,
            message: String::new(),
        }
    }

    /// Its sequence's name.
    pub fn sequence(&self) -> &str {
        &self.procedure.sequence.name
    }

    /// The name of its sequence, if it brings nothing and only runs tasks.
    pub fn only_tasks(&self) -> Option<&str> {
        self.delivery.is_none().then(|| self.sequence())
    }

    /// Its sequence as events name it: `<stage>.<sequence>`.
    pub fn event_name(&self) -> String {
        format!("{}.{}", self.service.stage, self.sequence())
    }

    /// What its deployment task does; nothing, if it brings nothing.
    pub fn changes(&self) -> &[Change] {
        self.delivery.as_ref().map_or(&[], |delivery| &delivery.changes)
    }

    /// Whether it changes this deployment config.
    pub fn brings(&self, config: &str) -> bool {
        self.changes().iter().any(|change| change.key.kind == Kind::DeploymentConfig && change.key.name == config)
    }

    /// Whether a hold keeps it from having its turn. A rollback passes every hold.
    pub fn is_held_by(&self, hold: &Hold) -> bool {
        let ServiceKey { project, stage, service } = &self.service;
        let mut services = iter::once(service).chain(&self.takes_from);
        let covers = |service| hold.scope.covers_context(self.context.as_ref(), project, stage, service);
        !self.is_rollback && services.any(covers)
    }

    /// Whether a hold pauses it, with all that has its context or is in its stage.
    pub fn is_paused_by(&self, hold: &Hold) -> bool {
        hold.pauses_tasks() && self.is_held_by(hold)
    }

    /// Whether its sequence says that it goes to its end, whatever comes after it.
    pub fn has_its_turn(&self) -> bool {
        self.procedure.sequence.queue == Some(QueuePolicy::All)
    }

    /// Whether a person asked for what it delivers, and no revision brings it.
    pub fn is_by_hand(&self) -> bool {
        self.delivery.is_some() && self.plan.is_none()
    }

    /// What a revision brings by it: the content; nothing, if it brings nothing or a person asked for it.
    pub fn planned_content(&self) -> Option<&Digest> {
        self.delivery.as_ref().filter(|_| self.plan.is_some()).map(|delivery| &delivery.content)
    }
}
