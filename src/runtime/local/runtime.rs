//! [`LocalRuntime`]: the runtime's port on this machine.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;

use async_trait::async_trait;
use tokio::sync::broadcast;

use crate::clock::Clock;
use crate::error::{Context, Failure, Result};
use crate::model::ids::{ConfigKey, Incarnation, Namespace, RepositoryName};
use crate::model::pod::{ObservedPod, Origin, Pod, PodId, PodOwner, PodResult, ReplicaSet, references};
use crate::model::time::Timestamp;
use crate::runtime::exec::{ExecCommand, ExecSession};
use crate::runtime::local::host::allow::{Allow, HOST_IMAGE};
use crate::runtime::local::host::files::{self, Durability};
use crate::runtime::local::host::isolation::outermost;
use crate::runtime::local::host::program::Program;
use crate::runtime::local::launchable::images::Images;
use crate::runtime::local::pod::follow::{self, Follower};
use crate::runtime::local::pod::lines::Kept;
use crate::runtime::local::pod::logs::LogLimits;
use crate::runtime::local::pod::lost::Lost;
use crate::runtime::local::pod::paths::{PodDir, Root};
use crate::runtime::local::pod::record::PodRecord;
use crate::runtime::local::pod::start::{self, InUse, Surroundings};
use crate::runtime::local::pod::status::PodStatus;
use crate::runtime::local::pod::table::{Entry, Table};
use crate::runtime::local::pod::{exec, images, result};
use crate::runtime::local::service::table::ServiceTable;
use crate::runtime::local::shim::changes::ChangesFolder;
use crate::runtime::local::shim::watch::ShimWatch;
use crate::runtime::local::shim::{spawn, wake};
use crate::runtime::logs::{LogQuery, LogStream};
use crate::runtime::{ImageUse, Objects, Runtime, RuntimeChange, ServiceAddress, ServiceSpec};

/// What the local runtime is made of.
pub struct LocalOptions {
    /// Its folder.
    pub root: PathBuf,
    /// The folders and files of which pods see nothing but what is their own: the daemon's, in which `root` is, and its
    /// secrets elsewhere.
    pub hidden: Vec<PathBuf>,
    /// The life of the store that asks for pods.
    pub incarnation: Incarnation,
    /// The program that shims run; services have it too.
    pub program: Arc<Program>,
    /// Where to find pods' commands (`PATH`).
    pub search_path: String,
    /// How much of containers' output is kept.
    pub logs: LogLimits,
    /// The socket of the journal to which it goes too.
    pub journal: Option<PathBuf>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The images.
    pub images: Arc<dyn Images>,
    /// The services.
    pub services: Arc<dyn ServiceTable>,
    /// Where changes are announced; images and services have it too.
    pub changes: broadcast::Sender<RuntimeChange>,
}

impl fmt::Debug for LocalOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalOptions").field("root", &self.root).finish_non_exhaustive()
    }
}

/// Pods as processes of this machine.
#[derive(Debug)]
pub struct LocalRuntime {
    inner: Arc<Inner>,
}

/// What is shared with the tasks that watch.
#[derive(Debug)]
pub(super) struct Inner {
    root: Root,
    pub(super) options: LocalOptions,
    allow: RwLock<BTreeMap<RepositoryName, Allow>>,
    table: Mutex<Table>,
    starting: Mutex<()>,
    shims: Arc<ShimWatch>,
    /// What is heard of shims; nothing before the runtime is open.
    changes: Mutex<Option<ChangesFolder>>,
}

impl LocalRuntime {
    /// Takes over what is in the folder: pods that run go on, pods whose shim died are recorded as such.
    pub fn open(options: LocalOptions) -> Result<Self> {
        let made = std::fs::create_dir_all(&options.root).and_then(|()| options.root.canonicalize());
        let root = Root::new(made.or_stalled(|| format!("cannot use `{}`", options.root.display()))?);
        // Pods of other users get through to what is their own, and list nothing.
        let open = [root.pods(), root.all_claims(), root.api()].map(|folder| (folder, 0o711));
        for (folder, mode) in open.into_iter().chain([(root.trash(), 0o700)]) {
            files::make_folder(&folder, mode).or_stalled(|| format!("cannot make `{}`", folder.display()))?;
        }
        let (allow, table, starting, changes) = Default::default();
        let shims = Arc::new(ShimWatch::new().or_transient(|| "cannot watch processes".to_owned())?);
        let inner = Arc::new(Inner { root, options, allow, table, starting, shims: Arc::clone(&shims), changes });
        let runtime = Arc::downgrade(&inner);
        *inner.changes_folder() = Some(ChangesFolder::watch(inner.root.changes(), &runtime)?);
        shims.watch_logs(); // of what a user may have of these, the folder needs one first
        inner.take_over()?;
        shims.start(runtime)?;
        Ok(Self { inner })
    }

