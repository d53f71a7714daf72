//! What a plan does about one object.

use std::sync::Arc;

use super::build::Applied;
use super::{config_change, diff::diff};
use crate::model::ids::ServiceName;
use crate::model::object::{Kind, Object, ObjectKey};
use crate::model::plan::{Change, Decision, Difference};
use crate::model::project::StageContent;
use crate::model::state::ObjectState;

/// What happens to one object, and for which service; nothing if it is as it should be.
pub(super) fn change_of(stage: &StageContent, key: &ObjectKey, applied: &Applied) -> Option<(ServiceName, Change)> {
    let declared: Option<&Arc<Object>> = stage.objects.get(key);
    let Some(declared) = declared else {
        let service = applied_service(key, applied)?;
        if applied.objects.get(key).is_some_and(ObjectState::is_kept) {
            return None; // it goes with what needs it
        }
        return stage.prune.then(|| (service, deleted(key, applied)));
    };
    let change = match key.kind {
        Kind::DeploymentConfig => {
            let change = config_change::decide(declared, applied.configs.get(key));
            config_change::held_back(change, applied.came_round.get(key).map(String::as_str))
        }
        _ => object_change(declared, applied.objects.get(key)),
    };
    let silent = change.decision == Decision::None && change.cause.is_empty();
    (!silent).then(|| (declared.service.clone(), change))
}

/// What to do about a declared object that is no deployment config, given what is applied.
pub fn object_change(declared: &Arc<Object>, applied: Option<&ObjectState>) -> Change {
    let object = Some(declared.clone());
    let key = declared.key.clone();
    let Some(applied) = applied.filter(|applied| !applied.is_kept()) else {
        let cause = "new".to_owned();
        return Change { cause, object, ..Change::of(key, Decision::Create) };
    };
    let reasons = masked(&key.kind, diff(&applied.object.content.value(), &declared.content.value()));
    let decision = if reasons.is_empty() { Decision::None } else { Decision::Update };
    let cause = if decision == Decision::None { String::new() } else { "changed".to_owned() };
    Change { reasons, cause, object, ..Change::of(key, decision) }
}

/// A secret's values never reach a plan's reasons; which keys differ does.
fn masked(kind: &Kind, mut reasons: Vec<Difference>) -> Vec<Difference> {
    if *kind == Kind::Secret {
        for reason in reasons.iter_mut().filter(|reason| reason.pointer.starts_with("/data")) {
            reason.old = reason.old.as_ref().map(|_| "(secret)".into());
            reason.new = reason.new.as_ref().map(|_| "(another secret)".into());
        }
    }
    reasons
}

/// What becomes of an object that is declared no longer, which is told as it was declared.
pub(super) fn deleted(key: &ObjectKey, applied: &Applied) -> Change {
    let was = applied.configs.get(key).map(|config| config.object.declared_kind());
    Change { was: was.filter(|kind| *kind != key.kind), ..deletion(key) }
}

/// What becomes of an object that is declared no longer.
pub fn deletion(key: &ObjectKey) -> Change {
    let cause = "no longer declared".to_owned();
    Change { cause, ..Change::of(key.clone(), Decision::Delete) }
}

/// The service that an applied object is a part of.
pub(super) fn applied_service(key: &ObjectKey, applied: &Applied) -> Option<ServiceName> {
    let config = applied.configs.get(key).filter(|state| !state.removed).map(|state| state.service.clone());
    config.or_else(|| applied.objects.get(key).map(|state| state.object.service.clone()))
}

/// A declared object about which nothing is to be done.
pub(super) fn unchanged(declared: &Arc<Object>) -> Change {
    let (key, object) = (declared.key.clone(), Some(declared.clone()));
    Change { object, ..Change::of(key, Decision::None) }
}
