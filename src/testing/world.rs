//! Everything put together over a pretended runtime: what a push leads to, without Git, processes or waiting.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::TryRecvError;

use crate::clock::{Clock, CountingIds, ManualClock};
use crate::control::reporter::{self, StatusReporter};
use crate::engine::sync::{Allowance, Head, Trigger, Watched};
use crate::engine::transition::Touched;
use crate::error::{Failure, Result};
use crate::executor::admission::Admission;
use crate::executor::declarations::Declarations;
use crate::executor::drive::Driver;
use crate::executor::outbox::Outbox;
use crate::executor::perform::Performer;
use crate::executor::proposals::NoProposals;
use crate::executor::reconciler::Reconciler;
use crate::executor::sync::{self, Read, Revisions, Synced};
use crate::executor::work_queue::WorkQueue;
use crate::forge::{self, StatusWriter};
use crate::indicators::NoIndicators;
use crate::manifest::digest;
use crate::model::commit_status::CommitStatus;
use crate::model::deployment_config::LifecycleHook;
use crate::model::hold::Release;
use crate::model::ids::{
    CommitId, ConfigKey, Destination, ProjectName, RepositoryName, RunId, ServiceKey, ServiceName, StageName,
    WriterName,
};
use crate::model::object::{Kind, Location, Object, ObjectKey};
use crate::model::plan::Plan;
use crate::model::project::{OnFailure, Project, StageContent, StatusDetail};
use crate::model::run::Run;
use crate::model::shipyard::Shipyard;
use crate::model::state::{ConfigState, RevisionResult};
use crate::model::time::Timestamp;
use crate::plan::build;
use crate::runtime::{Runtime, RuntimeChange};
use crate::store::sqlite::SqliteStore;
use crate::store::{RunFilter, Store, Transaction, Write};
use crate::testing::runtime::PretendedRuntime;

/// When every simulated world begins.
const BEGINNING: Timestamp = Timestamp(1_700_000_000_000);
/// More rounds than any story needs before nothing happens any more.
const ROUNDS: usize = 10_000;

/// The repository that everything is pushed to.
const REPOSITORY: &str = "repo";

/// The simulated world: a daemon in its surroundings.
#[derive(Debug)]
pub struct World {
    /// What outlives the daemon.
    pub surroundings: Surroundings,
    /// Its time; it moves only when told to.
    pub clock: Arc<ManualClock>,
    /// Its pods.
    pub runtime: Arc<PretendedRuntime>,
    /// Its daemon's driver.
    pub driver: Driver,
    admission: Admission,
    outbox: Outbox,
    reporter: Arc<StatusReporter>,
    reconciler: Reconciler,
}

/// What goes on when the daemon dies: time, pods, Git, and what was written on commits.
#[derive(Clone, Debug)]
pub struct Surroundings {
    clock: Arc<ManualClock>,
    runtime: Arc<PretendedRuntime>,
    ids: Arc<CountingIds>,
    recorded: Arc<Recorded>,
    pushes: Arc<AtomicU32>,
    pushed: Arc<Pushed>,
}

/// What a daemon hears.
pub type Heard = (broadcast::Receiver<Touched>, broadcast::Receiver<RuntimeChange>);

/// What each push declares.
#[derive(Debug, Default)]
struct Pushed(Mutex<BTreeMap<CommitId, Arc<Project>>>);

#[async_trait]
impl Declarations for Pushed {
    async fn project(&self, _repository: &RepositoryName, commit: &CommitId) -> Result<Option<Arc<Project>>> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).get(commit).cloned())
    }
}

impl Default for Surroundings {
    fn default() -> Self {
        let clock = Arc::new(ManualClock::new(BEGINNING));
        let runtime = Arc::new(PretendedRuntime::new(clock.clone()));
        let (recorded, pushes, pushed) = Default::default();
        Self { clock, runtime, ids: Arc::default(), recorded, pushes, pushed }
    }
}

/// Remembers the statuses that would have been written.
#[derive(Debug, Default)]
struct Recorded(Mutex<Vec<CommitStatus>>);

#[async_trait]
impl StatusWriter for Recorded {
    fn name(&self) -> WriterName {
        "notes".into()
    }

    async fn write(&self, statuses: &[CommitStatus]) -> Result<(), forge::Refusal> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(statuses.iter().cloned());
        Ok(())
    }

    fn batch(&self) -> usize {
        usize::MAX
    }
}

