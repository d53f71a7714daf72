//! The user's own deployer: its pod, what it may ask for, and what its end means. Source: OpenShift's `Custom` strategy, and the
//! proposal "OpenShift deployments", which leaves exit codes to be reserved.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::engine::deployment::observed::{Count, Observed};
use crate::engine::records::{Records, Undecided};
use crate::engine::transition::Transition;
use crate::error::Failure;
use crate::model::deployment_config::{CustomParams, HookPoint, StrategyKind};
use crate::model::event::Event;
use crate::model::ids::{PodName, RunId};
use crate::model::outcome::{FailureReason, PodOutcome};
use crate::model::pod::{
    Container, EnvVar, EnvVarSource, KeyRef, Pod, PodId, PodMetadata, PodOwner, PodSpec, PodTemplate, RestartPolicy,
};
use crate::model::run::{Asked, DeploymentRun, Run};
use crate::model::wanted::Wanted;

/// How long a deployer's processes may take to end; upstream's value for deployer and hook pods, in seconds.
const GRACE_SECONDS: u64 = 10;
/// What one deployer may ask for, counted: each is remembered.
const MOST_ASKS: u32 = 10_000;
/// Where it is answered: as a browser would write it, over the socket that its runtime tells.
pub const API_URL: &str = "http://localhost/api/v1/deployment";
/// The variable with that.
const API_URL_VARIABLE: &str = "LAUNCHWAY_API_URL";
/// The variable with the token by which it is known there.
const API_TOKEN_VARIABLE: &str = "LAUNCHWAY_API_TOKEN";
/// The key of the token in its Secret.
pub const TOKEN_KEY: &str = "token";

/// The pod of a deployment's deployer; `attempt` counts its pods in this version from 1.
///
/// As upstream's it is alone in its pod, is run once, has the strategy's resources, labels and annotations, and of the
/// template's pods only the security context. Without an image of its own it runs in that of the template's first container.
pub fn deployer_pod(run: &DeploymentRun, attempt: usize, seconds: u64) -> Pod {
    let strategy = &run.spec.strategy;
    let CustomParams { image, environment, command } = strategy.deployer().cloned().unwrap_or_default();
    let template = &run.spec.template.spec;
    let first = template.containers.first();
    let image = if image.is_empty() { first.map(|it| it.image.clone()).unwrap_or_default() } else { image };
    let name = pod_name(run, attempt);
    let container = Container {
        name: "deployment".to_owned(),
        image,
        command,
        env: variables(run, &name, &environment),
        resources: strategy.resources.clone(),
        ..Container::default()
    };
    let spec = PodSpec {
        containers: vec![container],
        restart_policy: RestartPolicy::Never,
        termination_grace_period_seconds: Some(GRACE_SECONDS),
        security_context: template.security_context,
        ..PodSpec::default()
    };
    let metadata = PodMetadata { labels: strategy.labels.clone(), annotations: strategy.annotations.clone() };
    let step = HookPoint::Deployer.to_string();
    Pod {
        id: PodId { namespace: run.destination.namespace.clone(), name },
        owner: PodOwner::Run { run: run.id.clone(), step, since: run.created_at },
        template: PodTemplate { metadata, spec },
        repository: run.repository.clone(),
        commit: run.commit.clone(),
        run_once_seconds: Some(seconds),
        tells_result: false,
        deploys: true,
    }
}

/// `<config>-<n>-deploy` as upstream, with `-2` and so on for further attempts.
fn pod_name(run: &DeploymentRun, attempt: usize) -> PodName {
    let first = format!("{}-{}-deploy", run.config.name, run.version);
    PodName::new(if attempt > 1 { format!("{first}-{attempt}") } else { first })
}

/// The Secret from which a deployer's pod has its token; nobody can declare one of that name.
pub fn token_secret(pod: &PodName) -> String {
    format!("{pod}:token")
}

/// What upstream tells a deployer, in whose place the file's variables of the same name stand, and how it reaches the daemon,
/// in whose place nothing does.
fn variables(run: &DeploymentRun, pod: &PodName, environment: &[EnvVar]) -> Vec<EnvVar> {
    let literal = |name: &str, value: String| EnvVar { name: name.into(), value: Some(value), value_from: None };
    let upstream = [
        literal("OPENSHIFT_DEPLOYMENT_NAME", format!("{}-{}", run.config.name, run.version)),
        literal("OPENSHIFT_DEPLOYMENT_NAMESPACE", run.destination.namespace.to_string()),
    ];
    let key = KeyRef { name: token_secret(pod), key: TOKEN_KEY.to_owned(), optional: false };
    let token = EnvVar {
        name: API_TOKEN_VARIABLE.to_owned(),
        value: None,
        value_from: Some(EnvVarSource { secret_key_ref: Some(key), ..EnvVarSource::default() }),
    };
    let api = [literal(API_URL_VARIABLE, API_URL.to_owned()), token];
    let is_api = |variable: &&EnvVar| api.iter().any(|own| own.name == variable.name);
    let environment: Vec<EnvVar> = environment.iter().filter(|variable| !is_api(variable)).cloned().collect();
    let replaced = |variable: &EnvVar| !environment.iter().any(|own| own.name == variable.name);
    upstream.into_iter().filter(replaced).chain(environment.iter().cloned()).chain(api.clone()).collect()
}