    /// Says what a repository's pods may use of the machine; nothing unless said.
    pub fn allow(&self, repository: RepositoryName, allow: Allow) {
        self.inner.allow.write().unwrap_or_else(PoisonError::into_inner).insert(repository, allow);
    }

    /// Runs something that touches the disk where it holds up nobody.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(Arc<Inner>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let inner = Arc::clone(&self.inner);
        tokio::task::spawn_blocking(move || work(inner))
            .await
            .or_transient(|| "a task of the runtime failed".to_owned())?
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shims.wake();
    }
}

impl Inner {
    /// The pods that are known.
    pub(super) fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn announce(&self, change: RuntimeChange) {
        // Nobody may be listening.
        self.options.changes.send(change).ok();
    }

    /// Reads all pods that are in the folder, and sees that each has a shim or an end.
    fn take_over(&self) -> Result<()> {
        if let Err(error) = files::empty_folder(&self.root.trash()) {
            tracing::warn!(%error, "the trash is not empty");
        }
        for (id, dir) in self.root.all_pods().or_transient(|| "cannot list the pods".to_owned())? {
            match Entry::read(&dir, &self.options.incarnation) {
                Ok(Some(entry)) => self.table().insert(id, entry),
                // An interrupted start left it, or it is damaged.
                Ok(None) | Err(_) => self.table().lose(id, Lost::new(dir, self.now())),
            }
        }
        self.keep_shims();
        self.mend_at_start();
        self.tell_all_services()
    }

    /// The time.
    pub(super) fn now(&self) -> Timestamp {
        self.options.clock.now()
    }

    fn changes_folder(&self) -> MutexGuard<'_, Option<ChangesFolder>> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sees that what shims write is heard of; says whether some of it may not have been.
    pub(super) fn keep_watching(self: &Arc<Self>) -> bool {
        let mut changes = self.changes_folder();
        let again = changes.as_mut().map_or(Ok(false), |changes| changes.watch_again(&Arc::downgrade(self)));
        again.unwrap_or_else(|failure| {
            tracing::error!(failure = failure.one_line(), "changes of pods are not heard of");
            true
        })
    }

    /// Sees that every pod that did not end has a shim, and that what shims wrote can be read.
    pub(super) fn keep_shims(&self) {
        let ids = self.table().without_shim();
        for id in ids {
            if let Err(failure) = self.keep_shim(&id) {
                tracing::warn!(pod = %id, failure = failure.one_line(), "no shim");
            }
        }
        self.mend();
    }

    /// Sees that a pod that did not end has a living shim, and watches it.
    pub(super) fn keep_shim(&self, id: &PodId) -> Result<()> {
        let mut table = self.table();
        let Some(entry) = table.get(id).filter(|entry| entry.lacks_shim()) else { return Ok(()) };
        let dir = entry.dir.clone();
        let known = entry.status().and_then(|status| status.shim);
        let shim = match known.filter(|shim| shim.lives()) {
            Some(shim) => shim,
            None => {
                table.change(id, |entry| entry.shim_started = Some(Instant::now()));
                // One lives that has not said so yet, or whose word was lost: it says so again.
                if files::is_locked(&dir.lock()).unwrap_or(false) {
                    return wake::wake(&dir).or_transient(|| format!("cannot wake the shim of `{id}`"));
                }
                spawn::spawn(&self.options.program, &dir)?
            }
        };
        table.change(id, |entry| entry.watched = true);
        drop(table);
        self.shims.add(id.clone(), shim, &dir.shim_log());
        Ok(())
    }

