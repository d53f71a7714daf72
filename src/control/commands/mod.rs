//! What people, and deployers of theirs, ask the daemon to do.

pub mod by_hand;
pub mod generate;
pub mod operator;
pub mod propose;
mod release;
mod rollback;
mod sequences;
pub(in crate::control) mod spoken;

pub use sequences::set_paused;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::control::commands::generate::{Candidate, GenerateCommand};
use crate::control::commands::propose::ProposalView;
use crate::engine::by_hand::Images;
use crate::engine::deployment::deployer::Ask;
use crate::engine::rollback::evaluate::Evaluation;
use crate::error::Failure;
use crate::manifest::rollback::{RollbackRequest, RollbackSettings};
use crate::model::cloud_event::CloudEvent;
use crate::model::hold::HoldScope;
use crate::model::ids::{
    CommitId, ConfigKey, HoldId, PodName, ProjectName, RepositoryName, RunId, ServiceKey, ServiceName, StageName,
};

/// Carries out what people ask for.
#[async_trait]
pub trait Commands: Send + Sync {
    /// Carries a command out, or starts it; what follows is seen in the runs. `by` is who asks, for the record.
    async fn act(&self, command: Command, by: &str) -> Result<Done, Refusal>;
}

/// What a person may ask for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "command")]
pub enum Command {
    /// Sync a repository now.
    Sync {
        /// Which.
        repository: RepositoryName,
        /// This revision may delete more than the rule allows.
        #[serde(default)]
        allow_prune: Option<CommitId>,
        /// This revision may replace history.
        #[serde(default)]
        accept_rewrite: Option<CommitId>,
        /// Bring back what was taken down.
        #[serde(default)]
        up: bool,
        /// Leave a head alone that was seen before; else one that a rule refused is judged anew.
        #[serde(default)]
        only_new: bool,
    },
    /// Deploy a config as last declared, also if nothing changed.
    Latest {
        /// Which.
        config: ConfigKey,
        /// With which images.
        #[serde(default)]
        images: Images,
        /// Only say what that would do.
        #[serde(default)]
        dry_run: bool,
    },
    /// Say what a deployment config would be, or deploy just that.
    Generate(Box<GenerateCommand>),
    /// End what is under way: a deployment, then what served before serves again, or a task.
    Cancel {
        /// Of which config.
        config: ConfigKey,
    },
    /// Attempt the last failed version once more.
    Retry {
        /// Of which config.
        config: ConfigKey,
    },
    /// Deploy what an earlier version was, as a new version.
    Undo {
        /// Which.
        config: ConfigKey,
        /// The earlier version; the last complete one before the latest if absent.
        #[serde(default)]
        to_version: Option<u32>,
        /// Only say what that would do.
        #[serde(default)]
        dry_run: bool,
    },
    /// Let nothing new start for a config until it is resumed.
    Pause {
        /// Which.
        config: ConfigKey,
    },
    /// Let a rollout that waits go on, and what is paused.
    Resume {
        /// Of which config.
        config: ConfigKey,
    },
    /// Give a version everything that proves itself beside another.
    Promote {
        /// Of which config.
        config: ConfigKey,
    },
    /// Deploy what deployment configs were before, all or none of them.
    Rollback(RollbackCommand),
    /// Change the number of pods until a revision changes it.
    Scale {
        /// Which.
        config: ConfigKey,
        /// How many.
        replicas: u32,
    },
    /// Have what a deployer of the user's own asks for run.
    Deploy {
        /// The deployment.
        run: RunId,
        /// The deployer's pod.
        pod: PodName,
        /// What it asks for.
        ask: Ask,
    },
    /// Put on record that a command is run beside the processes of a pod.
    Exec {
        /// Of which config.
        config: ConfigKey,
        /// In which pod.
        pod: PodName,
        /// What: a command and its arguments.
        words: Vec<String>,
    },
    /// Let nothing change until released.
    Hold {
        /// What.
        scope: HoldScope,
        /// Why, for people.
        reason: String,
    },
    /// End holds, and let go on what files pause.
    Release {
        /// Which holds.
        #[serde(default)]
        holds: Vec<HoldId>,
        /// Which deployment configs, although their files say `paused`.
        #[serde(default)]
        paused: Vec<ConfigKey>,
        /// Only say what that would start.
        #[serde(default)]
        dry_run: bool,
    },
    /// Start a stage's delivery sequence with what the last revision declares.
    TriggerDelivery {
        /// Of which project.
        project: ProjectName,
        /// In which stage; may be absent if there is one.
        #[serde(default)]
        stage: Option<StageName>,
        /// For one service, also if nothing differs, or for all that differ.
        #[serde(default)]
        service: Option<ServiceName>,
        /// Why, although the stage before has not passed it.
        #[serde(default)]
        force: Option<String>,
    },
    /// Tell sequences something.
    Sequence(SequenceCommand),
    /// Delete what nothing needs any more.
    Prune {
        /// Only say what.
        #[serde(default)]
        dry_run: bool,
    },
    /// Stop what a repository runs, and start nothing for it until it is brought up again.
    Down {
        /// Which.
        repository: RepositoryName,
    },
}

