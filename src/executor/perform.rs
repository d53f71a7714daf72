//! Performs one action. Each is short and idempotent; what it leads to is handed back as inputs for the driver.

use std::sync::Arc;

use serde_json::Value;

use crate::engine::transition::Input;
use crate::error::{Class, Failure, Result};
use crate::executor::comments::Comments;
use crate::executor::deployer_tokens::DeployerTokens;
use crate::executor::drive::Driver;
use crate::executor::previews::Previews;
use crate::executor::proposals::{self, Proposals};
use crate::indicators::Indicators;
use crate::model::action::Action;
use crate::model::comment::CommentCommand;
use crate::model::evaluation::Measurement;
use crate::model::event::Event;
use crate::model::ids::{ProjectName, RepositoryName, RunId, StageName};
use crate::model::object::ObjectKey;
use crate::model::outcome::{FailureReason, PodOutcome};
use crate::model::pod::references;
use crate::model::pod::{ObservedPod, Pod, PodId, PodOwner, ReplicaSet};
use crate::model::proposal::Proposal;
use crate::model::run::Run;
use crate::model::time::Timestamp;
use crate::runtime::{Objects, Runtime};
use crate::store::{ReadStore, Write};

/// What actions act on.
#[derive(Clone)]
pub struct Performer {
    /// Commits what follows.
    pub driver: Driver,
    /// Where pods live.
    pub runtime: Arc<dyn Runtime>,
    /// Where rollbacks are proposed.
    pub proposals: Arc<dyn Proposals>,
    /// What measures indicators.
    pub indicators: Arc<dyn Indicators>,
    /// Where is told what merging pull requests would do.
    pub previews: Arc<dyn Previews>,
    /// Where what people ask for in comments is done and answered.
    pub comments: Arc<dyn Comments>,
    /// By what deployers are known.
    pub tokens: DeployerTokens,
}

impl std::fmt::Debug for Performer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Performer").finish_non_exhaustive()
    }
}

impl Performer {
    /// Performs an action of `run`.
    ///
    /// # Errors
    /// `Transient` and `Waiting` ones are tried again later; the run hears of what cannot succeed instead.
    pub async fn perform(&self, run: &RunId, action: &Action) -> Result<Vec<Input>> {
        match action {
            Action::Prepare { pod, again: false } => self.prepare(run, pod).await,
            Action::Prepare { pod, again: true } => self.prepare_again(run, pod).await,
            Action::RunPod { pod } => self.run_pod(run, pod).await,
            Action::StopPod { pod } => self.stop_pod(run, pod).await,
            Action::SetTimer { timer, .. } => Ok(vec![Input::Tell(run.clone(), Event::Timer { timer: *timer })]),
            Action::ClearTimer { .. } => Ok(Vec::new()),
            Action::Measure { task, measurement } => self.measure(run, *task, measurement).await,
            Action::Report { .. } => Err(Failure::stalled("a report is for its writer's lane")),
            Action::Send { .. } => Err(Failure::stalled("what a sink is told is for its lane")),
            Action::Propose { repository, branch } => self.propose(repository, branch).await,
            Action::Preview { repository } => self.preview(repository).await,
            Action::Comment { repository, command } => self.comment(run, repository, command).await,
        }
    }

    async fn prepare(&self, run: &RunId, pod: &Pod) -> Result<Vec<Input>> {
        let event = match self.runtime.prepare(pod).await {
            Ok(()) => Event::Prepared,
            Err(failure) if failure.class() == Class::Stalled => Event::PrepareFailed { message: failure.one_line() },
            Err(failure) => return Err(failure),
        };
        Ok(vec![Input::Tell(run.clone(), event)])
    }

    /// Forgets that images could not be made runnable, once; the row is replaced by one that prepares them.
    async fn prepare_again(&self, run: &RunId, pod: &Pod) -> Result<Vec<Input>> {
        self.runtime.forget_failures(pod).await?;
        let (action, now) = (Action::Prepare { pod: Box::new(pod.clone()), again: false }, self.driver.clock.now());
        let ask = Write::Ask { run: run.clone(), action: Box::new(action), due: now, at: now };
        Ok(vec![Input::Write(Box::new(ask))])
    }

