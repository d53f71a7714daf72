//! What the head declares for another service than earlier deliveries do, which are still to bring it.

use std::collections::BTreeMap;
use std::iter;
use std::sync::Arc;

use crate::engine::deployment::apply;
use crate::engine::records::{Needs, Undecided};
use crate::engine::sequence::slot;
use crate::engine::transition::Transition;
use crate::model::ids::{ServiceKey, ServiceName, StageName};
use crate::model::object::{Object, ObjectKey};
use crate::model::plan::{Change, Plan};
use crate::model::project::{Project, StageContent};
use crate::model::run::Run;
use crate::model::slot::SlotState;
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
    for stage in &project.stages {
        for (service, last) in applied.get(&stage.name).iter().flat_map(|seen| &seen.under_way) {
            let old = Old { stage, plan, service };
            let mut all = iter::once(last).chain(&last.others);
            if all.any(|brought| old.moved(brought).next().is_some()) {
                needs.of(old.confirm_new(transition, last))?;
                needs.of(old.end(transition))?;
            }
        }
    }
    needs.none()
}

/// The service that an object was of.
struct Old<'a> {
    stage: &'a StageContent,
    plan: &'a Plan,
    service: &'a ServiceName,
}

impl<'a> Old<'a> {
    fn place(&self, service: &ServiceName) -> ServiceKey {
        let (project, stage) = (self.plan.project.clone(), self.stage.name.clone());
        ServiceKey { project, stage, service: service.clone() }
    }

    /// What the head declares of an object, if that is for another service.
    fn declared(&self, key: &ObjectKey) -> Option<&'a Arc<Object>> {
        self.stage.objects.get(key).filter(|declared| declared.service != *self.service)
    }

    fn moved(&self, brought: &UnderWay) -> impl Iterator<Item = &'a Arc<Object>> {
        brought.changes().filter_map(|key| self.declared(key))
    }

    /// What is there as the head declares it stays so.
    fn confirm_new(&self, transition: &mut Transition<'_>, last: &UnderWay) -> Result<(), Undecided> {
        let mut needs = Needs::default();
        for brought in iter::once(last).chain(&last.others) {
            for object in self.moved(brought) {
                let (service, now) = (self.place(&object.service), self.plan.at);
                needs.of(apply::confirm(transition.records, &service, object, brought.planned_at, now))?;
            }
        }
        needs.none()
    }

    /// Ends the deliveries that are here already. What one has only deleted is not its business any more.
    fn end(&self, transition: &mut Transition<'_>) -> Result<(), Undecided> {
        let slot = transition.records.slots.get(&self.place(self.service))?.cloned();
        let mut needs = Needs::default();
        for id in slot.iter().flat_map(SlotState::open) {
            let Some(Some(Run::Sequence(run))) = needs.of(transition.records.runs.get(id))? else { continue };
            let is_left = |change: &Change| change.object.is_some() || !run.deployed();
            let mut changes = run.changes().iter().filter(|change| is_left(change));
            if run.commit != self.plan.commit && changes.any(|change| self.declared(&change.key).is_some()) {
                transition.tell(id.clone(), slot::superseded_by(self.plan.commit.short()));
            }
        }
        needs.none()
    }
}
