//! What became of a service in a stage, and of the stage as a whole.

use std::collections::BTreeSet;

use crate::clock::rfc3339;
use crate::model::cloud_event::short;
use crate::model::commit_status::StatusState;
use crate::model::ids::{CommitId, ServiceName, StageName};
use crate::model::object::Kind;
use crate::model::outcome::Outcome;
use crate::model::plan::{Change, Decision, ServicePlan, StagePlan, StageStart};
use crate::model::run::{SequenceRun, SequenceState, TaskRecord};
use crate::model::shipyard::{DEPLOYMENT_TASK, SequenceTrigger};
use crate::report::delivery::Delivery;
use crate::report::line::{Line, Next, nothing, state_of};

/// How many services a stage's line names of each state.
const NAMED: usize = 5;

/// A service in a stage, before its attempts are counted; nothing, if the plan changes nothing of it there and it had no run.
pub(super) fn line(delivery: &Delivery<'_>, stage: &StagePlan, name: &ServiceName) -> Option<Line> {
    match (delivery.told(&stage.stage, name), stage.service(name)) {
        (Some(run), planned) => Some(and_held_back(of_run(run, delivery), planned)),
        (None, Some(service)) => Some(not_started(delivery, stage, service)),
        (None, None) => None,
    }
}

/// A service that has not started here: what waits, also for an earlier revision that may have ended, does so in vain once
/// a newer one was delivered in its place. `gives_way` says that it is so although its state is final.
pub(super) fn overtaken(line: Line, gives_way: bool, by: &CommitId) -> Line {
    match line.run.is_none() && (gives_way || !line.state.is_final()) {
        true => {
            let description = format!("superseded by {}", by.short());
            Line { state: StatusState::Skipped, description, next: Next::Nothing, ..line }
        }
        false => line,
    }
}

/// A service that the plan said something of before it was made again, and that had no run.
pub(super) fn left_over(attempt: u32) -> Line {
    unchanged(attempt, &BTreeSet::new())
}

/// A service, or a stage, of which something was said before its revision lost its plan, and that had no run.
pub(super) fn never_started(attempt: u32) -> Line {
    let description = "not started: the revision has no plan any more".to_owned();
    Line { state: StatusState::Skipped, description, run: None, attempt, next: Next::Nothing, details: None }
}

/// A step of a run that nobody remembers.
pub(super) fn forgotten(attempt: u32) -> Line {
    let description = "what became of it is not remembered any more".to_owned();
    Line { state: StatusState::Skipped, description, run: None, attempt, next: Next::Nothing, details: None }
}

/// What a run says of its service.
pub(super) fn of_run(run: &SequenceRun, delivery: &Delivery<'_>) -> Line {
    let state = match (run.state, run.outcome) {
        (SequenceState::Queued, _) => StatusState::Pending,
        (SequenceState::Running { .. } | SequenceState::Returning { .. } | SequenceState::Ending { .. }, _) => {
            StatusState::Running
        }
        (SequenceState::Ended, outcome) => outcome.map_or(StatusState::Error, state_of),
    };
    let description = match run.state {
        SequenceState::Queued if run.message.is_empty() => "queued".to_owned(),
        SequenceState::Queued => run.message.clone(),
        SequenceState::Returning { .. } if run.message.is_empty() => "waits for its turn".to_owned(),
        SequenceState::Returning { .. } => run.message.clone(),
        SequenceState::Running { .. } => run.task().map(|task| under_way(run, task, delivery)).unwrap_or_default(),
        SequenceState::Ending { .. } => format!("ending: {}", run.message),
        SequenceState::Ended if run.outcome.is_some_and(Outcome::passes) => succeeded(run),
        SequenceState::Ended => run.message.clone(),
    };
    let description = match &run.forced {
        Some(forced) => format!("{description} (forced by {forced})"),
        None => description,
    };
    let description = match (&run.paused, run.state) {
        (Some(by), SequenceState::Running { .. }) => format!("{description}; paused by {by}"),
        _ => description,
    };
    let next = waits_for_a_person(run, delivery).map_or_else(|| next_of(run), Next::Resume);
    Line { state, description, run: Some(run.id.clone()), attempt: run.attempt, next, details: None }
}