/// What a deployer's exit code says, where it is one of those that are reserved: those of `sysexits.h` that mean something
/// here, and those by which shells tell what became of a command.
pub fn reason_of(code: i32) -> Option<&'static str> {
    Some(match code {
        64 => "it was called in a wrong way",
        65 => "the new version is not what it should be",
        69 => "pods did not become available",
        70 => "it has a mistake of its own",
        75 => "something it needs is not there for now; a retry may help",
        77 => "it was not allowed what it needs",
        78 => "what it was configured with is wrong",
        126 => "a command could not be run",
        127 => "a command was not found",
        _ => return None,
    })
}

/// How a deployer ended, for people, with what its exit code says.
pub fn with_reason(told: String, outcome: &PodOutcome) -> String {
    let reason = match outcome {
        PodOutcome::Failed { code, reason: FailureReason::Error, .. } => reason_of(*code),
        PodOutcome::Failed { .. } | PodOutcome::Succeeded | PodOutcome::Unknown { .. } => None,
    };
    match (reason, told.split_once(": ")) {
        (None, _) => told,
        (Some(reason), Some((what, output))) => format!("{what} ({reason}): {output}"),
        (Some(reason), None) => format!("{told} ({reason})"),
    }
}

/// What a deployer may ask for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ask {
    /// So many pods, at once; what is absent stays as it is.
    Scale {
        /// Of which replication controller of the deployment; of its own pods, if absent.
        controller: Option<String>,
        /// Of the new version.
        new: Option<u32>,
        /// Of the one that served before.
        old: Option<u32>,
    },
    /// The strategy's own exchange, until so many in a hundred of the replicas are the new version's.
    Until {
        /// 0 to 100.
        percent: u32,
    },
}

/// Takes what a deployer asks for; hands back which value of [`Wanted`] that is.
///
/// # Errors
/// If its deployment is no longer its own, or it may not ask for that.
pub fn ask(transition: &mut Transition<'_>, id: &RunId, pod: &PodName, ask: &Ask) -> Result<u64, Undecided> {
    let found = match transition.records.runs.get(id)? {
        Some(Run::Deployment(run)) => is_at_work(run, pod).then(|| (**run).clone()),
        Some(Run::Sequence(_)) | None => None,
    };
    let Some(leader) = found else { return Err(over().into()) };
    refuse_for_now(&leader)?;
    let mut run = match ask {
        Ask::Scale { controller: Some(name), .. } => follower(transition.records, &leader, name)?,
        _ => leader,
    };
    let state = transition.records.configs.get(&run.config)?;
    let replicas = state.map_or(run.replicas, |state| state.wanted.replicas); // a person may have scaled it
    run.replicas = replicas;
    let asked = judge(&run, ask)?;
    if run.deployer.asked == Some(asked) && run.deployer.stalled.is_empty() {
        return Ok(run.generation);
    }
    transition.tell(run.id.clone(), Event::DeployerAsked { pod: pod.clone(), asked, replicas });
    Ok(run.generation + 1)
}

/// The deployment of a replication controller that follows another.
fn follower(records: &Records, leader: &DeploymentRun, name: &str) -> Result<DeploymentRun, Undecided> {
    let Some(controlled) = leader.controllers.all.iter().find(|it| it.name == name) else {
        let known: Vec<&str> = leader.controllers.all.iter().map(|it| it.name.as_str()).collect();
        let message = format!("dc/{} deploys no controller `{name}`", leader.config.name);
        let failure = Failure::stalled(message).malformed();
        return Err(match known.is_empty() {
            true => failure.into(),
            false => failure.hint(format!("it deploys {}", known.join(", "))).into(),
        });
    };
    if !controlled.is_new {
        let message = format!("`{name}` stays at version {}: nothing of it is exchanged", controlled.version);
        return Err(Failure::stalled(message).hint("`isNew` tells which controllers get a new version").into());
    }
    match records.runs.get(&leader.deployment_of(controlled))? {
        Some(Run::Deployment(run)) if run.ended_at.is_none() && !controlled.has_left => Ok((**run).clone()),
        _ => Err(over().into()),
    }
}

