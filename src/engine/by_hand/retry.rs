//! A failed version is attempted again, with the rest of the sequence that brought it.

use std::fmt;
use std::sync::Arc;

use super::rerun::once_more;
use super::{
    refuse_if_down, refuse_if_let_pass_no_more, refuse_if_queued, refuse_if_waiting, rolled_out, way_out, with_way_out,
};
use crate::engine::deployment::apply::{next_version, retried_as};
use crate::engine::holds;
use crate::engine::records::{Lookup, Records, Undecided};
use crate::engine::sequence::queue;
use crate::engine::transition::Transition;
use crate::error::Failure;
use crate::manifest::digest;
use crate::model::cause::Cause;
use crate::model::ids::{ConfigKey, ServiceKey};
use crate::model::object::{Kind, Object};
use crate::model::outcome::Outcome;
use crate::model::plan::{Change, Decision};
use crate::model::run::{Delivery, Run, SequenceRun};
use crate::model::state::{Attempt, ConfigState};
use crate::plan::{delivery_procedure, same_procedure};

/// What is attempted again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retried {
    /// The version that has failed.
    pub failed: u32,
    /// Under which number: another one, where what served has come back as a newer version.
    pub version: u32,
}

impl fmt::Display for Retried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { failed, version } if failed == version => write!(f, "#{failed}"),
            Self { failed, version } => write!(f, "#{failed} as #{version}"),
        }
    }
}

/// Attempts the failed latest version again, with the rest of its sequence; says which version.
///
/// # Errors
/// If the latest version did not fail, or what is declared now waits for something.
pub fn retry(transition: &mut Transition<'_>, config: &ConfigKey, by: &str) -> Result<Retried, Undecided> {
    let state = rolled_out(transition.records, config)?;
    refuse_if_down(transition.records, &state)?;
    refuse_if_paused(&state)?;
    let failed = state.attempted.as_ref().filter(|attempt| attempt.outcome.is_some());
    let Some(attempt) = failed else {
        let latest = state.latest_version;
        return Err(Failure::stalled(match (latest, &state.attempted) {
            (0, _) => format!("no rollouts found for `{}`", config.name),
            (_, Some(_)) => format!("rollout #{latest} is in progress; only failed deployments can be retried"),
            (_, None) => format!("rollout #{latest} is complete; only failed deployments can be retried"),
        })
        .hint(retry_hint(transition.records, &state)?)
        .into());
    };
    holds::refuse(transition.records, &state.service_key())?;
    refuse_if_queued(transition.records, &state)?;
    refuse_if_waiting(transition.records, &state)?;
    let failed = attempt.version.number;
    let version = retried_as(&state, failed, next_version(transition.records, config)?);
    let missing = || Failure::stalled(format!("the record of version {failed} is gone"));
    let delivery = last_delivery(transition.records, &state, attempt)?.ok_or_else(missing)?;
    refuse_if_let_pass_no_more(transition.records, &delivery)?;
    let cause = format!("retried by {by}");
    let run = again(transition, &delivery, (&cause, by))?;
    transition.start(run)?;
    Ok(Retried { failed, version })
}

pub(super) fn refuse_if_paused(state: &ConfigState) -> Result<(), Failure> {
    match state.spec().is_ok_and(|spec| spec.paused) {
        true => Err(Failure::stalled(format!("unable to retry paused deployment config `{}`", state.key.name))),
        false => Ok(()),
    }
}

/// What helps where no deployment failed: its sequence may have, after the deployment.
fn retry_hint(records: &Records, state: &ConfigState) -> Result<String, Undecided> {
    let service = state.service_key();
    if let Some(way_out) = way_out(records, &service, &state.object.target())? {
        return Ok(way_out);
    }
    let last = records.slots.get(&service)?.and_then(|slot| slot.last_delivery.clone());
    let last = match last {
        Some(last) => records.runs.get(&last.run)?.and_then(Run::sequence),
        None => None,
    };
    let failed = last.filter(|run| !run.outcome.is_some_and(Outcome::passes));
    Ok(match failed {
        Some(run) => {
            let rerun =
                format!("launchway rerun {} -s {} --sequence {}", service.service, service.stage, run.sequence());
            format!("`{rerun}` goes on from the task that failed")
        }
        None => "`launchway rollout latest` deploys again".to_owned(),
    })
}

