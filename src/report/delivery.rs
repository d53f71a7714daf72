//! What is known of the delivery of a revision's services, by stage.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::ids::{RunId, ServiceName, StageName};
use crate::model::object::Kind;
use crate::model::outcome::Outcome;
use crate::model::plan::{Change, PassedContent, Plan, ServicePlan, StageStart};
use crate::model::run::{DeploymentRun, Run, SequenceRun};
use crate::model::shipyard::DEPLOYMENT_TASK;
use crate::plan::order;

/// Whether what a person deployed by hand has put nothing right of a delivery that failed after its deployment, as with a
/// test.
fn leaves_failed(newest: &SequenceRun, planned: &SequenceRun) -> bool {
    let is_by_hand = newest.planned_content().is_none();
    let has_failed = planned.outcome.is_some_and(|outcome| !outcome.passes() && outcome != Outcome::SUPERSEDED);
    is_by_hand && newest.outcome.is_some_and(Outcome::passes) && has_failed && planned.deployed()
}

/// Whether people have deployed since what a delivery was to bring, and nothing else of it failed or was not reached.
fn is_put_right(planned: &SequenceRun, by_hand: &[&SequenceRun]) -> bool {
    let passed = |outcome: Option<Outcome>| outcome.is_some_and(Outcome::passes);
    let tasks = planned.procedure.sequence.tasks.iter().enumerate();
    let mut others = tasks.filter(|(_, task)| task.name != DEPLOYMENT_TASK);
    let nothing_else = others.all(|(index, _)| passed(planned.tasks.get(index).and_then(|task| task.outcome)));
    let was_deployed = |name: &str| {
        let mut deployments = planned.tasks.iter().flat_map(|task| &task.deployments);
        deployments.any(|deployment| deployment.config == name && passed(deployment.outcome))
    };
    let is_there = |change: &Change| {
        let name = &change.key.name;
        let since = by_hand.iter().filter(|run| run.id > planned.id && passed(run.outcome));
        was_deployed(name) || since.into_iter().any(|run| run.brings(name))
    };
    let brings = |change: &&Change| change.key.kind == Kind::DeploymentConfig && change.decision.does_something();
    nothing_else && planned.changes().iter().filter(brings).all(is_there)
}

/// A service in a stage.
type Place<'a> = (&'a StageName, &'a ServiceName);

/// A revision's plan and the runs on it, by what they are.
pub(super) struct Delivery<'a> {
    pub(super) plan: &'a Plan,
    /// How often it was made before.
    again: u32,
    /// For each service the run that counts, which is the newest, and how many there were.
    sequences: BTreeMap<Place<'a>, (&'a SequenceRun, u32)>,
    /// Of these the newest that brings what the revision declares: what a person deployed by hand passes nothing.
    planned: BTreeMap<Place<'a>, &'a SequenceRun>,
    /// Of those that lacked nothing but their deployment: the run by which a person has deployed it since. The stage passes
    /// nothing by that.
    put_right: BTreeMap<Place<'a>, &'a SequenceRun>,
    deployments: BTreeMap<&'a RunId, &'a DeploymentRun>,
    /// How many deployment configs each service declares, as its runs know: a plan that is made again may not speak of it.
    configs: BTreeMap<Place<'a>, u32>,
    /// Of the sequences that deliver nothing the newest run, by name.
    others: BTreeMap<(Place<'a>, &'a str), &'a SequenceRun>,
    /// The stages in which earlier revisions have nothing under way any more, with whether what is waited for passed there.
    pub(super) left: &'a BTreeMap<StageName, bool>,
}

