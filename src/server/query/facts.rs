//! What `why` goes by.

use std::collections::{BTreeMap, BTreeSet};

use super::Query;
use crate::error::Result;
use crate::model::ids::{Digest, RepositoryName, ServiceKey};
use crate::model::object::{Kind, ObjectKey};
use crate::model::plan::{ServicePlan, StageStart};
use crate::model::pod::ObservedPod;
use crate::model::run::{Run, SequenceRun};
use crate::model::slot::SlotState;
use crate::model::state::{ConfigState, RevisionState};
use crate::model::transaction::ObjectPlace;
use crate::server::view::Facts;
use crate::store::{OutboxRow, RunFilter};

impl Query {
    /// Everything that explains what a service waits for.
    pub(super) async fn facts(&self, service: &ServiceKey) -> Result<Facts> {
        let configs = self.store.configs_of(service).await?;
        let configs: Vec<ConfigState> = configs.into_iter().map(|state| state.value).collect();
        let state = self.store.slot(service).await?.map(|slot| slot.value);
        let (slot, last_delivery) = match &state {
            Some(state) => self.runs_of_slot(state).await?,
            None => (Vec::new(), None),
        };
        let repository = self.declaring(service, &configs, &slot).await?;
        let planned = match &repository {
            Some(repository) => self.planned(repository, service).await?,
            None => None,
        };
        let applied = match &planned {
            Some((plan, _)) => self.applied(service, plan).await?,
            None => BTreeMap::new(),
        };
        let passed = match planned.as_ref().and_then(|(plan, _)| plan.previous_stage.as_ref()) {
            Some(previous) => self.store.have_passed(&previous.keys(&service.project, &service.service)).await?,
            None => true,
        };
        let (repository, head) = match repository {
            Some(name) => {
                let head = self.store.outlines(&name, 1).await?.into_iter().next();
                (self.store.repository(&name).await?.map(|state| self.as_it_is(state.value)), head)
            }
            None => (None, None),
        };
        let outbox = self.outbox(&slot).await?;
        let deployments = self.open_deployments(&slot).await?;
        let pods = self.service_pods(&configs).await?;
        let is_down = repository.as_ref().is_some_and(|repository| repository.down);
        let not_listening = if is_down { Vec::new() } else { self.not_listening(service, &configs).await? };
        let hindrance = |config: &ConfigState| Some((config.key.name.clone(), self.hindrances.of(&config.key)?));
        let hindrances = configs.iter().filter_map(hindrance).collect();
        let holds = self.store.holds_of(&service.project).await?.map_or_else(Vec::new, |it| it.value.holds);
        Ok(Facts {
            repository,
            head,
            holds,
            slot,
            deployments,
            last_delivery,
            refused: state.and_then(|state| state.refused),
            outbox,
            configs,
            planned,
            applied,
            passed,
            pods,
            hindrances,
            not_listening,
        })
    }

    /// The newest sequence run of a service in a stage.
    pub(super) async fn last_sequence(&self, of: &ServiceKey) -> Result<Option<SequenceRun>> {
        let ServiceKey { project, stage, service } = of.clone();
        let (project, stage, service, sequences) = (Some(project), Some(stage), Some(service.to_string()), Some(true));
        let filter = RunFilter { project, stage, service, sequences, limit: 1, ..RunFilter::default() };
        let found = self.store.runs(&filter).await?.found;
        Ok(found.first().and_then(|run| run.value.sequence()).cloned())
    }

    /// What keeps `Service` objects from listening that lead to the pods of a service or are delivered with it.
    async fn not_listening(&self, service: &ServiceKey, configs: &[ConfigState]) -> Result<Vec<(String, String)>> {
        let Some(runtime) = &self.runtime else { return Ok(Vec::new()) };
        let labels = configs.iter().map(ConfigState::pod_labels);
        let leading = labels.flat_map(|labels| self.selectors.leading_to(service, &labels));
        let places: BTreeSet<ObjectPlace> = self.selectors.of(service).into_iter().chain(leading).collect();
        let mut not_listening = Vec::new();
        for ObjectPlace { project, stage, key } in places {
            let Some(object) = self.store.object(&project, &stage, &key).await? else { continue };
            let problem = match runtime.service(&object.value.destination.namespace, &key.name).await? {
                Some(there) => there.problem,
                None => Some("it does not answer yet".to_owned()),
            };
            not_listening.extend(problem.map(|problem| (key.name, problem)));
        }
        Ok(not_listening)
    }

