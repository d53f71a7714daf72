//! Tells in open pull requests what merging them would do: the very plan that a push of the merge result would get, worked out
//! and not carried out. Nothing of a pull request runs, whoever has opened it.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use crate::control::watched::{READING, TreeFiles, Watched};
use crate::control::watcher::{Host, Watcher};
use crate::engine::rollback::propose::BRANCHES;
use crate::error::{Class, Result};
use crate::executor::drive::Driver;
use crate::executor::previews::{Looked, Previews};
use crate::executor::sync::{Read, foresee};
use crate::forge::Refusal;
use crate::manifest::{self, digest};
use crate::model::hold::Release;
use crate::model::ids::{CommitId, RepositoryName};
use crate::model::preview::{OpenPullRequest, Preview, due};
use crate::model::seed::Seed;
use crate::model::state::{RepositoryState, RevisionResult};
use crate::plan::build::effect;
use crate::report::preview::{Foreseen, comment, marker, status};
use crate::source::{self, Merged};

/// The most bytes that a fork's pull request brings: anybody may open one.
const FORK: u64 = 64 << 20;
/// After so many that could not be told, the others wait too: it is the host that keeps them from it.
const MOST_FAILURES: usize = 3;

/// Previews the pull requests of watched repositories.
#[derive(Clone, Debug)]
pub struct WatchedPreviews {
    /// Reads what is remembered.
    pub driver: Driver,
    /// What is watched.
    pub watchers: Arc<BTreeMap<RepositoryName, Watcher>>,
}

/// What merging a pull request comes to, before it is planned.
enum MergeResult {
    /// It is merged already.
    Contained,
    /// Both sides have changed these files differently.
    Conflicts(Vec<String>),
    /// A tree, read.
    Read(Box<Read>),
}

#[async_trait]
impl Previews for WatchedPreviews {
    async fn look(&self, state: &RepositoryState) -> Result<Looked> {
        let before = Looked { previews: state.previews.clone(), failure: None };
        let Some(watcher) = self.watchers.get(&state.name) else { return Ok(before) };
        let (Some(host), Some(base)) = (watcher.previewed(), &state.seen) else { return Ok(before) };
        let open = match host.pull_requests.open(&state.branch).await {
            Ok(open) => open,
            Err(failure) if failure.class() == Class::Stalled => {
                tracing::debug!(repository = %state.name, problem = failure.one_line(), "cannot list pull requests");
                return Ok(before);
            }
            Err(failure) => return Err(failure),
        };
        let numbers: Vec<u64> = open.iter().map(|pull| pull.number).collect();
        let mut looked = before;
        looked.previews.retain(|known| numbers.contains(&known.number));
        let (known, mut failures) = (looked.previews.clone(), 0);
        for pull in due(&open, base, &known) {
            let before = known.iter().find(|known| known.number == pull.number);
            let told = match self.tell(watcher, host, state, (base, pull), before).await {
                Err(failure) if failure.class() != Class::Stalled => {
                    looked.failure = Some(failure);
                    failures += 1;
                    if failures == MOST_FAILURES {
                        break;
                    }
                    continue;
                }
                // A person has to act: the next head is another chance.
                Err(failure) => {
                    let (number, problem) = (pull.number, failure.one_line());
                    tracing::info!(repository = %state.name, number, problem, "a pull request is not previewed");
                    silent(pull, base, before)
                }
                Ok(told) => told,
            };
            looked.previews.retain(|known| known.number != told.number);
            looked.previews.push(told);
        }
        watcher.watched.ask(READING, move |watched| watched.mirror.forget_pulls(&numbers)).await?;
        Ok(looked)
    }
}

impl WatchedPreviews {
    /// Tells what merging one into the head that is watched would do, unless `known` says that it stands there.
    async fn tell(
        &self,
        watcher: &Watcher,
        host: &Host,
        state: &RepositoryState,
        (base, pull): (&CommitId, &OpenPullRequest),
        known: Option<&Preview>,
    ) -> Result<Preview> {
        let silent = silent(pull, base, known);
        let Some((head, foreseen)) = self.foreseen(watcher, state, base, pull).await? else { return Ok(silent) };
        let plan = match &foreseen {
            Foreseen::Planned(plan, _) => Some(effect(plan)),
            Foreseen::Elsewhere | Foreseen::Conflicts(_) | Foreseen::Broken(_) | Foreseen::Refused(_) => None,
        };
        let status = status(&head, &foreseen);
        // Proposed rollbacks have their plan in their text.
        let is_own = !pull.is_fork && pull.branch.starts_with(BRANCHES);
        let text = (!is_own).then(|| comment(&state.branch, &head, &foreseen));
        let line = status.as_ref().map(|status| (status.state.as_str(), &status.description));
        let told = digest::of(&serde_json::json!([head.as_str(), text, line]));
        let mut preview = Preview { head, plan, told: Some(told), ..silent };
        if known.is_some_and(|known| known.told == preview.told) {
            return Ok(preview);
        }
        // What stands on a revision of the branch that is watched is what became of it.
        if let Some(status) = status
            && self.driver.store.revision(&state.name, preview.head.as_str()).await?.is_none()
        {
            match host.statuses.write(&[status]).await.map_err(Refusal::into_failure) {
                // Where the host takes no status, of a fork's commit for example, the comment tells.
                Err(failure) if failure.class() == Class::Stalled => {
                    let (number, problem) = (pull.number, failure.one_line());
                    tracing::info!(repository = %state.name, number, problem, "a pull request has no status");
                }
                written => written?,
            }
        }
        if let Some(text) = text {
            let marker = marker(&watcher.watched.options.seed, &state.name, pull.number);
            preview.comment = Some(host.pull_requests.say(pull.number, preview.comment, None, &marker, &text).await?);
        }
        Ok(preview)
    }