impl Surroundings {
    /// Its time, for stores that a test opens itself.
    pub fn clock(&self) -> Arc<ManualClock> {
        self.clock.clone()
    }
}

impl World {
    /// A new world whose store lives in `folder`.
    ///
    /// # Errors
    /// If the store cannot be opened.
    pub fn open(folder: &Path) -> Result<Self> {
        Self::around(folder, Surroundings::default())
    }

    /// A daemon in surroundings that were there before: it takes up what the store in `folder` holds.
    ///
    /// # Errors
    /// If the store cannot be opened.
    pub fn around(folder: &Path, surroundings: Surroundings) -> Result<Self> {
        let store = SqliteStore::open(&folder.join("store.db"), surroundings.clock.clone())?;
        Ok(Self::over(Arc::new(store), surroundings))
    }

    /// A daemon over any store.
    pub fn over(store: Arc<dyn Store>, surroundings: Surroundings) -> Self {
        let Surroundings { clock, runtime, ids, recorded, pushed, .. } = surroundings.clone();
        let runtime = Arc::new(runtime.opened_for(store.incarnation()));
        let driver = Driver::new(store.clone(), clock.clone(), ids);
        let reporter = Arc::new(StatusReporter::new(driver.clone()));
        reporter.write_to(&RepositoryName::new(REPOSITORY), vec![recorded]);
        let performer = Performer {
            driver: driver.clone(),
            runtime: runtime.clone(),
            proposals: Arc::new(NoProposals),
            indicators: Arc::new(NoIndicators),
        };
        let reconciler = Reconciler::new(driver.clone(), runtime.clone(), pushed).one_by_one();
        let (admission, outbox) = (Admission::new(driver.clone()), Outbox::new(performer));
        Self { surroundings, clock, runtime, driver, admission, outbox, reporter, reconciler }
    }

