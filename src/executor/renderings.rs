//! What is said of revisions, kept as far as nothing has happened since that it follows from: whoever asks again reads what is
//! new.

mod services;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::pin;
use std::sync::{Arc, MutexGuard, PoisonError};

use futures::stream::{self, StreamExt, TryStreamExt};
use tokio::sync::{Mutex, OwnedMutexGuard};

use self::services::{Read, elsewhere, reports};
use crate::error::Result;
use crate::manifest::digest;
use crate::model::commit_status::CommitStatus;
use crate::model::hold::{HoldKind, ProjectHolds};
use crate::model::ids::{CommitId, PlanId, ProjectName, RepositoryName, ServiceKey, ServiceName, StageName};
use crate::model::plan::{Plan, PlanSummary, StagePlan};
use crate::model::project::{Procedures, StatusDetail};
use crate::model::run::Run;
use crate::model::state::{ConfigState, RevisionState};
use crate::plan::summary::{summary, whole};
use crate::report::ledger::Rendering;
use crate::report::rest::{self, Around, Open, Wait};
use crate::report::service_report::ServiceReport;
use crate::report::status::{self, Facts};
use crate::store::{
    KnownServices, ReadStore, RevisionFacts, RunFilter, RunsMark, SERVICES_AT_ONCE, Transaction, Write,
};

/// How many revisions are kept: those that somebody asks for while they are delivered, and those that bring what they declare.
const KEPT: usize = 16;
/// How many more are kept for which nobody has asked yet, so that pushes do not drive out what somebody asks for.
const FORETOLD: usize = 4;
/// How many reads of [`SERVICES_AT_ONCE`] go on side by side, each on a thread of the store's.
const SIDE_BY_SIDE: usize = 2;

/// Which revision.
type Key = (RepositoryName, CommitId);
/// What is kept, in the order in which it was asked for last.
type InOrder = VecDeque<(Key, Arc<Mutex<Kept>>)>;

/// What was said of revisions.
#[derive(Debug, Default)]
pub struct Renderings {
    all: std::sync::Mutex<All>,
}

#[derive(Debug, Default)]
struct All {
    /// Of these somebody has asked for.
    kept: InOrder,
    /// And for these nobody has.
    foretold: InOrder,
}

/// What people hear of a revision.
#[derive(Clone, Debug, Default)]
pub struct RevisionReport {
    /// Its statuses, and those of earlier revisions that bring what it declares.
    pub statuses: Vec<CommitStatus>,
    /// Whether more happens to it by itself.
    pub goes_on: bool,
    /// What it waits for, if nothing does.
    pub waits: Vec<Wait>,
}

/// What was said of the services of one revision.
#[derive(Debug, Default)]
struct Kept {
    reports: BTreeMap<ServiceName, ServiceReport>,
    /// Those that tell of runs of other revisions, which move without one of this one.
    tell_of_others: BTreeSet<ServiceName>,
    /// What the revision's plan comes to.
    summary: PlanSummary,
    /// Where the revision's runs stood when the reports were made.
    mark: Option<RunsMark>,
}

