//! Tasks that are left to programs elsewhere, and decisions that are left to people.

use std::fmt;
use std::time::Duration;

use itertools::Itertools as _;
use serde_json::Value;

use super::Step;
use crate::engine::lifecycle::policy;
use crate::model::action::Action;
use crate::model::cloud_event::Phase;
use crate::model::data::{MOST_DATA, merge};
use crate::model::event::{Event, Timer};
use crate::model::outcome::{Outcome, Status, TaskResult};
use crate::model::run::{DoneBy, EarlierOffer, ExecutorRecord, SequenceState};

/// How long a task that is to end waits for those who do it: whatever they change must not meet what comes next.
const GRACE: Duration = Duration::from_secs(60);

/// What is said of an approval about which nobody has decided.
const WAITS: &str = "waits for approval";

/// What is written where a strategy is asked for. Source: Keptn's `approval` task.
const AUTOMATIC: &str = "automatic";

impl Step {
    /// Leaves a task to whoever hears of it.
    pub(super) fn offer(&mut self, index: usize) {
        let limit = self.run.declared(index).and_then(|task| task.start_timeout_ms).map(Duration::from_millis);
        self.set_timer(Timer::Start, limit.unwrap_or(self.run.limits.start));
        self.count_offer(index);
        self.tell_who(index);
    }

    /// A task is left to whoever does it. What came of that before is told as long as the run is; what it has left counts no more.
    pub(super) fn count_offer(&mut self, index: usize) {
        let now = self.now;
        let task = &mut self.run.tasks[index];
        let mut executors = std::mem::take(&mut task.executors);
        if let Some(at) = task.last_offer().filter(|_| task.offers > 0) {
            executors.iter_mut().for_each(|executor| executor.data = Value::Null);
            task.earlier.push(EarlierOffer { at, executors });
            task.offered_at = Some(now);
        }
        task.again_at = None;
        task.offers += 1;
    }

    /// What came before decides, or a person: as the task says for each result.
    pub(super) fn ask_for_approval(&mut self, index: usize) {
        let before = self.run.tasks[..index].iter().rev().find_map(|task| task.outcome).or(self.run.preceded);
        let result = before.map_or(TaskResult::Pass, |outcome| outcome.result);
        let Some(task) = self.run.declared(index) else { return };
        if result != TaskResult::Fail && task.properties[result.as_str()] == AUTOMATIC {
            let outcome = Outcome { status: Status::Succeeded, result };
            return self.finish(index, outcome, format!("approved automatically after {}", result.as_str()));
        }
        let limit = task.timeout_ms.map(Duration::from_millis);
        WAITS.clone_into(&mut self.run.tasks[index].message);
        if let Some(limit) = limit {
            self.set_timer(Timer::Finish, limit);
        }
    }

    /// What an executor, or a person, says of a task.
    pub(super) fn executors(&mut self, index: usize, event: &Event) {
        let task = &self.run.tasks[index];
        let is_open = task.started_at.is_some() && task.ended_at.is_none() && task.again_at.is_none();
        let is_offered = matches!(self.run.done_by(index), DoneBy::Approval | DoneBy::Executors);
        match event {
            _ if !is_open || !is_offered => {}
            Event::ExecutorStarted { task, executor, id, data } if *task == index => {
                self.executor_started(index, (executor, id), data);
            }
            Event::ExecutorReported { task, executor, id, message } if *task == index => {
                self.executor_reported(index, (executor, id), message);
            }
            Event::ExecutorFinished { task, executor, id, outcome, message, data } if *task == index => {
                self.executor_finished(index, (executor, id), (*outcome, message), data);
            }
            _ => {}
        }
    }

