//! What keeps a deployment waiting whose pods are all there: the `Service` objects that lead to them.

use super::Reconciler;
use crate::engine::deployment::serve::Serving;
use crate::error::Result;
use crate::model::ids::RunId;
use crate::model::pod::ObservedPod;
use crate::model::run::{Run, SequenceRun};
use crate::model::state::ConfigState;

impl Reconciler {
    /// What keeps the services from listening that lead to a deployment config's pods, if the run waits for them that brings
    /// these up, and whether its delivery has changed one of these. Once all pods are there, the services are asked; until
    /// then it is as it was found last.
    pub(super) async fn not_listening(
        &self,
        owner: &RunId,
        state: &ConfigState,
        serving: &Serving,
        pods: &[ObservedPod],
    ) -> Result<(String, bool)> {
        let services = self.services();
        let places = services.leading_to(state, pods);
        if places.is_empty() {
            return Ok(Default::default());
        }
        let owner = self.driver.store.run(owner).await?.map(|run| run.value);
        let Some(Run::Deployment(run)) = owner else { return Ok(Default::default()) };
        if !run.awaits_services() {
            return Ok(Default::default());
        }
        if serving.converged {
            services.reconcile_some(&places).await;
        }
        let problems = services.problems(&places);
        if problems.is_empty() {
            return Ok((problems, false));
        }
        let delivery = self.driver.store.run(&run.parent).await?.map(|run| run.value);
        let mut changed = delivery.iter().filter_map(Run::sequence).flat_map(SequenceRun::changed_services);
        let brought = changed.any(|place| places.contains(&place) && services.has_problem(&place));
        Ok((problems, brought))
    }
}
