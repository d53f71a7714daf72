//! Starts a rollback of one or several deployment configs: all of them, or none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::engine::by_hand::{ByHand, by_hand, deployment, refuse_if_down, rolled_out};
use crate::engine::deployment::apply::next_version;
use crate::engine::holds;
use crate::engine::records::{Lookup, Needs, Records, Undecided};
use crate::engine::rollback::{give_way, hand_over_to_beside, hold, refuse_if_paused, restore, target};
use crate::engine::transition::Transition;
use crate::error::Failure;
use crate::model::ids::{CommitId, ConfigKey, RunId, ServiceKey};
use crate::model::object::Object;
use crate::model::rollback::{Past, Rollback, RollbackGroup, RollbackParts, RollbackTo};
use crate::model::run::SequenceRun;
use crate::model::state::{ConfigState, spec_of};
use crate::model::time::Timestamp;

/// What a rollback does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// The deployment configs that go back, in the order of their services.
    pub members: Vec<RolledBack>,
    /// Those that stay as they are, and why.
    pub left: Vec<String>,
}

/// A deployment config that goes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolledBack {
    /// It, before.
    pub state: ConfigState,
    /// The version whose content comes back.
    pub to: u32,
    /// Whether that has never served.
    pub never_served: bool,
    /// The version that it becomes.
    pub version: u32,
    /// What that is.
    pub object: Arc<Object>,
    pub(super) parts: RollbackParts,
    pub(super) commit: CommitId,
    pub(super) created_at: Timestamp,
    pub(super) cause: String,
}

/// What becomes of one deployment config.
pub(super) enum Part {
    GoesBack(Box<RolledBack>),
    Stays(String),
}

/// Deploys what deployment configs were before as new versions, and holds their services, so that the next push does not undo
/// it. What is under way gives way at once. Everything is judged before anything starts, and all starts in one transaction.
///
/// # Errors
/// If one of them cannot go back, or all run what they would go back to.
pub fn roll_back(transition: &mut Transition<'_>, asked: &[Rollback], by: &str) -> Result<Started, Undecided> {
    let Started { mut members, left } = judge(asked, |asked| part(transition.records, asked, by))?;
    members.sort_by_key(|member| (member.state.service_key(), member.state.key.clone()));
    let mut parts: BTreeMap<ServiceKey, Vec<&RolledBack>> = BTreeMap::new();
    members.iter().for_each(|member| parts.entry(member.state.service_key()).or_default().push(member));
    let mut runs = Vec::new();
    for (service, part) in &parts {
        runs.push(make(transition, part, by)?);
        let members = part.iter().map(|member| (member.state.key.name.as_str(), member.to));
        hold(transition, service, members, by)?;
    }
    let names: Vec<RunId> = runs.iter().map(|run| run.id.clone()).collect();
    for (mut run, (service, part)) in runs.into_iter().zip(&parts) {
        if members.len() > 1 {
            let before = part.iter().filter_map(|member| member.state.serving.clone()).collect();
            run.group = Some(RollbackGroup { runs: names.clone(), before });
        }
        let reason = format!("superseded by {}", run.cause);
        give_way(transition, service, &reason)?;
        for member in part.iter() {
            hand_over_to_beside(transition, &member.state, member.to, &reason)?;
        }
        transition.start(run)?;
    }
    Ok(Started { members, left })
}

/// What becomes of each, unless one of them cannot go back: then all refusals are told at once.
pub(super) fn judge(
    asked: &[Rollback],
    part: impl Fn(&Rollback) -> Result<Part, Undecided>,
) -> Result<Started, Undecided> {
    let mut started = Started { members: Vec::new(), left: Vec::new() };
    let (mut refused, mut needs) = (Vec::new(), Needs::default());
    let mut named = BTreeSet::new();
    for asked in asked {
        if !named.insert(&asked.config) {
            return Err(Failure::stalled(format!("`{}` is named twice", asked.config.name)).into());
        }
        match needs.of(part(asked)) {
            Ok(Some(Part::GoesBack(member))) => started.members.push(*member),
            Ok(Some(Part::Stays(why))) => started.left.push(why),
            Ok(None) => {}
            Err(Undecided::Refused(failure)) => refused.push((&asked.config.name, failure)),
            Err(needs) => return Err(needs),
        }
    }
    needs.none()?;
    match (refused.len(), asked) {
        (0, []) => Err(Failure::stalled("there is nothing to go back").into()),
        (0, _) if started.members.is_empty() => {
            let hint = "`--to-version N` chooses another version; `launchway history` lists them";
            Err(Failure::stalled(started.left.join("; ")).hint(hint).into())
        }
        (0, _) => Ok(started),
        (_, [_]) => Err(refused.remove(0).1.into()),
        _ => {
            let told = refused.iter().map(|(name, failure)| format!("\n  {name}: {}", failure.one_line()));
            Err(Failure::stalled(format!("nothing goes back, because not all can:{}", told.collect::<String>())).into())
        }
    }
}