/// The newest delivery that is to bring what was attempted, or was: it may bring more of a later revision. Else the run that
/// attempted it. Refused if a newer one brings something else and is under way, which has the last word, or ended before its
/// deployment: that is what was not done.
fn last_delivery(records: &Records, state: &ConfigState, attempt: &Attempt) -> Result<Option<SequenceRun>, Undecided> {
    let service = state.service_key();
    let slot = records.slots.get(&service)?;
    let open = slot.and_then(|slot| slot.holder.as_ref());
    let last = slot.and_then(|slot| slot.last_delivery.as_ref());
    let stopped = last.filter(|delivered| !delivered.deployed).map(|delivered| &delivered.run);
    let last = last.map(|delivered| &delivered.run);
    let brings = |run: &SequenceRun| {
        let object = &attempt.version.object;
        let same = |it: &Arc<Object>| it.key == object.key && it.digest == object.digest;
        run.changes().iter().any(|change| change.object.as_ref().is_some_and(same))
    };
    for id in open.into_iter().chain(last).chain([&attempt.run]) {
        if let Some(Run::Sequence(run)) = records.runs.get(id)? {
            if brings(run) {
                return Ok(Some((**run).clone()));
            }
            if Some(id) == open && run.planned_content().is_some() {
                let refused = Failure::stalled("a newer delivery of its service is under way");
                return Err(with_way_out(refused, records, &service, &state.object.target())?.into());
            }
        }
        if Some(id) == stopped {
            return Err(never_deployed(&service, attempt).into());
        }
    }
    Ok(None)
}

/// Why what failed is not attempted again.
fn never_deployed(service: &ServiceKey, attempt: &Attempt) -> Failure {
    let ServiceKey { stage, service, .. } = service;
    let version = attempt.version.number;
    Failure::stalled(format!("a newer delivery than that of rollout #{version} ended before its deployment"))
        .hint(format!("`launchway trigger delivery {service} -s {stage}` runs that again"))
}

/// A delivery as the newest revision makes it, if that declares the same, only how it is delivered has changed since, and the
/// stage before lets that revision pass.
fn as_declared(records: &Records, delivery: &SequenceRun) -> Result<SequenceRun, Undecided> {
    let ServiceKey { project, stage, service } = delivery.service.clone();
    let newest = records.plan(Lookup::NewestPlanOf(project, service.clone()))?;
    let planned = newest.and_then(|plan| {
        let stage = plan.stage(&stage)?;
        let part = stage.service(&service).filter(|part| Some(&part.content) == delivery.planned_content())?;
        Some((plan, stage, part, delivery_procedure(plan, stage, part)?))
    });
    let Some((plan, stage, part, procedure)) = planned else { return Ok(delivery.clone()) };
    if same_procedure(&procedure, &delivery.procedure) || !queue::is_let_pass(records, &plan.project, part)? {
        return Ok(delivery.clone());
    }
    Ok(SequenceRun {
        plan: Some(plan.id.clone()),
        planned_at: Some(plan.at),
        repository: plan.repository.clone(),
        commit: plan.commit.clone(),
        destination: stage.destination.clone(),
        procedure: digest::stored(procedure),
        context: None,
        ..delivery.clone()
    })
}

/// The same delivery once more, in which every failed version is attempted again, and what else of it is not there is brought, or
/// keeps it from passing as before. Of an older delivery only what failed is: newer ones have had the rest in their hands.
///
/// # Errors
/// If something must be read first.
pub(super) fn again(
    transition: &mut Transition<'_>,
    delivery: &SequenceRun,
    (cause, by): (&str, &str),
) -> Result<SequenceRun, Undecided> {
    let records = &*transition.records;
    let last = records.slots.get(&delivery.service)?.and_then(|slot| slot.last_delivery.as_ref());
    let is_last = last.is_some_and(|last| last.run == delivery.id) || !delivery.deployed();
    let (decided, takes_from) = queue::decide_again(records, &delivery.service, delivery.changes())?;
    let mut changes = Vec::new();
    for (change, decided) in delivery.changes().iter().zip(decided) {
        let again = failed(records, delivery, change, (cause, by))?;
        changes.extend(again.or_else(|| is_last.then_some(decided)));
    }
    let declared = as_declared(records, delivery)?;
    let draft = SequenceRun {
        is_rollback: delivery.is_rollback,
        forced: delivery.forced.clone(),
        delivery: declared.delivery.clone().map(|delivery| Delivery { changes, ..delivery }),
        takes_from,
        ..once_more(&declared, cause.to_owned(), by)
    };
    queue::queued(transition.records, transition.now, draft)
}

/// The next attempt at a version that a delivery brought and that failed.
fn failed(
    records: &Records,
    delivery: &SequenceRun,
    change: &Change,
    (cause, by): (&str, &str),
) -> Result<Option<Change>, Undecided> {
    let Some(object) = change.object.as_ref().filter(|_| change.key.kind == Kind::DeploymentConfig && !change.is_led())
    else {
        return Ok(None);
    };
    let state = records.configs.get(&delivery.service.config(&change.key.name))?;
    let same = |attempt: &&Attempt| attempt.outcome.is_some() && attempt.version.object.digest == object.digest;
    Ok(state.and_then(|state| state.attempted.as_ref()).filter(same).map(|attempt| Change {
        cause: cause.to_owned(),
        causes: vec![Cause::Manual { by: by.to_owned() }],
        object: Some(object.clone()),
        retry: Some(attempt.version.number),
        ..Change::of(change.key.clone(), Decision::Deploy)
    }))
}