impl<'a> Delivery<'a> {
    pub(super) fn of(
        plan: &'a Plan,
        again: u32,
        runs: impl IntoIterator<Item = &'a Run>,
        left: &'a BTreeMap<StageName, bool>,
    ) -> Self {
        let (sequences, planned, put_right, deployments, configs, others) = Default::default();
        let mut found = Self { plan, again, sequences, planned, put_right, deployments, configs, others, left };
        let mut by_hand: BTreeMap<Place<'a>, Vec<&SequenceRun>> = BTreeMap::new();
        for run in runs {
            match run {
                Run::Sequence(run) if run.delivery.is_none() => {
                    let place = (&run.service.stage, &run.service.service);
                    let newest = found.others.entry((place, run.sequence())).or_insert(run);
                    *newest = newer(newest, run);
                }
                Run::Sequence(run) => {
                    let place = (&run.service.stage, &run.service.service);
                    let (newest, count) = found.sequences.entry(place).or_insert((run, 0));
                    *count += 1;
                    *newest = newer(newest, run);
                    if let Some(configs) = run.delivery.as_ref().and_then(|delivery| delivery.configs) {
                        found.configs.insert(place, configs);
                    }
                    if run.planned_content().is_some() {
                        let newest = found.planned.entry(place).or_insert(run);
                        *newest = newer(newest, run);
                    } else {
                        by_hand.entry(place).or_default().push(run);
                    }
                }
                Run::Deployment(run) => {
                    found.deployments.insert(&run.id, run);
                }
            }
        }
        for (place, (newest, _)) in &mut found.sequences {
            if let Some(planned) = found.planned.get(place).filter(|planned| leaves_failed(newest, planned)) {
                if is_put_right(planned, by_hand.get(place).map_or(&[], Vec::as_slice)) {
                    found.put_right.insert(*place, newest);
                }
                *newest = planned;
            }
        }
        found
    }

