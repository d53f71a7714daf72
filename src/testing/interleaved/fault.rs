//! Mistakes that the world makes on purpose, to show that they would be noticed: what a runtime, a store, a host or a
//! decision does when it is wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::broadcast;

use crate::error::{Failure, Result};
use crate::model::action::Action;
use crate::model::pod::{ObservedPod, Pod, PodPhase, ReplicaSet};
use crate::model::run::{Run, SequenceRun, SequenceState};
use crate::model::slot::SlotState;
use crate::model::state::ConfigState;
use crate::model::transaction::{Transaction, Write};
use crate::model::wanted::Target;
use crate::runtime::{Runtime, RuntimeChange};
use crate::simulation::runtime::PretendedRuntime;

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A transaction is durable although records have moved that it was decided on and does not write.
    IgnoresReads,
    /// A deployment that failed leaves in place what it has brought.
    KeepsWhatFailed,
    /// Of a head, the files of the commit before are read.
    ReadsTheLast,
    /// With every change of how many pods of a version there are, one more that is ready is ended.
    EndsOneMore,
    /// A run-once pod that has ended is started again when it is asked for again.
    StartsAgain,
    /// A pod that is to end goes on.
    KeepsPods,
    /// A `Service` object answers nowhere.
    LosesServices,
    /// What happens to pods is not told.
    TellsNothing,
    /// What is pushed is not told.
    LosesPushes,
    /// A host says that it has taken a failure, and shows it nowhere.
    HidesFailures,
    /// Nobody remembers which events were told.
    ForgetsTold,
    /// Who has a slot is not recorded.
    ForgetsHolders,
    /// What a task came to is taken back when the next one begins.
    ReopensTasks,
    /// Timers are not remembered.
    LosesTimers,
    /// Who listens hears of no beginning.
    LosesEvents,
    /// What waits does not say for what.
    SaysNothing,
}

impl Fault {
    /// Every mistake, with the word that stories have for it.
    pub const ALL: [(&'static str, Self); 16] = [
        ("ignores-reads", Self::IgnoresReads),
        ("keeps-what-failed", Self::KeepsWhatFailed),
        ("reads-the-last", Self::ReadsTheLast),
        ("ends-one-more", Self::EndsOneMore),
        ("starts-again", Self::StartsAgain),
        ("keeps-pods", Self::KeepsPods),
        ("loses-services", Self::LosesServices),
        ("tells-nothing", Self::TellsNothing),
        ("loses-pushes", Self::LosesPushes),
        ("hides-failures", Self::HidesFailures),
        ("forgets-told", Self::ForgetsTold),
        ("forgets-holders", Self::ForgetsHolders),
        ("reopens-tasks", Self::ReopensTasks),
        ("loses-timers", Self::LosesTimers),
        ("loses-events", Self::LosesEvents),
        ("says-nothing", Self::SaysNothing),
    ];
}

/// The mistake that is made from now on, if any: one world has one.
#[derive(Clone, Debug)]
pub(super) struct Made {
    /// Its place among all, from 1.
    place: Arc<AtomicU8>,
    /// By which nothing is ever told.
    silence: broadcast::Sender<RuntimeChange>,
}

impl Default for Made {
    fn default() -> Self {
        Self { place: Arc::default(), silence: broadcast::channel(1).0 }
    }
}

impl Made {
    /// From now on this mistake is made.
    pub(super) fn make(&self, word: &str) -> Result<()> {
        let known = Fault::ALL.iter().position(|(known, _)| *known == word);
        let known = known.ok_or_else(|| Failure::stalled(format!("`{word}` is no fault")))?;
        self.place.store(u8::try_from(known + 1).unwrap_or(u8::MAX), Ordering::Relaxed);
        Ok(())
    }

    /// Whether this mistake is made.
    pub(super) fn is(&self, fault: Fault) -> bool {
        self.now() == Some(fault)
    }

    fn now(&self) -> Option<Fault> {
        let number = usize::from(self.place.load(Ordering::Relaxed)).checked_sub(1)?;
        Fault::ALL.get(number).map(|(_, fault)| *fault)
    }