    /// The head of one and what merging it comes to, by the function that plans a push; nothing, if there is nothing to merge.
    async fn foreseen(
        &self,
        watcher: &Watcher,
        state: &RepositoryState,
        base: &CommitId,
        pull: &OpenPullRequest,
    ) -> Result<Option<(CommitId, Foreseen)>> {
        let Some(reference) = pull.reference.clone() else {
            return Ok(Some((pull.head.clone(), Foreseen::Elsewhere)));
        };
        let (branch, base, pull) = (state.branch.clone(), base.clone(), pull.clone());
        let merged = move |watched: &Watched| watched.merge_result(branch, &base, &pull, &reference);
        let Some((head, merged)) = watcher.watched.ask(READING, merged).await? else { return Ok(None) };
        let read = match merged {
            MergeResult::Contained => return Ok(None),
            MergeResult::Conflicts(files) => return Ok(Some((head, Foreseen::Conflicts(files)))),
            MergeResult::Read(read) => *read,
        };
        let warnings = read.problems.iter().filter(|problem| !problem.is_error()).map(ToString::to_string).collect();
        let (result, ..) = foresee(&self.driver, &watcher.watched, read, &Release::default(), |_| Ok(())).await?;
        let foreseen = match result {
            RevisionResult::Planned(plan) => Foreseen::Planned(plan, warnings),
            RevisionResult::Broken { problems } => Foreseen::Broken(problems),
            RevisionResult::Refused { reason } => Foreseen::Refused(reason),
        };
        Ok(Some((head, foreseen)))
    }
}

impl Watched {
    /// Brings the head of a pull request here and merges it into `base`, in memory; nothing, if it is gone.
    fn merge_result(
        &self,
        branch: String,
        base: &CommitId,
        pull: &OpenPullRequest,
        reference: &str,
    ) -> Result<Option<(CommitId, MergeResult)>> {
        let remote = self.remote_at(branch);
        let most = pull.is_fork.then_some(FORK);
        let head = self.mirror.fetch_pull(&remote, pull.number, reference, &pull.head, most)?;
        let Some(head) = head else { return Ok(None) };
        let merge = || {
            let repository = self.mirror.open()?;
            Ok(match repository.merged(base, &head)? {
                Merged::Contained => MergeResult::Contained,
                Merged::Conflicts(files) => MergeResult::Conflicts(files),
                Merged::Commit(commit) => {
                    let snapshot = match pull.is_fork {
                        true => self.snapshot_of_stranger(&repository, &commit),
                        false => self.snapshot_at(&repository, &commit),
                    };
                    MergeResult::Read(Box::new(self.read_in(&repository, commit, true, snapshot)?.0))
                }
            })
        };
        let merged = merge().map_err(|failure| self.mirror.explained(failure))?;
        Ok(Some((head, merged)))
    }
}

impl Watched {
    /// What a stranger declares: read without that from which generated values follow, lest files ask for what is shown of them.
    fn snapshot_of_stranger(&self, repository: &source::Repository, commit: &CommitId) -> Result<manifest::Snapshot> {
        let mirror = Some(&*self.mirror);
        let files = TreeFiles { tree: repository.tree(commit)?, limit: self.limits.manifest, mirror };
        manifest::Snapshot::read(&files, &manifest::Options { seed: Seed::NONE, ..self.options.clone() })
    }
}

/// What is remembered of one of which nothing new is told.
fn silent(pull: &OpenPullRequest, base: &CommitId, known: Option<&Preview>) -> Preview {
    Preview {
        number: pull.number,
        head: pull.head.clone(),
        base: base.clone(),
        plan: None,
        told: known.and_then(|known| known.told.clone()),
        comment: known.and_then(|known| known.comment),
    }
}
