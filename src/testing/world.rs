//! What only tests ask of the simulated world, and what is declared in it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use serde_json::{Value, json};
use tokio::sync::broadcast;

use crate::control::reporter;
use crate::engine::transition::Touched;
use crate::error::{Failure, Result};
use crate::executor::renderings::Renderings;
use crate::executor::sync;
use crate::executor::work_queue::WorkQueue;
use crate::manifest::digest;
use crate::model::commit_status::CommitStatus;
use crate::model::deployment_config::LifecycleHook;
use crate::model::hold::{HoldScope, Release};
use crate::model::ids::{
    ConfigKey, Destination, ProjectName, RepositoryName, RunId, ServiceKey, ServiceName, StageName,
};
use crate::model::object::{Kind, Location, Object, ObjectKey};
use crate::model::plan::Plan;
use crate::model::project::{OnFailure, Project, StageContent, StatusDetail};
use crate::model::run::Run;
use crate::model::shipyard::Shipyard;
use crate::model::state::{ConfigState, RevisionResult};
use crate::plan::build;
use crate::runtime::{Runtime, RuntimeChange};
use crate::simulation::world::{Push, REPOSITORY, Surroundings, World, commit};
use crate::store::sqlite::SqliteStore;
use crate::store::{Transaction, Write};

/// What a daemon hears.
pub type Heard = (broadcast::Receiver<Touched>, broadcast::Receiver<RuntimeChange>);

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

    /// Whether the daemon remembers having seen the push with this number.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn has_seen(&self, push: u32) -> Result<bool> {
        let repository = self.driver.store.repository(&RepositoryName::new(REPOSITORY)).await?;
        Ok(repository.is_some_and(|repository| repository.value.seen == Some(commit(push))))
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
            Write::Run(run) if run.version == 0 => match Arc::unwrap_or_clone(run.value) {
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
            self.outbox.drain().await?;
            queue.take_in(&mut touched, &mut changes);
            if !queue.has_work() {
                return Ok(woken);
            }
        }
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
                let status = CommitStatus { details: None, ..status }; // its host shows a line
                let is_same = |known: &&CommitStatus| known.commit == status.commit && known.context == status.context;
                let known = written.iter().rev().find(is_same);
                if !known.is_some_and(|known| known.reads_like(&status)) && !self.is_of_another(&status).await? {
                    untrue.push(format!("{known:?} instead of {status:?}"));
                }
            }
        }
        Ok(untrue)
    }

    /// What is said of pushes by what is kept of them, where what is read says otherwise.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn missaid(&self) -> Result<Vec<String>> {
        let (repository, store) = (RepositoryName::new(REPOSITORY), &*self.driver.store);
        let mut wrong = Vec::new();
        for push in 1..=self.pushed() {
            let kept = self.driver.renderings.report(store, &repository, &commit(push)).await?;
            let read = Renderings::default().report(store, &repository, &commit(push)).await?;
            if format!("{kept:?}") != format!("{read:?}") {
                wrong.push(format!("{kept:?} instead of {read:?}"));
            }
        }
        Ok(wrong)
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
}

/// The key of a deployment config of the simulated project.
pub fn config_key(stage: &str, name: &str) -> ConfigKey {
    ConfigKey { project: ProjectName::new("shop"), stage: StageName::new(stage), name: name.to_owned() }
}

/// What a hold covers; `*` is every stage, or every service.
pub(crate) fn hold_scope(project: &ProjectName, stage: &str, service: &str) -> HoldScope {
    let stage = (stage != "*").then(|| StageName::new(stage));
    let service = (service != "*").then(|| ServiceName::new(service));
    HoldScope { project: project.clone(), stage, service, context: None }
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
        previews: None,
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
            "paused": false,
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": name, "image": image}]}},
        },
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        content["spec"][key] = value.clone();
    }
    let digest = digest::of(&content);
    let key = ObjectKey { kind: Kind::DeploymentConfig, name: name.to_owned() };
    Object {
        key,
        service: ServiceName::new(name),
        location: Location::default(),
        content: content.into(),
        digest,
        autoscaled_at: None,
    }
}

/// A hook that runs `true` under a policy, as JSON for a strategy's block.
pub fn hook(policy: &str) -> Value {
    let hook = json!({"failurePolicy": policy, "execNewPod": {"command": ["true"], "containerName": ""}});
    debug_assert!(serde_json::from_value::<LifecycleHook>(hook.clone()).is_ok());
    hook
}