/// What was delivered stays so, where hooks would deliver again what was there before; and what was rolled back since is not
/// deployed again.
fn and_held_back(line: Line, planned: Option<&ServicePlan>) -> Line {
    let stays = |change: &&Change| change.came_round() || change.is_quarantined();
    let held_back = planned.and_then(|service| service.changes.iter().find(stays));
    match held_back.filter(|_| line.state.is_final()) {
        Some(change) => {
            Line { description: format!("{}; {} {}", line.description, change.title(), change.cause), ..line }
        }
        None => line,
    }
}

/// The deployment config whose rollout a run waits for, if only a person moves that on.
fn waits_for_a_person(run: &SequenceRun, delivery: &Delivery<'_>) -> Option<String> {
    let task = run.task().filter(|_| matches!(run.state, SequenceState::Running { .. }))?;
    let open = task.deployments.iter().filter(|deployment| deployment.outcome.is_none());
    let open: Vec<_> = open.map(|deployment| delivery.deployment(deployment.run.as_ref())).collect();
    let waits = open.iter().all(|run| run.is_some_and(|run| run.waits_for_a_person()));
    let first = open.first().copied().flatten().filter(|_| waits)?;
    Some(first.object.target())
}

/// What follows on what a run is at. A rollback passes every hold. What a file pauses keeps the rollout from going on whose
/// end it waits for.
pub(super) fn next_of(run: &SequenceRun) -> Next {
    let paused = || run.changes().iter().find(|change| change.is_paused() && change.kind() == Kind::Deployment);
    match run.state {
        SequenceState::Queued if let Some(change) = paused() => Next::Paused(change.target()),
        SequenceState::Queued | SequenceState::Returning { .. } if !run.is_rollback => {
            Next::Turn(run.context.clone(), run.takes_from.clone())
        }
        _ if run.awaits_approval().is_some() => Next::Approve,
        SequenceState::Queued
        | SequenceState::Running { .. }
        | SequenceState::Returning { .. }
        | SequenceState::Ending { .. } => Next::GoesOn,
        SequenceState::Ended => Next::Nothing,
    }
}

fn under_way(run: &SequenceRun, task: &TaskRecord, delivery: &Delivery<'_>) -> String {
    if let Some(at) = run.pauses_until() {
        return format!("{} starts at {}", task.step, rfc3339(at));
    }
    let deployment = task.deployments.iter().find(|deployment| deployment.outcome.is_none());
    match deployment.and_then(|deployment| delivery.deployment(deployment.run.as_ref())) {
        Some(run) => {
            let told = format!("{} version {} is {}", run.config.name, run.version, run.phase.as_str());
            if run.is_delayed() { format!("{told}: {}", run.problem) } else { told }
        }
        None if run.awaits_services() && !task.message.is_empty() => task.message.clone(),
        None if run.offered().is_some() && !task.message.is_empty() => format!("{}: {}", task.step, task.message),
        None => format!("{} is running", task.step),
    }
}

fn succeeded(run: &SequenceRun) -> String {
    let told = |task: &TaskRecord| {
        if task.name == DEPLOYMENT_TASK { task.message.clone() } else { format!("{} {}", task.step, task.message) }
    };
    run.tasks.iter().map(told).collect::<Vec<_>>().join("; ")
}

/// A service that the plan changes and for which nothing has started.
fn not_started(delivery: &Delivery<'_>, stage: &StagePlan, service: &ServicePlan) -> Line {
    let Some((next, description)) = waiting(delivery, stage, service) else { return unchanged(0, &BTreeSet::new()) };
    let state = if next == Next::Nothing { StatusState::Skipped } else { StatusState::Pending };
    Line { state, description, run: None, attempt: 0, next, details: None }
}

