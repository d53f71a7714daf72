//! From inputs to one transaction: every run that receives an event steps, what it decides is applied to what is
//! remembered, and runs that share a slot hear whose turn it is. Pure: what is remembered comes as [`Records`].

use std::collections::{BTreeSet, VecDeque};

use crate::engine;
use crate::engine::deployment::{apply, gone, restored, tag, turn};
use crate::engine::evaluation;
use crate::engine::holds;
use crate::engine::names;
use crate::engine::records::{Lookup, Needs, Records, Undecided};
use crate::engine::rollback::{self, propose};
use crate::engine::sequence::{promotion, slot};
use crate::model::action::{Action, Decided, Effect};
use crate::model::event::Event;
use crate::model::hold::Hold;
use crate::model::ids::{CommitId, ConfigKey, PlanId, RepositoryName, RunId, ServiceKey, ServiceName, WriterName};
use crate::model::outcome::Outcome;
use crate::model::plan::Plan;
use crate::model::preview::Preview;
use crate::model::proposal::Proposal;
use crate::model::run::{DeploymentRun, Run, SequenceRun, SequenceState, TaskLimits};
use crate::model::slot::{PassedKey, PassedState, SlotState};
use crate::model::time::Timestamp;
use crate::model::transaction::Write;
use crate::model::wanted::Wanted;

mod worked_out;

pub use worked_out::{Touched, WorkedOut};

/// Slots that are examined in one transaction.
pub const SLOTS_AT_ONCE: usize = 32;

/// Something that starts a transition.
#[derive(Clone, Debug)]
pub enum Input {
    /// A run receives an event.
    Tell(RunId, Event),
    /// A slot is examined: something that decides about it may have changed.
    Examine(ServiceKey),
    /// The last pod of a deployment config that vanished is gone: so is its record, unless it has come back.
    Forget(ConfigKey),
    /// Of these versions of a deployment config, which are wanted no longer, nothing is there any more. Says which value of
    /// `Wanted` that was seen for.
    Gone(ConfigKey, u64, BTreeSet<u32>),
    /// The deployment of a config that another life of the store began gives way to what that has left. Says which value of
    /// `Wanted` that was seen for.
    GiveWay(ConfigKey, u64),
    /// A revision has news for whoever reads its statuses.
    Report(RepositoryName, CommitId),
    /// Why a writer's statuses do not reach a repository's commits, or that they do.
    StatusProblem(RepositoryName, WriterName, Option<String>),
    /// What has become of a proposed rollback.
    Proposed(RepositoryName, Box<Proposal>),
    /// What is reported on a repository's open pull requests.
    Previewed(RepositoryName, Vec<Preview>),
    /// Written as it is, in the same transaction.
    Write(Box<Write>),
}

/// A transition being worked out.
#[derive(Debug)]
pub struct Transition<'a> {
    /// What is remembered, as far as it was read.
    pub records: &'a mut Records,
    /// The time.
    pub now: Timestamp,
    limits: TaskLimits,
    slots: BTreeSet<ServiceKey>,
    told: VecDeque<(RunId, Event)>,
    writes: Vec<Write>,
    switched: bool,
    reports: BTreeSet<(RepositoryName, CommitId)>,
    unseen: BTreeSet<RepositoryName>,
}

impl<'a> Transition<'a> {
    /// Nothing was decided yet. `limits` are those of runs that start.
    pub fn new(records: &'a mut Records, now: Timestamp, limits: TaskLimits) -> Self {
        Self {
            records,
            now,
            limits,
            slots: BTreeSet::new(),
            told: VecDeque::new(),
            writes: Vec::new(),
            switched: false,
            reports: BTreeSet::new(),
            unseen: BTreeSet::new(),
        }
    }

