//! Makes decisions durable: reads what a decision asks for, commits what it decided, decides again if something moved
//! meanwhile, and wakes whom it concerns.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, Ids};
use crate::engine::records::{Lookup, Need, Records, Undecided};
use crate::engine::transition::{Input, SLOTS_AT_ONCE, Touched, Transition};
use crate::error::{Failure, Result};
use crate::executor::hindrances::Hindrances;
use crate::executor::lookup::look_up;
use crate::executor::pace::Pace;
use crate::executor::recent::{Recent, stored};
use crate::executor::renderings::Renderings;
use crate::executor::selector_index::SelectorIndex;
use crate::executor::sinks::Subscribers;
use crate::executor::writer_lanes::WriterLanes;
use crate::model::action::Lane;
use crate::model::event::Event;
use crate::model::ids::{ProjectName, RunId};
use crate::model::run::TaskLimits;
use crate::model::transaction::{RecordKey, Write};
use crate::store::{CommitError, OutboxId, OutboxRow, Retained, Retention, Store, Transaction};
use crate::telemetry::Metrics;

/// How often something is decided anew before giving up; conflicts come from a handful of tasks of one process.
pub const TRIES: u32 = 100;
/// How many announcements a slow listener may miss before it has to examine everything.
const ANNOUNCEMENTS: usize = 1024;

/// A decision, which puts its answer by: what makes one durable is then compiled once, and not for each answer.
type Decision<'a> = dyn FnMut(&mut Transition<'_>) -> Result<(), Undecided> + Send + 'a;

/// Makes decisions durable.
#[derive(Clone)]
pub struct Driver {
    /// What is remembered.
    pub store: Arc<dyn Store>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// New identities.
    pub ids: Arc<dyn Ids>,
    /// Counts commits and actions.
    pub metrics: Arc<Metrics>,
    /// Who is asked for reports when a revision has news.
    pub writers: Arc<WriterLanes>,
    /// Who is told what happens to sequences.
    pub subscribers: Arc<Subscribers>,
    /// What is said of revisions.
    pub renderings: Arc<Renderings>,
    /// What keeps deployment configs from what is wanted of them.
    pub hindrances: Arc<Hindrances>,
    /// Which `Service` objects lead to which pods.
    pub selectors: Arc<SelectorIndex>,
    /// Who is behind with their work.
    pub pace: Arc<Pace>,
    limits: TaskLimits,
    /// What decisions need not ask the store for again, if anything.
    recent: Option<Arc<Recent>>,
    fenced: CancellationToken,
    touched: broadcast::Sender<Touched>,
    /// What becomes durable with each decision.
    along: Option<Arc<Write>>,
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

impl Driver {
    /// A driver over a store.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Self {
        let (metrics, touched) = (Arc::new(Metrics::new()), broadcast::channel(ANNOUNCEMENTS).0);
        let (writers, subscribers, renderings, hindrances, selectors, pace) = Default::default();
        let (limits, recent, fenced) = (TaskLimits::default(), Some(Arc::default()), CancellationToken::new());
        Self {
            store,
            clock,
            ids,
            metrics,
            writers,
            subscribers,
            renderings,
            hindrances,
            selectors,
            pace,
            limits,
            recent,
            fenced,
            touched,
            along: None,
        }
    }

    /// The same with something that becomes durable together with whatever it decides: that a decision was made is then known
    /// also to who comes after a crash.
    #[must_use]
    pub fn along(&self, write: Write) -> Self {
        Self { along: Some(Arc::new(write)), ..self.clone() }
    }

    /// With how long the tasks of sequences that it starts may take.
    #[must_use]
    pub fn with_limits(self, limits: TaskLimits) -> Self {
        Self { limits, ..self }
    }

    /// With who is told what happens.
    #[must_use]
    pub fn with_subscribers(self, subscribers: Subscribers) -> Self {
        Self { subscribers: Arc::new(subscribers), ..self }
    }

    /// One that asks the store for everything, where something else may write what it has read.
    #[must_use]
    pub fn forgetful(self) -> Self {
        Self { recent: None, ..self }
    }

    /// Cancelled once another process has taken the store over: nothing that this one decides counts any more, so that
    /// it has to stop.
    pub fn fenced(&self) -> &CancellationToken {
        &self.fenced
    }

    /// Takes rows of a lane that are due now; see [`Store::claim`].
    ///
    /// # Errors
    /// If the store fails, or another process has taken it over.
    pub async fn claim(&self, lane: &Lane, limit: u32) -> Result<Vec<OutboxRow>> {
        let claimed = self.store.claim(lane, self.clock.now(), limit).await;
        claimed.map_err(|error| self.judged(error))
    }

    /// Gives a claimed row back as it is.
    ///
    /// # Errors
    /// As [`Driver::claim`].
    pub async fn give_back(&self, row: OutboxId) -> Result<()> {
        self.store.give_back(row).await.map_err(|error| self.judged(error))
    }