/// What a service that has not started waits for, or why it never will start; nothing, if there is nothing to do.
fn waiting(delivery: &Delivery<'_>, stage: &StagePlan, service: &ServicePlan) -> Option<(Next, String)> {
    let goes_on = |change: &Change| change.is_held() || !matches!(change.decision, Decision::None | Decision::Wait);
    if service.runs_again.is_none() && !service.changes.iter().any(goes_on) {
        let waits = service.changes.iter().find(|change| change.decision == Decision::Wait);
        let told = waits.or_else(|| service.changes.iter().find(|change| !change.cause.is_empty()));
        let told = told.map(|it| format!("{} {}", it.title(), it.cause))?;
        return Some((waits.map_or(Next::Nothing, waits_in_file), told));
    }
    Some(match (&stage.start, &service.previous_stage) {
        _ if stage.sequence.is_none() => (Next::Nothing, "no sequence of this stage delivers".into()),
        (StageStart::ByHand, _) => (Next::ByHand, "started by hand: `launchway trigger delivery`".into()),
        (StageStart::Event(triggers), _) => untriggered(triggers, &service.service, delivery),
        (_, Some(_)) if delivery.had_its_turn(&stage.stage, &service.service) => return None,
        (_, Some(_)) if was_let_pass(delivery, &stage.stage, &service.service) => return None,
        (start, Some(previous)) => match stopper(delivery, start, &stage.stage, &service.service) {
            Some(stopper) => (Next::Nothing, format!("never reached: {stopper} stopped it")),
            None => {
                // What an earlier revision is bringing there is none of this one's lines.
                let is_elsewhere = delivery.awaited(&stage.stage, &service.service).is_some();
                let next = if is_elsewhere { Next::GoesOn } else { Next::Another };
                (next, format!("waits for {} to pass", previous.by()))
            }
        },
        (StageStart::After(triggers), None) => untriggered(triggers, &service.service, delivery),
        (StageStart::Push, None) => (Next::Start, "about to start".into()),
    })
}

/// Who moves what the plan itself lets wait.
fn waits_in_file(change: &Change) -> Next {
    match change.target() {
        target if change.is_paused() => Next::Paused(target),
        target if change.came_round() => Next::Latest(target),
        target if change.is_quarantined() => Next::Release(target),
        _ => Next::Push,
    }
}

/// Whether what a stage waits for passed with an earlier revision: what had been left to be done would have been started.
fn was_let_pass(delivery: &Delivery<'_>, stage: &StageName, service: &ServiceName) -> bool {
    delivery.awaited(stage, service).is_some_and(|awaited| delivery.has_let_pass(awaited))
}

/// What a stage waits for in vain: the delivery to a stage before, or a sequence that it is triggered on.
fn stopper(delivery: &Delivery<'_>, start: &StageStart, stage: &StageName, service: &ServiceName) -> Option<String> {
    if let Some(before) = stopped_by(delivery, stage, service) {
        return Some(before);
    }
    let StageStart::After(triggers) = start else { return None };
    let failed = |trigger: &SequenceTrigger| {
        let event = short(&trigger.event);
        let (stage, rest) = event.split_once('.')?;
        let other = delivery
            .others(&StageName::new(stage), service)
            .find(|run| rest == format!("{}.finished", run.sequence()))?;
        other.outcome.is_some_and(|outcome| !outcome.passes()).then(|| other.event_name())
    };
    triggers.iter().find_map(failed)
}

