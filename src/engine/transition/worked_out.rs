//! A transition once nobody has anything more to say: its transaction, and whom it concerns.

use std::collections::BTreeSet;

use crate::engine::records::Records;
use crate::model::action::Lane;
use crate::model::ids::{CommitId, ConfigKey, Namespace, RepositoryName, ServiceKey};
use crate::model::outcome::Outcome;
use crate::model::run::{Run, RunKind};
use crate::model::state::RevisionResult;
use crate::model::transaction::{ObjectPlace, Transaction, Write};

/// What a committed transition touched: who has to be woken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Deployment configs whose wanted state may have changed.
    pub configs: BTreeSet<ConfigKey>,
    /// Other objects that have changed or are gone.
    pub objects: BTreeSet<ObjectPlace>,
    /// Where other objects were that are there no longer.
    pub left: BTreeSet<(Namespace, ObjectPlace)>,
    /// Whether any service may have to end, or to answer again.
    pub services: bool,
    /// Of these, somebody waits for the `Service` objects to listen.
    pub awaited: BTreeSet<ServiceKey>,
    /// Slots that are still to be examined: there were too many for one transaction.
    pub slots: BTreeSet<ServiceKey>,
    /// What runs are new.
    pub begun: Vec<RunKind>,
    /// What runs have ended, and how.
    pub ended: Vec<(RunKind, Outcome)>,
    /// Revisions whose statuses may have changed.
    pub reports: BTreeSet<(RepositoryName, CommitId)>,
    /// Repositories of which a revision was planned: older ones may wait for something in vain.
    pub planned: BTreeSet<RepositoryName>,
    /// Repositories whose head is to be planned again, although it is the same.
    pub unseen: BTreeSet<RepositoryName>,
    /// Where runs ask for something to be performed.
    pub asked: BTreeSet<Lane>,
}

impl Touched {
    /// More is asked for, in the transaction that this is of.
    pub fn ask(&mut self, more: Vec<Write>, transaction: &mut Transaction) {
        self.asked.extend(more.iter().filter_map(asked));
        transaction.writes.extend(more);
    }
}

/// A transition that was worked out, beside what has become of the records.
#[derive(Debug)]
pub struct WorkedOut {
    pub(super) writes: Vec<Write>,
    pub(super) left: BTreeSet<ServiceKey>,
    pub(super) switched: bool,
    pub(super) reports: BTreeSet<(RepositoryName, CommitId)>,
    pub(super) unseen: BTreeSet<RepositoryName>,
}

impl WorkedOut {
    /// Whether its transaction is refused if anything that was not read for it has become another thing.
    pub fn is_sure(&self, records: &Records) -> bool {
        !records.rest_on_memory() || records.are_proved_by(&self.writes) && !self.is_nothing(records)
    }

    /// Whether there is nothing to make durable.
    fn is_nothing(&self, records: &Records) -> bool {
        self.writes.is_empty() && records.are_unchanged()
    }

    /// The transaction, and what it touches.
    pub fn finish(self, records: Records) -> (Transaction, Touched) {
        let Self { mut writes, left, switched, reports, unseen } = self;
        let mut touched = Touched { reports, slots: left, services: switched, unseen, ..Touched::default() };
        touched.planned.extend(writes.iter().filter_map(planned));
        touched.asked.extend(writes.iter().filter_map(asked));
        touched.left.extend(records.objects_left());
        let (reads, changed) = records.into_sets();
        for write in changed {
            match &write {
                Write::Run(run) => {
                    let (kind, outcome) = kind_and_outcome(&run.value);
                    touched.begun.extend((run.version == 0).then_some(kind));
                    // A run changes for the last time when it ends.
                    touched.ended.extend(outcome.map(|outcome| (kind, outcome)));
                    let (repository, commit) = run.value.revision();
                    touched.reports.insert((repository.clone(), commit.clone()));
                    let awaits = run.value.sequence().filter(|run| run.awaits_services());
                    touched.awaited.extend(awaits.map(|run| run.service.clone()));
                }
                Write::Config(config) => drop(touched.configs.insert(config.value.key.clone())),
                Write::Object(object) => drop(touched.objects.insert((&*object.value).into())),
                Write::RemoveObject(place) => drop(touched.objects.insert(place.value.clone())),
                _ => {}
            }
            writes.push(write);
        }
        (Transaction { reads, writes }, touched)
    }
}

/// The repository whose revision has a plan now.
fn planned(write: &Write) -> Option<RepositoryName> {
    match write {
        Write::Revision(state) if matches!(state.result, RevisionResult::Planned(_)) => Some(state.repository.clone()),
        _ => None,
    }
}

/// Where something is asked for.
fn asked(write: &Write) -> Option<Lane> {
    match write {
        Write::Ask { action, .. } => Some(action.lane()),
        _ => None,
    }
}

fn kind_and_outcome(run: &Run) -> (RunKind, Option<Outcome>) {
    match run {
        Run::Sequence(run) => (RunKind::Sequence, run.outcome),
        Run::Deployment(run) => {
            let failed = run.failure.as_ref().map_or(Outcome::PASS, |failure| failure.outcome);
            (RunKind::Deployment, run.ended_at.map(|_| failed))
        }
    }
}
