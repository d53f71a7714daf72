//! Everything put together over a pretended runtime: what a push leads to, without Git, processes or waiting.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::TryRecvError;

use crate::clock::{Clock, CountingIds, ManualClock};
use crate::control::reporter::StatusReporter;
use crate::engine::sequence::incoming::{self, Received};
use crate::engine::sync::{Allowance, Head, Trigger, Watched};
use crate::error::{Failure, Result};
use crate::executor::admission::Admission;
use crate::executor::comments::NoComments;
use crate::executor::declarations::Declarations;
use crate::executor::deployer_tokens::DeployerTokens;
use crate::executor::drive::Driver;
use crate::executor::outbox::Outbox;
use crate::executor::perform::Performer;
use crate::executor::previews::NoPreviews;
use crate::executor::reconciler::Reconciler;
use crate::executor::sinks::{Subscriber, Subscribers};
use crate::executor::sync::{self, Read, Revisions, Synced};
use crate::forge::{self, StatusWriter};
use crate::model::cloud_event::CloudEvent;
use crate::model::commit_status::CommitStatus;
use crate::model::ids::{CommitId, RepositoryName, RunId, WriterName};
use crate::model::project::Project;
use crate::model::run::Run;
use crate::model::state::RevisionResult;
use crate::model::time::Timestamp;
use crate::runtime::Runtime;
use crate::simulation::hosting::PretendedHosting;
use crate::simulation::indicators::PretendedIndicators;
use crate::simulation::runtime::PretendedRuntime;
use crate::store::{RunFilter, Store};

/// When every simulated world begins.
pub const BEGINNING: Timestamp = Timestamp(1_700_000_000_000);
/// More rounds than any story needs before nothing happens any more.
const ROUNDS: usize = 10_000;

/// The repository that everything is pushed to.
pub(crate) const REPOSITORY: &str = "repo";

/// The simulated world: a daemon in its surroundings.
#[derive(Debug)]
pub struct World {
    /// What outlives the daemon.
    pub surroundings: Surroundings,
    /// Its time; it moves only when told to.
    pub clock: Arc<ManualClock>,
    /// Its pods.
    pub runtime: Arc<PretendedRuntime>,
    /// What its indicators are.
    pub indicators: Arc<PretendedIndicators>,
    /// Where rollbacks are proposed.
    pub hosting: Arc<PretendedHosting>,
    /// Its daemon's driver.
    pub driver: Driver,
    admission: Admission,
    pub(crate) outbox: Outbox,
    pub(crate) reporter: Arc<StatusReporter>,
    pub(crate) reconciler: Reconciler,
}

/// What goes on when the daemon dies: time, pods, Git, and what was written on commits.
#[derive(Clone, Debug)]
pub struct Surroundings {
    pub(crate) clock: Arc<ManualClock>,
    runtime: Arc<PretendedRuntime>,
    indicators: Arc<PretendedIndicators>,
    hosting: Arc<PretendedHosting>,
    ids: Arc<CountingIds>,
    pub(crate) recorded: Arc<StatusRecorder>,
    pushes: Arc<AtomicU32>,
    pushed: Arc<Pushed>,
    subscriber: Option<Arc<Subscriber>>,
    is_forgetful: bool,
}

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
        let (indicators, hosting, ids, recorded, pushes, pushed, subscriber, is_forgetful) = Default::default();
        Self { clock, runtime, indicators, hosting, ids, recorded, pushes, pushed, subscriber, is_forgetful }
    }
}

/// Remembers the statuses that would have been written.
#[derive(Debug, Default)]
pub(crate) struct StatusRecorder(pub(crate) Mutex<Vec<CommitStatus>>);

#[async_trait]
impl StatusWriter for StatusRecorder {
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
    /// With somebody who is told what happens.
    #[must_use]
    pub fn with_subscriber(self, subscriber: Arc<Subscriber>) -> Self {
        Self { subscriber: Some(subscriber), ..self }
    }

    /// With daemons that ask the store for everything.
    #[must_use]
    pub fn forgetful(self) -> Self {
        Self { is_forgetful: true, ..self }
    }