fn part(records: &Records, asked: &Rollback, by: &str) -> Result<Part, Undecided> {
    let Rollback { config, to, parts, notes, .. } = asked;
    let state = rolled_out(records, config)?;
    refuse_if_down(records, &state)?;
    refuse_if_paused(records, &state)?;
    holds::refuse_by_a_persons(records, &state.service_key())?;
    if parts.is_nothing() {
        let nothing = Failure::stalled(format!("nothing of `{}` is to come back", config.name));
        return Err(nothing.hint("ask for its configuration, its application, or both").into());
    }
    let history = records.history(config)?;
    let planned = planned(records, &state, history, to)?;
    let number = match target::choose(history, &state, to, &planned) {
        Err(absent) if asked.may_be_absent => return Ok(Part::Stays(absent.to_string())),
        number => number?,
    };
    let gone = || Failure::stalled(format!("version {number} of `{}` is not in the history any more", config.name));
    let earlier = deployment(records, config, number)?.ok_or_else(gone)?;
    let object = restore::restore(&state.object, &earlier.object, *parts);
    if let Some(what) = spec_of(&object).ok().and_then(|spec| spec.not_carried_out()) {
        return Err(Failure::stalled(format!("cannot deploy that of `{}`: {what}", config.name)).into());
    }
    let serves = state.serving.as_ref().filter(|serving| serving.object.digest == object.digest);
    if let Some(serving) = serves.filter(|_| state.open_attempt().is_none()) {
        return Ok(Part::Stays(runs_already(&state, serving.number, number)));
    }
    let noted = if notes.is_empty() { String::new() } else { format!(": {notes}") };
    let what = partly(*parts);
    Ok(Part::GoesBack(Box::new(RolledBack {
        to: number,
        never_served: history.iter().any(|past| past.version == number && !past.is_complete),
        version: next_version(records, config)?,
        parts: *parts,
        object: Arc::new(object),
        commit: earlier.commit,
        created_at: earlier.created_at,
        cause: format!("rollback{what} to version {number} by {by}{noted}"),
        state,
    })))
}

fn partly(parts: RollbackParts) -> &'static str {
    let RollbackParts { strategy, template, replication, .. } = parts;
    match (template, replication) {
        (true, true) if strategy => "",
        (true, true) => " of the application",
        (true, false) => " of the template",
        (false, _) => " of the configuration",
    }
}

/// Nothing that runs would change.
pub(super) fn runs_already(state: &ConfigState, serving: u32, number: u32) -> String {
    let name = &state.key.name;
    let told = match serving == number {
        true => format!("version {number} of `{name}` serves already"),
        false => format!("version {serving} of `{name}` serves already, which is the same as version {number}"),
    };
    match &state.attempted {
        Some(attempt) => format!("{told}: version {} was attempted and is not what runs", attempt.version.number),
        None => told,
    }
}

/// When the revisions of a history were planned; nothing, where only versions count.
pub(super) fn planned(
    records: &Records,
    state: &ConfigState,
    history: &[Past],
    to: &RollbackTo,
) -> Result<target::Planned, Undecided> {
    let RollbackTo::Revision(commit) = to else { return Ok(target::Planned::new()) };
    records.repositories.get(&state.repository)?; // plans move with it
    let (mut planned, mut needs) = (target::Planned::new(), Needs::default());
    let revisions = history.iter().map(|past| (&past.repository, &past.commit)).chain([(&state.repository, commit)]);
    for (repository, commit) in revisions.collect::<BTreeSet<_>>() {
        if let Some(Some(at)) = needs.of(records.moment(Lookup::PlannedAt(repository.clone(), commit.clone())))? {
            planned.insert(commit.clone(), at);
        }
    }
    needs.none()?;
    Ok(planned)
}

/// The run that takes the deployment configs of one service back. Its result is written on the newest of their revisions.
fn make(transition: &mut Transition<'_>, part: &[&RolledBack], by: &str) -> Result<SequenceRun, Undecided> {
    let newest = part.iter().max_by_key(|member| member.created_at);
    let Some(newest) = newest else { return Err(Failure::stalled("there is nothing to go back").into()) };
    let cause = match part {
        [one] => one.cause.clone(),
        several => {
            let names: Vec<&str> = several.iter().map(|member| member.state.key.name.as_str()).collect();
            format!("rollback of {} by {by}", names.join(", "))
        }
    };
    let objects = part.iter().map(|member| (Arc::clone(&member.object), member.cause.clone())).collect();
    let asked = ByHand { commit: newest.commit.clone(), objects, cause, by, is_rollback: true };
    by_hand(transition, &newest.state, asked)
}

impl RolledBack {
    /// Which it is.
    pub fn config(&self) -> &ConfigKey {
        &self.state.key
    }

    /// The run to follow.
    pub fn run(&self) -> RunId {
        self.state.key.deployment(self.version)
    }
}

#[cfg(test)]
mod tests;
