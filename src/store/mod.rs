//! The store's port: everything that must survive a crash.
//!
//! A change is one [`Transaction`]: new states and the actions they ask for become durable together or not at all.
//! Every record has a version; a transaction names the versions it was computed from, and is refused with
//! [`CommitError::Conflict`] if one of them moved. A fencing number, taken at start, shuts out an earlier process.

mod content;
mod listing;
mod passed;
mod record;
pub mod sqlite;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_trait::async_trait;

pub use self::listing::{Damaged, Listing};
use crate::error::Failure;
use crate::model::action::{Action, Lane};
use crate::model::commit_status::Posted;
use crate::model::event::Event;
use crate::model::hold::{Hold, ProjectHolds};
use crate::model::ids::{
    CommitId, ConfigKey, Digest, Incarnation, PlanId, ProjectName, RepositoryName, RunId, ServiceKey, ServiceName,
    StageName, WriterName,
};
use crate::model::object::{Kind, ObjectKey};
use crate::model::plan::Plan;
use crate::model::run::Run;
use crate::model::seed::Seed;
use crate::model::slot::{Delivered, PassedKey, PassedState, SlotState};
pub use crate::model::state::{AppliedDigest, Versioned};
use crate::model::state::{ConfigState, ObjectState, RepositoryState, RevisionState};
use crate::model::tag::SeenTags;
use crate::model::time::Timestamp;
pub use crate::model::transaction::{OutboxId, Read, RecordKey, Transaction, Write};
use crate::model::unique_name::{NameOwner, UniqueName};
use crate::model::webhook_call::WebhookCalls;

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

/// How long after an action has come due somebody must have been woken for it.
const OVERLOOKED: Duration = Duration::from_secs(1);

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

impl OutboxRow {
    /// Whether it has been due for so long that whoever performs it should have heard of it.
    pub fn was_overlooked(&self, now: Timestamp) -> bool {
        self.due.is_some_and(|due| due + OVERLOOKED < now)
    }
}

/// What waits in a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// So many actions.
    pub count: u64,
    /// When the oldest was asked.
    pub oldest: Option<Timestamp>,
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
    /// Of this context of events.
    pub context: Option<String>,
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

/// Where the runs of a revision stand, for whoever asks again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunsMark {
    /// When the revision was judged last: one that was forgotten and comes again is another.
    pub at: Timestamp,
    /// How often it was judged before.
    pub again: u32,
    /// The plan that came of it.
    pub plan: Option<PlanId>,
    /// Grows whenever one of them comes or changes: the `n`th time on a revision that had none makes it `n`.
    pub moved: u64,
    /// Grows whenever one of them is deleted, or goes over to another revision.
    pub deleted: u64,
}

impl RunsMark {
    /// Where the runs of `revision` stand.
    pub fn new(revision: &RevisionState, moved: u64, deleted: u64) -> Self {
        let plan = revision.plan().map(|plan| plan.id.clone());
        Self { at: revision.at, again: revision.again, plan, moved, deleted }
    }

    /// Whether what has changed since then is all that is to be examined again.
    pub fn leads_to(&self, now: &Self) -> bool {
        *self == Self { moved: self.moved, ..now.clone() }
    }
}

/// The services of a revision that somebody has to look at again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedServices {
    /// Where the runs stand now.
    pub mark: RunsMark,
    /// The services, by name.
    pub services: Vec<ServiceName>,
    /// Whether they are all that the revision's plan names or that had runs on it: nothing was known, the revision was judged
    /// anew, or a run is gone.
    pub are_all: bool,
}

/// What somebody knows who asks what there is to be said of a revision.
#[derive(Clone, Debug, Default)]
pub struct KnownServices {
    /// Where its runs stood when the services were examined.
    pub mark: Option<RunsMark>,
    /// Those that are to be examined again although no run of theirs may have changed.
    pub again: BTreeSet<ServiceName>,
}

impl KnownServices {
    /// Those that are to be examined where these have moved, by name.
    pub fn with_moved(&self, moved: impl IntoIterator<Item = ServiceName>) -> Vec<ServiceName> {
        let mut all = self.again.clone();
        all.extend(moved);
        all.into_iter().collect()
    }
}

/// What is said of a revision follows from this, as it was at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevisionFacts {
    /// The number of the newest event then.
    pub event: u64,
    /// The revision; what its plan says of services is left out.
    pub revision: RevisionState,
    /// Its repository, if anything is remembered of it.
    pub repository: Option<RepositoryState>,
    /// The first revision after it that has a plan.
    pub newer: Option<CommitId>,
    /// What the project of its plan holds.
    pub holds: Option<ProjectHolds>,
    /// The services that are to be examined.
    pub moved: MovedServices,
    /// What happened to the first [`SERVICES_AT_ONCE`] of these.
    pub services: Vec<ServiceFacts>,
}

/// How many services are read at once: enough that each costs little, and few enough to be held in memory.
pub const SERVICES_AT_ONCE: usize = 256;

