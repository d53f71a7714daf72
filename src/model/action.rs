//! What a step of a run asks for.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::cloud_event::CloudEvent;
use super::comment::CommentCommand;
use super::evaluation::{Measurement, Reading};
use super::event::{Event, Timer};
use super::ids::{CommitId, ConfigKey, PodName, RepositoryName, RunId, ServiceKey, SinkName, WriterName};
use super::outcome::Outcome;
use super::plan::Change;
use super::pod::{Pod, PodId};
use super::time::Timestamp;
use super::wanted::{Pace, Target};

/// Everything that a step of a run decided, besides the run itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decided {
    /// Remembered in the same transaction as the run.
    pub effects: Vec<Effect>,
    /// Put into the outbox in the same transaction, and performed after it.
    pub actions: Vec<Action>,
}

/// A consequence inside the store; committed together with the run that decided it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Another run receives an event.
    Tell {
        /// Who.
        run: RunId,
        /// What.
        event: Event,
    },
    /// Changes without a deployment are accepted: created, updated, deleted or scaled.
    Apply {
        /// The sequence run that asks.
        by: RunId,
        /// What.
        change: Box<Change>,
    },
    /// A deployment config gets its next version, and a run for it.
    StartDeployment {
        /// The sequence run that asks, and hears when it ends.
        by: RunId,
        /// What.
        change: Box<Change>,
    },
    /// What a revision has deployed of a service is to go back; the run hears what of it does.
    GoBack {
        /// The sequence run.
        by: RunId,
        /// Which of its tasks, counted from 0.
        task: usize,
    },
    /// A deployment config goes back to a version, by a next one that has its content.
    RollBack {
        /// The sequence run that asks, and hears when that ends.
        by: RunId,
        /// The deployment config's name.
        config: String,
        /// The version.
        to: u32,
    },
    /// What a deployment has taken the place of, and nothing is left of, comes back as the next version.
    Restore {
        /// The deployment config.
        config: ConfigKey,
        /// The deployment's version, which has failed.
        after: u32,
    },
    /// A deployment takes what its deployment config should run into its hands: from now on it alone changes that.
    Own {
        /// Which.
        config: ConfigKey,
        /// The run.
        by: RunId,
    },
    /// What a deployment config should run changes; refused, and the run told so, if another one has it in its hands.
    Want {
        /// Which.
        config: ConfigKey,
        /// The run that asks, and waits for it.
        by: RunId,
        /// The value of `Wanted::generation` that it waits for.
        generation: u64,
        /// What each version is to have.
        targets: BTreeMap<u32, Target>,
        /// The version that serves until then.
        fallback: Option<u32>,
        /// How.
        pace: Pace,
        /// Whether every version stays as it is for now.
        stays: bool,
    },
    /// Tags of image streams are given images beside the files; the run hears what came of it.
    TagImages {
        /// The deployment whose hook asks.
        by: RunId,
        /// What it waits for, as if that were the hook's pod.
        pod: PodName,
        /// The tags, as `<stream>:<tag>`, each with its image.
        tags: Vec<(String, String)>,
    },
    /// A task's objectives are judged by what was measured; the run hears what came of it.
    Judge {
        /// The sequence run.
        by: RunId,
        /// Which of its tasks, counted from 0.
        task: usize,
        /// For which time.
        at: Timestamp,
        /// By indicator; what was given stands in the run.
        readings: BTreeMap<String, Reading>,
    },
    /// A replication controller goes that the version which serves now does not have.
    Remove {
        /// Which.
        config: ConfigKey,
    },
    /// A deployment ended.
    DeploymentEnded {
        /// Of which deployment config.
        config: ConfigKey,
        /// The run.
        by: RunId,
        /// Which version.
        version: u32,
        /// How.
        outcome: Outcome,
    },
    /// A stage has passed a service's content.
    Passed {
        /// Which service in which stage.
        service: ServiceKey,
        /// The content.
        content: super::ids::Digest,
        /// On which revision.
        commit: CommitId,
        /// By which sequence.
        procedure: super::ids::Digest,
    },
    /// A stage has judged a service's content once more, and it did not pass: whatever it said before, no later stage takes
    /// it now.
    NotPassed {
        /// Which service in which stage.
        service: ServiceKey,
        /// The content.
        content: super::ids::Digest,
    },
    /// A sequence ended: stages whose turn it is are started.
    Finished {
        /// Which.
        run: RunId,
        /// How.
        outcome: Outcome,
    },
}

