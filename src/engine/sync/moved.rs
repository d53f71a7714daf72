//! What the head declares for another service than earlier deliveries do, which are still to bring it.

use std::collections::BTreeMap;
use std::iter;
use std::sync::Arc;

use crate::engine::deployment::apply;
use crate::engine::records::{Needs, Undecided};
use crate::engine::sequence::slot;
use crate::engine::transition::Transition;
use crate::model::ids::{CommitId, ProjectName, ServiceKey, ServiceName, StageName};
use crate::model::object::{Object, ObjectKey};
use crate::model::plan::{Change, Plan};
use crate::model::project::{Project, StageContent};
use crate::model::run::Run;
use crate::model::slot::SlotState;
use crate::model::time::Timestamp;
use crate::plan::build::Applied;
use crate::plan::under_way::UnderWay;

/// Ends what earlier deliveries still do in a stage about an object that the head declares there for another service, and
/// keeps out what they will do once they come there.
///
/// # Errors
/// If something must be read first.
pub(super) fn keep_out(
    transition: &mut Transition<'_>,
    project: &Project,
    plan: &Plan,
    applied: &BTreeMap<StageName, Applied>,
) -> Result<(), Undecided> {
    let mut needs = Needs::default();
    for old in all(project, applied) {
        needs.of(old.confirm_new(transition, plan.at))?;
        needs.of(old.end(transition, &plan.commit))?;
    }
    needs.none()
}

/// The services from which something moves.
pub(super) fn services<'a>(
    project: &'a Project,
    applied: &'a BTreeMap<StageName, Applied>,
) -> impl Iterator<Item = &'a ServiceName> {
    all(project, applied).map(|old| old.service)
}

fn all<'a>(project: &'a Project, applied: &'a BTreeMap<StageName, Applied>) -> impl Iterator<Item = Old<'a>> {
    let of_stage = move |stage: &'a StageContent| {
        let under_way = applied.get(&stage.name).into_iter().flat_map(|seen| &seen.under_way);
        under_way.map(move |(service, last)| Old { project: &project.name, stage, service, last })
    };
    project
        .stages
        .iter()
        .flat_map(of_stage)
        .filter(|old| old.brought().any(|brought| old.moved(brought).next().is_some()))
}

/// The service that an object was of, and what open deliveries bring there of it.
struct Old<'a> {
    project: &'a ProjectName,
    stage: &'a StageContent,
    service: &'a ServiceName,
    last: &'a UnderWay,
}

impl<'a> Old<'a> {
    fn place(&self, service: &ServiceName) -> ServiceKey {
        ServiceKey { project: self.project.clone(), stage: self.stage.name.clone(), service: service.clone() }
    }

    fn brought(&self) -> impl Iterator<Item = &'a UnderWay> + use<'a> {
        iter::once(self.last).chain(&self.last.others)
    }

    /// What the head declares of an object, if that is for another service.
    fn declared(&self, key: &ObjectKey) -> Option<&'a Arc<Object>> {
        self.stage.objects.get(key).filter(|declared| declared.service != *self.service)
    }

    fn moved(&self, brought: &UnderWay) -> impl Iterator<Item = &'a Arc<Object>> {
        brought.changes().filter_map(|key| self.declared(key))
    }

    /// What is there as the head declares it stays so.
    fn confirm_new(&self, transition: &mut Transition<'_>, now: Timestamp) -> Result<(), Undecided> {
        let mut needs = Needs::default();
        for brought in self.brought() {
            for object in self.moved(brought) {
                let service = self.place(&object.service);
                needs.of(apply::confirm(transition.records, &service, object, brought.planned_at, now))?;
            }
        }
        needs.none()
    }

    /// Ends the deliveries that are here already. What one has only deleted is not its business any more.
    fn end(&self, transition: &mut Transition<'_>, head: &CommitId) -> Result<(), Undecided> {
        let slot = transition.records.slots.get(&self.place(self.service))?.cloned();
        let mut needs = Needs::default();
        for id in slot.iter().flat_map(SlotState::open) {
            let Some(Some(Run::Sequence(run))) = needs.of(transition.records.runs.get(id))? else { continue };
            let is_left = |change: &Change| change.object.is_some() || !run.deployed();
            let mut changes = run.changes().iter().filter(|change| is_left(change));
            if run.commit != *head && changes.any(|change| self.declared(&change.key).is_some()) {
                transition.tell(id.clone(), slot::superseded_by(head.short()));
            }
        }
        needs.none()
    }
}
