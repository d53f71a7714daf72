//! Tasks that may be misspelt: nobody would do them, and what they belong to would wait for ever.

use super::place;
use crate::manifest::findings::Findings;
use crate::manifest::problem::Problem;
use crate::manifest::shape::nearest_within;
use crate::model::ids::StageName;
use crate::model::shipyard::{APPROVAL_TASK, DEPLOYMENT_TASK, EVALUATION_TASK, Shipyard};

/// What launchway does itself.
const BUILT_IN: [&str; 3] = [APPROVAL_TASK, DEPLOYMENT_TASK, EVALUATION_TASK];
/// In how many letters a slip differs at most from what was meant.
const LETTERS: usize = 2;

/// A task that resembles one that is built in, and that nobody is said to do; a `Task` may do it all the same.
#[derive(Clone, Debug)]
pub(crate) struct Slip {
    /// In which stage.
    pub(crate) stage: StageName,
    /// Its name.
    pub(crate) task: String,
    /// What is to be said of it, if there is no such `Task` in the stage.
    pub(crate) problem: Problem,
}

/// Those of a shipyard.
pub(crate) fn slips(shipyard: &Shipyard, findings: &Findings<'_>) -> Vec<Slip> {
    let mut slips = Vec::new();
    for (stage, declared) in shipyard.stages.iter().enumerate() {
        for (sequence, value) in declared.sequences.iter().enumerate() {
            for (index, task) in value.tasks.iter().enumerate().filter(|(_, task)| task.executors.is_empty()) {
                let name = task.name.as_str();
                let meant = nearest_within(LETTERS, name, BUILT_IN.into_iter()).filter(|meant| *meant != name);
                let Some(meant) = meant else { continue };
                let location = findings.location(&format!("{}/tasks/{index}/name", place(stage, sequence)));
                let message = format!(
                    "nobody is said to do `{name}`: there is no Task of that name, and it names no `executors`"
                );
                let problem = Problem::error(&location, "misspelt", message).warning();
                let problem = problem.hint(format!("did you mean `{meant}`?"));
                slips.push(Slip { stage: declared.name.clone(), task: task.name.clone(), problem });
            }
        }
    }
    slips
}
