//! The store's port: everything that must survive a crash.
//!
//! A change is one [`Transaction`]: new states and the actions they ask for become durable together or not at all.
//! Every record has a version; a transaction names the versions it was computed from, and is refused with
//! [`CommitError::Conflict`] if one of them moved. A fencing number, taken at start, shuts out an earlier process.

mod record;
pub mod sqlite;

use async_trait::async_trait;

use crate::error::Failure;
use crate::model::action::{Action, Lane};
use crate::model::commit_status::Posted;
use crate::model::event::Event;
use crate::model::hold::Hold;
use crate::model::ids::{
    CommitId, ConfigKey, Digest, HoldId, PlanId, ProjectName, RepositoryName, RunId, ServiceKey, StageName, WriterName,
};
use crate::model::object::{Kind, ObjectKey};
use crate::model::plan::Plan;
use crate::model::run::Run;
pub use crate::model::state::{AppliedDigest, Versioned};
use crate::model::state::{ConfigState, ObjectState, RepositoryState, RevisionState};
use crate::model::time::Timestamp;

/// One durable change.
#[derive(Clone, Debug, Default)]
pub struct Transaction {
    /// What is written, in order.
    pub writes: Vec<Write>,
}

/// One write of a transaction. Where a version is given, it is the one that the value was read at (0: it must not
/// exist yet); the stored one becomes that plus one.
#[derive(Clone, Debug)]
pub enum Write {
    /// A run's new state.
    Run(Box<Versioned<Run>>),
    /// A fact, appended to a run's history.
    Event {
        /// The run.
        run: RunId,
        /// When.
        at: Timestamp,
        /// What.
        event: Box<Event>,
    },
    /// An action for the outbox. One with the same run and key that is still there is replaced.
    Ask {
        /// The run that asks.
        run: RunId,
        /// What.
        action: Box<Action>,
        /// Not before.
        due: Timestamp,
        /// When it was asked.
        at: Timestamp,
    },
    /// Removes an action by run and key, whether it was performed or not.
    Withdraw {
        /// The run that asked.
        run: RunId,
        /// [`Action::key`].
        key: String,
    },
    /// Removes exactly this row: it was performed. Nothing happens if it was replaced meanwhile.
    Done(OutboxId),
    /// Puts a row off after a failure, which counts.
    Postpone {
        /// The row.
        id: OutboxId,
        /// Until then.
        due: Timestamp,
        /// What failed, for people.
        problem: String,
    },
    /// Puts a row off because something else must happen first, which is no failure.
    Await {
        /// The row.
        id: OutboxId,
        /// Until then at the latest; `None`: until it is revived.
        due: Option<Timestamp>,
        /// What it waits for, for people.
        reason: String,
    },
    /// Brings a row forward that waits.
    Wake {
        /// The row.
        id: OutboxId,
        /// Not before.
        due: Timestamp,
    },
    /// Brings rows forward that wait until they are revived.
    Revive {
        /// The lane.
        lane: Lane,
        /// Not before.
        due: Timestamp,
        /// How many, newest first.
        limit: u32,
    },
    /// A deployment config's new state.
    Config(Box<Versioned<ConfigState>>),
    /// Forgets a deployment config; its deployments stay in the history until retention.
    RemoveConfig(Versioned<ConfigKey>),
    /// Any other object's new state.
    Object(Box<Versioned<ObjectState>>),
    /// Forgets an object.
    RemoveObject {
        /// The project.
        project: ProjectName,
        /// The stage.
        stage: StageName,
        /// The object, with the version it was read at.
        key: Versioned<ObjectKey>,
    },
    /// A repository's new state.
    Repository(Box<Versioned<RepositoryState>>),
    /// What came of a revision; replaces what was stored for it.
    Revision(Box<RevisionState>),
    /// A stage has passed a service's content.
    Passed {
        /// Which service in which stage.
        service: ServiceKey,
        /// The content.
        content: Digest,
        /// On which revision.
        commit: CommitId,
        /// When.
        at: Timestamp,
    },
    /// A new hold.
    Hold(Box<Hold>),
    /// A hold ends.
    Release(HoldId),
    /// What was written on a commit: replaces the entry of that context in the writer's ledger.
    Posted {
        /// Whose commit.
        repository: RepositoryName,
        /// Who wrote it.
        writer: WriterName,
        /// What was written.
        posted: Box<Posted>,
    },
    /// A webhook delivery was taken; a second one with this id is a duplicate.
    Delivery {
        /// The repository.
        repository: RepositoryName,
        /// The host's id of it.
        id: String,
        /// When.
        at: Timestamp,
    },
}

