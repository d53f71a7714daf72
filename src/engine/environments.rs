//! Which pull requests have an environment, and what it takes to end one. What an environment deploys is decided by a sync of
//! it, like of any repository: see [`crate::engine::sync`].

use std::collections::BTreeSet;

use crate::engine::names;
use crate::engine::records::Undecided;
use crate::engine::rollback::propose::BRANCHES;
use crate::engine::transition::Transition;
use crate::error::Failure;
use crate::model::action::Action;
use crate::model::environment::{Approval, Environment, EnvironmentSettings, Presence, Standing};
use crate::model::hold::ProjectHolds;
use crate::model::ids::{CommitId, ConfigKey, Incarnation, ProjectName, RepositoryName};
use crate::model::preview::OpenPullRequest;
use crate::model::state::RepositoryState;
use crate::model::time::Timestamp;
use crate::model::transaction::ObjectPlace;
use crate::model::unique_name::UniqueName;

/// What a host says of pull requests.
#[derive(Clone, Copy, Debug)]
pub struct Hosted<'a> {
    /// The newest that are open for the watched branch.
    pub open: &'a [OpenPullRequest],
    /// Of those that had been open, the ones that are no longer.
    pub closed: &'a BTreeSet<u64>,
}

/// What environments are decided on.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// What the watched branch says of them; nothing, if there are to be none.
    pub settings: Option<&'a EnvironmentSettings>,
    /// What the host says; nothing, while it does not answer.
    pub hosted: Option<Hosted<'a>>,
    /// What people have approved.
    pub approvals: &'a [Approval],
    /// The time.
    pub now: Timestamp,
}

/// What becomes of the environments of pull requests, by number, given what had become of them. Only a host that says that a pull
/// request is closed ends its environment, or time, or that nobody wants any.
pub fn environments(asked: Asked<'_>, known: &[Environment]) -> Vec<Environment> {
    let Some(settings) = asked.settings else {
        return known.iter().filter_map(over).collect();
    };
    let mut all: Vec<Environment> = known.iter().filter_map(|known| still(known, asked.hosted)).collect();
    for pull in asked.hosted.iter().flat_map(|hosted| hosted.open).filter(|pull| has_one(pull)) {
        let seen = known.iter().find(|known| known.number == pull.number && is_same(&known.head, &pull.head));
        let before = known.iter().find(|known| known.number == pull.number);
        all.retain(|known| known.number != pull.number);
        all.push(Environment {
            number: pull.number,
            head: pull.head.clone(),
            since: seen.map_or(asked.now, |seen| seen.since),
            reference: pull.reference.clone(),
            is_fork: pull.is_fork,
            template: settings.stage.clone(),
            standing: Standing::Wanted,
            presence: before.map(|before| before.presence).unwrap_or_default(),
        });
    }
    for one in all.iter_mut().filter(|one| one.standing != Standing::Over) {
        one.template = settings.stage.clone();
        one.standing = standing(one, asked, settings);
    }
    share(&mut all, usize::try_from(settings.max).unwrap_or(usize::MAX));
    all.sort_by_key(|one| one.number);
    all
}

/// Whether an environment is made for it: what goes back by a proposed rollback has run before.
fn has_one(pull: &OpenPullRequest) -> bool {
    pull.is_fork || !pull.branch.starts_with(BRANCHES)
}

/// Whether two words of hosts mean the same commit: one of them may be the first digits of its id.
pub fn is_same(one: &CommitId, other: &CommitId) -> bool {
    one.is_named_by(Some(other)) || other.is_named_by(Some(one))
}

/// What is known of one, if the host does not say that it is over, or it has to be ended. One of which nothing is there is known
/// as long as it is listed: nobody asks what became of it.
fn still(known: &Environment, hosted: Option<Hosted<'_>>) -> Option<Environment> {
    let is_listed = |hosted: Hosted<'_>| hosted.open.iter().any(|pull| pull.number == known.number);
    if known.presence == Presence::Nothing && hosted.is_some_and(|hosted| !is_listed(hosted)) {
        return None;
    }
    let is_over = known.standing == Standing::Over || hosted.is_some_and(|it| it.closed.contains(&known.number));
    if is_over { over(known) } else { Some(known.clone()) }
}

/// What is left to be ended of one that is over.
fn over(known: &Environment) -> Option<Environment> {
    let is_left = known.presence != Presence::Nothing;
    is_left.then(|| Environment { standing: Standing::Over, presence: Presence::Ending, ..known.clone() })
}

/// What becomes of one as far as others are not in its way.
fn standing(one: &Environment, asked: Asked<'_>, settings: &EnvironmentSettings) -> Standing {
    match () {
        () if one.reference.is_none() => Standing::Elsewhere,
        () if one.is_fork && approval(one, asked.approvals).is_none() => Standing::Unapproved,
        () if asked.now.since(begins(one, asked.approvals)) >= settings.ttl() => Standing::Expired,
        () => Standing::Wanted,
    }
}

