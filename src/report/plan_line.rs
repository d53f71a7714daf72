//! What a revision would do, in one line.

use std::collections::BTreeMap;

use crate::model::commit_status::StatusState;
use crate::model::plan::{Decision, Plan, PlanSummary};
use crate::model::state::RevisionState;
use crate::report::line::{Line, Next, details, nothing};

/// How many of a broken revision's problems its status shows.
const PROBLEMS_SHOWN: usize = 3;

/// What `launchway/plan` says of a revision that was planned.
pub(super) fn planned(revision: &RevisionState, plan: &Plan, summary: &PlanSummary) -> Line {
    line(revision, StatusState::Success, description(plan, summary), &revision.warnings)
}

/// What a plan comes to.
pub(super) fn description(plan: &Plan, summary: &PlanSummary) -> String {
    let stages = counted_by_stage(summary);
    if stages.is_empty() { nothing("to deploy", &plan.carriers(&plan.stages)) } else { stages }
}

/// The same of one that cannot be read.
pub(super) fn broken(revision: &RevisionState, problems: &[String]) -> Line {
    line(revision, StatusState::Error, told(problems), problems)
}

/// The first of some problems, and how many there are.
pub(super) fn told(problems: &[String]) -> String {
    let shown = problems.iter().take(PROBLEMS_SHOWN).map(String::as_str).collect::<Vec<_>>().join("; ");
    let more = problems.len().saturating_sub(PROBLEMS_SHOWN);
    let more = if more > 0 { format!("; {more} more") } else { String::new() };
    format!("{}: {shown}{more}", counted(problems.len(), "problem"))
}

/// The same of one that a rule refuses.
pub(super) fn refused(revision: &RevisionState, reason: &str) -> Line {
    line(revision, StatusState::Failure, format!("refused: {reason}"), &[])
}

fn line(revision: &RevisionState, state: StatusState, description: String, problems: &[String]) -> Line {
    let (attempt, details) = (1 + revision.again, details("", problems));
    Line { state, description, run: None, attempt, next: Next::Nothing, details }
}

/// `dev: 1 deploy, 2 create; production: 1 deploy`.
fn counted_by_stage(summary: &PlanSummary) -> String {
    let counts = |counts: &BTreeMap<Decision, u32>| {
        let counts = counts.iter().map(|(decision, count)| format!("{count} {}", decision.as_str()));
        counts.collect::<Vec<_>>().join(", ")
    };
    let stages = summary.stages.iter().map(|(stage, of_stage)| format!("{stage}: {}", counts(of_stage)));
    stages.collect::<Vec<_>>().join("; ")
}

fn counted(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
