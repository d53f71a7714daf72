//! Runs: executions that are being driven, as values.

mod controllers;
mod deployer;
mod encoding;
mod executor;
mod hook;
mod sequence;
mod task;
mod whereabouts;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::cause::Cause;
use super::deployment_config::DeploymentConfigSpec;
use super::ids::{CommitId, ConfigKey, Destination, RepositoryName, RunId, ServiceKey};
use super::object::Object;
use super::outcome::Outcome;
use super::pod::PodId;
use super::project::OnFailure;
use super::time::Timestamp;
use super::wanted::Progress;

pub use controllers::{Controlled, Controllers, Leader};
pub use deployer::{Asked, Deployer};
pub use executor::{DoneBy, ExecutorRecord, triggered_by};
pub use hook::HookRecord;
pub use sequence::{Delivery, SequenceRun, SequenceState, TriggerEvent};
pub use task::{DeploymentRef, EarlierOffer, TaskLimits, TaskRecord, TaskTry};

/// What a run drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunKind {
    /// A sequence.
    Sequence,
    /// A deployment.
    Deployment,
}

impl RunKind {
    /// Its word in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            RunKind::Sequence => "sequence",
            RunKind::Deployment => "deployment",
        }
    }
}

/// One execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "run")]
pub enum Run {
    /// A sequence of a stage for one service.
    Sequence(Box<SequenceRun>),
    /// One version of one deployment config.
    Deployment(Box<DeploymentRun>),
}

impl DeploymentRun {
    /// Whether its version serves on although it failed once it was up: its project wants no rollback by itself. What a person
    /// or a newer revision ends goes back all the same.
    pub fn serves_on(&self) -> bool {
        let failed = self.failure.as_ref().is_some_and(|failure| failure.outcome == Outcome::FAIL);
        failed && !self.on_failure.goes_back() && !self.is_rollback
    }

    /// How it ended, or else what holds it back; empty if nothing is to be said.
    pub fn remark(&self) -> &str {
        if self.message.is_empty() { &self.problem } else { &self.message }
    }

    /// Whether nothing happens to it until a person resumes it.
    pub fn waits_for_a_person(&self) -> bool {
        let at_pause = matches!(self.step, DeploymentStep::Trial { part: TrialPart::Pause, .. });
        self.waits.paused_by.is_some() || (at_pause && self.waits.until.is_none())
    }

    /// Whether something is known to be in its way. What pods say of themselves is among it, which changes seldom.
    pub fn is_delayed(&self) -> bool {
        !self.problem.is_empty()
    }
}

impl Run {
    /// Its identity.
    pub fn id(&self) -> &RunId {
        match self {
            Run::Sequence(run) => &run.id,
            Run::Deployment(run) => &run.id,
        }
    }

    /// It, if it is a sequence's.
    pub fn sequence(&self) -> Option<&SequenceRun> {
        match self {
            Run::Sequence(run) => Some(run),
            Run::Deployment(_) => None,
        }
    }

    /// Whether nothing will happen to it any more.
    pub fn is_ended(&self) -> bool {
        self.ended_at().is_some()
    }

    /// When it ended.
    pub fn ended_at(&self) -> Option<Timestamp> {
        match self {
            Run::Sequence(run) => run.ended_at,
            Run::Deployment(run) => run.ended_at,
        }
    }

    /// When it was created.
    pub fn created_at(&self) -> Timestamp {
        match self {
            Run::Sequence(run) => run.created_at,
            Run::Deployment(run) => run.created_at,
        }
    }

    /// The run-once pod whose end it waits for.
    pub fn awaited_pod(&self) -> Option<PodId> {
        let (destination, name, outcome) = match self {
            Run::Sequence(run) => {
                let last = run.tasks.iter().rev().find_map(|task| task.tries.last())?;
                (&run.destination, &last.pod, &last.outcome)
            }
            Run::Deployment(run) => {
                let last = run.hooks.last()?;
                (&run.destination, &last.pod, &last.outcome)
            }
        };
        let awaited = outcome.is_none() && !self.is_ended();
        awaited.then(|| PodId { namespace: destination.namespace.clone(), name: name.clone() })
    }

    /// The service it belongs to.
    pub fn service(&self) -> ServiceKey {
        match self {
            Run::Sequence(run) => run.service.clone(),
            Run::Deployment(run) => ServiceKey {
                project: run.config.project.clone(),
                stage: run.config.stage.clone(),
                service: run.service.clone(),
            },
        }
    }

    /// The repository and revision it serves.
    pub fn revision(&self) -> (&RepositoryName, &CommitId) {
        match self {
            Run::Sequence(run) => (&run.repository, &run.commit),
            Run::Deployment(run) => (&run.repository, &run.commit),
        }
    }
}

