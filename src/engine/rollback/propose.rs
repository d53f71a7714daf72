//! A rollback as a pull request: what is proposed, when a failure proposes it by itself, and what becomes of it once Git
//! says something else. Nothing that runs is changed here.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::engine::by_hand::{deployment, rolled_out};
use crate::engine::deployment::apply::next_version;
use crate::engine::records::{Records, Undecided};
use crate::engine::rollback::start::{Part, judge, planned};
use crate::engine::rollback::{RolledBack, Started, target};
use crate::engine::transition::Transition;
use crate::error::Failure;
use crate::model::action::Action;
use crate::model::hold::{HoldKind, ProjectHolds};
use crate::model::ids::{CommitId, ConfigKey, HoldId, RepositoryName, ServiceKey};
use crate::model::object::{Kind, Object, ObjectKey};
use crate::model::outcome::{Outcome, PodOutcome};
use crate::model::project::Project;
use crate::model::proposal::{Proposal, ProposalState, Proposed, put};
use crate::model::rollback::{Rollback, RollbackParts, RollbackTo};
use crate::model::run::DeploymentRun;
use crate::model::state::{ConfigState, Quarantined, RepositoryState, Version};
use crate::model::time::Timestamp;

/// What proposals' branches begin with: nobody else's branch is ever written to.
pub const BRANCHES: &str = "launchway/rollback-";
/// The most characters of several names in a branch's.
const MOST_OF_NAMES: usize = 60;
/// The most characters of what is reported about a failure.
const MOST_OF_A_CAUSE: usize = 4000;

/// Proposes that Git says again what deployment configs were, of what `declared` says now: the project of the head. What is
/// compared with it in [`RolledBack::state`] is what Git says, as if that served.
///
/// # Errors
/// If one of them cannot go back, or Git says already what it would go back to.
pub fn propose(
    transition: &mut Transition<'_>,
    repository: &RepositoryName,
    asked: &[Rollback],
    declared: &Project,
    by: &str,
) -> Result<(Started, Proposal), Undecided> {
    let records = &*transition.records;
    let mut started = judge(asked, |asked| part(records, asked, declared))?;
    started.members.sort_by_key(|member| (member.state.service_key(), member.state.key.clone()));
    let mut causes = Vec::new();
    for member in &started.members {
        causes.extend(failure_of(records, member)?);
    }
    let notes = asked.first().map(|asked| asked.notes.clone()).unwrap_or_default();
    let known = records.repositories.get(repository)?.map(|state| state.proposals.as_slice()).unwrap_or_default();
    let proposal = Proposal {
        cause: causes.join("\n"),
        by: Some(by.to_owned()),
        notes,
        ..fresh(transition, branch(&started.members, known), proposed(&started.members))
    };
    let proposal = enter(transition, repository, proposal)?;
    Ok((started, proposal))
}

/// A deployment ended, which proposes a rollback by itself if its project says so. What a person went back to, or ended,
/// proposes nothing.
///
/// # Errors
/// If something must be read first.
pub(in crate::engine) fn after(transition: &mut Transition<'_>, run: &DeploymentRun) -> Result<(), Undecided> {
    let failed = run.failure.as_ref().is_some_and(|failure| failure.outcome == Outcome::FAIL);
    if !run.on_failure.proposes() || !failed || run.is_rollback {
        return Ok(());
    }
    let earlier = transition.records.history(&run.config)?.iter().filter(|past| past.version < run.version);
    let good = earlier.filter(|past| past.is_good()).map(|past| past.version).max();
    let Some(to) = good else { return Ok(()) }; // there is nothing to go back to
    let Some(earlier) = deployment(transition.records, &run.config, to)? else { return Ok(()) };
    let (bad, good) = (run.object.digest.clone(), earlier.object.digest.clone());
    if bad == good {
        return Ok(());
    }
    let Some(repository) = transition.records.repositories.get(&run.repository)?.cloned() else { return Ok(()) };
    let member = Proposed { config: run.config.clone(), to, bad, good };
    let branch = name(&repository.proposals, std::slice::from_ref(&member));
    let proposal = Proposal { cause: told(run), ..fresh(transition, branch, vec![member]) };
    let closed = |known: &&Proposal| known.branch == proposal.branch && known.state == ProposalState::Closed;
    let known = repository.proposals.iter().find(closed);
    let said = || proposal.members.iter().map(Proposed::says);
    if repository.down || known.is_some_and(|known| known.members.iter().map(Proposed::says).eq(said())) {
        return Ok(()); // a person has decided about it
    }
    enter(transition, &run.repository, proposal).map(drop)
}