    fn check(&self, pod: &Pod) -> Result<Allow> {
        let allow = self.allow.read().unwrap_or_else(PoisonError::into_inner);
        let allow = allow.get(&pod.repository.watched()).cloned().unwrap_or_default();
        allow.check(pod).map(|()| allow)
    }

    fn prepare(&self, pod: &Pod) -> Result<()> {
        self.check(pod)?;
        images::prepare(pod, &*self.options.images)
    }

    /// Starts a pod whose record says that it was asked for at `created_at`.
    pub(super) fn start(&self, pod: &Pod, objects: &Objects, created_at: Timestamp) -> Result<()> {
        let dir = self.root.pod(&pod.id)?;
        if matches!(pod.owner, PodOwner::Run { .. }) {
            self.make_room(pod)?;
        }
        let one_at_a_time = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        if self.table().get(&pod.id).is_some() {
            return self.keep_shim(&pod.id);
        }
        if let Some(missing) = references::missing(pod, objects) {
            return Err(Failure::waiting(missing));
        }
        if dir.record().exists() || self.table().lost(&pod.id).is_some() {
            self.clear(&pod.id, &dir)?;
            if self.table().get(&pod.id).is_some() {
                return Ok(());
            }
        }
        let in_use =
            InUse { address: &|address| self.table().has_address(address), port: &|port| self.table().has_port(port) };
        let record = start::write_record(pod, objects, &dir, self.surroundings(pod, created_at)?, &in_use)?;
        self.table().insert(pod.id.clone(), Entry::new(&record, dir, None, (pod.owner.clone(), Origin::Own)));
        drop(one_at_a_time);
        self.tell_services(&pod.id);
        self.keep_shim(&pod.id)
    }

    fn surroundings(&self, pod: &Pod, created_at: Timestamp) -> Result<Surroundings> {
        let allow = self.check(pod)?;
        let (options, namespace) = (&self.options, &pod.id.namespace);
        Ok(Surroundings {
            created_at,
            incarnation: options.incarnation.clone(),
            images: self.images(pod)?,
            services: options.services.addresses(namespace)?,
            search_path: options.search_path.clone(),
            logs: options.logs,
            journal: options.journal.clone(),
            claims: self.root.claims(namespace)?,
            host_paths: allow.host_paths,
            hidden: outermost(options.hidden.iter().chain([&options.root])),
            api: pod.deploys.then(|| self.root.api_in_reach()).transpose()?,
            change: self.root.change(&pod.id),
        })
    }

    fn images(&self, pod: &Pod) -> Result<BTreeMap<String, PathBuf>> {
        let spec = &pod.template.spec;
        let mut found = BTreeMap::new();
        for container in spec.init_containers.iter().chain(&spec.containers).filter(|c| c.image != HOST_IMAGE) {
            if let Some(path) = self.options.images.path(&pod.repository, &container.image)? {
                found.insert(container.name.clone(), path);
            }
        }
        Ok(found)
    }

    /// Asks a pod to end.
    pub(super) fn stop(&self, id: &PodId) -> Result<()> {
        let Some(dir) = self.table().get(id).filter(|entry| !entry.ended()).map(|entry| entry.dir.clone()) else {
            return Ok(());
        };
        files::write_whole(&dir.stop(), dir.path(), b"", Durability::Durable)
            .and_then(|()| wake::wake(&dir))
            .or_transient(|| format!("cannot ask pod `{id}` to end"))?;
        self.table().change(id, |entry| entry.stop_requested = true);
        Ok(())
    }

    /// Forgets a pod that ended.
    pub(super) fn remove(&self, id: &PodId) -> Result<()> {
        self.remove_if(id, |_| true)
    }

    /// Forgets a pod that ended, if it is the one that is meant: a name may be another pod's by now.
    fn remove_if(&self, id: &PodId, is_meant: impl Fn(&Entry) -> bool) -> Result<()> {
        self.refresh(id);
        let leave = |leaves: bool| {
            let mut table = self.table();
            let left = table.change(id, |entry| {
                let goes = entry.ended() && is_meant(entry);
                entry.leaves = leaves && goes;
                goes.then(|| (entry.dir.clone(), entry.created_at))
            });
            left.flatten()
        };
        let Some((dir, created_at)) = leave(true) else { return Ok(()) };
        self.throw_away(id, &dir, created_at).inspect_err(|_| drop(leave(false)))?;
        self.table().remove(id);
        self.tell_services(id);
        Ok(())
    }