    /// Deletes what nothing needs any more; see [`Store::retain`].
    ///
    /// # Errors
    /// If the store fails.
    pub async fn retain(&self, retention: Retention) -> Result<Retained> {
        let retained = self.store.retain(retention).await;
        self.recent.iter().for_each(|recent| recent.forget());
        retained
    }

    /// Makes sure that no other process has taken the store over, for whoever acts on what no commit guards. A store that
    /// cannot be written is no reason to let pods die.
    ///
    /// # Errors
    /// If another process has taken it over.
    pub async fn guard(&self) -> Result<()> {
        match self.store.commit(Transaction::default()).await {
            Err(error @ CommitError::Fenced) => Err(self.judged(error)),
            Ok(()) | Err(CommitError::Conflict { .. } | CommitError::Failed(_)) => Ok(()),
        }
    }

    /// What became of a commit; if nothing more will ever be committed, everybody has the word to stop.
    fn judged(&self, error: CommitError) -> Failure {
        if matches!(error, CommitError::Fenced) {
            self.fenced.cancel();
        }
        error.into()
    }

    /// Announcements of what changed, from now on.
    pub fn changes(&self) -> broadcast::Receiver<Touched> {
        self.touched.subscribe()
    }

    /// Tells a run one fact.
    ///
    /// # Errors
    /// As [`Driver::decide`].
    pub async fn tell(&self, run: &RunId, event: Event) -> Result<()> {
        self.commit(&[Input::Tell(run.clone(), event)]).await
    }

    /// Makes everything that follows from some inputs durable, in one transaction.
    ///
    /// # Errors
    /// As [`Driver::decide`].
    pub async fn commit(&self, inputs: &[Input]) -> Result<()> {
        self.decide(|transition| inputs.iter().try_for_each(|input| transition.take(input))).await
    }