/// An effect outside the store. Each is short and idempotent; waiting is a timer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "action")]
pub enum Action {
    /// Make the images of a pod runnable, then tell the run.
    Prepare {
        /// A pod with the images; it is not started.
        pod: Box<Pod>,
        /// Whether images that could not be made runnable before are tried again.
        again: bool,
    },
    /// Start a run-once pod; its end is observed.
    RunPod {
        /// The pod.
        pod: Box<Pod>,
    },
    /// End a pod.
    StopPod {
        /// Which.
        pod: PodId,
    },
    /// Tell the run when the time has come.
    SetTimer {
        /// Which.
        timer: Timer,
        /// When.
        due: Timestamp,
    },
    /// Forget a timer.
    ClearTimer {
        /// Which.
        timer: Timer,
    },
    /// Measure what a task's objectives are about, then tell the run.
    Measure {
        /// Which of the run's tasks, counted from 0.
        task: usize,
        /// What is asked.
        measurement: Box<Measurement>,
    },
    /// Write the statuses of a revision.
    Report {
        /// The repository.
        repository: RepositoryName,
        /// The revision.
        commit: CommitId,
        /// To where.
        writer: WriterName,
    },
    /// Bring a proposed rollback to its host, or hear there what became of it.
    Propose {
        /// The repository.
        repository: RepositoryName,
        /// The proposal.
        branch: String,
    },
    /// Tell a sink what happened.
    Send {
        /// Whom.
        sink: SinkName,
        /// The sequence run to which it happened.
        about: RunId,
        /// What, as it was then.
        event: Box<CloudEvent>,
    },
    /// Tell in the open pull requests of a repository what merging them would do.
    Preview {
        /// The repository.
        repository: RepositoryName,
    },
    /// Carry out what a person asks for in a comment on a pull request, or answer what came of it.
    Comment {
        /// The repository.
        repository: RepositoryName,
        /// What.
        command: Box<CommentCommand>,
    },
}

/// In whose name statuses are asked for: they belong to a revision, not to one run.
pub const REPORTS: &str = "report";

impl Action {
    /// A report about a commit by a writer.
    pub fn report(repository: &RepositoryName, commit: &CommitId, writer: &WriterName) -> Self {
        let (repository, commit, writer) = (repository.clone(), commit.clone(), writer.clone());
        Self::Report { repository, commit, writer }
    }

    /// What a person asks for in a comment.
    pub fn comment(repository: &RepositoryName, command: CommentCommand) -> Self {
        Self::Comment { repository: repository.clone(), command: Box::new(command) }
    }

    /// In whose name a repository's proposals are brought to its host: one after the other.
    pub fn proposals_of(repository: &RepositoryName) -> RunId {
        RunId::new(format!("proposals/{repository}"))
    }

    /// In whose name a repository's pull requests are planned.
    pub fn previews_of(repository: &RepositoryName) -> RunId {
        RunId::new(format!("previews/{repository}"))
    }

    /// In whose name is done what people ask for in comments on a repository's pull requests: one after the other.
    pub fn comments_of(repository: &RepositoryName) -> RunId {
        RunId::new(format!("comments/{repository}"))
    }

    /// In whose name events of a context are told: one after the other.
    pub fn events_of(context: &str) -> RunId {
        RunId::new(format!("events/{context}"))
    }

    /// The action's key among those of its run: a second one with the same key replaces the first.
    pub fn key(&self) -> String {
        let pod = |name: &PodName| name.as_str().to_owned();
        match self {
            Action::Prepare { .. } => "prepare".into(),
            Action::RunPod { pod: asked } => Action::run_pod_key(&asked.id.name),
            Action::StopPod { pod: asked } => format!("stop-pod/{}", pod(&asked.name)),
            Action::SetTimer { timer, .. } | Action::ClearTimer { timer } => format!("timer/{}", timer.as_str()),
            Action::Measure { task, .. } => format!("measure/{task}"),
            Action::Report { repository, commit, writer } => format!("report/{repository}/{commit}/{writer}"),
            Action::Propose { branch, .. } => format!("propose/{branch}"),
            Action::Preview { .. } => "preview".to_owned(),
            Action::Comment { command, .. } => format!("comment/{}/{}", command.comment, command.place),
            Action::Send { sink, event, .. } => format!("send/{sink}/{}/{}/{}", event.kind, event.source, event.id),
        }
    }

