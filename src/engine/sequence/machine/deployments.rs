//! The deployment task and the rollback task: what they change, and when that is done.

use itertools::Itertools as _;

use super::Step;
use crate::engine::lifecycle::policy;
use crate::model::action::Effect;
use crate::model::event::{Event, Timer};
use crate::model::ids::RunId;
use crate::model::object::Kind;
use crate::model::outcome::{Outcome, Status};
use crate::model::plan::{Change, Decision};
use crate::model::run::{DeploymentRef, DoneBy};

impl Step {
    /// Everything that needs no deployment is applied at once; each deployment is a run of its own.
    pub(super) fn deploy(&mut self, index: usize) {
        let by = self.run.id.clone();
        let mut deployments = Vec::new();
        for change in in_order(self.run.changes()) {
            let change_box = Box::new(change.clone());
            if change.starts_deployment() {
                let config = change.key.name.clone();
                deployments.push(DeploymentRef::asked(config));
                self.decided.effects.push(Effect::StartDeployment { by: by.clone(), change: change_box });
            } else {
                self.decided.effects.push(Effect::Apply { by: by.clone(), change: change_box });
            }
        }
        let none = deployments.is_empty();
        self.run.tasks[index].deployments = deployments;
        if none {
            self.serves(index);
        }
    }

    /// What goes back is decided on what serves now.
    pub(super) fn go_back(&mut self, index: usize) {
        self.decided.effects.push(Effect::GoBack { by: self.run.id.clone(), task: index });
    }

    /// It was decided, once: each deployment config that goes back does so by a run of its own.
    pub(super) fn goes_back(&mut self, index: usize, decided: &Event) {
        let awaits = self.run.done_by(index) == DoneBy::Rollback && self.run.is_at(index);
        if !awaits || !self.run.tasks[index].deployments.is_empty() {
            return;
        }
        match decided {
            Event::CannotGoBack { task, message } if *task == index => {
                self.finish(index, Outcome::FAIL, message.clone());
            }
            Event::GoesBack { task, to, left } if *task == index && to.is_empty() => {
                self.finish(index, Outcome::PASS, format!("nothing goes back: {left}"));
            }
            Event::GoesBack { task, to, left } if *task == index => {
                let by = self.run.id.clone();
                self.run.tasks[index].message.clone_from(left);
                self.run.tasks[index].deployments = to.keys().cloned().map(DeploymentRef::asked).collect();
                let back = to.iter().map(|(config, to)| (by.clone(), config.clone(), *to));
                self.decided.effects.extend(back.map(|(by, config, to)| Effect::RollBack { by, config, to }));
            }
            _ => {}
        }
    }

    /// Nothing is deployed any more. What was applied without a deployment is done once its `Service` objects listen.
    fn serves(&mut self, index: usize) {
        match self.run.awaits_services() {
            true => self.set_timer(Timer::Start, self.run.limits.start),
            false => self.deployed(index),
        }
    }

    /// How the `Service` objects are that it may wait for.
    pub(super) fn services_checked(&mut self, index: usize, problem: &str) {
        if !self.run.awaits_services() {
            return;
        }
        if !problem.is_empty() {
            problem.clone_into(&mut self.run.tasks[index].message);
            return;
        }
        self.clear_timer(Timer::Start);
        self.deployed(index);
    }

    /// Nobody reaches in time what was applied.
    pub(super) fn not_listening(&mut self, index: usize) {
        if !self.run.awaits_services() {
            return;
        }
        let limit = policy::format_duration(self.run.limits.start);
        let message = match self.run.tasks[index].message.as_str() {
            "" => format!("nobody knows after {limit} whether it listens"),
            known => format!("does not listen after {limit}: {known}"),
        };
        self.finish(index, Outcome::FAIL, message);
    }