    /// Takes an input.
    ///
    /// # Errors
    /// If something must be read first.
    pub fn take(&mut self, input: &Input) -> Result<(), Undecided> {
        match input {
            Input::Tell(run, event) => self.tell(run.clone(), event.clone()),
            Input::Examine(service) => self.examine(service.clone()),
            Input::Forget(config) => gone::forget(self, config)?,
            Input::Gone(config, generation, versions) => {
                gone::forget_versions(self.records, config, *generation, versions, self.now)?;
            }
            Input::GiveWay(config, generation) => apply::give_way_to_what_is_left(self, config, *generation)?,
            Input::Report(repository, commit) => self.report(repository.clone(), commit.clone()),
            Input::StatusProblem(repository, writer, problem) => {
                if let Some(state) = self.records.repositories.get_mut(repository)? {
                    state.set_status_problem(writer, problem.as_ref());
                }
            }
            Input::Proposed(repository, proposal) => {
                if let Some(state) = self.records.repositories.get_mut(repository)? {
                    propose::become_of(&mut state.proposals, proposal);
                }
            }
            Input::Previewed(repository, previews) => {
                if let Some(state) = self.records.repositories.get_mut(repository)? {
                    state.previews.clone_from(previews);
                }
            }
            Input::Write(write) => self.write((**write).clone()),
        }
        Ok(())
    }

    /// A run will receive an event.
    pub fn tell(&mut self, run: RunId, event: Event) {
        self.told.push_back((run, event));
    }

    /// Whether a run will hear that another one takes its place.
    pub fn gives_way(&self, run: &RunId) -> bool {
        let is_superseded = |event: &Event| matches!(event, Event::Cancel { outcome: Outcome::SUPERSEDED, .. });
        self.told.iter().any(|(told, event)| told == run && is_superseded(event))
    }

    /// A revision has news for whoever reads its statuses.
    pub fn report(&mut self, repository: RepositoryName, commit: CommitId) {
        self.reports.insert((repository, commit));
    }

    /// A repository is taken down or brought up: its services follow.
    pub fn switch(&mut self) {
        self.switched = true;
    }

    /// The head of a repository will be planned again, although it is the same: what it is planned on beside its files has
    /// changed.
    ///
    /// # Errors
    /// If something must be read first.
    pub fn plan_again(&mut self, repository: &RepositoryName) -> Result<(), Undecided> {
        if let Some(state) = self.records.repositories.get_mut(repository)? {
            state.plan_again();
            self.unseen.insert(repository.clone());
        }
        Ok(())
    }

    /// A slot will be examined.
    pub fn examine(&mut self, service: ServiceKey) {
        self.slots.insert(service);
    }

    /// Written as it is, with what else is decided.
    pub fn write(&mut self, write: Write) {
        self.writes.push(write);
    }

    /// An action enters the outbox.
    pub fn ask(&mut self, run: &RunId, action: Action) {
        let write = asked(run, action, self.now);
        self.write(write);
    }

    /// The part of a plan that is about a service, also of one that is stored only with this transition.
    ///
    /// # Errors
    /// If something must be read first.
    pub fn plan_of(&self, id: &PlanId, service: &ServiceName) -> Result<Option<Plan>, Undecided> {
        match self.new_plan().filter(|plan| &plan.id == id) {
            Some(plan) => Ok(Some(plan.about(service))),
            None => Ok(self.records.plan(Lookup::PlanOf(id.clone(), service.clone()))?.cloned()),
        }
    }

    /// The newest plan that names a service, as far as it is about it.
    ///
    /// # Errors
    /// If something must be read first.
    pub fn newest_plan_of(&self, service: &ServiceKey) -> Result<Option<Plan>, Undecided> {
        let names = |plan: &&Plan| {
            plan.project == service.project && plan.stages.iter().any(|it| it.service(&service.service).is_some())
        };
        match self.new_plan().filter(names) {
            Some(plan) => Ok(Some(plan.about(&service.service))),
            None => {
                let newest = Lookup::NewestPlanOf(service.project.clone(), service.service.clone());
                Ok(self.records.plan(newest)?.cloned())
            }
        }
    }