    /// Deletes the folder of a pod of which nothing runs any more.
    pub(super) fn throw_away(&self, id: &PodId, dir: &PodDir, created_at: Timestamp) -> Result<()> {
        let wrong = || format!("cannot remove pod `{id}`");
        let trash = self.root.trash().join(format!("{}~{}~{}", id.namespace, id.name, created_at.0));
        // A rename, so that nobody ever sees half a pod.
        std::fs::rename(dir.path(), &trash).or_transient(wrong)?;
        files::remove_if_there(&self.root.change(id)).or_transient(wrong)?;
        if let Err(error) = files::remove_folder_if_there(&trash) {
            tracing::warn!(pod = %id, %error, "a part of the pod's folder cannot be removed");
        }
        Ok(())
    }

    fn pod_dir(&self, id: &PodId) -> Result<PodDir> {
        let dir = self.table().get(id).map(|entry| entry.dir.clone());
        dir.ok_or_else(|| Failure::stalled(format!("there is no pod `{id}`")))
    }

    pub(super) fn record(&self, id: &PodId) -> Result<(PodDir, PodRecord)> {
        let dir = self.pod_dir(id)?;
        let record = PodRecord::read(&dir)?.ok_or_else(|| Failure::stalled(format!("there is no pod `{id}`")))?;
        Ok((dir, record))
    }

    /// The record of a pod whose commands were started and did not all end.
    fn running(&self, id: &PodId) -> Result<(PodDir, PodRecord)> {
        let ended = self.table().get(id).and_then(|entry| entry.status().map(PodStatus::ended));
        match ended {
            Some(true) => Err(Failure::stalled(format!("pod `{id}` has ended"))),
            None => Err(Failure::waiting(format!("pod `{id}` does not run yet"))),
            Some(false) => self.record(id),
        }
    }

    fn logs(&self, id: &PodId, query: &LogQuery) -> Result<Vec<Follower>> {
        let (dir, record) = self.record(id)?;
        let status = self.table().get(id).and_then(|entry| entry.status().cloned());
        let kept = Kept::asked_for(&dir, &record, status.as_ref(), query)?;
        let followers = kept.iter().map(|kept| Follower::new(kept, query)).collect::<io::Result<_>>();
        followers.or_transient(|| format!("cannot read the logs of pod `{id}`"))
    }
}

#[async_trait]
impl Runtime for LocalRuntime {
    async fn prepare(&self, pod: &Pod) -> Result<()> {
        let pod = pod.clone();
        self.blocking(move |inner| inner.prepare(&pod)).await
    }

    async fn forget_failures(&self, pod: &Pod) -> Result<()> {
        let pod = pod.clone();
        self.blocking(move |inner| {
            let spec = &pod.template.spec;
            let images = spec.init_containers.iter().chain(&spec.containers).map(|container| &container.image);
            images.into_iter().try_for_each(|image| inner.options.images.forget_failure(&pod.repository, image))
        })
        .await
    }

    async fn scale(&self, set: &ReplicaSet, living: u32, objects: &Objects) -> Result<Option<Timestamp>> {
        let (set, objects) = (set.clone(), objects.clone());
        self.blocking(move |inner| inner.scale(&set, living, &objects)).await
    }

    async fn start_pod(&self, pod: &Pod, objects: &Objects) -> Result<()> {
        let (pod, objects) = (pod.clone(), objects.clone());
        self.blocking(move |inner| inner.start(&pod, &objects, inner.now())).await
    }

    async fn adopt(&self, pod: &PodId, version: u32) -> Result<()> {
        let pod = pod.clone();
        self.blocking(move |inner| inner.adopt(&pod, version)).await
    }

    async fn stop_pod(&self, pod: &PodId) -> Result<()> {
        let pod = pod.clone();
        self.blocking(move |inner| inner.stop(&pod)).await
    }

    async fn remove_pod(&self, pod: &ObservedPod) -> Result<()> {
        let (id, owner, created_at) = (pod.id.clone(), pod.owner.clone(), pod.created_at);
        let is_seen = move |entry: &Entry| entry.owner == owner && entry.created_at == created_at;
        self.blocking(move |inner| inner.remove_if(&id, is_seen)).await
    }

