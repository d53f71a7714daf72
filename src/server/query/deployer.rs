//! What a deployer of the user's own reads of its deployment.

use super::Query;
use crate::clock::{Clock, SystemClock};
use crate::engine::deployment::deployer::at_work;
use crate::engine::deployment::observed::Observed;
use crate::model::run::DeploymentRun;
use crate::server::problem::Answer;
use crate::server::view::DeployerView;

impl Query {
    /// A deployment with what runs of it; nothing, unless its deployer is at work.
    pub(in crate::server) async fn deployment_of(&self, run: &DeploymentRun) -> Answer<Option<DeployerView>> {
        let state = self.store.config(&run.config).await?.map(|state| state.value);
        let Some(state) = state.filter(|_| at_work(run).is_some()) else { return Ok(None) };
        let pods = self.runtime()?.observe_config(&run.destination.namespace, &run.config).await?;
        let observed = Observed::count(&pods, &run.config, state.wanted.min_ready_seconds, SystemClock.now());
        Ok(Some(DeployerView::new(run, &state, &observed)))
    }
}