    /// Its time, for stores that a test opens itself.
    pub fn clock(&self) -> Arc<ManualClock> {
        self.clock.clone()
    }
}

impl World {
    /// A daemon over any store.
    pub fn over(store: Arc<dyn Store>, surroundings: Surroundings) -> Self {
        let Surroundings { clock, runtime, indicators, hosting, ids, recorded, pushed, subscriber, .. } =
            surroundings.clone();
        let runtime = Arc::new(runtime.opened_for(store.incarnation()));
        let driver = Driver::new(store.clone(), clock.clone(), ids);
        let driver = driver.with_subscribers(Subscribers::new(subscriber.into_iter().collect()));
        let driver = if surroundings.is_forgetful { driver.forgetful() } else { driver };
        let reporter = Arc::new(StatusReporter::new(driver.clone()));
        reporter.write_to(&RepositoryName::new(REPOSITORY), vec![recorded]);
        let performer = Performer {
            driver: driver.clone(),
            runtime: runtime.clone(),
            proposals: hosting.clone(),
            previews: Arc::new(NoPreviews),
            comments: Arc::new(NoComments),
            tokens: DeployerTokens::new(b"pretended", store.incarnation().clone()),
            indicators: indicators.clone(),
        };
        let reconciler = Reconciler::new(driver.clone(), runtime.clone(), pushed).one_by_one();
        let (admission, outbox) = (Admission::new(driver.clone()), Outbox::new(performer));
        Self { surroundings, clock, runtime, indicators, hosting, driver, admission, outbox, reporter, reconciler }
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

    /// Takes an event from outside, as the daemon does.
    ///
    /// # Errors
    /// If it makes no sense, nothing was pushed, or the store fails.
    pub async fn tell(&self, event: &CloudEvent, by: &str) -> Result<Received> {
        incoming::check(event)?;
        let repository = RepositoryName::new(REPOSITORY);
        let received = self.driver.decide(|transition| incoming::receive(transition, &repository, event)).await?;
        if received.delivers.is_empty() {
            return Ok(received);
        }
        let delivered = sync::trigger_on(&self.driver, &self.head()?, event, &received.delivers, by).await?;
        let mut runs = received.runs;
        runs.extend(delivered.runs);
        match delivered.refused.into_iter().next().filter(|_| runs.is_empty()) {
            Some((_, refused)) => Err(refused),
            None => Ok(Received { runs, ..received }),
        }
    }

    /// The newest revision.
    fn head(&self) -> Result<Push> {
        let number = self.pushed();
        let pushed = self.surroundings.pushed.0.lock().unwrap_or_else(PoisonError::into_inner);
        let project = pushed.get(&commit(number)).cloned();
        let project = project.ok_or_else(|| Failure::stalled("nothing was pushed"))?;
        Ok(Push { project, number })
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
            self.outbox.drain().await?;
            self.reporter.drain().await?;
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
        while self.pass_on(end).await? {}
        Ok(())
    }

    /// Everything happens that is due now; then time moves on to what is due next, or to `end`. Says whether anything is left
    /// that happens by then.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn pass_on(&self, end: Timestamp) -> Result<bool> {
        let look = self.settle().await?;
        let (due, report) = (self.outbox.next_due().await?, self.reporter.next_due().await?);
        let late = self.runtime.next_deadline();
        match due.into_iter().chain(report).chain(look).chain(late).min().filter(|due| *due <= end) {
            Some(due) => {
                self.clock.advance_to(due);
                self.runtime.end_late();
                Ok(true)
            }
            None => {
                self.clock.advance_to(end);
                self.settle().await?;
                Ok(false)
            }
        }
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
pub(crate) struct Push {
    pub(crate) project: Arc<Project>,
    pub(crate) number: u32,
}

impl Push {
    pub(crate) fn read(&self) -> Read {
        let (commit, subject) = (commit(self.number), format!("push {}", self.number));
        let declared = Ok(self.project.clone());
        let (lifted, warnings) = (Vec::new(), Vec::new());
        Read { head: Head { commit, subject, descends: true, declared, lifted, warnings }, problems: Vec::new() }
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
