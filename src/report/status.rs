//! Statuses are a function of what is remembered about a revision, and of what was written before: the one place that
//! says which there are. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::commit_status::{CommitStatus, StatusState};
use crate::model::ids::{CommitId, ServiceName, StageName};
use crate::model::plan::Plan;
use crate::model::project::StatusDetail;
use crate::model::state::{RevisionResult, RevisionState};
use crate::plan::summary::whole;
use crate::report::line::{Line, Next};
use crate::report::service_report::{ServiceReport, StageReport};
use crate::report::{plan_line, rest, service};

/// With more statuses than this below the stages, only failures are written there. Source: the interface's `auto`.
const DETAILS: usize = 20;
/// The context that says what a revision would do.
pub(super) const PLAN: &str = "launchway/plan";

/// Everything that the statuses of a revision follow from.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The revision; what its plan says of services need not be there.
    pub revision: &'a RevisionState,
    /// What is said of each service that its plan names or that had a run on it, by name.
    pub services: &'a BTreeMap<ServiceName, ServiceReport>,
    /// The first revision after it that has a plan: what has not started by then never will.
    pub newer: Option<&'a CommitId>,
    /// Whether its repository was taken down: nothing starts until it is brought up again.
    pub down: bool,
    /// The contexts that readers know. They are brought up to date, whatever else is left out.
    pub known: &'a BTreeSet<String>,
}

/// The context of a stage.
pub fn stage_context(stage: &StageName) -> String {
    format!("launchway/{stage}")
}

/// All statuses of a revision.
pub fn render(facts: &Facts<'_>) -> Vec<CommitStatus> {
    let Facts { revision, services, .. } = facts;
    let first = |line| vec![status(revision, PLAN.into(), line)];
    let plan = match &revision.result {
        RevisionResult::Planned(plan) => plan,
        RevisionResult::Broken { problems } => return first(plan_line::broken(revision, problems)),
        RevisionResult::Refused { reason } => return first(plan_line::refused(revision, reason)),
    };
    let summary = match &revision.summary {
        Some(summary) => summary.clone(),
        None => whole(plan, services.values().map(|report| &report.summary)),
    };
    let mut statuses = first(plan_line::planned(revision, plan, &summary));
    let mut details = Vec::new();
    let planned = plan.stages.iter().map(|stage| stage.stage.clone());
    for stage in planned.chain(facts.gone_stages(plan)) {
        let (attempt, lines) = facts.lines(&stage, |_| true);
        let unchanged = || service::unchanged(attempt, &plan.carriers(plan.stage(&stage)));
        let line = service::stage_line(attempt, &lines).unwrap_or_else(unchanged);
        statuses.push(status(revision, stage_context(&stage), line));
        facts.add_details(&stage, lines, &mut details);
    }
    let written = chosen(facts, plan, summary.details, details);
    statuses.extend(written.map(|detail| status(revision, detail.context, detail.line)));
    statuses
}

/// What a revision says of some services in a stage; nothing, if there is nothing to be said. A later one that declares the
/// same shares what becomes of them.
pub fn in_stage(facts: &Facts<'_>, stage: &StageName, services: &BTreeSet<&ServiceName>) -> Option<CommitStatus> {
    let (attempt, lines) = facts.lines(stage, |service| services.contains(service));
    Some(status(facts.revision, stage_context(stage), service::stage_line(attempt, &lines)?))
}

