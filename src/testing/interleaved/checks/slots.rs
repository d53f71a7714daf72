//! Who has a slot, checked after every commit.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::ids::{RunId, ServiceKey};
use crate::model::run::{Run, SequenceRun, SequenceState};
use crate::store::{RunFilter, Store};
use crate::testing::interleaved::checks::{Held, Invariant, Violation};
use crate::testing::interleaved::people::now;

/// What was seen of slots so far.
#[derive(Debug, Default)]
pub(super) struct Slots {
    /// Runs that were seen to have begun.
    begun: BTreeSet<RunId>,
}

impl Slots {
    pub(super) fn check(&mut self, store: &dyn Store) -> Held {
        let open = RunFilter { sequences: Some(true), open: Some(true), ..RunFilter::default() };
        let mut under_way: BTreeMap<ServiceKey, RunId> = BTreeMap::new();
        for run in now(store.runs(&open))? {
            let Run::Sequence(run) = run.value else { continue };
            if run.state == SequenceState::Queued {
                continue;
            }
            if let Some(other) = under_way.insert(run.service.clone(), run.id.clone()) {
                let what = format!("{} and {} are both under way in {}", other, run.id, run.service);
                return Ok(Err(Violation::new(Invariant::OneRunPerSlot, what)));
            }
            if self.begun.insert(run.id.clone())
                && let Err(violation) = held(store, &run)?
            {
                return Ok(Err(violation));
            }
        }
        Ok(Ok(()))
    }
}

fn held(store: &dyn Store, run: &SequenceRun) -> Held {
    let ServiceKey { project, stage, service } = &run.service;
    let holds = now(store.holds())?;
    let hold = holds.iter().find(|hold| hold.scope.covers(project, stage, service) && !run.is_rollback);
    Ok(match hold {
        Some(hold) => {
            let what = format!("{} ({}) begins although {} is held", run.id, run.cause, hold.scope);
            Err(Violation::new(Invariant::HoldsHold, what))
        }
        None => Ok(()),
    })
}
