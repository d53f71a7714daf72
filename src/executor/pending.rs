//! What a transition has read and what that has become, until it is committed: each record is read once, what was
//! changed here is what is read here, and each is written once, against the version that was read.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Failure, Result};
use crate::model::ids::{ConfigKey, ProjectName, RunId, ServiceKey, StageName};
use crate::model::object::{Kind, ObjectKey};
use crate::model::plan::Change;
use crate::model::run::{Run, SequenceRun};
use crate::model::state::{ConfigState, ObjectState, Versioned, Wanted};
use crate::plan::{build::object_change, config_change};
use crate::store::{Store, Write};

/// An object of a stage.
type ObjectPlace = (ProjectName, StageName, ObjectKey);

/// Records on their way to the next commit.
pub(super) struct Pending<'a> {
    store: &'a dyn Store,
    runs: BTreeMap<RunId, Versioned<Run>>,
    configs: BTreeMap<ConfigKey, Versioned<ConfigState>>,
    /// Version 0 where nothing is stored.
    objects: BTreeMap<ObjectPlace, Versioned<Option<ObjectState>>>,
    changed_runs: BTreeSet<RunId>,
    changed_configs: BTreeSet<ConfigKey>,
    changed_objects: BTreeSet<ObjectPlace>,
}

impl<'a> Pending<'a> {
    /// Nothing read yet.
    pub(super) fn new(store: &'a dyn Store) -> Self {
        Self {
            store,
            runs: BTreeMap::new(),
            configs: BTreeMap::new(),
            objects: BTreeMap::new(),
            changed_runs: BTreeSet::new(),
            changed_configs: BTreeSet::new(),
            changed_objects: BTreeSet::new(),
        }
    }

    /// The runs that were read or are new.
    pub(super) fn runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.values().map(|run| &run.value)
    }

    /// A run.
    pub(super) async fn run(&mut self, id: &RunId) -> Result<Option<Run>> {
        if !self.runs.contains_key(id)
            && let Some(stored) = self.store.run(id).await?
        {
            self.runs.insert(id.clone(), stored);
        }
        Ok(self.runs.get(id).map(|run| run.value.clone()))
    }

    /// A new run, or what has become of one that was read.
    pub(super) fn insert(&mut self, run: Run) {
        let id = run.id().clone();
        let version = self.runs.get(&id).map_or(0, |stored| stored.version);
        self.changed_runs.insert(id.clone());
        self.runs.insert(id, Versioned { version, value: run });
    }

    /// A deployment config's state.
    pub(super) async fn config(&mut self, key: &ConfigKey) -> Result<Option<&ConfigState>> {
        self.read_config(key).await?;
        Ok(self.configs.get(key).map(|state| &state.value))
    }

    /// A deployment config's state, to be changed.
    pub(super) async fn config_mut(&mut self, key: &ConfigKey) -> Result<Option<&mut ConfigState>> {
        self.read_config(key).await?;
        let state = self.configs.get_mut(key).map(|state| &mut state.value);
        if state.is_some() {
            self.changed_configs.insert(key.clone());
        }
        Ok(state)
    }

    /// The state of the deployment config that a run changes, which may be new.
    pub(super) async fn config_or_new(
        &mut self,
        key: &ConfigKey,
        run: &SequenceRun,
        change: &Change,
    ) -> Result<&mut ConfigState> {
        self.read_config(key).await?;
        if !self.configs.contains_key(key)
            && let Some(object) = &change.object
        {
            let value = ConfigState {
                key: key.clone(),
                service: object.service.clone(),
                namespace: run.namespace.clone(),
                repository: run.repository.clone(),
                object: object.clone(),
                latest_version: 0,
                serving: None,
                attempted: None,
                wanted: Wanted::default(),
                scaled: None,
                removed: false,
            };
            self.configs.insert(key.clone(), Versioned { version: 0, value });
        }
        let state = self.config_mut(key).await?;
        state.ok_or_else(|| Failure::stalled(format!("`{key}` has no content")))
    }

    async fn read_config(&mut self, key: &ConfigKey) -> Result<()> {
        if !self.configs.contains_key(key)
            && let Some(stored) = self.store.config(key).await?
        {
            self.configs.insert(key.clone(), stored);
        }
        Ok(())
    }

    /// An object that is no deployment config, where `service` is.
    pub(super) async fn object(&mut self, service: &ServiceKey, key: &ObjectKey) -> Result<Option<&ObjectState>> {
        Ok(self.object_entry(service, key).await?.1.value.as_ref())
    }

    /// Replaces an object that is no deployment config, or removes it.
    pub(super) async fn set_object(
        &mut self,
        service: &ServiceKey,
        key: &ObjectKey,
        value: Option<ObjectState>,
    ) -> Result<()> {
        let (place, stored) = self.object_entry(service, key).await?;
        stored.value = value;
        self.changed_objects.insert(place);
        Ok(())
    }

    async fn object_entry(
        &mut self,
        service: &ServiceKey,
        key: &ObjectKey,
    ) -> Result<(ObjectPlace, &mut Versioned<Option<ObjectState>>)> {
        let ServiceKey { project, stage, .. } = service;
        let place = (project.clone(), stage.clone(), key.clone());
        if !self.objects.contains_key(&place) {
            let stored = self.store.object(project, stage, key).await?;
            let (version, value) = stored.map_or((0, None), |stored| (stored.version, Some(stored.value)));
            self.objects.insert(place.clone(), Versioned { version, value });
        }
        let entry = self.objects.entry(place.clone());
        Ok((place, entry.or_insert(Versioned { version: 0, value: None })))
    }

    /// What a change that was decided earlier comes to on what is applied now. What a person asked for stays as asked.
    pub(super) async fn decide_again(&mut self, service: &ServiceKey, change: &Change) -> Result<Change> {
        let Some(object) = change.object.as_ref().filter(|_| !change.is_by_hand()) else { return Ok(change.clone()) };
        if change.key.kind == Kind::DeploymentConfig {
            return Ok(config_change::decide(object, self.config(&service.config(&change.key.name)).await?));
        }
        Ok(object_change(object, self.object(service, &change.key).await?))
    }

    /// What is to be written.
    pub(super) fn into_writes(mut self) -> Vec<Write> {
        let runs = self.changed_runs.iter().filter_map(|id| self.runs.remove(id));
        let mut writes: Vec<Write> = runs.map(|run| Write::Run(Box::new(run))).collect();
        let configs = self.changed_configs.iter().filter_map(|key| self.configs.remove(key));
        writes.extend(configs.map(|config| Write::Config(Box::new(config))));
        for place in self.changed_objects {
            let Some(Versioned { version, value }) = self.objects.remove(&place) else { continue };
            let (project, stage, key) = place;
            match value {
                Some(value) => writes.push(Write::Object(Box::new(Versioned { version, value }))),
                None if version > 0 => {
                    writes.push(Write::RemoveObject { project, stage, key: Versioned { version, value: key } });
                }
                None => {}
            }
        }
        writes
    }
}
