//! What is deleted once nothing needs it any more.

use std::collections::{BTreeMap, BTreeSet};

use rpds::RedBlackTreeMapSync as Map;

use crate::model::action::REPORTS;
use crate::model::ids::{CommitId, PlanId, RepositoryName, RunId, ServiceKey};
use crate::model::run::{Run, SequenceRun};
use crate::model::slot::{PassedKey, SlotState};
use crate::model::state::RevisionResult;
use crate::model::transaction::KEPT_BY_AGE;
use crate::simulation::memory_store::tables::Tables;
use crate::store::{OutboxRow, Retained, Retention};

/// Deletes what nothing needs any more; says how many rows of each kind went.
pub(super) fn retain(tables: &mut Tables, retention: Retention) -> Retained {
    let mut gone = Retained::new();
    for (kind, delete) in [
        ("revisions", revisions as fn(&mut Tables, Retention) -> u64),
        ("runs", deployments),
        ("runs", sequences),
        ("slots", slots),
        ("events", events),
        ("plans", plans),
        ("passed", passed),
        ("actions", actions),
        ("statuses", statuses),
        ("deliveries", deliveries),
    ] {
        *gone.entry(kind).or_default() += delete(tables, retention);
    }
    gone
}

fn deployments(tables: &mut Tables, Retention { before, most }: Retention) -> u64 {
    let mut places = Places::default();
    let mut goes = BTreeSet::new();
    for (id, run) in newest_first(tables) {
        let Run::Deployment(deployment) = run else { continue };
        let place = places.next(&deployment.config);
        let config = tables.configs.get(&deployment.config).map(|row| &row.value);
        let beyond = match config {
            Some(config) => place > 1 + config.history_limit().unwrap_or(most),
            None => deployment.created_at < before || place > most,
        };
        let in_use = config.is_some_and(|config| config.runs_in_use().contains(id));
        if run.is_ended() && beyond && !in_use {
            goes.insert(id.clone());
        }
    }
    remove_runs(tables, &goes)
}

fn sequences(tables: &mut Tables, Retention { before, most }: Retention) -> u64 {
    let attempts = tables.configs.values().filter_map(|row| row.value.attempted.as_ref());
    let attempted_by: BTreeSet<&RunId> = attempts.map(|attempt| &attempt.run).collect();
    let there = there(tables);
    let is_last = |run: &SequenceRun| {
        let slot = tables.slots.get(&run.service).and_then(|slot| slot.value.last_delivery.as_ref());
        slot.is_some_and(|last| last.run == run.id) && there.contains(&run.service)
    };
    let (newest, newest_planned) = (newest_attempts(tables, |_| true), newest_attempts(tables, is_planned));
    let mut places = Places::default();
    let mut goes = BTreeSet::new();
    for (id, run) in newest_first(tables) {
        let Run::Sequence(sequence) = run else { continue };
        let place = places.next(&sequence.service);
        let beyond = sequence.created_at < before || place > most;
        let is_known = tables.revisions.contains_key(&(sequence.repository.clone(), sequence.commit.clone()));
        let is_newest = |newest: &Attempts| newest.get(&attempts_of(sequence)) == Some(&sequence.attempt);
        let is_shown = is_known && (is_newest(&newest) || is_planned(sequence) && is_newest(&newest_planned));
        if run.is_ended() && beyond && !is_shown && !is_last(sequence) && !attempted_by.contains(id) {
            goes.insert(id.clone());
        }
    }
    remove_runs(tables, &goes)
}

/// What the attempts at one thing have in common.
type Attempted = (ServiceKey, RepositoryName, CommitId, Option<String>);

/// The number of the newest attempt at each thing.
type Attempts = BTreeMap<Attempted, u32>;

/// Whether it carries out a plan: what a person does by hand since may leave what it says as it is.
fn is_planned(run: &SequenceRun) -> bool {
    run.plan.is_some()
}

fn attempts_of(run: &SequenceRun) -> Attempted {
    let sequence = run.delivery.is_none().then(|| run.sequence().to_owned());
    (run.service.clone(), run.repository.clone(), run.commit.clone(), sequence)
}

