//! Which objects a pod template reads.

use serde_json::Value;

use super::{CONTAINER_LISTS, items};
use crate::model::object::{Kind, ObjectKey};

/// What holds the name of an object: the kind of that, the field that holds it, and the name's field there.
type Holder = (Kind, &'static str, &'static str);

const VOLUMES: [Holder; 3] = [
    (Kind::ConfigMap, "configMap", "name"),
    (Kind::Secret, "secret", "secretName"),
    (Kind::PersistentVolumeClaim, "persistentVolumeClaim", "claimName"),
];
const VARIABLES: [Holder; 2] =
    [(Kind::ConfigMap, "valueFrom/configMapKeyRef", "name"), (Kind::Secret, "valueFrom/secretKeyRef", "name")];
const SOURCES: [Holder; 2] = [(Kind::ConfigMap, "configMapRef", "name"), (Kind::Secret, "secretRef", "name")];

/// One place that names a ConfigMap, a Secret or a claim.
#[derive(Debug)]
pub(crate) struct Reference {
    pub(crate) key: ObjectKey,
    /// Where the name stands, from whatever holds the places that were searched.
    pub(crate) pointer: String,
    /// The keys of it that are named, and where.
    pub(crate) entries: Vec<(String, String)>,
    /// Whether a pod starts without it.
    pub(crate) optional: bool,
}

/// The ConfigMaps, Secrets and claims that the template at a pointer of `holder` names.
pub(crate) fn of_template(holder: &Value, template: &str) -> Vec<Reference> {
    let mut found = in_list(holder, &format!("{template}/spec/volumes"), &VOLUMES);
    for list in CONTAINER_LISTS.map(|list| format!("{template}{list}")) {
        let containers = items(holder, &list);
        found.extend(containers.flat_map(|(index, _)| of_variables(holder, &format!("{list}/{index}"))));
    }
    found
}

/// The ConfigMaps and Secrets that the variables of the container or hook at a pointer of `holder` name.
pub(crate) fn of_variables(holder: &Value, container: &str) -> Vec<Reference> {
    let mut found = of_environment(holder, &format!("{container}/env"));
    found.extend(in_list(holder, &format!("{container}/envFrom"), &SOURCES));
    found
}

/// The ConfigMaps and Secrets that the list of variables at a pointer of `holder` names.
pub(crate) fn of_environment(holder: &Value, list: &str) -> Vec<Reference> {
    in_list(holder, list, &VARIABLES)
}

/// The keys that a reference names: a variable one, a volume as many as it has files, or none if it has all.
fn entries(reference: &Value, place: &str) -> Vec<(String, String)> {
    let own = reference.get("key").map(|key| (key, format!("{place}/key")));
    let of_items = reference.get("items").and_then(Value::as_array).into_iter().flatten().enumerate();
    let of_items = of_items.filter_map(|(index, item)| Some((item.get("key")?, format!("{place}/items/{index}/key"))));
    own.into_iter().chain(of_items).filter_map(|(key, at)| Some((key.as_str()?.to_owned(), at))).collect()
}

fn in_list(holder: &Value, list: &str, holders: &[Holder]) -> Vec<Reference> {
    let read = |item: &Value, (kind, field, name): &Holder, index: usize| {
        let reference = item.pointer(&format!("/{field}"))?;
        let named = reference.get(name)?.as_str().filter(|name| !name.is_empty())?;
        let place = format!("{list}/{index}/{field}");
        Some(Reference {
            key: ObjectKey { kind: kind.clone(), name: named.to_owned() },
            entries: entries(reference, &place),
            pointer: format!("{place}/{name}"),
            optional: reference.get("optional").and_then(Value::as_bool).unwrap_or(false),
        })
    };
    let read_all = |(index, item): (usize, &Value)| -> Vec<Reference> {
        holders.iter().filter_map(|holder| read(item, holder, index)).collect()
    };
    items(holder, list).flat_map(read_all).collect()
}
