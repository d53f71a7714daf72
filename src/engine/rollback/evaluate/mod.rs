//! What people should know of a rollback, before it starts and after: what differs from what runs, which hooks will run, and
//! what of the application no longer fits together. It is advice: nothing is refused for it.

mod application;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::engine::rollback::{RolledBack, Started};
use crate::manifest::replication_controller::inside;
use crate::model::deployment_config::{DeploymentConfigSpec, HookPoint};
use crate::model::object::Object;
use crate::model::plan::Difference;
use crate::model::state::{ConfigState, spec_of};
use crate::plan::diff::diff;

/// The most characters of a hook's command.
const MOST_OF_A_COMMAND: usize = 120;

/// What else there is in the stage.
#[derive(Clone, Debug, Default)]
pub struct Stage {
    /// Its deployment configs, as they are before the rollback.
    pub configs: Vec<ConfigState>,
    /// Its other objects.
    pub objects: Vec<Arc<Object>>,
}

/// What a rollback means for one deployment config.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Evaluation {
    /// Its project.
    pub project: String,
    /// Its stage.
    pub stage: String,
    /// Its name.
    pub name: String,
    /// How commands call it: `deploymentconfig/web`.
    pub title: String,
    /// The version that serves before, if one does.
    pub from: Option<u32>,
    /// The version whose content comes back.
    pub to: u32,
    /// The version that it becomes.
    pub version: u32,
    /// What differs from what runs.
    pub changes: Vec<Alteration>,
    /// The hooks that run, such as `pre (Abort): bin/migrate`.
    pub hooks: Vec<String>,
    /// What may go wrong because of it, each a sentence without a period.
    pub warnings: Vec<String>,
}

/// A value that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Alteration {
    /// What it is about.
    pub area: Area,
    /// Of what: a container and its variable, a volume, a label.
    pub name: String,
    /// Where it stands in the deployment config as it will be; what is removed, as it is.
    pub pointer: String,
    /// Before; absent, if it is added.
    pub old: Option<Value>,
    /// After; absent, if it is removed.
    pub new: Option<Value>,
}

/// What differences are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Area {
    /// What a container runs.
    Image,
    /// Variables. What Secrets hold is never shown: they are named.
    Environment,
    /// Volumes, and where they are mounted.
    Volumes,
    /// Ports of containers.
    Ports,
    /// How many pods.
    Replicas,
    /// Lifecycle hooks.
    Hooks,
    /// How one version takes over from another.
    Strategy,
    /// Labels, and what selects by them.
    Labels,
    /// Anything else.
    Other,
}

impl Area {
    fn of(pointer: &str) -> Self {
        if let Some((_, own)) = inside(pointer) {
            return Self::of(&own);
        }
        let parts: Vec<&str> = pointer.split('/').skip(1).collect();
        match parts[..] {
            ["spec", "template", "spec", "containers" | "initContainers", _, field, ..] => match field {
                "image" => Area::Image,
                "env" | "envFrom" => Area::Environment,
                "ports" => Area::Ports,
                "volumeMounts" => Area::Volumes,
                _ => Area::Other,
            },
            ["spec", "template", "spec", "volumes", ..] => Area::Volumes,
            ["spec", "replicas"] => Area::Replicas,
            ["spec", "strategy", _, "pre" | "mid" | "post", ..] => Area::Hooks,
            ["spec", "strategy", ..] => Area::Strategy,
            ["metadata" | "spec", "labels" | "selector" | "selectorExpressions", ..]
            | ["spec", "template", "metadata", "labels", ..] => Area::Labels,
            _ => Area::Other,
        }
    }

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Area::Image => "image",
            Area::Environment => "environment",
            Area::Volumes => "volumes",
            Area::Ports => "ports",
            Area::Replicas => "replicas",
            Area::Hooks => "hooks",
            Area::Strategy => "strategy",
            Area::Labels => "labels",
            Area::Other => "other",
        }
    }
}

