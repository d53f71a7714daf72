//! What people say of sequences: whether one goes on that asks for it, and that one is to end.

use crate::engine::records::{Records, Undecided};
use crate::engine::transition::Transition;
use crate::error::Failure;
use crate::model::event::Event;
use crate::model::ids::{CommitId, RunId, ServiceKey};
use crate::model::outcome::Outcome;
use crate::model::run::{Run, SequenceRun, SequenceState};

/// What a person says of what waits for approval.
#[derive(Clone, Copy, Debug)]
pub struct Verdict<'a> {
    /// Whether it goes on.
    pub approve: bool,
    /// Why, for people; empty if nothing is said.
    pub reason: &'a str,
    /// Of what.
    pub meant: Meant<'a>,
    /// Who.
    pub by: &'a str,
}

/// Which of a service's sequences a person means, if not the only one that waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meant<'a> {
    /// This one.
    pub run: Option<&'a str>,
    /// The one whose task was asked about by the event with this id: another task of it may ask by now.
    pub asked: Option<&'a str>,
    /// Of the revision whose id begins so.
    pub revision: Option<&'a str>,
}

impl Meant<'_> {
    /// The one that is meant, of those that wait.
    ///
    /// # Errors
    /// If there is none, or more than one.
    pub(super) fn of<'r>(self, service: &ServiceKey, waiting: &[&'r SequenceRun]) -> Result<&'r SequenceRun, Failure> {
        let is_meant = |run: &&&SequenceRun| {
            let asks = |meant| run.asks().as_deref() == Some(meant);
            self.run.is_none_or(|meant| run.id.as_str() == meant)
                && self.asked.is_none_or(asks)
                && self.revision.is_none_or(|meant| run.commit.as_str().starts_with(meant))
        };
        let meant: Vec<&SequenceRun> = waiting.iter().filter(is_meant).copied().collect();
        match (meant.as_slice(), waiting) {
            ([run], _) => Ok(run),
            ([], []) => Err(nothing_waits(service)),
            ([], [other, ..]) => {
                let (waits, meant) = match (self.run.filter(|run| other.id.as_str() != *run), self.revision) {
                    (Some(run), _) => (other.id.as_str(), run),
                    (None, Some(revision)) => (other.commit.short(), revision),
                    (None, None) => ("something else", "what was asked"),
                };
                let failure = Failure::stalled(format!("{waits} of {service} waits for approval, and not {meant}"));
                Err(failure.hint("a newer revision has taken its place, or it was decided"))
            }
            (several, _) => {
                let choice = |run: &&SequenceRun| format!("`--run {}` ({})", run.id, run.commit.short());
                let choices: Vec<String> = several.iter().map(choice).collect();
                let failure = Failure::stalled(format!("{} sequences of {service} wait for approval", several.len()));
                Err(failure.hint(format!("choose one: {}", choices.join(", "))).malformed())
            }
        }
    }
}

fn nothing_waits(service: &ServiceKey) -> Failure {
    Failure::stalled(format!("nothing of {service} waits for approval"))
        .hint("`launchway why SERVICE -s STAGE` tells what it waits for")
}

/// Lets a sequence go on that waits for approval, or ends it; says which, and of which revision.
///
/// # Errors
/// If nothing of the service waits for that, what waits is another one than the one that is meant, or more than one is.
pub fn decide(
    transition: &mut Transition<'_>,
    service: &ServiceKey,
    verdict: Verdict<'_>,
) -> Result<(RunId, CommitId), Undecided> {
    let open = open_runs(transition.records, service)?;
    let waiting: Vec<&SequenceRun> = open.iter().filter(|run| run.awaits_approval().is_some()).collect();
    let run = verdict.meant.of(service, &waiting)?;
    let task = run.awaits_approval().ok_or_else(|| nothing_waits(service))?;
    let asking = &run.tasks[task];
    if asking.executors.iter().any(|it| it.name == verdict.by && it.finished_at.is_some()) {
        return Err(Failure::stalled(format!("{} has decided already: it {}", verdict.by, asking.message)).into());
    }
    let word = if verdict.approve { "approved" } else { "rejected" };
    let reason: Vec<&str> = verdict.reason.split_whitespace().collect(); // it is a part of one line
    let reason = if reason.is_empty() { String::new() } else { format!(": {}", reason.join(" ")) };
    let event = Event::ExecutorFinished {
        task,
        executor: verdict.by.to_owned(),
        id: String::new(),
        outcome: if verdict.approve { Outcome::PASS } else { Outcome::FAIL },
        message: format!("{word} by {}{reason}", verdict.by),
        data: serde_json::Value::Null,
    };
    let decided = (run.id.clone(), run.commit.clone());
    transition.tell(decided.0.clone(), event);
    Ok(decided)
}

/// Ends what has the slot of a service, or else what has let others have it or waits for it; says which.
///
/// # Errors
/// If nothing of it is under way.
pub fn abort(transition: &mut Transition<'_>, service: &ServiceKey, by: &str) -> Result<RunId, Undecided> {
    let open = open_runs(transition.records, service)?;
    let ends = |run: &&SequenceRun| !matches!(run.state, SequenceState::Ending { .. });
    let Some(run) = open.iter().find(ends) else {
        return Err(Failure::stalled(format!("nothing of {service} is under way")).into());
    };
    let id = run.id.clone();
    abort_run(transition, &id, by)?;
    Ok(id)
}

/// Ends a run; says whether it had not ended.
///
/// # Errors
/// If something must be read first.
pub fn abort_run(transition: &mut Transition<'_>, run: &RunId, by: &str) -> Result<bool, Undecided> {
    let is_open = transition.records.runs.get(run)?.is_some_and(|run| !run.is_ended());
    if is_open {
        let event = Event::Cancel { outcome: Outcome::ABORTED, reason: format!("aborted by {by}") };
        transition.tell(run.clone(), event);
    }
    Ok(is_open)
}

/// The runs of a service that have not ended: who has its slot, who has let others have it, who waits.
fn open_runs(records: &Records, service: &ServiceKey) -> Result<Vec<SequenceRun>, Undecided> {
    let Some(slot) = records.slots.get(service)? else { return Ok(Vec::new()) };
    let mut open = Vec::new();
    for id in slot.holder.iter().chain(&slot.yielded).chain(&slot.waiting) {
        if let Some(Run::Sequence(run)) = records.runs.get(id)? {
            open.push((**run).clone());
        }
    }
    Ok(open)
}
