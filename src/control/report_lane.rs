//! One writer of one repository: takes the reports that it is asked for, one after the other, and writes what is news
//! to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::control::addresses::Addresses;
use crate::engine::transition::Input;
use crate::error::{Class, Failure, Result};
use crate::executor::drive::Driver;
use crate::executor::outbox::{STORE_PAUSE, pause_after};
use crate::executor::writer_lanes::WriterLane;
use crate::forge::{Refusal, StatusWriter, Subject};
use crate::model::action::Action;
use crate::model::commit_status::{CommitStatus, Posted, StatusState};
use crate::model::ids::{CommitId, RepositoryName, StageName};
use crate::model::time::Timestamp;
use crate::report::deployments::{self, Deployment};
use crate::report::environment;
use crate::report::ledger::{self, Rendering};
use crate::store::{OutboxRow, Write};

/// How long one write may take; whoever takes longer is asked again later, and takes up what was not written.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long to wait when nothing is known to come: a safety net, not a schedule.
const IDLE: Duration = Duration::from_secs(30);
/// How long is waited for more to report once there is something: what happens in a burst is written once.
const BURST: Duration = Duration::from_millis(30);
/// How many times as long as it took to read what there is to report is waited before that is done again.
const REST: u32 = 9;
/// The longest of these pauses: a machine that slept meanwhile did not take that long to read.
const LONGEST_REST: Duration = Duration::from_secs(60);

/// Writes for one writer.
pub(crate) struct ReportLane {
    driver: Driver,
    pub(crate) asked: Arc<WriterLane>,
    writer: Arc<dyn StatusWriter>,
    /// Writes in its place on what pull requests bring, where that is done otherwise.
    of_pulls: Option<Arc<dyn StatusWriter>>,
    writes: Arc<Semaphore>,
    addresses: Addresses,
    health: Mutex<Health>,
}

/// What the last writes say about the next.
#[derive(Clone, Debug, Default)]
struct Health {
    /// How many writes failed in a row.
    failures: u32,
    /// The writer is left alone until then.
    rests_until: Timestamp,
    /// What there is to report is not read again until then.
    reads_again: Timestamp,
    /// Whether it refuses everything, as far as is known.
    refuses: bool,
    /// How many times in a row what it refused was tried again.
    retries: u32,
    /// It is not tried again before then.
    retries_at: Timestamp,
    /// Whether reports may wait until it takes one.
    parked: bool,
    /// Whether one of those is to show that it does. If nothing can be said of that one, which may also be gone with its
    /// revision, the others try.
    tries: bool,
    /// The environments that take no deployments, with why, as far as is known.
    closed: BTreeMap<StageName, String>,
}

impl ReportLane {
    /// A lane that wrote nothing yet. `writes` bounds how many of all lanes write at once.
    pub(super) fn new(
        driver: Driver,
        asked: Arc<WriterLane>,
        writer: Arc<dyn StatusWriter>,
        writes: Arc<Semaphore>,
    ) -> Self {
        let (of_pulls, addresses, health) = Default::default();
        Self { driver, asked, writer, of_pulls, writes, addresses, health }
    }

    /// The same; what pull requests bring is written on by another writer, if that has its name.
    pub(super) fn with_pulls(self, of_pulls: Option<&Arc<dyn StatusWriter>>) -> Self {
        let of_pulls = of_pulls.filter(|other| other.name() == self.writer.name()).cloned();
        Self { of_pulls, ..self }
    }

    /// The same; environments lead to where stages answer.
    pub(super) fn with_addresses(self, addresses: Addresses) -> Self {
        Self { addresses, ..self }
    }

