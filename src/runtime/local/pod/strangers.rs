//! Pods that another life of the store has left, or another run.

use crate::error::{Failure, Result};
use crate::model::pod::{Origin, Pod, PodId};
use crate::runtime::RuntimeChange;
use crate::runtime::local::pod::adopted::{self, Adopted};
use crate::runtime::local::pod::table::Entry;
use crate::runtime::local::runtime::Inner;

impl Inner {
    /// What nobody waits for makes room for a run-once pod: what another life of the store has left, and what has the name
    /// of this one but was another run's.
    pub(crate) fn make_room(&self, pod: &Pod) -> Result<()> {
        let mut left = self.table().strange_runs(&pod.id.namespace);
        let is_other = |entry: &&Entry| entry.origin == Origin::Stranger || !entry.owner.answers(&pod.owner);
        let namesake = self.table().get(&pod.id).filter(is_other).map(Entry::ended);
        left.extend((namesake == Some(false)).then(|| pod.id.clone()));
        left.iter().try_for_each(|left| self.stop(left))?;
        match left.first() {
            Some(left) => Err(Failure::waiting(format!("`{left}`, for which nobody waits any more, is ending"))),
            None if namesake.is_some() => self.remove(&pod.id),
            None => Ok(()),
        }
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
        self.table().change(id, |entry| (entry.owner, entry.origin) = (owner.clone(), origin));
        self.tell_services(id);
        self.announce(RuntimeChange::Pod(id.clone(), owner));
        Ok(())
    }
}
