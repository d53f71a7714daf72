//! Waiting for a time that comes only when nobody has anything to do.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};

use crate::clock::{Clock, ManualClock};
use crate::model::time::Timestamp;

/// Who waits for what time.
#[derive(Clone, Debug)]
pub struct Alarms {
    clock: Arc<ManualClock>,
    waiting: Rc<RefCell<Waiting>>,
}

#[derive(Debug, Default)]
struct Waiting {
    number: u64,
    wakers: BTreeMap<(Timestamp, u64), Waker>,
}

/// Takes a place in the list back when its owner waits no longer.
struct Place {
    waiting: Rc<RefCell<Waiting>>,
    key: (Timestamp, u64),
}

impl Drop for Place {
    fn drop(&mut self) {
        self.waiting.borrow_mut().wakers.remove(&self.key);
    }
}

impl Alarms {
    /// Nobody waits yet.
    pub fn new(clock: Arc<ManualClock>) -> Self {
        Self { clock, waiting: Rc::default() }
    }

    /// Waits until it is `at`; for ever without a time.
    pub async fn wait_until(&self, at: Option<Timestamp>) {
        let Some(at) = at else { return std::future::pending().await };
        let number = {
            let mut waiting = self.waiting.borrow_mut();
            waiting.number += 1;
            waiting.number
        };
        let place = Place { waiting: self.waiting.clone(), key: (at, number) };
        poll_fn(|context| {
            if self.clock.now() >= at {
                return Poll::Ready(());
            }
            self.waiting.borrow_mut().wakers.insert(place.key, context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// The next time that somebody waits for.
    pub fn next(&self) -> Option<Timestamp> {
        self.waiting.borrow().wakers.keys().next().map(|(at, _)| *at)
    }

    /// It is `now`: whoever waited for that goes on.
    pub fn advance_to(&self, now: Timestamp) {
        self.clock.advance_to(now);
        let mut waiting = self.waiting.borrow_mut();
        let later = waiting.wakers.split_off(&(now, u64::MAX));
        for waker in std::mem::replace(&mut waiting.wakers, later).into_values() {
            waker.wake();
        }
    }
}
