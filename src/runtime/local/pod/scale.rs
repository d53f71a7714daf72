//! So many pods of a version: which of them start, end and are forgotten.

use crate::error::Result;
use crate::model::pod::ReplicaSet;
use crate::model::time::Timestamp;
use crate::runtime::Objects;
use crate::runtime::local::runtime::Inner;
use crate::runtime::replicas;

impl Inner {
    /// Brings a version from `living` pods to so many, a few at a time. Says when to ask again because of those that had to
    /// wait.
    pub(crate) fn scale(&self, set: &ReplicaSet, living: u32, objects: &Objects) -> Result<Option<Timestamp>> {
        let now = self.now();
        let pods = self.table().observe_config(&set.destination.namespace, &set.config);
        let choice = replicas::choose(set, living, &pods, now);
        choice.stop.iter().try_for_each(|pod| self.stop(pod))?;
        choice.remove.iter().try_for_each(|pod| self.remove(pod))?;
        choice.start.iter().try_for_each(|number| self.start(&set.pod(*number), objects, now))?;
        Ok(choice.again)
    }
}
