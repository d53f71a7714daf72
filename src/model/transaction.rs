//! What becomes durable together, and what it was decided on.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::action::{Action, Lane};
use super::commit_status::Posted;
use super::event::Event;
use super::hold::ProjectHolds;
use super::ids::{ConfigKey, ProjectName, RepositoryName, RunId, ServiceKey, StageName, WriterName};
use super::object::{Kind, ObjectKey};
use super::plan::Plan;
use super::run::Run;
use super::slot::{PassedKey, PassedState, SlotState};
use super::state::{ConfigState, ObjectState, RepositoryState, RevisionState, Versioned};
use super::tag::SeenTags;
use super::time::Timestamp;
use super::unique_name::{NameOwner, UniqueName};
use super::webhook_call::WebhookCalls;

/// One durable change: all of it or nothing, and only if nothing moved that it was decided on.
#[derive(Clone, Debug, Default)]
pub struct Transaction {
    /// Records that it was decided on and does not write.
    pub reads: Vec<Read>,
    /// What is written, in order.
    pub writes: Vec<Write>,
}

/// A record that something was decided on, at the version that it had; 0: there was none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// Which.
    pub key: RecordKey,
    /// Its version.
    pub version: u64,
}

/// An object that is no deployment config, where it is applied.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectPlace {
    /// The project.
    pub project: ProjectName,
    /// The stage.
    pub stage: StageName,
    /// The object.
    pub key: ObjectKey,
}

impl ObjectPlace {
    /// Where the `Service` object is whose answers depend on what is here, if one's may.
    pub fn service(&self) -> Option<Self> {
        let key = ObjectKey { kind: Kind::Service, name: self.key.name.clone() };
        matches!(self.key.kind, Kind::Service | Kind::Endpoints).then(|| Self { key, ..self.clone() })
    }
}

impl From<&ObjectState> for ObjectPlace {
    fn from(object: &ObjectState) -> Self {
        Self { project: object.project.clone(), stage: object.stage.clone(), key: object.object.key.clone() }
    }
}

/// What a record is found by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKey {
    /// A run.
    Run(RunId),
    /// A deployment config.
    Config(ConfigKey),
    /// Any other object.
    Object(ObjectPlace),
    /// A repository.
    Repository(RepositoryName),
    /// The slot of a service in a stage.
    Slot(ServiceKey),
    /// Whether content has passed a stage.
    Passed(PassedKey),
    /// The holds of a project.
    Holds(ProjectName),
    /// Who has a name.
    Name(UniqueName),
}

/// One write of a transaction. Where a version is given, it is the one that the value was read at (0: it must not
/// exist yet); the stored one becomes that plus one. Records are shared with who remembers what was written.
#[derive(Clone, Debug)]
pub enum Write {
    /// A run's new state.
    Run(Versioned<Arc<Run>>),
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
    /// Asks a writer for reports about the commits of a repository on which it has written that something is still to
    /// come. What it has written is known only when the transaction is committed.
    AskOvertaken {
        /// The repository.
        repository: RepositoryName,
        /// The writer.
        writer: WriterName,
        /// When it is asked, and due.
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
    Config(Versioned<Arc<ConfigState>>),
    /// Forgets a deployment config; its deployments stay in the history until retention.
    RemoveConfig(Versioned<ConfigKey>),
    /// Any other object's new state.
    Object(Versioned<Arc<ObjectState>>),
    /// Forgets an object.
    RemoveObject(Versioned<ObjectPlace>),
    /// A repository's new state.
    Repository(Versioned<Arc<RepositoryState>>),
    /// Forgets a repository, which was the environment of a pull request.
    RemoveRepository(Versioned<RepositoryName>),
    /// A plan that a person asked for; what the revision's own one said stays.
    Plan(Box<Plan>),
    /// What came of a revision; replaces what was stored for it.
    Revision(Box<RevisionState>),
    /// Who has a slot and who waits for it.
    Slot(Versioned<Arc<SlotState>>),
    /// A stage has judged a service's content otherwise since it passed.
    RemovePassed(Versioned<PassedKey>),
    /// A stage has passed a service's content.
    Passed(Versioned<Arc<PassedState>>),
    /// The holds of a project; without any, the record goes.
    Holds(Versioned<Arc<ProjectHolds>>),
    /// Who has a name now.
    Name(Versioned<Arc<NameOwner>>),
    /// Nobody has a name any more.
    FreeName(Versioned<UniqueName>),
    /// What was written on a commit: replaces the entry of that context in the writer's ledger.
    Posted {
        /// Whose commit.
        repository: RepositoryName,
        /// Who wrote it.
        writer: WriterName,
        /// What was written.
        posted: Box<Posted>,
    },
    /// What webhooks of a repository came to, in place of what was kept before.
    WebhookCalls {
        /// The repository.
        repository: RepositoryName,
        /// The last of them.
        calls: Box<WebhookCalls>,
    },
    /// The tags that a repository has by now, in place of those that were seen before.
    Tags {
        /// The repository.
        repository: RepositoryName,
        /// They.
        seen: Box<SeenTags>,
    },
    /// A webhook delivery was taken; a second one with this id is a duplicate.
    Delivery {
        /// The repository.
        repository: RepositoryName,
        /// The host's id of it, or what was told by whoever may tell it again much later; see [`KEPT_BY_AGE`].
        id: String,
        /// When.
        at: Timestamp,
    },
}

/// The id of a delivery begins so that is remembered for as long as its age lets it, whatever comes after it: whoever tells an
/// event again may have told a hundred others since. Of a host's own ids, only the last stay.
pub const KEPT_BY_AGE: &str = "event ";

/// A row of the outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutboxId(pub i64);

impl Transaction {
    /// One that depends on nothing but the versions that its writes name.
    pub fn of(writes: Vec<Write>) -> Self {
        Self { reads: Vec::new(), writes }
    }
}

macro_rules! keys {
    ($($kind:ident($key:ty)),* $(,)?) => {$(
        impl From<$key> for RecordKey {
            fn from(key: $key) -> Self {
                RecordKey::$kind(key)
            }
        }
    )*};
}

keys! {
    Run(RunId), Config(ConfigKey), Object(ObjectPlace), Repository(RepositoryName), Slot(ServiceKey),
    Passed(PassedKey), Holds(ProjectName), Name(UniqueName),
}

impl fmt::Display for RecordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordKey::Run(key) => key.fmt(f),
            RecordKey::Config(key) => key.fmt(f),
            RecordKey::Object(place) => write!(f, "{}/{}/{}", place.project, place.stage, place.key),
            RecordKey::Repository(key) => key.fmt(f),
            RecordKey::Slot(key) => write!(f, "slot {key}"),
            RecordKey::Passed(key) => write!(f, "{} in {}", key.content, key.service),
            RecordKey::Holds(key) => write!(f, "holds of {key}"),
            RecordKey::Name(key) => key.fmt(f),
        }
    }
}