/// What a revision's statuses say of a service follows from this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceFacts {
    /// The service.
    pub service: ServiceName,
    /// The part of the revision's plan that is about it.
    pub plan: Option<Plan>,
    /// Its runs on the revision, newest first.
    pub runs: Vec<Run>,
}

/// How long things are kept that nothing needs any more.
///
/// Needed are: open runs with their revisions and plans, the heads of repositories, what a revision that stays shows (of
/// each of its sequences the newest attempt, and the reports that are owed), revisions about which a writer is newly
/// owed a report, the newest plan of each service that is still there, the deployments that serve or may serve again, as
/// many old versions of each deployment config as it says, and that a service's content passed: what was delivered last,
/// and what passed last, or again because it is declared again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// What is older goes.
    pub before: Timestamp,
    /// Of younger things, so many stay of each kind, the newest: runs of a service in a stage, versions of a deployment
    /// config that does not say how many, contents that passed, revisions of a repository, deliveries to it.
    pub most: u32,
}

/// How many rows of each kind retention deleted, or would.
pub type Retained = BTreeMap<&'static str, u64>;

/// What reads the store; also commands, while the daemon runs or not.
///
/// A record that cannot be read fails whoever reads it, and whoever reads all of something smaller than a project: of a
/// service, or of what is under way. Where records of everything are listed, it keeps nobody from the others: see [`Listing`].
#[async_trait]
pub trait ReadStore: Send + Sync {
    /// A run.
    async fn run(&self, id: &RunId) -> Result<Option<Versioned<Run>>, Failure>;
    /// Runs, newest first.
    async fn runs(&self, filter: &RunFilter) -> Result<Listing<Versioned<Run>>, Failure>;
    /// The slot of a service in a stage.
    async fn slot(&self, service: &ServiceKey) -> Result<Option<Versioned<SlotState>>, Failure>;
    /// The slots that somebody has or waits for, of a project or of all, in the order of their services.
    async fn open_slots(&self, project: Option<&ProjectName>) -> Result<Vec<Versioned<SlotState>>, Failure>;
    /// Which they are.
    async fn open_slot_keys(&self, project: Option<&ProjectName>) -> Result<Vec<ServiceKey>, Failure>;
    /// Facts: of one run or of all, after a number, oldest first, at most `limit`.
    async fn events(&self, run: Option<&RunId>, after: i64, limit: u32) -> Result<Vec<EventRow>, Failure>;
    /// Facts: of one run or of all, before a number, newest first, at most `limit`.
    async fn newest_events(&self, run: Option<&RunId>, before: i64, limit: u32) -> Result<Vec<EventRow>, Failure>;
    /// A deployment config.
    async fn config(&self, key: &ConfigKey) -> Result<Option<Versioned<ConfigState>>, Failure>;
    /// Which deployment configs there are.
    async fn config_keys(&self) -> Result<Vec<ConfigKey>, Failure>;
    /// All deployment configs of a project and stage; absent parts match everything.
    async fn configs(
        &self,
        project: Option<&ProjectName>,
        stage: Option<&StageName>,
    ) -> Result<Listing<Versioned<ConfigState>>, Failure>;
    /// The deployment configs of a service.
    async fn configs_of(&self, service: &ServiceKey) -> Result<Vec<Versioned<ConfigState>>, Failure>;
    /// The other objects of a project and stage, of one kind or all.
    async fn objects(
        &self,
        project: Option<&ProjectName>,
        stage: Option<&StageName>,
        kind: Option<&Kind>,
    ) -> Result<Listing<Versioned<ObjectState>>, Failure>;
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
    async fn repositories(&self) -> Result<Listing<Versioned<RepositoryState>>, Failure>;
    /// What came of a revision; `commit` may be a prefix of at least four digits.
    async fn revision(&self, repository: &RepositoryName, commit: &str) -> Result<Option<RevisionState>, Failure>;
    /// Revisions of a repository, newest first.
    async fn revisions(&self, repository: &RepositoryName, limit: u32) -> Result<Vec<RevisionState>, Failure>;
    /// The same as [`ReadStore::revision`], of whose plan what it says of services is left out.
    async fn outline(&self, repository: &RepositoryName, commit: &str) -> Result<Option<RevisionState>, Failure>;
    /// The same of several, newest first.
    async fn outlines(&self, repository: &RepositoryName, limit: u32) -> Result<Vec<RevisionState>, Failure>;
    /// What there is to be said of a revision, for whoever knows something of it: of the services of which a run has come or
    /// changed since, and of those that are to be examined again.
    async fn revision_facts(
        &self,
        repository: &RepositoryName,
        commit: &CommitId,
        known: KnownServices,
    ) -> Result<Option<RevisionFacts>, Failure>;
    /// What happened on a revision to some services, all read at once.
    async fn service_facts(
        &self,
        repository: &RepositoryName,
        commit: &CommitId,
        plan: &PlanId,
        services: &[ServiceName],
    ) -> Result<Vec<ServiceFacts>, Failure>;
    /// What was delivered last in a stage, by service; without what the procedure `except` has deployed.
    async fn delivered(
        &self,
        project: &ProjectName,
        stage: &StageName,
        except: Option<&Digest>,
    ) -> Result<BTreeMap<ServiceName, Delivered>, Failure>;
    /// The last attempt at a revision for a service in a stage: at delivering it, or at a sequence that only runs tasks.
    /// 0 if there was none.
    async fn attempts(
        &self,
        repository: &RepositoryName,
        commit: &CommitId,
        service: &ServiceKey,
        sequence: Option<&str>,
    ) -> Result<u32, Failure>;
    /// A plan.
    async fn plan(&self, id: &PlanId) -> Result<Option<Plan>, Failure>;
    /// The part of a plan that is about one service: the same plan without the others, in all stages.
    async fn plan_of(&self, id: &PlanId, service: &ServiceName) -> Result<Option<Plan>, Failure>;
    /// The same of the newest plan of a project that names the service.
    async fn newest_plan_of(&self, project: &ProjectName, service: &ServiceName) -> Result<Option<Plan>, Failure>;
    /// That a stage has passed a service's content.
    async fn passed(&self, key: &PassedKey) -> Result<Option<Versioned<PassedState>>, Failure>;
    /// The holds of a project.
    async fn holds_of(&self, project: &ProjectName) -> Result<Option<Versioned<ProjectHolds>>, Failure>;
    /// All holds, oldest first.
    async fn holds(&self) -> Result<Listing<Hold>, Failure>;
    /// Who has a name.
    async fn name_owner(&self, name: &UniqueName) -> Result<Option<Versioned<NameOwner>>, Failure>;
    /// What a writer has written on a commit, by context.
    async fn posted(
        &self,
        repository: &RepositoryName,
        writer: &WriterName,
        commit: &CommitId,
    ) -> Result<Vec<Posted>, Failure>;
    /// The revisions of which this one is the first after them that has a plan; the newest first.
    async fn overtaken_by(&self, repository: &RepositoryName, commit: &CommitId) -> Result<Vec<CommitId>, Failure>;
    /// Whether a webhook delivery was taken before.
    async fn was_delivered(&self, repository: &RepositoryName, id: &str) -> Result<bool, Failure>;
    /// What the last webhooks of a repository came to.
    async fn webhook_calls(&self, repository: &RepositoryName) -> Result<WebhookCalls, Failure>;
    /// The tags that a repository had when they were compared last.
    async fn seen_tags(&self, repository: &RepositoryName) -> Result<Option<SeenTags>, Failure>;
    /// What the generated values of templates are derived from, once a daemon has had the store; the same for as long as the
    /// store and its copies are there.
    async fn seed(&self) -> Result<Option<Seed>, Failure>;
    /// The number of the newest event. Whatever is read after it is at least as new.
    async fn last_event(&self) -> Result<u64, Failure>;
    /// When the next row of a lane comes due that is not due at `now`.
    async fn next_due(&self, lane: &Lane, now: Timestamp) -> Result<Option<Timestamp>, Failure>;
    /// What waits in a lane, claimed or not.
    async fn backlog(&self, lane: &Lane) -> Result<Backlog, Failure>;
    /// The rows of the outbox of a run, or all.
    async fn outbox(&self, run: Option<&RunId>) -> Result<Vec<OutboxRow>, Failure>;
}

