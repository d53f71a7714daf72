//! Which pods need something, so that nobody looks through all of them.

use std::collections::BTreeSet;

use super::status::PodStatus;
use super::table::Entry;
use crate::model::ids::{Namespace, PodName};
use crate::model::pod::{Origin, PodId};

/// Kept true by the table, whatever becomes of a pod.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Those that have not ended and the end of whose shim nobody waits for.
    pub(super) unwatched: BTreeSet<PodId>,
    /// Those whose shim's last word is damaged or gone.
    pub(super) unreadable: BTreeSet<PodId>,
    /// Those that have not ended and that another life of the store has left.
    strange: BTreeSet<PodId>,
    /// Those that run under shims of another program than this one.
    pub(super) of_another_build: BTreeSet<PodId>,
}

impl Index {
    /// A pod is as `now` says, or known no longer.
    pub(super) fn note(&mut self, id: &PodId, now: Option<&Entry>) {
        let is_in = |set: &mut BTreeSet<PodId>, belongs: bool| match belongs {
            true => drop(set.insert(id.clone())),
            false => drop(set.remove(id)),
        };
        let running = now.filter(|entry| !entry.ended());
        is_in(&mut self.unwatched, running.is_some_and(|entry| !entry.watched));
        is_in(&mut self.unreadable, now.is_some_and(Entry::is_unreadable));
        is_in(&mut self.strange, running.is_some_and(|entry| entry.origin == Origin::Stranger));
        let status = running.and_then(Entry::status);
        is_in(&mut self.of_another_build, status.is_some_and(PodStatus::is_of_another_build));
    }

    /// Those of a namespace that another life of the store has left.
    pub(super) fn strange_in(&self, namespace: &Namespace) -> impl Iterator<Item = &PodId> {
        let first = PodId { namespace: namespace.clone(), name: PodName::new("") };
        self.strange.range(first..).take_while(move |id| id.namespace == *namespace)
    }
}
