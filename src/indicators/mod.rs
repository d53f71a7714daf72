//! The port to what measures service level indicators.

pub mod prometheus;

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::error::{Failure, Result};
use crate::model::evaluation::{Measurement, Reading};

/// Measures indicators.
#[async_trait]
pub trait Indicators: Send + Sync {
    /// What each of the indicators is; that one has no value is an answer too.
    ///
    /// # Errors
    /// `Transient` if nobody answers; otherwise if what answers cannot be asked.
    async fn measure(&self, measurement: &Measurement) -> Result<BTreeMap<String, Reading>>;
}

/// Where nothing is measured.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoIndicators;

#[async_trait]
impl Indicators for NoIndicators {
    async fn measure(&self, measurement: &Measurement) -> Result<BTreeMap<String, Reading>> {
        Err(Failure::stalled(format!("nothing is measured at {}", measurement.url)))
    }
}
