//! Which sequence a service's content is delivered by: what a delivery did, beside what it deployed, as a digest.

use std::collections::BTreeMap;

use aws_lc_rs::digest::{SHA256, digest};

use crate::manifest::digest::named;
use crate::model::ids::Digest;
use crate::model::object::Location;
use crate::model::plan::{Plan, ServicePlan, StagePlan};
use crate::model::project::{Procedure, TaskDefinition};
use crate::model::shipyard::{DEPLOYMENT_TASK, Sequence};
use crate::plan::build::is_nothing;

/// How tasks run, by name: what a stage declares.
type Definitions = BTreeMap<String, Vec<TaskDefinition>>;

/// Of a sequence with how its tasks run, the code that they run included: with another one, content that did not pass is
/// tried again.
pub fn procedure(procedure: &Procedure) -> Digest {
    of(procedure, placeless)
}

/// The same without the code that tasks run. It may be the whole repository, and content that passed is not tested again
/// because of every push.
pub fn passed_procedure(procedure: &Procedure) -> Digest {
    of(procedure, codeless)
}

/// Whether two definitions of a stage's tasks say the same, wherever they stand and whatever code the revisions have that
/// they run.
pub fn same_tasks(one: &Definitions, other: &Definitions) -> bool {
    let shown = |tasks: &Definitions| -> BTreeMap<String, Vec<TaskDefinition>> {
        tasks.iter().map(|(name, tasks)| (name.clone(), tasks.iter().map(codeless).collect())).collect()
    };
    shown(one) == shown(other)
}

/// Whether two deliver alike.
pub fn same_procedure(one: &Procedure, other: &Procedure) -> bool {
    let alike = |(one, other): (&TaskDefinition, &TaskDefinition)| placeless(one) == placeless(other);
    unqueued(&one.sequence) == unqueued(&other.sequence)
        && one.tasks.keys().eq(other.tasks.keys())
        && one.by_properties.keys().eq(other.by_properties.keys())
        && one.tasks.values().zip(other.tasks.values()).all(alike)
        && one.by_properties.values().zip(other.by_properties.values()).all(alike)
}

/// How a plan delivers a service to a stage; nothing, if the stage has no delivery sequence.
pub fn delivery_procedure(plan: &Plan, stage: &StagePlan, part: &ServicePlan) -> Option<Procedure> {
    let sequence = sequence_for(&part.content, stage.sequence.as_ref()?);
    Some(plan.procedures.procedure(&stage.stage, &sequence, &part.service))
}

/// The sequence as it runs for some content: where nothing is declared any more, nothing is left to be tested.
pub fn sequence_for(content: &Digest, sequence: &Sequence) -> Sequence {
    let mut sequence = sequence.clone();
    if is_nothing(content) {
        sequence.tasks.retain(|task| task.name == DEPLOYMENT_TASK);
    }
    sequence
}

/// In which order deliveries have their turn says nothing about what they do.
fn unqueued(sequence: &Sequence) -> Sequence {
    Sequence { queue: None, ..sequence.clone() }
}

/// Where a task is declared says nothing about how it runs.
fn placeless(task: &TaskDefinition) -> TaskDefinition {
    TaskDefinition { location: Location::default(), ..task.clone() }
}

/// The id of a folder in `git:FOLDER@ID` comes from the revision, and not from who declares the task.
fn codeless(task: &TaskDefinition) -> TaskDefinition {
    let folder = |image: &str| image.rsplit_once('@').map(|(folder, _)| folder.to_owned());
    let image = Some(&*task.image).filter(|image| image.starts_with("git:")).and_then(folder);
    TaskDefinition { image: image.unwrap_or_else(|| task.image.clone()), ..placeless(task) }
}

fn of(procedure: &Procedure, shown: fn(&TaskDefinition) -> TaskDefinition) -> Digest {
    let Procedure { sequence, tasks, by_properties } = procedure;
    let sequence = unqueued(sequence);
    let tasks: BTreeMap<&String, TaskDefinition> = tasks.iter().map(|(name, task)| (name, shown(task))).collect();
    let others: BTreeMap<usize, TaskDefinition> = by_properties.iter().map(|(at, task)| (*at, shown(task))).collect();
    let text = match others.is_empty() {
        true => serde_json::to_vec(&(sequence, tasks)),
        false => serde_json::to_vec(&(sequence, tasks, others)),
    };
    let text = text.unwrap_or_default();
    named(&digest(&SHA256, &text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::shipyard::{QueuePolicy, Shipyard};

    fn tested(image: &str, retries: u32, line: u32) -> Procedure {
        let task = TaskDefinition {
            command: vec!["true".into()],
            image: image.into(),
            env: Vec::new(),
            timeout_seconds: Some(60),
            retries,
            stages: Vec::new(),
            services: Vec::new(),
            properties: Default::default(),
            location: Location { line, ..Location::default() },
        };
        let sequence = Shipyard::implicit().stages[0].sequences[0].clone();
        Procedure { sequence, tasks: BTreeMap::from([("test".to_owned(), task)]), ..Procedure::default() }
    }

    #[test]
    fn it_is_told_apart_by_how_tasks_run_and_by_their_code_only_until_it_passed() {
        let archive = |digest: char| tested(&format!("https://me@x.example/a@sha256:{digest}"), 0, 1);
        assert_ne!(passed_procedure(&archive('1')), passed_procedure(&archive('2')), "its file says another one");
        let before = tested("git:tests@1", 0, 1);
        let mut queued = before.clone();
        queued.sequence.queue = Some(QueuePolicy::All);
        assert_eq!((procedure(&before), same_procedure(&before, &queued)), (procedure(&queued), true));
        for (after, again_if_failed, again_if_passed) in [
            (tested("git:tests@1", 0, 9), false, false),
            (tested("git:tests@2", 0, 1), true, false),
            (tested("git:others@1", 0, 1), true, true),
            (tested("git:tests@1", 1, 1), true, true),
        ] {
            assert_eq!(procedure(&before) != procedure(&after), again_if_failed, "{after:?}");
            let passed = passed_procedure(&before) != passed_procedure(&after);
            assert_eq!(passed, again_if_passed, "{after:?}");
            let defined = |procedure: &Procedure| {
                procedure.tasks.iter().map(|(name, task)| (name.clone(), vec![task.clone()])).collect()
            };
            assert_eq!(!same_tasks(&defined(&before), &defined(&after)), again_if_passed, "{after:?}");
        }
    }
}