impl Facts<'_> {
    /// What is said of services in a stage, and how often anything of that was attempted.
    fn lines(&self, stage: &StageName, of: impl Fn(&ServiceName) -> bool) -> (u32, Vec<(&ServiceName, Line)>) {
        let (again, services) = (self.revision.again, self.services.values().filter(|report| of(&report.service)));
        let here = services.filter_map(|report| Some((report, report.in_stage(stage)?)));
        let here: Vec<(&ServiceReport, &StageReport)> = here.collect();
        let attempt = again + here.iter().map(|(_, report)| report.attempt - again).sum::<u32>();
        let lines =
            here.into_iter().filter_map(|(service, report)| Some((&service.service, self.line(service, report)?)));
        (attempt, lines.collect())
    }

    /// What waits in vain once a newer revision has taken its place; as long as the service goes on in another stage, it
    /// may still get there.
    pub(super) fn line(&self, service: &ServiceReport, report: &StageReport) -> Option<Line> {
        let mut line = report.line.clone()?;
        if self.down && line.next == Next::Start {
            line.description = rest::is_down(&self.revision.repository);
        }
        Some(match self.newer.filter(|_| !service.goes_on) {
            Some(newer) => service::overtaken(line, report.passed_over || report.awaited.is_some(), newer),
            None => line,
        })
    }

    /// Stages of which something was said, or in which something ran, before the plan was made again without them.
    fn gone_stages(&self, plan: &Plan) -> BTreeSet<StageName> {
        let said = below(self.known, "launchway").filter_map(|context| context.split('/').next());
        let mut names: BTreeSet<StageName> = said.filter(|name| *name != "plan").map(StageName::new).collect();
        names.extend(self.services.values().flat_map(|report| &report.stages).map(|report| report.stage.clone()));
        names.retain(|name| plan.stage(name).is_none());
        names
    }

    /// What stands below a stage: its services with their steps, and what readers know beside them.
    fn add_details(&self, stage: &StageName, lines: Vec<(&ServiceName, Line)>, details: &mut Vec<Detail>) {
        let (context, again) = (stage_context(stage), self.revision.again);
        let is_said = |name: &str| lines.binary_search_by(|(said, _)| said.as_str().cmp(name)).is_ok();
        let left = below(self.known, &context).filter(|name| !name.contains('/') && !is_said(name));
        let left = left.map(|name| {
            let report = self.services.get(&ServiceName::new(name)).and_then(|report| report.in_stage(stage));
            (name, service::left_over(report.map_or(again, |report| report.attempt)))
        });
        let left: Vec<(&str, Line)> = left.collect();
        for (name, line) in lines.into_iter().map(|(name, line)| (name.as_str(), line)).chain(left) {
            let context = format!("{context}/{name}");
            let report = self.services.get(&ServiceName::new(name)).and_then(|report| report.in_stage(stage));
            details.push(Detail { is_step: false, context: context.clone(), line });
            let Some(report) = report else { continue };
            let begun: BTreeSet<&str> = report.steps.iter().map(|(step, _)| step.as_str()).collect();
            let unreached = below(self.known, &context).filter(|step| !begun.contains(step));
            let unreached = unreached.filter_map(|step| Some((step.to_owned(), report.unreached.clone()?)));
            let steps = report.steps.iter().cloned().chain(unreached);
            details.extend(steps.map(|(step, line)| Detail {
                is_step: true,
                context: format!("{context}/{step}"),
                line,
            }));
        }
    }
}

/// What follows a context and a slash in the known ones below it.
fn below<'a>(known: &'a BTreeSet<String>, context: &str) -> impl Iterator<Item = &'a str> {
    let prefix = format!("{context}/");
    let from = known.range(prefix.clone()..);
    from.map_while(move |known| known.strip_prefix(&prefix))
}

/// What can be said below the stages.
struct Detail {
    /// Whether it is about a hook or a task, not about the service.
    is_step: bool,
    context: String,
    line: Line,
}

/// Which of the statuses below the stages are written. The first plan decides, and what was written is also written to
/// its end.
fn chosen(facts: &Facts<'_>, plan: &Plan, expected: usize, details: Vec<Detail>) -> impl Iterator<Item = Detail> {
    let failed = |line: &Line| matches!(line.state, StatusState::Failure | StatusState::Error);
    let keep = move |detail: &Detail| match plan.statuses {
        _ if facts.known.contains(&detail.context) => true,
        StatusDetail::Hooks => true,
        StatusDetail::Services => !detail.is_step,
        StatusDetail::Stages => false,
        StatusDetail::Auto => expected <= DETAILS || failed(&detail.line),
    };
    details.into_iter().filter(keep)
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
