//! Triggers that wait for what never happens.

use std::collections::HashSet;

use serde_json::Value;

use super::selectors;
use crate::manifest::findings::Findings;
use crate::manifest::shape::nearest;
use crate::manifest::shipyard::{as_meant, place, selector};
use crate::model::git_event::GitEventKind;
use crate::model::shipyard::{Ended, Sequence, SequenceTrigger, Shipyard, Stage};

/// Exists in every stage unless the stage has its own.
const BUILT_IN_SEQUENCE: &str = "evaluation";

/// What happens to sequences and tasks beside their end.
const KINDS: [&str; 3] = ["triggered", "started", "finished"];

pub(super) fn check(shipyard: &Shipyard, value: &Value, findings: &mut Findings<'_>) {
    for (stage_index, stage) in shipyard.stages.iter().enumerate() {
        for (index, sequence) in stage.sequences.iter().enumerate() {
            let at = format!("{}/triggeredOn", place(stage_index, index));
            twice(sequence, &at, findings);
            for (index, trigger) in sequence.triggered_on.iter().enumerate() {
                let at = format!("{at}/{index}");
                of_git(&trigger.event, &at, findings);
                if let Some(ended) = event(shipyard, trigger, &at, findings) {
                    let written = value.pointer(&at).map(|value| selector::written(value, &at));
                    selectors::check(&ended, &written.unwrap_or_default(), &at, findings);
                }
            }
        }
    }
}

fn twice(sequence: &Sequence, at: &str, findings: &mut Findings<'_>) {
    let mut seen = HashSet::new();
    for (index, trigger) in sequence.triggered_on.iter().enumerate() {
        if !seen.insert(format!("{trigger:?}")) {
            let message = format!("`{}` stands there twice; the sequence starts once", trigger.event);
            findings.warning(&format!("{at}/{index}"), "duplicate", message);
        }
    }
}

/// What is nearly the name of something that happens in Git.
fn of_git(event: &str, at: &str, findings: &mut Findings<'_>) {
    let known = GitEventKind::WORDS;
    if let Some(meant) = nearest(event, known.into_iter()).filter(|_| !known.contains(&event)) {
        let message = format!("`{event}` is nothing that happens in Git");
        findings.warning(&format!("{at}/event"), "dangling", message).hint = Some(format!("did you mean `{meant}`?"));
    }
}

/// What a trigger waits for among the ends that there are, if it waits for one. Whatever else it names may happen outside.
fn event<'a>(
    shipyard: &'a Shipyard,
    trigger: &'a SequenceTrigger,
    at: &str,
    findings: &mut Findings<'_>,
) -> Option<Ended<'a>> {
    let field = format!("{at}/event");
    let event = &*trigger.event;
    let mut dangling = |message: String, meant: Option<String>| {
        findings.warning(&field, "dangling", message).hint = meant.map(|meant| format!("did you mean `{meant}`?"));
    };
    let parts: Vec<&str> = event.split('.').collect();
    if !event.is_empty() && parts.iter().any(|part| part.is_empty() || part.contains(char::is_whitespace)) {
        dangling(format!("`{event}` never happens: the parts of an event are words with dots between them"), None);
        return None;
    }
    let stage_of = |name: &str| shipyard.stages.iter().find(|stage| stage.name.as_str() == name);
    match parts[..] {
        [stage, name, "finished"] => {
            let Some(found) = stage_of(stage) else {
                let known = shipyard.stages.iter().map(|stage| stage.name.as_str());
                let meant = nearest(stage, known).map(|stage| format!("{stage}.{name}.finished"));
                dangling(format!("`{event}` never happens: there is no stage `{stage}`"), meant);
                return None;
            };
            let ended = found.ended(name);
            if ended.is_none() && name != BUILT_IN_SEQUENCE {
                let meant = meant(found, name).map(|name| format!("{stage}.{name}.finished"));
                let message =
                    format!("`{event}` never happens: the stage `{stage}` has no sequence `{name}`, and no such task");
                dangling(message, meant);
            }
            if matches!(ended, Some(Ended::Sequence(_))) && found.sequences.iter().any(|it| it.has_task(name)) {
                let message = format!("`{event}` is the end of the sequence `{name}`, not of the task of that name");
                findings.warning(&field, "shipyard", message);
            }
            ended
        }
        [stage, name, kind] if stage_of(stage).is_some_and(|stage| stage.ended(name).is_some()) => {
            if nearest(kind, KINDS.into_iter()).is_some() {
                let finished = format!("{stage}.{name}.finished");
                dangling(format!("`{event}` starts nothing: only `.finished` does"), Some(finished));
            }
            None
        }
        [stage, name] if stage_of(stage).is_some_and(|stage| stage.ended(name).is_some()) => {
            dangling(format!("`{event}` is no end of `{name}`"), Some(format!("{event}.finished")));
            None
        }
        [name, "finished"] => {
            let stage = shipyard.stages.iter().find(|stage| stage.ended(name).is_some())?;
            dangling(format!("`{event}` does not say of which stage"), Some(format!("{}.{event}", stage.name)));
            None
        }
        _ => None,
    }
}

fn meant<'a>(stage: &'a Stage, name: &str) -> Option<&'a str> {
    let tasks = stage.sequences.iter().flat_map(|sequence| &sequence.tasks).map(|task| task.name.as_str());
    let known: Vec<&str> = stage.sequences.iter().map(|sequence| sequence.name.as_str()).chain(tasks).collect();
    let as_meant = known.iter().copied().find(|known| *known == as_meant(name));
    as_meant.or_else(|| nearest(name, known.into_iter()))
}
