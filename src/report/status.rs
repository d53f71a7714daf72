//! Statuses are a function of what is remembered about a revision, and of what was written before: the one place that
//! says which there are. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::commit_status::{CommitStatus, StatusState};
use crate::model::ids::{CommitId, ServiceName, StageName};
use crate::model::plan::{Decision, Plan};
use crate::model::project::StatusDetail;
use crate::model::run::Run;
use crate::model::state::{RevisionResult, RevisionState};
use crate::plan::summary::summary;
use crate::report::delivery::Delivery;
use crate::report::line::Line;
use crate::report::{plan_line, service, step};

/// With more statuses than this below the stages, only failures are written there. Source: the interface's `auto`.
const DETAILS: usize = 20;

/// Where a newer revision was delivered in the place of one that had not started.
pub type Overtaken = BTreeMap<(StageName, ServiceName), CommitId>;

/// Everything that the statuses of a revision follow from.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The revision.
    pub revision: &'a RevisionState,
    /// All runs on it.
    pub runs: &'a [Run],
    /// Of [`not_started`], what never will.
    pub overtaken: &'a Overtaken,
    /// The contexts that readers know. They are brought up to date, whatever else is left out.
    pub known: &'a BTreeSet<String>,
}

/// The context of a stage.
pub fn stage_context(stage: &StageName) -> String {
    format!("launchway/{stage}")
}

/// What a revision is to do and has not begun: another one may have taken its place.
pub fn not_started(revision: &RevisionState, runs: &[Run]) -> Vec<(StageName, ServiceName)> {
    let RevisionResult::Planned(plan) = &revision.result else { return Vec::new() };
    let nobody = Overtaken::new();
    let delivery = Delivery::of(plan, revision.again, runs, &nobody);
    let mut found = Vec::new();
    for stage in &plan.stages {
        let acts = stage.services.iter().filter(|part| part.changes.iter().any(|it| it.decision != Decision::None));
        let idle = acts.filter(|part| delivery.newest(&stage.stage, &part.service).is_none());
        found.extend(idle.map(|part| (stage.stage.clone(), part.service.clone())));
    }
    found
}

/// All statuses of a revision.
pub fn render(facts: &Facts<'_>) -> Vec<CommitStatus> {
    let Facts { revision, runs, overtaken, known } = facts;
    let mut statuses = vec![status(revision, "launchway/plan".into(), plan_line::line(revision))];
    let RevisionResult::Planned(plan) = &revision.result else { return statuses };
    let delivery = Delivery::of(plan, revision.again, runs, overtaken);
    let mut details = Vec::new();
    for stage in &plan.stages {
        let services = service::lines(&delivery, stage);
        let context = stage_context(&stage.stage);
        statuses.push(status(revision, context.clone(), service::stage_line(&delivery, stage, &services)));
        let names: BTreeSet<&str> = services.iter().map(|(name, _)| name.as_str()).collect();
        let left = below(known, &context).filter(|name| !name.contains('/') && !names.contains(name));
        let left = left.map(ServiceName::new).map(|name| (name.clone(), service::left_over(&delivery, stage, &name)));
        let left: Vec<_> = left.collect();
        for (name, line) in services.into_iter().chain(left) {
            let context = format!("{context}/{name}");
            let run = delivery.newest(&stage.stage, &name);
            let steps = run.map(|run| step::lines(run, &delivery, &below(known, &context).collect()));
            details.push((Detail::Service, status(revision, context.clone(), line)));
            let steps = steps.unwrap_or_default().into_iter();
            details
                .extend(steps.map(|(step, line)| (Detail::Step, status(revision, format!("{context}/{step}"), line))));
        }
    }
    statuses.extend(chosen(revision, plan, known, details));
    statuses
}

/// What follows a context and a slash in the known ones below it.
fn below<'a>(known: &'a BTreeSet<String>, context: &str) -> impl Iterator<Item = &'a str> {
    let prefix = format!("{context}/");
    let from = known.range(prefix.clone()..);
    from.map_while(move |known| known.strip_prefix(&prefix))
}

/// What a status below the stages is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    Service,
    Step,
}

/// Which of the statuses below the stages are written. The first plan decides, and what was written is also written to
/// its end.
fn chosen(
    revision: &RevisionState,
    plan: &Plan,
    known: &BTreeSet<String>,
    details: Vec<(Detail, CommitStatus)>,
) -> Vec<CommitStatus> {
    let expected = revision.summary.as_ref().map_or_else(|| summary(plan).details, |summary| summary.details);
    let failed = |status: &CommitStatus| matches!(status.state, StatusState::Failure | StatusState::Error);
    let keep = |(detail, status): &(Detail, CommitStatus)| match plan.statuses {
        _ if known.contains(&status.context) => true,
        StatusDetail::Hooks => true,
        StatusDetail::Services => *detail == Detail::Service,
        StatusDetail::Stages => false,
        StatusDetail::Auto => expected <= DETAILS || failed(status),
    };
    details.into_iter().filter(keep).map(|(_, status)| status).collect()
}

fn status(revision: &RevisionState, context: String, line: Line) -> CommitStatus {
    let path = match &line.run {
        Some(run) => format!("/runs/{run}"),
        None => format!("/revisions/{}/{}", revision.repository, revision.commit),
    };
    CommitStatus {
        commit: revision.commit.clone(),
        context,
        state: line.state,
        description: line.description.split_whitespace().collect::<Vec<_>>().join(" "),
        path: Some(path),
        attempt: line.attempt,
    }
}

#[cfg(test)]
mod tests;
