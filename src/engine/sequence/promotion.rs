//! What the end of a sequence starts: the service's delivery to the stages whose turn it is, and other sequences that the
//! shipyard of its revision triggers on it. It is decided in the transaction that ends the sequence, so that nothing can
//! be lost between the two.

use std::collections::{BTreeSet, VecDeque};

use crate::engine::deployment::apply;
use crate::engine::records::{Needs, Records, Undecided};
use crate::engine::rollback;
use crate::engine::sequence::{dataflow, queue};
use crate::engine::transition::Transition;
use crate::manifest::digest;
use crate::model::ids::{Digest, RunId, ServiceKey, StageName};
use crate::model::outcome::Outcome;
use crate::model::plan::{Change, Plan, ServicePlan, StagePlan};
use crate::model::run::{Run, SequenceRun};
use crate::model::shipyard::Sequence;
use crate::model::slot::{PassedKey, PassedState};
use crate::model::state::RepositoryState;
use crate::model::time::Timestamp;
use crate::plan::{order, passed_procedure, triggered};

/// How often a sequence may come round by what it leads to, at most: a remediation tries one action after another.
const MOST_ROUNDS: usize = 10;

/// Starts the stages whose turn it is after a sequence. A delivery is one revision from end to end; the newest revision
/// that waited for the same content to pass gets its turn too, and has the last word. Where a part of a rollback of several has
/// failed, the others are brought back.
///
/// # Errors
/// If something must be read first.
pub(in crate::engine) fn promote(
    transition: &mut Transition<'_>,
    run: &RunId,
    outcome: Outcome,
) -> Result<(), Undecided> {
    rollback::ended(transition, run)?;
    let Some(Run::Sequence(ended)) = transition.records.runs.get(run)?.cloned() else { return Ok(()) };
    let service = &ended.service;
    // The plan moves with the repository's record, which must therefore be read before it.
    let repository = transition.records.repositories.get(&ended.repository)?.cloned();
    if let Some(sequence) = ended.only_tasks() {
        note_passed(transition, &ended, sequence, outcome)?;
    }
    let mut newest = report_waiting(transition, service)?; // perhaps it waits in vain from now on
    if repository.as_ref().is_some_and(|repository| repository.down) {
        return Ok(()); // once it is up again, the head is planned anew
    }
    if outcome == Outcome::SUPERSEDED && has_given_way_to_what_is_left(transition.records, &ended)? {
        transition.plan_again(&ended.repository)?; // nothing else takes its place
    }
    let is_there = |stage: &StagePlan| is_there(stage, repository.as_ref());
    newest.iter_mut().for_each(|newest| newest.stages.retain(is_there));
    let Some(id) = ended.plan.clone() else { return start_waiting(transition, &ended, newest.as_ref()) };
    let Some(mut plan) = transition.plan_of(&id, &service.service)? else { return Ok(()) };
    plan.stages.retain(is_there);
    let others = triggered::by_end(&plan, &ended, outcome);
    start_others(transition, &ended, (&ended.event_name(), ended.outcome), &plan, others)?;
    let turn = |plan| order::next(plan, &ended, outcome);
    let content = content_in(&plan, service);
    let newest = newest.filter(|newest| newest.id != plan.id);
    // What a person has run again was not under way when the newest revision was planned, which declares the same here: what
    // comes after it is as that one says.
    let says_how = |newest: &Plan| ended.by.is_some() && content.is_some() && content_in(newest, service) == content;
    // A revision that was planned again meanwhile, as for what a person has asked for, starts nothing twice: the newer plan has
    // the say there.
    let again = newest.as_ref().filter(|newest| newest.commit == plan.commit);
    let at = |stage: &StagePlan| ServiceKey { stage: stage.stage.clone(), ..service.clone() };
    let mut started = BTreeSet::new();
    if let (Some(newest), Some(content)) = (again, &content) {
        start_let_go(transition, &ended, newest, (turn(newest), content), &mut started)?;
    }
    if !newest.as_ref().is_some_and(says_how) {
        let mut turn = not_overtaken(transition, &plan, turn(&plan))?;
        // In what comes before this stage now, or beside it, the newest revision has the say.
        let follows = |stage: &StagePlan, newest: &Plan| order::follows(newest, &stage.stage, &service.stage);
        turn.retain(|(stage, _)| newest.as_ref().is_none_or(|newest| follows(stage, newest)));
        let is_said_again = |stage: &StagePlan, again: &Plan| content_in(again, &at(stage)).is_some();
        turn.retain(|(stage, _)| !again.is_some_and(|again| is_said_again(stage, again)));
        start_next(transition, &ended, &plan, turn, &mut started)?;
    }
    if let (Some(newest), Some(content)) = (newest.as_ref().filter(|_| again.is_none()), &content) {
        start_let_go(transition, &ended, newest, (turn(newest), content), &mut started)?;
    }
    Ok(())
}

