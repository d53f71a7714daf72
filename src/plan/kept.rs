//! What files declare no longer while something still runs with it.
//!
//! A push that renames a ConfigMap deletes one that the version before runs with until the new one has proved itself. So what is
//! declared no longer stays as long as something needs it, and goes with the last version that does.

use std::collections::{BTreeMap, BTreeSet};

use super::build::Applied;
use crate::manifest::referenced;
use crate::model::ids::ServiceName;
use crate::model::object::{Kind, Object, ObjectKey};
use crate::model::plan::{Change, Decision};
use crate::model::project::StageContent;
use crate::model::state::{ConfigState, ObjectState, Version};

/// Whether a deployment config needs an object that files declare no longer: a version that runs, or may run again, reads it; or it
/// leads to the version that serves while that is not what was asked for last, so that nothing has taken its place yet.
pub fn needs(state: &ConfigState, object: &ObjectState) -> bool {
    let key = &object.object.key;
    if state.removed {
        return false;
    }
    match key.kind {
        _ if is_read(key) => running(state).any(|version| referenced(&version.object).contains(key)),
        Kind::Service => {
            let serving = state.serving.as_ref().filter(|_| state.attempted.is_some());
            serving.is_some_and(|serving| object.selects(&serving.pod_labels()))
        }
        _ => false,
    }
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
    let removed: BTreeSet<&str> = goes.iter().filter(|key| is_config(key)).map(|key| key.name.as_str()).collect();
    let states = applied.configs.values().filter(|state| !removed.contains(&*state.key.name));
    let mut users: BTreeMap<ObjectKey, BTreeSet<String>> = BTreeMap::new();
    for state in states {
        for key in running(state).flat_map(|version| referenced(&version.object)) {
            users.entry(key).or_default().insert(state.key.name.clone());
        }
    }
    for change in deletions(changes) {
        change.needed_by = users.remove(&change.key).unwrap_or_default();
    }
}

fn deletions(changes: &mut BTreeMap<ServiceName, Vec<Change>>) -> impl Iterator<Item = &mut Change> {
    changes.values_mut().flatten().filter(|change| change.decision == Decision::Delete)
}

fn is_config(key: &ObjectKey) -> bool {
    key.kind == Kind::DeploymentConfig
}

/// The versions that run, or are being brought up.
fn running(state: &ConfigState) -> impl Iterator<Item = &Version> {
    let beside = state.beside.as_ref().map(|beside| &beside.version);
    let attempted = state.open_attempt().map(|attempt| &attempt.version);
    state.serving.iter().chain(beside).chain(attempted)
}
