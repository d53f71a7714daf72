//! Selectors that can never hold.

use std::collections::{BTreeMap, BTreeSet};

use crate::manifest::findings::Findings;
use crate::manifest::shape::nearest;
use crate::manifest::shipyard::selector::{Written, is_result};
use crate::model::outcome::{Outcome, Status, TaskResult};
use crate::model::shipyard::{Ended, Operator, Requirement, Sequence};

/// The statuses with which something ends that starts others.
const STATUSES: [Status; 5] = [Status::Succeeded, Status::Errored, Status::Aborted, Status::TimedOut, Status::Unknown];
const RESULTS: [TaskResult; 3] = [TaskResult::Pass, TaskResult::Warning, TaskResult::Fail];

/// Tells what of a selector of the trigger at `at`, which waits for `ended`, can never hold.
pub(super) fn check(ended: &Ended<'_>, written: &[Written], at: &str, findings: &mut Findings<'_>) {
    let mut are_known = true;
    for it in written {
        are_known &= key(ended, it, findings) && values(it, findings);
    }
    if are_known {
        contradictions(ended, written, at, findings);
    }
}

/// Whether there is such a key.
fn key(ended: &Ended<'_>, written: &Written, findings: &mut Findings<'_>) -> bool {
    let key = &*written.asked.key;
    let sequences: Vec<&Sequence> = match ended {
        Ended::Sequence(sequence) => vec![sequence],
        Ended::Task(having) => having.clone(),
    };
    let Some((task, rest)) = key.split_once('.') else {
        if matches!(key, "result" | "status") {
            return true;
        }
        let problem = findings.warning(&written.key(), "dead-selector", format!("`{key}` cannot be selected by"));
        let is_task = sequences.iter().any(|sequence| sequence.has_task(key));
        problem.hint = Some(match (is_task, nearest(key, ["result", "status"].into_iter())) {
            (true, _) => format!("did you mean `{key}.result`?"),
            (false, Some(meant)) => format!("did you mean `{meant}`?"),
            (false, None) => "select by `result`, `status`, `<task>.result` or `<task>.status`".to_owned(),
        });
        return false;
    };
    if sequences.iter().any(|sequence| sequence.has_task(task)) {
        return true;
    }
    let known = sequences.iter().flat_map(|sequence| &sequence.tasks).map(|task| task.name.as_str());
    let meant = nearest(task, known).map(|task| format!("did you mean `{task}.{rest}`?"));
    let named = sequences.iter().map(|sequence| format!("`{}`", sequence.name)).collect::<Vec<_>>().join(", ");
    let message = format!("`{key}` is never there: the sequence {named} has no task `{task}`");
    findings.warning(&written.key(), "dead-selector", message).hint = meant;
    false
}

/// The words that a key can have; nothing, if that may be anything.
fn words(key: &str) -> Option<Vec<&'static str>> {
    if is_result(key) {
        return Some(RESULTS.map(TaskResult::as_str).into());
    }
    let is_status = key == "status" || key.strip_suffix(".status").is_some_and(|task| !task.contains('.'));
    is_status.then(|| STATUSES.map(Status::as_str).into())
}

/// Whether it can have such values.
fn values(written: &Written, findings: &mut Findings<'_>) -> bool {
    let Some(known) = words(&written.asked.key) else { return true };
    let mut are_known = true;
    for (index, value) in written.asked.values.iter().enumerate().filter(|(_, value)| !known.contains(&&***value)) {
        let message = format!("`{value}` is never `{}`", written.asked.key);
        findings.warning(&written.value(index), "dead-selector", message).hint =
            Some(match nearest(value, known.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("one of {}", known.join(", ")),
            });
        are_known = false;
    }
    are_known
}

/// Tells of requirements that exclude each other.
fn contradictions(ended: &Ended<'_>, written: &[Written], at: &str, findings: &mut Findings<'_>) {
    let mut by_key: BTreeMap<&str, Vec<&Requirement>> = BTreeMap::new();
    for it in written {
        by_key.entry(&it.asked.key).or_default().push(&it.asked);
    }
    let pointer = format!("{at}/selector");
    for (key, asked) in &by_key {
        if !can_hold(key, asked) {
            let message = format!("never holds: no `{key}` is all that is asked of it");
            findings.warning(&pointer, "dead-selector", message);
            return;
        }
    }
    let (Ended::Sequence(_), Some(result)) = (ended, by_key.get("result")) else { return };
    let has_passed = |outcome: Outcome| result.iter().all(|asked| asked.allows(Some(outcome.result.as_str())));
    let fails = |asked: &Vec<&Requirement>| {
        let allowed = |word: &TaskResult| asked.iter().all(|asked| asked.allows(Some(word.as_str())));
        !allowed(&TaskResult::Pass) && !allowed(&TaskResult::Warning) && asked.iter().any(|it| !it.allows(None))
    };
    let failed = by_key.iter().find(|(key, asked)| **key != "result" && is_result(key) && fails(asked));
    if let (Some((key, _)), false) = (failed, has_passed(Outcome::FAIL)) {
        let message = format!("never holds: a sequence has failed where `{key}` has");
        findings.warning(&pointer, "dead-selector", message);
    }
}

/// Whether some value, or none, is all that is asked of one key.
fn can_hold(key: &str, asked: &[&Requirement]) -> bool {
    let listed: BTreeSet<&str> = asked.iter().flat_map(|asked| &asked.values).map(String::as_str).collect();
    let other = match words(key) {
        Some(known) => known,
        None => vec!["\0"], // no file can say it
    };
    let is_asked_for = asked.iter().any(|asked| asked.operator == Operator::In);
    let candidates = listed.into_iter().chain(if is_asked_for { vec![] } else { other }).map(Some);
    candidates.chain([None]).any(|value| asked.iter().all(|asked| asked.allows(value)))
}
