//! The simulated hosting as the repositories that a daemon syncs, in place of Git.

use std::sync::Arc;

use async_trait::async_trait;

use crate::engine::sync::{Head, Watched};
use crate::error::{Failure, Result};
use crate::executor::applied::Stages;
use crate::executor::drive::Driver;
use crate::executor::sync::{self, Read, Revisions};
use crate::model::hold::Release;
use crate::model::ids::{CommitId, RepositoryName};
use crate::model::run::{Run, SequenceRun};
use crate::model::state::RevisionResult;
use crate::model::transaction::{Transaction, Write};
use crate::testing::interleaved::hosting::{Commit, Hosting};

/// A repository that is hosted.
#[derive(Clone, Debug)]
pub(super) struct Hosted {
    pub(super) hosting: Hosting,
    pub(super) name: RepositoryName,
}

#[async_trait]
impl Revisions for Hosted {
    fn watched(&self) -> Watched {
        let (name, branch) = (self.name.clone(), "main".to_owned());
        Watched { url: format!("file:///{name}"), name, branch, rewrite_allowed: false }
    }

    async fn head(&self, seen: Option<&CommitId>, applied: Option<&CommitId>) -> Result<Option<Read>> {
        let head = self.hosting.head_as_read(&self.name).filter(|head| Some(&head.id) != seen);
        Ok(head.map(|head| read(&head, self.hosting.descends(&self.name, &head, applied))))
    }

    async fn at(&self, commit: &CommitId) -> Result<Read> {
        let found = self.hosting.commits(&self.name).into_iter().find(|known| known.id == *commit);
        let found = found.ok_or_else(|| Failure::stalled(format!("`{}` has no {commit}", self.name)))?;
        Ok(read(&found, true))
    }
}

fn read(commit: &Commit, descends: bool) -> Read {
    let declared = match commit.is_broken {
        true => Err(vec!["web.yaml:1: this is no YAML".to_owned()]),
        false => Ok(commit.project.clone()),
    };
    let (subject, lifted, warnings) = (format!("push {}", commit.id.short()), Vec::new(), Vec::new());
    Read {
        head: Head { commit: commit.id.clone(), subject, descends, declared, lifted, warnings },
        problems: Vec::new(),
    }
}

/// Whether a head that was not applied would be, if it were synced again.
pub(super) async fn would_be_planned(
    driver: &Driver,
    hosted: &Hosted,
    head: &Commit,
    applied: Option<&CommitId>,
) -> Result<bool> {
    let descends = hosted.hosting.descends(&hosted.name, head, applied);
    let (result, ..) = foresee(driver, hosted, read(head, descends)).await?;
    Ok(matches!(result, RevisionResult::Planned(_)))
}

async fn foresee(driver: &Driver, hosted: &Hosted, read: Read) -> Result<(RevisionResult, Transaction, Stages)> {
    sync::foresee(driver, hosted, read, &Release::default(), |_| Ok(())).await
}

/// The runs that a sync would start now if the head were pushed again; nothing if it would be refused.
pub(super) async fn would_start(driver: &Driver, hosted: &Hosted, commit: &Commit) -> Result<Vec<SequenceRun>> {
    let (result, transaction, _) = foresee(driver, hosted, read(commit, true)).await?;
    if !matches!(result, RevisionResult::Planned(_)) {
        return Ok(Vec::new());
    }
    let started = |write: Write| match write {
        Write::Run(run) if run.version == 0 => match Arc::unwrap_or_clone(run.value) {
            Run::Sequence(run) => Some(*run),
            Run::Deployment(_) => None,
        },
        _ => None,
    };
    Ok(transaction.writes.into_iter().filter_map(started).collect())
}
