//! Tells in open pull requests what merging them would do: the very plan that a push of the merge result would get, worked out
//! and not carried out. Of that nothing runs, whoever has opened it; what runs of it in an environment is told beside it.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use crate::control::environments::{Brought, Environments, FORK};
use crate::control::watched::{READING, TreeFiles, Watched};
use crate::control::watcher::{Host, Watcher};
use crate::engine::rollback::propose::BRANCHES;
use crate::error::{Class, Failure, Result};
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
use crate::report::environment::section;
use crate::report::preview::{Foreseen, comment, marker, status};
use crate::source::{self, Merged};

/// After so many that could not be told, the others wait too: it is the host that keeps them from it.
const MOST_FAILURES: usize = 3;

/// Previews the pull requests of watched repositories.
#[derive(Clone, Debug)]
pub struct WatchedPreviews {
    /// Reads what is remembered.
    pub driver: Driver,
    /// What is watched.
    pub watchers: Arc<BTreeMap<RepositoryName, Watcher>>,
    /// Looks after their environments.
    pub environments: Environments,
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
        let watcher = self.watchers.get(&state.name);
        let host = watcher.and_then(|watcher| Some((watcher, watcher.previewed()?)));
        let (open, unlisted) = match host {
            Some((_, host)) => listed(host, state).await,
            None => (None, None),
        };
        let Brought { reports, failure } = self.environments.bring(state, watcher, open.as_deref()).await?;
        let mut looked = Looked { previews: state.previews.clone(), failure: failure.or(unlisted) };
        if let (Some((watcher, host)), Some(base), Some(open)) = (host, &state.seen, &open) {
            let sections = reports.iter().map(|(number, report)| (*number, section(report))).collect();
            self.tell_all(Place { watcher, host, state, base }, open, &sections, &mut looked).await?;
        }
        Ok(looked)
    }
}

/// Where pull requests are told something.
#[derive(Clone, Copy)]
struct Place<'a> {
    watcher: &'a Watcher,
    host: &'a Host,
    state: &'a RepositoryState,
    /// The head that they would be merged into.
    base: &'a CommitId,
}

/// The open pull requests of a repository, or why they are not known now; neither, where a person has to act first.
async fn listed(host: &Host, state: &RepositoryState) -> (Option<Vec<OpenPullRequest>>, Option<Failure>) {
    match host.pull_requests.open(&state.branch).await {
        Ok(open) => (Some(open), None),
        Err(failure) if failure.class() == Class::Stalled => {
            tracing::debug!(repository = %state.name, problem = failure.one_line(), "cannot list pull requests");
            (None, None)
        }
        Err(failure) => (None, Some(failure)),
    }
}

impl WatchedPreviews {
    /// Tells in all that something new is to be told of. `sections` is what there is to say of environments.
    async fn tell_all(
        &self,
        place: Place<'_>,
        open: &[OpenPullRequest],
        sections: &BTreeMap<u64, String>,
        looked: &mut Looked,
    ) -> Result<()> {
        let Place { watcher, state, base, .. } = place;
        let numbers: Vec<u64> = open.iter().map(|pull| pull.number).collect();
        looked.previews.retain(|known| numbers.contains(&known.number));
        let (known, mut failures) = (looked.previews.clone(), 0);
        let environments = sections.iter().map(|(number, text)| (*number, digest::of(&text.as_str().into()))).collect();
        for pull in due(open, base, &environments, &known) {
            let before = known.iter().find(|known| known.number == pull.number);
            let section = sections.get(&pull.number).map(String::as_str);
            let told = match self.tell(place, pull, before, section).await {
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
            let environment = environments.get(&pull.number).cloned();
            looked.previews.retain(|known| known.number != told.number);
            looked.previews.push(Preview { environment, ..told });
        }
        let kept = state.environments.iter().map(|one| one.number).chain(numbers).collect::<Vec<_>>();
        watcher.watched.ask(READING, move |watched| watched.mirror.forget_pulls(&kept)).await
    }

    /// Tells what merging one into the head that is watched would do, unless `known` says that it stands there.
    async fn tell(
        &self,
        place: Place<'_>,
        pull: &OpenPullRequest,
        known: Option<&Preview>,
        environment: Option<&str>,
    ) -> Result<Preview> {
        let Place { watcher, host, state, base } = place;
        let silent = silent(pull, base, known);
        let Some((head, foreseen)) = self.foreseen(watcher, state, base, pull).await? else { return Ok(silent) };
        let plan = match &foreseen {
            Foreseen::Planned(plan, _) => Some(effect(plan)),
            Foreseen::Elsewhere | Foreseen::Conflicts(_) | Foreseen::Broken(_) | Foreseen::Refused(_) => None,
        };
        let status = status(&head, &foreseen);
        // Proposed rollbacks have their plan in their text.
        let is_own = !pull.is_fork && pull.branch.starts_with(BRANCHES);
        let text = (!is_own).then(|| comment(&state.branch, &head, &foreseen, environment));
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
        environment: None,
    }
}
