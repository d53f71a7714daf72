//! A hook's run-once pod, made from the container that it names.
//!
//! Inherited as OpenShift's `execNewPod` does: image, working directory, resources, security context and variables of
//! the container, the volumes that the hook lists, and the pod's security context. Beyond it, `envFrom` is inherited
//! too, and a hook may have an image, resources and sets of variables of its own, which users asked OpenShift for.

use crate::model::deployment_config::{ExecNewPod, HookPoint, LifecycleHook};
use crate::model::ids::PodName;
use crate::model::pod::{Container, EnvVar, Pod, PodId, PodOwner, PodSpec, PodTemplate, RestartPolicy};
use crate::model::run::DeploymentRun;

/// How long a hook's processes may take to end; upstream's value for deployer and hook pods, in seconds.
const GRACE_SECONDS: u64 = 10;

/// The pod for the hook at `point`; `attempt` counts its tries in this version from 1.
pub fn hook_pod(
    run: &DeploymentRun,
    point: HookPoint,
    (hook, exec): (&LifecycleHook, &ExecNewPod),
    attempt: usize,
    seconds: u64,
) -> Pod {
    let (name, from) = container_for(run, exec);
    let listed = |name: &str| exec.volumes.iter().any(|volume| volume == name);
    let mut volumes = run.spec.template.spec.volumes.clone();
    volumes.retain(|volume| listed(&volume.name));
    let container = Container {
        name,
        image: hook.image.clone().unwrap_or(from.image),
        resources: hook.resources.clone().unwrap_or(from.resources),
        env_from: from.env_from.iter().chain(&hook.env_from).cloned().collect(),
        command: exec.command.clone(),
        args: Vec::new(),
        ports: Vec::new(),
        env: merged(&from.env, &exec.env, run),
        volume_mounts: from.volume_mounts.iter().filter(|mount| listed(&mount.name)).cloned().collect(),
        liveness_probe: None,
        readiness_probe: None,
        startup_probe: None,
        lifecycle: Default::default(),
        ..from
    };
    let spec = PodSpec {
        containers: vec![container],
        volumes,
        restart_policy: RestartPolicy::Never,
        termination_grace_period_seconds: Some(GRACE_SECONDS),
        security_context: run.spec.template.spec.security_context,
        ..Default::default()
    };
    Pod {
        id: PodId { namespace: run.destination.namespace.clone(), name: pod_name(run, point, attempt) },
        owner: PodOwner::Run { run: run.id.clone(), step: point.to_string(), since: run.created_at },
        template: PodTemplate { spec, ..Default::default() },
        repository: run.repository.clone(),
        commit: run.commit.clone(),
        run_once_seconds: Some(seconds),
        tells_result: false,
        deploys: false,
    }
}

/// The container that a hook names, or the first if it names none, and what it is called in the hook's pod. Of one that is
/// not there the pod has the name alone: without an image a runtime refuses it by that name, and the hook fails.
fn container_for(run: &DeploymentRun, hook: &ExecNewPod) -> (String, Container) {
    let named = |container: &&Container| hook.container_name.is_empty() || container.name == hook.container_name;
    match run.spec.template.spec.containers.iter().find(named) {
        Some(container) => ("lifecycle".to_owned(), container.clone()),
        None => (hook.container_name.clone(), Container::default()),
    }
}

/// `<config>-<n>-hook-pre` as upstream, with `-2` and so on for further tries.
pub fn pod_name(run: &DeploymentRun, point: HookPoint, attempt: usize) -> PodName {
    let first = format!("{}-{}-hook-{}", run.config.name, run.version, point);
    PodName::new(if attempt > 1 { format!("{first}-{attempt}") } else { first })
}

/// The container's variables, the hook's in place of those of the same name, and what upstream adds.
fn merged(container: &[EnvVar], hook: &[EnvVar], run: &DeploymentRun) -> Vec<EnvVar> {
    let literal = |name: &str, value: String| EnvVar { name: name.into(), value: Some(value), value_from: None };
    let own = [
        literal("OPENSHIFT_DEPLOYMENT_NAME", format!("{}-{}", run.config.name, run.version)),
        literal("OPENSHIFT_DEPLOYMENT_NAMESPACE", run.destination.namespace.to_string()),
    ];
    let replaced = |variable: &&EnvVar| !hook.iter().any(|own| own.name == variable.name);
    container.iter().filter(replaced).chain(hook).cloned().chain(own).collect()
}
