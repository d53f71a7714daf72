//! Deployments and environments through the API of a host: what those share that have them.
//!
//! A host keeps a deployment for each time that a revision was brought to a stage, and what became of it. It is looked for
//! before it is made, so that there is no second one where an answer was lost or the daemon died before it came.

use async_trait::async_trait;

use super::answer::Words;
use super::ask::Ask;
use super::hosted::{Hosted, by_commit};
use super::{Refusal, StatusWriter, Subject};
use crate::error::{Failure, Result};
use crate::model::commit_status::CommitStatus;
use crate::model::ids::WriterName;
use crate::report::deployments::Deployment;

/// Each takes some requests; a call should end within seconds.
const BATCH: usize = 10;

/// The answers to what a host does not take of one commit, which may be gone from it.
pub(super) const REFUSED: &[(u16, &str)] = &[(400, ""), (422, "")];

/// What is to be told of a deployment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told<'a> {
    pub(super) status: &'a CommitStatus,
    pub(super) deployment: &'a Deployment,
}

/// A host's API of deployments.
#[async_trait]
pub(super) trait DeploymentApi: Send + Sync + std::fmt::Debug {
    /// What the writer is called.
    fn writer(&self) -> &'static str;

    /// What is said of the host, and which rights deployments need.
    fn words(&self) -> Words;

    /// Has the host say it of the deployment, which is made if it is not there; nothing, if the host does not take that.
    async fn tell(&self, ask: Ask<'_>, told: Told<'_>) -> Result<Option<()>>;
}

#[async_trait]
impl StatusWriter for Hosted<dyn DeploymentApi> {
    fn name(&self) -> WriterName {
        self.api.writer().into()
    }

    fn subject(&self) -> Subject {
        Subject::Deployments
    }

    /// What is refused of one commit does not keep the others from being told; its failure comes back.
    async fn write(&self, statuses: &[CommitStatus]) -> Result<(), Refusal> {
        self.client.ready()?;
        let (client, words) = (&self.client, self.api.words());
        let ask = Ask { client, words, what: "create deployments", busy: &[409], absent: &[] };
        let mut outcome = Ok(());
        for status in by_commit(statuses).into_iter().flat_map(|(_, statuses)| statuses) {
            let told = Told { status, deployment: &Deployment::of(status) };
            if self.api.tell(ask, told).await?.is_none() {
                let (name, commit) = (ask.words.name, status.commit.short());
                let refused = Failure::stalled(format!("{name} takes no deployment of {commit}"));
                outcome = outcome.and(Err(Refusal::Commit(refused.hint("its branch may have been rewritten"))));
            }
        }
        outcome
    }

    fn batch(&self) -> usize {
        BATCH
    }
}