    /// Works until told to stop.
    pub(super) async fn run(&self, stop: CancellationToken) {
        self.asked.retry(); // what was refused before the daemon started may be taken now
        let mut by_safety_net = false;
        while !stop.is_cancelled() {
            let pause = self.work_through(by_safety_net).await.unwrap_or_else(|failure| {
                let (lane, problem) = (self.asked.lane(), failure.one_line());
                tracing::error!(%lane, problem, "cannot read or remember what was reported");
                STORE_PAUSE
            });
            by_safety_net = false;
            let pause = self.next_retry().map_or(pause, |at| pause.min(at.since(self.driver.clock.now())));
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.asked.woken() => drop(tokio::time::timeout(BURST, stop.cancelled()).await),
                () = tokio::time::sleep(pause) => by_safety_net = pause == IDLE,
            }
        }
    }

    /// Reports everything that is due; says how long nothing more will come by itself.
    pub(crate) async fn work(&self) -> Result<Duration> {
        self.work_through(false).await
    }

    /// The same; what only the safety net finds is counted.
    async fn work_through(&self, by_safety_net: bool) -> Result<Duration> {
        if self.health().retries_at <= self.driver.clock.now() && self.asked.takes_retry() {
            self.expect_more();
            self.revive(1).await?;
        }
        loop {
            let now = self.driver.clock.now();
            if let Some(rests_until) = self.rests_until(now) {
                return Ok(rests_until.since(now));
            }
            let Some(row) = self.driver.claim(&self.asked.lane(), 1).await?.pop() else {
                if std::mem::take(&mut self.health().tries) {
                    self.revive(u32::MAX).await?;
                    continue;
                }
                return Ok(self.next_due().await?.map_or(IDLE, |due| due.since(now).min(IDLE)));
            };
            let overlooked = by_safety_net && row.was_overlooked(now);
            self.driver.metrics.lost_wakeups(&self.asked.lane(), usize::from(overlooked));
            if let Err(failure) = self.report(&row).await {
                self.driver.give_back(row.id).await?;
                return Err(failure);
            }
        }
    }

    /// When something comes due that is not due now.
    pub(super) async fn next_due(&self) -> Result<Option<Timestamp>> {
        self.driver.store.next_due(&self.asked.lane(), self.driver.clock.now()).await
    }

    /// When it is to work again although nobody asks it to.
    pub(crate) async fn next_work(&self) -> Result<Option<Timestamp>> {
        let next = match self.rests_until(self.driver.clock.now()) {
            Some(rests_until) => Some(rests_until),
            None => self.next_due().await?,
        };
        Ok(next.into_iter().chain(self.next_retry()).min())
    }

    /// When what was refused is tried again, if anybody has asked for that.
    fn next_retry(&self) -> Option<Timestamp> {
        self.asked.wants_retry().then(|| self.health().retries_at)
    }

    fn rests_until(&self, now: Timestamp) -> Option<Timestamp> {
        let health = self.health();
        Some(health.rests_until.max(health.reads_again)).filter(|until| now < *until)
    }

    async fn report(&self, row: &OutboxRow) -> Result<()> {
        let outcome = match &row.action {
            Ok(Action::Report { repository, commit, .. }) => match self.bring_up_to_date(repository, commit).await {
                Err(failure) if failure.class() == Class::Stalled => {
                    return self.set_aside(row, failure.one_line()).await;
                }
                read => read?,
            },
            Ok(_) => Err(Refusal::Commit(Failure::stalled("it is no report"))),
            Err(problem) => return self.set_aside(row, problem.clone()).await,
        };
        self.driver.metrics.action(&row.key, if outcome.is_ok() { "performed" } else { "failed" });
        match outcome {
            Ok(None) => self.written(row).await,
            Ok(again) => {
                let write = Write::Await { id: row.id, due: again, reason: String::new() };
                self.commit(vec![Input::Write(Box::new(write))]).await
            }
            Err(refusal) => self.refused(row, &refusal).await,
        }
    }

    /// What a report is made from cannot be read: it is there for people to see, and others go on.
    async fn set_aside(&self, row: &OutboxRow, problem: String) -> Result<()> {
        tracing::error!(lane = %self.asked.lane(), problem, "a report cannot be made");
        let write = Write::Await { id: row.id, due: None, reason: problem };
        self.commit(vec![Input::Write(Box::new(write))]).await
    }

    /// Writes what is news until nothing is; says when to go on, if that takes too long to be done at once. A status that
    /// is open may have been overtaken before the ledger had it, in which case nobody asks for it again, and
    /// this finds it.
    async fn bring_up_to_date(
        &self,
        repository: &RepositoryName,
        commit: &CommitId,
    ) -> Result<Result<Option<Timestamp>, Refusal>> {
        let writer = &self.asked.writer;
        if repository.pull().is_some() && self.writer.subject() == Subject::Deployments {
            return Ok(Ok(None)); // what a host's environments show is the branch's
        }
        loop {
            let begun = self.driver.clock.now();
            let posted = self.driver.store.posted(repository, writer, commit).await?;
            let rendering = self.rendering(repository, commit, &posted).await?;
            self.rest_after(begun);
            let number = rendering.number;
            let news = ledger::news(&posted, rendering);
            if news.is_empty() {
                return Ok(Ok(None));
            }
            let last = news.iter().all(|status| status.state.is_final());
            let mut refusals: Option<(BTreeSet<StageName>, Failure)> = None;
            for batch in news.chunks(self.writer.batch().max(1)) {
                let mut doubted = ledger::outcomes_before(&posted, batch);
                if self.writer.subject() == Subject::Deployments {
                    doubted.extend(deployments::begun(batch, &posted));
                }
                self.doubt(repository, doubted).await?;
                let refused = match self.write(repository, batch).await {
                    Ok(()) => BTreeSet::new(),
                    Err(Refusal::Environments { refused, failure }) => {
                        let stages = refused.clone();
                        refusals.get_or_insert((BTreeSet::new(), failure)).0.extend(refused);
                        stages
                    }
                    Err(refusal) => return Ok(Err(refusal)),
                };
                let taken = batch.iter().filter(|status| !refused.contains(&Deployment::of(status).stage));
                self.commit(taken.clone().map(|status| self.posted(repository, status, number)).collect()).await?;
                self.health().closed.retain(|closed, _| taken.clone().all(|it| Deployment::of(it).stage != *closed));
            }
            if let Some((refused, failure)) = refusals {
                return Ok(Err(Refusal::Environments { refused, failure }));
            }
            if last {
                return Ok(Ok(None));
            }
            if let Some(again) = self.rests_until(self.driver.clock.now()) {
                return Ok(Ok(Some(again)));
            }
        }
    }

    /// What there is to be read of a commit, by readers of what was written.
    async fn rendering(&self, repository: &RepositoryName, commit: &CommitId, posted: &[Posted]) -> Result<Rendering> {
        let store = &*self.driver.store;
        if self.writer.subject() == Subject::Statuses {
            let known = posted.iter().map(|posted| posted.status.context.clone()).collect();
            let Rendering { number, mut statuses } =
                self.driver.renderings.render(store, repository, commit, &known).await?;
            if !self.writer.shows_details() {
                statuses.iter_mut().for_each(|status| status.details = None);
            }
            let statuses = match repository.pull() {
                Some(number) => environment::statuses(statuses, number),
                None => statuses,
            };
            return Ok(Rendering { number, statuses });
        }
        let Rendering { number, statuses } =
            self.driver.renderings.render(store, repository, commit, &deployments::known(posted)).await?;
        let mut told = Vec::new();
        for status in deployments::told(&statuses, posted) {
            let stage = &Deployment::of(&status).stage;
            let is_late = deployments::is_late(&status, posted);
            if is_late && !self.driver.renderings.is_current(store, repository, commit, stage).await? {
                told.extend(deployments::replaced(&status, posted));
            } else {
                let address = match status.state {
                    StatusState::Success => self.addresses.of(store, repository, stage).await?,
                    _ => None,
                };
                told.push(CommitStatus { address, ..status });
            }
        }
        Ok(Rendering { number, statuses: told })
    }

    async fn write(&self, repository: &RepositoryName, batch: &[CommitStatus]) -> Result<(), Refusal> {
        let closed = |_| Refusal::Busy(Failure::transient("nothing is written any more"));
        let _one_of_all = self.writes.acquire().await.map_err(closed)?;
        let of_pulls = self.of_pulls.as_ref().filter(|_| repository.pull().is_some());
        let writer = of_pulls.unwrap_or(&self.writer);
        let written = tokio::time::timeout(WRITE_TIMEOUT, writer.write(batch)).await;
        written.unwrap_or_else(|_elapsed| {
            let message = format!("writing statuses took longer than {} seconds", WRITE_TIMEOUT.as_secs());
            Err(Refusal::Busy(Failure::transient(message)))
        })
    }

    /// These are about to be replaced, or told for the first time: whoever finds them in the ledger after a death cannot tell
    /// what readers see.
    async fn doubt(&self, repository: &RepositoryName, statuses: Vec<&CommitStatus>) -> Result<()> {
        if statuses.is_empty() {
            return Ok(());
        }
        self.commit(statuses.into_iter().map(|status| self.posted(repository, status, ledger::DOUBTED)).collect()).await
    }

    fn posted(&self, repository: &RepositoryName, status: &CommitStatus, rendering: u64) -> Input {
        let posted = Box::new(Posted { status: status.clone(), rendering });
        let (repository, writer) = (repository.clone(), self.asked.writer.clone());
        Input::Write(Box::new(Write::Posted { repository, writer, posted }))
    }

    /// What is taken now tells that what was refused may be taken too.
    async fn written(&self, row: &OutboxRow) -> Result<()> {
        self.commit(vec![Input::Write(Box::new(Write::Done(row.id))), self.problem(self.closed())]).await?;
        let before = {
            let mut health = self.health();
            let Health { reads_again, ref mut closed, .. } = *health;
            let fresh = Health { reads_again, closed: std::mem::take(closed), ..Health::default() };
            std::mem::replace(&mut *health, fresh)
        };
        if before.refuses {
            tracing::info!(lane = %self.asked.lane(), "statuses are written again");
        }
        if before.parked {
            self.revive(u32::MAX).await?;
        }
        Ok(())
    }

    async fn refused(&self, row: &OutboxRow, refusal: &Refusal) -> Result<()> {
        let (id, lane, problem) = (row.id, self.asked.lane(), refusal.failure().one_line());
        // A fork's commit may be one on which nobody may write: that says nothing of the branch's own, and parks none of those.
        let is_of_pull = matches!(&row.action, Ok(Action::Report { repository, .. }) if repository.pull().is_some());
        let inputs = match refusal {
            Refusal::All(_) | Refusal::Commit(_) if is_of_pull => {
                tracing::warn!(%lane, problem, "the statuses of what a pull request brings are refused");
                vec![Input::Write(Box::new(Write::Done(id)))]
            }
            Refusal::Busy(_) => {
                tracing::warn!(%lane, problem, "statuses cannot be written now");
                vec![Input::Write(Box::new(Write::Postpone { id, due: self.rest(), problem }))]
            }
            Refusal::All(_) => {
                tracing::error!(%lane, problem, "statuses are refused");
                {
                    let mut health = self.health();
                    *health = Health { failures: 0, rests_until: Timestamp::default(), ..health.clone() };
                    (health.refuses, health.parked, health.tries) = (true, true, false);
                }
                let parked = Write::Await { id, due: None, reason: problem.clone() };
                vec![Input::Write(Box::new(parked)), self.problem(Some(problem))]
            }
            Refusal::Environments { refused, .. } => {
                tracing::error!(%lane, problem, ?refused, "environments take no deployments");
                {
                    let mut health = self.health();
                    (health.failures, health.rests_until) = (0, Timestamp::default());
                    health.closed.extend(refused.iter().map(|stage| (stage.clone(), problem.clone())));
                }
                let parked = Write::Await { id, due: None, reason: problem };
                vec![Input::Write(Box::new(parked)), self.problem(self.closed())]
            }
            Refusal::Commit(_) => {
                tracing::error!(%lane, problem, "the statuses of a commit are refused");
                vec![Input::Write(Box::new(Write::Done(id))), self.problem(Some(problem))]
            }
        };
        self.commit(inputs).await
    }

    /// Somebody says that the writer may take again what it did not. Every sync says so, so that a pause comes before more
    /// than two in a row.
    fn expect_more(&self) {
        let now = self.driver.clock.now();
        let mut health = self.health();
        let pause = health.retries.checked_sub(1).map_or(Duration::ZERO, |more| pause_after(more).min(LONGEST_REST));
        (health.retries, health.retries_at) = (health.retries.saturating_add(1), now + pause);
        health.rests_until = Timestamp::default();
        (health.parked, health.tries) = (true, true);
    }

    /// What takes long to read is read seldom: a tenth of the time is spent on it, or as much as it takes once a minute.
    fn rest_after(&self, begun: Timestamp) {
        let now = self.driver.clock.now();
        let mut health = self.health();
        health.reads_again = now + (now.since(begun) * REST).min(LONGEST_REST);
    }

    /// Leaves the writer alone for a while, longer each time.
    fn rest(&self) -> Timestamp {
        let mut health = self.health();
        health.rests_until = self.driver.clock.now() + pause_after(health.failures);
        health.failures += 1;
        health.rests_until
    }

    fn problem(&self, problem: Option<String>) -> Input {
        Input::StatusProblem(self.asked.repository.clone(), self.asked.writer.clone(), problem)
    }

    /// Which environments take no deployments, and why.
    fn closed(&self) -> Option<String> {
        let health = self.health();
        let closed = health.closed.iter().map(|(stage, why)| format!("environment `{stage}`: {why}"));
        (!health.closed.is_empty()).then(|| closed.collect::<Vec<_>>().join("; "))
    }

    async fn revive(&self, limit: u32) -> Result<()> {
        let due = self.driver.clock.now();
        self.commit(vec![Input::Write(Box::new(Write::Revive { lane: self.asked.lane(), due, limit }))]).await
    }

    async fn commit(&self, inputs: Vec<Input>) -> Result<()> {
        self.driver.commit(&inputs).await
    }

    fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