    /// Starts a pod that its run still waits for: a store that is a copy may have kept the request of one that has ended, and
    /// nothing runs twice.
    async fn run_pod(&self, run: &RunId, pod: &Pod) -> Result<Vec<Input>> {
        let known = self.driver.store.run(run).await?.map(|known| known.value);
        let Some(known) = known.filter(|known| known.awaited_pod().as_ref() == Some(&pod.id)) else {
            return Ok(Vec::new());
        };
        let token = self.tokens.secret_of(&known, &pod.id.name);
        match start_pod(&*self.driver.store, &*self.runtime, pod, token).await {
            Ok(()) => Ok(vec![Input::Tell(run.clone(), Event::PodStarted { pod: pod.id.name.clone() })]),
            Err(failure) if failure.class() == Class::Stalled => {
                let (code, message) = (128, failure.one_line());
                let outcome = PodOutcome::Failed { code, reason: FailureReason::StartError, message };
                Ok(vec![Input::Tell(run.clone(), Event::pod_ended(pod.id.name.clone(), outcome))])
            }
            Err(failure) => Err(failure),
        }
    }

    /// Ends a pod; one that was asked for and has not been started yet never is.
    async fn stop_pod(&self, run: &RunId, pod: &PodId) -> Result<Vec<Input>> {
        self.runtime.stop_pod(pod).await?;
        let asked_at = self.driver.store.run(run).await?.map(|run| run.value.created_at()).unwrap_or_default();
        let is_own = |seen: ObservedPod| !seen.is_stranger() && seen.owner.is_of(run, asked_at);
        if self.runtime.observe_pod(pod).await?.is_some_and(is_own) {
            return Ok(Vec::new()); // its end will be told
        }
        let outcome =
            PodOutcome::Failed { code: 143, reason: FailureReason::Cancelled, message: "never started".to_owned() };
        let withdraw = Write::Withdraw { run: run.clone(), key: Action::run_pod_key(&pod.name) };
        let ended = Event::pod_ended(pod.name.clone(), outcome);
        Ok(vec![Input::Write(Box::new(withdraw)), Input::Tell(run.clone(), ended)])
    }
}

impl Performer {
    /// Measures for a task, if its run still waits for that.
    async fn measure(&self, run: &RunId, task: usize, measurement: &Measurement) -> Result<Vec<Input>> {
        let known = self.driver.store.run(run).await?.map(|known| known.value);
        let Some(sequence) = known.as_ref().and_then(Run::sequence).filter(|sequence| sequence.is_at(task)) else {
            return Ok(Vec::new());
        };
        let event = match self.indicators.measure(&sequence.repository, measurement).await {
            Ok(readings) => Event::Measured { task, at: measurement.at, readings },
            Err(failure) if failure.class() == Class::Stalled => {
                Event::NotMeasured { task, message: failure.one_line() }
            }
            Err(failure) => return Err(failure),
        };
        Ok(vec![Input::Tell(run.clone(), event)])
    }

    /// Brings a proposal to where people decide about it. What keeps it for now is shown with it.
    async fn propose(&self, repository: &RepositoryName, branch: &str) -> Result<Vec<Input>> {
        let state = self.driver.store.repository(repository).await?.map(|state| state.value);
        let Some((state, proposal)) = state.and_then(|state| proposals::found(state, branch)) else {
            return Ok(Vec::new());
        };
        let brought = self.proposals.bring(&state, &proposal).await;
        if let Err(failure) = &brought
            && proposal.problem != failure.one_line()
        {
            let delayed = Box::new(Proposal { problem: failure.one_line(), base: None, ..proposal.clone() });
            self.driver.commit(&[Input::Proposed(repository.clone(), delayed)]).await?;
        }
        let brought = brought?;
        let news = brought != proposal;
        Ok(news.then(|| Input::Proposed(repository.clone(), Box::new(brought))).into_iter().collect())
    }
}

