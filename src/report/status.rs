//! Statuses are a function of what is remembered about a revision, and of what was written before: the one place that
//! says which there are. Pure.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use crate::model::commit_status::{CommitStatus, StatusState};
use crate::model::ids::{CommitId, ServiceName, StageName};
use crate::model::plan::PlanSummary;
use crate::model::project::StatusDetail;
use crate::model::state::{RevisionResult, RevisionState};
use crate::report::line::{Line, Next};
use crate::report::service_report::{ServiceReport, StageReport};
use crate::report::{plan_line, rest, service};

/// With more statuses than this below the stages, only failures are written there. Source: the interface's `auto`.
const DETAILS: usize = 20;
/// The context that says what a revision would do.
pub const PLAN: &str = "launchway/plan";

/// Everything that the statuses of a revision follow from.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The revision; what its plan says of services need not be there.
    pub revision: &'a RevisionState,
    /// What its plan comes to.
    pub summary: &'a PlanSummary,
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

/// The stage that a context is about, as a whole.
pub(super) fn stage_of(context: &str) -> Option<StageName> {
    let name = context.strip_prefix("launchway/").filter(|name| context != PLAN && !name.contains('/'));
    name.map(StageName::new)
}

/// All statuses of a revision.
pub fn render(facts: &Facts<'_>) -> Vec<CommitStatus> {
    let Facts { revision, known, .. } = *facts;
    // Of one that has no plan any more, what is known goes on being told.
    let untold = Choice { known, statuses: StatusDetail::Stages, are_few: false };
    let (line, choice) = match &revision.result {
        RevisionResult::Planned(plan) => {
            let summary = revision.summary.as_ref().unwrap_or(facts.summary);
            let choice = Choice { known, statuses: plan.statuses, are_few: summary.details <= DETAILS };
            (plan_line::planned(revision, plan, summary), choice)
        }
        RevisionResult::Broken { problems } => (plan_line::broken(revision, problems), untold),
        RevisionResult::Refused { reason } => (plan_line::refused(revision, reason), untold),
    };
    let mut statuses = vec![status(revision, PLAN.into(), line)];
    let mut details = Vec::new();
    let planned = revision.plan().into_iter().flat_map(|plan| &plan.stages).map(|stage| stage.stage.clone());
    for stage in planned.chain(facts.gone_stages()) {
        let (attempt, said) = facts.said(&stage, |_| true);
        let of_stage = stage_status(revision, &stage, (attempt, &said));
        let nothing = || status(revision, stage_context(&stage), facts.nothing_in(&stage, attempt));
        statuses.push(of_stage.unwrap_or_else(nothing));
        facts.add_details(&stage, said, &choice, &mut details);
    }
    let written = details.into_iter().filter(|detail| choice.keeps(detail));
    statuses.extend(written.map(|detail| status(revision, detail.context, detail.line)));
    statuses
}

/// What a revision says of some services in a stage; nothing, if there is nothing to be said. A later one that declares the
/// same shares what becomes of them.
pub fn in_stage(facts: &Facts<'_>, stage: &StageName, services: &BTreeSet<&ServiceName>) -> Option<CommitStatus> {
    let (attempt, said) = facts.said(stage, |service| services.contains(service));
    stage_status(facts.revision, stage, (attempt, &said))
}

