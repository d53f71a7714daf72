//! What is deleted when it is old.

use std::collections::BTreeSet;

use rpds::RedBlackTreeMapSync as Map;

use crate::model::ids::{CommitId, PlanId, RunId};
use crate::model::run::Run;
use crate::model::state::RevisionResult;
use crate::model::time::Timestamp;
use crate::store::{OutboxRow, Retention};
use crate::testing::memory_store::tables::Tables;

/// What open runs still need.
#[derive(Default)]
struct Needed {
    runs: BTreeSet<RunId>,
    commits: BTreeSet<CommitId>,
    plans: BTreeSet<PlanId>,
}

/// Deletes what is older than allowed; returns how many rows went. Revisions go before their plans.
pub(super) fn retain(tables: &mut Tables, retention: Retention) -> u64 {
    let Retention { before } = retention;
    let needed = needed(tables);
    let gone = delete(&mut tables.events, |_, event| event.at < before && !needed.runs.contains(&event.run));
    let heads: BTreeSet<_> = tables
        .repositories
        .values()
        .flat_map(|state| {
            let commits = state.value.applied.iter().chain(&state.value.seen);
            commits.map(|commit| (state.value.name.clone(), commit.clone())).collect::<Vec<_>>()
        })
        .collect();
    let gone = gone
        + delete(&mut tables.revisions, |key, (_, revision)| {
            revision.at < before && !heads.contains(key) && !needed.commits.contains(&key.1)
        });
    let planned: BTreeSet<PlanId> = tables
        .revisions
        .values()
        .filter_map(|(_, revision)| match &revision.result {
            RevisionResult::Planned(plan) => Some(plan.id.clone()),
            RevisionResult::Broken { .. } | RevisionResult::Refused { .. } => None,
        })
        .collect();
    gone + delete(&mut tables.plans, |id, plan| plan.at < before && !planned.contains(id) && !needed.plans.contains(id))
        + delete(&mut tables.posted, |_, (at, _)| *at < before)
        + forget_actions(tables, before)
        + delete(&mut tables.deliveries, |_, at| *at < before)
}

/// Reports that nobody took, and what was given up.
fn forget_actions(tables: &mut Tables, before: Timestamp) -> u64 {
    let old = |row: &OutboxRow| row.asked_at < before && (row.run.as_str() == "report" || row.due.is_none());
    let gone = delete(&mut tables.outbox, |_, row| old(row));
    let left = tables.outbox.clone();
    delete(&mut tables.asked, |_, id| !left.contains_key(id));
    gone
}

fn needed(tables: &Tables) -> Needed {
    let mut needed = Needed::default();
    for run in tables.open_runs() {
        needed.runs.insert(run.value.id().clone());
        needed.commits.insert(run.value.revision().1.clone());
        if let Run::Sequence(run) = &run.value {
            needed.plans.extend(run.plan.clone());
        }
    }
    needed
}

fn delete<K: Ord + Clone, V>(map: &mut Map<K, V>, goes: impl Fn(&K, &V) -> bool) -> u64 {
    let gone: Vec<K> = map.iter().filter(|(key, value)| goes(key, value)).map(|(key, _)| key.clone()).collect();
    for key in &gone {
        map.remove_mut(key);
    }
    gone.len() as u64
}
