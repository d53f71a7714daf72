//! What is stored. The maps share what they hold, so that a copy of all of it is one of a few pointers: a transaction
//! works on a copy, which takes the place of the original only if it holds.

use std::sync::Arc;

use rpds::RedBlackTreeMapSync as Map;

use crate::model::commit_status::Posted;
use crate::model::hold::Hold;
use crate::model::ids::{
    CommitId, ConfigKey, Digest, HoldId, PlanId, ProjectName, RepositoryName, RunId, ServiceKey, StageName, WriterName,
};
use crate::model::object::ObjectKey;
use crate::model::plan::Plan;
use crate::model::run::Run;
use crate::model::state::{ConfigState, ObjectState, RepositoryState, RevisionState, Versioned};
use crate::model::time::Timestamp;
use crate::store::{EventRow, OutboxId, OutboxRow};

/// A record with its version.
pub(super) type Row<T> = Arc<Versioned<T>>;
/// Where an object stands.
pub(super) type Place = (ProjectName, StageName, ObjectKey);
/// The order in which runs are listed: when they were created, then in which order they came.
pub(super) type RunOrder = (Timestamp, i64);

/// An entry of a writer's ledger: a context of a commit.
pub(super) type Entry = (RepositoryName, WriterName, CommitId, String);

/// Everything that is stored.
#[derive(Clone, Debug, Default)]
pub(super) struct Tables {
    /// The last number that was given to a row; none is given twice.
    pub(super) number: i64,
    pub(super) runs: Map<RunId, (RunOrder, Row<Run>)>,
    pub(super) runs_in_order: Map<RunOrder, RunId>,
    pub(super) open_runs: Map<RunOrder, RunId>,
    pub(super) events: Map<i64, Arc<EventRow>>,
    pub(super) outbox: Map<OutboxId, Arc<OutboxRow>>,
    /// The row of each run and key.
    pub(super) asked: Map<(RunId, String), OutboxId>,
    pub(super) configs: Map<ConfigKey, Row<ConfigState>>,
    pub(super) objects: Map<Place, Row<ObjectState>>,
    pub(super) repositories: Map<RepositoryName, Row<RepositoryState>>,
    pub(super) revisions: Map<(RepositoryName, CommitId), (i64, Arc<RevisionState>)>,
    pub(super) plans: Map<PlanId, Arc<Plan>>,
    pub(super) passed: Map<(ServiceKey, Digest), (CommitId, Timestamp)>,
    pub(super) holds: Map<HoldId, Arc<Hold>>,
    pub(super) posted: Map<Entry, (Timestamp, Arc<Posted>)>,
    pub(super) deliveries: Map<(RepositoryName, String), Timestamp>,
}

impl Tables {
    /// A number for a new row.
    pub(super) fn next_number(&mut self) -> i64 {
        self.number += 1;
        self.number
    }

    /// The open runs, oldest first.
    pub(super) fn open_runs(&self) -> impl Iterator<Item = &Row<Run>> {
        self.open_runs.values().filter_map(|id| self.runs.get(id)).map(|(_, run)| run)
    }
}
