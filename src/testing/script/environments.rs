//! A host whose environments show what is deployed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use crate::error::Failure;
use crate::forge::{Refusal, StatusWriter, Subject};
use crate::model::commit_status::CommitStatus;
use crate::model::ids::{RepositoryName, StageName, WriterName};
use crate::report::deployments::Deployment;
use crate::simulation::world::{REPOSITORY, World};

/// The deployments that it has; it outlives the daemon.
#[derive(Clone, Debug, Default)]
pub(super) struct Environments(Arc<Mutex<Host>>);

#[derive(Debug, Default)]
struct Host {
    /// In the order in which they were made, each with all that was said of it.
    deployments: Vec<Vec<CommitStatus>>,
    mood: Mood,
    /// The environments in which it takes none.
    protected: BTreeSet<StageName>,
}

/// What it does with what it is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mood {
    #[default]
    Takes,
    /// It is out of reach.
    IsAway,
    /// It takes it, and its answer is lost.
    LosesAnswers,
}

impl Environments {
    /// From now on a world's daemon tells of deployments there.
    pub(super) fn join(&self, world: &World) {
        world.reporter.write_to(&RepositoryName::new(REPOSITORY), vec![Arc::new(self.clone())]);
    }

    pub(super) fn becomes(&self, mood: Mood) {
        self.host().mood = mood;
    }

    /// From now on nothing is taken in this environment, or in all of them something.
    pub(super) fn protects(&self, stage: Option<StageName>) {
        self.host().protected = stage.into_iter().collect();
    }

    /// Each deployment, the oldest first, with what became of it.
    pub(super) fn shown(&self) -> Vec<String> {
        let told = |deployment: &Vec<CommitStatus>| {
            let states: Vec<&str> = deployment.iter().map(|status| status.state.as_str()).collect();
            let last = deployment.last().map(|last| {
                format!("{} {}: {}, {}", last.commit.short(), last.context, states.join(" then "), last.description)
            });
            last.unwrap_or_default()
        };
        self.host().deployments.iter().map(told).collect()
    }

    fn host(&self) -> std::sync::MutexGuard<'_, Host> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl StatusWriter for Environments {
    fn name(&self) -> WriterName {
        "environments".into()
    }

    fn subject(&self) -> Subject {
        Subject::Deployments
    }

    async fn write(&self, statuses: &[CommitStatus]) -> Result<(), Refusal> {
        let mut host = self.host();
        if host.mood == Mood::IsAway {
            return Err(Refusal::Busy(Failure::transient("out of reach")));
        }
        let mut refused = BTreeSet::new();
        for status in statuses {
            let stage = Deployment::of(status).stage;
            if host.protected.contains(&stage) {
                refused.insert(stage);
                continue;
            }
            let is_it = |known: &CommitStatus| (&known.commit, &known.context) == (&status.commit, &status.context);
            match host.deployments.iter_mut().find(|deployment| deployment.last().is_some_and(is_it)) {
                Some(deployment) if deployment.last().is_some_and(|last| last.reads_like(status)) => {}
                Some(deployment) => deployment.push(status.clone()),
                None => host.deployments.push(vec![status.clone()]),
            }
        }
        match host.mood {
            Mood::LosesAnswers => Err(Refusal::Busy(Failure::transient("no answer"))),
            _ if refused.is_empty() => Ok(()),
            _ => Err(Refusal::Environments { refused, failure: Failure::stalled("it is protected") }),
        }
    }

    fn batch(&self) -> usize {
        2
    }
}
