//! What files declare no longer while something still runs with it.
//!
//! A push that renames a ConfigMap deletes one that the version before runs with until the new one has proved itself. So what is
//! declared no longer stays as long as something needs it, and goes with the last version that does.

use std::collections::{BTreeMap, BTreeSet};

use super::build::Applied;
use crate::manifest::{read_by_pods, referenced};
use crate::model::ids::ServiceName;
use crate::model::object::{Kind, Object, ObjectKey};
use crate::model::plan::{Change, Decision};
use crate::model::project::StageContent;
use crate::model::state::{ConfigState, ObjectState, Version};

/// Whether a deployment config needs an object that files declare no longer since version `since` served: what runs reads it, or it
/// leads to that version, because none that was asked for has taken its place.
pub fn needs(state: &ConfigState, object: &ObjectState, since: u32) -> bool {
    let key = &object.object.key;
    match key.kind {
        _ if state.removed => false,
        _ if is_read(key) => reads(state).contains(key),
        Kind::Service => state.serving.as_ref().is_some_and(|it| it.number == since && leads_to(object, it)),
        _ => false,
    }
}

/// Whether a `Service` leads to the pods of a version.
fn leads_to(service: &ObjectState, version: &Version) -> bool {
    service.selects(&version.pod_labels())
}

/// Whether another version is to take the place of what serves.
pub fn is_to_be_replaced(state: &ConfigState) -> bool {
    let serving = state.serving.as_ref().and_then(|serving| serving.object.template());
    state.attempted.is_some() || serving != state.object.template()
}

/// Whether pods read what is of that kind.
fn is_read(key: &ObjectKey) -> bool {
    matches!(key.kind, Kind::ConfigMap | Kind::Secret | Kind::PersistentVolumeClaim)
}

/// The deployment configs that still name what their stage declares no longer. Nothing of them need differ, so that nothing was
/// read of them.
pub fn readers(stage: &StageContent, applied: &Applied) -> BTreeSet<ObjectKey> {
    let is_gone = |key: &&ObjectKey| is_read(key) && !stage.objects.contains(key);
    let gone: BTreeMap<&ObjectKey, String> =
        applied.objects.keys().filter(is_gone).map(|key| (key, format!("\"{}\"", key.name))).collect();
    if gone.is_empty() {
        return BTreeSet::new();
    }
    // Looked for as text first, because few of many name any.
    let may_read = |config: &Object| gone.values().any(|name| config.content.text().contains(name));
    let reads = |config: &Object| may_read(config) && referenced(config).iter().any(|key| gone.contains_key(key));
    let configs = stage.objects.iter().filter(|object| is_config(&object.key) && reads(object));
    configs.map(|config| config.key.clone()).collect()
}

/// Says of what goes which deployment configs run with it.
pub(super) fn note_needs(applied: &Applied, changes: &mut BTreeMap<ServiceName, Vec<Change>>) {
    let goes: BTreeSet<ObjectKey> = deletions(changes).map(|change| change.key.clone()).collect();
    if goes.is_empty() {
        return;
    }
    let of_configs = changes.values().flatten().filter(|change| is_config(&change.key));
    let decided: BTreeMap<ObjectKey, Decision> = of_configs.map(|it| (it.key.clone(), decided(it))).collect();
    let (mut readers, mut led): (BTreeMap<ObjectKey, BTreeSet<String>>, Vec<&Version>) = Default::default();
    for (key, state) in &applied.configs {
        let decision = decided.get(key).copied().unwrap_or(Decision::None);
        if decision == Decision::Delete {
            continue;
        }
        for read in reads(state) {
            readers.entry(read).or_default().insert(key.name.clone());
        }
        led.extend(state.serving.as_ref().filter(|_| state.attempted.is_some() || decision != Decision::None));
    }
    for change in deletions(changes) {
        change.needed_by = match applied.objects.get(&change.key).filter(|_| change.key.kind == Kind::Service) {
            Some(service) => {
                let led = led.iter().filter(|version| leads_to(service, version));
                led.map(|version| version.object.key.name.clone()).collect()
            }
            None => readers.remove(&change.key).unwrap_or_default(),
        };
    }
}

/// What is decided of a deployment config, as far as its version is about to be replaced.
fn decided(change: &Change) -> Decision {
    match change.decision {
        Decision::Delete | Decision::Wait => change.decision,
        _ if change.starts_deployment() || change.is_not_deployed() => Decision::Deploy,
        _ => Decision::None,
    }
}

fn deletions(changes: &mut BTreeMap<ServiceName, Vec<Change>>) -> impl Iterator<Item = &mut Change> {
    changes.values_mut().flatten().filter(|change| change.decision == Decision::Delete)
}

fn is_config(key: &ObjectKey) -> bool {
    key.kind == Kind::DeploymentConfig
}

/// What is read by the versions that run, and by one that is being brought up with its hooks.
fn reads(state: &ConfigState) -> BTreeSet<ObjectKey> {
    let beside = state.beside.as_ref().map(|beside| &beside.version);
    let running = state.serving.iter().chain(beside).flat_map(|version| read_by_pods(&version.object));
    let attempted = state.open_attempt().into_iter().flat_map(|attempt| referenced(&attempt.version.object));
    running.chain(attempted).collect()
}