/// The holds that keep Git from undoing rollbacks which the head of `state` says by now itself, because what was proposed was
/// merged: they are lifted, so that what is pushed next is deployed. A service stays held as long as another deployment
/// config of it may have been rolled back too.
pub fn fulfilled(state: &RepositoryState, project: &Project, holds: &ProjectHolds) -> Vec<HoldId> {
    let open = state.proposals.iter().filter(|proposal| !proposal.is_over() && is_merged(proposal, project));
    let merged: BTreeSet<&ConfigKey> = open.flat_map(|open| &open.members).map(|member| &member.config).collect();
    let is_said = |service: &ServiceKey| {
        let Some(stage) = project.stage(&service.stage) else { return false };
        let objects = stage.objects.of_service(&service.service);
        let is_member = |object: &&Arc<Object>| object.key.kind == Kind::DeploymentConfig && !object.is_led();
        let mut configs = objects.filter(is_member).peekable();
        let is_merged = |name: &str| merged.iter().any(|config| config.name == name && config.stage == service.stage);
        configs.peek().is_some() && configs.all(|config| is_merged(&config.key.name))
    };
    let rollbacks = holds.holds.iter().filter(|hold| hold.kind == HoldKind::Rollback);
    let said = rollbacks.filter(|hold| hold.scope.one_service().is_some_and(|service| is_said(&service)));
    said.map(|hold| hold.id.clone()).collect()
}

/// Whether a project declares all that was proposed.
fn is_merged(proposal: &Proposal, project: &Project) -> bool {
    let says = |member: &Proposed| declared(project, member).is_some_and(|object| object.digest == member.good);
    proposal.members.iter().all(says)
}

/// A new head says what `project` declares: what was proposed is over where that is no longer what was bad. Says what that
/// is, so that it is not deployed again: what Git was rolled back from, and what had failed. What a person only proposed to leave,
/// and somebody has changed instead, may come again.
pub(in crate::engine) fn close(
    state: &mut RepositoryState,
    project: &Project,
    commit: &CommitId,
    now: Timestamp,
) -> Vec<(ConfigKey, Quarantined)> {
    let mut quarantined = Vec::new();
    for proposal in state.proposals.iter_mut().filter(|proposal| !proposal.is_over()) {
        let says = |member: &Proposed| declared(project, member).map(|object| &object.digest);
        if proposal.members.iter().any(|member| says(member) == Some(&member.bad)) {
            continue;
        }
        let merged = is_merged(proposal, project);
        proposal.state = match merged || proposal.state == ProposalState::Merged {
            true => ProposalState::Restored { commit: commit.clone() },
            false => ProposalState::Overtaken { commit: commit.clone() },
        };
        proposal.problem.clear();
        let reason = match merged {
            true => format!("{}, which was merged", proposal.what()),
            false if proposal.cause.is_empty() => continue,
            false => format!("it failed, and {} took its place", commit.short()),
        };
        let bad = |member: &Proposed| Quarantined { content: member.bad.clone(), reason: reason.clone(), since: now };
        quarantined.extend(proposal.members.iter().map(|member| (member.config.clone(), bad(member))));
    }
    quarantined
}

/// What has become of a proposal. One that is over, or that another one has taken the place of meanwhile, hears alone what
/// stands on the branch and on its host.
pub(in crate::engine) fn become_of(proposals: &mut [Proposal], news: &Proposal) {
    let Some(known) = proposals.iter_mut().find(|known| known.branch == news.branch) else { return };
    if known.asked_at == news.asked_at && (known.is_over() == news.is_over()) {
        known.clone_from(news);
    } else {
        known.pushed.clone_from(&news.pushed);
        if news.state == ProposalState::Open {
            (known.pull_request, known.told) = (news.pull_request.clone(), news.told.clone());
        }
    }
}

