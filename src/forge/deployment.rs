//! Deployments and environments through the API of a host: what those share that have them.
//!
//! A host keeps a deployment for each time that a revision was brought to a stage, and what became of it. It is asked for
//! before it is made, so that there is no second one where an answer was lost or the daemon died before it came.

use std::collections::BTreeSet;

use async_trait::async_trait;

use super::answer::Words;
use super::api;
use super::ask::Ask;
use super::hosted::{Hosted, by_commit};
use super::{Refusal, StatusWriter, Subject};
use crate::error::{Failure, Result};
use crate::model::commit_status::CommitStatus;
use crate::model::ids::WriterName;
use crate::report::deployments::Deployment;

/// Each takes some requests; a call should end within seconds.
const BATCH: usize = 10;

/// The answers by which a host refuses one deployment, whatever it takes elsewhere.
pub(super) const REFUSED: &[(u16, &str)] = &[(400, ""), (422, "")];

/// What is to be reported about a deployment.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeploymentReport<'a> {
    pub(super) status: &'a CommitStatus,
    pub(super) deployment: &'a Deployment,
}

/// What a host does with what it is told.
#[derive(Debug)]
pub(super) enum Heard {
    /// It takes it.
    Taken,
    /// It does not have the commit any more.
    Gone,
    /// It takes none in this environment, or not this one; why, after the environment's name.
    Refused(Failure),
}

impl Heard {
    /// What an answer says by which a deployment is refused, where its commit is there. `rights` are what the token needs.
    pub(super) fn refused(answer: &api::Answer, rights: &'static str) -> Self {
        let status = answer.status.as_u16();
        Heard::Refused(match status {
            403 => Failure::stalled("the token may not deploy there").hint(rights),
            _ => Failure::stalled(format!("the host takes no such deployment: {status}")),
        })
    }
}

/// A host's API of deployments.
#[async_trait]
pub(super) trait DeploymentApi: Send + Sync + std::fmt::Debug {
    /// What the writer is called.
    fn writer(&self) -> &'static str;

    /// What is said of the host, and which rights deployments need.
    fn words(&self) -> Words;

    /// Has the host say it of the deployment, which is made if it is not there.
    async fn tell(&self, ask: Ask<'_>, report: DeploymentReport<'_>) -> Result<Heard>;
}

#[async_trait]
impl StatusWriter for Hosted<dyn DeploymentApi> {
    fn name(&self) -> WriterName {
        self.api.writer().into()
    }

    fn subject(&self) -> Subject {
        Subject::Deployments
    }

    /// What is refused of one commit, or in one environment, does not keep the others from being told; its failure comes back.
    async fn write(&self, statuses: &[CommitStatus]) -> Result<(), Refusal> {
        self.client.ready()?;
        let (client, words) = (&self.client, self.api.words());
        let ask = Ask { client, words, what: "create deployments", busy: &[409], absent: &[] };
        let (mut outcome, mut refused, mut why) = (Ok(()), BTreeSet::new(), None);
        for status in by_commit(statuses).into_iter().flat_map(|(_, statuses)| statuses) {
            let report = DeploymentReport { status, deployment: &Deployment::of(status) };
            match self.api.tell(ask, report).await? {
                Heard::Taken => {}
                Heard::Gone => {
                    let (name, commit) = (ask.words.name, status.commit.short());
                    let gone = Failure::stalled(format!("{name} takes no deployment of {commit}"));
                    outcome = outcome.and(Err(Refusal::Commit(gone.hint("its branch may have been rewritten"))));
                }
                Heard::Refused(failure) => {
                    refused.insert(report.deployment.stage.clone());
                    why.get_or_insert(failure);
                }
            }
        }
        match why {
            Some(failure) => outcome.and(Err(Refusal::Environments { refused, failure })),
            None => outcome,
        }
    }

    fn batch(&self) -> usize {
        BATCH
    }
}