    fn new_plan(&self) -> Option<&Plan> {
        self.writes.iter().find_map(|write| match write {
            Write::Plan(plan) => Some(&**plan),
            Write::Revision(revision) => revision.plan(),
            _ => None,
        })
    }

    /// A queued run enters its slot, and is paused where what it belongs to is. One that a person wants may come while a head is
    /// being planned, which must not overlook it; and what waited in vain for its service does so no longer.
    ///
    /// # Errors
    /// If something must be read first.
    pub fn start(&mut self, run: SequenceRun) -> Result<(), Undecided> {
        if run.by.is_some()
            && let Some(repository) = self.records.repositories.get_mut(&run.repository)?
        {
            repository.generation += 1;
            promotion::report_waiting(self, &run.service)?;
        }
        let cause = match &run.forced {
            Some(forced) => format!("{}, forced by {forced}", run.cause),
            None => run.cause.clone(),
        };
        let event = Box::new(Event::Queued { cause });
        self.writes.push(Write::Event { run: run.id.clone(), at: self.now, event });
        let slot = self.records.slots.get(&run.service)?.cloned();
        let mut slot = slot.unwrap_or_else(|| SlotState::free(run.service.clone()));
        slot.waiting.push(run.id.clone());
        slot.refused = slot.refused.filter(|_| run.delivery.is_none());
        self.records.slots.put(&run.service, Some(slot))?;
        let paused = holds::pausing(self.records, &run)?;
        self.put_run(Run::Sequence(Box::new(SequenceRun { limits: self.limits, paused, ..run })))
    }

    /// What has become of a run, or a new one.
    ///
    /// # Errors
    /// If something must be read first.
    pub fn put_run(&mut self, run: Run) -> Result<(), Undecided> {
        if let Run::Sequence(sequence) = &run {
            self.slots.insert(sequence.service.clone());
        }
        let id = run.id().clone();
        self.records.runs.get(&id)?;
        self.records.runs.put(&id, Some(run))
    }

    /// Tells facts, and what they lead to, until nobody has anything to say. Where many slots are to be examined, that is
    /// left for later.
    ///
    /// # Errors
    /// If something must be read first.
    pub fn propagate(mut self) -> Result<WorkedOut, Undecided> {
        let many = self.slots.len() > SLOTS_AT_ONCE;
        let left = if many { std::mem::take(&mut self.slots) } else { BTreeSet::new() };
        let mut needs = Needs::default();
        loop {
            while let Some((run, event)) = self.told.pop_front() {
                needs.of(self.step(&run, &event))?;
            }
            let Some(service) = self.slots.pop_first() else { break };
            needs.of(self.decide_slot(&service))?;
        }
        needs.of(apply::update_kept(self.records))?;
        needs.none()?;
        let Self { writes, switched, reports, unseen, .. } = self;
        Ok(WorkedOut { writes, left, switched, reports, unseen })
    }

    fn step(&mut self, id: &RunId, event: &Event) -> Result<(), Undecided> {
        let Some(mut run) = self.records.runs.get(id)?.cloned() else { return Ok(()) };
        if let (Run::Sequence(sequence), Event::Admitted) = (&mut run, event)
            && !sequence.deployed()
        {
            self.decide_changes_again(sequence)?;
        }
        if let Some(run) = deployment(&run)
            && let Some(postponed) = turn::postponed(self.records, run, event)?
        {
            return self.step(id, &postponed);
        }
        let (mut next, mut decided) = engine::step(&run, event, self.now);
        if next == run && decided == Decided::default() {
            return Ok(());
        }
        if let Some(sequence) = about_to_deploy(&mut run, &decided) {
            let takes_over = promotion::takes_over(self, sequence)?;
            if takes_over {
                self.decide_changes_again(sequence)?;
            }
            if let Some(newer) = self.overtaken(sequence, &next)? {
                self.step(id, &newer)?;
                return self.step(id, event);
            }
            if takes_over {
                (next, decided) = engine::step(&run, event, self.now);
            }
        }
        self.writes.push(Write::Event { run: id.clone(), at: self.now, event: Box::new(event.clone()) });
        let ended = deployment(&next).filter(|next| next.ended_at.is_some()).cloned();
        let left =
            next.sequence().filter(|next| next.ended_at.is_some()).map(|next| next.destination.namespace.clone());
        let tasks = promotion::ended_tasks(&run, &next);
        self.put_run(next)?;
        promotion::tasks_ended(self, id, &tasks)?;
        self.apply(id, decided)?;
        if let Some(ended) = ended {
            if ended.led_by.is_none() {
                propose::after(self, &ended)?;
            }
            if let Some((waiting, decided)) = turn::next(self.records, &ended)? {
                self.apply(&waiting, decided)?;
            }
        }
        left.map_or(Ok(()), |namespace| names::left(self, &namespace))
    }

