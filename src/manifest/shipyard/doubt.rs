//! What is to be said of tasks according to who does them, which a shipyard alone does not tell: a `Task` object may.

use super::idle::{self, Idle, OF_APPROVAL, OF_EVALUATION, OF_POD, OF_ROLLBACK};
use super::{is_built_in_deployment, place};
use crate::manifest::findings::Findings;
use crate::manifest::problem::Problem;
use crate::manifest::shape::{nearest, nearest_within};
use crate::manifest::yaml::push_segment;
use crate::model::evaluation::are_declared;
use crate::model::ids::StageName;
use crate::model::project::TaskDefinition;
use crate::model::shipyard::{
    APPROVAL_TASK, Condition, DEPLOYMENT_TASK, EVALUATION_TASK, ROLLBACK_TASK, Shipyard, Task,
};

/// What launchway does itself.
const BUILT_IN: [&str; 4] = [APPROVAL_TASK, DEPLOYMENT_TASK, EVALUATION_TASK, ROLLBACK_TASK];
/// In how many letters a slip differs at most from what was meant.
const LETTERS: usize = 2;
/// What an `evaluation` has that launchway judges.
const OBJECTIVES: &str = "objectives";

/// A problem of a task, if it is one.
#[derive(Clone, Debug)]
pub(crate) struct Doubt {
    /// In which stage.
    pub(crate) stage: StageName,
    /// The task.
    pub(crate) task: Task,
    /// Whether it is a problem where a `Task` object says how the task runs, or where none does.
    of_pods: bool,
    /// What is to be said then.
    pub(crate) problem: Problem,
}

impl Doubt {
    /// Whether it is a problem beside the `Task` objects of that name in the stage.
    pub(crate) fn holds(&self, definitions: &[TaskDefinition]) -> bool {
        match self.of_pods {
            true => definitions.iter().any(|it| it.services.is_empty() && it.is_for(&self.task)),
            false => definitions.is_empty(),
        }
    }
}

/// Those of a shipyard.
pub(crate) fn doubts(shipyard: &Shipyard, findings: &Findings<'_>) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    for (stage, declared) in shipyard.stages.iter().enumerate() {
        for (sequence, value) in declared.sequences.iter().enumerate() {
            for (index, task) in value.tasks.iter().enumerate().filter(|(_, task)| !is_built_in_deployment(task)) {
                let at = format!("{}/tasks/{index}", place(stage, sequence));
                let of = |of_pods| {
                    let (stage, task) = (declared.name.clone(), task.clone());
                    move |problem: Problem| Doubt { stage: stage.clone(), task: task.clone(), of_pods, problem }
                };
                let said = without_pod(task, &at, findings).into_iter();
                doubts.extend(said.chain(undoing(&value.tasks[..index], task, &at, findings)).map(of(false)));
                let message = format!("has no effect: a Task object says how `{}` runs", task.name);
                doubts.extend(without_effect(task, &at, &OF_POD, &message, findings).map(of(true)));
            }
        }
    }
    doubts
}

/// What is to be said of a task that no `Task` object is for.
fn without_pod(task: &Task, at: &str, findings: &Findings<'_>) -> Vec<Problem> {
    match task.name.as_str() {
        APPROVAL_TASK => {
            let message = "has no effect: people decide about `approval`";
            without_effect(task, at, &OF_APPROVAL, message, findings).collect()
        }
        EVALUATION_TASK if are_declared(&task.properties) => {
            let message = "has no effect: launchway judges the objectives";
            without_effect(task, at, &OF_EVALUATION, message, findings).collect()
        }
        ROLLBACK_TASK if task.is_built_in_rollback() => {
            let message = "has no effect: launchway does `rollback`";
            without_effect(task, at, &OF_ROLLBACK, message, findings).collect()
        }
        EVALUATION_TASK => without_objectives(task, at, findings).into_iter().collect(),
        _ => slip(task, at, findings).into_iter().collect(),
    }
}

fn without_effect(
    task: &Task,
    at: &str,
    keys: &[Idle],
    message: &str,
    findings: &Findings<'_>,
) -> impl Iterator<Item = Problem> {
    idle::said(task, keys).map(move |(key, instead)| {
        let problem = Problem::error(&findings.location(&format!("{at}/{key}")), "shipyard", message);
        problem.warning().hint(*instead)
    })
}

/// A `rollback` that takes back whatever its own sequence has deployed well.
fn undoing(before: &[Task], task: &Task, at: &str, findings: &Findings<'_>) -> Option<Problem> {
    let undoes = task.is_built_in_rollback() && task.condition == Condition::OnSuccess;
    before.iter().find(|before| undoes && is_built_in_deployment(before))?;
    let location = findings.location(&format!("{at}/name"));
    let message = "each delivery that goes well is taken back: `rollback` runs after tasks that have passed";
    let problem = Problem::error(&location, "shipyard", message).warning();
    Some(problem.hint("`condition: onFailure` has it go back where a task before it fails"))
}

/// An `evaluation` whose objectives nobody sees.
fn without_objectives(task: &Task, at: &str, findings: &Findings<'_>) -> Option<Problem> {
    let mut keys = task.properties.as_object()?.keys().filter(|_| task.executors.is_empty());
    let key = keys.find(|key| *key != OBJECTIVES && nearest(key, [OBJECTIVES].into_iter()).is_some())?;
    let mut pointer = format!("{at}/properties");
    push_segment(&mut pointer, key);
    let location = findings.location(&pointer);
    let message = format!("launchway judges by `{OBJECTIVES}`: with `{key}`, `{EVALUATION_TASK}` is left to executors");
    let problem = Problem::error(&location, "misspelt", message).warning();
    Some(problem.hint(format!("did you mean `{OBJECTIVES}`?")))
}

/// A task that resembles one that is built in, and that nobody is said to do.
fn slip(task: &Task, at: &str, findings: &Findings<'_>) -> Option<Problem> {
    let name = task.name.as_str();
    let meant = nearest_within(LETTERS, name, BUILT_IN.into_iter()).filter(|meant| *meant != name);
    let meant = meant.filter(|_| task.executors.is_empty())?;
    let location = findings.location(&format!("{at}/name"));
    let message = format!("nobody is said to do `{name}`: there is no Task of that name, and it names no `executors`");
    Some(Problem::error(&location, "misspelt", message).warning().hint(format!("did you mean `{meant}`?")))
}
