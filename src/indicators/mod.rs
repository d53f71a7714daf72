//! The port to what measures service level indicators.

pub mod prometheus;

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::error::Result;
use crate::model::evaluation::{Measurement, Reading};
use crate::model::ids::RepositoryName;

/// Measures indicators.
#[async_trait]
pub trait Indicators: Send + Sync {
    /// What each of the indicators is that a repository asks for; that one has no value is an answer too.
    ///
    /// # Errors
    /// `Transient` if nobody answers; otherwise if what answers cannot be asked.
    async fn measure(
        &self,
        repository: &RepositoryName,
        measurement: &Measurement,
    ) -> Result<BTreeMap<String, Reading>>;
}