fn newest_attempts(tables: &Tables, counts: fn(&SequenceRun) -> bool) -> Attempts {
    let mut newest = Attempts::new();
    for (_, run) in tables.runs.values() {
        if let Run::Sequence(run) = &run.value
            && counts(run)
        {
            let attempt: &mut u32 = newest.entry(attempts_of(run)).or_default();
            *attempt = run.attempt.max(*attempt);
        }
    }
    newest
}

fn events(tables: &mut Tables, Retention { before, .. }: Retention) -> u64 {
    let open: BTreeSet<RunId> = tables.open_runs().map(|run| run.value.id().clone()).collect();
    delete(&mut tables.events, |_, event| event.at < before && !open.contains(&event.run))
}

fn revisions(tables: &mut Tables, Retention { before, most }: Retention) -> u64 {
    let mut needed: BTreeSet<CommitId> = tables.open_runs().map(|run| run.value.revision().1.clone()).collect();
    let repositories = tables.repositories.values();
    needed.extend(repositories.flat_map(|row| row.value.applied.iter().chain(&row.value.seen).cloned()));
    let owed = |row: &&OutboxRow| row.due.is_some() && row.asked_at >= before;
    let keys = tables.outbox.values().map(|row| &**row).filter(owed).filter_map(|row| row.key.strip_prefix("report/"));
    needed.extend(keys.filter_map(|key| key.split('/').nth(1)).map(CommitId::new));
    let mut order: Vec<_> = tables.revisions.iter().collect();
    order.sort_by_key(|(_, (number, revision))| std::cmp::Reverse((revision.at, *number)));
    let mut places = Places::default();
    let beyond = order.into_iter().filter(|((repository, commit), (_, revision))| {
        let place = places.next(repository);
        (revision.at < before || place > most) && !needed.contains(commit)
    });
    let goes: BTreeSet<_> = beyond.map(|(key, _)| key.clone()).collect();
    delete(&mut tables.revisions, |key, _| goes.contains(key))
}

/// A plan that is the newest of a service that is still there stays whole, for the tables keep no parts.
fn plans(tables: &mut Tables, _: Retention) -> u64 {
    let there: BTreeSet<_> = tables.slots.keys().map(|key| (key.project.clone(), key.service.clone())).collect();
    let newest = tables.newest_plans.iter().filter(|(key, _)| there.contains(*key));
    let mut needed: BTreeSet<PlanId> = newest.map(|(_, id)| id.clone()).collect();
    for (_, revision) in tables.revisions.values() {
        if let RevisionResult::Planned(plan) = &revision.result {
            needed.insert(plan.id.clone());
        }
    }
    for run in tables.open_runs() {
        if let Run::Sequence(run) = &run.value {
            needed.extend(run.plan.clone());
        }
    }
    delete(&mut tables.plans, |id, _| !needed.contains(id))
}

fn passed(tables: &mut Tables, Retention { before, most }: Retention) -> u64 {
    let mut order: Vec<_> = tables.passed.iter().collect();
    order.sort_by_key(|(key, row)| (std::cmp::Reverse(row.value.at), (*key).clone()));
    let mut places = Places::default();
    let is_needed = |key: &PassedKey, place: u32| {
        let slot = tables.slots.get(&key.service).map(|row| &row.value);
        let delivered = |slot: &SlotState| slot.last_delivery.as_ref().is_some_and(|last| last.content == key.content);
        slot.is_some_and(|slot| place == 1 || delivered(slot))
    };
    let beyond = order.into_iter().filter(|(key, row)| {
        let place = places.next(&key.service);
        (row.value.at < before || place > most) && !is_needed(key, place)
    });
    let goes: BTreeSet<PassedKey> = beyond.map(|(key, _)| key.clone()).collect();
    delete(&mut tables.passed, |key, _| goes.contains(key))
}