    /// Everything that could be deployed serves. The task has succeeded only if that is all: what failed before, waits,
    /// or must be deployed by hand keeps the service from being what the revision declares.
    fn deployed(&mut self, index: usize) {
        let message = match &self.run.tasks[index].deployments[..] {
            [] => undeployed(self.run.changes()),
            ended => told(ended),
        };
        let lacking = |change: &&Change| match change.decision {
            Decision::Wait => true,
            Decision::None => !change.cause.is_empty(),
            _ => change.is_not_deployed(),
        };
        let Some(change) = self.run.changes().iter().find(lacking) else {
            return self.finish(index, Outcome::PASS, message);
        };
        let has_failed = change.decision == Decision::None && !change.is_not_deployed();
        let outcome = if has_failed { Outcome::FAIL } else { Outcome::ABORTED };
        let message = format!("{}: {}", change.key.name, change.cause);
        self.finish(index, outcome, message);
    }

    pub(super) fn deployment_started(&mut self, index: usize, config: &str, deployment: &RunId) {
        let refs = &mut self.run.tasks[index].deployments;
        if let Some(started) = refs.iter_mut().find(|started| started.config == config) {
            started.run = Some(deployment.clone());
        }
    }

    pub(super) fn deployment_ended(
        &mut self,
        index: usize,
        deployment: &RunId,
        (outcome, served_already): (Outcome, bool),
        message: &str,
    ) {
        let refs = &mut self.run.tasks[index].deployments;
        let ended = refs.iter_mut().find(|ended| ended.run.as_ref() == Some(deployment) && ended.outcome.is_none());
        let Some(ended) = ended else { return };
        ended.outcome = Some(outcome);
        ended.message = message.to_owned();
        ended.served_already = served_already;
        if refs.iter().all(|ended| ended.outcome.is_some()) {
            let outcome = worst(refs.iter().filter_map(|ended| ended.outcome));
            let message = told(refs);
            match (outcome.passes(), self.run.done_by(index)) {
                (true, DoneBy::Rollback) => {
                    let left = Some(self.run.tasks[index].message.clone()).filter(|left| !left.is_empty());
                    let told = [Some(format!("rolled back: {message}")), left].into_iter().flatten();
                    self.finish(index, outcome, told.collect::<Vec<_>>().join("; "));
                }
                (true, _) => self.serves(index),
                (false, _) => self.finish(index, outcome, message),
            }
        }
    }
}

/// What is declared of replication controllers is on record before they are deployed; what is declared no longer goes last, because
/// whether something still needs it depends on what is deployed now.
fn in_order(changes: &[Change]) -> Vec<&Change> {
    let is_config = |change: &Change| change.key.kind == Kind::DeploymentConfig;
    let mut all: Vec<&Change> = changes.iter().collect();
    all.sort_by_key(|change| match change.decision {
        _ if is_config(change) && change.is_led() => 0,
        Decision::Delete if !is_config(change) => 2,
        _ => 1,
    });
    all
}

/// The outcome that counts for a whole: the first that does not pass, errors before the rest.
pub(super) fn worst(outcomes: impl Iterator<Item = Outcome>) -> Outcome {
    let weight = |outcome: &Outcome| match outcome.status {
        Status::Succeeded if outcome.passes() => 0,
        Status::Superseded => 1,
        Status::Aborted => 2,
        Status::Succeeded => 3,
        Status::Errored | Status::TimedOut | Status::Unknown => 4,
    };
    outcomes.max_by_key(weight).unwrap_or(Outcome::PASS)
}

/// What is said of deployments.
fn told(deployments: &[DeploymentRef]) -> String {
    let told = deployments.iter().map(|ended| format!("{} {}", ended.config, ended.message));
    told.collect::<Vec<_>>().join("; ")
}

/// What is said of changes of which none is a deployment.
fn undeployed(changes: &[Change]) -> String {
    let all = |decision: Decision| changes.iter().all(|change| change.decision == decision);
    let runs_something = |change: &Change| change.key.kind == Kind::DeploymentConfig;
    match (all(Decision::None), all(Decision::Delete)) {
        (true, _) => "nothing differs".to_owned(),
        (_, true) if changes.iter().any(runs_something) => "removed".to_owned(),
        (_, true) => {
            let told = changes.iter().map(|change| match change.needed_by.iter().join(", ").as_str() {
                "" => format!("{} removed", change.key),
                users => format!("{} stays until nothing of {users} runs with it", change.key),
            });
            told.collect::<Vec<_>>().join(", ")
        }
        _ => "applied without a deployment".to_owned(),
    }
}
