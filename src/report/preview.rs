//! What merging a pull request would do, told in a comment and in one line. What users have written stands in code.

use serde_json::json;

use crate::engine::rollback::evaluate::hooks;
use crate::model::commit_status::{CommitStatus, StatusState};
use crate::model::ids::{CommitId, RepositoryName};
use crate::model::plan::{Change, Decision, Plan, ServicePlan, StagePlan, StageStart};
use crate::model::seed::Seed;
use crate::model::shipyard::DEPLOYMENT_TASK;
use crate::model::state::spec_of;
use crate::plan::summary::summary;
use crate::report::line;
use crate::report::markdown::{block, code, lines, remark};
use crate::report::plan_line;
use crate::report::status::PLAN;

/// What merging a pull request would come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Foreseen {
    /// It is in another repository alone, from which nothing is read.
    Elsewhere,
    /// Both sides have changed these files differently.
    Conflicts(Vec<String>),
    /// The files would be broken; the problems, each on a line.
    Broken(Vec<String>),
    /// A rule would refuse it.
    Refused(String),
    /// It would be planned so, with these warnings, each on a line.
    Planned(Box<Plan>, Vec<String>),
}

/// What is hidden at the beginning of the comment on a pull request: by this it is found again.
pub fn marker(seed: &Seed, repository: &RepositoryName, number: u64) -> String {
    remark("plan", seed, &[json!(repository.as_str()), json!(number)])
}

/// The comment on a pull request whose merge into `branch` comes to what was foreseen. It names no commit that moves by itself,
/// so that it stays as it is as long as the plan does, and what is said of its environment.
pub fn comment(branch: &str, head: &CommitId, foreseen: &Foreseen, environment: Option<&str>) -> String {
    let what = format!("Merging {} into {}", code(head.short()), code(branch));
    let told = match foreseen {
        Foreseen::Elsewhere => {
            format!(
                "{what} is not planned: it is in another repository, from which nothing is read. Bring it as a branch of this one.\n"
            )
        }
        Foreseen::Conflicts(files) => {
            let files = lines(files.iter().map(|file| code(file)));
            format!("{what} is not possible: both have changed\n\n{files}\nMerge {} into it first.\n", code(branch))
        }
        Foreseen::Broken(problems) => {
            format!("{what} would deploy nothing: its files are broken.\n\n{}", block(problems))
        }
        Foreseen::Refused(reason) => format!("{what} would be refused: {}\n", code(reason)),
        Foreseen::Planned(plan, warnings) => planned(&what, plan, warnings),
    };
    let ran = match environment {
        None => "Nothing of it has run.",
        Some(_) => "Nothing of that plan has run.",
    };
    let environment = environment.unwrap_or_default();
    format!("### The plan of merging this\n\n{told}{environment}\n{ran} This comment follows the pull request.\n")
}

/// The status of the pull request's head, if that is known.
pub fn status(head: &CommitId, foreseen: &Foreseen) -> Option<CommitStatus> {
    let (state, description) = match foreseen {
        Foreseen::Elsewhere => return None,
        Foreseen::Conflicts(files) => {
            let first = files.first().map(String::as_str).unwrap_or_default();
            (StatusState::Failure, format!("cannot be merged: {} in conflict, such as {first}", counted(files.len())))
        }
        Foreseen::Broken(problems) => (StatusState::Error, format!("merging it: {}", plan_line::told(problems))),
        Foreseen::Refused(reason) => (StatusState::Failure, format!("merging it is refused: {reason}")),
        Foreseen::Planned(plan, _) => {
            (StatusState::Success, format!("merging it: {}", plan_line::description(plan, &summary(plan))))
        }
    };
    let problems: &[String] = match foreseen {
        Foreseen::Broken(problems) | Foreseen::Planned(_, problems) => problems,
        Foreseen::Elsewhere | Foreseen::Conflicts(_) | Foreseen::Refused(_) => &[],
    };
    let details = line::details("", problems);
    Some(CommitStatus { details, ..CommitStatus::new(head.clone(), PLAN, state, description) })
}

fn counted(files: usize) -> String {
    if files == 1 { "1 file".to_owned() } else { format!("{files} files") }
}

fn planned(what: &str, plan: &Plan, warnings: &[String]) -> String {
    let stages: String = plan.stages.iter().filter_map(stage).collect();
    let mut text = match stages.is_empty() {
        true => format!("{what} deploys nothing.\n"),
        false => format!("{what} does this:\n{stages}"),
    };
    if !warnings.is_empty() {
        text.push_str(&format!("\nWarnings:\n\n{}", block(warnings)));
    }
    text
}

/// A stage in which anything changes.
fn stage(stage: &StagePlan) -> Option<String> {
    let told: Vec<String> = stage.services.iter().flat_map(service).collect();
    if told.is_empty() {
        return None;
    }
    let start = match &stage.start {
        StageStart::Push => "with the push".to_owned(),
        StageStart::After(triggers) | StageStart::Event(triggers) => {
            let events: Vec<String> = triggers.iter().map(|trigger| code(&trigger.event)).collect();
            format!("after {}", events.join(" or "))
        }
        StageStart::ByHand => "when a person starts it".to_owned(),
    };
    let tasks = stage.sequence.iter().flat_map(|sequence| &sequence.tasks).map(|task| task.name.as_str());
    let tasks: Vec<String> = tasks.filter(|task| *task != DEPLOYMENT_TASK).map(code).collect();
    let tasks = if tasks.is_empty() { String::new() } else { format!(", with the tasks {}", tasks.join(", ")) };
    Some(format!("\n**{}**, {start}{tasks}:\n\n{}", code(stage.stage.as_str()), lines(told.into_iter())))
}

fn service(service: &ServicePlan) -> Vec<String> {
    let matter = |change: &&Change| change.decision != Decision::None || !change.cause.is_empty();
    let mut told: Vec<String> = service.changes.iter().filter(matter).map(change).collect();
    if let Some(why) = &service.runs_again {
        told.push(format!("{} runs again: {}", code(service.service.as_str()), code(why)));
    }
    told
}

fn change(change: &Change) -> String {
    let cause = if change.cause.is_empty() { String::new() } else { format!(": {}", code(&change.cause)) };
    let hooks = match change.starts_deployment() {
        true => change.object.as_ref().and_then(|object| spec_of(object).ok()).map(|spec| hooks(&spec)),
        false => None,
    };
    let hooks: String = hooks.unwrap_or_default().iter().map(|hook| format!("\n  - runs {}", code(hook))).collect();
    format!("{} {}{cause}{hooks}", change.decision.as_str(), code(&change.title()))
}

#[cfg(test)]
mod tests;
