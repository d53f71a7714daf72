//! What a deployer of the user's own reads of its deployment.

use super::Query;
use crate::clock::{Clock, SystemClock};
use crate::engine::deployment::deployer::at_work;
use crate::engine::deployment::observed::Observed;
use crate::model::run::{Controlled, DeploymentRun, Run};
use crate::server::problem::Answer;
use crate::server::view::{ControllerPods, DeployerView};

impl Query {
    /// A deployment with what runs of it; nothing, unless its deployer is at work.
    pub(in crate::server) async fn deployment_of(&self, run: &DeploymentRun) -> Answer<Option<DeployerView>> {
        let state = self.store.config(&run.config).await?.map(|state| state.value);
        let Some(state) = state.filter(|_| at_work(run).is_some()) else { return Ok(None) };
        let pods = self.runtime()?.observe_config(&run.destination.namespace, &run.config).await?;
        let observed = Observed::count(&pods, &run.config, state.wanted.min_ready_seconds, SystemClock.now());
        let mut controllers = Vec::new();
        for controlled in &run.controllers.all {
            controllers.extend(self.controller_of(run, controlled).await?);
        }
        Ok(Some(DeployerView::new(run, &state, &observed, controllers)))
    }

    async fn controller_of(&self, run: &DeploymentRun, controlled: &Controlled) -> Answer<Option<ControllerPods>> {
        let config = run.controller(&controlled.name);
        let Some(state) = self.store.config(&config).await?.map(|state| state.value) else { return Ok(None) };
        let follower = match self.store.run(&run.deployment_of(controlled)).await?.map(|run| run.value) {
            Some(Run::Deployment(follower)) if controlled.is_new => Some(follower),
            _ => None,
        };
        let pods = self.runtime()?.observe_config(&run.destination.namespace, &config).await?;
        let observed = Observed::count(&pods, &config, state.wanted.min_ready_seconds, SystemClock.now());
        Ok(Some(ControllerPods::new(controlled, follower.as_deref(), &state, &observed)))
    }
}
