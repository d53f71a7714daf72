//! What a pull request brings, read as what its environment declares: a repository that is watched by what its host says, not by
//! a branch.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use crate::control::watched::{READING, TreeFiles, Watched};
use crate::control::watcher::Watcher;
use crate::engine::sync::{self as decision, Head};
use crate::error::{Failure, Result};
use crate::executor::sync::{Read, Revisions};
use crate::manifest::environment::{EnvironmentNames, declared, seed};
use crate::manifest::{self, Options};
use crate::model::environment::{Environment, Presence};
use crate::model::ids::{CommitId, Namespace, ProjectName, RepositoryName, StageName};
use crate::model::state::RepositoryState;
use crate::store::ReadStore;

/// The environment of a pull request as a repository of its own.
#[derive(Clone, Debug)]
pub(super) struct EnvironmentRevisions {
    watched: Arc<Watched>,
    /// The repository that it is.
    pub(super) name: RepositoryName,
    names: EnvironmentNames,
    template: StageName,
    is_fork: bool,
    /// What the pull request brings, as far as it is here.
    head: Option<CommitId>,
}

impl EnvironmentRevisions {
    /// The environment of a pull request of a watched repository, whose project is `project`.
    pub(super) fn new(watched: Arc<Watched>, project: &ProjectName, one: &Environment) -> Self {
        let name = watched.name.environment(one.number);
        let (names, template) = (EnvironmentNames::new(project, one.number), one.template.clone());
        Self { watched, name, names, template, is_fork: one.is_fork, head: None }
    }

    /// An environment that is there, by its name; nothing, if there is none.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(super) async fn find(
        watchers: &BTreeMap<RepositoryName, Watcher>,
        store: &dyn ReadStore,
        name: &RepositoryName,
    ) -> Result<Option<Self>> {
        let watched = name.watched();
        let Some((watcher, number)) = watchers.get(&watched).zip(name.pull()) else { return Ok(None) };
        let Some(state) = store.repository(&watched).await?.map(|state| state.value) else { return Ok(None) };
        let found = state.environments.iter().find(|one| one.number == number && one.presence == Presence::There);
        let found = found.zip(state.project.as_ref());
        Ok(found.map(|(one, project)| Self::new(watcher.watched.clone(), project, one)))
    }

    /// Where it lives.
    pub(super) fn namespace(&self) -> Namespace {
        Namespace::new(self.names.project.as_str())
    }

    /// Its only stage.
    pub(super) fn stage(&self) -> &StageName {
        &self.names.stage
    }

    /// The same, at what the pull request brings, which is here.
    pub(super) fn at_head(&self, head: CommitId) -> Self {
        Self { head: Some(head), ..self.clone() }
    }

    /// What there is to know of it before anything was read.
    pub(super) fn unknown(&self) -> RepositoryState {
        let decision::Watched { name, url, branch, .. } = self.watched();
        RepositoryState::new(name, url, branch)
    }
}

#[async_trait]
impl Revisions for EnvironmentRevisions {
    fn watched(&self) -> decision::Watched {
        decision::Watched {
            name: self.name.clone(),
            url: self.watched.remote.url.to_string(),
            branch: self.names.stage.to_string(),
            rewrite_allowed: true,
        }
    }

    async fn head(&self, seen: Option<&CommitId>, _applied: Option<&CommitId>) -> Result<Option<Read>> {
        let unknown = || Failure::transient(format!("what `{}` brings was not read yet", self.name));
        let head = self.head.as_ref().ok_or_else(unknown)?;
        if Some(head) == seen { Ok(None) } else { self.at(head).await.map(Some) }
    }

    async fn at(&self, commit: &CommitId) -> Result<Read> {
        let (own, commit) = (self.clone(), commit.clone());
        self.watched.ask(READING, move |watched| watched.read_environment(&own, commit)).await
    }
}

impl Watched {
    /// What a commit of a pull request declares for its environment.
    fn read_environment(&self, own: &EnvironmentRevisions, commit: CommitId) -> Result<Read> {
        let read = || {
            let repository = self.mirror.open()?;
            let mirror = Some(&*self.mirror);
            let files = TreeFiles { tree: repository.tree(&commit)?, limit: self.limits.manifest, mirror };
            let options = Options { seed: seed(&self.options.seed, &own.name), ..self.options.clone() };
            let snapshot = manifest::Snapshot::read(&files, &options);
            let (Read { head, problems }, _) = self.read_in(&repository, commit.clone(), true, snapshot)?;
            let declared = declared(head.declared, &own.template, &own.names, own.is_fork);
            Ok(Read { head: Head { declared, ..head }, problems })
        };
        read().map_err(|failure| self.mirror.explained(failure))
    }
}
