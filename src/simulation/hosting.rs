//! A host of Git that is only pretended: the branches and pull requests of proposed rollbacks. It outlives the daemon, and
//! takes what it is asked for again without having it twice, as hosts do.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde_json::json;

use crate::error::{Failure, Result};
use crate::executor::proposals::Proposals;
use crate::forge::pull_request::PullRequestState;
use crate::manifest::digest;
use crate::model::ids::CommitId;
use crate::model::proposal::{Proposal, ProposalState, PullRequestLink};
use crate::model::state::RepositoryState;

/// What it has.
#[derive(Debug, Default)]
pub struct PretendedHosting(Mutex<Hosted>);

#[derive(Debug, Default)]
struct Hosted {
    branches: BTreeMap<String, CommitId>,
    /// In the order of their numbers, from 1.
    pulls: Vec<Pull>,
    /// So many times it does what it is asked for, and its answer is lost.
    lost: u32,
}

#[derive(Debug)]
struct Pull {
    branch: String,
    state: PullRequestState,
}

impl PretendedHosting {
    /// The branches that are there, and every pull request that ever was.
    pub fn shown(&self) -> Vec<String> {
        let hosted = self.hosted();
        let branches = hosted.branches.iter().map(|(name, commit)| format!("branch {name} at {}", commit.short()));
        let pulls = hosted.pulls.iter().zip(1..).map(|(pull, number)| {
            let state = match pull.state {
                PullRequestState::Open => "open",
                PullRequestState::Merged => "merged",
                PullRequestState::Closed => "closed",
            };
            format!("pull request #{number} of {}: {state}", pull.branch)
        });
        branches.chain(pulls).collect()
    }

    /// A person decides about an open pull request, if it is open.
    pub fn decide(&self, number: u64, state: PullRequestState) {
        let mut hosted = self.hosted();
        if let Some(pull) = hosted.pull(number).filter(|pull| pull.state == PullRequestState::Open) {
            pull.state = state;
        }
    }

    /// From now on so many answers are lost.
    pub fn lose_answers(&self, count: u32) {
        self.hosted().lost = count;
    }

    fn hosted(&self) -> MutexGuard<'_, Hosted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hosted {
    fn pull(&mut self, number: u64) -> Option<&mut Pull> {
        let place = usize::try_from(number).ok()?.checked_sub(1)?;
        self.pulls.get_mut(place)
    }

    /// What was asked for is done; whoever asked may not hear of it.
    fn answer(&mut self) -> Result<()> {
        match self.lost.checked_sub(1) {
            Some(less) => {
                self.lost = less;
                Err(Failure::transient("no answer"))
            }
            None => Ok(()),
        }
    }

    /// Nothing is left of what is over: its pull request is closed, and its branch deleted.
    fn clear(&mut self, news: &mut Proposal) -> Result<()> {
        if news.pushed.is_none() {
            return Ok(());
        }
        let number = news.pull_request.as_ref().map(|link| link.number);
        if let Some(pull) = number.and_then(|number| self.pull(number))
            && pull.state == PullRequestState::Open
        {
            pull.state = PullRequestState::Closed;
            self.answer()?;
        }
        if self.branches.remove(&news.branch).is_some() {
            self.answer()?;
        }
        news.pushed = None;
        Ok(())
    }

    /// The branch is at what is proposed on the head, and one pull request of it is open.
    fn open(&mut self, repository: &RepositoryState, news: &mut Proposal) -> Result<()> {
        let versions: Vec<u32> = news.members.iter().map(|member| member.to).collect();
        let told = digest::of(&json!([news.branch, versions, repository.seen, news.cause]));
        let commit: String = told.as_str().rsplit(':').next().unwrap_or_default().chars().take(40).collect();
        let commit = CommitId::new(commit);
        if self.branches.insert(news.branch.clone(), commit.clone()).as_ref() != Some(&commit) {
            self.answer()?;
        }
        news.pushed = Some(commit);
        if news.pull_request.is_some() && news.told.as_ref() == Some(&told) {
            return Ok(());
        }
        let is_it = |pull: &Pull| pull.branch == news.branch && pull.state == PullRequestState::Open;
        let place = self.pulls.iter().position(is_it).unwrap_or(self.pulls.len());
        if place == self.pulls.len() {
            self.pulls.push(Pull { branch: news.branch.clone(), state: PullRequestState::Open });
        }
        self.answer()?;
        let number = u64::try_from(place).unwrap_or_default() + 1;
        news.pull_request = Some(PullRequestLink { number, url: format!("https://git.example/pulls/{number}") });
        news.told = Some(told);
        Ok(())
    }
}

#[async_trait]
impl Proposals for PretendedHosting {
    async fn bring(&self, repository: &RepositoryState, proposal: &Proposal) -> Result<Proposal> {
        let (mut hosted, mut news) = (self.hosted(), proposal.clone());
        news.problem.clear();
        if news.is_over() {
            hosted.clear(&mut news)?;
            return Ok(news);
        }
        let number = news.pull_request.as_ref().map(|link| link.number);
        match number.and_then(|number| hosted.pull(number)).map(|pull| pull.state) {
            Some(PullRequestState::Merged) => news.state = ProposalState::Merged,
            Some(PullRequestState::Closed) => news.state = ProposalState::Closed,
            Some(PullRequestState::Open) if news.base == repository.seen => news.state = ProposalState::Open,
            Some(PullRequestState::Open) | None => {
                hosted.open(repository, &mut news)?;
                news.base.clone_from(&repository.seen);
                news.state = ProposalState::Open;
            }
        }
        Ok(news)
    }
}