/// Has what is proposed looked after: made for a new head, or heard of on its host.
///
/// # Errors
/// If something must be read first.
pub fn look_after(transition: &mut Transition<'_>, repository: &RepositoryName) -> Result<(), Undecided> {
    let Some(state) = transition.records.repositories.get(repository)?.cloned() else { return Ok(()) };
    for proposal in state.proposals.iter().filter(|proposal| proposal.wants_attention(state.seen.as_ref())) {
        ask(transition, repository, &proposal.branch);
    }
    Ok(())
}

fn ask(transition: &mut Transition<'_>, repository: &RepositoryName, branch: &str) {
    let action = Action::Propose { repository: repository.clone(), branch: branch.to_owned() };
    transition.ask(&Action::proposals_of(repository), action);
}

/// Puts a proposal in the place of the one about the same incident, whose pull request it keeps unless that is closed.
fn enter(
    transition: &mut Transition<'_>,
    repository: &RepositoryName,
    mut proposal: Proposal,
) -> Result<Proposal, Undecided> {
    ask(transition, repository, &proposal.branch);
    let Some(state) = transition.records.repositories.get_mut(repository)? else {
        return Err(Failure::stalled(format!("nothing is known of repository `{repository}`")).into());
    };
    let known = state.proposals.iter().find(|known| known.branch == proposal.branch).cloned();
    if let Some(known) = known {
        proposal.pushed = known.pushed;
        if known.state == ProposalState::Open {
            (proposal.pull_request, proposal.told) = (known.pull_request, known.told);
        }
    }
    put(&mut state.proposals, proposal.clone());
    Ok(proposal)
}

fn fresh(transition: &Transition<'_>, branch: String, members: Vec<Proposed>) -> Proposal {
    Proposal {
        branch,
        members,
        cause: String::new(),
        by: None,
        notes: String::new(),
        asked_at: transition.now,
        state: ProposalState::Asked,
        base: None,
        pushed: None,
        pull_request: None,
        told: None,
        problem: String::new(),
    }
}

fn proposed(members: &[RolledBack]) -> Vec<Proposed> {
    let proposed = |member: &RolledBack| Proposed {
        config: member.state.key.clone(),
        to: member.to,
        bad: member.state.object.digest.clone(),
        good: member.object.digest.clone(),
    };
    members.iter().map(proposed).collect()
}

fn branch(members: &[RolledBack], known: &[Proposal]) -> String {
    name(known, &proposed(members))
}

/// The branch of an incident: the same one each time, as long as what goes back are the same. Another stage's, about a version
/// of the same number, has its own.
fn name(known: &[Proposal], members: &[Proposed]) -> String {
    let configs = |members: &[Proposed]| members.iter().map(|member| member.config.clone()).collect::<Vec<_>>();
    let is_same = |known: &&Proposal| !known.is_over() && configs(&known.members) == configs(members);
    if let Some(known) = known.iter().find(is_same) {
        return known.branch.clone();
    }
    let part = |member: &Proposed| format!("{}-{}", member.config.name, member.to);
    let mut names = members.iter().map(part).collect::<Vec<_>>().join("-");
    let stage = members.first().map(|member| member.config.stage.to_string()).unwrap_or_default();
    if names.len() > MOST_OF_NAMES {
        let digest: String = members.first().map(|member| member.bad.as_str()).unwrap_or_default().to_owned();
        let short: String = digest.rsplit(':').next().unwrap_or_default().chars().take(8).collect();
        names = format!("{stage}-{short}");
    }
    let branch = format!("{BRANCHES}{names}");
    let is_anothers = |known: &Proposal| known.branch == branch && !known.is_over();
    if known.iter().any(is_anothers) { format!("{BRANCHES}{stage}-{names}") } else { branch }
}

