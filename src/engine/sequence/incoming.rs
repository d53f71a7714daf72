//! What becomes of an event that somebody tells: an executor gets on with a task, a sequence is to run, something happened.
//!
//! What is late, unknown or told before has no effect, and says why. Whoever tells an event again by its id gets the same answer.

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::Value;

use crate::engine::by_hand::no_stage;
use crate::engine::records::{Lookup, Records, Undecided};
use crate::engine::sequence::queue;
use crate::engine::transition::Transition;
use crate::error::Failure;
use crate::manifest::digest as content;
use crate::manifest::names;
use crate::model::cloud_event::{CloudEvent, Meaning, Phase};
use crate::model::data::{MOST_DATA, MOST_DEPTH, depth};
use crate::model::event::Event;
use crate::model::git_event::GitEvent;
use crate::model::ids::{CommitId, RepositoryName, RunId, ServiceKey, ServiceName, StageName};
use crate::model::outcome::{Outcome, Status, TaskResult};
use crate::model::plan::{Plan, StagePlan};
use crate::model::run::{ExecutorRecord, Run, SequenceRun, SequenceState, TriggerEvent, triggered_by};
use crate::model::shipyard::{EVALUATION_TASK, Sequence, Task};
use crate::model::transaction::{KEPT_BY_AGE, Write};
use crate::plan::triggered;

/// How events can say that something ran.
const STATUSES: [Status; 4] = [Status::Succeeded, Status::Errored, Status::Aborted, Status::Unknown];
/// How events can say that it went.
const RESULTS: [TaskResult; 3] = [TaskResult::Pass, TaskResult::Warning, TaskResult::Fail];
/// What is said once of an event and not left to the tasks that follow.
const OF_ONE_EVENT: [&str; 7] = ["project", "stage", "service", "status", "result", "message", "temporaryData"];
/// The most bytes of a context, an id or a source.
const LONGEST_NAME: usize = 200;
/// So many characters of what an executor says are kept.
const LONGEST_MESSAGE: usize = 2000;
/// So many executors may have to do with one task.
const MOST_EXECUTORS: usize = 100;

/// Why what executors log has no effect.
pub const LOGGED: &str = "what executors log is not kept";

/// What has become of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// What it has in common with all that follows from it.
    pub context: String,
    /// Why it has no effect; empty if it has one.
    pub ignored: String,
    /// The runs that hear of it or that it starts.
    pub runs: Vec<RunId>,
    /// The stages to which the service is delivered, as if by hand: what is delivered must be read first.
    pub delivers: Vec<StageName>,
}

/// What a run has from the event that starts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// What all that follows has in common.
    pub context: String,
    /// The event's id.
    pub id: String,
    /// Its type and source.
    pub trigger: TriggerEvent,
    /// What it leaves to the tasks.
    pub data: Value,
    /// Under what it is remembered that it was told.
    pub once: String,
}

impl Incoming {
    /// What an event gives to what it starts.
    pub fn of(event: &CloudEvent) -> Self {
        let data = left(&event.data);
        let trigger = TriggerEvent { kind: event.kind.clone(), source: event.source.clone() };
        Self { context: context(event), id: event.id.clone(), trigger, data, once: once(event) }
    }

    /// The same for a delivery to a stage, which is started apart from what else the event starts.
    #[must_use]
    pub fn to(self, stage: &StageName) -> Self {
        Self { once: once_to(&self.once, stage), ..self }
    }

    /// Remembers that it was told, so that nobody can start the same twice.
    pub(in crate::engine) fn remember(&self, transition: &mut Transition<'_>, repository: &RepositoryName) {
        let (repository, id, at) = (repository.clone(), self.once.clone(), transition.now);
        transition.write(Write::Delivery { repository, id, at });
    }
}

