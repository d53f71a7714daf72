//! One deployment config, and one version of it.

use super::Query;
use crate::clock::{Clock, SystemClock};
use crate::engine::deployment::observed::Observed;
use crate::error::Result;
use crate::manifest::image_trigger::{Streams, followed};
use crate::model::ids::{ConfigKey, RunId};
use crate::model::object::{Kind, ObjectKey};
use crate::model::pod::ObservedPod;
use crate::model::pod::references::{self, Objects};
use crate::model::run::{DeploymentRun, Run};
use crate::model::state::{ConfigState, ObjectState, Version};
use crate::server::problem::{Answer, Problem};
use crate::server::view::{ConfigDetail, ConfigView, HistoryRow, Referred, VersionDetail};

impl Query {
    /// Everything about one deployment config.
    pub async fn config(&self, key: &ConfigKey) -> Answer<ConfigDetail> {
        let state = self.config_state(key).await?;
        let repository = self.store.repository(&state.repository).await?;
        let is_down = repository.is_some_and(|repository| repository.value.down);
        let config = ConfigView::from(&state).with_repository(is_down);
        let waits = self.held_back(std::slice::from_ref(&state)).await?.into_values().flatten().collect::<Vec<_>>();
        let (config, observed) = match self.pods_of(&state).await? {
            Some(pods) => {
                let observed = Observed::count(&pods, key, state.wanted.min_ready_seconds, SystemClock.now());
                (config.with_pods(&pods, &state).with_drift(&pods, &state, &waits), Some(observed))
            }
            None => (config.with_drift(&[], &state, &waits), None),
        };
        let run = match state.last_version() {
            Some(Version { number, .. }) => self.deployment(&key.deployment(*number)).await?,
            None => None,
        };
        let referred = self.referred_to(&state).await?;
        Ok(ConfigDetail::new(config, &state, run.as_ref(), observed.as_ref(), &referred))
    }

    /// One version of a deployment config.
    pub async fn version(&self, key: &ConfigKey, version: u32) -> Answer<VersionDetail> {
        let state = self.config_state(key).await?;
        let Some(run) = self.deployment(&key.deployment(version)).await? else {
            let problem = Problem::not_found("unable to find the specified revision");
            let target = state.object.target();
            return Err(problem.hint(format!("`launchway history {target} -s {}` lists what there is", key.stage)));
        };
        let row = HistoryRow::from(&run).with_scalings(&self.all_events(&key.events()).await?);
        Ok(VersionDetail::new(row, &run))
    }

    /// What is remembered of one.
    pub(super) async fn config_state(&self, key: &ConfigKey) -> Answer<ConfigState> {
        let state = self.store.config(key).await?;
        let missing = || Problem::not_found(format!("there is no deployment config `{key}`"));
        state.map(|state| state.value).ok_or_else(missing)
    }

    /// The pods of its versions, if a runtime can be asked.
    pub(super) async fn pods_of(&self, state: &ConfigState) -> Result<Option<Vec<ObservedPod>>> {
        match &self.runtime {
            Some(runtime) => runtime.observe_config(&state.destination.namespace, &state.key).await.map(Some),
            None => Ok(None),
        }
    }

    pub(super) async fn deployment(&self, id: &RunId) -> Result<Option<DeploymentRun>> {
        Ok(match self.store.run(id).await?.map(|run| run.value) {
            Some(Run::Deployment(run)) => Some(*run),
            Some(Run::Sequence(_)) | None => None,
        })
    }

    /// What it refers to in its stage, as far as that is there.
    async fn referred_to(&self, state: &ConfigState) -> Result<Referred> {
        let (mut streams, mut objects) = (Streams::default(), Objects::new());
        for followed in followed(&state.object.content.value()) {
            let key = ObjectKey { kind: Kind::ImageStream, name: followed.stream };
            if let Some(stream) = self.object_beside(state, &key).await? {
                streams.add(&stream.object, &state.destination);
                streams.tag(&key.name, &stream.tagged);
            }
        }
        let template = state.spec().unwrap_or_default().template;
        for key in references::of_template(&template) {
            if let Some(object) = self.object_beside(state, &key).await? {
                objects.insert(key, object.object.content.value());
            }
        }
        let mut kept = Vec::new();
        for key in state.keeps.iter().map(|kept| &kept.key) {
            kept.extend(self.object_beside(state, key).await?);
        }
        Ok(Referred { streams, objects, kept })
    }

    async fn object_beside(&self, state: &ConfigState, key: &ObjectKey) -> Result<Option<ObjectState>> {
        let ConfigKey { project, stage, .. } = &state.key;
        Ok(self.store.object(project, stage, key).await?.map(|object| object.value))
    }
}
