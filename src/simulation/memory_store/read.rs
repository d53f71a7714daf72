//! What is read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;

use crate::error::{Failure, Result};
use crate::model::action::Lane;
use crate::model::commit_status::Posted;
use crate::model::hold::{Hold, ProjectHolds};
use crate::model::ids::{
    CommitId, ConfigKey, Digest, PlanId, ProjectName, RepositoryName, RunId, ServiceKey, ServiceName, StageName,
    WriterName,
};
use crate::model::object::{Kind, ObjectKey};
use crate::model::plan::Plan;
use crate::model::run::Run;
use crate::model::seed::Seed;
use crate::model::slot::{Delivered, PassedKey, PassedState, SlotState};
use crate::model::state::{ConfigState, ObjectState, RepositoryState, RevisionResult, RevisionState};
use crate::model::tag::SeenTags;
use crate::model::time::Timestamp;
use crate::model::transaction::ObjectPlace;
use crate::model::unique_name::{NameOwner, UniqueName};
use crate::model::webhook_call::WebhookCalls;
use crate::simulation::memory_store::MemoryStore;
use crate::simulation::memory_store::tables::{Row, Tables};
use crate::simulation::memory_store::write::is_of;
use crate::store::{
    AppliedDigest, Backlog, EventRow, KnownServices, Listing, MovedServices, OutboxRow, ReadStore, RevisionFacts,
    RunFilter, RunsMark, SERVICES_AT_ONCE, ServiceFacts, Versioned,
};

