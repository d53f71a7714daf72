//! How a story's head is pushed, and planned again once something says that it is to be.

use crate::error::Result;
use crate::model::ids::RepositoryName;
use crate::model::state::RevisionResult;
use crate::simulation::world::REPOSITORY;
use crate::testing::script::{Play, show};

impl Play<'_> {
    /// A new revision, or the last one as it was pushed.
    pub(super) async fn push(&mut self, verb: &str) -> Result<()> {
        let result = match verb {
            "push" => {
                self.pushed = self.declared.project()?;
                self.world.push(&self.pushed).await?
            }
            verb => self.world.sync_again(&self.pushed, verb == "allow-prune").await?,
        };
        self.remembers_what_is_stored().await?; // what is kept from the first moment on, too
        match result {
            RevisionResult::Planned(plan) => self.tell_all(show::plan(&plan)),
            RevisionResult::Refused { reason } => self.tell(&format!("  refused: {reason}")),
            RevisionResult::Broken { problems } => self.tell_all(problems),
        }
        Ok(())
    }

    /// What goes on by itself does, planning the head again included.
    pub(super) async fn settle(&mut self) -> Result<()> {
        self.world.settle().await?;
        while self.is_to_be_planned_again().await? {
            self.deeds();
            self.push("sync").await?;
            self.world.settle().await?;
        }
        Ok(())
    }

    async fn is_to_be_planned_again(&self) -> Result<bool> {
        let state = self.world.driver.store.repository(&RepositoryName::new(REPOSITORY)).await?;
        Ok(state.is_some_and(|state| state.value.seen.is_none() && state.value.applied.is_some() && !state.value.down))
    }
}