impl Performer {
    /// Looks at open pull requests. What was told of some is remembered although others have to wait.
    async fn preview(&self, repository: &RepositoryName) -> Result<Vec<Input>> {
        let Some(state) = self.driver.store.repository(repository).await? else { return Ok(Vec::new()) };
        let looked = self.previews.look(&state.value).await?;
        let news = looked.previews != state.value.previews;
        let news: Vec<Input> =
            news.then(|| Input::Previewed(repository.clone(), looked.previews)).into_iter().collect();
        match looked.failure {
            None => Ok(news),
            Some(failure) => {
                self.driver.commit(&news).await?;
                Err(failure)
            }
        }
    }

    /// Goes on with what a person asks for; what is left of it takes the place of the row.
    async fn comment(&self, run: &RunId, repository: &RepositoryName, command: &CommentCommand) -> Result<Vec<Input>> {
        let left = self.comments.go_on(repository, command).await?;
        let now = self.driver.clock.now();
        let ask = |left: CommentCommand| {
            let action = Box::new(Action::comment(repository, left));
            Input::Write(Box::new(Write::Ask { run: run.clone(), action, due: now, at: now }))
        };
        Ok(left.map(ask).into_iter().collect())
    }
}

/// Starts a run-once pod with everything that its template refers to, and with what it alone is `given`.
///
/// # Errors
/// `Waiting` while its image is prepared or an object that it needs is missing.
pub async fn start_pod(
    store: &dyn ReadStore,
    runtime: &dyn Runtime,
    pod: &Pod,
    given: Option<(ObjectKey, Value)>,
) -> Result<()> {
    runtime.prepare(pod).await?;
    let mut objects = referred_objects(store, pod).await?;
    objects.extend(given);
    runtime.start_pod(pod, &objects).await
}

/// Brings a version from `living` pods to so many, with everything that its template refers to. Says when to ask again.
///
/// # Errors
/// As [`start_pod`].
pub async fn scale(
    store: &dyn ReadStore,
    runtime: &dyn Runtime,
    set: &ReplicaSet,
    living: u32,
) -> Result<Option<Timestamp>> {
    if set.replicas == 0 {
        return runtime.scale(set, living, &Objects::new()).await;
    }
    let pod = set.pod(0);
    runtime.prepare(&pod).await?;
    let objects = referred_objects(store, &pod).await?;
    runtime.scale(set, living, &objects).await
}

/// What the pod's template refers to in its stage, as far as it exists.
async fn referred_objects(store: &dyn ReadStore, pod: &Pod) -> Result<Objects> {
    let wanted = references::of(pod);
    if wanted.is_empty() {
        return Ok(Objects::new());
    }
    let (project, stage) = home(store, pod).await?;
    let mut found = Objects::new();
    for key in wanted {
        if let Some(object) = store.object(&project, &stage, &key).await? {
            let content = match &pod.owner {
                PodOwner::Version { config, version, .. } => object.value.of_version(&config.name, *version),
                PodOwner::Run { .. } | PodOwner::Unknown => &object.value.object,
            };
            found.insert(key, content.content.value());
        }
    }
    Ok(found)
}

async fn home(store: &dyn ReadStore, pod: &Pod) -> Result<(ProjectName, StageName)> {
    let nobody = || Failure::stalled(format!("nobody asks for pod `{}` any more", pod.id));
    match &pod.owner {
        PodOwner::Version { config, .. } => Ok((config.project.clone(), config.stage.clone())),
        PodOwner::Run { run, .. } => {
            let run = store.run(run).await?;
            let service = run.map(|run| Run::service(&run.value));
            let service = service.ok_or_else(nobody)?;
            Ok((service.project, service.stage))
        }
        PodOwner::Unknown => Err(nobody()),
    }
}
