//! Examines slots: of a push that starts more runs than one transaction admits, and all that are open when a daemon
//! starts, since nobody knows what an earlier one had examined. A few at a time, and the same share for every project
//! that waits, while nobody is behind with what was admitted before.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use crate::engine::transition::{Input, SLOTS_AT_ONCE, Touched};
use crate::error::{Class, Result};
use crate::executor::drive::Driver;
use crate::executor::hindrances::Hindrances;
use crate::executor::line::Line;
use crate::executor::outbox::STORE_PAUSE;
use crate::model::ids::{ProjectName, ServiceKey};
use crate::model::time::Timestamp;

/// How long to wait when nothing is known to come.
const IDLE: Duration = Duration::from_secs(60);

/// Examines slots.
#[derive(Clone, Debug)]
pub struct Admission {
    driver: Driver,
    /// Slots that cannot be examined.
    aside: Arc<Hindrances<ServiceKey>>,
}

/// The slots that are to be examined.
#[derive(Debug, Default)]
pub(crate) struct SlotQueue {
    everything: bool,
    /// First come, first served.
    waiting: BTreeMap<ProjectName, Line<ServiceKey>>,
    /// Those that could not be examined, with when to try again.
    later: BTreeMap<ServiceKey, Timestamp>,
}

impl Admission {
    /// Over a driver.
    pub fn new(driver: Driver) -> Self {
        Self { driver, aside: Arc::default() }
    }

    /// Works until told to stop.
    pub async fn run(self, stop: CancellationToken) {
        let mut changes = self.driver.changes();
        let mut queue = SlotQueue::everything();
        while !stop.is_cancelled() {
            let now = self.driver.clock.now();
            let wait = queue.later.values().min().map_or(IDLE, |at| at.since(now));
            tokio::select! {
                () = stop.cancelled() => break,
                change = changes.recv() => queue.touched(change),
                () = tokio::time::sleep(wait) => queue.come_due(self.driver.clock.now()),
                () = self.driver.pace.caught_up(), if !queue.is_empty() => {
                    if let Err(failure) = self.examine_some(&mut queue).await {
                        tracing::error!(problem = failure.one_line(), "cannot examine whose turn it is");
                        tokio::select! { () = stop.cancelled() => break, () = tokio::time::sleep(STORE_PAUSE) => {} }
                    }
                }
            }
        }
    }

    /// Examines every slot that somebody has or waits for.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn examine_everything(&self) -> Result<()> {
        let mut queue = SlotQueue::everything();
        while !queue.is_empty() {
            self.examine_some(&mut queue).await?;
        }
        Ok(())
    }

    /// Examines the slots whose turn it is.
    ///
    /// # Errors
    /// If the store fails.
    pub(crate) async fn examine_some(&self, queue: &mut SlotQueue) -> Result<()> {
        if queue.everything {
            queue.extend(self.driver.store.open_slot_keys(None).await?);
            queue.everything = false;
        }
        let some = queue.take_some();
        let inputs: Vec<Input> = some.iter().cloned().map(Input::Examine).collect();
        if self.driver.commit(&inputs).await.is_ok() {
            return Ok(());
        }
        // One that cannot be examined holds up nobody but itself.
        let mut some = some.into_iter();
        while let Some(service) = some.next() {
            match self.driver.commit(&[Input::Examine(service.clone())]).await {
                Err(failure) if failure.class() != Class::Stalled => {
                    queue.put_back(std::iter::once(service).chain(some).collect());
                    return Err(failure);
                }
                Err(failure) => {
                    let pause = self.aside.note(&service, &failure);
                    queue.later.insert(service, self.driver.clock.now() + pause);
                }
                Ok(()) => self.aside.forget(&service),
            }
        }
        Ok(())
    }
}

impl SlotQueue {
    /// Every open slot is to be examined.
    pub(crate) fn everything() -> Self {
        Self { everything: true, ..Self::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.everything && self.waiting.is_empty()
    }

    pub(crate) fn touched(&mut self, change: Result<Touched, RecvError>) {
        match change {
            Ok(touched) => self.extend(touched.slots),
            Err(_) => self.everything = true,
        }
    }

    fn come_due(&mut self, now: Timestamp) {
        let due: Vec<ServiceKey> = self.later.extract_if(.., |_, at| *at <= now).map(|(slot, _)| slot).collect();
        self.extend(due);
    }

    fn extend(&mut self, slots: impl IntoIterator<Item = ServiceKey>) {
        for slot in slots {
            self.waiting.entry(slot.project.clone()).or_default().extend([slot]);
        }
    }

    fn put_back(&mut self, slots: Vec<ServiceKey>) {
        for slot in slots.into_iter().rev() {
            self.waiting.entry(slot.project.clone()).or_default().put_back(std::iter::once(slot));
        }
    }

    /// The same share of every project, at least one of each.
    fn take_some(&mut self) -> Vec<ServiceKey> {
        let share = SLOTS_AT_ONCE.div_ceil(self.waiting.len().max(1));
        let some = self.waiting.values_mut().flat_map(|slots| slots.take(share)).collect();
        self.waiting.retain(|_, slots| !slots.is_empty());
        some
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(project: &str, count: usize) -> Vec<ServiceKey> {
        let slot = |number| ServiceKey {
            project: project.into(),
            stage: "dev".into(),
            service: format!("app-{number:03}").as_str().into(),
        };
        (0..count).map(slot).collect()
    }

    #[test]
    fn who_comes_later_is_not_behind_all_that_waits() {
        let mut queue = SlotQueue::default();
        queue.extend(slots("large", 100));
        assert_eq!(queue.take_some().len(), SLOTS_AT_ONCE);
        queue.extend(slots("small", 1));
        let next = queue.take_some();
        assert!(next.contains(&slots("small", 1)[0]), "{next:?}");
        let rest: usize = std::iter::from_fn(|| Some(queue.take_some().len()).filter(|taken| *taken > 0)).sum();
        assert_eq!((next.len() + rest, queue.is_empty()), (100 - SLOTS_AT_ONCE + 1, true));
    }

    #[test]
    fn within_a_project_who_came_first_is_first_whatever_its_name() {
        let mut queue = SlotQueue::default();
        let (late, early) = (slots("shop", SLOTS_AT_ONCE + 1), slots("shop", SLOTS_AT_ONCE + 2).pop());
        queue.extend(early.clone());
        queue.extend(late);
        assert_eq!(queue.take_some().first(), early.as_ref());
    }

    #[test]
    fn a_slot_that_cannot_be_examined_comes_again_at_its_time() {
        let mut queue = SlotQueue::default();
        let slot = slots("shop", 1).remove(0);
        queue.later.insert(slot.clone(), Timestamp(2));
        queue.come_due(Timestamp(1));
        assert!(queue.is_empty());
        queue.come_due(Timestamp(2));
        assert_eq!((queue.take_some(), queue.later.len()), (vec![slot], 0));
    }
}