/// The word of somebody for what one brings now.
fn approval<'a>(one: &Environment, approvals: &'a [Approval]) -> Option<&'a Approval> {
    approvals.iter().find(|approval| approval.number == one.number && approval.head == one.head)
}

/// From when on one gets older: what waits for a person's word does not.
fn begins(one: &Environment, approvals: &[Approval]) -> Timestamp {
    approval(one, approvals).filter(|_| one.is_fork).map_or(one.since, |approval| one.since.max(approval.at))
}

/// Gives the places to those that have one, and then to others, the oldest first. What is being ended has its place until it is
/// gone, and does not come back before.
fn share(all: &mut [Environment], most: usize) {
    let is_wanted = |one: &Environment| one.standing == Standing::Wanted;
    for one in all.iter_mut() {
        match one.presence {
            Presence::There if !is_wanted(one) => one.presence = Presence::Ending,
            Presence::Ending if is_wanted(one) => one.standing = Standing::Waiting,
            _ => {}
        }
    }
    let ending = all.iter().filter(|one| one.presence == Presence::Ending).count();
    let mut wanted: Vec<&mut Environment> = all.iter_mut().filter(|one| is_wanted(one)).collect();
    wanted.sort_by_key(|one| (one.presence != Presence::There, one.number));
    let there = wanted.iter().filter(|one| one.presence == Presence::There).count();
    let places = if there > most { most } else { there.max(most.saturating_sub(ending)) };
    for (place, one) in wanted.into_iter().enumerate() {
        if place < places {
            one.presence = Presence::There;
            continue;
        }
        one.standing = Standing::Waiting;
        if one.presence == Presence::There {
            one.presence = Presence::Ending;
        }
    }
}

/// When the next environment gets too old.
pub fn next_end(settings: &EnvironmentSettings, approvals: &[Approval], all: &[Environment]) -> Option<Timestamp> {
    let may_end = |one: &&Environment| matches!(one.standing, Standing::Wanted | Standing::Waiting);
    all.iter().filter(may_end).map(|one| begins(one, approvals) + settings.ttl()).min()
}

/// Decides what becomes of the environments of a repository, and remembers that before anything is done about it. One that is
/// made after another stage than before is deployed anew. `life` is that of the store.
///
/// # Errors
/// If something must be read first.
pub fn decide(
    transition: &mut Transition<'_>,
    repository: &RepositoryName,
    hosted: Option<Hosted<'_>>,
    is_off: bool,
    life: &Incarnation,
) -> Result<Vec<Environment>, Undecided> {
    let now = transition.now;
    let Some(state) = transition.records.repositories.get(repository)?.cloned() else { return Ok(Vec::new()) };
    let settings = state.environments_wanted.as_ref().filter(|_| !state.down && !is_off);
    let asked = Asked { settings, hosted, approvals: &state.approvals, now };
    let decided = environments(asked, &state.environments);
    for one in &decided {
        let before = state.environments.iter().find(|known| known.number == one.number);
        if before.is_some_and(|before| before.template != one.template)
            && let Some(own) = transition.records.repositories.get_mut(&repository.environment(one.number))?
        {
            own.plan_again();
        }
    }
    // What is approved is approved as long as something is known of its pull request.
    let is_known = |approval: &&Approval| {
        let is_one = |one: &Environment| one.number == approval.number && one.standing != Standing::Over;
        hosted.is_none() || decided.iter().any(is_one)
    };
    let approvals: Vec<Approval> = state.approvals.iter().filter(is_known).cloned().collect();
    let is_known = hosted.is_some() || settings.is_none();
    let pulls_known = if is_known { Some(life.clone()) } else { state.pulls_known.clone() };
    if (&decided, &approvals, &pulls_known) != (&state.environments, &state.approvals, &state.pulls_known) {
        let state = RepositoryState { environments: decided.clone(), approvals, pulls_known, ..state };
        transition.records.repositories.put(repository, Some(state))?;
    }
    Ok(decided)
}

/// Whether nothing is to be there of the environment of a pull request of which no record names anything, as after a store was
/// lost: its repository has applied its head, and in this life of the store it was known which pull requests are open, and this one
/// has no environment.
pub fn is_over(repository: &RepositoryState, number: u64, life: &Incarnation) -> bool {
    let is_there = repository.environments.iter().any(|one| one.number == number && one.presence != Presence::Nothing);
    let asks_for_none = repository.environments_wanted.is_none();
    let is_known = asks_for_none || repository.pulls_known.as_ref() == Some(life);
    !is_there && (repository.down || repository.has_applied_its_head() && is_known)
}

