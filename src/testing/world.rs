//! Everything put together over a pretended runtime: what a push leads to, without Git, processes or waiting.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::clock::{Clock, CountingIds, ManualClock};
use crate::control::deliver;
use crate::control::reporter::{self, StatusReporter};
use crate::error::{Failure, Result};
use crate::executor::drive::Driver;
use crate::executor::keeper::Keeper;
use crate::executor::outbox::Outbox;
use crate::executor::perform::Performer;
use crate::executor::transition::Input;
use crate::forge::StatusWriter;
use crate::model::commit_status::CommitStatus;
use crate::model::deployment_config::LifecycleHook;
use crate::model::ids::{CommitId, ConfigKey, Digest, ProjectName, RepositoryName, ServiceName, StageName};
use crate::model::object::{Kind, Location, Object, ObjectKey};
use crate::model::plan::Plan;
use crate::model::project::{Project, StageContent, StatusDetail};
use crate::model::run::Run;
use crate::model::shipyard::Shipyard;
use crate::model::state::{ConfigState, RevisionResult, RevisionState};
use crate::model::time::Timestamp;
use crate::plan::build::{self, Revision};
use crate::store::sqlite::SqliteStore;
use crate::store::{RunFilter, Store, Write};
use crate::testing::runtime::PretendedRuntime;

/// When every simulated world begins.
const BEGINNING: Timestamp = Timestamp(1_700_000_000_000);
/// More rounds than any story needs before nothing happens any more.
const ROUNDS: usize = 10_000;

/// The simulated world.
#[derive(Debug)]
pub struct World {
    /// Its time; it moves only when told to.
    pub clock: Arc<ManualClock>,
    /// Its pods.
    pub runtime: Arc<PretendedRuntime>,
    /// Its daemon's driver.
    pub driver: Driver,
    outbox: Outbox,
    keeper: Keeper,
    recorded: Arc<Recorded>,
    pushes: u32,
}

/// Remembers the statuses that would have been written.
#[derive(Debug, Default)]
struct Recorded(Mutex<Vec<CommitStatus>>);

#[async_trait]
impl StatusWriter for Recorded {
    async fn write(&self, statuses: &[CommitStatus]) -> Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(statuses.iter().cloned());
        Ok(())
    }

    fn batch(&self) -> usize {
        usize::MAX
    }
}

impl World {
    /// A world whose store lives in `folder`; one that was there before is taken up as after a crash.
    ///
    /// # Errors
    /// If the store cannot be opened.
    pub fn open(folder: &Path) -> Result<Self> {
        let clock = Arc::new(ManualClock::new(BEGINNING));
        let runtime = Arc::new(PretendedRuntime::new(clock.clone()));
        Self::around(folder, clock, runtime)
    }

    /// The daemon is killed and started again; time and pods go on. `between` may wrap the store.
    ///
    /// # Errors
    /// If the store cannot be opened.
    pub fn around(folder: &Path, clock: Arc<ManualClock>, runtime: Arc<PretendedRuntime>) -> Result<Self> {
        let store = SqliteStore::open(&folder.join("store.db"), clock.clone())?;
        Ok(Self::over(Arc::new(store), clock, runtime))
    }

    /// A daemon over any store.
    pub fn over(store: Arc<dyn Store>, clock: Arc<ManualClock>, runtime: Arc<PretendedRuntime>) -> Self {
        let driver = Driver::new(store.clone(), clock.clone(), Arc::new(CountingIds::default()));
        let recorded = Arc::new(Recorded::default());
        let reporter = Arc::new(StatusReporter::new(store));
        reporter.write_to(RepositoryName::new("repo"), vec![recorded.clone()]);
        let performer = Performer { driver: driver.clone(), runtime: runtime.clone(), reporter };
        let keeper = Keeper::new(driver.clone(), runtime.clone());
        Self { clock, runtime, driver, outbox: Outbox::new(performer), keeper, recorded, pushes: 0 }
    }