    fn executor_started(&mut self, index: usize, (name, id): (&str, &str), data: &Value) {
        let now = self.now;
        let is_first = self.run.tasks[index].executors.iter().all(|it| it.started_at.is_none());
        let executors = &self.run.tasks[index].executors;
        if !id.is_empty() && executors.iter().any(|it| it.name == name && it.started_by == id) {
            return; // told again, which is known for as long as the task goes on
        }
        let executor = self.executor(index, name, Phase::Started);
        executor.data = merge(executor.data.take(), data.clone());
        executor.started_at = Some(now);
        id.clone_into(&mut executor.started_by);
        if is_first && self.run.done_by(index) == DoneBy::Executors && !self.is_ending() {
            self.clear_timer(Timer::Start);
            let limit = self.run.declared(index).and_then(|task| task.timeout_ms).map(Duration::from_millis);
            self.set_timer(Timer::Finish, limit.unwrap_or(self.run.limits.run));
        }
        self.bound_data(index);
        self.judge(index);
        self.await_sign(index);
    }

    fn executor_reported(&mut self, index: usize, (name, id): (&str, &str), message: &str) {
        let (now, is_limited) = (self.now, self.has_heartbeat(index));
        let open = self.run.tasks[index].executors.iter_mut().rev();
        if let Some(executor) = open.into_iter().find(|it| it.name == name && it.finished_at.is_none()) {
            message.clone_into(&mut executor.message);
            message.clone_into(&mut executor.reported);
            id.clone_into(&mut executor.reported_by);
            executor.reported_at = Some(now);
            executor.heard_at = is_limited.then_some(now);
            self.await_sign(index);
        }
        self.tell_who(index);
    }

    fn has_heartbeat(&self, index: usize) -> bool {
        self.run.declared(index).is_some_and(|task| task.heartbeat_ms.is_some())
    }

    /// Has it noticed where nothing is heard any more of who has begun a task.
    fn await_sign(&mut self, index: usize) {
        if let Some((_, due)) = self.run.awaited_sign(index) {
            self.decided.actions.push(Action::SetTimer { timer: Timer::Progress, due });
        }
    }

    /// Nothing has been heard for too long, unless somebody was heard of just now.
    pub(super) fn is_silent(&mut self, index: usize) {
        let Some((silent, _)) = self.run.awaited_sign(index).filter(|(_, due)| *due <= self.now) else { return };
        let silence = policy::format_duration(self.now.since(silent.last_sign().unwrap_or(self.now)));
        let said =
            if silent.message.is_empty() { String::new() } else { format!("; it said last: {}", silent.message) };
        let message = format!("nothing was heard of {} for {silence}{said}", silent.name);
        self.finish(index, Outcome::TIMED_OUT, message);
    }

    /// Nobody is to be heard of any more.
    pub(super) fn await_no_sign(&mut self, index: usize) {
        if self.has_heartbeat(index) {
            self.clear_timer(Timer::Progress);
        }
    }

    fn executor_finished(
        &mut self,
        index: usize,
        (name, id): (&str, &str),
        (outcome, message): (Outcome, &str),
        data: &Value,
    ) {
        let now = self.now;
        let decides = self.run.done_by(index) == DoneBy::Approval;
        let executor = self.executor(index, name, Phase::Finished);
        executor.data = merge(executor.data.take(), data.clone());
        executor.finished_at = Some(now);
        id.clone_into(&mut executor.finished_by);
        executor.outcome = Some(outcome);
        message.clone_into(&mut executor.message);
        if decides {
            executor.started_at.get_or_insert(now); // it does not begin before
        }
        self.bound_data(index);
        self.judge(index);
        self.await_sign(index);
    }

    /// What is known of an executor and lacks what is told; what is told first makes it known.
    fn executor(&mut self, index: usize, name: &str, phase: Phase) -> &mut ExecutorRecord {
        let executors = &mut self.run.tasks[index].executors;
        let known = executors.iter().position(|it| it.name == name && it.lacks(phase));
        let place = known.unwrap_or_else(|| {
            executors.push(ExecutorRecord::of(name));
            executors.len() - 1
        });
        &mut executors[place]
    }

