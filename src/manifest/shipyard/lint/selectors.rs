//! Selectors that can never hold.

use std::collections::{BTreeMap, BTreeSet};

use crate::manifest::findings::Findings;
use crate::manifest::shape::nearest;
use crate::manifest::shipyard::selector::{Written, is_result};
use crate::model::outcome::{Outcome, Status, TaskResult};
use crate::model::shipyard::{Ended, Operator, Requirement, Sequence};

/// The statuses with which something ends that starts others.
const STATUSES: [Status; 5] = [Status::Succeeded, Status::Errored, Status::Aborted, Status::TimedOut, Status::Unknown];
/// The ways to end: what is not `succeeded` never passes.
const OUTCOMES: [Outcome; 7] = [
    Outcome::PASS,
    Outcome { status: Status::Succeeded, result: TaskResult::Warning },
    Outcome::FAIL,
    Outcome::ERRORED,
    Outcome::ABORTED,
    Outcome::TIMED_OUT,
    Outcome::UNKNOWN,
];
const RESULTS: [TaskResult; 3] = [TaskResult::Pass, TaskResult::Warning, TaskResult::Fail];

/// What is asked of each key.
type ByKey<'a> = BTreeMap<&'a str, Vec<&'a Requirement>>;

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
    let mut by_key = ByKey::new();
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
    for owner in &owners(&by_key) {
        let may_pass = outcomes(&by_key, owner).any(Outcome::passes);
        let may_fail = may_be_absent(&by_key, owner) || outcomes(&by_key, owner).any(|outcome| !outcome.passes());
        if !may_pass && !may_fail {
            let message = format!("never holds: nothing ends with such a `{owner}result` and `{owner}status`");
            findings.warning(&pointer, "dead-selector", message).hint =
                Some("whatever is not `succeeded` has the result `fail`".to_owned());
            return;
        }
        let task = owner.trim_end_matches('.');
        let fails_with_it = matches!(ended, Ended::Sequence(_)) && !may_pass && !may_be_absent(&by_key, owner);
        if !task.is_empty() && fails_with_it && outcomes(&by_key, "").all(Outcome::passes) {
            let message = format!("never holds: a sequence has failed where its task `{task}` has");
            findings.warning(&pointer, "dead-selector", message);
            return;
        }
    }
}

/// Whose ends are asked about: `""` is the sequence, or the task that is waited for, and `<task>.` one of the tasks.
fn owners<'a>(by_key: &ByKey<'a>) -> BTreeSet<&'a str> {
    let asked = by_key.keys().filter(|key| words(key).is_some());
    asked.filter_map(|key| key.strip_suffix("result").or_else(|| key.strip_suffix("status"))).collect()
}

/// The ways to end that are as asked.
fn outcomes(by_key: &ByKey<'_>, owner: &str) -> impl Iterator<Item = Outcome> {
    let allowed = |key: &str, word: &str| {
        let asked = by_key.get(&*format!("{owner}{key}"));
        asked.is_none_or(|asked| asked.iter().all(|asked| asked.allows(Some(word))))
    };
    let is_asked =
        |outcome: &Outcome| allowed("result", outcome.result.as_str()) && allowed("status", outcome.status.as_str());
    OUTCOMES.into_iter().filter(is_asked).collect::<Vec<_>>().into_iter()
}

/// Whether what is asked holds where the task has not run; what is waited for has.
fn may_be_absent(by_key: &ByKey<'_>, owner: &str) -> bool {
    let asked = ["result", "status"].into_iter().filter_map(|key| by_key.get(&*format!("{owner}{key}")));
    !owner.is_empty() && asked.flatten().all(|asked| asked.allows(None))
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
    let absent = (!matches!(key, "result" | "status")).then_some(None); // whatever ends has these
    candidates.chain(absent).any(|value| asked.iter().all(|asked| asked.allows(value)))
}