    /// Whoever listens here hears nothing.
    pub(super) fn silence(&self) -> broadcast::Receiver<RuntimeChange> {
        self.silence.subscribe()
    }

    /// What becomes of a transaction.
    pub(super) fn spoil(&self, transaction: &mut Transaction) {
        match self.now() {
            Some(Fault::IgnoresReads) => transaction.reads.clear(),
            Some(Fault::KeepsWhatFailed) => configs(transaction).for_each(keep_what_failed),
            Some(Fault::ForgetsTold) => transaction.writes.retain(|write| !matches!(write, Write::Delivery { .. })),
            Some(Fault::ForgetsHolders) => slots(transaction).for_each(|slot| slot.holder = None),
            Some(Fault::ReopensTasks) => sequences(transaction).for_each(reopen_tasks),
            Some(Fault::LosesTimers) => transaction.writes.retain(|write| !sets_timer(write)),
            Some(Fault::SaysNothing) => sequences(transaction).for_each(say_nothing),
            _ => {}
        }
    }
}

fn configs(transaction: &mut Transaction) -> impl Iterator<Item = &mut ConfigState> {
    transaction.writes.iter_mut().filter_map(|write| match write {
        Write::Config(config) => Some(Arc::make_mut(&mut config.value)),
        _ => None,
    })
}

fn sequences(transaction: &mut Transaction) -> impl Iterator<Item = &mut SequenceRun> {
    transaction.writes.iter_mut().filter_map(|write| match write {
        Write::Run(run) => match Arc::make_mut(&mut run.value) {
            Run::Sequence(run) => Some(&mut **run),
            Run::Deployment(_) => None,
        },
        _ => None,
    })
}

fn slots(transaction: &mut Transaction) -> impl Iterator<Item = &mut SlotState> {
    transaction.writes.iter_mut().filter_map(|write| match write {
        Write::Slot(slot) => Some(Arc::make_mut(&mut slot.value)),
        _ => None,
    })
}

fn sets_timer(write: &Write) -> bool {
    matches!(write, Write::Ask { action, .. } if matches!(**action, Action::SetTimer { .. }))
}

/// The task before the one that a sequence is at has no end any more.
fn reopen_tasks(run: &mut SequenceRun) {
    if let SequenceState::Running { task } = run.state
        && let Some(before) = task.checked_sub(1).and_then(|before| run.tasks.get_mut(before))
    {
        before.ended_at = None;
    }
}

fn say_nothing(run: &mut SequenceRun) {
    if run.ended_at.is_none() {
        run.message.clear();
        run.tasks.iter_mut().for_each(|task| task.message.clear());
    }
}

/// What was attempted is wanted, and not what served before.
fn keep_what_failed(config: &mut ConfigState) {
    let failed = config.attempted.as_ref().filter(|attempt| attempt.outcome.is_some_and(|outcome| !outcome.passes()));
    if let Some(failed) = failed.filter(|_| config.serving.is_some()) {
        config.wanted.targets = [(failed.version.number, Target::ALL)].into();
    }
}

/// Ends a ready pod of the same deployment config and of another version.
pub(super) async fn end_one_more(runtime: &PretendedRuntime, set: &ReplicaSet) -> Result<()> {
    let pods = runtime.observe(&set.destination.namespace).await?;
    let is_ready = |pod: &&ObservedPod| matches!(pod.phase, PodPhase::Ready { .. });
    let is_other = |pod: &&ObservedPod| {
        pod.version().is_some_and(|(config, version)| *config == set.config && version != set.version)
    };
    match pods.iter().filter(is_ready).find(is_other) {
        Some(pod) => runtime.stop_pod(&pod.id).await,
        None => Ok(()),
    }
}

/// Forgets a run-once pod that has ended, so that it can be started again.
pub(super) async fn forget_ended(runtime: &PretendedRuntime, pod: &Pod) -> Result<()> {
    let pods = runtime.observe(&pod.id.namespace).await?;
    let has_ended = |it: &ObservedPod| it.id == pod.id && matches!(it.phase, PodPhase::Ended { .. });
    match pods.iter().find(|it| has_ended(it)) {
        Some(ended) => runtime.remove_pod(ended).await,
        None => Ok(()),
    }
}
