//! Indicators that are what somebody says.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;

use crate::error::Result;
use crate::indicators::Indicators;
use crate::model::evaluation::{Measurement, Reading};
use crate::model::ids::RepositoryName;

/// Indicators by name.
#[derive(Debug, Default)]
pub struct PretendedIndicators(Mutex<BTreeMap<String, Reading>>);

impl PretendedIndicators {
    /// From now on, an indicator is what a text says.
    pub fn set(&self, indicator: &str, value: &str) {
        let mut readings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        readings.insert(indicator.to_owned(), Reading::of(value));
    }
}

#[async_trait]
impl Indicators for PretendedIndicators {
    async fn measure(
        &self,
        _repository: &RepositoryName,
        measurement: &Measurement,
    ) -> Result<BTreeMap<String, Reading>> {
        let readings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let reading = |name: &String| {
            let unknown = || Reading::Missing("nobody has said what it is".to_owned());
            (name.clone(), readings.get(name).cloned().unwrap_or_else(unknown))
        };
        Ok(measurement.queries.keys().map(reading).collect())
    }
}