fn slots(tables: &mut Tables, _: Retention) -> u64 {
    let mut used = there(tables);
    used.extend(tables.runs.values().map(|(_, run)| run.value.service()));
    let deployed = |slot: &SlotState| slot.last_delivery.as_ref().is_none_or(|last| last.deployed);
    delete(&mut tables.slots, |key, row| row.value.is_free() && deployed(&row.value) && !used.contains(key))
}

/// The services of which something is applied.
fn there(tables: &Tables) -> BTreeSet<ServiceKey> {
    let objects = tables.objects.values().map(|row| ServiceKey {
        project: row.value.project.clone(),
        stage: row.value.stage.clone(),
        service: row.value.object.service.clone(),
    });
    tables.configs.values().map(|row| row.value.service_key()).chain(objects).collect()
}

/// What was given up, or is for a sink that nobody configures any more; reports that nobody took, once their revision is gone.
fn actions(tables: &mut Tables, Retention { before, .. }: Retention) -> u64 {
    let revisions: BTreeSet<String> =
        tables.revisions.keys().map(|(repository, commit)| format!("report/{repository}/{commit}")).collect();
    let is_known = |key: &str| key.rsplit_once('/').is_some_and(|(revision, _)| revisions.contains(revision));
    let is_over = |row: &OutboxRow| match row.run.as_str() {
        REPORTS => !is_known(&row.key),
        _ => row.due.is_none() || row.key.starts_with("send/"),
    };
    let gone = delete(&mut tables.outbox, |_, row| row.asked_at < before && is_over(row));
    let left = tables.outbox.clone();
    delete(&mut tables.asked, |_, id| !left.contains_key(id));
    gone
}

fn statuses(tables: &mut Tables, _: Retention) -> u64 {
    let revisions = tables.revisions.clone();
    let known =
        |(repository, _, commit, _): &_| revisions.contains_key(&(Clone::clone(repository), Clone::clone(commit)));
    delete(&mut tables.posted, |entry, _| !known(entry))
}

fn deliveries(tables: &mut Tables, Retention { before, most }: Retention) -> u64 {
    let mut order: Vec<_> = tables.deliveries.iter().collect();
    order.sort_by_key(|((_, id), at)| (std::cmp::Reverse(**at), id.clone()));
    let mut places = Places::default();
    let beyond = order.into_iter().filter(|((repository, id), at)| {
        let is_beyond = !id.starts_with(KEPT_BY_AGE) && places.next(repository) > most;
        **at < before || is_beyond
    });
    let goes: BTreeSet<_> = beyond.map(|(key, _)| key.clone()).collect();
    delete(&mut tables.deliveries, |key, _| goes.contains(key))
}

/// Counts what comes of each kind, from 1.
struct Places<K>(BTreeMap<K, u32>);

impl<K> Default for Places<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord + Clone> Places<K> {
    fn next(&mut self, of: &K) -> u32 {
        let place = self.0.entry(of.clone()).or_default();
        *place += 1;
        *place
    }
}

fn newest_first(tables: &Tables) -> Vec<(&RunId, &Run)> {
    let mut order: Vec<_> = tables.runs.iter().collect();
    order.sort_by_key(|(_, (place, _))| std::cmp::Reverse(*place));
    order.into_iter().map(|(id, (_, run))| (id, &run.value)).collect()
}

/// Their events go with them.
fn remove_runs(tables: &mut Tables, goes: &BTreeSet<RunId>) -> u64 {
    delete(&mut tables.runs_in_order, |_, id| goes.contains(id));
    delete(&mut tables.run_moves, |id, _| goes.contains(id));
    delete(&mut tables.events, |_, event| goes.contains(&event.run));
    let gone = delete(&mut tables.runs, |id, _| goes.contains(id));
    tables.runs_deleted += gone;
    gone
}

fn delete<K: Ord + Clone, V>(map: &mut Map<K, V>, goes: impl Fn(&K, &V) -> bool) -> u64 {
    let gone: Vec<K> = map.iter().filter(|(key, value)| goes(key, value)).map(|(key, _)| key.clone()).collect();
    for key in &gone {
        map.remove_mut(key);
    }
    gone.len() as u64
}
