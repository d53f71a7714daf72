//! Which objects a pod template reads.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{CONTAINER_LISTS, items, text_at};
use crate::model::object::{Kind, ObjectKey};

/// The ConfigMaps, Secrets and claims that a template names.
pub(crate) fn of(template: &Value) -> BTreeSet<ObjectKey> {
    let mut found = BTreeSet::new();
    for (_, volume) in items(template, "/spec/volumes") {
        add(&mut found, Kind::ConfigMap, text_at(volume, "/configMap/name"));
        add(&mut found, Kind::Secret, text_at(volume, "/secret/secretName"));
        add(&mut found, Kind::PersistentVolumeClaim, text_at(volume, "/persistentVolumeClaim/claimName"));
    }
    for (_, container) in CONTAINER_LISTS.iter().flat_map(|list| items(template, list)) {
        add_variables(&mut found, container);
    }
    found
}

/// The ConfigMaps and Secrets that the variables of a container or hook name.
pub(crate) fn add_variables(found: &mut BTreeSet<ObjectKey>, container: &Value) {
    for (_, variable) in items(container, "/env") {
        add(found, Kind::ConfigMap, text_at(variable, "/valueFrom/configMapKeyRef/name"));
        add(found, Kind::Secret, text_at(variable, "/valueFrom/secretKeyRef/name"));
    }
    for (_, source) in items(container, "/envFrom") {
        add(found, Kind::ConfigMap, text_at(source, "/configMapRef/name"));
        add(found, Kind::Secret, text_at(source, "/secretRef/name"));
    }
}

fn add(found: &mut BTreeSet<ObjectKey>, kind: Kind, name: &str) {
    if !name.is_empty() {
        found.insert(ObjectKey { kind, name: name.to_owned() });
    }
}
