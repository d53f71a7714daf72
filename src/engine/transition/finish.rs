//! What a decision that was worked out writes, and whom it concerns.

use super::{Touched, WorkedOut};
use crate::engine::records::Records;
use crate::model::ids::RepositoryName;
use crate::model::outcome::Outcome;
use crate::model::run::{Run, RunKind};
use crate::model::state::RevisionResult;
use crate::model::transaction::{Transaction, Write};

impl WorkedOut {
    /// The transaction, and what it touches.
    pub fn finish(self, records: Records) -> (Transaction, Touched) {
        let Self { mut writes, left, switched, reports, unseen } = self;
        let mut touched = Touched { reports, slots: left, services: switched, unseen, ..Touched::default() };
        touched.planned.extend(writes.iter().filter_map(planned));
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
                Write::Object(object) => drop(touched.objects.insert((&object.value).into())),
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

fn kind_and_outcome(run: &Run) -> (RunKind, Option<Outcome>) {
    match run {
        Run::Sequence(run) => (RunKind::Sequence, run.outcome),
        Run::Deployment(run) => {
            let failed = run.failure.as_ref().map_or(Outcome::PASS, |failure| failure.outcome);
            (RunKind::Deployment, run.ended_at.map(|_| failed))
        }
    }
}