    /// The run that counts for a service.
    pub(super) fn newest(&self, stage: &StageName, service: &ServiceName) -> Option<&'a SequenceRun> {
        self.sequences.get(&(stage, service)).map(|(run, _)| *run)
    }

    /// The run that says how a service is doing.
    pub(super) fn told(&self, stage: &StageName, service: &ServiceName) -> Option<&'a SequenceRun> {
        self.put_right.get(&(stage, service)).copied().or_else(|| self.newest(stage, service))
    }

    /// The runs that count of sequences that deliver nothing, by the name of the sequence.
    pub(super) fn others<'b>(
        &'b self,
        stage: &'b StageName,
        service: &'b ServiceName,
    ) -> impl Iterator<Item = &'a SequenceRun> + use<'a, 'b> {
        let others: &BTreeMap<(Place<'b>, &'b str), &'a SequenceRun> = &self.others;
        let here = others.range(((stage, service), "")..).take_while(move |((place, _), _)| *place == (stage, service));
        here.map(|(_, run)| *run)
    }

    /// The run of a deployment that a task waits for.
    pub(super) fn deployment(&self, run: Option<&RunId>) -> Option<&'a DeploymentRun> {
        self.deployments.get(run?).copied()
    }

    /// A service's part of the plan for a stage.
    pub(super) fn part(&self, stage: &StageName, service: &ServiceName) -> Option<&'a ServicePlan> {
        self.plan.stage(stage)?.service(service)
    }

    /// How many deployment configs a service declares, if anybody knows.
    pub(super) fn configs(&self, stage: &StageName, service: &ServiceName) -> Option<u32> {
        let planned = self.part(stage, service).map(|part| part.configs);
        planned.or_else(|| self.configs.get(&(stage, service)).copied())
    }

    /// Whether anything goes on that may still bring it to a stage: a delivery, or another sequence on whose end this stage
    /// starts, or one before it. A remediation that nothing starts on brings nothing anywhere.
    pub(super) fn goes_on_to(&self, stage: &StageName) -> bool {
        let stages = self.up_to(stage);
        let deliveries = self.sequences.values().map(|(run, _)| *run);
        deliveries.chain(self.starting(&stages)).any(|run| run.ended_at.is_none())
    }

    /// The runs that count of sequences that deliver nothing, and on whose end one of these stages starts.
    fn starting<'b>(&'b self, stages: &'b [&StageName]) -> impl Iterator<Item = &'a SequenceRun> + use<'a, 'b> {
        let starts: Vec<&StageStart> = stages.iter().filter_map(|stage| Some(&self.plan.stage(stage)?.start)).collect();
        let is_waited_for = move |run: &&SequenceRun| {
            starts.iter().any(|start| order::starts_on(start, &run.service.stage, run.sequence()))
        };
        self.others.values().copied().filter(is_waited_for)
    }

    /// The stages in which anything ran.
    pub(super) fn stages(&self) -> BTreeSet<&'a StageName> {
        self.sequences.keys().chain(self.others.keys().map(|(place, _)| place)).map(|(stage, _)| *stage).collect()
    }

    /// The stages before one in which a service is delivered first, nearest first.
    pub(super) fn before(&self, stage: &StageName, service: &ServiceName) -> Vec<&'a StageName> {
        let mut found: Vec<&StageName> = Vec::new();
        let mut next = self.part(stage, service);
        while let Some(previous) = next.and_then(|part| part.previous_stage.as_ref()) {
            if found.contains(&&previous.stage) {
                break; // a circle
            }
            found.push(&previous.stage);
            next = self.part(&previous.stage, service);
        }
        found
    }

    /// What a service that has not started in a stage waits for, if nothing on this revision is going to bring it: it was
    /// delivered by an earlier one, which may have ended without passing.
    pub(super) fn awaited(&self, stage: &StageName, service: &ServiceName) -> Option<&'a PassedContent> {
        let mut waits = self.part(stage, service).filter(|part| part.goes_on())?;
        if self.had_its_turn(stage, service) {
            return None;
        }
        for before in self.before(stage, service) {
            match self.newest(before, service) {
                // What a person deployed by hand passes nothing.
                Some(run) if run.ended_at.is_some() && run.planned_content().is_none() => {
                    return waits.previous_stage.as_ref();
                }
                Some(_) => return None,
                None => {}
            }
            match self.part(before, service).filter(|part| part.goes_on()) {
                Some(part) if !part.previous_stage.as_ref().is_some_and(|it| self.has_let_pass(it)) => waits = part,
                _ => return waits.previous_stage.as_ref(),
            }
        }
        None
    }

    /// Whether a service had its turn in a stage, in which something was to be done.
    pub(super) fn is_passed_over(&self, stage: &StageName, service: &ServiceName) -> bool {
        self.part(stage, service).is_some_and(ServicePlan::goes_on) && self.had_its_turn(stage, service)
    }

    /// Whether an earlier revision has brought to a stage what is waited for, and it passed.
    pub(super) fn has_let_pass(&self, awaited: &PassedContent) -> bool {
        self.left.get(&awaited.stage) == Some(&true)
    }

    /// Whether the stage before has passed what the revision declares, and that would have started this one, also under a
    /// hold, if anything had been left to be done.
    pub(super) fn had_its_turn(&self, stage: &StageName, service: &ServiceName) -> bool {
        let Some(PassedContent { stage: before, .. }) =
            self.part(stage, service).and_then(|part| part.previous_stage.as_ref())
        else {
            return false;
        };
        let Some(run) = self.planned.get(&(before, service)) else { return false };
        let Some(outcome) = run.outcome.filter(|outcome| outcome.passes()) else { return false };
        let next = order::next(self.plan, run, outcome);
        next.iter().any(|(next, _)| &next.stage == stage)
    }

    /// How often a service's delivery to a stage was attempted, here and in the stages before it, and how often other
    /// sequences ran, here and wherever these stages wait for their end: what has not started waits anew while one of them
    /// runs, and of what is declared nowhere, or was not yet, they say what is said of it. It only grows, also if the
    /// plan is made again: what an attempt in an earlier stage changes may change what is said here. Of a stage that the plan has
    /// no more, nobody knows which came before it.
    pub(super) fn attempt(&self, stage: &StageName, service: &ServiceName) -> u32 {
        if self.plan.stage(stage).is_none() {
            let runs = self.sequences.iter().filter(|((_, of), _)| *of == service).map(|(_, runs)| attempts(runs));
            let others = self.others.iter().filter(|(((_, of), _), _)| *of == service).map(|(_, run)| run.attempt);
            return self.again + runs.chain(others).sum::<u32>();
        }
        let stages = self.up_to(stage);
        let runs = stages.iter().filter_map(|stage| self.sequences.get(&(*stage, service)));
        let here = self.others(stage, service);
        let elsewhere =
            self.starting(&stages).filter(|run| run.service.service == *service && run.service.stage != *stage);
        let others = here.chain(elsewhere).map(|run| run.attempt);
        self.again + runs.map(attempts).sum::<u32>() + others.sum::<u32>()
    }

    /// A stage and those that come before it.
    fn up_to<'b>(&'b self, stage: &'b StageName) -> Vec<&'b StageName> {
        let mut stages = vec![stage];
        let mut next = self.plan.stage(stage);
        while let Some(before) = next.and_then(|stage| order::predecessor(&stage.start)) {
            next = self.plan.stage(&before).filter(|found| !stages.contains(&&found.stage));
            stages.extend(next.map(|found| &found.stage));
        }
        stages
    }
}

/// Of two runs the newer: ids grow.
fn newer<'a>(one: &'a SequenceRun, other: &'a SequenceRun) -> &'a SequenceRun {
    if one.id < other.id { other } else { one }
}

/// The newest of some runs knows of attempts that are no longer remembered.
fn attempts((newest, count): &(&SequenceRun, u32)) -> u32 {
    newest.attempt.max(*count)
}
