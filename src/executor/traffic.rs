//! Which versions share the traffic, and whose turn it is to apply a service that divides its own among them.

use std::array;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::Result;
use crate::model::ids::{ConfigKey, ProjectName, StageName};
use crate::model::state::ConfigState;
use crate::model::transaction::ObjectPlace;
use crate::model::wanted::Wanted;
use crate::store::ReadStore;

/// How many services are applied at once at most. Two may wait for each other without need.
const TURNS: usize = 16;

/// Deployment configs whose versions share the traffic; whoever reads them copies none.
pub(super) type Sharing = Arc<BTreeMap<ConfigKey, Wanted>>;

/// What is known of it.
#[derive(Debug)]
pub(super) struct Traffic {
    sharing: Mutex<Sharing>,
    /// Whether it was read from the store once.
    is_known: AtomicBool,
    turns: [tokio::sync::Mutex<()>; TURNS],
}

impl Default for Traffic {
    fn default() -> Self {
        let (sharing, is_known) = Default::default();
        Self { sharing, is_known, turns: array::from_fn(|_| tokio::sync::Mutex::default()) }
    }
}

impl Traffic {
    /// Which versions share the traffic: before services are told anything, so that none gets what is not its own.
    pub(super) async fn take_stock(&self, store: &dyn ReadStore) -> Result<()> {
        if self.is_known.load(Ordering::Relaxed) {
            return Ok(());
        }
        let configs = store.configs(None, None).await?.found.into_iter().map(|config| config.value);
        configs.filter(|state| state.wanted.shares_traffic()).for_each(|state| self.note(&state));
        self.is_known.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Notes whether a deployment config has versions that share the traffic.
    pub(super) fn note(&self, state: &ConfigState) {
        if !state.wanted.shares_traffic() {
            return self.forget(&state.key);
        }
        let mut sharing = self.lock();
        if sharing.get(&state.key) != Some(&state.wanted) {
            Arc::make_mut(&mut sharing).insert(state.key.clone(), state.wanted.clone());
        }
    }

    /// None of a deployment config's versions shares it.
    pub(super) fn forget(&self, config: &ConfigKey) {
        let mut sharing = self.lock();
        if sharing.contains_key(config) {
            Arc::make_mut(&mut sharing).remove(config);
        }
    }

    /// Whose versions share it now.
    pub(super) fn sharing(&self) -> Sharing {
        Arc::clone(&self.lock())
    }

    /// For as long as this is kept, nobody else applies the service in a place: who reads first what is shared and then what
    /// there is would else overwrite what somebody has found later.
    pub(super) async fn turn(&self, place: &ObjectPlace) -> tokio::sync::MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        (&place.project, &place.stage, &place.key.name).hash(&mut hasher);
        let turn = usize::try_from(hasher.finish() % TURNS as u64).unwrap_or_default();
        self.turns[turn].lock().await
    }

    fn lock(&self) -> MutexGuard<'_, Sharing> {
        self.sharing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether versions of any deployment config of a stage share the traffic.
pub(super) fn are_shared(sharing: &Sharing, project: &ProjectName, stage: &StageName) -> bool {
    let first = ConfigKey { project: project.clone(), stage: stage.clone(), name: String::new() };
    let next = sharing.range(first..).next();
    next.is_some_and(|(config, _)| (&config.project, &config.stage) == (project, stage))
}