    /// What its slot, or that of another service that its configs have moved to, tells a run that would deploy now: what
    /// takes its place does so before it has changed anything, not right after. Deleting what the next one brings back would
    /// be an outage.
    fn overtaken(&self, run: &SequenceRun, next: &Run) -> Result<Option<Event>, Undecided> {
        if let Some(event) = self.overtaken_in_slot(run, next)? {
            return Ok(Some(event));
        }
        Ok(promotion::overtaken_elsewhere(self, run)?.map(|newer| slot::superseded_by(&newer)))
    }

    fn overtaken_in_slot(&self, run: &SequenceRun, next: &Run) -> Result<Option<Event>, Undecided> {
        let (SequenceState::Running { .. }, Run::Sequence(next)) = (run.state, next) else {
            return Ok(None); // what is admitted now has been compared with what waits
        };
        let Some(slot) = self.records.slots.get(&run.service)? else { return Ok(None) };
        let waiting = self.sequences(slot.waiting.iter())?;
        let runs: Vec<&SequenceRun> = waiting.iter().chain([&**next]).collect();
        let told = slot::decide(&runs, &self.holds(&run.service)?);
        Ok(told.into_iter().find(|(told, _)| told == &run.id).map(|(_, event)| event))
    }

    /// What a run brings, on what is applied now.
    fn decide_changes_again(&self, run: &mut SequenceRun) -> Result<(), Undecided> {
        let mut needs = Needs::default();
        for change in run.delivery.iter_mut().flat_map(|delivery| &mut delivery.changes) {
            if let Some(again) = needs.of(apply::decide_again(self.records, &run.service, change))? {
                *change = again;
            }
        }
        needs.none()
    }

