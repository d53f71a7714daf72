//! Which versions share the traffic, and the services that divide theirs among them.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

use super::Reconciler;
use crate::error::Result;
use crate::model::ids::ConfigKey;
use crate::model::pod::ObservedPod;
use crate::model::state::ConfigState;
use crate::model::wanted::Wanted;

/// Deployment configs whose versions share the traffic; whoever reads them copies none.
pub(super) type Sharing = Arc<BTreeMap<ConfigKey, Wanted>>;

impl Reconciler {
    /// Which versions share the traffic: before services are told anything, so that none gets what is not its own.
    pub(super) async fn take_stock_of_traffic(&self) -> Result<()> {
        if self.knows_traffic.load(Ordering::Relaxed) {
            return Ok(());
        }
        let configs = self.driver.store.configs(None, None).await?.found.into_iter().map(|config| config.value);
        for state in configs.filter(|state| state.wanted.shares_traffic()) {
            self.note_traffic(&state);
        }
        self.knows_traffic.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Has the services divide their traffic that may have to do so otherwise: before any pod comes or goes.
    pub(super) async fn divide_traffic(&self, config: &ConfigKey, pods: &[ObservedPod]) {
        let sharing = self.sharing();
        let places = self.driver.selectors.dividing(config, sharing.contains_key(config), pods);
        self.services(&sharing).reconcile_some(&places).await;
    }

    /// Notes whether a deployment config has versions that share the traffic.
    pub(super) fn note_traffic(&self, state: &ConfigState) {
        if !state.wanted.shares_traffic() {
            return self.forget_traffic(&state.key);
        }
        let mut sharing = self.lock_sharing();
        if sharing.get(&state.key) != Some(&state.wanted) {
            Arc::make_mut(&mut sharing).insert(state.key.clone(), state.wanted.clone());
        }
    }

    pub(super) fn forget_traffic(&self, config: &ConfigKey) {
        let mut sharing = self.lock_sharing();
        if sharing.contains_key(config) {
            Arc::make_mut(&mut sharing).remove(config);
        }
    }

    /// The deployment configs whose versions share the traffic, as they are now.
    pub(super) fn sharing(&self) -> Sharing {
        Arc::clone(&self.lock_sharing())
    }

    fn lock_sharing(&self) -> MutexGuard<'_, Sharing> {
        self.sharing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
