//! What a plan says of replication controllers, once it is known what it says of the deployment configs that deploy them: one that
//! does not serve what it declares has its deployment config deployed, and one that is declared no longer stays until that is.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::build::Applied;
use super::change::unchanged;
use super::config_change::blocked;
use crate::manifest::replication_controller::place;
use crate::model::cause::Cause;
use crate::model::deployment_config::CONTROLLER_OF_POINTER;
use crate::model::ids::ServiceName;
use crate::model::object::{Kind, Object, ObjectKey};
use crate::model::plan::{Change, Decision, Difference};
use crate::model::project::StageContent;
use crate::model::state::{ConfigState, spec_of};

/// The deployment config that deploys a replication controller.
pub fn leader_of(object: &Object) -> Option<ObjectKey> {
    let name = object.is_led().then(|| object.content.at(CONTROLLER_OF_POINTER)).flatten()?;
    Some(ObjectKey { kind: Kind::DeploymentConfig, name: name.as_str()?.to_owned() })
}

/// The replication controllers that a deployment config deploys.
pub(super) fn of(leader: &Object) -> impl Iterator<Item = ObjectKey> + use<> {
    leader.controllers().into_iter().map(|name| ObjectKey { kind: Kind::DeploymentConfig, name })
}

/// Whether a version that serves has a replication controller of that name.
pub fn serves_with(leader: &ConfigState, name: &str) -> bool {
    let serving = leader.serving.as_ref().filter(|_| !leader.removed);
    serving.is_some_and(|serving| serving.object.controllers().iter().any(|known| known == name))
}

/// Whether a replication controller does not serve its template.
pub fn lacks(template: Option<&Value>, applied: Option<&ConfigState>) -> bool {
    let serving = applied.filter(|state| !state.removed).and_then(|state| state.serving.as_ref());
    serving.and_then(|serving| serving.object.template()).as_ref() != template
}

/// Whether a deployment config may still be deployed because of a replication controller: not, if it is anyway, failed so, or waits.
pub fn is_open(change: &Change) -> bool {
    match change.decision {
        Decision::None => change.cause.is_empty(),
        Decision::Update | Decision::Scale => true,
        _ => false,
    }
}

/// A deployment config of which nothing differs is deployed all the same, because a replication controller does not serve its
/// template. One that failed so, or waits, stays as it is.
pub fn bring(change: Change, name: &str, template: Option<Value>) -> Change {
    let spec = change.object.as_ref().filter(|_| is_open(&change)).and_then(|object| spec_of(object).ok());
    let Some(_) = spec.filter(|spec| spec.has_config_change_trigger() && blocked(spec).is_none()) else {
        return change;
    };
    let mut reasons = change.reasons;
    reasons.push(Difference { pointer: place(name), old: None, new: template });
    let cause = format!("rc/{name} does not serve");
    Change { decision: Decision::Deploy, cause, causes: vec![Cause::ConfigChange], reasons, ..change }
}

/// Goes through what was found for a stage.
pub(super) fn decide(
    stage: &StageContent,
    (applied, differing): (&Applied, &[&ObjectKey]),
    changes: &mut BTreeMap<ServiceName, Vec<Change>>,
) {
    for declared in differing.iter().filter_map(|key| stage.objects.get(key)) {
        let Some(leader) = leader_of(declared) else { continue };
        let is_there = applied.configs.get(&leader).is_some_and(|state| !state.removed);
        let (template, state) = (declared.template(), applied.configs.get(&declared.key));
        let Some(leading) = stage.objects.get(&leader).filter(|_| is_there && lacks(template.as_ref(), state)) else {
            continue;
        };
        let found = changes.entry(leading.service.clone()).or_default();
        let known = found.iter().position(|change| change.key == leader).map(|at| found.remove(at));
        let change = bring(known.unwrap_or_else(|| unchanged(leading)), &declared.key.name, template);
        if change.decision != Decision::None || !change.cause.is_empty() {
            found.push(change);
        }
    }
    let deployed: BTreeSet<ObjectKey> = changes
        .values()
        .flatten()
        .filter(|change| change.starts_deployment())
        .map(|change| change.key.clone())
        .collect();
    for found in changes.values_mut() {
        found.retain(|change| !stays(stage, applied, &deployed, change));
    }
}

/// Whether one that is declared no longer stays, because what serves was deployed with it, and nothing takes the place of that.
fn stays(stage: &StageContent, applied: &Applied, deployed: &BTreeSet<ObjectKey>, change: &Change) -> bool {
    let state = applied.configs.get(&change.key).filter(|_| change.decision == Decision::Delete && change.is_led());
    let Some(leader) = state.and_then(|state| leader_of(&state.object)) else { return false };
    let serves = applied.configs.get(&leader).is_some_and(|leader| serves_with(leader, &change.key.name));
    serves && stage.objects.get(&leader).is_some() && !deployed.contains(&leader)
}
