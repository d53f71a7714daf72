//! Which `Service` objects lead to which pods, as they were applied last: whoever brings up pods asks how these are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::model::ids::{ConfigKey, ProjectName, ServiceKey, StageName};
use crate::model::pod::ObservedPod;
use crate::model::selector::{Labels, selects};
use crate::model::state::ObjectState;
use crate::model::transaction::ObjectPlace;
use crate::runtime::ServiceSpec;

/// Where something is found that selects by a label.
type ByLabel = (ProjectName, StageName, String, String);

/// What each `Service` object that is to answer selects.
#[derive(Debug, Default)]
pub struct SelectorIndex(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    entries: BTreeMap<ObjectPlace, Entry>,
    /// By the service that they are delivered with.
    by_service: BTreeMap<ServiceKey, BTreeSet<ObjectPlace>>,
    /// By one label of each of their selectors, the one by which the fewest others were filed: what lacks it is not selected.
    by_label: BTreeMap<ByLabel, BTreeSet<ObjectPlace>>,
    /// By the deployment configs among whose versions they divide their traffic.
    by_config: BTreeMap<ConfigKey, BTreeSet<ObjectPlace>>,
}

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    service: ServiceKey,
    selector: Labels,
    /// What else it selects by: for versions that it was something else for, and for as long as another life of the store says.
    others: BTreeSet<Labels>,
    /// The deployment configs among whose versions it divides its traffic; none, if every ready pod gets the same.
    divides: BTreeSet<ConfigKey>,
}

impl SelectorIndex {
    /// An object is to answer for what it selects.
    pub(super) fn note(&self, object: &ObjectState, selector: &Labels) {
        let (place, service, selector) = (ObjectPlace::from(object), service_of(object), selector.clone());
        let mut known = self.known();
        let (others, divides) = known.entries.get(&place).map(Entry::applied).unwrap_or_default();
        known.put(place, Entry { service, selector, others, divides });
    }

    /// An object answers as it was applied.
    pub(super) fn note_applied(&self, place: &ObjectPlace, spec: &ServiceSpec) {
        let mut known = self.known();
        let Some(Entry { service, selector, .. }) = known.entries.get(place) else { return };
        let (service, selector) = (service.clone(), selector.clone());
        let others = spec.selectors().filter(|it| **it != selector).cloned().collect();
        let divides = spec.backends.iter().map(|backend| backend.config.clone()).collect();
        known.put(place.clone(), Entry { service, selector, others, divides });
    }

    /// What is in a place answers no longer.
    pub(super) fn forget(&self, place: &ObjectPlace) {
        self.known().remove(place);
    }

    /// Nothing answers but what is in these places.
    pub(super) fn keep_only(&self, places: &BTreeSet<ObjectPlace>) {
        let mut known = self.known();
        let gone: Vec<ObjectPlace> = known.entries.keys().filter(|place| !places.contains(place)).cloned().collect();
        gone.iter().for_each(|place| known.remove(place));
    }

    /// The service that what is in a place is delivered with, if it is to answer.
    pub(super) fn service(&self, place: &ObjectPlace) -> Option<ServiceKey> {
        self.known().entries.get(place).map(|entry| entry.service.clone())
    }

    /// What is delivered with a service.
    pub fn of(&self, service: &ServiceKey) -> BTreeSet<ObjectPlace> {
        self.known().by_service.get(service).cloned().unwrap_or_default()
    }

    /// The same, and what leads to pods with these labels in the stage.
    pub fn leading_to(&self, service: &ServiceKey, labels: &Labels) -> BTreeSet<ObjectPlace> {
        let mut found = self.of(service);
        let known = self.known();
        let candidates = known.candidates(&service.project, &service.stage, labels);
        found.extend(candidates.filter(|place| known.selects(place, labels)).cloned());
        found
    }