/// What is kept of a revision that is about to be committed.
#[must_use]
pub(super) struct Foretold(Arc<Mutex<Kept>>);

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
        let Some((facts, kept)) = self.current(store, repository, commit).await? else {
            return Ok(Rendering::default());
        };
        let statuses = status::render(&Facts { known, ..kept.facts(&facts) });
        Ok(Rendering { number: 1 + facts.event, statuses })
    }

    /// Whether a stage has, of some service, what was delivered to it on a revision.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn is_current(
        &self,
        store: &dyn ReadStore,
        repository: &RepositoryName,
        commit: &CommitId,
        stage: &StageName,
    ) -> Result<bool> {
        let Some((facts, kept)) = self.current(store, repository, commit).await? else { return Ok(false) };
        let Some(plan) = facts.revision.plan() else { return Ok(false) };
        for (report, run) in kept.reports.values().filter_map(|report| Some((report, report.run_in(stage)?))) {
            let service =
                ServiceKey { project: plan.project.clone(), stage: stage.clone(), service: report.service.clone() };
            let configs = store.configs_of(&service).await?;
            let serves = configs
                .iter()
                .any(|config| config.value.serving.as_ref().is_some_and(|serving| &serving.commit == commit));
            let slot = if configs.is_empty() { store.slot(&service).await? } else { None };
            let was_last = slot.and_then(|slot| slot.value.last_delivery).is_some_and(|last| &last.run == run);
            if serves || was_last {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A revision, and what people hear of it: its statuses, and what becomes, on earlier revisions, of what those bring in its
    /// place. What was delivered on the revision itself since, such as by a person, counts instead.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn report(
        &self,
        store: &dyn ReadStore,
        repository: &RepositoryName,
        commit: &CommitId,
    ) -> Result<Option<(RevisionState, RevisionReport)>> {
        let Some((facts, kept)) = self.current(store, repository, commit).await? else { return Ok(None) };
        let RevisionFacts { revision, repository, .. } = &facts;
        let project = || revision.plan().map_or_else(|| ProjectName::new(""), |plan| plan.project.clone());
        let holds = facts.holds.clone().unwrap_or_else(|| ProjectHolds::none(project()));
        let configs = held_configs(store, &holds).await?;
        let around = Around { revision, repository: repository.as_ref(), holds: &holds, configs: &configs };
        let own = kept.facts(&facts);
        let (mut statuses, mut open) = (status::render(&own), rest::open(&around, &own, |_, _| true));
        let delivered = revision.plan().map(|plan| kept.delivered(plan)).unwrap_or_default();
        drop(kept); // nobody has two of them, so that nobody waits for the other
        if let Some(plan) = revision.plan() {
            for carrier in plan.carriers(&plan.stages) {
                let carried = |stage: &StagePlan, service: &ServiceName| {
                    stage.carried.get(service) == Some(carrier)
                        && !delivered.contains(&(stage.stage.clone(), service.clone()))
                };
                let (more, open_there) = self.carried(store, &around, plan, carrier, carried).await?;
                statuses.extend(more);
                open = open.zip(open_there).map(|(open, there)| [open, there].concat());
            }
        }
        let waits = open.and_then(|open| rest::waits(&around, &open));
        let report = RevisionReport { statuses, goes_on: waits.is_none(), waits: waits.unwrap_or_default() };
        Ok(Some((facts.revision, report)))
    }

    /// What is said of what an earlier revision brings to the stages of a plan, and what of it is open, unless that goes on.
    async fn carried(
        &self,
        store: &dyn ReadStore,
        around: &Around<'_>,
        plan: &Plan,
        carrier: &CommitId,
        is_carried: impl Fn(&StagePlan, &ServiceName) -> bool,
    ) -> Result<(Vec<CommitStatus>, Option<Vec<Open>>)> {
        let Some((facts, kept)) = self.current(store, &plan.repository, carrier).await? else {
            return Ok((Vec::new(), Some(Vec::new())));
        };
        let facts = kept.facts(&facts);
        let in_stage = |stage: &StagePlan| {
            let services = stage.carried.keys().filter(|service| is_carried(stage, service));
            status::in_stage(&facts, &stage.stage, &services.collect())
        };
        let is_open = |stage: &StageName, service: &ServiceName| {
            plan.stage(stage).is_some_and(|stage| is_carried(stage, service))
        };
        Ok((plan.stages.iter().filter_map(in_stage).collect(), rest::open(around, &facts, is_open)))
    }

    /// Reads what is said of the heads of repositories, as far as so much is kept: whoever asks first after a start waits for
    /// no ten thousand services.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn read_heads(&self, store: &dyn ReadStore) -> Result<()> {
        let states = store.repositories().await?.found.into_iter().map(|state| state.value);
        let heads = states.filter_map(|state| Some((state.name, state.applied?)));
        for (repository, head) in heads.take(KEPT) {
            self.report(store, &repository, &head).await?; // what earlier revisions bring, too
        }
        Ok(())
    }

    /// A revision as it is now, and what is kept of it, brought up to date; nothing, if there is none.
    async fn current(
        &self,
        store: &dyn ReadStore,
        repository: &RepositoryName,
        commit: &CommitId,
    ) -> Result<Option<(RevisionFacts, OwnedMutexGuard<Kept>)>> {
        let key = (repository.clone(), commit.clone());
        // What is not there drives out nothing that is kept.
        if !self.all().knows(&key) && store.outline(repository, commit.as_str()).await?.is_none() {
            return Ok(None);
        }
        let mut kept = self.of(&key).lock_owned().await;
        let Some(mut facts) = store.revision_facts(repository, commit, kept.known()).await? else {
            if kept.mark.is_none() {
                self.forget(OwnedMutexGuard::mutex(&kept));
            }
            return Ok(None);
        };
        kept.bring_up_to_date(store, &mut facts).await?;
        Ok(Some((facts, kept)))
    }

    /// Keeps what will be said of a revision once a transaction is committed that tells of it for the first time: all that it
    /// follows from is at hand now, and would have to be read then. That is before anybody can read it: a large transaction is
    /// there for others long before whoever committed it hears so.
    /// What cannot be foretold is read.
    pub(super) async fn foretell(&self, store: &dyn ReadStore, transaction: &Transaction) -> Option<Foretold> {
        let (revision, plan) = transaction.writes.iter().find_map(first_judged)?;
        let key = (revision.repository.clone(), revision.commit.clone());
        let (repository, commit) = (Some(key.0.clone()), Some(key.1.clone()));
        let older = store.runs(&RunFilter { repository, commit, limit: 1, ..RunFilter::default() }).await.ok()?;
        if !older.found.is_empty() || !older.damaged.is_empty() {
            return None; // it was known before, or was forgotten, but not all of its runs
        }
        let kept = Arc::new(Mutex::new(foretold(revision, plan, &transaction.writes)));
        let mut all = self.all();
        all.take(&key);
        enter(&mut all.foretold, key, kept.clone(), FORETOLD);
        Some(Foretold(kept))
    }

    /// It was not committed.
    pub(super) fn take_back(&self, foretold: &Foretold) {
        self.forget(&foretold.0);
    }

    /// What is kept of a revision.
    fn of(&self, key: &Key) -> Arc<Mutex<Kept>> {
        let mut all = self.all();
        let kept = all.take(key).unwrap_or_default();
        enter(&mut all.kept, key.clone(), kept.clone(), KEPT);
        kept
    }

    /// Of what is not there, nothing is kept.
    fn forget(&self, kept: &Arc<Mutex<Kept>>) {
        let mut all = self.all();
        let All { kept: asked, foretold } = &mut *all;
        [asked, foretold].into_iter().for_each(|some| some.retain(|(_, other)| !Arc::ptr_eq(kept, other)));
    }

    fn all(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl All {
    fn knows(&self, key: &Key) -> bool {
        self.kept.iter().chain(&self.foretold).any(|(of, _)| of == key)
    }

    /// Takes out what is kept of a revision.
    fn take(&mut self, key: &Key) -> Option<Arc<Mutex<Kept>>> {
        let mut some = [&mut self.kept, &mut self.foretold].into_iter();
        some.find_map(|some| some.remove(some.iter().position(|(of, _)| of == key)?)).map(|(_, kept)| kept)
    }
}

/// What came or was asked for longest ago makes room for what comes.
fn enter(some: &mut InOrder, key: Key, kept: Arc<Mutex<Kept>>, most: usize) {
    some.push_back((key, kept));
    while some.len() > most {
        some.pop_front();
    }
}

impl Kept {
    /// What the statuses of a revision follow from, for whoever knows no contexts.
    fn facts<'a>(&'a self, of: &'a RevisionFacts) -> Facts<'a> {
        static NOTHING: BTreeSet<String> = BTreeSet::new();
        let (revision, newer) = (&of.revision, of.newer.as_ref());
        let down = of.repository.as_ref().is_some_and(|state| state.down);
        Facts { revision, summary: &self.summary, services: &self.reports, newer, down, known: &NOTHING }
    }

    /// Of what others bring to the stages of a plan, what was delivered on the revision itself.
    fn delivered(&self, plan: &Plan) -> BTreeSet<(StageName, ServiceName)> {
        let carried = plan.stages.iter().flat_map(|stage| stage.carried.keys().map(|service| (&stage.stage, service)));
        let is_delivered = |(stage, service): &(&StageName, &ServiceName)| {
            self.reports.get(*service).is_some_and(|report| report.delivered_to().any(|delivered| delivered == *stage))
        };
        carried.filter(is_delivered).map(|(stage, service)| (stage.clone(), service.clone())).collect()
    }

    /// What need not be read again. What is awaited of earlier revisions moves without a run on this one, too.
    fn known(&self) -> KnownServices {
        let waiting = self.reports.values().filter(|report| report.awaits()).map(|report| &report.service);
        KnownServices { mark: self.mark.clone(), again: waiting.chain(&self.tell_of_others).cloned().collect() }
    }

    /// Takes up what is new, of which `facts` hold the beginning.
    async fn bring_up_to_date(&mut self, store: &dyn ReadStore, facts: &mut RevisionFacts) -> Result<()> {
        self.mark = None; // where reading ends in the middle, all is read again
        if facts.moved.are_all {
            self.reports.clear();
            self.tell_of_others.clear();
        }
        let (revision, are_all) = (&facts.revision, facts.moved.are_all);
        let none = revision.plan().is_none().then(|| nothing(revision));
        let Some(plan) = revision.plan().or(none.as_ref()) else { return Ok(()) };
        let mut parts = Vec::new();
        let first = reports(store, revision, plan, std::mem::take(&mut facts.services), are_all).await?;
        self.take_up(first, &mut parts);
        let rest: Vec<ServiceName> = facts.moved.services.iter().skip(SERVICES_AT_ONCE).cloned().collect();
        let rest: Vec<Vec<ServiceName>> = rest.chunks(SERVICES_AT_ONCE).map(<[_]>::to_vec).collect();
        let read = async |some: Vec<ServiceName>| {
            let facts = store.service_facts(&revision.repository, &revision.commit, &plan.id, &some).await?;
            reports(store, revision, plan, facts, are_all).await
        };
        let mut read = pin!(stream::iter(rest).map(read).buffer_unordered(SIDE_BY_SIDE));
        while let Some(reports) = read.try_next().await? {
            self.take_up(reports, &mut parts);
        }
        if are_all {
            self.summary = whole(plan, parts.iter());
        }
        self.mark = Some(facts.moved.mark.clone());
        Ok(())
    }

    fn take_up(&mut self, some: Vec<Read>, parts: &mut Vec<PlanSummary>) {
        for Read { part, report, tells_of_others } in some {
            parts.extend(part);
            match tells_of_others {
                true => self.tell_of_others.insert(report.service.clone()),
                false => self.tell_of_others.remove(&report.service),
            };
            self.reports.insert(report.service.clone(), report);
        }
    }
}

/// A revision with its plan, of which no earlier attempt is known.
fn first_judged(write: &Write) -> Option<(&RevisionState, &Plan)> {
    match write {
        Write::Revision(revision) if revision.again == 0 => Some((revision, revision.plan()?)),
        _ => None,
    }
}

/// What is to be said of a revision of which nothing was known, once these are committed.
fn foretold(revision: &RevisionState, plan: &Plan, writes: &[Write]) -> Kept {
    let of = (&revision.repository, &revision.commit);
    let (mut runs, mut moved) = (BTreeMap::<ServiceName, Vec<&Run>>::new(), 0);
    for write in writes.iter().rev() {
        if let Write::Run(run) = write
            && run.value.revision() == of
        {
            runs.entry(run.value.service().service).or_default().push(&run.value);
            moved += 1;
        }
    }
    let of_others = runs.iter().filter(|(_, runs)| !elsewhere(runs.iter().copied()).is_empty());
    let tell_of_others = of_others.map(|(service, _)| service.clone()).collect();
    let mut reports = BTreeMap::new();
    for (service, part) in plan.by_service() {
        let runs = runs.remove(service).unwrap_or_default();
        reports.insert(service.clone(), ServiceReport::of(service, &part, revision.again, runs, &BTreeMap::new()));
    }
    let outline = plan.outline();
    for (service, runs) in runs {
        let report = ServiceReport::of(&service, &outline, revision.again, runs, &BTreeMap::new());
        reports.insert(service, report);
    }
    Kept { reports, tell_of_others, summary: summary(plan), mark: Some(RunsMark::new(revision, moved, 0)) }
}

/// The plan of a revision that has none, or none any more, such as one to which a branch was put back by force: what was begun
/// on it is told to its end.
fn nothing(revision: &RevisionState) -> Plan {
    Plan {
        id: PlanId::new(""),
        repository: revision.repository.clone(),
        project: ProjectName::new(""),
        commit: revision.commit.clone(),
        subject: String::new(),
        at: revision.at,
        stages: Vec::new(),
        statuses: StatusDetail::Stages,
        procedures: digest::stored(Procedures::default()),
    }
}

/// The deployment configs that rollbacks hold.
async fn held_configs(store: &dyn ReadStore, holds: &ProjectHolds) -> Result<Vec<ConfigState>> {
    let rollbacks = holds.holds.iter().filter(|hold| hold.kind == HoldKind::Rollback);
    let held: BTreeSet<ServiceKey> = rollbacks.filter_map(|hold| hold.scope.one_service()).collect();
    let mut found = Vec::new();
    for service in held {
        found.extend(store.configs_of(&service).await?.into_iter().map(|config| config.value));
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
