//! What is said of revisions, kept as far as nothing has happened since: whoever asks again reads what is new.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::pin;
use std::sync::{Arc, PoisonError};

use futures::stream::{self, StreamExt, TryStreamExt};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::error::Result;
use crate::model::commit_status::CommitStatus;
use crate::model::ids::{CommitId, ProjectName, RepositoryName, RunId, ServiceKey, ServiceName, StageName};
use crate::model::plan::{Plan, StagePlan};
use crate::model::run::Run;
use crate::model::state::RevisionState;
use crate::report::ledger::Rendering;
use crate::report::service_report::ServiceReport;
use crate::report::status::{self, Facts};
use crate::store::{ReadStore, ServiceFacts, ServiceMark};

/// How many revisions are kept: those that somebody asks for while they are delivered, and those that bring what they declare.
const KEPT: usize = 16;
/// How many services are read at once: enough that each costs little, and few enough to be held in memory.
const AT_ONCE: usize = 256;
/// How many such reads go on side by side, each on a thread of the store's.
const SIDE_BY_SIDE: usize = 2;

/// Which revision.
type Key = (RepositoryName, CommitId);

/// What was said of revisions.
#[derive(Debug, Default)]
pub struct Renderings {
    kept: std::sync::Mutex<VecDeque<(Key, Arc<Mutex<Kept>>)>>,
}

/// What was said of the services of one revision.
#[derive(Debug, Default)]
struct Kept {
    again: u32,
    reports: BTreeMap<ServiceName, ServiceReport>,
    /// What changes whenever a service's runs do.
    marks: BTreeMap<ServiceName, ServiceMark>,
}

impl Renderings {
    /// The statuses of a revision as they are now, for whoever knows some contexts.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn render(
        &self,
        store: &dyn ReadStore,
        repository: &RepositoryName,
        commit: &CommitId,
        known: &BTreeSet<String>,
    ) -> Result<Rendering> {
        let number = 1 + store.last_event().await?; // before all else: what is read then is at least as new
        let Some(revision) = store.outline(repository, commit.as_str()).await? else { return Ok(Rendering::default()) };
        let (kept, newer) = self.brought_up_to_date(store, &revision).await?;
        let facts = Facts { revision: &revision, services: &kept.reports, newer: newer.as_ref(), known };
        Ok(Rendering { number, statuses: status::render(&facts) })
    }

    /// What people hear of a revision: its statuses, and what becomes, on earlier revisions, of what those bring in its place.
    /// What was delivered on the revision itself since, such as by a person, counts instead.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn told(&self, store: &dyn ReadStore, revision: &RevisionState) -> Result<Vec<CommitStatus>> {
        let (repository, nothing) = (&revision.repository, BTreeSet::new());
        let mut statuses = self.render(store, repository, &revision.commit, &nothing).await?.statuses;
        let Some(plan) = revision.plan().filter(|plan| !plan.carriers(&plan.stages).is_empty()) else {
            return Ok(statuses);
        };
        let delivered = self.brought_up_to_date(store, revision).await?.0.delivered();
        for carrier in plan.carriers(&plan.stages) {
            let Some(revision) = store.outline(repository, carrier.as_str()).await? else { continue };
            let (kept, newer) = self.brought_up_to_date(store, &revision).await?;
            let facts = Facts { revision: &revision, services: &kept.reports, newer: newer.as_ref(), known: &nothing };
            let in_stage = |stage: &StagePlan| {
                let carried = stage.carried.iter().filter(|(_, commit)| *commit == carrier).map(|(service, _)| service);
                let services =
                    carried.filter(|service| !delivered.contains(&(stage.stage.clone(), (*service).clone())));
                status::in_stage(&facts, &stage.stage, &services.collect())
            };
            statuses.extend(plan.stages.iter().filter_map(in_stage));
        }
        Ok(statuses)
    }

    /// What is kept of a revision, as it is now, and the first one after it that has a plan.
    async fn brought_up_to_date(
        &self,
        store: &dyn ReadStore,
        revision: &RevisionState,
    ) -> Result<(OwnedMutexGuard<Kept>, Option<CommitId>)> {
        let mut kept = self.of((revision.repository.clone(), revision.commit.clone())).lock_owned().await;
        if let Some(plan) = revision.plan() {
            kept.bring_up_to_date(store, revision, plan).await?;
        }
        Ok((kept, store.next_planned(&revision.repository, &revision.commit).await?))
    }

    /// What is kept of a revision; what was asked for longest ago makes room.
    fn of(&self, key: Key) -> Arc<Mutex<Kept>> {
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.iter().position(|(of, _)| *of == key).and_then(|index| all.remove(index));
        let kept = known.map_or_else(Arc::default, |(_, kept)| kept);
        all.push_back((key, kept.clone()));
        while all.len() > KEPT {
            all.pop_front();
        }
        kept
    }
}