/// Version *n* of a deployment config: an immutable record of what was asked, and its status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeploymentRun {
    /// `<project>/<stage>/<name>-<n>`.
    pub id: RunId,
    /// The deployment config.
    pub config: ConfigKey,
    /// The service it is delivered with.
    pub service: super::ids::ServiceName,
    /// Where its pods live.
    pub destination: Destination,
    /// Whose revision.
    pub repository: RepositoryName,
    /// The revision.
    pub commit: CommitId,
    /// The sequence run that asked for it.
    pub parent: RunId,
    /// *n*.
    pub version: u32,
    /// 1, and more for each `rollout retry`.
    pub attempt: u32,
    /// Why: `config change`, `manual change`, …
    pub cause: String,
    /// The same as data, of all of its attempts; nothing, if it is older than that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// Whether a person goes back to what ran before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_rollback: bool,
    /// What was asked.
    pub object: Arc<Object>,
    /// The same, typed.
    #[serde(skip)]
    pub spec: DeploymentConfigSpec,
    /// How many pods it is to have: a person may have asked for another number than the files.
    pub replicas: u32,
    /// What served when it started: what serves again if it fails.
    pub previous: Option<u32>,
    /// The version as which that comes back, where nothing of it was left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored_as: Option<u32>,
    /// The version after whose failure this one has come back by itself: no step of its own brought it, and no hook ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored_after: Option<u32>,
    /// OpenShift's word for where it is.
    pub phase: Phase,
    /// Where exactly it is.
    pub step: DeploymentStep,
    /// Every run of every hook, in order.
    pub hooks: Vec<HookRecord>,
    /// The generation of `Wanted` that it waits for.
    pub generation: u64,
    /// How far the rollout is.
    pub progress: Progress,
    /// What holds new pods back, for people; empty if nothing is known.
    pub problem: String,
    /// What keeps a `Service` from listening that leads to the new pods, which are all there, for people; empty if nothing
    /// does, or if its delivery has brought that. Going back does not help.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub not_listening: String,
    /// Why it goes no further for now.
    #[serde(default)]
    pub waits: Waits,
    /// The step of a trial at which a person had it skip what is left before it gets everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promoted: Option<u16>,
    /// Where its deployer is, if it has one of the user's own.
    #[serde(default, skip_serializing_if = "Deployer::is_untouched")]
    pub deployer: Deployer,
    /// The replication controllers that it deploys beside its own pods.
    #[serde(default, skip_serializing_if = "Controllers::is_empty")]
    pub controllers: Controllers,
    /// The deployment that leads it, if it is a replication controller's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub led_by: Option<Leader>,
    /// Set once it will not complete: how and why.
    pub failure: Option<DeploymentFailure>,
    /// What its project says of deployments that fail.
    #[serde(default, skip_serializing_if = "OnFailure::is_automatic")]
    pub on_failure: OnFailure,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How it ended, for people.
    pub message: String,
}

/// OpenShift's phases of a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// Accepted; images are prepared, the pre hook runs.
    New,
    /// The rollout was asked for and no new pod is there yet.
    Pending,
    /// New pods are there; mid and post hooks run.
    Running,
    /// It serves.
    Complete,
    /// It does not serve, and never will.
    Failed,
}

impl Phase {
    /// Upstream's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::New => "New",
            Phase::Pending => "Pending",
            Phase::Running => "Running",
            Phase::Complete => "Complete",
            Phase::Failed => "Failed",
        }
    }
}

/// The steps of a deployment, in the order in which they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DeploymentStep {
    /// Images are installed and built.
    Prepare,
    /// The pre hook.
    Pre,
    /// A deployer of the user's own says what runs.
    Deployer,
    /// Recreate only: old pods end.
    ScaleDown,
    /// Rolling with a mid hook only: until the first new pod is available.
    FirstPod,
    /// Canary and blue/green only: the new version proves itself beside the one that serves.
    Trial {
        /// Which step, from 1; blue/green has one.
        step: u16,
        /// Which part of it.
        part: TrialPart,
    },
    /// The mid hook.
    Mid,
    /// New pods take over.
    Rollout,
    /// The post hook.
    Post,
    /// It failed, and the previous version takes over again; or it is that one, which comes back as a version of its own.
    Restore,
    /// It ended.
    Done,
}

impl DeploymentStep {
    /// Whether pods of one version take the place of another's in it.
    pub fn exchanges(self) -> bool {
        let trial = matches!(self, Self::Trial { part: TrialPart::Weight, .. });
        trial || matches!(self, Self::ScaleDown | Self::FirstPod | Self::Rollout | Self::Restore)
    }
}

/// The parts of a step in which a new version proves itself, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TrialPart {
    /// It gets its part of the replicas and of the traffic.
    Weight,
    /// That stays so for a while.
    Pause,
    /// A command judges it.
    Analysis,
}

/// Why a deployment goes no further for now, and everything stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Waits {
    /// Since when its time stands still; absent while it goes on.
    pub since: Option<Timestamp>,
    /// Until when a step pauses that pauses for so long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Who or what has it stay where it is, whatever its step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_by: Option<String>,
    /// Milliseconds that it has waited so far, which count for no deadline.
    pub waited_ms: u64,
}

/// Why a deployment will not complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeploymentFailure {
    /// In which step it happened.
    pub step: DeploymentStep,
    /// How it counts.
    pub outcome: Outcome,
    /// What happened, for people.
    pub message: String,
}
