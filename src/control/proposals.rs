//! Brings proposed rollbacks to where people decide about them: a branch of the watched repository, and a pull request where
//! its host has those; and hears there what became of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use crate::control::restoring::{Composed, author};
use crate::control::watched::{READING, Watched};
use crate::control::watcher::Watcher;
use crate::engine::records::Records;
use crate::engine::rollback::evaluate::{Evaluation, Stage, evaluate};
use crate::engine::rollback::propose::propose;
use crate::engine::sync::Head;
use crate::error::{Class, Failure, Result};
use crate::executor::drive::Driver;
use crate::executor::proposals::Proposals;
use crate::executor::sync::{Read, foresee};
use crate::forge::pull_request::{Known, PullRequest, PullRequestState, PullRequests};
use crate::manifest::digest;
use crate::model::hold::Release;
use crate::model::ids::{CommitId, RepositoryName};
use crate::model::plan::Plan;
use crate::model::proposal::{Proposal, ProposalState, PullRequestLink};
use crate::model::rollback::{Rollback, RollbackParts, RollbackTo};
use crate::model::run::{DeploymentRun, Run};
use crate::model::state::{RepositoryState, RevisionResult};
use crate::report::pull_request::{Said, body, closing, title};
use crate::source::BranchPush;

/// How many revisions are searched for the one that brought what is gone back from.
const MOST_SEARCHED: u32 = 50;

/// Brings the proposals of watched repositories.
#[derive(Clone, Debug)]
pub struct WatchedProposals {
    /// Reads what is remembered.
    pub driver: Driver,
    /// What is watched.
    pub watchers: Arc<BTreeMap<RepositoryName, Watcher>>,
}

/// A proposal as it would be brought.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) composed: Composed,
    pub(super) title: String,
    pub(super) body: String,
    pub(super) evaluations: Vec<Evaluation>,
}

#[async_trait]
impl Proposals for WatchedProposals {
    async fn bring(&self, state: &RepositoryState, proposal: &Proposal) -> Result<Proposal> {
        let Some(watcher) = self.watchers.get(&state.name) else { return Ok(proposal.clone()) };
        let mut news = proposal.clone();
        let brought = match news.is_over() {
            true => clear(watcher, &mut news).await,
            false => self.try_to_bring(watcher, state, &mut news).await,
        };
        match brought {
            Ok(()) => Ok(news),
            // A person has to put it right; what is left of it then is no longer ours.
            Err(failure) if failure.class() == Class::Stalled && news.is_over() => {
                (news.pushed, news.problem) = (None, failure.one_line());
                Ok(news)
            }
            // A person has to put it right; the next head, or the next sync, tries again.
            Err(failure) if failure.class() == Class::Stalled => {
                if matches!(news.state, ProposalState::Asked | ProposalState::Open) {
                    news.state = if news.pull_request.is_some() { ProposalState::Open } else { ProposalState::Refused };
                }
                news.problem = failure.one_line();
                Ok(news)
            }
            Err(failure) => Err(failure),
        }
    }
}

impl WatchedProposals {
    async fn try_to_bring(&self, watcher: &Watcher, state: &RepositoryState, news: &mut Proposal) -> Result<()> {
        let host = watcher.host.as_ref().map(|host| &*host.pull_requests);
        if let (Some(link), Some(host)) = (&news.pull_request, host) {
            let known = host.read(link.number).await?;
            let became = known.map_or(PullRequestState::Closed, |known| known.state);
            let over = match became {
                PullRequestState::Open => None,
                PullRequestState::Merged => Some(ProposalState::Merged),
                PullRequestState::Closed => Some(ProposalState::Closed),
            };
            if let Some(over) = over {
                (news.state, news.problem) = (over, String::new());
                return Ok(());
            }
        }
        let is_made = news.pushed.is_some() && news.told.is_some() == host.is_some();
        if matches!(news.state, ProposalState::Open | ProposalState::Closed) && is_made && news.base == state.seen {
            news.state = ProposalState::Open;
            return Ok(());
        }
        news.problem.clear();
        // What cannot be made on this head is tried again on the next one, everything else with the next sync.
        news.base.clone_from(&state.seen);
        let draft = self.draft(watcher, state, news).await?;
        news.base = None;
        self.push(watcher, news, &draft).await?;
        if let Some(host) = host {
            tell(host, state, news, &draft).await?;
        }
        news.base.clone_from(&state.seen);
        news.state = ProposalState::Open;
        Ok(())
    }