/// What the daemon reads and writes.
#[async_trait]
pub trait Store: ReadStore {
    /// Which life of the store this is. A new one begins when it is made anew and when a copy takes its place; every
    /// repository is then to be read anew: none has a head that was seen.
    fn incarnation(&self) -> &Incarnation;
    /// Makes a change durable; it is on disk when this returns.
    async fn commit(&self, transaction: Transaction) -> Result<(), CommitError>;
    /// Takes rows of a lane that are due, in the order of their [`Priority::turn`](crate::model::action::Priority::turn),
    /// at most `limit` and one of each run: nobody is given a row, or another of its run in this lane, before it was done,
    /// put off or given back. The process that ends gives all back.
    async fn claim(&self, lane: &Lane, now: Timestamp, limit: u32) -> Result<Vec<OutboxRow>, CommitError>;
    /// Gives a claimed row back as it is.
    async fn give_back(&self, id: OutboxId) -> Result<(), CommitError>;
    /// Deletes what nothing needs any more; says how many rows of each kind went.
    async fn retain(&self, retention: Retention) -> Result<Retained, Failure>;
    /// What [`Store::retain`] would delete.
    async fn superfluous(&self, retention: Retention) -> Result<Retained, Failure>;
    /// Writes a consistent copy to a file that does not exist yet.
    async fn backup(&self, to: &std::path::Path) -> Result<(), Failure>;
}
