//! What files declare no longer, or otherwise, while something still runs with it.
//!
//! A push that renames a ConfigMap deletes one that the version before runs with until the new one has proved itself. So what is
//! declared no longer stays as long as something needs it, and goes with the last version that does. What is declared otherwise
//! stays what it was for the version that serves, until the one that it changed for has taken its place.

use std::collections::{BTreeMap, BTreeSet};

use super::build::Applied;
use super::under_way::UnderWay;
use crate::manifest::{read_by_pods, referenced};
use crate::model::ids::{Digest, ServiceName};
use crate::model::object::{Kind, Object, ObjectKey};
use crate::model::plan::{Change, Decision};
use crate::model::project::StageContent;
use crate::model::state::{ConfigState, Earlier, ObjectState, Version};

/// Whether a deployment config needs an object that files declare no longer since version `since` served: what runs reads it, or it
/// leads to that version, because none that was asked for has taken its place.
pub fn needs(state: &ConfigState, object: &ObjectState, since: u32) -> bool {
    let key = &object.object.key;
    match key.kind {
        _ if state.removed => false,
        _ if is_read(key) => reads(state).contains(key),
        Kind::Service => state.serving.as_ref().is_some_and(|it| it.number == since && object.leads_to(it)),
        _ => false,
    }
}

/// Whether a version still needs what an object was before it changed: it stands beside what serves, serves while another is to
/// take its place, or is brought up to go back to one that did. `is_coming` says whether what the object changed for may still come.
pub fn needs_earlier(state: &ConfigState, earlier: &Earlier, is_coming: bool) -> bool {
    let is_it = |version: &Version| version.number == earlier.version;
    let stands_beside = state.beside.as_ref().is_some_and(|beside| is_it(&beside.version));
    let comes = state.open_attempt().is_some_and(|attempt| is_it(&attempt.version));
    let serves = state.serving.as_ref().is_some_and(is_it);
    let stays = earlier.went_back || is_coming || is_to_be_replaced(state);
    !state.removed && (stands_beside || comes || serves && stays)
}

/// The versions that run with an object as it is, and for which it stays so if it changes with what a change brings of their
/// deployment config: one that serves and is to be replaced, and one that stands beside what serves.
pub fn outlived<'a>(
    state: &'a ConfigState,
    brought: Option<&'a Change>,
    object: &'a ObjectState,
) -> impl Iterator<Item = &'a Version> {
    let brought = brought.filter(|change| change.decision != Decision::Wait && change.object.is_some());
    let is_replaced = brought.map_or_else(|| is_to_be_replaced(state), |change| brings_another(state, change));
    let stays = state.serving.as_ref().map(|serving| serving.number).filter(|_| !is_replaced);
    let versions = running(state).filter(move |version| !state.removed && Some(version.number) != stays);
    versions.filter(|version| match &object.object.key {
        key if key.kind == Kind::Service => object.leads_to(version),
        key if is_data(key) => read_by_pods(&version.object).contains(key),
        _ => false,
    })
}

/// Whether what a change declares of a deployment config is to take the place of what serves.
fn brings_another(state: &ConfigState, change: &Change) -> bool {
    let serving = state.serving.as_ref().and_then(|serving| serving.object.template());
    let is_other = || change.object.as_ref().is_some_and(|object| object.template() != serving);
    change.starts_deployment() || is_other()
}

/// Whether another version is to take the place of what serves.
pub fn is_to_be_replaced(state: &ConfigState) -> bool {
    let serving = state.serving.as_ref().and_then(|serving| serving.object.template());
    state.attempted.is_some() || serving != state.object.template()
}

/// What serves, and what stands beside it.
pub fn running(state: &ConfigState) -> impl Iterator<Item = &Version> {
    state.serving.iter().chain(state.beside.as_ref().map(|beside| &beside.version))
}

/// Whether pods read what is of that kind.
fn is_read(key: &ObjectKey) -> bool {
    is_data(key) || key.kind == Kind::PersistentVolumeClaim
}

/// Whether what pods read of it is in the object itself.
fn is_data(key: &ObjectKey) -> bool {
    matches!(key.kind, Kind::ConfigMap | Kind::Secret)
}

/// The deployment configs that may need what their stage declares no longer or otherwise. Nothing of them need differ, so that
/// nothing was read of them.
pub fn concerned(stage: &StageContent, applied: &Applied) -> BTreeSet<ObjectKey> {
    let mut found = readers(stage, applied);
    let differ = applied.objects.values().map(|state| &state.object);
    let differ = differ.filter(|object| object.key.kind == Kind::Service || is_data(&object.key));
    for service in differ.map(|object| &object.service).collect::<BTreeSet<_>>() {
        let configs = stage.objects.of_service(service).filter(|object| is_config(&object.key));
        found.extend(configs.map(|config| config.key.clone()));
    }
    found
}

/// Those that still name what their stage declares no longer.
fn readers(stage: &StageContent, applied: &Applied) -> BTreeSet<ObjectKey> {
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

/// Says of what changes and of what goes which deployment configs run with it.
pub(super) fn note_needs(stage: &StageContent, applied: &Applied, changes: &mut BTreeMap<ServiceName, Vec<Change>>) {
    note_outlived(applied, changes);
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
                let led = led.iter().filter(|version| service.leads_to(version));
                led.map(|version| version.object.key.name.clone()).collect()
            }
            None => readers.remove(&change.key).unwrap_or_default(),
        };
        if is_read(&change.key) {
            change.needed_by.extend(coming(stage, applied, &change.key));
        }
    }
}

/// The deployment configs that deliveries may have brought by then to which something is read that goes now. What these declare
/// is known as far as it is declared still.
fn coming(stage: &StageContent, applied: &Applied, gone: &ObjectKey) -> impl Iterator<Item = String> {
    let brought = applied.under_way.values().flat_map(UnderWay::brings);
    let may_read = |(key, digest): &(&ObjectKey, &Digest)| {
        let declared = stage.objects.get(key).filter(|declared| declared.digest == **digest);
        is_config(key) && declared.is_none_or(|declared| referenced(declared).contains(gone))
    };
    brought.filter(may_read).map(|(key, _)| key.name.clone())
}

/// Says of what changes which deployment configs of the service that had it go on with what it was.
fn note_outlived(applied: &Applied, changes: &mut BTreeMap<ServiceName, Vec<Change>>) {
    let mut by_service: BTreeMap<&ServiceName, Vec<(&ObjectKey, &ConfigState)>> = BTreeMap::new();
    for (key, state) in &applied.configs {
        by_service.entry(&state.service).or_default().push((key, state));
    }
    for changes in changes.values_mut() {
        let outlives = |change: &Change| -> BTreeSet<String> {
            let is_declared = matches!(change.decision, Decision::Create | Decision::Update);
            let Some(object) = applied.objects.get(&change.key).filter(|_| is_declared) else { return BTreeSet::new() };
            let brought = |key: &ObjectKey| changes.iter().find(|change| change.key == *key);
            let configs = by_service.get(&object.object.service).into_iter().flatten();
            let outlives = configs.filter(|(key, state)| outlived(state, brought(key), object).next().is_some());
            outlives.map(|(key, _)| key.name.clone()).collect()
        };
        let noted: Vec<BTreeSet<String>> = changes.iter().map(outlives).collect();
        changes.iter_mut().zip(noted).for_each(|(change, needed_by)| change.needed_by = needed_by);
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
    let running = running(state).flat_map(|version| read_by_pods(&version.object));
    let attempted = state.open_attempt().into_iter().flat_map(|attempt| referenced(&attempt.version.object));
    running.chain(attempted).collect()
}
