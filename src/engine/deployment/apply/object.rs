//! What a delivery declares beside deployment configs.

use std::sync::Arc;

use super::kept;
use crate::engine::records::{Records, Undecided};
use crate::manifest::image_trigger::still_tagged;
use crate::model::ids::ServiceKey;
use crate::model::object::{Kind, Object, ObjectKey};
use crate::model::plan::Change;
use crate::model::run::SequenceRun;
use crate::model::state::ObjectState;
use crate::model::transaction::ObjectPlace;

/// What a change declares of an object that is no deployment config, or that it is gone.
pub(super) fn put_object(
    records: &mut Records,
    run: &SequenceRun,
    change: &Change,
    object: Option<Arc<Object>>,
) -> Result<(), Undecided> {
    let place = place(&run.service, change);
    let ServiceKey { project, stage, .. } = run.service.clone();
    let (destination, repository, planned_at) = (run.destination.clone(), run.repository.clone(), run.planned_at);
    let earlier = if object.is_some() { kept::outlived(records, run, change)? } else { Vec::new() };
    let before = records.objects.get(&place)?;
    let state = object.map(|object| {
        let tagged = before.map_or_else(Default::default, |before| still_tagged(&before.tagged, &object));
        let state = ObjectState::new((project, stage), destination, repository, object);
        ObjectState { planned_at, tagged, earlier, ..state }
    });
    records.objects.put(&place, state)?;
    if change.key.kind == Kind::Endpoints {
        // The delivery that brings them found nothing to change of the service object that they belong to, or has changed it.
        let key = ObjectKey { kind: Kind::Service, name: change.key.name.clone() };
        let service = ObjectPlace { key, ..place };
        if records.objects.get(&service)?.is_some_and(|service| service.inherited.is_some())
            && let Some(service) = records.objects.get_mut(&service)?
        {
            service.inherited = None;
        }
    }
    Ok(())
}

/// Where the object of a change is.
pub(super) fn place(service: &ServiceKey, change: &Change) -> ObjectPlace {
    ObjectPlace { project: service.project.clone(), stage: service.stage.clone(), key: change.key.clone() }
}