/// A stage that starts on something else than another's passing.
fn untriggered(triggers: &[SequenceTrigger], service: &ServiceName, delivery: &Delivery<'_>) -> (Next, String) {
    let named = |trigger: &SequenceTrigger| {
        let selector = trigger.selector.requirements().iter().map(|it| format!(" with {it}"));
        format!("{}{}", trigger.event, selector.collect::<String>())
    };
    let ended = |trigger: &SequenceTrigger| {
        let stage = short(&trigger.event).split('.').next().map(StageName::new);
        stage.and_then(|stage| delivery.newest(&stage, service)).is_some_and(|run| run.ended_at.is_some())
    };
    let is_outside = |trigger: &SequenceTrigger| {
        let named = short(&trigger.event).split('.').next();
        !delivery.plan.stages.iter().any(|stage| Some(stage.stage.as_str()) == named)
    };
    let events = triggers.iter().map(named).collect::<Vec<_>>().join(", ");
    match triggers.iter().all(ended) {
        true => (Next::Nothing, format!("not triggered: it starts on {events}")),
        false if triggers.iter().all(is_outside) => (Next::Event, format!("waits for {events}")),
        false => (Next::Another, format!("waits for {events}")),
    }
}

/// The stage before in which the service's delivery ended without passing, on this revision or on an earlier one, or the
/// sequence there that it waits for.
fn stopped_by(delivery: &Delivery<'_>, stage: &StageName, service: &ServiceName) -> Option<String> {
    if let Some(awaited) = delivery.awaited(stage, service) {
        return (delivery.left.get(&awaited.stage) == Some(&false)).then(|| awaited.by());
    }
    let mut before = delivery.before(stage, service).into_iter();
    let (last, run) = before.find_map(|stage| Some((stage, delivery.newest(stage, service)?)))?;
    run.outcome.is_some_and(|outcome| !outcome.passes()).then(|| last.to_string())
}

/// A stage in which nothing is done on this revision, beside what others are bringing.
pub(super) fn unchanged(attempt: u32, carriers: &BTreeSet<&CommitId>) -> Line {
    let description = nothing("changed", carriers);
    Line { state: StatusState::Unchanged, description, run: None, attempt, next: Next::Nothing, details: None }
}

/// A stage, from its services; nothing, if there are none. Any attempt at any of them may reopen it.
pub(super) fn stage_line<'a>(attempt: u32, services: impl Iterator<Item = (&'a str, &'a Line)>) -> Option<Line> {
    // While anything is under way the stage is, so that its outcome is written once.
    let order = [
        StatusState::Running,
        StatusState::Pending,
        StatusState::Error,
        StatusState::Failure,
        StatusState::Cancelled,
        StatusState::Success,
        StatusState::Skipped,
        StatusState::Unchanged,
    ];
    let tally = tally(services);
    let first = order.into_iter().find_map(|state| tally.iter().find(|counted| counted.state == state))?;
    let description = match first.count {
        1 => format!("{}: {}", first.named.join(""), first.description),
        _ => tally.iter().map(Counted::told).collect::<Vec<_>>().join("; "),
    };
    Some(Line { state: first.state, description, run: None, attempt, next: Next::Nothing, details: None })
}

/// The services in one state.
struct Counted<'a> {
    state: StatusState,
    count: usize,
    /// The first of them.
    named: Vec<&'a str>,
    /// What is said of the very first.
    description: &'a str,
}

impl Counted<'_> {
    /// `2 success (api, web)`.
    fn told(&self) -> String {
        let more = self.count - self.named.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{} {} ({}{more})", self.count, self.state, self.named.join(", "))
    }
}

/// In the order in which the states are met.
fn tally<'a>(services: impl Iterator<Item = (&'a str, &'a Line)>) -> Vec<Counted<'a>> {
    let mut tally: Vec<Counted<'_>> = Vec::new();
    for (name, Line { state, description, .. }) in services {
        let known = tally.iter().position(|counted| counted.state == *state);
        let index = known.unwrap_or_else(|| {
            tally.push(Counted { state: *state, count: 0, named: Vec::new(), description });
            tally.len() - 1
        });
        let counted = &mut tally[index];
        counted.count += 1;
        if counted.named.len() < NAMED {
            counted.named.push(name);
        }
    }
    tally
}