impl Kept {
    /// The services that were delivered on the revision, by stage.
    fn delivered(&self) -> BTreeSet<(StageName, ServiceName)> {
        let of = |report: &ServiceReport| {
            let service = report.service.clone();
            let stages: Vec<_> = report.delivered_to().map(|stage| (stage.clone(), service.clone())).collect();
            stages
        };
        self.reports.values().flat_map(of).collect()
    }

    /// Reads what is new since it was brought up to date last.
    async fn bring_up_to_date(&mut self, store: &dyn ReadStore, revision: &RevisionState, plan: &Plan) -> Result<()> {
        if self.again != revision.again {
            *self = Self { again: revision.again, ..Self::default() };
        }
        let marks = store.service_marks(&plan.repository, &plan.commit, &plan.id).await?;
        self.reports.retain(|service, _| marks.contains_key(service));
        let is_known = |(service, mark): &(&ServiceName, &ServiceMark)| {
            // What is awaited of earlier revisions moves without a run on this one.
            let settled = self.reports.get(*service).is_some_and(|report| report.awaited().is_empty());
            settled && self.marks.get(*service) == Some(*mark)
        };
        let news = marks.iter().filter(|entry| !is_known(entry));
        let news: Vec<ServiceName> = news.map(|(service, _)| service.clone()).collect();
        let news: Vec<Vec<ServiceName>> = news.chunks(AT_ONCE).map(<[_]>::to_vec).collect();
        let read = stream::iter(news).map(|some| reports(store, revision, plan, some));
        let mut read = pin!(read.buffer_unordered(SIDE_BY_SIDE));
        while let Some(reports) = read.try_next().await? {
            self.reports.extend(reports);
        }
        self.marks = marks;
        Ok(())
    }
}

/// What is said of some services.
async fn reports(
    store: &dyn ReadStore,
    revision: &RevisionState,
    plan: &Plan,
    some: Vec<ServiceName>,
) -> Result<Vec<(ServiceName, ServiceReport)>> {
    let mut reports = Vec::with_capacity(some.len());
    for facts in store.service_facts(&plan.repository, &plan.commit, &plan.id, &some).await? {
        reports.push((facts.service.clone(), report(store, revision, plan, facts).await?));
    }
    Ok(reports)
}

async fn report(
    store: &dyn ReadStore,
    revision: &RevisionState,
    plan: &Plan,
    facts: ServiceFacts,
) -> Result<ServiceReport> {
    let ServiceFacts { service, plan: part, mut runs } = facts;
    runs.extend(handed_on(store, &runs).await?);
    let part = part.as_ref().unwrap_or(plan);
    let mut left = BTreeMap::new();
    loop {
        let told = ServiceReport::of(&service, part, revision.again, &runs, &left);
        let more = stages_left(store, &plan.project, &told, &left).await?;
        if more.is_empty() {
            return Ok(told);
        }
        left.extend(more); // one that let it pass may show what the next one is left with
    }
}

/// The stages, beside known ones, in which nothing is under way any more that could pass what is waited for, with whether it
/// passed.
async fn stages_left(
    store: &dyn ReadStore,
    project: &ProjectName,
    report: &ServiceReport,
    known: &BTreeMap<StageName, bool>,
) -> Result<BTreeMap<StageName, bool>> {
    let mut found = BTreeMap::new();
    for awaited in report.awaited() {
        let (stage, service) = (awaited.stage.clone(), report.service.clone());
        let slot = store.slot(&ServiceKey { project: project.clone(), stage, service }).await?;
        if slot.is_none_or(|slot| slot.value.is_free()) && !known.contains_key(&awaited.stage) {
            let passed = store.have_passed(&awaited.keys(project, &report.service)).await?;
            found.insert(awaited.stage.clone(), passed);
        }
    }
    Ok(found)
}

/// Deployments that these runs waited for and that later runs, of other revisions, have tried again.
async fn handed_on(store: &dyn ReadStore, runs: &[Run]) -> Result<Vec<Run>> {
    let known: BTreeSet<&RunId> = runs.iter().map(Run::id).collect();
    let tasks = runs.iter().filter_map(Run::sequence).flat_map(|run| &run.tasks);
    let deployments = tasks.flat_map(|task| &task.deployments).filter_map(|deployment| deployment.run.as_ref());
    let elsewhere: BTreeSet<&RunId> = deployments.filter(|id| !known.contains(id)).collect();
    let mut found = Vec::new();
    for id in elsewhere {
        found.extend(store.run(id).await?.map(|run| run.value));
    }
    Ok(found)
}