/// Whether a pod is the deployer of a deployment, and has not ended.
pub fn is_at_work(run: &DeploymentRun, pod: &PodName) -> bool {
    at_work(run).is_some_and(|at_work| at_work == pod)
}

/// The pod of the deployer that is at work.
pub fn at_work(run: &DeploymentRun) -> Option<&PodName> {
    let last = run.hooks.last().filter(|record| record.point == HookPoint::Deployer && record.outcome.is_none())?;
    run.ended_at.is_none().then_some(&last.pod)
}

fn over() -> Failure {
    Failure::stalled("this deployment is not in the hands of its deployer any more")
}

/// Why a deployer may have nothing now, if so.
fn refuse_for_now(run: &DeploymentRun) -> Result<(), Failure> {
    if let Some(failure) = &run.failure {
        return Err(Failure::stalled(format!("it is being given up: {}", failure.message)));
    }
    if let Some(by) = &run.waits.paused_by {
        let (target, stage) = (run.object.target(), &run.config.stage);
        let hint = format!("ask again later: `launchway rollout resume {target} -s {stage}` lets it go on");
        return Err(Failure::stalled(format!("paused by {by}")).hint(hint));
    }
    Ok(())
}

/// What comes of what a deployer asks for, or why it may not have that.
fn judge(run: &DeploymentRun, ask: &Ask) -> Result<Asked, Failure> {
    refuse_for_now(run)?;
    if run.deployer.asks >= MOST_ASKS {
        let message = format!("this deployer has asked {MOST_ASKS} times, and may not any more");
        return Err(Failure::stalled(message).hint("what is there stays until it ends"));
    }
    let is_custom = run.led_by.is_some() || run.spec.strategy.kind == StrategyKind::Custom;
    match *ask {
        Ask::Scale { .. } if !is_custom => Err(Failure::stalled("pods are exchanged by the strategy here")
            .hint("ask for `rollout` until so many percent, or declare `type: Custom`")),
        Ask::Until { .. } if is_custom => Err(Failure::stalled("the strategy Custom exchanges no pods by itself")
            .hint("ask for `scale`, or declare `type: Rolling` or `Recreate`")),
        Ask::Scale { new, old, .. } => {
            let (new_before, old_before) = match run.deployer.asked {
                Some(Asked::Scale { new, old }) => (new, old),
                Some(Asked::Until { .. }) | None => (0, None),
            };
            scaled(run, new.unwrap_or(new_before), old.or(old_before))
        }
        Ask::Until { percent } => until(run, percent),
    }
}

fn scaled(run: &DeploymentRun, new: u32, old: Option<u32>) -> Result<Asked, Failure> {
    if run.previous.is_none() && old.is_some_and(|old| old > 0) {
        return Err(Failure::stalled("nothing served before this version").malformed());
    }
    if let Some(many) = [Some(new), old].into_iter().flatten().find(|pods| *pods > run.replicas) {
        let message = format!("{many} pods are more than the {} replicas that there are to be", run.replicas);
        return Err(Failure::stalled(message).malformed());
    }
    Ok(Asked::Scale { new, old })
}

/// What was exchanged is not taken back: that is what a failure does.
fn until(run: &DeploymentRun, percent: u32) -> Result<Asked, Failure> {
    if percent > 100 {
        return Err(Failure::stalled(format!("{percent} % are more than all")).malformed());
    }
    let strategy = &run.spec.strategy;
    if percent > 0 && strategy.kind == StrategyKind::Recreate && strategy.hook(HookPoint::Mid).is_some() {
        return Err(Failure::stalled(
            "the mid hook comes before the first new pod, and runs once the deployer has ended",
        )
        .hint("ask for 0 % at most, and do the rest after that hook"));
    }
    Ok(Asked::Until { percent: percent.max(run.deployer.until()) })
}

/// Whether just what is wanted is there, and nothing of anything else is still ending.
pub fn has_converged(wanted: &Wanted, observed: &Observed) -> bool {
    let goal: BTreeMap<u32, u32> = wanted.counts();
    let is_so = |version: u32| {
        let Count { living, available, leaving, .. } = observed.of(version);
        let pods = goal.get(&version).copied().unwrap_or_default();
        (living, available, leaving) == (pods, pods, 0)
    };
    goal.keys().chain(observed.versions.keys()).all(|version| is_so(*version))
}

#[cfg(test)]
mod tests;