    /// A revision that declares `project` is pushed and planned; nothing has run yet.
    ///
    /// # Errors
    /// If a rule refuses it, or the store fails.
    pub async fn push(&mut self, project: &Project) -> Result<Plan> {
        self.pushes += 1;
        let revision = Revision {
            repository: RepositoryName::new("repo"),
            commit: CommitId::new(format!("{:040x}", self.pushes)),
            subject: format!("push {}", self.pushes),
            at: self.clock.now(),
            prune_allowed: false,
        };
        let plan = self.plan(project, &revision).await?;
        let stored = RevisionState {
            repository: revision.repository,
            commit: revision.commit,
            subject: revision.subject,
            at: revision.at,
            result: RevisionResult::Planned(Box::new(plan.clone())),
        };
        let mut inputs = vec![Input::Write(Box::new(Write::Revision(Box::new(stored))))];
        inputs.extend(deliver::starts(&self.driver, &plan).await?);
        self.driver.commit(&inputs).await?;
        Ok(plan)
    }

    /// What a revision would do now.
    ///
    /// # Errors
    /// If a rule refuses it, or the store fails.
    pub async fn plan(&self, project: &Project, revision: &Revision) -> Result<Plan> {
        let applied = deliver::applied(&*self.driver.store, project).await?;
        build::build(project, revision, &applied).map_err(|refusal| Failure::stalled(refusal.reason))
    }

    /// The plan of pushing `project` once more.
    ///
    /// # Errors
    /// As [`World::plan`].
    pub async fn plan_again(&self, project: &Project) -> Result<Plan> {
        let revision = Revision {
            repository: RepositoryName::new("repo"),
            commit: CommitId::new("f".repeat(40)),
            subject: "again".into(),
            at: self.clock.now(),
            prune_allowed: false,
        };
        self.plan(project, &revision).await
    }

    /// Everything happens that can happen without time passing.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn settle(&self) -> Result<()> {
        let mut touched = self.driver.changes();
        for _ in 0..ROUNDS {
            self.outbox.settle().await?;
            self.keeper.look_at_everything().await?;
            if touched.try_recv().is_err() {
                return Ok(());
            }
            while touched.try_recv().is_ok() {}
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
            self.settle().await?;
            match self.driver.store.next_due(self.clock.now()).await? {
                Some(due) if due <= end => self.clock.advance_to(due),
                _ => break,
            }
        }
        self.clock.advance_to(end);
        self.settle().await
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
        let commit = CommitId::new(format!("{push:040x}"));
        let statuses = reporter::statuses(&*self.driver.store, &RepositoryName::new("repo"), &commit).await?;
        let told = |status: &CommitStatus| format!("{} {}: {}", status.state, status.context, status.description);
        Ok(statuses.iter().map(told).collect())
    }

    /// Every status that was written, in order.
    pub fn written(&self) -> Vec<CommitStatus> {
        self.recorded.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All runs, oldest first.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn runs(&self) -> Result<Vec<Run>> {
        let mut runs = self.driver.store.runs(&RunFilter::default()).await?;
        runs.reverse();
        Ok(runs.into_iter().map(|run| run.value).collect())
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
        namespace: build::default_namespace(&ProjectName::new("shop"), name),
        delivery: None,
        objects: objects.iter().map(|object| (object.key.clone(), Arc::new(object.clone()))).collect(),
        tasks: BTreeMap::new(),
        prune: true,
    };
    let stages = shipyard.stages.iter().map(|declared| stage(&declared.name)).collect();
    Project { name: ProjectName::new("shop"), shipyard, stages, statuses: StatusDetail::Hooks }
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
    let digest = Digest::new(format!("plain:{content}"));
    let key = ObjectKey { kind: Kind::DeploymentConfig, name: name.to_owned() };
    Object { key, service: ServiceName::new(name), location: Location::default(), content, digest }
}

/// A hook that runs `true` under a policy, as JSON for a strategy's block.
pub fn hook(policy: &str) -> Value {
    let hook = json!({"failurePolicy": policy, "execNewPod": {"command": ["true"], "containerName": ""}});
    debug_assert!(serde_json::from_value::<LifecycleHook>(hook.clone()).is_ok());
    hook
}
