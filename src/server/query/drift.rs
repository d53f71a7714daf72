//! What waits to bring what Git says.

use std::collections::BTreeMap;

use super::Query;
use crate::error::Result;
use crate::model::ids::ServiceKey;
use crate::model::run::{Run, SequenceRun};
use crate::model::state::ConfigState;

/// The deliveries that wait, by service.
pub(super) type Waiting = BTreeMap<ServiceKey, Vec<SequenceRun>>;

impl Query {
    /// What holds keep from deployment configs, oldest first.
    pub(super) async fn held_back(&self, configs: &[ConfigState]) -> Result<Waiting> {
        let holds = self.store.holds().await?.found;
        let covered = |service: &ServiceKey| {
            holds.iter().any(|hold| hold.scope.covers(&service.project, &service.stage, &service.service))
        };
        let mut found = Waiting::new();
        for service in configs.iter().map(ConfigState::service_key).filter(covered) {
            if found.contains_key(&service) {
                continue;
            }
            let mut waits = Vec::new();
            for id in self.store.slot(&service).await?.into_iter().flat_map(|slot| slot.value.waiting) {
                if let Some(Run::Sequence(run)) = self.store.run(&id).await?.map(|run| run.value) {
                    waits.push(*run);
                }
            }
            found.insert(service, waits);
        }
        Ok(found)
    }
}
