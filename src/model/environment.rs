//! Environments of pull requests: what a pull request brings, deployed to a stage of its own, as a stage declares it that
//! serves as a template.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ids::{CommitId, StageName};
use super::time::Timestamp;

/// The most environments that a project may ask for.
pub const MOST: u32 = 50;

/// What a project says of environments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentSettings {
    /// The stage that they are made after.
    pub stage: StageName,
    /// How many there are at most.
    pub max: u32,
    /// How long one stays after the last push to its pull request.
    pub ttl_seconds: u64,
}

impl EnvironmentSettings {
    /// As many as there are where nobody says how many.
    pub const MAX: u32 = 5;
    /// So long does one stay where nobody says how long.
    pub const TTL: Duration = Duration::from_secs(3 * 24 * 3600);

    /// How long one stays after the last push.
    pub fn ttl(&self) -> Duration {
        Duration::from_secs(self.ttl_seconds)
    }
}

/// What becomes of the environment of a pull request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Standing {
    /// It is to be there.
    Wanted,
    /// There are as many as there may be.
    Waiting,
    /// It is a fork's, and nobody who may write has approved what it brings.
    Unapproved,
    /// What it brings is in another repository alone, from which nothing is read.
    Elsewhere,
    /// Nothing was pushed for too long.
    Expired,
    /// The pull request is closed, or nobody asks for environments any more.
    Over,
}

impl Standing {
    /// Its word for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Standing::Wanted => "Wanted",
            Standing::Waiting => "Waiting",
            Standing::Unapproved => "Unapproved",
            Standing::Elsewhere => "Elsewhere",
            Standing::Expired => "Expired",
            Standing::Over => "Over",
        }
    }
}

/// What may be there of an environment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Presence {
    /// Nothing.
    #[default]
    Nothing,
    /// All of it, or what is brought there.
    There,
    /// What is left of it, until that has ended: then it may come back.
    Ending,
}

impl Presence {
    /// Its word for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Presence::Nothing => "Nothing",
            Presence::There => "There",
            Presence::Ending => "Ending",
        }
    }
}

/// The environment of a pull request, or why it has none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Environment {
    /// The number of the pull request.
    pub number: u64,
    /// What it brings, as its host lists it.
    pub head: CommitId,
    /// When that was seen first.
    pub since: Timestamp,
    /// Where the watched repository has it.
    pub reference: Option<String>,
    /// Whether it may be of somebody who cannot push to the repository.
    pub is_fork: bool,
    /// The stage that it is made after.
    pub template: StageName,
    /// What becomes of it.
    pub standing: Standing,
    /// What may be there of it.
    #[serde(default)]
    pub presence: Presence,
}

/// The word of somebody who may write for what a fork's pull request brings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// The number of the pull request.
    pub number: u64,
    /// What it brought then: nothing else is approved.
    pub head: CommitId,
    /// Who.
    pub by: String,
    /// When: a fork's environment gets no older while it waits for that.
    #[serde(default)]
    pub at: Timestamp,
}