/// What is told to sequences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "told")]
pub enum SequenceCommand {
    /// Take an event from outside.
    Tell(Box<CloudEvent>),
    /// Let a sequence go on that waits for approval, or end it.
    Decide {
        /// Of which service in which stage.
        service: ServiceKey,
        /// Whether it goes on.
        approve: bool,
        /// Why, for people.
        #[serde(default)]
        reason: String,
        /// The one that is meant, if it may not be the only one that waits.
        #[serde(default)]
        run: Option<RunId>,
        /// The id of the event that asked, if another task of the run may ask by now.
        #[serde(default)]
        asked: Option<String>,
        /// The beginning of the revision that is meant, if only that one is.
        #[serde(default)]
        revision: Option<String>,
    },
    /// End what is under way for a service.
    Abort {
        /// Which, in which stage.
        service: ServiceKey,
    },
    /// Run a sequence again that has failed.
    Rerun {
        /// Which run of it.
        run: RunId,
        /// From its beginning, in place of the task that failed.
        #[serde(default)]
        from_start: bool,
    },
    /// Have a delivery begin no further task, or let it again.
    Pause {
        /// Of which project.
        project: ProjectName,
        /// What all of it has in common.
        context: String,
        /// In one stage, or in all.
        #[serde(default)]
        stage: Option<StageName>,
        /// Its runs.
        runs: Vec<RunId>,
        /// Whether it is paused.
        paused: bool,
    },
    /// Have all that is in a stage, or comes to it, begin no further task, or let it again.
    PauseStage {
        /// Of which project.
        project: ProjectName,
        /// Which.
        stage: StageName,
        /// Whether it is paused.
        paused: bool,
    },
    /// End these runs, as far as they have not ended.
    AbortRuns {
        /// Which.
        runs: Vec<RunId>,
    },
}

/// Which deployment configs go back, and to what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RollbackCommand {
    /// Of which project.
    pub project: ProjectName,
    /// In which stage.
    pub stage: StageName,
    /// Which ones.
    pub rollbacks: Vec<RollbackRequest>,
    /// In place of these: all that there are, so.
    pub all: Option<RollbackSettings>,
    /// To what was deployed when this revision had been applied.
    pub to_revision: Option<CommitId>,
    /// Only say what that would do.
    pub dry_run: bool,
    /// Have Git say it, as a pull request, and deploy it once that is merged.
    pub pull_request: bool,
}

/// A command that was taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Done {
    /// What happens now, in a sentence without a period: `rolled out`, `already cancelled`.
    pub message: String,
    /// The runs to follow.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub runs: Vec<RunId>,
    /// What an event has in common with all that follows from it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub context: String,
    /// Why an event has no effect; empty if it has one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ignored: String,
    /// Which deliveries it asks for and nobody starts, with why, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// What it lets start, a line each.
    #[serde(default)]
    pub starts: Vec<String>,
    /// What a rollback changes, and what people should know of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evaluations: Vec<Evaluation>,
    /// The pull request that a rollback is proposed as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal: Option<Box<ProposalView>>,
    /// What was generated, for whoever shows it in the words of others.
    #[serde(skip)]
    pub candidate: Option<Box<Candidate>>,
}

/// A command that was not taken.
#[derive(Debug)]
pub enum Refusal {
    /// What it names is not there.
    Unknown(Failure),
    /// It does not fit what is there now.
    Conflict(Failure),
    /// It makes no sense.
    Invalid(Failure),
    /// It could not be carried out.
    Failed(Failure),
}

impl Refusal {
    /// Why, for whoever asks for nothing else.
    pub(in crate::control) fn into_failure(self) -> Failure {
        match self {
            Refusal::Unknown(why) | Refusal::Conflict(why) | Refusal::Invalid(why) | Refusal::Failed(why) => why,
        }
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Refusal::Failed(failure)
    }
}