    /// Too much of what tasks leave ends the task: what is lost would be missed later.
    pub(super) fn bound_data(&mut self, index: usize) {
        let bytes = self.run.gathered(index + 1).to_string().len();
        if bytes > MOST_DATA {
            if let Some(last) = self.run.tasks[index].executors.iter_mut().max_by_key(|it| it.data.to_string().len()) {
                last.data = Value::Null;
            }
            self.run.tasks[index].evaluation = Value::Null;
            let message = format!("the data of the sequence would have {bytes} bytes, more than {MOST_DATA}");
            self.finish(index, Outcome::ERRORED, message);
        }
    }

    /// The task is over once nobody is awaited any more.
    fn judge(&mut self, index: usize) {
        let task = &self.run.tasks[index];
        if task.ended_at.is_some() {
            return;
        }
        if !self.is_decided(index) && !self.awaited(index).is_empty() {
            return self.tell_who(index);
        }
        let outcome = aggregate(task.executors.iter().filter_map(|it| it.outcome));
        let message = told(&task.executors);
        let retries = self.run.declared(index).map_or(0, |task| task.retries);
        if outcome.passes() || task.offers > retries || self.is_ending() || task.offers == 0 {
            return self.finish(index, outcome, message);
        }
        self.again(index, &message);
    }

    /// Whether the first word about an approval was said, which decides: who has only begun to think about it, as Keptn's
    /// `approval-service` says at once that it does, may never say more. Who is declared is awaited.
    fn is_decided(&self, index: usize) -> bool {
        let asks_declared = self.run.declared(index).is_some_and(|task| !task.executors.is_empty());
        let is_said = self.run.tasks[index].executors.iter().any(|it| it.finished_at.is_some());
        self.run.done_by(index) == DoneBy::Approval && !asks_declared && is_said
    }

    /// A task that has failed is left to executors, or evaluated, once more, after a pause.
    pub(super) fn again(&mut self, index: usize, message: &str) {
        let task = &mut self.run.tasks[index];
        task.message = format!("is tried again: {message}");
        let pause = policy::pause(task.offers);
        task.again_at = Some(self.now + pause);
        self.await_no_sign(index);
        self.clear_timer(Timer::Finish);
        self.set_timer(Timer::Retry, pause);
    }

    /// Who has still to say something about a task: all that have told of it have to say that they began and how they ended, in
    /// whichever order, and so have all that are declared. A task that is to end waits for those who have begun.
    fn awaited(&self, index: usize) -> Awaited<'_> {
        let known = &self.run.tasks[index].executors;
        let names = |awaited: fn(&ExecutorRecord) -> bool| known.iter().filter(move |it| awaited(it));
        let busy = names(|it| it.started_at.is_some() && it.finished_at.is_none()).collect();
        if self.is_ending() {
            return Awaited { busy, ..Awaited::default() };
        }
        let is_known = |name: &&String| known.iter().any(|it| it.name == **name);
        let declared = self.run.declared(index).map_or(&[][..], |task| &task.executors);
        Awaited {
            busy,
            silent: names(|it| it.started_at.is_none()).collect(),
            absent: declared.iter().filter(|name| !is_known(name)).collect(),
            anybody: known.is_empty() && declared.is_empty(),
        }
    }

    /// Who is at a task and who is awaited, for people.
    fn tell_who(&mut self, index: usize) {
        let awaited = self.awaited(index);
        self.run.tasks[index].message = match self.run.done_by(index) {
            DoneBy::Approval if awaited.anybody => WAITS.to_owned(),
            DoneBy::Approval => format!("{WAITS}: {awaited}"),
            _ => awaited.to_string(),
        };
    }

    /// Nobody has told in time that a task has begun.
    pub(super) fn nobody_started(&mut self, index: usize) {
        let task = &self.run.tasks[index];
        if task.ended_at.is_some() || task.executors.iter().any(|it| it.started_at.is_some()) {
            return;
        }
        let limit = policy::format_duration(self.now.since(task.last_offer().unwrap_or(self.now)));
        let message = match task.executors.is_empty() {
            true => format!(
                "no executor has started `{}` within {limit}: connect one, or add a Task object of that name",
                task.name
            ),
            false => format!("not started after {limit}: {}", self.awaited(index)),
        };
        self.finish(index, Outcome::TIMED_OUT, message);
    }

    /// A task has taken too long; one that is to end waits no longer for those who do it.
    pub(super) fn not_finished(&mut self, index: usize) {
        let task = &self.run.tasks[index];
        if self.is_ending() || task.ended_at.is_some() {
            let SequenceState::Ending { outcome, .. } = self.run.state else { return };
            return self.finish(index, outcome, self.run.message.clone());
        }
        let limit = policy::format_duration(self.now.since(task.started_at.unwrap_or(self.now)));
        if self.run.done_by(index) == DoneBy::Evaluation {
            let message = format!("not evaluated after {limit}: {}", task.message);
            return self.finish(index, Outcome::ERRORED, message);
        }
        let message = match self.run.done_by(index) {
            DoneBy::Executors if task.executors.is_empty() => return,
            DoneBy::Approval => format!("nobody has decided within {limit}"),
            _ => format!("not finished after {limit}: {}", self.awaited(index)),
        };
        self.finish(index, Outcome::TIMED_OUT, message);
    }

    /// Has executors hear, by the events that they ask for, that their task is to end; says whether one has begun.
    pub(super) fn recall(&mut self, index: usize) -> bool {
        let is_open = !self.awaited(index).is_empty();
        if is_open {
            self.set_timer(Timer::Finish, GRACE);
        }
        is_open
    }

    fn is_ending(&self) -> bool {
        matches!(self.run.state, SequenceState::Ending { .. })
    }
}

