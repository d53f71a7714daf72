//! A service that stays as it is, because nothing of this life of the store says what it should be.

use super::record::{self, ServiceRecord};
use super::{Services, spec};
use crate::error::{Context, Result};
use crate::runtime::{ServiceAddress, ServiceSpec};

impl Services {
    /// Makes a service answer as [`Services::apply`] does, but as its record says if it has one.
    ///
    /// # Errors
    /// As [`Services::apply`].
    pub fn keep(&self, spec: &ServiceSpec) -> Result<ServiceAddress> {
        spec::check(spec)?;
        let dir = self.dir_of(spec)?;
        match record::read::<ServiceRecord>(&dir.record()) {
            Ok(Some(record)) => self.apply(&record.spec),
            Ok(None) => self.apply(spec),
            Err(error) if record::is_damage(&error) => self.apply(spec),
            Err(error) => Err(error).or_transient(|| format!("cannot read `{}`", dir.record().display())),
        }
    }
}