/// Why a transaction was not committed.
#[derive(Debug)]
pub enum CommitError {
    /// Something that it was computed from has moved: read again and decide again.
    Conflict {
        /// What moved.
        what: String,
    },
    /// Another process has taken the store over; this one must stop.
    Fenced,
    /// The store itself failed.
    Failed(Failure),
}

impl From<CommitError> for Failure {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Conflict { what } => Failure::transient(format!("`{what}` changed meanwhile")),
            CommitError::Fenced => Failure::stalled("another launchway process has taken over this state folder")
                .hint("run one daemon per state folder"),
            CommitError::Failed(failure) => failure,
        }
    }
}

/// A row of the outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutboxId(pub i64);

/// An action that waits to be performed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxRow {
    /// Its identity; ids grow.
    pub id: OutboxId,
    /// The run that asks.
    pub run: RunId,
    /// [`Action::key`].
    pub key: String,
    /// What, or why that cannot be read.
    pub action: Result<Action, String>,
    /// Not before; `None`: it waits until it is revived.
    pub due: Option<Timestamp>,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// How often it failed.
    pub attempts: u32,
    /// The last failure, or what it waits for; for people, empty if there is none.
    pub problem: String,
}

/// Which runs to list; absent parts match everything. Newest first.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    /// Of this repository.
    pub repository: Option<RepositoryName>,
    /// Of this project.
    pub project: Option<ProjectName>,
    /// In this stage.
    pub stage: Option<StageName>,
    /// For this service.
    pub service: Option<String>,
    /// Deployments of this deployment config.
    pub config: Option<String>,
    /// On this revision.
    pub commit: Option<CommitId>,
    /// Only sequences (`Some(true)`) or only deployments (`Some(false)`).
    pub sequences: Option<bool>,
    /// Only open (`Some(true)`) or only ended (`Some(false)`) ones.
    pub open: Option<bool>,
    /// Only those created before this run; for paging.
    pub before: Option<RunId>,
    /// At most so many; 0: all.
    pub limit: u32,
}

/// A fact in a run's history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRow {
    /// Grows over all runs.
    pub number: i64,
    /// The run.
    pub run: RunId,
    /// When.
    pub at: Timestamp,
    /// What.
    pub event: Event,
}

/// How long things are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Events of ended runs, revisions with their plans, deliveries, posted statuses, and actions that were given up or
    /// whose writer takes none older than this go; what an open run or a repository's head needs stays.
    pub before: Timestamp,
}