    /// What a proposal comes to on the head that was seen last. Nothing is pushed.
    ///
    /// # Errors
    /// If it cannot be made there.
    pub(super) async fn draft(&self, watcher: &Watcher, state: &RepositoryState, proposal: &Proposal) -> Result<Draft> {
        let nothing = || Failure::waiting(format!("nothing of `{}` was read yet", state.name));
        let head = state.seen.clone().ok_or_else(nothing)?;
        let earlier = self.earlier(proposal).await?;
        // What may not be proposed is refused before its files are composed.
        let evaluations = self.evaluated(watcher, state, &head, proposal).await?;
        let commits: Vec<CommitId> = earlier.iter().map(|run| run.commit.clone()).collect();
        let seen = self.driver.store.outlines(&state.name, MOST_SEARCHED).await?;
        let seen: Vec<CommitId> = seen.into_iter().map(|revision| revision.commit).collect();
        let composed = {
            let (head, proposal) = (head.clone(), proposal.clone());
            watcher.watched.ask(READING, move |watched| watched.compose(&head, &proposal, &earlier, &seen)).await?
        };
        let plan = self.planned(watcher, &composed, proposal).await?;
        let said = Said {
            proposal,
            evaluations: &evaluations,
            paths: &composed.paths,
            commits: &commits,
            head: &head,
            plan: plan.as_deref(),
        };
        let (title, body) = (title(proposal), body(&said));
        Ok(Draft { composed, title, body, evaluations })
    }

    /// The versions whose files come back.
    async fn earlier(&self, proposal: &Proposal) -> Result<Vec<DeploymentRun>> {
        let mut found = Vec::new();
        for member in &proposal.members {
            let run = self.driver.store.run(&member.config.deployment(member.to)).await?;
            let gone = || {
                let message =
                    format!("version {} of `{}` is not in the history any more", member.to, member.config.name);
                Failure::stalled(message).hint("`launchway history` lists what there is")
            };
            match run.map(|run| run.value) {
                Some(Run::Deployment(run)) => found.push(*run),
                Some(Run::Sequence(_)) | None => return Err(gone()),
            }
        }
        Ok(found)
    }

