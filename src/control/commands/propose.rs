//! Going back as a pull request: Git is to say again what ran before, and a person merges that.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::control::commands::operator::{Operator, conflict, undeclared};
use crate::control::commands::rollback::{applied, meant};
use crate::control::commands::{Done, Refusal, RollbackCommand, by_hand};
use crate::control::proposals::{Draft, WatchedProposals};
use crate::control::watcher::Watcher;
use crate::engine::records::Records;
use crate::engine::rollback::Started;
use crate::engine::rollback::propose::propose as decide;
use crate::engine::transition::Transition;
use crate::error::{Failure, Result};
use crate::model::ids::RepositoryName;
use crate::model::proposal::{Proposal, ProposalState};
use crate::model::state::RepositoryState;

/// How long is waited for the host; what takes longer comes by itself.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often the proposal is polled meanwhile, if nothing is heard of it.
const PERIOD: Duration = Duration::from_millis(200);

/// A rollback that is proposed as a pull request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProposalView {
    /// The branch that has it.
    pub branch: String,
    /// `asked`, `open`, `refused`, `merged`, `closed`, `restored` or `overtaken`.
    pub state: String,
    /// The deployment configs that go back, as `<stage>/<name>`.
    pub configs: Vec<String>,
    /// The page of the pull request, where the host has those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// What there is to say of it, in a sentence without a period.
    pub message: String,
    /// What keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Its title, for whoever asked for it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Its text in Markdown, likewise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// The paths that it changes, likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// How the files change that declare something, likewise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub diff: String,
}

impl ProposalView {
    /// Whether nothing more comes of it.
    pub fn is_over(&self) -> bool {
        matches!(self.state.as_str(), "restored" | "overtaken")
    }
}

impl From<&Proposal> for ProposalView {
    fn from(proposal: &Proposal) -> Self {
        let config = |config: &crate::model::ids::ConfigKey| format!("{}/{}", config.stage, config.name);
        Self {
            branch: proposal.branch.clone(),
            state: proposal.state.as_str().to_owned(),
            configs: proposal.members.iter().map(|member| config(&member.config)).collect(),
            url: proposal.pull_request.as_ref().map(|link| link.url.clone()),
            message: proposal.remark(),
            problem: Some(proposal.problem.clone()).filter(|problem| !problem.is_empty()),
            ..Self::default()
        }
    }
}

/// Proposes that deployment configs go back, or only says what that would be.
pub(super) async fn propose(operator: &Operator, asked: RollbackCommand, by: &str) -> Result<Done, Refusal> {
    let store = &*operator.driver.store;
    let revision = match &asked.to_revision {
        Some(word) => Some(applied(operator, &asked.project, word).await?),
        None => None,
    };
    let configs = store.configs(Some(&asked.project), Some(&asked.stage)).await?.whole()?;
    let configs: Vec<_> = configs.into_iter().map(|config| config.value).collect();
    let rollbacks = meant(&asked, revision.as_ref(), &configs)?;
    let name = by_hand::declaring(&operator.driver, &asked.project).await?.ok_or_else(|| undeclared(&asked.project))?;
    let watcher = operator.watcher(&name)?;
    let state = seen(operator, watcher, &name).await?.ok_or_else(|| undeclared(&asked.project))?;
    let unread = || {
        let failure =
            Failure::stalled(format!("the head of `{name}` cannot be read, so that nothing can be proposed for it"));
        Refusal::Conflict(failure.hint("push a fix; `launchway status` says what is wrong"))
    };
    let head = state.seen.clone().ok_or_else(unread)?;
    let project = watcher.watched.project_at(&head).await?.ok_or_else(unread)?;
    let judge = |transition: &mut Transition<'_>| decide(transition, &name, &rollbacks, &project, by);
    let judged = operator.driver.work_out(&mut Records::default(), judge).await.map_err(conflict)?;
    let (started, proposal) = judged.0;
    let proposals = WatchedProposals { driver: operator.driver.clone(), watchers: operator.watchers.clone() };
    let draft = proposals.draft(watcher, &state, &proposal).await.map_err(conflict)?;
    if asked.dry_run {
        return Ok(done(&started, &proposal, draft, true));
    }
    let (started, proposal) = operator.driver.decide(judge).await.map_err(conflict)?;
    let proposal = brought(operator, &name, proposal).await?;
    Ok(done(&started, &proposal, draft, false))
}

/// What is known of a repository once its head was seen, which is planned again after somebody has gone back.
async fn seen(
    operator: &Operator,
    watcher: &Watcher,
    repository: &RepositoryName,
) -> Result<Option<RepositoryState>, Failure> {
    let mut state = operator.driver.store.repository(repository).await?;
    if state.as_ref().is_some_and(|state| state.value.seen.is_none()) {
        watcher.requests.request_and_wait().await;
        state = operator.driver.store.repository(repository).await?;
    }
    Ok(state.map(|state| state.value))
}

/// The proposal once it is there, or as far as it has come.
async fn brought(operator: &Operator, repository: &RepositoryName, proposal: Proposal) -> Result<Proposal, Refusal> {
    let mut changes = operator.driver.changes();
    let waits = async {
        loop {
            let state = operator.driver.store.repository(repository).await?.map(|state| state.value);
            let proposals = state.map(|state| state.proposals).unwrap_or_default();
            let now = proposals.into_iter().find(|now| now.branch == proposal.branch);
            match now {
                Some(now) if now.state == ProposalState::Asked && now.problem.is_empty() => {}
                now => return Ok::<_, Failure>(now),
            }
            drop(tokio::time::timeout(PERIOD, changes.recv()).await);
        }
    };
    match tokio::time::timeout(PATIENCE, waits).await {
        Ok(now) => Ok(now?.unwrap_or(proposal)),
        Err(_too_long) => Ok(proposal),
    }
}

fn done(started: &Started, proposal: &Proposal, draft: Draft, dry_run: bool) -> Done {
    let left = started.left.iter().map(|why| format!("{why}, and stays as it is"));
    let told = match dry_run {
        true => format!("{} would be proposed on branch `{}` (dry run)", proposal.what(), proposal.branch),
        false => proposal.remark(),
    };
    let view = ProposalView {
        title: draft.title,
        body: draft.body,
        files: draft.composed.paths,
        diff: draft.composed.patch,
        ..ProposalView::from(proposal)
    };
    Done {
        message: std::iter::once(told).chain(left).collect::<Vec<_>>().join("\n"),
        evaluations: draft.evaluations,
        proposal: Some(Box::new(view)),
        ..Done::default()
    }
}