    /// What may have to divide its traffic otherwise now that something has become of a deployment config with these pods:
    /// what divides it already, and, if the config's versions `share` theirs, all that leads to these pods.
    pub(super) fn dividing(&self, config: &ConfigKey, share: bool, pods: &[ObservedPod]) -> BTreeSet<ObjectPlace> {
        let known = self.known();
        if known.by_config.is_empty() && !share {
            return BTreeSet::new();
        }
        let mut found = known.by_config.get(config).cloned().unwrap_or_default();
        let alike: BTreeSet<&Labels> = pods.iter().map(|pod| &*pod.labels).collect();
        for labels in alike {
            found.extend(known.candidates(&config.project, &config.stage, labels).filter_map(|place| {
                let entry = known.entries.get(place)?;
                let leads = entry.selectors().any(|selector| selects(selector, labels));
                (leads && (share || !entry.divides.is_empty())).then(|| place.clone())
            }));
        }
        found
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn selects(&self, place: &ObjectPlace, labels: &Labels) -> bool {
        self.entries.get(place).is_some_and(|entry| selects(&entry.selector, labels))
    }

    /// What may select pods of a stage with these labels.
    fn candidates<'a>(
        &'a self,
        project: &ProjectName,
        stage: &StageName,
        labels: &Labels,
    ) -> impl Iterator<Item = &'a ObjectPlace> {
        let label = |(key, value): (&String, &String)| (project.clone(), stage.clone(), key.clone(), value.clone());
        let filed: Vec<_> = labels.iter().filter_map(|pair| self.by_label.get(&label(pair))).collect();
        filed.into_iter().flatten()
    }

    /// What is in a place is this now.
    fn put(&mut self, place: ObjectPlace, entry: Entry) {
        if self.entries.get(&place) != Some(&entry) {
            self.remove(&place);
            self.insert(place, entry);
        }
    }

    fn insert(&mut self, place: ObjectPlace, entry: Entry) {
        for label in entry.selectors().filter_map(|selector| self.rarest(&place, selector)).collect::<Vec<_>>() {
            self.by_label.entry(label).or_default().insert(place.clone());
        }
        self.by_service.entry(entry.service.clone()).or_default().insert(place.clone());
        for config in &entry.divides {
            self.by_config.entry(config.clone()).or_default().insert(place.clone());
        }
        self.entries.insert(place, entry);
    }

    /// The label of a selector by which the fewest were filed; none, if it selects nothing.
    fn rarest(&self, place: &ObjectPlace, selector: &Labels) -> Option<ByLabel> {
        let others = |label: &ByLabel| self.by_label.get(label).map_or(0, BTreeSet::len);
        labels_of(place, selector).min_by_key(others)
    }

    fn remove(&mut self, place: &ObjectPlace) {
        let Some(entry) = self.entries.remove(place) else { return };
        // It was filed under one label of each selector: which one nobody has to remember.
        for label in entry.selectors().flat_map(|selector| labels_of(place, selector)) {
            leave(&mut self.by_label, &label, place);
        }
        leave(&mut self.by_service, &entry.service, place);
        entry.divides.iter().for_each(|config| leave(&mut self.by_config, config, place));
    }
}

impl Entry {
    /// What it selects by.
    fn selectors(&self) -> impl Iterator<Item = &Labels> {
        std::iter::once(&self.selector).chain(&self.others)
    }

    /// What is known of it since it was applied.
    fn applied(&self) -> (BTreeSet<Labels>, BTreeSet<ConfigKey>) {
        (self.others.clone(), self.divides.clone())
    }
}

fn service_of(object: &ObjectState) -> ServiceKey {
    let (project, stage, service) = (object.project.clone(), object.stage.clone(), object.object.service.clone());
    ServiceKey { project, stage, service }
}

fn labels_of<'a>(place: &'a ObjectPlace, selector: &'a Labels) -> impl Iterator<Item = ByLabel> + 'a {
    selector.iter().map(|(key, value)| (place.project.clone(), place.stage.clone(), key.clone(), value.clone()))
}