#[async_trait]
impl ReadStore for MemoryStore {
    async fn run(&self, id: &RunId) -> Result<Option<Versioned<Run>>> {
        Ok(self.tables().runs.get(id).map(|(_, run)| value(run)))
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Listing<Versioned<Run>>> {
        let tables = self.tables();
        let before = match &filter.before {
            None => None,
            Some(id) => match tables.runs.get(id) {
                Some((order, _)) => Some(*order),
                None => return Ok(Listing::from(Vec::new())),
            },
        };
        let candidates = if filter.open == Some(true) { &tables.open_runs } else { &tables.runs_in_order };
        let limit = if filter.limit == 0 { usize::MAX } else { filter.limit as usize };
        let newest_first = candidates.iter().rev().filter(|(order, _)| before.is_none_or(|before| **order < before));
        let runs = newest_first.filter_map(|(_, id)| tables.runs.get(id)).map(|(_, run)| run);
        Ok(runs.filter(|run| fits(filter, &run.value)).take(limit).map(value).map(Ok).collect())
    }

    async fn slot(&self, service: &ServiceKey) -> Result<Option<Versioned<SlotState>>> {
        Ok(self.tables().slots.get(service).map(value))
    }

    async fn config_keys(&self) -> Result<Vec<ConfigKey>> {
        Ok(self.tables().configs.keys().cloned().collect())
    }

    async fn open_slots(&self, project: Option<&ProjectName>) -> Result<Vec<Versioned<SlotState>>> {
        let tables = self.tables();
        let open = tables.slots.values().filter(|slot| !slot.value.is_free());
        Ok(open.filter(|slot| is(project, &slot.value.service.project)).map(value).collect())
    }

    async fn open_slot_keys(&self, project: Option<&ProjectName>) -> Result<Vec<ServiceKey>> {
        Ok(self.open_slots(project).await?.into_iter().map(|slot| slot.value.service).collect())
    }

    async fn delivered(
        &self,
        project: &ProjectName,
        stage: &StageName,
        except: Option<&Digest>,
    ) -> Result<BTreeMap<ServiceName, Delivered>> {
        let tables = self.tables();
        let here = tables.slots.iter().filter(|(key, _)| &key.project == project && &key.stage == stage);
        let last = here.filter_map(|(key, slot)| Some((key.service.clone(), slot.value.last_delivery.clone()?)));
        Ok(last.filter(|(_, last)| Some(&last.procedure) != except || !last.deployed).collect())
    }

    async fn attempts(
        &self,
        repository: &RepositoryName,
        commit: &CommitId,
        service: &ServiceKey,
        sequence: Option<&str>,
    ) -> Result<u32> {
        let tables = self.tables();
        let attempts = tables.runs.values().filter_map(|(_, run)| match &run.value {
            Run::Sequence(run) if run.only_tasks() == sequence && &run.service == service => {
                ((&run.repository, &run.commit) == (repository, commit)).then_some(run.attempt)
            }
            Run::Sequence(_) | Run::Deployment(_) => None,
        });
        Ok(attempts.max().unwrap_or(0))
    }

    async fn events(&self, run: Option<&RunId>, after: i64, limit: u32) -> Result<Vec<EventRow>> {
        let tables = self.tables();
        let later = tables.events.range(after.saturating_add(1)..).map(|(_, row)| row);
        let chosen = later.filter(|row| run.is_none_or(|run| &row.run == run));
        Ok(chosen.take(limit as usize).map(|row| EventRow::clone(row)).collect())
    }

    async fn newest_events(&self, run: Option<&RunId>, before: i64, limit: u32) -> Result<Vec<EventRow>> {
        let tables = self.tables();
        let earlier = tables.events.range(..before).rev().map(|(_, row)| row);
        let chosen = earlier.filter(|row| run.is_none_or(|run| &row.run == run));
        Ok(chosen.take(limit as usize).map(|row| EventRow::clone(row)).collect())
    }

    async fn config(&self, key: &ConfigKey) -> Result<Option<Versioned<ConfigState>>> {
        Ok(self.tables().configs.get(key).map(value))
    }

    async fn configs(
        &self,
        project: Option<&ProjectName>,
        stage: Option<&StageName>,
    ) -> Result<Listing<Versioned<ConfigState>>> {
        let tables = self.tables();
        let fits = |key: &ConfigKey| is(project, &key.project) && is(stage, &key.stage);
        Ok(tables.configs.iter().filter(|(key, _)| fits(key)).map(|(_, config)| Ok(value(config))).collect())
    }

    async fn configs_of(&self, service: &ServiceKey) -> Result<Vec<Versioned<ConfigState>>> {
        let tables = self.tables();
        let fits = |config: &ConfigState| config.service_key() == *service;
        Ok(tables.configs.values().filter(|config| fits(&config.value)).map(value).collect())
    }

    async fn objects(
        &self,
        project: Option<&ProjectName>,
        stage: Option<&StageName>,
        kind: Option<&Kind>,
    ) -> Result<Listing<Versioned<ObjectState>>> {
        let tables = self.tables();
        let rows = tables.objects.iter();
        let fits = rows
            .filter(|(place, _)| is(project, &place.project) && is(stage, &place.stage) && is(kind, &place.key.kind));
        Ok(fits.map(|(_, object)| Ok(value(object))).collect())
    }

    async fn object(
        &self,
        project: &ProjectName,
        stage: &StageName,
        key: &ObjectKey,
    ) -> Result<Option<Versioned<ObjectState>>> {
        let (project, stage, key) = (project.clone(), stage.clone(), key.clone());
        Ok(self.tables().objects.get(&ObjectPlace { project, stage, key }).map(value))
    }

    async fn applied(&self, project: &ProjectName, stage: &StageName) -> Result<Vec<AppliedDigest>> {
        let tables = self.tables();
        let configs = tables.configs.iter().filter(|(key, _)| &key.project == project && &key.stage == stage);
        let mut applied: Vec<AppliedDigest> = configs
            .map(|(key, config)| AppliedDigest {
                key: ObjectKey { kind: Kind::DeploymentConfig, name: key.name.clone() },
                digest: config.value.object.digest.clone(),
                settled: config.value.is_settled(),
            })
            .collect();
        let objects = tables.objects.iter().filter(|(it, _)| &it.project == project && &it.stage == stage);
        applied.extend(objects.map(|(place, object)| AppliedDigest {
            key: place.key.clone(),
            digest: object.value.declared_digest(),
            settled: true,
        }));
        applied.sort_by(|one, other| one.key.cmp(&other.key));
        Ok(applied)
    }

    async fn applied_stages(&self, project: &ProjectName) -> Result<Vec<StageName>> {
        let tables = self.tables();
        let configs = tables.configs.keys().filter(|key| &key.project == project).map(|key| &key.stage);
        let objects = tables.objects.keys().filter(|place| &place.project == project).map(|place| &place.stage);
        let mut stages: Vec<StageName> = configs.chain(objects).cloned().collect();
        stages.sort();
        stages.dedup();
        Ok(stages)
    }

    async fn repository(&self, name: &RepositoryName) -> Result<Option<Versioned<RepositoryState>>> {
        Ok(self.tables().repositories.get(name).map(value))
    }

    async fn repositories(&self) -> Result<Listing<Versioned<RepositoryState>>> {
        Ok(self.tables().repositories.values().map(value).map(Ok).collect())
    }

    async fn revision(&self, repository: &RepositoryName, commit: &str) -> Result<Option<RevisionState>> {
        let Some(commit) = CommitId::word(commit) else { return Ok(None) };
        let tables = self.tables();
        let named = |of: &RepositoryName, id: &CommitId| of == repository && id.is_named_by(Some(&commit));
        let mut found = tables.revisions.iter().filter(|((of, id), _)| named(of, id));
        let revision = found.next().map(|(_, (_, revision))| RevisionState::clone(revision));
        if found.next().is_some() {
            let problem = format!("`{commit}` is the beginning of several revisions of `{repository}`");
            return Err(Failure::stalled(problem).hint("give more digits"));
        }
        Ok(revision)
    }

    async fn revisions(&self, repository: &RepositoryName, limit: u32) -> Result<Vec<RevisionState>> {
        let tables = self.tables();
        let mut found: Vec<_> =
            tables.revisions.iter().filter(|((of, _), _)| of == repository).map(|(_, found)| found).collect();
        found.sort_by_key(|(number, revision)| std::cmp::Reverse((revision.at, *number)));
        Ok(found.into_iter().take(limit as usize).map(|(_, revision)| RevisionState::clone(revision)).collect())
    }

    async fn outline(&self, repository: &RepositoryName, commit: &str) -> Result<Option<RevisionState>> {
        Ok(self.revision(repository, commit).await?.map(outline))
    }

    async fn outlines(&self, repository: &RepositoryName, limit: u32) -> Result<Vec<RevisionState>> {
        Ok(self.revisions(repository, limit).await?.into_iter().map(outline).collect())
    }

    async fn revision_facts(
        &self,
        repository: &RepositoryName,
        commit: &CommitId,
        known: KnownServices,
    ) -> Result<Option<RevisionFacts>> {
        let Some(revision) = self.outline(repository, commit.as_str()).await? else { return Ok(None) };
        let plan = revision.plan();
        let holds = match plan {
            Some(plan) => self.holds_of(&plan.project).await?.map(|holds| holds.value),
            None => None,
        };
        let (moved, newer) =
            (moved_services(&self.tables(), &revision, &known), next_planned(&self.tables(), &revision));
        let first = &moved.services[..moved.services.len().min(SERVICES_AT_ONCE)];
        let plan = plan.map_or_else(|| PlanId::new(""), |plan| plan.id.clone());
        let services = self.service_facts(repository, commit, &plan, first).await?;
        let repository = self.repository(repository).await?.map(|state| state.value);
        let event = self.last_event().await?;
        Ok(Some(RevisionFacts { event, revision, repository, newer, holds, moved, services }))
    }

    async fn service_facts(
        &self,
        repository: &RepositoryName,
        commit: &CommitId,
        plan: &PlanId,
        services: &[ServiceName],
    ) -> Result<Vec<ServiceFacts>> {
        let mut found = Vec::new();
        for service in services {
            let filter = RunFilter {
                repository: Some(repository.clone()),
                commit: Some(commit.clone()),
                service: Some(service.to_string()),
                ..RunFilter::default()
            };
            let runs = self.runs(&filter).await?.whole()?.into_iter().map(|run| run.value).collect();
            found.push(ServiceFacts { service: service.clone(), plan: self.plan_of(plan, service).await?, runs });
        }
        Ok(found)
    }

    async fn plan(&self, id: &PlanId) -> Result<Option<Plan>> {
        Ok(self.tables().plans.get(id).map(|plan| Plan::clone(plan)))
    }

    async fn plan_of(&self, id: &PlanId, service: &ServiceName) -> Result<Option<Plan>> {
        Ok(self.tables().plans.get(id).map(|plan| plan.about(service)))
    }

    async fn newest_plan_of(&self, project: &ProjectName, service: &ServiceName) -> Result<Option<Plan>> {
        let tables = self.tables();
        let newest = tables.newest_plans.get(&(project.clone(), service.clone()));
        Ok(newest.and_then(|id| tables.plans.get(id)).map(|plan| plan.about(service)))
    }

    async fn passed(&self, key: &PassedKey) -> Result<Option<Versioned<PassedState>>> {
        Ok(self.tables().passed.get(key).map(value))
    }

    async fn holds_of(&self, project: &ProjectName) -> Result<Option<Versioned<ProjectHolds>>> {
        Ok(self.tables().holds.get(project).map(value))
    }

    async fn holds(&self) -> Result<Listing<Hold>> {
        let mut holds: Vec<Hold> = self.tables().holds.values().flat_map(|it| it.value.holds.clone()).collect();
        holds.sort_by(|one, other| (one.since, &one.id).cmp(&(other.since, &other.id)));
        Ok(holds.into())
    }

    async fn name_owner(&self, name: &UniqueName) -> Result<Option<Versioned<NameOwner>>> {
        Ok(self.tables().names.get(name).map(value))
    }

    async fn posted(&self, repository: &RepositoryName, writer: &WriterName, commit: &CommitId) -> Result<Vec<Posted>> {
        let tables = self.tables();
        let is_asked =
            |of: &RepositoryName, by: &WriterName, on: &CommitId| of == repository && by == writer && on == commit;
        let found = tables.posted.iter().filter(|((of, by, on, _), _)| is_asked(of, by, on));
        Ok(found.map(|(_, (_, posted))| Posted::clone(posted)).collect())
    }

    async fn overtaken_by(&self, repository: &RepositoryName, commit: &CommitId) -> Result<Vec<CommitId>> {
        let older = self.revisions(repository, u32::MAX).await?.into_iter();
        let tables = self.tables();
        let is_overtaken = |older: &RevisionState| next_planned(&tables, older).as_ref() == Some(commit);
        Ok(older.filter(is_overtaken).map(|older| older.commit).collect())
    }

    async fn was_delivered(&self, repository: &RepositoryName, id: &str) -> Result<bool> {
        Ok(self.tables().deliveries.contains_key(&(repository.clone(), id.to_owned())))
    }

    async fn webhook_calls(&self, repository: &RepositoryName) -> Result<WebhookCalls> {
        Ok(self.tables().webhook_calls.get(repository).cloned().unwrap_or_default())
    }

    async fn seen_tags(&self, repository: &RepositoryName) -> Result<Option<SeenTags>> {
        Ok(self.tables().tags.get(repository).cloned())
    }

    async fn seed(&self) -> Result<Option<Seed>> {
        Ok(Some(Seed::new([7; 32])))
    }

    async fn last_event(&self) -> Result<u64> {
        Ok(self.tables().number.unsigned_abs())
    }

    async fn next_due(&self, lane: &Lane, now: Timestamp) -> Result<Option<Timestamp>> {
        let tables = self.tables();
        let of_lane = tables.outbox.values().filter(|row| is_of(lane, row));
        Ok(of_lane.filter_map(|row| row.due).filter(|due| *due > now).min())
    }

    async fn backlog(&self, lane: &Lane) -> Result<Backlog> {
        let tables = self.tables();
        let of_lane = || tables.outbox.values().filter(|row| is_of(lane, row));
        let (count, oldest) = (of_lane().count() as u64, of_lane().map(|row| row.asked_at).min());
        Ok(Backlog { count, oldest })
    }

    async fn outbox(&self, run: Option<&RunId>) -> Result<Vec<OutboxRow>> {
        let tables = self.tables();
        let chosen = tables.outbox.values().filter(|row| run.is_none_or(|run| &row.run == run));
        Ok(chosen.map(|row| OutboxRow::clone(row)).collect())
    }
}

fn value<T: Clone>(row: &Row<T>) -> Versioned<T> {
    Versioned::clone(row)
}

/// Whether `value` is what is asked for, if anything is.
fn is<T: PartialEq>(asked: Option<&T>, value: &T) -> bool {
    asked.is_none_or(|asked| asked == value)
}

fn fits(filter: &RunFilter, run: &Run) -> bool {
    let (repository, commit) = run.revision();
    let service = run.service();
    let config = match run {
        Run::Sequence(_) => None,
        Run::Deployment(run) => Some(&run.config.name),
    };
    is(filter.repository.as_ref(), repository)
        && is(filter.project.as_ref(), &service.project)
        && is(filter.stage.as_ref(), &service.stage)
        && filter.service.as_ref().is_none_or(|asked| asked == service.service.as_str())
        && filter.config.as_ref().is_none_or(|asked| Some(asked) == config)
        && is(filter.commit.as_ref(), commit)
        && filter.context.as_ref().is_none_or(|asked| run.sequence().and_then(|it| it.context.as_ref()) == Some(asked))
        && filter.sequences.is_none_or(|asked| asked == matches!(run, Run::Sequence(_)))
        && filter.open.is_none_or(|asked| asked != run.is_ended())
}

/// The services of a revision that are to be examined by whoever knows some.
fn moved_services(tables: &Tables, revision: &RevisionState, known: &KnownServices) -> MovedServices {
    let of = (&revision.repository, &revision.commit);
    let on_it = tables.runs.iter().filter(|(_, (_, run))| run.value.revision() == of);
    let on_it = on_it
        .map(|(id, (_, run))| (tables.run_moves.get(id).copied().unwrap_or_default(), run.value.service().service));
    let on_it: Vec<(u64, ServiceName)> = on_it.collect();
    let moved = on_it.iter().map(|(moved, _)| *moved).max().unwrap_or_default();
    let mark = RunsMark::new(revision, moved, tables.runs_deleted);
    if let Some(since) = known.mark.as_ref().filter(|since| since.leads_to(&mark)) {
        let moved = on_it.into_iter().filter(|(moved, _)| *moved > since.moved).map(|(_, service)| service);
        return MovedServices { mark, services: known.with_moved(moved), are_all: false };
    }
    let plan = mark.plan.as_ref().and_then(|plan| tables.plans.get(plan));
    let planned = plan.into_iter().flat_map(|plan| &plan.stages).flat_map(|stage| &stage.services);
    let planned = planned.map(|part| part.service.clone());
    let services: BTreeSet<ServiceName> = on_it.into_iter().map(|(_, service)| service).chain(planned).collect();
    MovedServices { mark, services: services.into_iter().collect(), are_all: true }
}

/// The first revision after one that has a plan.
fn next_planned(tables: &Tables, revision: &RevisionState) -> Option<CommitId> {
    let place = |(number, revision): &(i64, Arc<RevisionState>)| (revision.at, *number);
    let mine = tables.revisions.get(&(revision.repository.clone(), revision.commit.clone())).map(place)?;
    let newer = tables.revisions.iter().filter(|((of, _), row)| *of == revision.repository && place(row) > mine);
    let planned = newer.filter(|(_, (_, revision))| matches!(revision.result, RevisionResult::Planned(_)));
    planned.min_by_key(|(_, row)| place(row)).map(|((_, commit), _)| commit.clone())
}

/// A revision whose plan says nothing of services.
fn outline(mut revision: RevisionState) -> RevisionState {
    if let RevisionResult::Planned(plan) = &mut revision.result {
        **plan = plan.outline();
    }
    revision
}