    async fn result(&self, pod: &PodId) -> Result<Option<PodResult>> {
        let pod = pod.clone();
        self.blocking(move |inner| result::kept(&inner.pod_dir(&pod)?)).await
    }

    async fn observe(&self, namespace: &Namespace) -> Result<Vec<ObservedPod>> {
        Ok(self.inner.table().observe(namespace))
    }

    async fn observe_config(&self, namespace: &Namespace, config: &ConfigKey) -> Result<Vec<ObservedPod>> {
        Ok(self.inner.table().observe_config(namespace, config))
    }

    async fn observe_selected(&self, service: &ServiceSpec) -> Result<Vec<ObservedPod>> {
        let service = service.clone();
        self.blocking(move |inner| Ok(inner.observe_selected(&service))).await
    }

    async fn observe_pod(&self, pod: &PodId) -> Result<Option<ObservedPod>> {
        Ok(self.inner.table().observe_pod(pod))
    }

    async fn has_strangers(&self, namespace: &Namespace) -> Result<bool> {
        Ok(self.inner.table().has_strangers(namespace))
    }

    async fn pods_of_another_version(&self) -> Result<usize> {
        Ok(self.inner.table().of_another_build())
    }

    async fn namespaces(&self) -> Result<Vec<Namespace>> {
        let mut all = self.inner.table().namespaces();
        all.extend(self.inner.options.services.namespaces()?);
        Ok(all.into_iter().collect())
    }

    async fn apply_service(&self, service: &ServiceSpec) -> Result<ServiceAddress> {
        let service = service.clone();
        self.blocking(move |inner| inner.options.services.apply(&service)).await
    }

    async fn service_spec(&self, namespace: &Namespace, name: &str) -> Result<Option<ServiceSpec>> {
        let (namespace, name) = (namespace.clone(), name.to_owned());
        self.blocking(move |inner| inner.options.services.spec(&namespace, &name)).await
    }

    async fn remove_service(&self, namespace: &Namespace, name: &str) -> Result<()> {
        let (namespace, name) = (namespace.clone(), name.to_owned());
        self.blocking(move |inner| inner.options.services.remove(&namespace, &name)).await
    }

    async fn service(&self, namespace: &Namespace, name: &str) -> Result<Option<ServiceAddress>> {
        let (namespace, name) = (namespace.clone(), name.to_owned());
        self.blocking(move |inner| inner.options.services.get(&namespace, &name)).await
    }

    async fn services(&self, namespace: &Namespace) -> Result<Vec<ServiceAddress>> {
        let namespace = namespace.clone();
        self.blocking(move |inner| inner.options.services.list(&namespace)).await
    }

    async fn logs(&self, pod: &PodId, query: &LogQuery) -> Result<LogStream> {
        let (id, asked) = (pod.clone(), query.clone());
        let followers = self.blocking(move |inner| inner.logs(&id, &asked)).await?;
        if !query.follow {
            return Ok(follow::stream(followers, || true));
        }
        let (inner, id) = (Arc::clone(&self.inner), pod.clone());
        Ok(follow::stream(followers, move || inner.table().get(&id).is_none_or(Entry::ended)))
    }

    async fn exec(&self, pod: &PodId, container: Option<&str>, command: &ExecCommand) -> Result<ExecSession> {
        let id = pod.clone();
        let (dir, record) = self.blocking(move |inner| inner.running(&id)).await?;
        let first = record.pod.template.spec.containers.first().map(|container| container.name.as_str());
        let name = container.or(first).ok_or_else(|| Failure::stalled(format!("pod `{pod}` has no container")))?;
        exec::start(self.inner.options.program.path(), &dir, &record, record.existing(name)?, command)
    }

    fn changes(&self) -> broadcast::Receiver<RuntimeChange> {
        self.inner.options.changes.subscribe()
    }

    async fn collect_garbage(&self, keep: &[ImageUse], dry_run: bool) -> Result<u64> {
        let mut keep = keep.to_vec();
        self.blocking(move |inner| {
            keep.extend(inner.table().images());
            inner.options.images.collect(&keep, dry_run)
        })
        .await
    }
}
