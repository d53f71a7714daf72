//! How a story shows things: one line each, without what differs from run to run.

use crate::model::hold::Hold;
use crate::model::outcome::Outcome;
use crate::model::plan::{Change, Difference, Plan};
use crate::model::pod::references::Objects;
use crate::model::pod::{ObservedPod, PodId};
use crate::model::run::{Run, SequenceState};
use crate::model::selector::Labels;
use crate::model::state::{ConfigState, ObjectState};
use crate::model::wanted::{Backend, Pace};
use crate::runtime::{EarlierService, ServiceSpec};
use crate::simulation::runtime::Deed;

/// `dev/web: deploy DeploymentConfig/web (config change) image: "a" -> "b"`; one line if there is nothing.
pub(super) fn plan(plan: &Plan) -> Vec<String> {
    let mut lines = Vec::new();
    for stage in &plan.stages {
        for service in &stage.services {
            let place = format!("{}/{}", stage.stage, service.service);
            lines.extend(service.changes.iter().map(|change| format!("{place}: {}", self::change(change))));
            lines.extend(service.runs_again.iter().map(|why| format!("{place}: runs again ({why})")));
        }
    }
    if lines.is_empty() {
        lines.push("nothing to do".into());
    }
    lines
}

fn change(change: &Change) -> String {
    let mut line = format!("{} {}", change.decision.as_str(), change.key);
    if !change.cause.is_empty() {
        line.push_str(&format!(" ({})", change.cause));
    }
    for Difference { pointer, old, new } in &change.reasons {
        let value = |value: &Option<serde_json::Value>| match value {
            None => "-".to_owned(),
            Some(serde_json::Value::Object(_)) => "{…}".to_owned(),
            Some(value) => value.to_string(),
        };
        let last = pointer.rsplit('/').next().unwrap_or(pointer);
        line.push_str(&format!(" {last}: {} -> {}", value(old), value(new)));
    }
    line
}

pub(super) fn deed(deed: &Deed) -> String {
    match deed {
        Deed::Started(pod) => format!("+ {pod}"),
        Deed::Stopped(pod) => format!("- {pod}"),
        Deed::Died(pod) => format!("x {pod}"),
    }
}

pub(super) fn pod(pod: &ObservedPod) -> String {
    format!("{} {}", pod.id, pod.phase.as_str())
}

/// `shop-dev/web-1-0: ConfigMap/colors {"c":"red"}`.
pub(super) fn read((pod, objects): &(PodId, Objects)) -> String {
    let read: Vec<String> = objects.iter().map(|(key, content)| format!("{key} {}", content["data"])).collect();
    format!("{pod}: {}", read.join(", "))
}

/// `web: #1 900, #2 100`, or `web: alike`; with what it selects for versions of before it changed.
pub(super) fn traffic(service: &ServiceSpec) -> String {
    let part = |backend: &Backend| format!("#{} {}", backend.version, backend.weight);
    let parts: Vec<String> = service.backends.iter().map(part).collect();
    let parts = if parts.is_empty() { "alike".to_owned() } else { parts.join(", ") };
    let selected =
        |labels: &Labels| labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ");
    let earlier = |it: &EarlierService| {
        let ports: Vec<String> = it.ports.iter().map(|port| port.port.to_string()).collect();
        format!(", for {} #{} {} on {}", it.config.name, it.version, selected(&it.selector), ports.join(" "))
    };
    let earlier: String = service.earlier.iter().map(earlier).collect();
    format!("{}/{}: {parts}{earlier}", service.namespace, service.name)
}

pub(super) fn config(state: &ConfigState) -> String {
    let serving = state.serving.as_ref().map_or_else(|| "nothing".to_owned(), |version| format!("#{}", version.number));
    let attempted = state.attempted.as_ref().map(|attempt| {
        let outcome = attempt.outcome.map_or("running", Outcome::word);
        format!(", attempted #{} {outcome}", attempt.version.number)
    });
    let counts: Vec<String> =
        state.wanted.counts().iter().map(|(version, pods)| format!("{pods} of #{version}")).collect();
    let wanted = if counts.is_empty() { "none".to_owned() } else { counts.join(" and ") };
    let pace = match state.wanted.pace {
        Pace::Recreate => "recreate",
        Pace::Rolling { .. } => "rolling",
    };
    let removed = if state.removed { ", removed" } else { "" };
    let place = format!("{}/{}", state.key.stage, state.key.name);
    format!("{place}: serves {serving}{}, wants {wanted} ({pace}){removed}", attempted.unwrap_or_default())
}

/// `dev/ConfigMap/colors, kept by web, another for web #1`.
pub(super) fn object(state: &ObjectState) -> String {
    let keepers = state.kept_by.iter().map(|name| format!(", kept by {name}"));
    let earlier = state.earlier.iter().map(|earlier| format!(", another for {} #{}", earlier.config, earlier.version));
    format!("{}/{}{}", state.stage, state.object.key, keepers.chain(earlier).collect::<String>())
}

pub(super) fn run(run: &Run) -> String {
    match run {
        Run::Sequence(run) => {
            let state = match run.state {
                SequenceState::Queued => "queued".to_owned(),
                SequenceState::Running { task } => format!("runs {}", run.tasks[task].step),
                SequenceState::Returning { task } => format!("returns to {}", run.tasks[task].step),
                SequenceState::Ending { task, .. } => format!("ends {}", run.tasks[task].step),
                SequenceState::Ended => run.outcome.map(Outcome::word).unwrap_or_default().to_owned(),
            };
            let place = format!("{}/{}", run.service.stage, run.service.service);
            let about = format!("{} {} of {}", place, run.sequence(), run.commit.short());
            tidy(&format!("{about}, attempt {}, {}: {state} {}", run.attempt, run.cause, run.message))
        }
        Run::Deployment(run) => {
            let hooks: Vec<String> = run.hooks.iter().map(|hook| hook.pod.to_string()).collect();
            let about = format!("{}/{}-{}, attempt {}", run.config.stage, run.config.name, run.version, run.attempt);
            tidy(&format!("{about}, {}: {} {} [{}]", run.cause, run.phase.as_str(), run.remark(), hooks.join(" ")))
        }
    }
}

pub(super) fn hold(hold: &Hold) -> String {
    format!("{} by {}: {}", hold.scope, hold.by, hold.reason)
}

fn tidy(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}