    /// A revision that declares `project` is pushed, and planned or refused; nothing has run yet.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn push(&mut self, project: &Project) -> Result<RevisionResult> {
        let number = 1 + self.surroundings.pushes.fetch_add(1, Ordering::SeqCst);
        self.sync(project, number, false).await
    }

    /// The newest revision is synced again, perhaps with more rights: to delete more than the rule lets go.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn sync_again(&mut self, project: &Project, prune_allowed: bool) -> Result<RevisionResult> {
        let number = self.pushed();
        self.sync(project, number, prune_allowed).await
    }

    /// How many revisions were pushed.
    pub fn pushed(&self) -> u32 {
        self.surroundings.pushes.load(Ordering::SeqCst)
    }

    /// Whether the daemon remembers having seen the push with this number.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn has_seen(&self, push: u32) -> Result<bool> {
        let repository = self.driver.store.repository(&RepositoryName::new(REPOSITORY)).await?;
        Ok(repository.is_some_and(|repository| repository.value.seen == Some(commit(push))))
    }

    async fn sync(&self, project: &Project, number: u32, prune_allowed: bool) -> Result<RevisionResult> {
        let head = Push { project: Arc::new(project.clone()), number };
        let commit = commit(number);
        {
            let mut pushed = self.surroundings.pushed.0.lock().unwrap_or_else(PoisonError::into_inner);
            pushed.insert(commit.clone(), head.project.clone());
        }
        if prune_allowed {
            let allowed = Allowance { prune: Some(commit), ..Allowance::default() };
            sync::allow(&self.driver, &head, &allowed).await?;
        }
        match sync::sync(&self.driver, &head, false).await? {
            Synced::Revision(_, result) => Ok(*result),
            Synced::Unchanged => Err(Failure::stalled("nothing was pushed")),
        }
    }

    /// A person starts a stage's delivery of the newest revision; says which runs.
    ///
    /// # Errors
    /// If that does not fit what is there.
    pub async fn trigger(&self, project: &Project, asked: Trigger<'_>) -> Result<Vec<RunId>> {
        let head = Push { project: Arc::new(project.clone()), number: self.pushed() };
        sync::trigger(&self.driver, &head, asked).await
    }

    /// What pushing `project` once more would come to, without doing it.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn pushed_again(&self, project: &Project) -> Result<(RevisionResult, Transaction)> {
        let head = Push { project: Arc::new(project.clone()), number: u32::MAX };
        let foreseen = sync::foresee(&self.driver, &head, head.read(), &Release::default(), |_| Ok(())).await?;
        let (result, transaction, _) = foreseen;
        Ok((result, transaction))
    }

    /// The plan of pushing `project` once more.
    ///
    /// # Errors
    /// If a rule refuses it, or the store fails.
    pub async fn plan_again(&self, project: &Project) -> Result<Plan> {
        match self.pushed_again(project).await?.0 {
            RevisionResult::Planned(plan) => Ok(*plan),
            RevisionResult::Refused { reason } => Err(Failure::stalled(reason)),
            RevisionResult::Broken { problems } => Err(Failure::stalled(problems.join("; "))),
        }
    }

    /// The services that pushing `project` once more would start something for, without doing it.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn would_start(&self, project: &Project) -> Result<Vec<ServiceKey>> {
        let (_, transaction) = self.pushed_again(project).await?;
        let started = |write: Write| match write {
            Write::Run(run) if run.version == 0 => match run.value {
                Run::Sequence(run) => Some(run.service),
                Run::Deployment(_) => None,
            },
            _ => None,
        };
        Ok(transaction.writes.into_iter().filter_map(started).collect())
    }

    /// What is there is brought one step closer to what is wanted.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn reconcile(&self) -> Result<()> {
        self.reconciler.reconcile_everything().await.map(|_| ())
    }

    /// What is announced from now on, for [`World::follow`].
    pub fn listen(&self) -> Heard {
        (self.driver.changes(), self.runtime.changes())
    }

    /// What follows from what happened while all was at rest, as a daemon hears of it: nothing is examined that nobody has
    /// announced. Says how often the reconciler was woken.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn follow(&self, (mut touched, mut changes): Heard) -> Result<usize> {
        let (mut queue, mut woken) = (WorkQueue::default(), 0);
        queue.take_in(&mut touched, &mut changes);
        loop {
            if queue.has_work() {
                self.reconciler.reconcile(&mut queue).await?;
                woken += 1;
            }
            self.outbox.settle().await?;
            queue.take_in(&mut touched, &mut changes);
            if !queue.has_work() {
                return Ok(woken);
            }
        }
    }

    /// Everything happens that can happen without time passing. Says when there is something to reconcile again.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn settle(&self) -> Result<Option<Timestamp>> {
        let mut touched = self.driver.changes();
        let mut changed = self.runtime.changes();
        for _ in 0..ROUNDS {
            self.admission.examine_everything().await?;
            self.outbox.settle().await?;
            self.reporter.settle().await?;
            let again = self.reconciler.reconcile_everything().await?;
            if !news(&mut touched) & !news(&mut changed) {
                return Ok(again);
            }
        }
        Err(Failure::stalled("the world does not come to rest"))
    }

    /// Time passes, and everything happens that was due on the way.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn pass(&self, time: Duration) -> Result<()> {
        let end = self.clock.now() + time;
        loop {
            let look = self.settle().await?;
            let (due, report) = (self.outbox.next_due().await?, self.reporter.next_due().await?);
            match due.into_iter().chain(report).chain(look).min() {
                Some(due) if due <= end => self.clock.advance_to(due),
                _ => break,
            }
        }
        self.clock.advance_to(end);
        self.settle().await.map(|_| ())
    }

    /// What is remembered of a deployment config.
    ///
    /// # Errors
    /// If the store fails or there is none.
    pub async fn config(&self, stage: &str, name: &str) -> Result<ConfigState> {
        let key = config_key(stage, name);
        let state = self.driver.store.config(&key).await?;
        state.map(|state| state.value).ok_or_else(|| Failure::stalled(format!("no `{key}`")))
    }

    /// The newest state of every status of the push with this number, as `<state> <context>: <description>`.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn statuses(&self, push: u32) -> Result<Vec<String>> {
        let repository = RepositoryName::new(REPOSITORY);
        let statuses = reporter::statuses(&*self.driver.store, &repository, &commit(push)).await?;
        let told = |status: &CommitStatus| format!("{} {}: {}", status.state, status.context, status.description);
        Ok(statuses.iter().map(told).collect())
    }

    /// Where the newest that was written on a commit is not what it would say to whoever asks for the first time:
    /// nowhere, once everything was reported.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn untrue_statuses(&self) -> Result<Vec<String>> {
        let (repository, written) = (RepositoryName::new(REPOSITORY), self.written());
        let mut untrue = Vec::new();
        for push in 1..=self.pushed() {
            for status in reporter::statuses(&*self.driver.store, &repository, &commit(push)).await? {
                let is_same = |known: &&CommitStatus| known.commit == status.commit && known.context == status.context;
                let known = written.iter().rev().find(is_same);
                if !known.is_some_and(|known| known.reads_like(&status)) && !self.is_of_another(&status).await? {
                    untrue.push(format!("{known:?} instead of {status:?}"));
                }
            }
        }
        Ok(untrue)
    }

    /// Whether a status is about a deployment that a later commit has attempted again, under the same name.
    async fn is_of_another(&self, status: &CommitStatus) -> Result<bool> {
        let run = status.path.as_deref().and_then(|path| path.strip_prefix("/runs/"));
        let Some(run) = run else { return Ok(false) };
        let run = self.driver.store.run(&RunId::new(run)).await?;
        Ok(run.is_some_and(|run| run.value.revision().1 != &status.commit))
    }

    /// Every status that was written, in order.
    pub fn written(&self) -> Vec<CommitStatus> {
        self.surroundings.recorded.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All runs, oldest first.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn runs(&self) -> Result<Vec<Run>> {
        let mut runs = self.driver.store.runs(&RunFilter::default()).await?.whole()?;
        runs.reverse();
        Ok(runs.into_iter().map(|run| run.value).collect())
    }
}