/// Takes an event about a project that `repository` declares.
///
/// # Errors
/// If it makes no sense, or something must be read first.
pub fn receive(
    transition: &mut Transition<'_>,
    repository: &RepositoryName,
    event: &CloudEvent,
) -> Result<Received, Undecided> {
    match event.meaning() {
        Meaning::Task { task, phase } => of_task(transition, event, task, phase),
        Meaning::SequenceTriggered { stage, sequence } => {
            let (stage, sequence) = (StageName::new(stage), sequence.to_owned());
            if !event.text("stage").is_empty() && event.text("stage") != stage.as_str() {
                return Err(contradicts(&stage, event.text("stage")).into());
            }
            start(transition, repository, event, |plan| named(plan, &stage, &sequence))
        }
        Meaning::Domain => {
            let stage = Some(event.text("stage")).filter(|stage| !stage.is_empty()).map(StageName::new);
            start(transition, repository, event, |plan| {
                let found = triggered::by_event(&plan.procedures.shipyard, &event.kind, stage.as_ref(), &event.data);
                if found.is_empty() {
                    happened_at(plan, &event.kind, stage.as_ref())?;
                }
                Ok(found.into_iter().map(|(stage, sequence)| (stage.name.clone(), sequence.clone())).collect())
            })
        }
        Meaning::TaskTriggered { .. } | Meaning::SequenceTold => {
            Err(Failure::stalled(format!("`{}` is told by launchway alone", event.kind)).malformed().into())
        }
        Meaning::TaskInvalidated { .. } => Ok(ignored(event, "nothing follows from what was made invalid")),
        Meaning::Log => Ok(ignored(event, LOGGED)),
    }
}

/// Whether an event says of what it is, in bounds.
///
/// # Errors
/// If it does not.
pub fn check(event: &CloudEvent) -> Result<(), Failure> {
    for (what, value) in [("project", event.text("project")), ("service", event.text("service"))] {
        if value.is_empty() {
            return Err(
                Failure::stalled(format!("event does not contain a {what}")).hint(format!("give it as `data.{what}`"))
            );
        }
    }
    names::service(event.text("service"))
        .map_err(|wrong| Failure::stalled(format!("service `{}` {wrong}", event.text("service"))))?;
    for (what, value) in [("id", &event.id), ("source", &event.source), ("type", &event.kind)] {
        if value.is_empty() || value.len() > LONGEST_NAME {
            let message = format!("the {what} of an event has 1 to {LONGEST_NAME} bytes");
            return Err(Failure::stalled(message));
        }
    }
    check_end(event)?;
    if depth(&event.data) > MOST_DEPTH {
        let message = format!("the data of an event may be nested {MOST_DEPTH} levels deep");
        return Err(Failure::stalled(message).hint("make it flatter"));
    }
    let bytes = event.data.to_string().len();
    if bytes > MOST_DATA {
        return Err(Failure::stalled(format!("the data of an event may have {MOST_DATA} bytes, not {bytes}")));
    }
    Ok(())
}

/// How something ended is said in the words that there are for it, or not at all.
fn check_end(event: &CloudEvent) -> Result<(), Failure> {
    if !event.kind.ends_with(".finished") {
        return Ok(());
    }
    for (key, words) in
        [("status", STATUSES.map(Status::as_str).to_vec()), ("result", RESULTS.map(TaskResult::as_str).to_vec())]
    {
        let said = &event.data[key];
        let is_known = said.is_null() || said.as_str().is_some_and(|said| said.is_empty() || words.contains(&said));
        if !is_known {
            let message = format!("`data.{key}` of a `.finished` event is {}, not {said}", words.join(", "));
            return Err(Failure::stalled(message));
        }
    }
    Ok(())
}

/// What an executor, or a person, says of a task.
fn of_task(
    transition: &mut Transition<'_>,
    event: &CloudEvent,
    task: &str,
    phase: Phase,
) -> Result<Received, Undecided> {
    let Some(triggered) = event.triggeredid.as_deref() else {
        let failure = Failure::stalled("an event about a task names the `.triggered` event that it answers");
        return Err(failure.hint("give its id as `triggeredid`").malformed().into());
    };
    let run = match triggered_by(triggered) {
        Some((id, index)) => transition.records.runs.get(&id)?.and_then(Run::sequence).map(|run| (run.clone(), index)),
        None => None,
    };
    let Some((run, index)) = run else {
        return Ok(ignored(event, &format!("no task was triggered as `{triggered}`")));
    };
    let context = run.context.clone().unwrap_or_default();
    let received = Received { context: context.clone(), runs: vec![run.id.clone()], ..Received::default() };
    if was_told(transition.records, &run.repository, &once(event))? {
        return Ok(Received { ignored: told_before(event), ..received });
    }
    if let Some(reason) = has_no_effect(&run, index, (task, triggered, phase), event) {
        return Ok(Received { context, ignored: reason, ..Received::default() });
    }
    Incoming::of(event).remember(transition, &run.repository);
    transition.tell(run.id.clone(), fact(event, index, phase));
    Ok(received)
}

