//! Triggers that wait for what never happens.

use std::collections::HashSet;

use serde_json::Value;

use super::selectors;
use crate::manifest::findings::Findings;
use crate::manifest::shape::nearest;
use crate::manifest::shipyard::{as_meant, place, selector};
use crate::model::cloud_event::{Meaning, Phase};
use crate::model::git_event::GitEventKind;
use crate::model::shipyard::{Ended, Sequence, SequenceTrigger, Shipyard, Stage};

/// Exists in every stage unless the stage has its own.
const BUILT_IN_SEQUENCE: &str = "evaluation";

/// What to write for what nothing here is named like.
const NEITHER_END: &str =
    "an end is `<stage>.<sequence>.finished`; what happens outside has a type such as `image.built`";

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
        _ => {
            if let Some(reason) = starts_nothing(event) {
                let hint = end_of(shipyard, &parts).map(|end| format!("did you mean `{end}`?"));
                findings.warning(&field, "dangling", format!("`{event}` starts nothing: {reason}")).hint =
                    Some(hint.unwrap_or_else(|| NEITHER_END.to_owned()));
            }
            None
        }
    }
}

/// Why events of a type start nothing that waits for them, whoever tells them.
fn starts_nothing(event: &str) -> Option<&'static str> {
    match Meaning::of(event) {
        Meaning::Domain => None,
        Meaning::Task { phase: Phase::Finished, .. } => Some("it says no stage, and is what executors tell of a task"),
        Meaning::Task { .. } => Some("it is what executors tell of a task that goes on"),
        Meaning::TaskTriggered { .. } => Some("it asks executors for a task, and launchway alone tells it"),
        Meaning::TaskInvalidated { .. } => Some("nothing follows from what was made invalid"),
        Meaning::SequenceTriggered { .. } => Some("it asks for the sequence that it names, and for no other"),
        Meaning::Log => Some("it is what executors log, which is not kept"),
        Meaning::SequenceTold => Some("launchway alone tells how sequences get on, and their ends are `.finished`"),
    }
}

/// The end of what is named in an event, or nearly, in the first stage that has it.
fn end_of(shipyard: &Shipyard, parts: &[&str]) -> Option<String> {
    let end = |stage: &Stage, name: &str| format!("{}.{name}.finished", stage.name);
    match *parts {
        [name, _] | [name, "status", "changed"] => {
            let of_each = shipyard.stages.iter().filter_map(|stage| Some((meant(stage, name)?, stage)));
            let nearest = of_each.min_by_key(|(found, _)| *found != name);
            nearest.map(|(found, stage)| end(stage, found))
        }
        [stage, name, _] => {
            let known = nearest(stage, shipyard.stages.iter().map(|stage| stage.name.as_str()))?;
            let stage = shipyard.stages.iter().find(|stage| stage.name.as_str() == known)?;
            meant(stage, name).map(|found| end(stage, found))
        }
        _ => None,
    }
}

fn meant<'a>(stage: &'a Stage, name: &str) -> Option<&'a str> {
    let tasks = stage.sequences.iter().flat_map(|sequence| &sequence.tasks).map(|task| task.name.as_str());
    let known: Vec<&str> = stage.sequences.iter().map(|sequence| sequence.name.as_str()).chain(tasks).collect();
    let exact = known.iter().copied().find(|known| *known == as_meant(name));
    let built_in = (as_meant(name) == BUILT_IN_SEQUENCE).then_some(BUILT_IN_SEQUENCE);
    exact.or(built_in).or_else(|| nearest(name, known.into_iter()))
}