    /// Makes a decision, and everything that follows from it, durable in one transaction. It is made again from the
    /// beginning whenever it asks for something, and when something that it was made on has moved. It may be made on what is
    /// remembered, because that is compared with what there is when it is committed; what commits nothing is made on what is
    /// read.
    ///
    /// # Errors
    /// If it is refused, the store fails, or another process has taken the store over.
    pub async fn decide<T: Send>(
        &self,
        decision: impl Fn(&mut Transition<'_>) -> Result<T, Undecided> + Send + Sync,
    ) -> Result<T> {
        let mut records = if self.recent.is_some() { Records::trusting() } else { Records::default() };
        for _ in 0..TRIES {
            if let Some(answer) = self.try_decide(&mut records, &decision).await? {
                return Ok(answer);
            }
            records.forget();
        }
        Err(keeps_changing())
    }

    /// As [`Driver::decide`], but on records that were read before, and once: nothing, if one of them has moved
    /// meanwhile; then nothing was committed.
    ///
    /// # Errors
    /// As [`Driver::decide`].
    pub async fn try_decide<T: Send>(
        &self,
        records: &mut Records,
        decision: impl Fn(&mut Transition<'_>) -> Result<T, Undecided> + Send,
    ) -> Result<Option<T>> {
        let mut answer = None;
        let is_committed = self.try_commit(records, &mut kept(decision, &mut answer)).await?;
        Ok(answer.filter(|_| is_committed))
    }

    /// Whether a decision could be made durable, as it was made now.
    async fn try_commit(&self, records: &mut Records, decision: &mut Decision<'_>) -> Result<bool> {
        let (mut transaction, touched) = self.outcome(records, decision).await?;
        transaction.writes.extend(self.writers.ask(&touched.reports, self.clock.now()));
        transaction.writes.extend(self.writers.ask_overtaken(&touched.planned, self.clock.now()));
        if transaction.writes.is_empty() {
            return Ok(true);
        }
        transaction.writes.extend(self.along.as_deref().cloned());
        let foretold = self.renderings.foretell(&*self.store, &transaction).await;
        let committed = self.make_durable(transaction).await;
        if let (Some(foretold), Err(_)) = (&foretold, &committed) {
            self.renderings.take_back(foretold);
        }
        self.metrics.commit(&committed);
        match committed {
            Ok(()) => {
                self.count(&touched);
                self.writers.wake(&touched.reports);
                self.subscribers.wake(&touched.asked);
                // Nobody listening is fine: whoever starts later examines everything first.
                drop(self.touched.send(touched));
                Ok(true)
            }
            Err(CommitError::Conflict { what }) => {
                tracing::debug!(what, "decided on old values, deciding again");
                Ok(false)
            }
            Err(error) => Err(self.judged(error)),
        }
    }

    async fn make_durable(&self, transaction: Transaction) -> Result<(), CommitError> {
        let Some(recent) = &self.recent else { return self.store.commit(transaction).await };
        let writing = recent.begin(&transaction);
        let committed = self.store.commit(transaction).await;
        match &committed {
            Ok(()) => recent.committed(writing),
            Err(_) => recent.refused(writing),
        }
        committed
    }

    /// What a decision comes to, without making it durable.
    ///
    /// # Errors
    /// If it is refused, or the store cannot be read.
    pub async fn work_out<T: Send>(
        &self,
        records: &mut Records,
        decision: impl Fn(&mut Transition<'_>) -> Result<T, Undecided> + Send,
    ) -> Result<(T, Transaction, Touched)> {
        let mut answer = None;
        let (transaction, touched) = self.outcome(records, &mut kept(decision, &mut answer)).await?;
        let answer = answer.ok_or_else(|| Failure::stalled("nothing was decided"))?;
        Ok((answer, transaction, touched))
    }

    async fn outcome(&self, records: &mut Records, decision: &mut Decision<'_>) -> Result<(Transaction, Touched)> {
        loop {
            records.forget_changes();
            let mut transition = Transition::new(records, self.clock.now(), self.limits);
            let decided = decision(&mut transition);
            match decided.and_then(|()| transition.propagate()) {
                Ok(outcome) if !outcome.is_sure(records) => records.forget(),
                Err(Undecided::Refused(_)) if records.rest_on_memory() => records.forget(),
                Ok(outcome) => {
                    let told = self.subscribers.ask(records.runs.changed(), self.clock.now());
                    let (mut transaction, mut touched) = outcome.finish(std::mem::take(records));
                    touched.ask(told, &mut transaction);
                    return Ok((transaction, touched));
                }
                Err(Undecided::Refused(failure)) => return Err(failure),
                Err(Undecided::Needs(needs)) => self.read(needs, records).await?,
            }
        }
    }

    /// Examines every slot of a project that somebody has or waits for; many at their time.
    ///
    /// # Errors
    /// As [`Driver::decide`].
    pub async fn examine_slots(&self, project: &ProjectName) -> Result<()> {
        let slots = BTreeSet::from_iter(self.store.open_slot_keys(Some(project)).await?);
        if slots.len() > SLOTS_AT_ONCE {
            drop(self.touched.send(Touched { slots, ..Touched::default() }));
            return Ok(());
        }
        self.commit(&Vec::from_iter(slots.into_iter().map(Input::Examine))).await
    }

    async fn read(&self, needs: Vec<Need>, records: &mut Records) -> Result<()> {
        let mut read = BTreeSet::new();
        for need in needs {
            match need {
                Need::Id => records.add_id(self.ids.next(self.clock.now())),
                need if !read.insert(need.clone()) => {} // several asked for it
                Need::Lookup(lookup) if records.assume(&lookup) => {}
                Need::Lookup(lookup) => self.read_lookup(*lookup, records).await?,
                Need::Record(key) => self.read_record(key, records).await?,
            }
        }
        Ok(())
    }

    /// Takes a record from what is remembered, or asks the store.
    async fn read_record(&self, key: RecordKey, records: &mut Records) -> Result<()> {
        let Some(recent) = &self.recent else {
            records.read(stored(&*self.store, key).await?);
            return Ok(());
        };
        if !records.recall(&key, |key| recent.known(key)) {
            let asked = recent.ask(&key);
            let found = stored(&*self.store, key).await?;
            recent.read(asked, &found);
            records.read(found);
        }
        Ok(())
    }

    /// Takes what an earlier lookup found, or asks the store.
    async fn read_lookup(&self, lookup: Lookup, records: &mut Records) -> Result<()> {
        let recent = self.recent.as_ref().filter(|_| lookup.is_of_plans());
        if records.recall_lookup(&lookup, || recent?.found(&lookup)) {
            return Ok(());
        }
        let asked = recent.map(|recent| recent.look_up());
        let found = look_up(&*self.store, &lookup).await?;
        if let (Some(recent), Some(asked)) = (recent, asked) {
            recent.has_found(asked, &lookup, &found);
        }
        records.found(lookup, found);
        Ok(())
    }

    /// The records and lookups that are remembered otherwise than they are stored: none, if nobody writes past this driver.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn misremembered(&self) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        for known in self.recent.iter().flat_map(|recent| recent.all()) {
            if stored(&*self.store, known.key()).await? != known {
                wrong.push(known.key().to_string());
            }
        }
        for (lookup, found) in self.recent.iter().flat_map(|recent| recent.all_found()) {
            if look_up(&*self.store, &lookup).await? != found {
                wrong.push(format!("{lookup:?}"));
            }
        }
        Ok(wrong)
    }

    fn count(&self, touched: &Touched) {
        touched.begun.iter().for_each(|kind| self.metrics.run_started(*kind));
        touched.ended.iter().for_each(|(kind, outcome)| self.metrics.run_ended(*kind, *outcome));
    }
}

/// A decision that puts its answer by.
fn kept<T>(
    decision: impl Fn(&mut Transition<'_>) -> Result<T, Undecided>,
    answer: &mut Option<T>,
) -> impl FnMut(&mut Transition<'_>) -> Result<(), Undecided> {
    move |transition| {
        *answer = Some(decision(transition)?);
        Ok(())
    }
}

/// What there is to say after [`TRIES`].
pub fn keeps_changing() -> Failure {
    Failure::transient("what was decided on kept changing")
}
