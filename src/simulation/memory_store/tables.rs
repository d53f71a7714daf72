//! What is stored. The maps share what they hold, so that a copy of all of it is one of a few pointers: a transaction
//! works on a copy, which takes the place of the original only if it holds.

use std::sync::Arc;

use rpds::RedBlackTreeMapSync as Map;

use crate::model::commit_status::Posted;
use crate::model::hold::ProjectHolds;
use crate::model::ids::{
    CommitId, ConfigKey, PlanId, ProjectName, RepositoryName, RunId, ServiceKey, ServiceName, WriterName,
};
use crate::model::plan::Plan;
use crate::model::run::Run;
use crate::model::slot::{PassedKey, PassedState, SlotState};
use crate::model::state::{ConfigState, ObjectState, RepositoryState, RevisionState, Versioned};
use crate::model::tag::SeenTags;
use crate::model::time::Timestamp;
use crate::model::transaction::ObjectPlace;
use crate::model::unique_name::{NameOwner, UniqueName};
use crate::model::webhook_call::WebhookCalls;
use crate::store::{EventRow, OutboxId, OutboxRow, RecordKey};

/// A record with its version.
pub(super) type Row<T> = Arc<Versioned<T>>;
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
    /// When each run came or changed last, as a number that grows with each change of a run of its revision.
    pub(super) run_moves: Map<RunId, u64>,
    /// The last of these, by revision.
    pub(super) moves: Map<(RepositoryName, CommitId), u64>,
    /// How many runs were deleted.
    pub(super) runs_deleted: u64,
    pub(super) events: Map<i64, Arc<EventRow>>,
    pub(super) outbox: Map<OutboxId, Arc<OutboxRow>>,
    /// The row of each run and key.
    pub(super) asked: Map<(RunId, String), OutboxId>,
    pub(super) configs: Map<ConfigKey, Row<ConfigState>>,
    pub(super) objects: Map<ObjectPlace, Row<ObjectState>>,
    pub(super) repositories: Map<RepositoryName, Row<RepositoryState>>,
    pub(super) revisions: Map<(RepositoryName, CommitId), (i64, Arc<RevisionState>)>,
    pub(super) plans: Map<PlanId, Arc<Plan>>,
    /// The newest plan that names a service.
    pub(super) newest_plans: Map<(ProjectName, ServiceName), PlanId>,
    pub(super) slots: Map<ServiceKey, Row<SlotState>>,
    pub(super) passed: Map<PassedKey, Row<PassedState>>,
    pub(super) holds: Map<ProjectName, Row<ProjectHolds>>,
    pub(super) names: Map<UniqueName, Row<NameOwner>>,
    pub(super) posted: Map<Entry, (Timestamp, Arc<Posted>)>,
    pub(super) deliveries: Map<(RepositoryName, String), Timestamp>,
    pub(super) webhook_calls: Map<RepositoryName, WebhookCalls>,
    pub(super) tags: Map<RepositoryName, SeenTags>,
}

impl Tables {
    /// A number for a new row.
    pub(super) fn next_number(&mut self) -> i64 {
        self.number += 1;
        self.number
    }

    /// Nobody knows what readers of statuses see.
    pub(super) fn doubt_posted(&mut self) {
        let doubted =
            |(at, posted): &(Timestamp, Arc<Posted>)| (*at, Arc::new(Posted { rendering: 0, ..Posted::clone(posted) }));
        self.posted = self.posted.iter().map(|(key, entry)| (key.clone(), doubted(entry))).collect();
    }

    /// No repository has a head that was seen.
    pub(super) fn forget_heads(&mut self) {
        let rows: Vec<Row<RepositoryState>> = self.repositories.values().cloned().collect();
        for row in rows {
            let value = RepositoryState { seen: None, ..row.value.clone() };
            let row = Arc::new(Versioned { version: row.version + 1, value });
            self.repositories.insert_mut(row.value.name.clone(), row);
        }
    }

    /// What serves may be newer than what is recorded, and what was being removed may be there again.
    pub(super) fn inherit(&mut self, now: Timestamp) {
        let rows: Vec<Row<ConfigState>> = self.configs.values().cloned().collect();
        for row in rows {
            let key = row.value.key.clone();
            if row.value.removed {
                self.configs.remove_mut(&key);
                continue;
            }
            let inherited_version = Some(row.value.latest_version);
            let value = ConfigState { inherited: Some(now), inherited_version, ..row.value.clone() };
            self.configs.insert_mut(key, Arc::new(Versioned { version: row.version + 1, value }));
        }
        let rows: Vec<_> = self.objects.iter().map(|(key, row)| (key.clone(), row.clone())).collect();
        for (key, row) in rows {
            let value = ObjectState { inherited: Some(now), ..row.value.clone() };
            self.objects.insert_mut(key, Arc::new(Versioned { version: row.version + 1, value }));
        }
    }

    /// The version of a record; 0 if there is none.
    pub(super) fn version(&self, key: &RecordKey) -> u64 {
        match key {
            RecordKey::Run(key) => self.runs.get(key).map(|(_, run)| run.version),
            RecordKey::Config(key) => self.configs.get(key).map(|row| row.version),
            RecordKey::Object(key) => self.objects.get(key).map(|row| row.version),
            RecordKey::Repository(key) => self.repositories.get(key).map(|row| row.version),
            RecordKey::Slot(key) => self.slots.get(key).map(|row| row.version),
            RecordKey::Passed(key) => self.passed.get(key).map(|row| row.version),
            RecordKey::Holds(key) => self.holds.get(key).map(|row| row.version),
            RecordKey::Name(key) => self.names.get(key).map(|row| row.version),
        }
        .unwrap_or(0)
    }

    /// The open runs, oldest first.
    pub(super) fn open_runs(&self) -> impl Iterator<Item = &Row<Run>> {
        self.open_runs.values().filter_map(|id| self.runs.get(id)).map(|(_, run)| run)
    }
}
