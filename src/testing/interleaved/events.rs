//! The events that a daemon is told, and those that it tells: what was told can be told again, and who listens remembers
//! what it heard.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use crate::error::{Failure, Result};
use crate::executor::sinks::{Subscriber, Subscribers};
use crate::model::cloud_event::CloudEvent;
use crate::model::time::Timestamp;
use crate::sinks::{Refusal, Sink};
use crate::testing::interleaved::fault::{Fault, Made};
use crate::testing::interleaved::scheduler::turn;

/// What was told and heard; it goes on when the daemon dies.
#[derive(Clone, Debug, Default)]
pub(super) struct Events(Arc<Mutex<Exchange>>, Made);

#[derive(Debug, Default)]
struct Exchange {
    /// What was told to the daemon, oldest first.
    told: Vec<CloudEvent>,
    /// The ids of what must have no effect.
    vain: Vec<String>,
    /// Whether anybody listens.
    listens: bool,
    /// Whether who listens takes nothing now.
    is_busy: bool,
    /// What was heard, oldest first.
    heard: Vec<CloudEvent>,
}

impl Events {
    /// Nothing was told yet; where a mistake is made, it is this one.
    pub(super) fn new(listens: bool, made: Made) -> Self {
        Self(Arc::new(Mutex::new(Exchange { listens, ..Exchange::default() })), made)
    }

    /// Whoever listens, if somebody does.
    pub(super) fn subscriber(&self) -> Option<Arc<Subscriber>> {
        let subscriber = || Arc::new(Subscriber::new("ear".into(), "http://ear".to_owned(), Vec::new()));
        self.exchange().listens.then(subscriber)
    }

    /// Who listens takes nothing for a while, or everything.
    pub(super) fn be_busy(&self, is_busy: bool) {
        self.exchange().is_busy = is_busy;
    }

    /// A new id for an event.
    pub(super) fn fresh_id(&self) -> String {
        format!("told-{}", self.exchange().told.len())
    }

    /// An event is told, which must have no effect if it is in vain.
    pub(super) fn tell(&self, event: &CloudEvent, is_vain: bool) {
        let mut exchange = self.exchange();
        exchange.told.push(event.clone());
        if is_vain {
            exchange.vain.push(event.id.clone());
        }
    }

    /// What was told so many events ago.
    pub(super) fn told(&self, back: usize) -> Result<CloudEvent> {
        let told = self.exchange();
        let event = told.told.iter().rev().nth(back).cloned();
        event.ok_or_else(|| Failure::stalled("so much was never told"))
    }

    /// The ids of events that must have had no effect.
    pub(super) fn vain(&self) -> Vec<String> {
        self.exchange().vain.clone()
    }

    /// What was heard, oldest first; nothing, if nobody listens.
    pub(super) fn heard(&self) -> Option<Vec<CloudEvent>> {
        let exchange = self.exchange();
        exchange.listens.then(|| exchange.heard.clone())
    }

    fn exchange(&self) -> MutexGuard<'_, Exchange> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Those who are told what happens.
pub(super) fn subscribers(subscriber: Option<&Arc<Subscriber>>) -> Subscribers {
    Subscribers::new(subscriber.into_iter().cloned().collect())
}

#[async_trait]
impl Sink for Events {
    async fn post(&self, event: &CloudEvent, _now: Timestamp) -> Result<(), Refusal> {
        turn().await;
        let is_lost = self.1.is(Fault::LosesEvents) && event.kind.ends_with(".started");
        let mut exchange = self.exchange();
        if exchange.is_busy {
            return Err(Refusal::Later { failure: Failure::transient("busy"), after: Duration::ZERO });
        }
        if !is_lost {
            exchange.heard.push(event.clone());
        }
        Ok(())
    }
}
