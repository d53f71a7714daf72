//! What comes back into the files with a deployment config: what its earlier version runs with and the head declares no longer,
//! and what the push that brought what is bad has changed beside it, if nobody has since. Anything else that ConfigMaps, Secrets and
//! `Service`s say by now is not what is gone back from.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::manifest::referenced;
use crate::model::object::{Kind, Object, ObjectKey};
use crate::model::project::StageContent;
use crate::model::state::Version;

/// The revisions between which a stage came to declare what is bad.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The one before.
    pub before: &'a StageContent,
    /// The first one that declares it.
    pub after: &'a StageContent,
}

/// Which revision declares what comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeclaredBy {
    /// The earlier version's own.
    Own,
    /// The one before what is bad came.
    Before,
}

/// The objects that come back with an earlier version; `was` is the stage at the version's own revision.
pub fn companions(
    version: &Version,
    was: &StageContent,
    step: Option<Step<'_>>,
    head: &StageContent,
) -> Vec<(Arc<Object>, DeclaredBy)> {
    let before = step.map(|step| step.before);
    let keys: BTreeSet<ObjectKey> =
        before.into_iter().chain([was]).flat_map(|stage| runs_with(version, stage)).collect();
    let comes_back = |key: &ObjectKey| {
        let before = before.and_then(|before| before.objects.get(key));
        let Some(now) = head.objects.get(key) else {
            let own = || was.objects.get(key).map(|object| (object.clone(), DeclaredBy::Own));
            return before.map(|object| (object.clone(), DeclaredBy::Before)).or_else(own);
        };
        let (before, after) = (before?, step?.after.objects.get(key)?);
        let is_its = before.digest != after.digest && now.digest == after.digest;
        (is_its && !is_anothers(key, version, head)).then(|| (before.clone(), DeclaredBy::Before))
    };
    keys.iter().filter_map(comes_back).collect()
}

/// What a version reads, and what leads to it.
fn runs_with(version: &Version, stage: &StageContent) -> Vec<ObjectKey> {
    let labels = version.pod_labels();
    let services = stage.objects.of_service(&version.object.service).filter(|object| object.leads_to(&labels));
    let reads = referenced(&version.object).into_iter().filter(|key| stage.objects.contains(key));
    reads.chain(services.map(|service| service.key.clone())).collect()
}

/// Whether another deployment config of the stage reads an object too: it may need what that is by now.
fn is_anothers(key: &ObjectKey, version: &Version, stage: &StageContent) -> bool {
    let name = format!("\"{}\"", key.name);
    let is_other =
        |object: &&Arc<Object>| object.key.kind == Kind::DeploymentConfig && object.key != version.object.key;
    let mut others = stage.objects.iter().filter(is_other).filter(|other| other.content.text().contains(&name));
    others.any(|other| referenced(other).contains(key))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::manifest::digest;
    use crate::model::object::Location;
    use crate::model::shipyard::Shipyard;
    use crate::testing::world::{deployment_config, project};

    fn plain(kind: Kind, name: &str, content: serde_json::Value) -> Object {
        Object {
            key: ObjectKey { kind, name: name.into() },
            service: "web".into(),
            location: Location::default(),
            autoscaled_at: None,
            digest: digest::of(&content),
            content: content.into(),
        }
    }

    fn map(name: &str, value: &str) -> Object {
        plain(Kind::ConfigMap, name, json!({"data": {"c": value}}))
    }

    fn service(name: &str, config: &str, port: u16) -> Object {
        let spec = json!({"selector": {"deploymentconfig": config}, "ports": [{"port": port}]});
        plain(Kind::Service, name, json!({"spec": spec}))
    }

    /// A deployment config whose pods read a ConfigMap.
    fn reading(name: &str, image: &str, map: &str) -> Object {
        let mut object = deployment_config(name, image, 1, json!({}));
        let mut content = object.content.value();
        content["spec"]["template"]["spec"]["containers"][0]["envFrom"] = json!([{"configMapRef": {"name": map}}]);
        digest::exchange(&mut object, content);
        object
    }

    fn stage(objects: &[Object]) -> StageContent {
        project(Shipyard::implicit(), objects).stages.remove(0)
    }

    #[test]
    fn what_is_gone_comes_back_and_what_changed_with_it_if_it_is_its_own_and_as_it_was_changed() {
        let good = reading("web", "a", "red");
        let version = Version { number: 1, commit: "c1".into(), object: Arc::new(good.clone()) };
        let front = || service("front", "web", 80);
        let was = stage(&[good.clone(), map("red", "1"), front()]);
        let before = stage(&[good, map("red", "2"), front(), map("other", "1"), service("side", "api", 80)]);
        let bad = |more: &[Object]| stage(&[&[reading("web", "b", "blue"), map("blue", "1")], more].concat());
        let renamed = bad(&[front(), map("other", "2"), service("side", "api", 81)]);
        let changed = bad(&[map("red", "3"), service("front", "web", 81)]);
        let later = bad(&[map("red", "4"), service("front", "web", 82)]);
        let shared = bad(&[map("red", "3"), front(), reading("api", "a", "red")]);
        let cases = [
            ("it was renamed", Some(&renamed), &renamed, "ConfigMap/red=2"),
            ("its service is gone as well", Some(&bad(&[])), &bad(&[]), "Service/front=80 ConfigMap/red=2"),
            ("it has changed", Some(&changed), &changed, "Service/front=80 ConfigMap/red=2"),
            ("it has changed since", Some(&changed), &later, ""),
            ("another one reads it", Some(&shared), &shared, ""),
            ("it changed on its own", Some(&before), &changed, ""),
            ("nobody knows when", None, &changed, ""),
            ("it is gone, nobody knows when", None, &renamed, "ConfigMap/red=1"),
        ];
        for (case, after, head, expected) in cases {
            let step = after.map(|after| Step { before: &before, after });
            let told = companions(&version, &was, step, head).into_iter().map(|(object, _)| {
                let value = object.content.at("/data/c").or_else(|| object.content.at("/spec/ports/0/port"));
                format!("{}={}", object.key, value.map(|value| value.to_string().replace('"', "")).unwrap_or_default())
            });
            assert_eq!(told.collect::<Vec<_>>().join(" "), expected, "{case}");
        }
    }
}
