//! Pods that another life of the store has left.

use crate::error::{Failure, Result};
use crate::model::pod::{Origin, PodId};
use crate::runtime::RuntimeChange;
use crate::runtime::local::pod::adopted::{self, Adopted};
use crate::runtime::local::runtime::Inner;

impl Inner {
    /// What another life of the store has left to run once makes room for one of this life.
    pub(crate) fn end_strange_runs(&self, pod: &PodId) -> Result<()> {
        let strangers = self.table().strange_runs(&pod.namespace);
        strangers.iter().try_for_each(|stranger| self.stop(stranger))?;
        if let Some(stranger) = strangers.first() {
            return Err(Failure::waiting(format!("`{stranger}`, started before the store was replaced, is ending")));
        }
        let namesake = self.table().get(pod).is_some_and(|entry| entry.origin == Origin::Stranger);
        if namesake { self.remove(pod) } else { Ok(()) }
    }

    /// Makes a stranger one of the pods of a version.
    pub(crate) fn adopt(&self, id: &PodId, version: u32) -> Result<()> {
        let Some(dir) = self.table().get(id).filter(|entry| entry.origin == Origin::Stranger).map(|it| it.dir.clone())
        else {
            return Ok(());
        };
        Adopted::new(self.options.incarnation.clone(), version).write(&dir)?;
        let (_, record) = self.record(id)?;
        let (owner, origin) = adopted::owner(&record, &dir, &self.options.incarnation)?;
        if let Some(entry) = self.table().get_mut(id) {
            (entry.owner, entry.origin) = (owner.clone(), origin);
        }
        self.announce(RuntimeChange::Pod(id.clone(), owner));
        self.tell_services(&id.namespace);
        Ok(())
    }
}