/// How a task ended that several have done. Source: Keptn's shipyard-controller, but that what errored or was aborted never
/// passes.
pub(in crate::engine::sequence) fn aggregate(outcomes: impl Iterator<Item = Outcome> + Clone) -> Outcome {
    let has = |status: Status| outcomes.clone().any(|outcome| outcome.status == status);
    let result = outcomes.clone().map(|outcome| outcome.result).max().unwrap_or(TaskResult::Fail);
    let order = [Status::Errored, Status::Aborted, Status::Unknown, Status::TimedOut, Status::Superseded];
    match order.into_iter().find(|status| has(*status)) {
        Some(status) => Outcome { status, result: TaskResult::Fail },
        None => Outcome { status: Status::Succeeded, result },
    }
}

/// Who has still to say something about a task.
#[derive(Default)]
struct Awaited<'a> {
    /// Those that have begun.
    busy: Vec<&'a ExecutorRecord>,
    /// Those that have told something else, and not that they began.
    silent: Vec<&'a ExecutorRecord>,
    /// Those that are declared, and have told nothing.
    absent: Vec<&'a String>,
    /// Whether anybody is, because nobody has told anything.
    anybody: bool,
}

impl Awaited<'_> {
    fn is_empty(&self) -> bool {
        self.busy.is_empty() && self.silent.is_empty() && self.absent.is_empty() && !self.anybody
    }
}

impl fmt::Display for Awaited<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let busy = self.busy.iter().map(|it| said(&it.name, &it.message)).join(", ");
        let silent = self.silent.iter().map(|it| &it.name).join(", ");
        let absent = self.absent.iter().join(", ");
        let parts = [
            (!busy.is_empty()).then(|| format!("runs at {busy}")),
            (!silent.is_empty()).then(|| format!("waits for {silent} to tell `started`")),
            (!absent.is_empty()).then(|| format!("waits for {absent} to start it")),
            self.anybody.then(|| "waits for an executor to start it".to_owned()),
        ];
        f.write_str(&parts.iter().flatten().join("; "))
    }
}

fn told(executors: &[ExecutorRecord]) -> String {
    let done: Vec<&ExecutorRecord> = executors.iter().filter(|it| it.finished_at.is_some()).collect();
    match done[..] {
        [one] if !one.message.is_empty() => one.message.clone(),
        [one] => format!("finished by {}", one.name),
        ref several => several.iter().map(|it| said(&it.name, &it.message)).join("; "),
    }
}

fn said(name: &str, message: &str) -> String {
    if message.is_empty() { name.to_owned() } else { format!("{name}: {message}") }
}

#[cfg(test)]
mod tests;