/// What a rollback means, in the order of its members.
pub fn evaluate(started: &Started, stage: &Stage) -> Vec<Evaluation> {
    let evaluated = |member: &RolledBack| {
        let spec = spec_of(&member.object).unwrap_or_default();
        let mut warnings = about_the_version(member, &spec);
        warnings.extend(application::warnings(member, &started.members, stage));
        let key = &member.state.key;
        Evaluation {
            project: key.project.to_string(),
            stage: key.stage.to_string(),
            name: key.name.clone(),
            title: member.state.title(),
            from: member.state.serving.as_ref().map(|serving| serving.number),
            to: member.to,
            version: member.version,
            changes: changes(running(&member.state), &member.object),
            hooks: hooks(&spec),
            warnings,
        }
    };
    started.members.iter().map(evaluated).collect()
}

/// What runs, or else what is declared.
fn running(state: &ConfigState) -> &Object {
    state.serving.as_ref().map_or(&state.object, |serving| &serving.object)
}

fn changes(before: &Object, after: &Object) -> Vec<Alteration> {
    let (before, after) = (before.content.value(), after.content.value());
    let alteration = |Difference { pointer, old, new }| {
        let name = name_of(&pointer, if new.is_some() { &after } else { &before });
        let name = match inside(&pointer) {
            Some((controller, _)) if controller != name => format!("{controller}/{name}"),
            _ => name,
        };
        Alteration { area: Area::of(&pointer), name, pointer, old, new }
    };
    let mut changes: Vec<Alteration> = diff(&before, &after).into_iter().map(alteration).collect();
    changes.sort_by_key(|change| change.area);
    changes
}

/// The names of the entries of lists that a pointer leads through, such as `main/COLOR`; without any, its last part.
fn name_of(pointer: &str, content: &Value) -> String {
    let (mut names, mut at) = (Vec::new(), Some(content));
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        let Some(here) = at else { break };
        at = match here {
            Value::Array(entries) => {
                let entry = part.parse::<usize>().ok().and_then(|place| entries.get(place));
                names.extend(entry.and_then(entry_name));
                entry
            }
            here => here.get(&part),
        };
    }
    if names.is_empty() {
        let last = pointer.rsplit('/').next().unwrap_or(pointer);
        return last.replace("~1", "/").replace("~0", "~");
    }
    names.join("/")
}

fn entry_name(entry: &Value) -> Option<String> {
    let name = ["name", "mountPath", "containerPort"].iter().find_map(|key| entry.get(key))?;
    Some(name.as_str().map_or_else(|| name.to_string(), str::to_owned))
}

/// The hooks that a deployment runs, such as `pre (Abort): bin/migrate`.
pub fn hooks(spec: &DeploymentConfigSpec) -> Vec<String> {
    let hook = |point: HookPoint| {
        let hook = spec.strategy.hook(point)?;
        let policy = hook.failure_policy.as_str();
        let command = hook.exec_new_pod.as_ref()?.command.join(" ");
        let command: String = command.chars().take(MOST_OF_A_COMMAND).collect();
        Some(format!("{point} ({policy}): {command}"))
    };
    let deployer = spec.strategy.deployer().map(|params| {
        let command: String = params.command.join(" ").chars().take(MOST_OF_A_COMMAND).collect();
        format!("{}: {}", HookPoint::Deployer, if command.is_empty() { &params.image } else { &command })
    });
    let after = [HookPoint::Mid, HookPoint::Post].into_iter().filter_map(hook);
    hook(HookPoint::Pre).into_iter().chain(deployer).chain(after).collect()
}

/// What is to be known of the version that comes back, whatever else there is.
fn about_the_version(member: &RolledBack, spec: &DeploymentConfigSpec) -> Vec<String> {
    let RolledBack { to, parts, .. } = member;
    let never_served = member.never_served.then(|| format!("version {to} has never served"));
    let other_hooks = (parts.template && !parts.strategy && !hooks(spec).is_empty())
        .then(|| format!("the hooks that run are those that are declared now, not those of version {to}"));
    never_served.into_iter().chain(other_hooks).collect()
}

#[cfg(test)]
mod tests;