    /// The key of [`Action::RunPod`].
    pub fn run_pod_key(pod: &PodName) -> String {
        format!("run-pod/{pod}")
    }

    /// Who performs it.
    pub fn lane(&self) -> Lane {
        match self {
            Action::Prepare { .. } => Lane::Images,
            Action::Measure { .. } => Lane::Measurements,
            Action::Propose { .. } | Action::Comment { .. } => Lane::Proposals,
            Action::Preview { .. } => Lane::Previews,
            Action::Send { sink, .. } => Lane::Sink(sink.clone()),
            Action::Report { repository, writer, .. } => {
                Lane::Statuses { repository: repository.watched(), writer: writer.clone() }
            }
            Action::RunPod { .. } | Action::StopPod { .. } | Action::SetTimer { .. } | Action::ClearTimer { .. } => {
                Lane::Runs
            }
        }
    }

    /// How it stands to the others in its lane.
    pub fn priority(&self) -> Priority {
        match self {
            Action::StopPod { .. } => Priority::Ending,
            Action::SetTimer { timer, .. } | Action::ClearTimer { timer } => match timer {
                Timer::Deadline | Timer::Progress | Timer::Start | Timer::Finish => Priority::Ending,
                Timer::Retry | Timer::Delay => Priority::Beginning,
            },
            Action::Prepare { .. }
            | Action::RunPod { .. }
            | Action::Measure { .. }
            | Action::Report { .. }
            | Action::Propose { .. }
            | Action::Preview { .. }
            | Action::Comment { .. }
            | Action::Send { .. } => Priority::Beginning,
        }
    }
}

/// Which of the actions that are due in one lane is performed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// It ends what nobody wants any more, or what has taken too long: others wait for the room and the slot, and a
    /// rollout that failed owes the version that served before.
    Ending,
    /// It begins something, goes on with it, or tells of it.
    Beginning,
}

impl Priority {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Ending, Self::Beginning];

    /// By how much an ending overtakes beginnings. What has waited longer goes first all the same, so that nothing waits
    /// for ever however much ends.
    const HEAD_START: Duration = Duration::from_secs(60);

    /// The order among what is due: the earliest goes first.
    pub fn turn(self, due: Timestamp) -> Timestamp {
        match self {
            Priority::Ending => due,
            Priority::Beginning => due + Self::HEAD_START,
        }
    }
}

/// What performs actions independently of others: nothing in one lane waits for anything in another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// What runs do and wait for: pods, timers.
    Runs,
    /// What takes long and uses the whole machine: images.
    Images,
    /// What is asked of monitoring, which may be slow.
    Measurements,
    /// Proposed rollbacks, and what people ask for in comments, which wait for hosts: each of these of a repository one after the
    /// other.
    Proposals,
    /// What merging pull requests would do, which is planned for each of them.
    Previews,
    /// What is written to one place about one repository.
    Statuses {
        /// The repository.
        repository: RepositoryName,
        /// The place.
        writer: WriterName,
    },
    /// What one sink is told.
    Sink(SinkName),
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lane::Runs => f.write_str("runs"),
            Lane::Images => f.write_str("images"),
            Lane::Measurements => f.write_str("measurements"),
            Lane::Proposals => f.write_str("proposals"),
            Lane::Previews => f.write_str("previews"),
            Lane::Statuses { repository, writer } => write!(f, "statuses/{repository}/{writer}"),
            Lane::Sink(sink) => write!(f, "sinks/{sink}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ending_overtakes_beginnings_that_have_not_waited_for_long() {
        let ending = Priority::Ending.turn(Timestamp(60_000));
        assert!(ending < Priority::Beginning.turn(Timestamp(1)));
        assert!(ending > Priority::Beginning.turn(Timestamp(-1)));
    }

    #[test]
    fn limits_are_endings_and_pauses_are_not() {
        let of = |timer| Action::SetTimer { timer, due: Timestamp(0) }.priority();
        let endings: Vec<Timer> = Timer::ALL.into_iter().filter(|timer| of(*timer) == Priority::Ending).collect();
        assert_eq!(endings, [Timer::Deadline, Timer::Progress, Timer::Start, Timer::Finish]);
    }
}