/// Whether anything was announced since the last time; missed announcements count.
fn news<T: Clone>(announcements: &mut broadcast::Receiver<T>) -> bool {
    let mut any = false;
    while !matches!(announcements.try_recv(), Err(TryRecvError::Empty | TryRecvError::Closed)) {
        any = true;
    }
    any
}

/// The revision of a push.
pub(crate) fn commit(push: u32) -> CommitId {
    CommitId::new(format!("{push:07x}{:033x}", 0))
}

/// A push, in place of a Git repository. It is planned however often it was seen.
struct Push {
    project: Arc<Project>,
    number: u32,
}

impl Push {
    fn read(&self) -> Read {
        let (commit, subject) = (commit(self.number), format!("push {}", self.number));
        let declared = Ok(self.project.clone());
        Read { head: Head { commit, subject, descends: true, declared, lifted: Vec::new() }, problems: Vec::new() }
    }
}

#[async_trait]
impl Revisions for Push {
    fn watched(&self) -> Watched {
        let (name, url, branch) = (RepositoryName::new(REPOSITORY), "file:///repo".to_owned(), "main".to_owned());
        Watched { name, url, branch, rewrite_allowed: false }
    }

    async fn head(&self, _seen: Option<&CommitId>, _applied: Option<&CommitId>) -> Result<Option<Read>> {
        Ok(Some(self.read()))
    }

    async fn at(&self, _commit: &CommitId) -> Result<Read> {
        Ok(self.read())
    }
}

/// The key of a deployment config of the simulated project.
pub fn config_key(stage: &str, name: &str) -> ConfigKey {
    ConfigKey { project: ProjectName::new("shop"), stage: StageName::new(stage), name: name.to_owned() }
}

/// A project whose stages all declare the same objects.
pub fn project(shipyard: Shipyard, objects: &[Object]) -> Project {
    let stage = |name: &StageName| StageContent {
        name: name.clone(),
        destination: Destination::local(build::default_namespace(&ProjectName::new("shop"), name)),
        delivery: None,
        objects: objects.iter().cloned().map(Arc::new).collect(),
        tasks: BTreeMap::new(),
        prune: true,
    };
    let stages = shipyard.stages.iter().map(|declared| stage(&declared.name)).collect();
    Project {
        name: ProjectName::new("shop"),
        shipyard,
        stages,
        statuses: StatusDetail::Hooks,
        on_failure: OnFailure::default(),
    }
}

/// A deployment config of one container that runs `image`; `spec` is put over its spec.
pub fn deployment_config(name: &str, image: &str, replicas: u32, spec: Value) -> Object {
    let mut content = json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "strategy": {"type": "Rolling", "rollingParams": {"maxSurge": 1, "maxUnavailable": 0}},
            "triggers": [{"type": "ConfigChange"}],
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": name, "image": image}]}},
        },
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        content["spec"][key] = value.clone();
    }
    let digest = digest::of(&content);
    let key = ObjectKey { kind: Kind::DeploymentConfig, name: name.to_owned() };
    Object { key, service: ServiceName::new(name), location: Location::default(), content: content.into(), digest }
}

/// A hook that runs `true` under a policy, as JSON for a strategy's block.
pub fn hook(policy: &str) -> Value {
    let hook = json!({"failurePolicy": policy, "execNewPod": {"command": ["true"], "containerName": ""}});
    debug_assert!(serde_json::from_value::<LifecycleHook>(hook.clone()).is_ok());
    hook
}