fn stage_status(
    revision: &RevisionState,
    stage: &StageName,
    (attempt, said): (u32, &[Said<'_>]),
) -> Option<CommitStatus> {
    let line = service::stage_line(attempt, said.iter().map(|said| (said.name, &**said.line)))?;
    let lacks_some = said.iter().any(|said| said.line.state == StatusState::Skipped);
    Some(CommitStatus { lacks_some, ..status(revision, stage_context(stage), line) })
}

/// A service in a stage, and what is said of it there.
struct Said<'a> {
    name: &'a str,
    line: Cow<'a, Box<Line>>,
    /// Nothing, if it is gone from there.
    report: Option<&'a StageReport>,
}

impl Facts<'_> {
    /// What is said of services in a stage, and how often anything of that was attempted.
    fn said(&self, stage: &StageName, of: impl Fn(&ServiceName) -> bool) -> (u32, Vec<Said<'_>>) {
        let again = self.revision.again;
        let (mut attempts, mut said) = (again, Vec::new());
        for service in self.services.values().filter(|report| of(&report.service)) {
            attempts += service.attempt_in(stage).map_or(0, |attempt| attempt - again);
            if let Some(report) = service.in_stage(stage)
                && let Some(line) = self.line(report)
            {
                said.push(Said { name: service.service.as_str(), line, report: Some(report) });
            }
        }
        (attempts, said)
    }

    /// What waits in vain once a newer revision has taken its place; as long as the service goes on in another stage, it
    /// may still get there.
    pub(super) fn line<'a>(&self, report: &'a StageReport) -> Option<Cow<'a, Box<Line>>> {
        let mut line = Cow::Borrowed(report.line.as_ref()?);
        if self.down && line.next == Next::Start {
            line.to_mut().description = rest::is_down(&self.revision.repository);
        }
        Some(match self.newer.filter(|_| !report.goes_on) {
            Some(newer) => {
                let gives_way = report.passed_over || report.awaited.is_some();
                Cow::Owned(Box::new(service::overtaken(*line.into_owned(), gives_way, newer)))
            }
            None => line,
        })
    }

    /// A stage in which nothing is done.
    fn nothing_in(&self, stage: &StageName, attempt: u32) -> Line {
        match self.revision.plan() {
            Some(plan) => service::unchanged(attempt, &plan.carriers(plan.stage(stage))),
            None => service::never_started(attempt),
        }
    }

    /// What was said before, or is gone, and had no run.
    fn left_over(&self, attempt: u32) -> Line {
        match self.revision.plan() {
            Some(_) => service::left_over(attempt),
            None => service::never_started(attempt),
        }
    }

    /// Stages of which something was said, or in which something ran, before the plan was made again without them.
    fn gone_stages(&self) -> BTreeSet<StageName> {
        let is_gone = |name: &StageName| self.revision.plan().is_none_or(|plan| plan.stage(name).is_none());
        let said = below(self.known, "launchway").filter_map(|context| context.split('/').next());
        let mut names: BTreeSet<StageName> = said.filter(|name| *name != "plan").map(StageName::new).collect();
        names.retain(is_gone);
        let ran = self.services.values().flat_map(|report| &report.stages).map(|report| &report.stage);
        names.extend(ran.filter(|name| is_gone(name)).cloned());
        names
    }

    /// What stands below a stage: its services with their steps, and what readers know beside them. Of thousands of services
    /// only those are gone into of which something may be written.
    fn add_details(&self, stage: &StageName, said: Vec<Said<'_>>, choice: &Choice<'_>, details: &mut Vec<Detail>) {
        let (context, again) = (stage_context(stage), self.revision.again);
        let is_said = |name: &str| said.binary_search_by(|said| said.name.cmp(name)).is_ok();
        let left = below(self.known, &context).filter(|name| !name.contains('/') && !is_said(name));
        let left = left.map(|name| {
            let service = self.services.get(&ServiceName::new(name));
            let line = self.left_over(service.and_then(|service| service.attempt_in(stage)).unwrap_or(again));
            Said { name, line: Cow::Owned(Box::new(line)), report: service.and_then(|service| service.in_stage(stage)) }
        });
        let left: Vec<Said<'_>> = left.collect();
        let are_known = below(self.known, &context).next().is_some();
        for said in said.into_iter().chain(left) {
            if are_known || said.lines().any(|(is_step, line)| choice.is_written(is_step, line)) {
                self.add_details_of(format!("{context}/{}", said.name), said, details);
            }
        }
    }

    /// A service in a stage with its steps.
    fn add_details_of(&self, context: String, said: Said<'_>, details: &mut Vec<Detail>) {
        let attempt = said.line.attempt;
        details.push(Detail { is_step: false, context: context.clone(), line: *said.line.into_owned() });
        let steps = said.report.map_or(&[][..], |report| &report.steps);
        let begun: BTreeSet<&str> = steps.iter().map(|(step, _)| step.as_str()).collect();
        let unreached = below(self.known, &context).filter(|step| !begun.contains(step));
        let unreached = unreached.map(|step| {
            let line = said.report.and_then(|report| report.unreached(step)).cloned();
            (step.to_owned(), line.unwrap_or_else(|| service::forgotten(attempt)))
        });
        let steps = steps.iter().cloned().chain(unreached);
        details.extend(steps.map(|(step, line)| Detail { is_step: true, context: format!("{context}/{step}"), line }));
    }
}

impl Said<'_> {
    /// What is said of it and of its steps, with whether it is of one of these.
    fn lines(&self) -> impl Iterator<Item = (bool, &Line)> {
        let steps = self.report.into_iter().flat_map(|report| &report.steps);
        iter::once((false, &**self.line)).chain(steps.map(|(_, line)| (true, line)))
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
struct Choice<'a> {
    known: &'a BTreeSet<String>,
    statuses: StatusDetail,
    are_few: bool,
}

impl Choice<'_> {
    fn keeps(&self, detail: &Detail) -> bool {
        self.known.contains(&detail.context) || self.is_written(detail.is_step, &detail.line)
    }

    /// Whether something is written that nobody knows yet.
    fn is_written(&self, is_step: bool, line: &Line) -> bool {
        match self.statuses {
            StatusDetail::Hooks => true,
            StatusDetail::Services => !is_step,
            StatusDetail::Stages => false,
            StatusDetail::Auto => self.are_few || matches!(line.state, StatusState::Failure | StatusState::Error),
        }
    }
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
        details: line.details,
        address: None,
        lacks_some: false,
    }
}

#[cfg(test)]
mod tests;