/// What reads the store; also commands, while the daemon runs or not.
#[async_trait]
pub trait ReadStore: Send + Sync {
    /// A run.
    async fn run(&self, id: &RunId) -> Result<Option<Versioned<Run>>, Failure>;
    /// Runs, newest first.
    async fn runs(&self, filter: &RunFilter) -> Result<Vec<Versioned<Run>>, Failure>;
    /// The open sequence runs of a slot, oldest first.
    async fn slot(&self, service: &ServiceKey) -> Result<Vec<Versioned<Run>>, Failure>;
    /// Facts: of one run or of all, after a number, oldest first, at most `limit`.
    async fn events(&self, run: Option<&RunId>, after: i64, limit: u32) -> Result<Vec<EventRow>, Failure>;
    /// A deployment config.
    async fn config(&self, key: &ConfigKey) -> Result<Option<Versioned<ConfigState>>, Failure>;
    /// All deployment configs of a project and stage; absent parts match everything.
    async fn configs(
        &self,
        project: Option<&ProjectName>,
        stage: Option<&StageName>,
    ) -> Result<Vec<Versioned<ConfigState>>, Failure>;
    /// The other objects of a project and stage, of one kind or all.
    async fn objects(
        &self,
        project: Option<&ProjectName>,
        stage: Option<&StageName>,
        kind: Option<&Kind>,
    ) -> Result<Vec<Versioned<ObjectState>>, Failure>;
    /// One other object.
    async fn object(
        &self,
        project: &ProjectName,
        stage: &StageName,
        key: &ObjectKey,
    ) -> Result<Option<Versioned<ObjectState>>, Failure>;
    /// What is applied in a stage, deployment configs included, without content; in the order of the keys.
    async fn applied(&self, project: &ProjectName, stage: &StageName) -> Result<Vec<AppliedDigest>, Failure>;
    /// The stages of a project in which anything is applied.
    async fn applied_stages(&self, project: &ProjectName) -> Result<Vec<StageName>, Failure>;
    /// A repository.
    async fn repository(&self, name: &RepositoryName) -> Result<Option<Versioned<RepositoryState>>, Failure>;
    /// All repositories, by name.
    async fn repositories(&self) -> Result<Vec<Versioned<RepositoryState>>, Failure>;
    /// What came of a revision; `commit` may be a prefix of at least four digits.
    async fn revision(&self, repository: &RepositoryName, commit: &str) -> Result<Option<RevisionState>, Failure>;
    /// Revisions of a repository, newest first.
    async fn revisions(&self, repository: &RepositoryName, limit: u32) -> Result<Vec<RevisionState>, Failure>;
    /// A plan.
    async fn plan(&self, id: &PlanId) -> Result<Option<Plan>, Failure>;
    /// Whether a stage has passed a service's content.
    async fn has_passed(&self, service: &ServiceKey, content: &Digest) -> Result<bool, Failure>;
    /// All holds, oldest first.
    async fn holds(&self) -> Result<Vec<Hold>, Failure>;
    /// What a writer has written on a commit, by context.
    async fn posted(
        &self,
        repository: &RepositoryName,
        writer: &WriterName,
        commit: &CommitId,
    ) -> Result<Vec<Posted>, Failure>;
    /// Whether a webhook delivery was taken before.
    async fn was_delivered(&self, repository: &RepositoryName, id: &str) -> Result<bool, Failure>;
    /// The number of the newest event. Whatever is read after it is at least as new.
    async fn last_event(&self) -> Result<u64, Failure>;
    /// When the next row of a lane comes due that is not due at `now`.
    async fn next_due(&self, lane: &Lane, now: Timestamp) -> Result<Option<Timestamp>, Failure>;
    /// The rows of the outbox of a run, or all.
    async fn outbox(&self, run: Option<&RunId>) -> Result<Vec<OutboxRow>, Failure>;
}

/// What the daemon reads and writes.
#[async_trait]
pub trait Store: ReadStore {
    /// Makes a change durable; it is on disk when this returns.
    async fn commit(&self, transaction: Transaction) -> Result<(), CommitError>;
    /// Takes rows of a lane that are due, longest first, at most `limit` and one of each run: nobody is given a row, or
    /// another of its run in this lane, before it was done, put off or given back. The process that ends gives all back.
    async fn claim(&self, lane: &Lane, now: Timestamp, limit: u32) -> Result<Vec<OutboxRow>, CommitError>;
    /// Gives a claimed row back as it is.
    async fn give_back(&self, id: OutboxId) -> Result<(), CommitError>;
    /// Deletes what is older than allowed; returns how many rows went.
    async fn retain(&self, retention: Retention) -> Result<u64, Failure>;
    /// Writes a consistent copy to a file that does not exist yet.
    async fn backup(&self, to: &std::path::Path) -> Result<(), Failure>;
}