/// Why an event about a task changes nothing.
fn has_no_effect(
    run: &SequenceRun,
    index: usize,
    (task, triggered, phase): (&str, &str, Phase),
    event: &CloudEvent,
) -> Option<String> {
    let service = &run.service;
    let is_its = |key: &str, own: &str| event.text(key).is_empty() || event.text(key) == own;
    let scoped = is_its("project", service.project.as_str())
        && is_its("stage", service.stage.as_str())
        && is_its("service", service.service.as_str());
    let is_at = |task: usize| task == index && run.triggered_id(index) == triggered;
    let is_current = match run.state {
        SequenceState::Running { task } | SequenceState::Ending { task, .. } => is_at(task),
        SequenceState::Queued | SequenceState::Returning { .. } | SequenceState::Ended => false,
    };
    match run.tasks.get(index) {
        None => Some(format!("no task was triggered as `{triggered}`")),
        Some(it) if it.name != task => Some(format!("`{triggered}` is about `{}`, not `{task}`", it.name)),
        Some(_) if !scoped => Some(format!("`{triggered}` is about {service}")),
        Some(it) if it.ended_at.is_some() => Some(format!("`{}` has ended: {}", it.step, it.message)),
        Some(it) if !is_current || it.started_at.is_none() || it.again_at.is_some() => {
            Some(format!("`{}` does not wait for it", it.step))
        }
        Some(it) if phase == Phase::StatusChanged && !it.executors.iter().any(|it| it.is_at_work(&event.source)) => {
            Some(format!("{} has not begun `{}`, or has ended it", event.source, it.step))
        }
        Some(it) if is_crowded(&it.executors, &event.source, phase) => {
            Some(format!("`{}` has {MOST_EXECUTORS} executors, which are enough", it.step))
        }
        Some(_) => None,
    }
}

/// Whether an event would make one executor more of a task that has so many: it is of none that lacks just that.
fn is_crowded(known: &[ExecutorRecord], name: &str, phase: Phase) -> bool {
    known.len() >= MOST_EXECUTORS && !known.iter().any(|it| it.name == name && it.lacks(phase))
}

fn fact(event: &CloudEvent, task: usize, phase: Phase) -> Event {
    let (executor, id, data) = (event.source.clone(), event.id.clone(), left(&event.data));
    let message = event.text("message").chars().take(LONGEST_MESSAGE).collect();
    match phase {
        Phase::Started => Event::ExecutorStarted { task, executor, id, data },
        Phase::StatusChanged => Event::ExecutorReported { task, executor, id, message },
        Phase::Finished => Event::ExecutorFinished { task, executor, id, outcome: outcome(&event.data), message, data },
    }
}

/// How a `.finished` event says that it went: what it does not say did not pass.
fn outcome(data: &Value) -> Outcome {
    let status = STATUSES.into_iter().find(|known| data["status"] == known.as_str());
    let result = RESULTS.into_iter().find(|known| data["result"] == known.as_str());
    Outcome { status: status.unwrap_or(Status::Unknown), result: result.unwrap_or(TaskResult::Fail) }
}

/// What an event leaves to the tasks that follow.
pub(super) fn left(data: &Value) -> Value {
    let mut data = data.clone();
    if let Some(fields) = data.as_object_mut() {
        OF_ONE_EVENT.iter().for_each(|key| drop(fields.remove(*key)));
        if fields.is_empty() {
            return Value::Null;
        }
    }
    data
}

