//! The port to sinks: who is told what happens by HTTP.

pub mod http;

use std::time::Duration;

use async_trait::async_trait;

use crate::error::Failure;
use crate::model::cloud_event::CloudEvent;
use crate::model::time::Timestamp;

/// Takes events.
#[async_trait]
pub trait Sink: Send + Sync {
    /// Tells it an event, within bounds; `now` is when it is told, in its signature.
    ///
    /// # Errors
    /// If it has not taken it.
    async fn post(&self, event: &CloudEvent, now: Timestamp) -> Result<(), Refusal>;
}

/// Why an event was not taken.
#[derive(Debug)]
pub enum Refusal {
    /// It may be later.
    Later {
        /// Why.
        failure: Failure,
        /// How long to wait at least, as it says.
        after: Duration,
    },
    /// It never will be.
    Never(Failure),
}
