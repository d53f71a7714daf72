//! What a shipyard may not or should not say. Keptn itself checks three of these; the rest fails there in silence.

use std::collections::HashSet;

use super::place;
use crate::manifest::findings::Findings;
use crate::manifest::names;
use crate::model::shipyard::{Sequence, SequenceTrigger, Shipyard, Stage};

/// Exists in every stage unless the stage has its own.
const BUILT_IN_SEQUENCE: &str = "evaluation";

/// What a plan is written under on commits, beside the stages.
const PLAN: &str = "plan";

/// What the hooks of a deployment are written under on commits, beside the tasks.
const HOOKS: [&str; 3] = ["pre", "mid", "post"];

pub(super) fn validate(shipyard: &Shipyard, findings: &mut Findings<'_>) {
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
        sequences(shipyard, stage, index, findings);
    }
}

fn sequences(shipyard: &Shipyard, stage: &Stage, stage_index: usize, findings: &mut Findings<'_>) {
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
            let field = format!("{at}/tasks/{task}/name");
            part_of_event(&value.name, &field, findings);
            if HOOKS.contains(&&*value.name) {
                let message = format!("`{}` is taken: commits say it of a deployment's hook", value.name);
                findings.error(&field, "invalid", message);
            }
        }
        for (trigger, value) in sequence.triggered_on.iter().enumerate() {
            self::trigger(shipyard, value, &format!("{at}/triggeredOn/{trigger}"), findings);
        }
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

fn trigger(shipyard: &Shipyard, trigger: &SequenceTrigger, at: &str, findings: &mut Findings<'_>) {
    let parts: Vec<_> = trigger.event.split('.').collect();
    let [stage, sequence, kind] = parts[..] else { return };
    let Some(stage) = shipyard.stages.iter().find(|known| known.name.as_str() == stage) else {
        if kind == "finished" {
            let message = format!("`{}` never happens: there is no stage `{stage}`", trigger.event);
            findings.warning(&format!("{at}/event"), "dangling", message);
        }
        return;
    };
    let found = stage.sequences.iter().find(|known| known.name == sequence);
    if found.is_none() && sequence != BUILT_IN_SEQUENCE && kind == "finished" {
        let message =
            format!("`{}` never happens: the stage `{}` has no sequence `{sequence}`", trigger.event, stage.name);
        findings.warning(&format!("{at}/event"), "dangling", message);
    }
    if let Some(sequence) = found {
        if kind != "finished" {
            let message = format!("`{}` starts nothing: only `.finished` does", trigger.event);
            findings.warning(&format!("{at}/event"), "dangling", message);
        }
        selector(sequence, trigger, at, findings);
    }
}

fn selector(sequence: &Sequence, trigger: &SequenceTrigger, at: &str, findings: &mut Findings<'_>) {
    for key in trigger.selector.requirements().iter().map(|requirement| &requirement.key) {
        let pointer = format!("{at}/selector");
        match key.split_once('.') {
            Some((task, _)) if sequence.tasks.iter().any(|known| known.name == task) => {}
            Some((task, _)) => {
                let message = format!("never matches: the sequence `{}` has no task `{task}`", sequence.name);
                findings.warning(&pointer, "dangling", message);
            }
            None if key == "result" || key == "status" => {}
            None => {
                let message = format!("`{key}` cannot be selected by");
                findings.warning(&pointer, "shipyard", message).hint =
                    Some("select by `result`, `status`, `<task>.result` or `<task>.status`".to_owned());
            }
        }
    }
}