/// Starts what a revision has to be started on an event.
fn start(
    transition: &mut Transition<'_>,
    repository: &RepositoryName,
    event: &CloudEvent,
    which: impl Fn(&Plan) -> Result<Vec<(StageName, Sequence)>, Failure>,
) -> Result<Received, Undecided> {
    let state = transition.records.repositories.get(repository)?.cloned();
    let unknown = || Failure::transient(format!("`{repository}` has no revision yet that says what to do"));
    let state = state.ok_or_else(unknown)?;
    if state.down {
        return Err(crate::engine::by_hand::is_down(repository).into());
    }
    let named = event.gitcommitid.as_deref().filter(|commit| !commit.is_empty()).map(CommitId::new);
    let commit = named.or(state.applied).ok_or_else(unknown)?;
    let plan = transition.records.plan(Lookup::Outline(repository.clone(), commit.clone()))?.cloned();
    let plan =
        plan.ok_or_else(|| Failure::stalled(format!("revision {} has no plan here", commit.short())).missing())?;
    let found = which(&plan)?;
    if found.is_empty() {
        return Ok(ignored(event, &format!("no sequence of `{}` is triggered on it", plan.project)));
    }
    let incoming = Incoming::of(event);
    let mut received = Received { context: incoming.context.clone(), ..Received::default() };
    let mut drafts = Vec::new();
    for (stage, sequence) in found {
        match draft(transition.records, &plan, event, (&stage, &sequence))? {
            Some(draft) => drafts.push(draft),
            None if was_told(transition.records, repository, &once_to(&incoming.once, &stage))? => {}
            None => received.delivers.push(stage),
        }
    }
    if drafts.is_empty() || was_told(transition.records, repository, &incoming.once)? {
        let is_new = !received.delivers.is_empty();
        received.ignored = if is_new { String::new() } else { told_before(event) };
        return Ok(received);
    }
    incoming.remember(transition, repository);
    for draft in drafts {
        // What delivers a service that is declared nowhere yet is the delivery to that stage that the event asks for.
        if plan.stage(&draft.service.stage).is_some_and(|stage| delivers(stage, &draft.procedure.sequence)) {
            incoming.clone().to(&draft.service.stage).remember(transition, repository);
        }
        let run = queue::queued(transition.records, transition.now, draft)?;
        received.runs.push(run.id.clone());
        transition.start(run)?;
    }
    Ok(received)
}

/// Makes sure that the stage in which something happened is there, and that an event's type and its data name the same: what
/// starts nothing may be meant to. The first word of a type need not be a stage, where one is called so.
fn happened_at(plan: &Plan, kind: &str, stage: Option<&StageName>) -> Result<(), Failure> {
    let (Some(stage), shipyard) = (stage, &plan.procedures.shipyard) else { return Ok(()) };
    if shipyard.stage(stage).is_none() {
        return Err(no_stage(&plan.project, stage.as_str(), shipyard.stages.iter().map(|stage| &stage.name)));
    }
    match triggered::named_stage(shipyard, kind).filter(|named| *named != stage) {
        Some(named) => Err(contradicts(named, stage.as_str())),
        None => Ok(()),
    }
}

fn contradicts(named: &StageName, stage: &str) -> Failure {
    Failure::stalled(format!("its type is about stage `{named}`, its data about `{stage}`")).malformed()
}

/// The sequence of that name in a stage; an evaluation may be had everywhere.
fn named(plan: &Plan, stage: &StageName, sequence: &str) -> Result<Vec<(StageName, Sequence)>, Failure> {
    let shipyard = &plan.procedures.shipyard;
    let declared = shipyard.stage(stage);
    let missing = || no_stage(&plan.project, stage.as_str(), shipyard.stages.iter().map(|stage| &stage.name));
    let found = declared.ok_or_else(missing)?.sequences.iter().find(|it| it.name == sequence);
    let built_in = || {
        let tasks = vec![Task::named(EVALUATION_TASK)];
        (sequence == EVALUATION_TASK).then(|| Sequence { name: sequence.to_owned(), tasks, ..Sequence::default() })
    };
    let missing = || Failure::stalled(format!("stage `{stage}` has no sequence `{sequence}`")).missing();
    let found = found.cloned().or_else(built_in).ok_or_else(missing)?;
    Ok(vec![(stage.clone(), found)])
}

