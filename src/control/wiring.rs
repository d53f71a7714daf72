//! Where adapters meet: each of these lets one room use another through the trait that it asked for.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;

use crate::clock::Clock;
use crate::control::comments::WatchedComments;
use crate::control::environment::EnvironmentRevisions;
use crate::control::reruns::WatchedReruns;
use crate::control::restoring::author;
use crate::control::watcher::Watcher;
use crate::engine::sequence::from_git;
use crate::error::{Failure, Result};
use crate::executor::declarations::Declarations;
use crate::executor::drive::Driver;
use crate::executor::sync::Revisions as _;
use crate::forge::address::RepositoryAddress;
use crate::forge::plain::{NoteLine, Notes};
use crate::forge::webhook;
use crate::model::comment::Comment;
use crate::model::git_event::GitEvent;
use crate::model::ids::{CommitId, RepositoryName};
use crate::model::project::Project;
use crate::model::rerun::Rerun;
use crate::runtime::local::launchable::TreeExport;
use crate::secret::SecretSource;
use crate::server::webhook::{HookTarget, Hooks};
use crate::source::{self, Mirror, ObjectId, Remote};
use crate::store::Store;
use crate::telemetry::Metrics;

/// Git notes of one watched repository.
pub struct MirrorNotes {
    /// Its objects.
    pub mirror: Arc<Mirror>,
    /// Where they are pushed to.
    pub remote: Remote,
    /// The time of the notes' commits.
    pub clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for MirrorNotes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MirrorNotes").field("remote", &self.remote).finish_non_exhaustive()
    }
}

impl Notes for MirrorNotes {
    fn write(&self, lines: Vec<NoteLine>) -> Result<()> {
        let author = author(self.clock.now());
        let line = |line: NoteLine| source::NoteLine { commit: line.commit, context: line.context, line: line.line };
        let lines: Vec<source::NoteLine> = lines.into_iter().map(line).collect();
        self.mirror.write_notes(&self.remote, &lines, &author)
    }
}

/// The trees of all watched repositories, by name.
#[derive(Debug, Default)]
pub struct MirrorTrees(RwLock<BTreeMap<RepositoryName, Arc<Mirror>>>);

impl MirrorTrees {
    /// From now on, `git:` images of `repository` come from `mirror`.
    pub fn add(&self, repository: RepositoryName, mirror: Arc<Mirror>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(repository, mirror);
    }
}

impl TreeExport for MirrorTrees {
    fn export(&self, repository: &RepositoryName, tree_id: &str, path: &str, into: &Path) -> Result<()> {
        let mirror = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&repository.watched()).cloned();
        let unknown =
            || Failure::stalled(format!("`git:{path}` comes from `{repository}`, which is not watched any more"));
        let mirror = mirror.ok_or_else(unknown)?;
        let tree_id = ObjectId::parse(tree_id)?;
        let export = || mirror.open()?.tree_by_id(tree_id).export("", into).map(drop);
        export().map_err(|failure| mirror.explained(failure))
    }
}

/// What the watched repositories declare; what is not watched any more, or cannot be read, is left alone.
#[derive(Clone)]
pub struct WatchedDeclarations {
    /// What is watched.
    pub watchers: Arc<BTreeMap<RepositoryName, Watcher>>,
    /// Knows environments.
    pub store: Arc<dyn Store>,
}

impl std::fmt::Debug for WatchedDeclarations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WatchedDeclarations").field("watchers", &self.watchers.len()).finish_non_exhaustive()
    }
}

#[async_trait]
impl Declarations for WatchedDeclarations {
    async fn project(&self, repository: &RepositoryName, commit: &CommitId) -> Result<Option<Arc<Project>>> {
        let read = match (self.watchers.get(repository), repository.pull()) {
            (Some(watcher), _) => watcher.watched.project_at(commit).await,
            (None, Some(_)) => {
                let found = EnvironmentRevisions::find(&self.watchers, &*self.store, repository).await?;
                let Some(environment) = found else { return Ok(None) };
                environment.at(commit).await.map(|read| read.head.declared.ok())
            }
            (None, None) => return Ok(None),
        };
        Ok(read.unwrap_or_else(|failure| {
            let problem = failure.one_line();
            tracing::warn!(%repository, problem, "cannot read what is applied; what no record names serves on");
            None
        }))
    }
}

/// Webhooks as requests for syncs.
#[derive(Debug)]
pub struct WatchedHooks {
    /// What is watched.
    pub watchers: Arc<BTreeMap<RepositoryName, Watcher>>,
    /// Takes what people ask for.
    pub comments: WatchedComments,
    /// Does again what people ask for again.
    pub reruns: WatchedReruns,
    /// Notes what they tell of.
    pub driver: Driver,
    /// Counts their answers.
    pub metrics: Arc<Metrics>,
}

#[async_trait]
impl Hooks for WatchedHooks {
    fn repository(&self, name: &RepositoryName) -> Option<HookTarget> {
        let watcher = self.watchers.get(name)?;
        let read = |source: &SecretSource| match source.read() {
            Ok(secret) => Some(secret),
            Err(failure) => {
                tracing::error!(repository = %name, problem = failure.one_line(), "cannot read a webhook's secret");
                None
            }
        };
        let secrets = watcher.webhook_secrets.iter().filter_map(read).collect();
        Some(HookTarget {
            secrets,
            place: watcher.place.clone(),
            branch: watcher.watched.branch(),
            pulls: watcher.previewed().is_some(),
            commands: watcher.commands,
            app: watcher.host.as_ref().and_then(|host| host.app),
            body_limit: None,
        })
    }

    fn beside(&self, name: &RepositoryName, path: &str) -> Option<RepositoryName> {
        let opened = |watcher: &Watcher| {
            let host = watcher.host.as_ref()?;
            let RepositoryAddress { base, owner, name } = &host.repository;
            Some(((host.app?, base.clone()), format!("{owner}/{name}")))
        };
        let (app, own) = opened(self.watchers.get(name)?)?;
        let is_it = |watcher: &Watcher| {
            opened(watcher).is_some_and(|(other, of_it)| other == app && of_it.eq_ignore_ascii_case(path))
        };
        if own.eq_ignore_ascii_case(path) {
            return None;
        }
        self.watchers.iter().find(|(_, watcher)| is_it(watcher)).map(|(name, _)| name.clone())
    }

    fn sync(&self, name: &RepositoryName) {
        if let Some(watcher) = self.watchers.get(name) {
            watcher.requests.request();
        }
    }

    async fn asked(&self, name: &RepositoryName, from: webhook::Host, comment: Comment) -> Result<bool> {
        self.comments.take(name, from, comment).await
    }

    async fn rerun(&self, name: &RepositoryName, from: webhook::Host, rerun: &Rerun) -> Result<()> {
        self.reruns.take(name, from, rerun).await
    }

    async fn happened(&self, name: &RepositoryName, events: &[GitEvent]) -> Result<(), String> {
        let (mut is_noted, mut why_not) = (false, String::new());
        for event in events {
            let noted = self.driver.decide(|transition| from_git::note(transition, name, event)).await;
            match noted.unwrap_or_else(|failure| Err(format!("it cannot be noted: {}", failure.one_line()))) {
                Ok(()) => is_noted = true,
                Err(why) => why_not = why,
            }
        }
        if is_noted { Ok(()) } else { Err(why_not) }
    }

    fn answered(&self, name: &RepositoryName, answer: &'static str) {
        self.metrics.webhook(name, answer);
    }
}
