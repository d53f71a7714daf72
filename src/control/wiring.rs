//! Where adapters meet: each of these lets one room use another through the trait that it asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use crate::clock::Clock;
use crate::control::watcher::Watcher;
use crate::error::{Failure, Result};
use crate::forge::plain::{NoteLine, Notes};
use crate::forge::secret::Secret;
use crate::model::ids::{Namespace, RepositoryName};
use crate::model::pod::SecurityContext;
use crate::runtime::local::image::Images;
use crate::runtime::local::launchable::{Launchables, TreeExport};
use crate::runtime::local::service::{self, Services};
use crate::runtime::local::service_table::{PodEndpoint, ServiceTable};
use crate::runtime::{ImageUse, ServiceAddress, ServiceSpec};
use crate::server::webhook::{HookTarget, Hooks};
use crate::source::{self, Mirror, ObjectId, Remote, Signature};

/// Who writes notes; the address need not exist.
const AUTHOR: (&str, &str) = ("launchway", "launchway@localhost");

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
        let (name, email) = (AUTHOR.0.to_owned(), AUTHOR.1.to_owned());
        let author = Signature { name, email, at: self.clock.now() };
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
        let mirror = self.0.read().unwrap_or_else(PoisonError::into_inner).get(repository).cloned();
        let unknown =
            || Failure::stalled(format!("`git:{path}` comes from `{repository}`, which is not watched any more"));
        let repository = mirror.ok_or_else(unknown)?.open()?;
        let tree = repository.tree_by_id(ObjectId::parse(tree_id)?);
        tree.export("", into).map(|_| ())
    }
}

/// Launchables as the images of the local runtime.
#[derive(Debug)]
pub struct LaunchableImages(pub Launchables);

impl Images for LaunchableImages {
    fn prepare(&self, repository: &RepositoryName, image: &str, run_as: Option<u32>) -> Result<()> {
        self.0.prepare(repository, image, SecurityContext { run_as_user: run_as, run_as_group: None })
    }

    fn path(&self, repository: &RepositoryName, image: &str) -> Result<Option<PathBuf>> {
        self.0.path(repository, image)
    }

    fn collect_garbage(&self, keep: &[ImageUse], _used: &BTreeSet<PathBuf>) -> Result<()> {
        self.0.collect(keep)
    }
}

/// Service proxies as the services of the local runtime.
#[derive(Debug)]
pub struct ProxiedServices {
    services: Services,
    namespaces: RwLock<BTreeSet<Namespace>>,
}

impl ProxiedServices {
    /// Over proxies that may have been there before.
    pub fn new(services: Services) -> Self {
        Self { services, namespaces: RwLock::default() }
    }
}

impl ServiceTable for ProxiedServices {
    fn namespaces(&self) -> Vec<Namespace> {
        self.namespaces.read().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    fn addresses(&self, namespace: &Namespace) -> Vec<ServiceAddress> {
        self.services.list(namespace).unwrap_or_else(|failure| {
            tracing::warn!(%namespace, problem = failure.one_line(), "cannot list services");
            Vec::new()
        })
    }

    fn apply(&self, service: &ServiceSpec) -> Result<ServiceAddress> {
        self.namespaces.write().unwrap_or_else(PoisonError::into_inner).insert(service.namespace.clone());
        self.services.apply(service)
    }

    fn remove(&self, namespace: &Namespace, name: &str) -> Result<()> {
        self.services.remove(namespace, name)
    }

    fn pods_changed(&self, namespace: &Namespace, pods: &[PodEndpoint]) {
        let endpoint = |pod: &PodEndpoint| service::PodEndpoint {
            name: pod.name.to_string(),
            labels: pod.labels.clone(),
            dir: pod.dir.path().to_owned(),
        };
        let pods: Vec<service::PodEndpoint> = pods.iter().map(endpoint).collect();
        if let Err(failure) = self.services.pods_changed(namespace, &pods) {
            tracing::warn!(%namespace, problem = failure.one_line(), "cannot tell services about pods");
        }
    }
}

/// Webhooks as reasons to look.
#[derive(Debug)]
pub struct WatchedHooks {
    /// What is watched.
    pub watchers: Arc<BTreeMap<RepositoryName, Watcher>>,
}

impl Hooks for WatchedHooks {
    fn repository(&self, name: &RepositoryName) -> Option<HookTarget> {
        let watcher = self.watchers.get(name)?;
        let read = |source: &crate::config::SecretSource| match source.read() {
            Ok(secret) => Some(Secret::new(secret.reveal())),
            Err(failure) => {
                tracing::error!(repository = %name, problem = failure.one_line(), "cannot read a webhook's secret");
                None
            }
        };
        let secrets = watcher.webhook_secrets.iter().filter_map(read).collect();
        Some(HookTarget { secrets, branch: watcher.watched.remote.branch.clone(), body_limit: None })
    }

    fn look(&self, name: &RepositoryName) {
        if let Some(watcher) = self.watchers.get(name) {
            watcher.bell.ring();
        }
    }
}
