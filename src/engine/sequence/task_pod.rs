//! A task's run-once pod, made from its `Task` object.

use crate::model::ids::PodName;
use crate::model::pod::{Container, EnvVar, Pod, PodId, PodOwner, PodSpec, PodTemplate, RestartPolicy};
use crate::model::project::TaskDefinition;
use crate::model::run::{SequenceRun, TaskRecord};

/// The pod for try number `attempt`, counted from 1, of the task at `index`.
pub fn task_pod(run: &SequenceRun, index: usize, definition: &TaskDefinition, attempt: usize) -> Pod {
    let task = &run.tasks[index];
    let literal = |name: &str, value: &str| EnvVar { name: name.into(), value: Some(value.into()), value_from: None };
    let about = [
        literal("LAUNCHWAY_PROJECT", run.service.project.as_str()),
        literal("LAUNCHWAY_STAGE", run.service.stage.as_str()),
        literal("LAUNCHWAY_SERVICE", run.service.service.as_str()),
        literal("LAUNCHWAY_TASK", &task.name),
    ];
    let container = Container {
        name: task.name.clone(),
        image: definition.image.clone(),
        command: definition.command.clone(),
        env: about.into_iter().chain(definition.env.iter().cloned()).collect(),
        ..Default::default()
    };
    let spec = PodSpec { containers: vec![container], restart_policy: RestartPolicy::Never, ..Default::default() };
    Pod {
        id: PodId { namespace: run.destination.namespace.clone(), name: pod_name(run, task, attempt) },
        owner: PodOwner::Run { run: run.id.clone(), step: task.step.clone(), since: run.created_at },
        template: PodTemplate { spec, ..Default::default() },
        repository: run.repository.clone(),
        commit: run.commit.clone(),
        run_once_seconds: Some(limit(run, index, definition)),
        tells_result: true,
        deploys: false,
    }
}

/// How long one try may take, in seconds: as the shipyard says of this stage, else the `Task` object of all, else the daemon's configuration.
fn limit(run: &SequenceRun, index: usize, definition: &TaskDefinition) -> u64 {
    let declared = run.declared(index).and_then(|declared| declared.timeout_ms).map(|limit| limit.div_ceil(1000));
    declared.or(definition.timeout_seconds).unwrap_or(run.limits.run.as_secs()).max(1)
}

/// `<service>-<step>-<end of the run's id>`, with `-2` and so on for further tries. The end of a ULID is its random
/// part; the run's whole id would make names longer than people read.
fn pod_name(run: &SequenceRun, task: &TaskRecord, attempt: usize) -> PodName {
    let id = run.id.as_str().to_lowercase();
    let unique = &id[id.len().saturating_sub(8)..];
    let first = format!("{}-{}-{unique}", run.service.service, task.step);
    PodName::new(if attempt > 1 { format!("{first}-{attempt}") } else { first })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fixtures::delivery;
    use crate::manifest::digest;
    use crate::model::object::Location;
    use crate::model::project::Procedure;

    #[test]
    fn a_stage_may_give_a_task_less_or_more_time_than_its_object() {
        for (in_stage, in_object, expected) in
            [(None, None, 3600), (None, Some(9), 9), (Some(2500), Some(9), 3), (Some(0), None, 1)]
        {
            let mut run = delivery("s1", "a");
            let mut sequence = run.procedure.sequence.clone();
            sequence.tasks[0].timeout_ms = in_stage;
            run.procedure = digest::stored(Procedure { sequence, ..Procedure::default() });
            let (command, image, env, stages, services) = Default::default();
            let definition = TaskDefinition {
                command,
                image,
                env,
                timeout_seconds: in_object,
                retries: 0,
                services,
                stages,
                properties: serde_json::Map::default(),
                location: Location::default(),
            };
            assert_eq!(limit(&run, 0, &definition), expected, "{in_stage:?} {in_object:?}");
        }
    }
}