    fn sequences<'b>(&self, ids: impl Iterator<Item = &'b RunId>) -> Result<Vec<SequenceRun>, Undecided> {
        let (mut found, mut needs) = (Vec::new(), Needs::default());
        for id in ids {
            if let Some(Some(Run::Sequence(run))) = needs.of(self.records.runs.get(id))? {
                found.push((**run).clone());
            }
        }
        needs.none()?;
        Ok(found)
    }

    /// Whose turn it is in a slot.
    fn decide_slot(&mut self, service: &ServiceKey) -> Result<(), Undecided> {
        let Some(slot) = self.records.slots.get(service)?.cloned() else { return Ok(()) };
        let seats = self.sequences(slot.open())?;
        let seated = slot::seated(&slot, &seats);
        if seated != slot {
            self.records.slots.put(service, Some(seated))?;
        }
        let runs: Vec<&SequenceRun> = seats.iter().filter(|run| run.ended_at.is_none()).collect();
        let told = match self.down_by(&runs)? {
            Some(by) => slot::clear(&runs, &by),
            None => slot::decide(&runs, &self.holds(service)?),
        };
        self.told.extend(told);
        Ok(())
    }

    fn holds(&self, service: &ServiceKey) -> Result<Vec<Hold>, Undecided> {
        let holds = self.records.holds.get(&service.project)?;
        Ok(holds.map(|holds| holds.holds.clone()).unwrap_or_default())
    }

    /// Who took the repository down whose runs these are, if somebody did.
    fn down_by(&self, runs: &[&SequenceRun]) -> Result<Option<String>, Undecided> {
        let Some(run) = runs.first() else { return Ok(None) };
        let state = self.records.repositories.get(&run.repository)?;
        Ok(state.filter(|state| state.down).map(|state| state.down_by.clone()))
    }

    /// Applies what a run decided.
    ///
    /// # Errors
    /// If something must be read first.
    pub fn apply(&mut self, by: &RunId, decided: Decided) -> Result<(), Undecided> {
        let mut needs = Needs::default();
        for effect in decided.effects {
            needs.of(self.take_effect(effect))?;
        }
        needs.none()?;
        for action in decided.actions {
            self.ask(by, action);
        }
        Ok(())
    }

    fn take_effect(&mut self, effect: Effect) -> Result<(), Undecided> {
        match effect {
            Effect::Tell { run, event } => self.tell(run, event),
            Effect::Apply { by, change } => apply::change(self, &by, &change)?,
            Effect::StartDeployment { by, change } => apply::start_deployment(self, &by, &change)?,
            Effect::GoBack { by, task } => rollback::decide_task(self, &by, task)?,
            Effect::RollBack { by, config, to } => rollback::carry_out(self, &by, &config, to)?,
            Effect::Restore { config, after } => restored::bring_back(self, &config, after)?,
            Effect::Own { config, by } => apply::own(self, &config, &by)?,
            Effect::Want { config, by, generation, targets, fallback, pace, stays } => {
                let wanted = Wanted { generation, targets, pace, stays, ..Wanted::default() };
                apply::want(self, &config, by, fallback, wanted)?;
            }
            Effect::TagImages { by, pod, tags } => tag::tag_images(self, &by, pod, &tags)?,
            Effect::Judge { by, task, at, readings } => evaluation::of_run(self, &by, (task, at), readings)?,
            Effect::Remove { config } => apply::remove_config(self.records, &config)?,
            Effect::DeploymentEnded { config, by, version, outcome } => {
                apply::attempt_ended(self, &config, &by, version, outcome)?;
            }
            Effect::Passed { service, content, commit, procedure } => {
                let key = PassedKey { service, content };
                self.records.passed.get(&key)?;
                self.records
                    .passed
                    .put(&key, Some(PassedState { key: key.clone(), commit, at: self.now, procedure }))?;
            }
            Effect::NotPassed { service, content } => {
                let key = PassedKey { service, content };
                if self.records.passed.get(&key)?.is_some() {
                    self.records.passed.put(&key, None)?;
                }
            }
            Effect::Finished { run, outcome } => promotion::promote(self, &run, outcome)?,
        }
        Ok(())
    }
}

fn deployment(run: &Run) -> Option<&DeploymentRun> {
    match run {
        Run::Deployment(run) => Some(run),
        Run::Sequence(_) => None,
    }
}

/// A run that is about to change something now.
fn about_to_deploy<'a>(run: &'a mut Run, decided: &Decided) -> Option<&'a mut SequenceRun> {
    let deploys = |effect: &Effect| matches!(effect, Effect::Apply { .. } | Effect::StartDeployment { .. });
    match run {
        Run::Sequence(run) if !matches!(run.state, SequenceState::Ending { .. } | SequenceState::Ended) => {
            decided.effects.iter().any(deploys).then_some(&mut **run)
        }
        Run::Sequence(_) | Run::Deployment(_) => None,
    }
}

/// An action as it enters the outbox.
fn asked(run: &RunId, action: Action, at: Timestamp) -> Write {
    let run = run.clone();
    match action {
        Action::ClearTimer { .. } => Write::Withdraw { run, key: action.key() },
        Action::SetTimer { due, .. } => Write::Ask { run, action: Box::new(action), due, at },
        _ => Write::Ask { run, action: Box::new(action), due: at, at },
    }
}

#[cfg(test)]
mod tests;