    /// Of the objects that a plan names for a service beside deployment configs, those that are applied: what is only kept is
    /// as good as gone.
    async fn applied(&self, service: &ServiceKey, plan: &ServicePlan) -> Result<BTreeMap<ObjectKey, Digest>> {
        let mut found = BTreeMap::new();
        let others = plan.changes.iter().filter(|change| change.key.kind != Kind::DeploymentConfig);
        for key in others.map(|change| &change.key) {
            let state = self.store.object(&service.project, &service.stage, key).await?;
            let declared = state.map(|state| state.value).filter(|state| !state.is_kept());
            found.extend(declared.map(|state| (key.clone(), state.object.digest.clone())));
        }
        Ok(found)
    }

    /// Who has a slot and who waits for it, and the delivery that ended last.
    async fn runs_of_slot(&self, slot: &SlotState) -> Result<(Vec<Run>, Option<Run>)> {
        let mut runs = Vec::new();
        for id in slot.open() {
            runs.extend(self.store.run(id).await?.map(|run| run.value));
        }
        let last = match &slot.last_delivery {
            Some(delivered) => self.store.run(&delivered.run).await?.map(|run| run.value),
            None => None,
        };
        Ok((runs, last))
    }

    /// The repository that declares a service: as its configs, its runs, or its project say.
    async fn declaring(
        &self,
        service: &ServiceKey,
        configs: &[ConfigState],
        slot: &[Run],
    ) -> Result<Option<RepositoryName>> {
        let known = configs.first().map(|config| config.repository.clone());
        let known = known.or_else(|| slot.first().map(|run| run.revision().0.clone()));
        if known.is_some() {
            return Ok(known);
        }
        let of_project = |name: &Option<_>| name.as_ref() == Some(&service.project);
        let declaring = self.store.repositories().await?.find(|state| of_project(&state.value.project))?;
        Ok(declaring.map(|state| state.value.name))
    }

    /// What the last revision wants to change in a service, or the one that is bringing what it declares.
    async fn planned(
        &self,
        repository: &RepositoryName,
        service: &ServiceKey,
    ) -> Result<Option<(ServicePlan, StageStart)>> {
        let mut revision = self.store.outlines(repository, 1).await?.into_iter().next();
        let carrier = revision.as_ref().and_then(RevisionState::plan).and_then(|plan| plan.stage(&service.stage));
        if let Some(carrier) = carrier.and_then(|stage| stage.carried.get(&service.service)) {
            revision = self.store.outline(repository, carrier.as_str()).await?;
        }
        let Some(plan) = revision.as_ref().and_then(RevisionState::plan) else { return Ok(None) };
        let Some(plan) = self.store.plan_of(&plan.id, &service.service).await? else { return Ok(None) };
        let Some(stage) = plan.stage(&service.stage) else { return Ok(None) };
        Ok(stage.service(&service.service).map(|plan| (plan.clone(), stage.start.clone())))
    }

    /// The deployments that the slot's runs wait for.
    async fn open_deployments(&self, slot: &[Run]) -> Result<Vec<Run>> {
        let mut runs = Vec::new();
        for run in slot {
            let Run::Sequence(sequence) = run else { continue };
            let deployments = sequence.tasks.iter().flat_map(|task| &task.deployments);
            for started in deployments.filter(|deployment| deployment.outcome.is_none()) {
                let Some(id) = &started.run else { continue };
                runs.extend(self.store.run(id).await?.map(|run| run.value));
            }
        }
        Ok(runs)
    }

    /// The outbox of the slot's runs and of the deployments that they wait for.
    async fn outbox(&self, slot: &[Run]) -> Result<Vec<OutboxRow>> {
        let mut rows = Vec::new();
        for run in slot {
            rows.extend(self.store.outbox(Some(run.id())).await?);
            let Run::Sequence(sequence) = run else { continue };
            let deployments = sequence.tasks.iter().flat_map(|task| &task.deployments);
            for deployment in deployments.filter_map(|started| started.run.as_ref()) {
                rows.extend(self.store.outbox(Some(deployment)).await?);
            }
        }
        Ok(rows)
    }

    async fn service_pods(&self, configs: &[ConfigState]) -> Result<Vec<ObservedPod>> {
        let Some(runtime) = &self.runtime else { return Ok(Vec::new()) };
        let mut pods = Vec::new();
        for config in configs {
            pods.extend(runtime.observe_config(&config.destination.namespace, &config.key).await?);
        }
        Ok(pods)
    }
}