/// Has the pull requests checked of a repository that has environments.
///
/// # Errors
/// If something must be read first.
pub fn look(transition: &mut Transition<'_>, repository: &RepositoryName) -> Result<(), Undecided> {
    let has_some = transition.records.repositories.get(repository)?.is_some_and(|it| !it.environments.is_empty());
    if has_some {
        let (run, action) = (Action::previews_of(repository), Action::Preview { repository: repository.clone() });
        transition.ask(&run, action);
    }
    Ok(())
}

/// Remembers somebody's word for what a pull request brings now, and has that checked. `head` is what they name. It has to be
/// its whole id: whoever has pushed it can make another commit with the same first digits, or push while others still read. Gives it.
///
/// # Errors
/// If they name no whole id, the pull request brings something else, or something must be read first.
pub fn approve(
    transition: &mut Transition<'_>,
    repository: &RepositoryName,
    (number, head): (u64, Option<&CommitId>),
    by: &str,
) -> Result<CommitId, Undecided> {
    let nothing =
        || Failure::stalled("the branch asks for no environments, or nothing is known of this pull request yet");
    let at = transition.now;
    let Some(state) = transition.records.repositories.get_mut(repository)? else { return Err(nothing().into()) };
    let one = state.environments.iter().find(|one| one.number == number && one.standing != Standing::Over);
    let one = one.filter(|_| state.environments_wanted.is_some()).ok_or_else(nothing)?;
    if !one.is_fork {
        return Err(Failure::stalled(
            "it needs no approval: it is no fork's, and has an environment as the branch says",
        )
        .into());
    }
    let named = head.filter(|head| head.is_whole());
    if named != Some(&one.head) {
        let why = match named {
            Some(_) => format!("it brings {} now", one.head.short()),
            None => "what is approved has to be named by its whole id".to_owned(),
        };
        let hint = format!("look at what it brings, and say `/launchway preview {}`", one.head);
        return Err(Failure::stalled(why).hint(hint).into());
    }
    let head = one.head.clone();
    state.approvals.retain(|known| known.number != number);
    state.approvals.push(Approval { number, head: head.clone(), by: by.to_owned(), at });
    look(transition, repository)?;
    Ok(head)
}

/// Has an environment's repository known, before anything of it is read. What it brings may delete what it declared before.
///
/// # Errors
/// If something must be read first.
pub fn prepare(transition: &mut Transition<'_>, fresh: &RepositoryState, head: &CommitId) -> Result<(), Undecided> {
    let stored = transition.records.repositories.get(&fresh.name)?.cloned();
    let mut state = stored.unwrap_or_else(|| fresh.clone());
    state.allowed_prune = Some(head.clone());
    transition.records.repositories.put(&fresh.name, Some(state))
}

/// Lets go of the deployment configs of an environment that was taken down: each is forgotten once its last pod is gone.
///
/// # Errors
/// If something must be read first.
pub fn let_go(transition: &mut Transition<'_>, configs: &BTreeSet<ConfigKey>) -> Result<(), Undecided> {
    for config in configs {
        if let Some(state) = transition.records.configs.get_mut(config)? {
            state.removed = true;
        }
    }
    Ok(())
}

/// Forgets an environment of which nothing is there any more; its runs stay in the history. `objects` are what is remembered of it.
///
/// # Errors
/// If something must be read first.
pub fn forget(
    transition: &mut Transition<'_>,
    environment: &RepositoryName,
    objects: &BTreeSet<ObjectPlace>,
) -> Result<(), Undecided> {
    let Some(state) = transition.records.repositories.get(environment)?.cloned() else { return Ok(()) };
    for place in objects {
        transition.records.objects.get(place)?;
        transition.records.objects.put(place, None)?;
    }
    if let Some(project) = &state.project {
        names::give_up(transition, environment, &UniqueName::Project(project.clone()))?;
        no_holds(transition, project)?;
    }
    for namespace in &state.namespaces {
        names::give_up(transition, environment, &UniqueName::Namespace(namespace.clone()))?;
    }
    transition.records.repositories.put(environment, None)
}

fn no_holds(transition: &mut Transition<'_>, project: &ProjectName) -> Result<(), Undecided> {
    let has_some = transition.records.holds.get(project)?.is_some();
    if has_some {
        transition.records.holds.put(project, Some(ProjectHolds::none(project.clone())))?;
    }
    Ok(())
}

/// Nothing of an environment is there any more: its place is free.
///
/// # Errors
/// If something must be read first.
pub fn gone(transition: &mut Transition<'_>, repository: &RepositoryName, number: u64) -> Result<(), Undecided> {
    let Some(state) = transition.records.repositories.get_mut(repository)? else { return Ok(()) };
    let is_this = |one: &Environment| one.number == number && one.standing != Standing::Wanted;
    state.environments.iter_mut().filter(|one| is_this(one)).for_each(|one| one.presence = Presence::Nothing);
    state.environments.retain(|one| one.standing != Standing::Over || one.presence != Presence::Nothing);
    Ok(())
}

#[cfg(test)]
mod tests;
