//! Which objects a pod's template refers to, and what of them is not there yet.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{KeyToPath, Pod, PodTemplate};
use crate::model::ids::Namespace;
use crate::model::object::{Kind, ObjectKey};

/// ConfigMaps, Secrets and claims with their contents.
pub type Objects = BTreeMap<ObjectKey, Value>;

/// One place of a template that names a ConfigMap, a Secret or a claim.
struct Reference<'a> {
    kind: Kind,
    name: &'a str,
    /// The keys that it needs; the object alone if there are none.
    keys: Vec<&'a str>,
    /// Whether the pod may start without it.
    optional: bool,
}

impl Reference<'_> {
    fn key(&self) -> ObjectKey {
        ObjectKey { kind: self.kind.clone(), name: self.name.to_owned() }
    }
}

/// The ConfigMaps, Secrets and claims that a pod names.
pub fn of(pod: &Pod) -> BTreeSet<ObjectKey> {
    of_template(&pod.template)
}

/// Those that a template names.
pub fn of_template(template: &PodTemplate) -> BTreeSet<ObjectKey> {
    references(template).iter().map(Reference::key).collect()
}

/// The first thing that a pod needs and that is not among `objects`, in Kubernetes' words.
pub fn missing(pod: &Pod, objects: &Objects) -> Option<String> {
    lacking(&pod.template, &pod.id.namespace, objects).next()
}

/// Everything that a template needs in a namespace and that is not among `objects`, in Kubernetes' words.
pub fn lacking<'a>(
    template: &'a PodTemplate,
    namespace: &'a Namespace,
    objects: &'a Objects,
) -> impl Iterator<Item = String> + 'a {
    references(template).into_iter().filter(|reference| !reference.optional).filter_map(move |reference| {
        let (kind, name) = (reference.kind.name(), reference.name);
        let Some(content) = objects.get(&reference.key()) else {
            return Some(format!("{} \"{name}\" not found", kind.to_lowercase()));
        };
        let key = reference.keys.iter().find(|key| !has_key(content, key))?;
        Some(format!("couldn't find key {key} in {kind} {namespace}/{name}"))
    })
}

fn has_key(content: &Value, key: &str) -> bool {
    ["data", "binaryData", "stringData"]
        .iter()
        .any(|field| content.get(field).is_some_and(|map| map.get(key).is_some()))
}

fn references(template: &PodTemplate) -> Vec<Reference<'_>> {
    let spec = &template.spec;
    let mut found = Vec::new();
    for container in spec.init_containers.iter().chain(&spec.containers) {
        for source in &container.env_from {
            let sources = [(Kind::ConfigMap, &source.config_map_ref), (Kind::Secret, &source.secret_ref)];
            found.extend(sources.into_iter().filter_map(|(kind, object)| {
                let object = object.as_ref()?;
                Some(Reference { kind, name: &object.name, keys: Vec::new(), optional: object.optional })
            }));
        }
        for source in container.env.iter().filter_map(|variable| variable.value_from.as_ref()) {
            let sources = [(Kind::ConfigMap, &source.config_map_key_ref), (Kind::Secret, &source.secret_key_ref)];
            found.extend(sources.into_iter().filter_map(|(kind, key)| {
                let key = key.as_ref()?;
                Some(Reference { kind, name: &key.name, keys: vec![&key.key], optional: key.optional })
            }));
        }
    }
    for volume in &spec.volumes {
        found.extend(volume.config_map.iter().map(|source| Reference {
            kind: Kind::ConfigMap,
            name: &source.name,
            keys: keys_of(&source.items),
            optional: source.optional,
        }));
        found.extend(volume.secret.iter().map(|source| Reference {
            kind: Kind::Secret,
            name: &source.secret_name,
            keys: keys_of(&source.items),
            optional: source.optional,
        }));
        found.extend(volume.persistent_volume_claim.iter().map(|claim| Reference {
            kind: Kind::PersistentVolumeClaim,
            name: &claim.claim_name,
            keys: Vec::new(),
            optional: false,
        }));
    }
    found
}

fn keys_of(items: &[KeyToPath]) -> Vec<&str> {
    items.iter().map(|item| item.key.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::ids::{CommitId, PodName, RepositoryName, RunId};
    use crate::model::pod::{PodId, PodOwner};

    fn pod(spec: Value) -> Pod {
        Pod {
            id: PodId { namespace: Namespace::new("shop-dev"), name: PodName::new("web-1-0") },
            owner: PodOwner::Run { run: RunId::new("run"), step: "pre".into(), since: Default::default() },
            template: serde_json::from_value(json!({"spec": spec})).unwrap(),
            repository: RepositoryName::new("repo"),
            commit: CommitId::new("c"),
            run_once_seconds: None,
            tells_result: false,
            deploys: false,
        }
    }

    fn objects(content: Value) -> Objects {
        Objects::from([(ObjectKey { kind: Kind::ConfigMap, name: "colors".into() }, content)])
    }

    #[test]
    fn what_is_missing_is_said_as_kubernetes_says_it() {
        let variable =
            |source: Value| json!({"containers": [{"name": "a", "env": [{"name": "X", "valueFrom": source}]}]});
        let colors = objects(json!({"data": {"red": "1"}}));
        for (spec, expected) in [
            (variable(json!({"configMapKeyRef": {"name": "colors", "key": "red"}})), None),
            (
                variable(json!({"configMapKeyRef": {"name": "colors", "key": "blue"}})),
                Some("couldn't find key blue in ConfigMap shop-dev/colors"),
            ),
            (
                variable(json!({"configMapKeyRef": {"name": "colours", "key": "red"}})),
                Some("configmap \"colours\" not found"),
            ),
            (variable(json!({"configMapKeyRef": {"name": "colors", "key": "blue", "optional": true}})), None),
            (
                json!({"containers": [{"name": "a", "envFrom": [{"secretRef": {"name": "keys"}}]}]}),
                Some("secret \"keys\" not found"),
            ),
            (
                json!({"containers": [{"name": "a", "envFrom": [{"secretRef": {"name": "keys", "optional": true}}]}]}),
                None,
            ),
            (
                json!({"volumes": [{"name": "v", "configMap": {"name": "colors", "items": [{"key": "blue", "path": "b"}]}}]}),
                Some("couldn't find key blue in ConfigMap shop-dev/colors"),
            ),
            (json!({"volumes": [{"name": "v", "secret": {"secretName": "keys"}}]}), Some("secret \"keys\" not found")),
            (
                json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "disk"}}]}),
                Some("persistentvolumeclaim \"disk\" not found"),
            ),
        ] {
            assert_eq!(missing(&pod(spec.clone()), &colors).as_deref(), expected, "{spec}");
        }
    }

    #[test]
    fn every_named_object_is_read_once() {
        let spec = json!({
            "containers": [{"name": "a", "envFrom": [{"configMapRef": {"name": "colors"}}]}],
            "volumes": [{"name": "v", "configMap": {"name": "colors"}}, {"name": "w", "secret": {"secretName": "keys"}}],
        });
        assert_eq!(of(&pod(spec)).len(), 2);
    }
}
