//! The slot of a service in a stage: the right to change it, as a record.

use serde::{Deserialize, Serialize};

use super::ids::{CommitId, Digest, RunId, ServiceKey};
use super::time::Timestamp;

/// Who may change a service in a stage now, and who comes after. It stays when nobody is left, so that two who come at
/// once write the same record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotState {
    /// Whose slot.
    pub service: ServiceKey,
    /// The sequence run that has it.
    pub holder: Option<RunId>,
    /// Who waits, oldest first.
    pub waiting: Vec<RunId>,
    /// Who has let others have it until a person has decided or a pause is over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub yielded: Vec<RunId>,
    /// The last delivery that ended, other than by being superseded.
    pub last_delivery: Option<Delivered>,
    /// The last delivery that an event asked for and nobody started, until one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refused>,
}

/// A delivery that was asked for and not started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// By what, for people.
    pub by: String,
    /// Why not, for people.
    pub reason: String,
    /// When, the last time.
    pub at: Timestamp,
}

/// A delivery that ended, well or badly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivered {
    /// What is to be retried if it failed.
    pub run: RunId,
    /// What the service declared.
    pub content: Digest,
    /// The sequence, with how its tasks ran: [`crate::plan::procedure`].
    pub procedure: Digest,
    /// Whether its deployment began; else a task before that has stopped it.
    #[serde(default = "yes")]
    pub deployed: bool,
}

/// What was remembered before launchway kept apart what got to its deployment.
fn yes() -> bool {
    true
}

impl SlotState {
    /// A slot that nobody has or waits for.
    pub fn free(service: ServiceKey) -> Self {
        Self { service, holder: None, waiting: Vec::new(), yielded: Vec::new(), last_delivery: None, refused: None }
    }

    /// Everybody who has it, waits for it, or comes back to it.
    pub fn open(&self) -> impl Iterator<Item = &RunId> {
        self.holder.iter().chain(&self.waiting).chain(&self.yielded)
    }

    /// Whether there is nobody of these.
    pub fn is_free(&self) -> bool {
        self.open().next().is_none()
    }
}

/// Content of a service that passed a sequence of a stage.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PassedKey {
    /// Which service in which stage.
    pub service: ServiceKey,
    /// The content: of everything that the service declares there, without commit ids; behind a slash the sequence that it
    /// passed, if that delivers nothing.
    pub content: Digest,
}

impl PassedKey {
    /// Content that passed a sequence which delivers nothing.
    pub fn by_sequence(service: ServiceKey, content: &Digest, sequence: &str) -> Self {
        Self { service, content: Digest::new(format!("{content}/{sequence}")) }
    }
}

/// That content passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedState {
    /// What passed where.
    pub key: PassedKey,
    /// On which revision, the last time.
    pub commit: CommitId,
    /// When, the last time.
    pub at: Timestamp,
    /// The sequence that it passed, with how its tasks ran but not with the code that they ran.
    pub procedure: Digest,
}
