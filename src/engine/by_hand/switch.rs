//! A repository is taken down, and brought up again: what it declares is stopped, and runs as before.

use std::collections::BTreeSet;

use crate::engine::deployment::apply;
use crate::engine::environments;
use crate::engine::records::{Needs, Records, Undecided};
use crate::engine::transition::Transition;
use crate::error::Failure;
use crate::model::ids::{CommitId, ConfigKey, RepositoryName};
use crate::model::state::ConfigState;

/// Takes a repository down. What is being deployed hears of it at once, all other runs when their slots are examined.
///
/// # Errors
/// If nothing is known of the repository.
pub fn take_down(
    transition: &mut Transition<'_>,
    repository: &RepositoryName,
    configs: &BTreeSet<ConfigKey>,
    by: &str,
) -> Result<(), Undecided> {
    let Some(state) = transition.records.repositories.get_mut(repository)? else {
        return Err(Failure::stalled(format!("nothing is known of repository `{repository}`")).into());
    };
    state.down = true;
    by.clone_into(&mut state.down_by);
    state.plan_again(); // once it is up again, the head is planned anew
    let applied = state.applied.clone();
    report(transition, repository, applied);
    environments::look(transition, repository)?;
    transition.switch();
    each(configs, |config| apply::quiesce(transition, config, by))
}

/// Stops what was deployed for the first time while its repository was being taken down, unless that is up again.
///
/// # Errors
/// If something must be read first.
pub fn stop_missed(
    transition: &mut Transition<'_>,
    repository: &RepositoryName,
    missed: &BTreeSet<ConfigKey>,
) -> Result<(), Undecided> {
    let state = transition.records.repositories.get(repository)?.filter(|state| state.down);
    let Some(by) = state.map(|state| state.down_by.clone()) else { return Ok(()) };
    transition.switch();
    each(missed, |config| apply::quiesce(transition, config, &by))
}

/// Brings back what a repository ran before it was taken down; says whether it was.
///
/// # Errors
/// If something must be read first.
pub fn bring_up(
    transition: &mut Transition<'_>,
    repository: &RepositoryName,
    configs: &BTreeSet<ConfigKey>,
    by: &str,
) -> Result<bool, Undecided> {
    let Some(state) = transition.records.repositories.get_mut(repository)?.filter(|state| state.down) else {
        return Ok(false);
    };
    state.down = false;
    by.clone_into(&mut state.up_by);
    state.plan_again();
    let applied = state.applied.clone();
    report(transition, repository, applied);
    environments::look(transition, repository)?;
    transition.switch();
    each(configs, |config| apply::resume(transition.records, config))?;
    Ok(true)
}

/// What is to start on a revision waits for the repository to come up, or no longer does.
fn report(transition: &mut Transition<'_>, repository: &RepositoryName, applied: Option<CommitId>) {
    applied.into_iter().for_each(|commit| transition.report(repository.clone(), commit));
}

/// Decides about each on its own; what is missing for any of them is asked for at once.
fn each(
    configs: &BTreeSet<ConfigKey>,
    mut decide: impl FnMut(&ConfigKey) -> Result<(), Undecided>,
) -> Result<(), Undecided> {
    let mut needs = Needs::default();
    for config in configs {
        needs.of(decide(config))?;
    }
    needs.none()
}

/// Nothing is accepted that cannot happen.
pub(in crate::engine) fn refuse_if_down(records: &Records, state: &ConfigState) -> Result<(), Undecided> {
    match records.repositories.get(&state.repository)?.is_some_and(|repository| repository.down) {
        true => Err(is_down(&state.repository).into()),
        false => Ok(()),
    }
}

/// Nothing can be done to what a repository that was taken down declares, and how it comes back.
pub fn is_down(repository: &RepositoryName) -> Failure {
    Failure::stalled(format!("repository `{repository}` is down"))
        .hint(format!("`launchway sync {repository} --up` brings it back; without a daemon, `launchway up`"))
}
