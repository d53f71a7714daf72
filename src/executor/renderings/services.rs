//! What there is to be said of single services of a revision.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::model::ids::{ProjectName, RunId, ServiceKey, StageName};
use crate::model::plan::{Plan, PlanSummary};
use crate::model::run::{Run, SequenceState};
use crate::model::state::RevisionState;
use crate::plan::summary::summary;
use crate::report::service_report::ServiceReport;
use crate::store::{ReadStore, ServiceFacts};

/// What was read of a service.
pub(super) struct Read {
    /// What its part of the plan comes to, where all are read.
    pub(super) part: Option<PlanSummary>,
    /// What is said of it.
    pub(super) report: ServiceReport,
    /// Whether that tells of runs of other revisions, which move without one of this one.
    pub(super) tells_of_others: bool,
}

/// What is said of some services.
pub(super) async fn reports(
    store: &dyn ReadStore,
    revision: &RevisionState,
    plan: &Plan,
    some: Vec<ServiceFacts>,
    are_all: bool,
) -> Result<Vec<Read>> {
    let mut read = Vec::with_capacity(some.len());
    for mut facts in some {
        let part = facts.plan.as_ref().filter(|_| are_all).map(summary);
        let elsewhere = elsewhere(&facts.runs);
        let mut others = Vec::new();
        for id in elsewhere.keys() {
            others.extend(store.run(id).await?.map(|run| run.value));
        }
        let tells_of_others = !others.is_empty() || elsewhere.into_values().any(|is_awaited| is_awaited);
        facts.runs.extend(others);
        read.push(Read { part, report: report(store, revision, plan, facts).await?, tells_of_others });
    }
    Ok(read)
}

async fn report(
    store: &dyn ReadStore,
    revision: &RevisionState,
    plan: &Plan,
    facts: ServiceFacts,
) -> Result<ServiceReport> {
    let ServiceFacts { service, plan: part, runs } = facts;
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

/// The deployments of these runs that are not among them, as where later runs, of other revisions, have tried them again; with
/// whether a run waits for them that has not ended.
pub(super) fn elsewhere<'a>(runs: impl IntoIterator<Item = &'a Run, IntoIter: Clone>) -> BTreeMap<&'a RunId, bool> {
    let runs = runs.into_iter();
    let mut elsewhere = BTreeMap::new();
    for run in runs.clone().filter_map(Run::sequence) {
        for id in run.tasks.iter().flat_map(|task| &task.deployments).filter_map(|it| it.run.as_ref()) {
            *elsewhere.entry(id).or_default() |= run.state != SequenceState::Ended;
        }
    }
    for run in runs {
        elsewhere.remove(run.id());
    }
    elsewhere
}