/// Whether a delivery has given way to what another life of the store has left, and no other waits to take its place.
fn has_given_way_to_what_is_left(records: &Records, ended: &SequenceRun) -> Result<bool, Undecided> {
    if !ended.deployed() || queue::open_run(records, &ended.service, |run| run.ended_at.is_none())?.is_some() {
        return Ok(false);
    }
    for change in ended.changes().iter().filter(|change| change.starts_deployment()) {
        let config = ended.service.config(&change.key.name);
        if records.configs.get(&config)?.is_some_and(|state| state.inherited.is_some()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Starts what the newest plan has wait for the content that has ended, of what has its turn.
fn start_let_go(
    transition: &mut Transition<'_>,
    ended: &SequenceRun,
    newest: &Plan,
    (mut turn, content): (Vec<(&StagePlan, &ServicePlan)>, &Digest),
    started: &mut BTreeSet<StageName>,
) -> Result<(), Undecided> {
    turn.retain(|(_, part)| order::waits_for(part, &ended.service.stage, ended.only_tasks(), content));
    start_next(transition, ended, newest, turn, started)
}

/// Notes whether content has passed a sequence that delivers nothing, where a later stage waits for that.
fn note_passed(
    transition: &mut Transition<'_>,
    ended: &SequenceRun,
    sequence: &str,
    outcome: Outcome,
) -> Result<(), Undecided> {
    let Some(id) = ended.plan.as_ref().filter(|_| outcome != Outcome::SUPERSEDED) else { return Ok(()) };
    let Some(plan) = transition.plan_of(id, &ended.service.service)? else { return Ok(()) };
    let content =
        content_in(&plan, &ended.service).filter(|_| order::is_awaited(&plan, &ended.service.stage, sequence));
    let Some(content) = content else { return Ok(()) };
    let key = PassedKey::by_sequence(ended.service.clone(), &content, sequence);
    let was = transition.records.passed.get(&key)?.is_some();
    let procedure = passed_procedure(&ended.procedure);
    let passed = PassedState { key: key.clone(), commit: ended.commit.clone(), at: transition.now, procedure };
    let passed = outcome.passes().then_some(passed);
    if was || passed.is_some() {
        transition.records.passed.put(&key, passed)?;
    }
    Ok(())
}

/// The parts of a plan in whose stages no newer revision has had its turn.
fn not_overtaken<'a>(
    transition: &Transition<'_>,
    plan: &Plan,
    turn: Vec<(&'a StagePlan, &'a ServicePlan)>,
) -> Result<Vec<(&'a StagePlan, &'a ServicePlan)>, Undecided> {
    let mut left = Vec::new();
    for (stage, part) in turn {
        if !is_overtaken(transition, plan, stage, part)? {
            left.push((stage, part));
        }
    }
    Ok(left)
}

/// Whether a newer revision has had its turn in a later stage already: with the service, or with another one that has taken
/// over what the plan is to change there.
fn is_overtaken(
    transition: &Transition<'_>,
    plan: &Plan,
    stage: &StagePlan,
    part: &ServicePlan,
) -> Result<bool, Undecided> {
    let (project, stage) = (plan.project.clone(), stage.stage.clone());
    let own = ServiceKey { project, stage, service: part.service.clone() };
    let changed = changed_since(transition.records, &own, &part.changes, plan.at)?;
    Ok(changed.is_some() || has_had_its_turn(transition, &own, plan.at)?)
}

/// The newer revision, by its name, that has changed already what a run is to change: with another service, which this had
/// belonged to or belongs to now. What a person asked for is of the service that it belonged to then.
///
/// # Errors
/// If something must be read first.
pub(in crate::engine) fn overtaken_elsewhere(
    transition: &Transition<'_>,
    run: &SequenceRun,
) -> Result<Option<String>, Undecided> {
    match run.planned_at {
        Some(planned_at) => changed_since(transition.records, &run.service, run.changes(), planned_at),
        None => moved(transition.records, run),
    }
}

/// The revision planned after `since` that has made some of `changes` in its own way.
fn changed_since(
    records: &Records,
    service: &ServiceKey,
    changes: &[Change],
    since: Timestamp,
) -> Result<Option<String>, Undecided> {
    for change in changes.iter().filter(|change| change.decision.does_something()) {
        let recorded = apply::recorded(records, service, change)?;
        if let Some(newer) = recorded.filter(|recorded| recorded.planned_at.is_some_and(|at| at > since)) {
            return Ok(Some(newer.by));
        }
    }
    Ok(None)
}

/// Whether some of what a run is to change belongs to another service until then.
///
/// # Errors
/// If something must be read first.
pub(in crate::engine) fn takes_over(transition: &Transition<'_>, run: &SequenceRun) -> Result<bool, Undecided> {
    moved(transition.records, run).map(|by| by.is_some())
}

/// The revision that has given some of what a run is to change to another service, or has left it with that.
fn moved(records: &Records, run: &SequenceRun) -> Result<Option<String>, Undecided> {
    for change in run.changes() {
        let recorded = apply::recorded(records, &run.service, change)?;
        if let Some(recorded) = recorded.filter(|recorded| recorded.service != run.service.service) {
            return Ok(Some(recorded.by));
        }
    }
    Ok(None)
}

/// Whether a revision that was planned after `since` has had its turn in a slot, or waits for it.
fn has_had_its_turn(transition: &Transition<'_>, service: &ServiceKey, since: Timestamp) -> Result<bool, Undecided> {
    let records = &*transition.records;
    let Some(slot) = records.slots.get(service)? else { return Ok(false) };
    for id in slot.open().chain(slot.last_delivery.as_ref().map(|last| &last.run)) {
        if let Some(Run::Sequence(run)) = records.runs.get(id)?
            && run.planned_at.is_some_and(|at| at > since)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Has the newest revision reported anew if one of its stages waits for what becomes of a service: that is another's run where an
/// earlier revision brings the same. Hands back its plan.
///
/// # Errors
/// If something must be read first.
pub(in crate::engine) fn report_waiting(
    transition: &mut Transition<'_>,
    service: &ServiceKey,
) -> Result<Option<Plan>, Undecided> {
    let newest = transition.newest_plan_of(service)?;
    if let Some(newest) = newest.as_ref().filter(|newest| waits_for(newest, service)) {
        transition.report(newest.repository.clone(), newest.commit.clone());
    }
    Ok(newest)
}

/// Whether a plan has the service wait in a later stage for what becomes of it in its stage.
fn waits_for(plan: &Plan, service: &ServiceKey) -> bool {
    let previous = |stage: &StagePlan| stage.service(&service.service).and_then(|part| part.previous_stage.clone());
    plan.stages.iter().filter_map(previous).any(|previous| previous.stage == service.stage)
}

/// What a plan brings to the stage of a service.
fn content_in(plan: &Plan, service: &ServiceKey) -> Option<Digest> {
    Some(plan.stage(&service.stage)?.service(&service.service)?.content.clone())
}

/// What was done by hand may have brought back what its stage declares: what waited for that has its turn.
fn start_waiting(transition: &mut Transition<'_>, ended: &SequenceRun, newest: Option<&Plan>) -> Result<(), Undecided> {
    let ServiceKey { stage, service, .. } = &ended.service;
    let Some(newest) = newest else { return Ok(()) };
    let content = match newest.stage(stage).and_then(|stage| stage.service(service)) {
        Some(part) => is_as_declared(transition.records, ended, part)?.then(|| part.content.clone()),
        None => brought_back(transition.records, ended)?, // there was nothing to be done, or an open delivery was to do it
    };
    let Some(content) = content else { return Ok(()) };
    let turn = order::after(newest, stage, service, &content);
    start_next(transition, ended, newest, turn, &mut BTreeSet::new())
}

/// What was delivered last, if what was done by hand has brought back a part of that.
fn brought_back(records: &Records, ended: &SequenceRun) -> Result<Option<Digest>, Undecided> {
    let last = records.slots.get(&ended.service)?.and_then(|slot| slot.last_delivery.as_ref());
    let Some(last) = last else { return Ok(None) };
    let Some(Run::Sequence(delivered)) = records.runs.get(&last.run)? else { return Ok(None) };
    let same = |by_hand: &Change| {
        delivered.changes().iter().any(|change| change.key == by_hand.key && change.digest() == by_hand.digest())
    };
    Ok(ended.changes().iter().all(same).then(|| last.content.clone()))
}

/// Whether nothing is left to be done for a service's part of a plan, and what was done by hand is a part of that.
fn is_as_declared(records: &Records, ended: &SequenceRun, part: &ServicePlan) -> Result<bool, Undecided> {
    let is_planned = |done: &Change| part.changes.iter().any(|change| change.key == done.key);
    if !ended.changes().iter().all(is_planned) {
        return Ok(false);
    }
    Ok(!is_left(records, &ended.service, part)? && !part.changes.iter().any(Change::is_held))
}

/// Whether anything of a service's part of a plan is left to be done, whatever holds it.
fn is_left(records: &Records, service: &ServiceKey, part: &ServicePlan) -> Result<bool, Undecided> {
    let (mut is_left, mut needs) = (false, Needs::default());
    for change in &part.changes {
        let again = needs.of(apply::decide_again(records, service, change))?;
        is_left |= again.is_some_and(|again| again.decision.does_something());
    }
    needs.none()?;
    Ok(is_left)
}

/// Starts the parts of a plan whose turn it is, as far as the stage before has passed what they need of it. Where nothing is left
/// to be done and nothing is under way, what comes after that has its turn at once: an older revision may have been there since.
fn start_next(
    transition: &mut Transition<'_>,
    ended: &SequenceRun,
    plan: &Plan,
    turn: Vec<(&StagePlan, &ServicePlan)>,
    started: &mut BTreeSet<StageName>,
) -> Result<(), Undecided> {
    let (mut turn, mut came_to) = (VecDeque::from(turn), BTreeSet::new());
    while let Some((stage, part)) = turn.pop_front() {
        if !came_to.insert(&stage.stage) || !queue::is_let_pass(transition.records, &plan.project, part)? {
            continue;
        }
        let cause = format!("{}.{} finished", ended.service.stage, ended.sequence());
        let (records, now) = (&mut *transition.records, transition.now);
        let run = if started.contains(&stage.stage) {
            // It takes the place of what an older revision starts here, even if nothing differs now.
            queue::delivery(records, now, plan, stage, part, cause)?
        } else {
            queue::due_delivery(records, now, plan, stage, part, cause)?
        };
        if let Some(run) = run {
            started.insert(stage.stage.clone());
            let (context, preceded, data) = (ended.context.clone(), ended.outcome, dataflow::carried(ended));
            transition.start(SequenceRun { context, preceded, data, ..run })?;
        } else if is_at_rest(transition.records, ended, stage, part)? {
            turn.extend(order::after(plan, &stage.stage, &part.service, &part.content));
        }
    }
    Ok(())
}

/// Whether nothing of a part is left to be done in its stage, and nothing is under way there.
fn is_at_rest(
    records: &Records,
    ended: &SequenceRun,
    stage: &StagePlan,
    part: &ServicePlan,
) -> Result<bool, Undecided> {
    let service = ServiceKey { stage: stage.stage.clone(), ..ended.service.clone() };
    Ok(!is_left(records, &service, part)? && queue::open_run(records, &service, |_| true)?.is_none())
}

/// How often a sequence may come round by what it leads to: one that asks how something ended may try again.
fn rounds(sequence: &Sequence) -> usize {
    let asks = sequence.triggered_on.iter().any(|trigger| !trigger.selector.is_empty());
    if asks { MOST_ROUNDS } else { 1 }
}

/// Starts the sequences that bring nothing and only run tasks, for the same service, after what has ended and how.
fn start_others(
    transition: &mut Transition<'_>,
    run: &SequenceRun,
    (what, outcome): (&str, Option<Outcome>),
    plan: &Plan,
    others: Vec<(&StagePlan, &Sequence)>,
) -> Result<(), Undecided> {
    let after: Vec<String> = run.after.iter().cloned().chain([run.event_name()]).collect();
    for (stage, sequence) in others {
        let name = format!("{}.{}", stage.stage, sequence.name);
        if after.iter().filter(|before| **before == name).count() >= rounds(sequence) {
            continue; // else a circle of triggers never ends
        }
        let service = ServiceKey { stage: stage.stage.clone(), ..run.service.clone() };
        let revision = (run.repository.clone(), run.commit.clone());
        let procedure = plan.procedures.procedure(&stage.stage, sequence, &service.service);
        let draft = SequenceRun {
            plan: run.plan.clone(),
            cause: format!("{what} finished"),
            after: after.clone(),
            context: run.context.clone(),
            data: dataflow::carried(run),
            preceded: outcome,
            is_foreign: run.is_foreign,
            ..SequenceRun::draft(service, stage.destination.clone(), revision, digest::stored(procedure))
        };
        let run = queue::queued(transition.records, transition.now, draft)?;
        transition.start(run)?;
    }
    Ok(())
}

/// The tasks that end in a step of a run, as positions.
pub(in crate::engine) fn ended_tasks(before: &Run, now: &Run) -> Vec<usize> {
    let (Some(before), Some(now)) = (before.sequence(), now.sequence()) else { return Vec::new() };
    let tasks = before.tasks.iter().zip(&now.tasks).enumerate();
    tasks.filter(|(_, (was, is))| was.outcome.is_none() && is.outcome.is_some()).map(|(index, _)| index).collect()
}

/// Starts the sequences that wait for tasks which have just ended. A stage's delivery waits for the whole sequence.
///
/// # Errors
/// If something must be read first.
pub(in crate::engine) fn tasks_ended(
    transition: &mut Transition<'_>,
    run: &RunId,
    tasks: &[usize],
) -> Result<(), Undecided> {
    if tasks.is_empty() {
        return Ok(());
    }
    let Some(Run::Sequence(run)) = transition.records.runs.get(run)?.cloned() else { return Ok(()) };
    let repository = transition.records.repositories.get(&run.repository)?.cloned();
    let is_down = repository.as_ref().is_some_and(|repository| repository.down);
    let Some(id) = run.plan.as_ref().filter(|_| !is_down) else { return Ok(()) };
    let Some(mut plan) = transition.plan_of(id, &run.service.service)? else { return Ok(()) };
    plan.stages.retain(|stage| is_there(stage, repository.as_ref()));
    for index in tasks {
        let task = &run.tasks[*index];
        let what = format!("{}.{}", run.service.stage, task.name);
        let others = triggered::by_task(&plan, &run, *index);
        start_others(transition, &run, (&what, task.outcome), &plan, others)?;
    }
    Ok(())
}

/// A stage that the applied revision no longer has gets nothing more.
fn is_there(stage: &StagePlan, repository: Option<&RepositoryState>) -> bool {
    repository.is_none_or(|repository| repository.namespaces.contains(&stage.destination.namespace))
}

#[cfg(test)]
mod tests;