    async fn evaluated(
        &self,
        watcher: &Watcher,
        state: &RepositoryState,
        head: &CommitId,
        proposal: &Proposal,
    ) -> Result<Vec<Evaluation>> {
        let Some(project) = watcher.watched.project_at(head).await? else { return Ok(Vec::new()) };
        let Some(place) = proposal.members.first().map(|member| member.config.clone()) else { return Ok(Vec::new()) };
        let back = |member: &crate::model::proposal::Proposed| Rollback {
            config: member.config.clone(),
            to: RollbackTo::Version(member.to),
            parts: RollbackParts::ALL,
            notes: String::new(),
            may_be_absent: false,
        };
        let asked: Vec<Rollback> = proposal.members.iter().map(back).collect();
        let decide = |transition: &mut crate::engine::transition::Transition<'_>| {
            propose(transition, &state.name, &asked, &project, "")
        };
        let ((started, _), ..) = self.driver.work_out(&mut Records::default(), decide).await?;
        let store = &*self.driver.store;
        let configs = store.configs(Some(&place.project), Some(&place.stage)).await?.whole()?;
        let objects = store.objects(Some(&place.project), Some(&place.stage), None).await?.whole()?;
        let stage = Stage {
            configs: configs.into_iter().map(|config| config.value).collect(),
            objects: objects.into_iter().map(|object| object.value.object).collect(),
        };
        Ok(evaluate(&started, &stage))
    }

    /// What a sync would plan if it was merged now.
    async fn planned(&self, watcher: &Watcher, composed: &Composed, proposal: &Proposal) -> Result<Option<Box<Plan>>> {
        let head = Head {
            commit: composed.commit.clone(),
            subject: title(proposal),
            descends: true,
            declared: Ok(Arc::clone(&composed.project)),
            lifted: Vec::new(),
            warnings: Vec::new(),
        };
        let read = Read { head, problems: Vec::new() };
        let foreseen = foresee(&self.driver, &watcher.watched, read, &Release::default(), |_| Ok(())).await?;
        match foreseen.0 {
            RevisionResult::Planned(plan) => Ok(Some(plan)),
            RevisionResult::Refused { reason } => {
                Err(Failure::stalled(format!("merging it would be refused: {reason}")))
            }
            RevisionResult::Broken { .. } => Ok(None),
        }
    }

    async fn push(&self, watcher: &Watcher, news: &mut Proposal, draft: &Draft) -> Result<()> {
        let (branch, commit) = (news.branch.clone(), draft.composed.commit.clone());
        let (known, author) = (news.pushed.clone(), author(news.asked_at));
        let push = move |watched: &Watched| {
            let remote = watched.remote_at(branch);
            watched.mirror.push_branch(&remote, &commit, known.as_ref(), &author)
        };
        match watcher.watched.ask(READING, push).await? {
            BranchPush::Done => {
                news.pushed = Some(draft.composed.commit.clone());
                Ok(())
            }
            BranchPush::Taken => Err(Failure::stalled(taken(&news.branch)).hint("merge it, or delete the branch")),
        }
    }
}

/// Closes the pull request of a proposal that is over, and deletes its branch. Where somebody else has pushed to that, both are
/// theirs.
async fn clear(watcher: &Watcher, news: &mut Proposal) -> Result<()> {
    news.problem.clear();
    let Some(pushed) = news.pushed.clone() else { return Ok(()) };
    let (branch, commit) = (news.branch.clone(), pushed.clone());
    let is_at = move |watched: &Watched| watched.mirror.branch_is_at(&watched.remote_at(branch), &commit);
    let there = watcher.watched.ask(READING, is_at).await?;
    if there != Some(false)
        && let (Some(link), Some(host), Some(why)) = (&news.pull_request, &watcher.host, closing(news))
    {
        host.pull_requests.close(link.number, &why).await?;
    }
    let branch = news.branch.clone();
    let delete = move |watched: &Watched| watched.mirror.delete_branch(&watched.remote_at(branch), &pushed);
    if watcher.watched.ask(READING, delete).await? == BranchPush::Taken {
        news.problem = taken(&news.branch);
    }
    news.pushed = None;
    Ok(())
}

fn taken(branch: &str) -> String {
    format!("somebody else has pushed to `{branch}`, so that it is left as it is")
}

/// Opens the pull request, or has the one that is open say the same, unless it does.
async fn tell(host: &dyn PullRequests, state: &RepositoryState, news: &mut Proposal, draft: &Draft) -> Result<()> {
    let told = digest::of(&serde_json::json!([draft.title, draft.body]));
    if news.pull_request.is_some() && news.told.as_ref() == Some(&told) {
        return Ok(());
    }
    let wanted = PullRequest {
        head: news.branch.clone(),
        base: state.branch.clone(),
        title: draft.title.clone(),
        body: draft.body.clone(),
    };
    let Known { number, url, .. } = host.open_or_update(&wanted).await?;
    news.pull_request = Some(PullRequestLink { number, url });
    news.told = Some(told);
    Ok(())
}