/// The run of a sequence for the service of an event; nothing, if that is how the stage delivers a service that is declared.
fn draft(
    records: &Records,
    plan: &Plan,
    event: &CloudEvent,
    (stage, sequence): (&StageName, &Sequence),
) -> Result<Option<SequenceRun>, Undecided> {
    let service = ServiceName::new(event.text("service"));
    let key = ServiceKey { project: plan.project.clone(), stage: stage.clone(), service: service.clone() };
    let Some(planned) = plan.stage(stage) else {
        return Err(no_stage(&plan.project, stage.as_str(), plan.stages.iter().map(|stage| &stage.stage)).into());
    };
    let part = records.plan(Lookup::PlanOf(plan.id.clone(), service.clone()))?;
    let is_planned = part.and_then(|part| part.stage(stage)?.service(&service)).is_some();
    let is_declared = is_planned || was_delivered(records, &key)?;
    if is_declared && delivers(planned, sequence) {
        return Ok(None);
    }
    let incoming = Incoming::of(event);
    let procedure = plan.procedures.procedure(stage, sequence, &service);
    let revision = (plan.repository.clone(), plan.commit.clone());
    Ok(Some(SequenceRun {
        plan: Some(plan.id.clone()),
        cause: format!("{} by {}", event.short_kind(), event.source),
        context: Some(incoming.context),
        triggered_by: Some(incoming.id),
        trigger: Some(incoming.trigger),
        data: incoming.data,
        is_foreign: !is_declared,
        ..SequenceRun::draft(key, planned.destination.clone(), revision, content::stored(procedure))
    }))
}

/// Whether a stage brings by a sequence what is declared.
fn delivers(stage: &StagePlan, sequence: &Sequence) -> bool {
    stage.sequence.as_ref().is_some_and(|delivery| delivery.name == sequence.name)
}

/// Whether a service was delivered, or is being.
fn was_delivered(records: &Records, service: &ServiceKey) -> Result<bool, Undecided> {
    let was_delivered = records.slots.get(service)?.is_some_and(|slot| slot.last_delivery.is_some());
    Ok(was_delivered || queue::open_run(records, service, |run| run.delivery.is_some())?.is_some())
}

fn was_told(records: &Records, repository: &RepositoryName, once: &str) -> Result<bool, Undecided> {
    Ok(records.number(Lookup::WasDelivered(repository.clone(), once.to_owned()))? > 0)
}

fn told_before(event: &CloudEvent) -> String {
    format!("event `{}` of {} was told before", event.id, event.source)
}

/// Under what it is remembered that an event was told. Source: CloudEvents, by which source and id tell events apart.
fn once(event: &CloudEvent) -> String {
    // Of a source with a space in it, nobody could tell where its id begins.
    let source = event.source.replace('%', "%25").replace(' ', "%20");
    format!("{KEPT_BY_AGE}{source} {}", event.id)
}

/// The same for what it has delivered to a stage; no source is written so, in which each `%` begins `%25` or `%20`.
fn once_to(once: &str, stage: &StageName) -> String {
    format!("{KEPT_BY_AGE}%to/{stage} {}", once.strip_prefix(KEPT_BY_AGE).unwrap_or(once))
}

/// Under what it is remembered that something happened in Git.
pub(super) fn once_in_git(event: &GitEvent) -> String {
    format!("{KEPT_BY_AGE}%git {}", event.identity())
}

fn ignored(event: &CloudEvent, reason: &str) -> Received {
    Received { context: context(event), ignored: reason.to_owned(), ..Received::default() }
}

/// What an event has in common with what follows from it: what it says itself, else what follows from its identity.
fn context(event: &CloudEvent) -> String {
    let named = event.shkeptncontext.as_deref().filter(|it| !it.is_empty() && it.len() <= LONGEST_NAME);
    named.map_or_else(|| derived_context(&once(event)), str::to_owned)
}

/// A UUID that follows from a text, as version 8 of RFC 9562 has it.
pub fn derived_context(of: &str) -> String {
    let hash = digest(&SHA256, of.as_bytes());
    let mut bytes = [0_u8; 16];
    bytes.copy_from_slice(&hash.as_ref()[..16]);
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex = content::hex(&bytes);
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests;
