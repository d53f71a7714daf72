//! Who has a slot, checked after every commit.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::ids::{RunId, ServiceKey};
use crate::model::run::{Run, SequenceRun, SequenceState};
use crate::simulation::memory_store::MemoryDisk;
use crate::store::Store;
use crate::testing::interleaved::checks::{Held, Invariant, Violation};
use crate::testing::interleaved::people::now;

/// What was seen of slots so far.
#[derive(Debug, Default)]
pub(super) struct Slots {
    /// Runs that were seen to have begun.
    begun: BTreeSet<RunId>,
}

impl Slots {
    /// What began before anybody looked.
    pub(super) fn found_in(disk: &MemoryDisk) -> Self {
        let has_begun =
            |run: &Run| run.sequence().filter(|run| run.state != SequenceState::Queued).map(|run| run.id.clone());
        Self { begun: disk.open_runs().iter().filter_map(|run| has_begun(&run.value)).collect() }
    }

    pub(super) fn check(&mut self, store: &dyn Store, disk: &MemoryDisk) -> Held {
        let mut under_way: BTreeMap<ServiceKey, RunId> = BTreeMap::new();
        let open = disk.open_runs();
        for run in open.iter().rev().filter_map(|run| run.value.sequence()) {
            let is_under_way = matches!(run.state, SequenceState::Running { .. } | SequenceState::Ending { .. });
            if !is_under_way || run.yields_slot() {
                continue;
            }
            if let Some(other) = under_way.insert(run.service.clone(), run.id.clone()) {
                let what = format!("{} and {} are both under way in {}", other, run.id, run.service);
                return Ok(Err(Violation::new(Invariant::OneRunPerSlot, what)));
            }
            if self.begun.insert(run.id.clone())
                && let Err(violation) = held(store, run)?
            {
                return Ok(Err(violation));
            }
        }
        Ok(Ok(()))
    }
}

fn held(store: &dyn Store, run: &SequenceRun) -> Held {
    let holds = now(store.holds())?.whole()?;
    let hold = holds.iter().find(|hold| run.is_held_by(hold));
    Ok(match hold {
        Some(hold) => {
            let what = format!("{} ({}) begins although {} is held", run.id, run.cause, hold.scope);
            Err(Violation::new(Invariant::HoldsHold, what))
        }
        None => Ok(()),
    })
}
