//! Which sequence a service's content is delivered by: what a delivery did, beside what it deployed, as a digest.

use std::collections::BTreeMap;

use aws_lc_rs::digest::{SHA256, digest};

use crate::model::ids::Digest;
use crate::model::object::Location;
use crate::model::project::TaskDefinition;
use crate::model::shipyard::Sequence;

/// Of a sequence with how its tasks run, the code that they run included: with another one, content that did not pass is
/// tried again.
pub fn procedure(sequence: &Sequence, tasks: &BTreeMap<String, TaskDefinition>) -> Digest {
    of(sequence, tasks, |image| image.to_owned())
}

/// The same without the code that tasks run. It may be the whole repository, and content that passed is not tested again
/// because of every push.
pub fn passed_procedure(sequence: &Sequence, tasks: &BTreeMap<String, TaskDefinition>) -> Digest {
    of(sequence, tasks, |image| image.split('@').next().unwrap_or_default().to_owned())
}

fn of(sequence: &Sequence, tasks: &BTreeMap<String, TaskDefinition>, image: impl Fn(&str) -> String) -> Digest {
    // Where a task is declared says nothing about how it runs.
    let place = |task: &TaskDefinition| TaskDefinition {
        location: Location::default(),
        image: image(&task.image),
        ..task.clone()
    };
    let tasks: BTreeMap<&String, TaskDefinition> = tasks.iter().map(|(name, task)| (name, place(task))).collect();
    let text = serde_json::to_vec(&(sequence, tasks)).unwrap_or_default();
    let hash = digest(&SHA256, &text);
    let hex: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    Digest::new(format!("sha256:{hex}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::shipyard::Shipyard;

    fn tasks(image: &str, retries: u32, line: u32) -> BTreeMap<String, TaskDefinition> {
        let task = TaskDefinition {
            command: vec!["true".into()],
            image: image.into(),
            env: Vec::new(),
            timeout_seconds: Some(60),
            retries,
            stages: Vec::new(),
            services: Vec::new(),
            location: Location { line, ..Location::default() },
        };
        BTreeMap::from([("test".to_owned(), task)])
    }

    #[test]
    fn it_is_told_apart_by_how_tasks_run_and_by_their_code_only_until_it_passed() {
        let sequence = &Shipyard::implicit().stages[0].sequences[0];
        let before = tasks("git:tests@1", 0, 1);
        for (after, again_if_failed, again_if_passed) in [
            (tasks("git:tests@1", 0, 9), false, false),
            (tasks("git:tests@2", 0, 1), true, false),
            (tasks("git:others@1", 0, 1), true, true),
            (tasks("git:tests@1", 1, 1), true, true),
        ] {
            assert_eq!(procedure(sequence, &before) != procedure(sequence, &after), again_if_failed, "{after:?}");
            let passed = passed_procedure(sequence, &before) != passed_procedure(sequence, &after);
            assert_eq!(passed, again_if_passed, "{after:?}");
        }
    }
}