fn part(records: &Records, asked: &Rollback, project: &Project) -> Result<Part, Undecided> {
    let state = rolled_out(records, &asked.config)?;
    let config = &asked.config;
    let name = &config.name;
    if asked.parts != RollbackParts::ALL {
        let message = format!("a pull request restores the files of `{name}` whole, not a part of what they say");
        return Err(Failure::stalled(message).hint("leave out `--only`").into());
    }
    let key = ObjectKey { kind: Kind::DeploymentConfig, name: name.clone() };
    let says = project.stage(&config.stage).and_then(|stage| stage.objects.get(&key)).cloned();
    let Some(says) = says else {
        let message = format!("Git declares no `{name}` in stage {} any more", config.stage);
        return Err(Failure::stalled(message).hint("restore its file from history: `git log -- FILE`").into());
    };
    let history = records.history(config)?;
    let failed = |version: u32| history.iter().any(|past| past.version == version && past.failed);
    let serving = state.serving.as_ref().filter(|it| it.object.digest != says.digest && !failed(it.number));
    let number = match (&asked.to, serving) {
        (RollbackTo::LastComplete, Some(serving)) => Ok(serving.number),
        _ => target::choose(history, &state, &asked.to, &planned(records, &state, history, &asked.to)?),
    };
    let number = match number {
        Err(absent) if asked.may_be_absent => return Ok(Part::Stays(absent.to_string())),
        number => number?,
    };
    let gone = || Failure::stalled(format!("version {number} of `{name}` is not in the history any more"));
    let earlier = deployment(records, config, number)?.ok_or_else(gone)?;
    refuse_with_controllers(config, [&says, &earlier.object])?;
    if earlier.object.digest == says.digest {
        return Ok(Part::Stays(format!("Git says already what version {number} of `{name}` was")));
    }
    Ok(Part::GoesBack(Box::new(RolledBack {
        to: number,
        never_served: history.iter().any(|past| past.version == number && !past.is_complete),
        version: next_version(records, config)?,
        parts: asked.parts,
        object: earlier.object,
        commit: earlier.commit,
        created_at: earlier.created_at,
        cause: String::new(),
        state: as_git_says(state, says),
    })))
}

/// Its replication controllers stand in files of their own, of which only some may have changed: nobody but a person can tell which
/// of them are to come back.
fn refuse_with_controllers(config: &ConfigKey, versions: [&Object; 2]) -> Result<(), Failure> {
    if versions.iter().all(|object| object.controllers().is_empty()) {
        return Ok(());
    }
    let name = &config.name;
    let message = format!("a pull request does not restore the files of the replication controllers of dc/{name}");
    let hint =
        format!("`launchway rollback dc/{name} -s {}` takes them back at once; revert the commit in Git", config.stage);
    Err(Failure::stalled(message).hint(hint))
}

/// A deployment config as if what Git says served.
fn as_git_says(state: ConfigState, says: Arc<Object>) -> ConfigState {
    let attempted = state.attempted.as_ref().map(|attempt| &attempt.version);
    let mut versions = attempted.into_iter().chain(&state.serving);
    let number = versions.find(|version| version.object.digest == says.digest).map(|version| version.number);
    let commit = state.declared_on.clone();
    let serving = number.map(|number| Version { number, commit, object: Arc::clone(&says) });
    ConfigState { serving, attempted: None, object: says, ..state }
}

/// What the last attempt at what Git says came to, if it failed.
fn failure_of(records: &Records, member: &RolledBack) -> Result<Option<String>, Undecided> {
    let Some(bad) = &member.state.serving else { return Ok(None) };
    let run = deployment(records, &member.state.key, bad.number)?;
    Ok(run.filter(|run| run.failure.is_some()).map(|run| told(&run)))
}

/// What failed and why, with the last lines of its hook. What Secrets hold is masked in them since its shim read them.
fn told(run: &DeploymentRun) -> String {
    let lines = run.hooks.last().and_then(|hook| match &hook.outcome {
        Some(PodOutcome::Failed { message, .. } | PodOutcome::Unknown { message, .. }) => Some(message.trim_end()),
        Some(PodOutcome::Succeeded) | None => None,
    });
    let message = format!("{}: {}", run.config.name, run.message);
    let whole = match lines.filter(|lines| !lines.is_empty()) {
        Some(lines) => format!("{message}\n{lines}"),
        None => message,
    };
    whole.chars().take(MOST_OF_A_CAUSE).collect()
}

/// What a project declares of what goes back.
fn declared<'a>(project: &'a Project, member: &Proposed) -> Option<&'a Arc<Object>> {
    let key = ObjectKey { kind: Kind::DeploymentConfig, name: member.config.name.clone() };
    project.stage(&member.config.stage)?.objects.get(&key)
}

#[cfg(test)]
mod tests;
