//! What a shipyard may not or should not say. Keptn itself checks three of these; the rest fails there in silence.

mod circles;
mod selectors;
mod triggers;

use std::collections::HashSet;

use serde_json::Value;

use super::idle::{self, OF_DEPLOYMENT};
use super::{is_built_in_deployment, place};
use crate::manifest::findings::Findings;
use crate::manifest::names;
use crate::manifest::shape::nearest;
use crate::model::shipyard::{Condition, DEPLOYMENT_STRATEGY, DeploymentStrategy, Sequence, Shipyard, Stage, Task};

/// What a plan is written under on commits, beside the stages.
const PLAN: &str = "plan";

/// What the hooks of a deployment are written under on commits, beside the tasks.
const HOOKS: [&str; 3] = ["pre", "mid", "post"];

/// `value` is the document that the shipyard was read from.
pub(super) fn validate(shipyard: &Shipyard, value: &Value, findings: &mut Findings<'_>) {
    if shipyard.stages.is_empty() {
        findings.error("/spec/stages", "required", "a shipyard needs at least one stage");
    }
    let mut seen = HashSet::new();
    for (index, stage) in shipyard.stages.iter().enumerate() {
        let field = format!("/spec/stages/{index}/name");
        let name = stage.name.as_str();
        if let (false, Err(wrong)) = (name.is_empty(), names::entity(name)) {
            findings.error(&field, "invalid", format!("`{name}` {wrong}"));
        }
        if name == PLAN {
            findings.error(&field, "invalid", format!("`{PLAN}` is taken: commits say `launchway/{PLAN}` of the plan"));
        }
        if !seen.insert(name) {
            findings.error(&field, "duplicate", format!("the stage `{name}` is declared twice"));
        }
        if stage.sequences.is_empty() {
            let message = format!("the stage `{name}` has no sequences: nothing can run in it");
            findings.warning(&format!("/spec/stages/{index}"), "shipyard", message);
        }
        sequences(stage, index, findings);
    }
    triggers::check(shipyard, value, findings);
    circles::check(shipyard, findings);
}

fn sequences(stage: &Stage, stage_index: usize, findings: &mut Findings<'_>) {
    let mut seen = HashSet::new();
    for (index, sequence) in stage.sequences.iter().enumerate() {
        let at = place(stage_index, index);
        part_of_event(&sequence.name, &format!("{at}/name"), findings);
        if !seen.insert(&sequence.name) {
            let message = format!("the sequence `{}` is declared twice in this stage", sequence.name);
            findings.error(&format!("{at}/name"), "duplicate", message);
        }
        if sequence.tasks.is_empty() {
            let message = format!("the sequence `{}` has no tasks", sequence.name);
            findings.error(&format!("{at}/tasks"), "required", message);
        }
        for (task, value) in sequence.tasks.iter().enumerate() {
            let at = format!("{at}/tasks/{task}");
            let field = format!("{at}/name");
            part_of_event(&value.name, &field, findings);
            if HOOKS.contains(&&*value.name) {
                let message = format!("`{}` is taken: commits say it of a deployment's hook", value.name);
                findings.error(&field, "invalid", message);
            }
            self::task(value, task == 0, &at, findings);
        }
        pauses(sequence, &at, findings);
    }
}

/// Names become parts of event types, pod names and statuses, where a dot or slash would end them.
fn part_of_event(name: &str, field: &str, findings: &mut Findings<'_>) {
    let is_odd = |c: char| c == '.' || c == '/' || c.is_whitespace() || c.is_control();
    if name.contains(is_odd) {
        findings.error(field, "invalid", format!("`{name}` must not contain dots, slashes or spaces"));
    } else if name.len() > 63 {
        findings.error(field, "invalid", "must not be longer than 63 characters");
    }
}

fn task(task: &Task, is_first: bool, at: &str, findings: &mut Findings<'_>) {
    if is_first && task.condition == Condition::OnFailure {
        let message = format!("`{}` never runs: no task before it can have failed", task.name);
        findings.warning(&format!("{at}/condition"), "shipyard", message);
    }
    if !task.holds_slot && task.triggered_after_ms == 0 {
        let message = "has no effect: without `triggeredAfter` there is no pause";
        findings.warning(&format!("{at}/holdSlot"), "shipyard", message);
    }
    let is_built_in = is_built_in_deployment(task);
    for (key, instead) in idle::said(task, &OF_DEPLOYMENT).filter(|_| is_built_in) {
        let message = "has no effect: `deployment` is built in";
        findings.warning(&format!("{at}/{key}"), "shipyard", message).hint = Some((*instead).to_owned());
    }
    if let (Some(heartbeat), Some(limit)) = (task.heartbeat_ms, task.timeout_ms)
        && heartbeat >= limit
    {
        let message = "has no effect: the task is over by then, by its `timeout`";
        findings.warning(&format!("{at}/heartbeat"), "shipyard", message);
    }
    if is_built_in {
        deployment_strategy(task, at, findings);
    }
    let mut seen = HashSet::new();
    for (index, name) in task.executors.iter().enumerate() {
        if !seen.insert(name) {
            let message = format!("`{name}` is named twice");
            findings.warning(&format!("{at}/executors/{index}"), "duplicate", message);
        }
    }
}

/// What a program elsewhere may understand and launchway does not.
fn deployment_strategy(task: &Task, at: &str, findings: &mut Findings<'_>) {
    let Some(written) = task.properties.get(DEPLOYMENT_STRATEGY).filter(|_| task.deployment_strategy().is_none())
    else {
        return;
    };
    let written = written.as_str().map_or_else(|| written.to_string(), str::to_owned);
    let message = format!("there is no strategy `{written}`: each deployment config is deployed by its own");
    let known = DeploymentStrategy::WORDS;
    findings.warning(&format!("{at}/properties/{DEPLOYMENT_STRATEGY}"), "shipyard", message).hint =
        Some(match nearest(&written, known.into_iter()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("one of {}", known.join(", ")),
        });
}

/// A sequence whose pauses alone take longer than it may.
fn pauses(sequence: &Sequence, at: &str, findings: &mut Findings<'_>) {
    let always = sequence.tasks.iter().filter(|task| task.condition != Condition::OnFailure);
    let pauses = always.fold(0_u64, |sum, task| sum.saturating_add(task.triggered_after_ms));
    if sequence.timeout_ms.is_some_and(|limit| limit > 0 && limit <= pauses) {
        let message = "never enough: the pauses before its tasks take as long";
        findings.warning(&format!("{at}/timeout"), "shipyard", message);
    }
}

#[cfg(test)]
mod tests;
