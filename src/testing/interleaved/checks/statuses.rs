//! What stands on commits once nothing is under way any more.

use std::collections::{BTreeMap, BTreeSet};

use crate::control::reporter;
use crate::error::Result;
use crate::model::commit_status::CommitStatus;
use crate::model::ids::{CommitId, RepositoryName};
use crate::model::state::RevisionState;
use crate::store::Store;
use crate::testing::interleaved::checks::{Held, Invariant, Violation};
use crate::testing::interleaved::daemon::Surroundings;
use crate::testing::interleaved::people::now;

/// More than any story pushes.
const REVISIONS: u32 = 1_000;

/// A host shows what a rendering says that knows of nothing which was written before; and what it shows beside that is up
/// to date, unless it is about attempts that were `pruned` since. With `another_store` than before, heads are shown anew. Of what
/// is still `unwritten` nothing is said.
pub(super) fn fresh(
    store: &dyn Store,
    around: &Surroundings,
    another_store: bool,
    pruned: bool,
    unwritten: &BTreeSet<(RepositoryName, CommitId)>,
) -> Held {
    let is_head = |revision: &RevisionState| {
        around.hosting.head(&revision.repository).is_some_and(|head| head.id == revision.commit)
    };
    let pruned = another_store || pruned;
    for revision in revisions(store, around)?.into_iter().filter(|revision| !another_store || is_head(revision)) {
        let RevisionState { repository, commit, .. } = &revision;
        if unwritten.contains(&(repository.clone(), commit.clone())) {
            continue;
        }
        let shown = by_context(around.hosting.statuses(repository, commit));
        let known = if pruned { BTreeSet::new() } else { shown.keys().cloned().collect() };
        let rendered = by_context(now(reporter::rendering(store, repository, commit, &known))?.statuses);
        let contexts = rendered.keys().chain(shown.keys().filter(|_| !pruned));
        for context in contexts {
            let told = |status| if pruned { without_the_newer(told(status)) } else { told(status) };
            let (says, shows) = (rendered.get(context).map(told), shown.get(context).map(told));
            if says != shows {
                let what = format!("{context} on {} shows {shows:?}, and should {says:?}", commit.short());
                return Ok(Err(Violation::new(Invariant::StatusesAreFresh, what)));
            }
        }
    }
    Ok(Ok(()))
}

/// Nothing that this life of the store wrote on a commit that a newer one replaced says that something is still to come.
/// One that is applied although a newer one was refused may wait on, like the head, but not for a stage that nothing
/// brings to pass any more.
pub(super) fn ended(store: &dyn Store, around: &Surroundings) -> Held {
    for revision in revisions(store, around)? {
        let RevisionState { repository, commit, .. } = &revision;
        let state = now(store.repository(repository))?.map(|state| state.value);
        let stands = state.as_ref().is_some_and(|state| state.applied.as_ref() == Some(commit));
        let is_head = around.hosting.head(repository).is_some_and(|head| &head.id == commit);
        if state.is_some_and(|state| state.down) || !now(store.holds())?.whole()?.is_empty() {
            continue;
        }
        let written = now(store.posted(repository, &"notes".into(), commit))?;
        let is_ours = |status: &CommitStatus| {
            written.iter().any(|posted| posted.status.context == status.context && posted.status.reads_like(status))
        };
        let shown = around.hosting.statuses(repository, commit).into_iter().filter(is_ours);
        let open: Vec<CommitStatus> = shown.filter(|status| !status.state.is_final()).collect();
        let in_vain = open.iter().all(|status| status.description.ends_with(" to pass"));
        if let Some(open) = open.first().filter(|_| in_vain || !is_head && !stands) {
            let what = format!("{} on {} stays {}", open.context, short(commit), told(open));
            return Ok(Err(Violation::new(Invariant::StatusesEnd, what)));
        }
    }
    Ok(Ok(()))
}

fn revisions(store: &dyn Store, around: &Surroundings) -> Result<Vec<RevisionState>> {
    let mut all = Vec::new();
    for name in around.hosting.repositories() {
        all.extend(now(store.revisions(&name, REVISIONS))?);
    }
    Ok(all)
}

fn by_context(statuses: Vec<CommitStatus>) -> BTreeMap<String, CommitStatus> {
    statuses.into_iter().map(|status| (status.context.clone(), status)).collect()
}

fn told(status: &CommitStatus) -> String {
    format!("{}: {}", status.state, status.description)
}

/// Which newer revision has taken its place is another one once that is forgotten.
fn without_the_newer(told: String) -> String {
    const BY: &str = "superseded by ";
    told.split_once(BY).map(|(before, _)| format!("{before}{BY}")).unwrap_or(told)
}

fn short(commit: &CommitId) -> &str {
    commit.short()
}
