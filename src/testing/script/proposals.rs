//! How a story proposes rollbacks: `propose dev/web`, `merge 1`.

use crate::engine::rollback::propose::propose;
use crate::engine::transition::Transition;
use crate::error::Result;
use crate::forge::pull_request::PullRequestState;
use crate::model::ids::RepositoryName;
use crate::model::proposal::Proposal;
use crate::simulation::world::REPOSITORY;
use crate::testing::script::{Play, number, rollback};

impl Play<'_> {
    /// A person proposes that Git says again what was.
    pub(super) async fn propose(&mut self, words: &[&str]) -> Result<()> {
        let (asked, declared) = (rollback::asked(words)?, self.pushed.clone());
        let repository = RepositoryName::new(REPOSITORY);
        let decide = |it: &mut Transition<'_>| propose(it, &repository, &asked, &declared, "ann");
        let (_, proposal) = self.world.driver.decide(decide).await?;
        self.tell_all(vec![proposal.remark()]);
        Ok(())
    }

    /// A person decides about a pull request.
    pub(super) fn decide(&self, pull: &str, state: PullRequestState) -> Result<()> {
        self.world.hosting.decide(number(pull)?, state);
        Ok(())
    }

    /// What is proposed, as it is remembered, and as its host has it.
    pub(super) async fn proposals(&self) -> Result<Vec<String>> {
        let repository = self.world.driver.store.repository(&RepositoryName::new(REPOSITORY)).await?;
        let proposals = repository.map(|repository| repository.value.proposals).unwrap_or_default();
        Ok(proposals.iter().map(Proposal::remark).chain(self.world.hosting.shown()).collect())
    }
}