fn leave<K: Ord>(index: &mut BTreeMap<K, BTreeSet<ObjectPlace>>, key: &K, place: &ObjectPlace) {
    let Some(places) = index.get_mut(key) else { return };
    places.remove(place);
    if places.is_empty() {
        index.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::manifest::digest;
    use crate::model::ids::{Destination, Namespace, PodName};
    use crate::model::object::{Kind, Location, Object, ObjectKey};
    use crate::model::pod::{Origin, PodId, PodOwner, PodPhase};
    use crate::model::time::Timestamp;
    use crate::model::wanted::Backend;
    use crate::runtime::EarlierService;

    fn object(stage: &str, name: &str, service: &str) -> ObjectState {
        let content = json!({"metadata": {"name": name}});
        let object = Object {
            key: ObjectKey { kind: Kind::Service, name: name.into() },
            service: service.into(),
            location: Location::default(),
            autoscaled_at: None,
            digest: digest::of(&content),
            content: content.into(),
        };
        let destination = Destination::local("shop-dev".into());
        ObjectState::new(("shop".into(), stage.into()), destination, "repo".into(), object.into())
    }

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn config(name: &str) -> ConfigKey {
        ConfigKey { project: "shop".into(), stage: "dev".into(), name: name.into() }
    }

    fn pod(config: &ConfigKey, pairs: &[(&str, &str)]) -> ObservedPod {
        ObservedPod {
            id: PodId { namespace: Namespace::new("shop-dev"), name: PodName::new(format!("{}-1-0", config.name)) },
            owner: PodOwner::Version { config: config.clone(), version: 1, template: "t".into() },
            origin: Origin::Own,
            labels: labels(pairs).into(),
            phase: PodPhase::Ready { since: Timestamp(0) },
            restarts: 0,
            message: String::new(),
            created_at: Timestamp(0),
            ended_at: None,
        }
    }

    /// An object as it is applied that divides its traffic among the versions of a config, and was something else for one.
    fn applied(object: &ObjectState, config: &ConfigKey, earlier: &[(&str, &str)]) -> ServiceSpec {
        let earlier =
            EarlierService { config: config.clone(), version: 1, ports: Vec::new(), selector: labels(earlier) };
        ServiceSpec {
            namespace: object.destination.namespace.clone(),
            name: object.object.key.name.clone(),
            ports: Vec::new(),
            selector: labels(&[("tier", "front")]),
            external: Vec::new(),
            backends: vec![Backend { config: config.clone(), version: 1, weight: 1000 }],
            earlier: vec![earlier],
        }
    }

    fn named(places: BTreeSet<ObjectPlace>) -> Vec<String> {
        places.into_iter().map(|place| place.key.name).collect()
    }

    #[test]
    fn what_selects_pods_or_is_delivered_with_them_leads_to_them() {
        let index = SelectorIndex::default();
        let web = ServiceKey { project: "shop".into(), stage: "dev".into(), service: "web".into() };
        index.note(&object("dev", "front", "web"), &labels(&[("app", "web")]));
        index.note(&object("dev", "strict", "shared"), &labels(&[("app", "web"), ("tier", "front")]));
        index.note(&object("dev", "outside", "web"), &labels(&[]));
        index.note(&object("dev", "other", "other"), &labels(&[("app", "other")]));
        index.note(&object("dev", "nothing", "shared"), &labels(&[]));
        index.note(&object("production", "front", "web"), &labels(&[("app", "web")]));
        let to = |pairs| named(index.leading_to(&web, &labels(pairs)));
        assert_eq!(to(&[("app", "web")]), ["front", "outside"]);
        assert_eq!(to(&[("app", "web"), ("tier", "front")]), ["front", "outside", "strict"]);
        assert_eq!(
            to(&[("tier", "front")]),
            ["front", "outside"],
            "what is delivered with them selects nothing of them"
        );
        assert_eq!(named(index.of(&web)), ["front", "outside"]);
    }

    #[test]
    fn what_divides_its_traffic_is_found_by_its_deployment_configs_and_by_what_it_leads_to() {
        let index = SelectorIndex::default();
        let (web, api) = (config("web"), config("api"));
        let front = object("dev", "front", "front");
        index.note(&front, &labels(&[("tier", "front")]));
        index.note(&object("dev", "other", "other"), &labels(&[("tier", "other")]));
        let pods = |config: &ConfigKey| [pod(config, &[("tier", "front")])];
        let dividing = |config, share, pods: &[ObservedPod]| named(index.dividing(config, share, pods));
        assert_eq!(dividing(&web, false, &pods(&web)), [""; 0], "nothing divides");
        assert_eq!(dividing(&web, true, &pods(&web)), ["front"], "it is to");
        assert_eq!(dividing(&web, true, &[]), [""; 0], "it leads to none of it");
        index.note_applied(&ObjectPlace::from(&front), &applied(&front, &web, &[("tier", "old")]));
        assert_eq!(dividing(&web, false, &[]), ["front"], "it may have to stop");
        assert_eq!(dividing(&api, false, &pods(&api)), ["front"], "what is there beside has its part");
        assert_eq!(dividing(&api, false, &[pod(&api, &[("tier", "old")])]), ["front"], "also as it was for a version");
        assert_eq!(dividing(&api, false, &[pod(&api, &[("tier", "other")])]), [""; 0], "that one does not divide");
        let leads = |pairs| {
            named(index.leading_to(&ServiceKey { service: "api".into(), ..service_of(&front) }, &labels(pairs)))
        };
        assert_eq!((leads(&[("tier", "front")]), leads(&[("tier", "old")])), (vec!["front".to_owned()], vec![]));
        index.note(&front, &labels(&[("tier", "front")]));
        assert_eq!(dividing(&web, false, &[]), ["front"], "it is still applied so");
        index.forget(&ObjectPlace::from(&front));
        assert_eq!(dividing(&web, false, &pods(&web)), [""; 0]);
        assert!(index.known().by_config.is_empty(), "nothing is left behind");
    }

    #[test]
    fn a_label_that_all_have_in_common_is_nobodys_index() {
        let index = SelectorIndex::default();
        for number in 0..100 {
            let name = format!("web-{number:02}");
            index.note(&object("dev", &name, &name), &labels(&[("a-shop", "all"), ("name", &name)]));
        }
        let web = ServiceKey { project: "shop".into(), stage: "dev".into(), service: "web-07".into() };
        let found = named(index.leading_to(&web, &labels(&[("a-shop", "all"), ("name", "web-07")])));
        assert_eq!(found, ["web-07"]);
        assert!(index.known().by_label.values().all(|places| places.len() == 1));
    }

    #[test]
    fn what_selects_otherwise_or_is_gone_leads_there_no_longer() {
        let index = SelectorIndex::default();
        let api = ServiceKey { project: "shop".into(), stage: "dev".into(), service: "api".into() };
        let (front, back) = (object("dev", "front", "web"), object("dev", "back", "web"));
        index.note(&front, &labels(&[("app", "api")]));
        index.note(&back, &labels(&[("app", "api")]));
        let to_api = || named(index.leading_to(&api, &labels(&[("app", "api")])));
        assert_eq!(to_api(), ["back", "front"]);
        index.note(&front, &labels(&[("app", "web")]));
        assert_eq!(to_api(), ["back"]);
        index.note(&object("dev", "front", "api"), &labels(&[("app", "web")]));
        assert_eq!(to_api(), ["back", "front"], "it is delivered with it now");
        index.forget(&ObjectPlace::from(&front));
        index.keep_only(&BTreeSet::new());
        assert!(to_api().is_empty());
        assert!(index.known().by_label.is_empty() && index.known().by_service.is_empty(), "nothing is left behind");
    }
}
