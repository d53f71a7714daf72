//! Which `Service` objects lead to which pods, as they were applied last: whoever brings up pods asks how these are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::model::ids::{ProjectName, ServiceKey, StageName};
use crate::model::selector::{Labels, selects};
use crate::model::state::ObjectState;
use crate::model::transaction::ObjectPlace;

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
    /// By the one label of their selectors by which the fewest others were filed: what lacks it is not selected.
    by_label: BTreeMap<ByLabel, BTreeSet<ObjectPlace>>,
}

#[derive(Debug)]
struct Entry {
    service: ServiceKey,
    selector: Labels,
    /// Nowhere, if it selects nothing.
    filed: Option<ByLabel>,
}

impl SelectorIndex {
    /// An object is to answer for what it selects.
    pub(super) fn note(&self, object: &ObjectState, selector: &Labels) {
        let place = ObjectPlace::from(object);
        let (project, stage, service) = (place.project.clone(), place.stage.clone(), object.object.service.clone());
        let service = ServiceKey { project, stage, service };
        let mut known = self.known();
        let is_known = |entry: &Entry| (&entry.service, &entry.selector) == (&service, selector);
        if !known.entries.get(&place).is_some_and(is_known) {
            known.remove(&place);
            known.insert(place, service, selector.clone());
        }
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
        for (key, value) in labels {
            let label = (service.project.clone(), service.stage.clone(), key.clone(), value.clone());
            let candidates = known.by_label.get(&label).into_iter().flatten();
            found.extend(candidates.filter(|place| known.selects(place, labels)).cloned());
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

    fn insert(&mut self, place: ObjectPlace, service: ServiceKey, selector: Labels) {
        let label =
            |(key, value): (&String, &String)| (place.project.clone(), place.stage.clone(), key.clone(), value.clone());
        let others = |label: &ByLabel| self.by_label.get(label).map_or(0, BTreeSet::len);
        let filed = selector.iter().map(label).min_by_key(others);
        if let Some(label) = &filed {
            self.by_label.entry(label.clone()).or_default().insert(place.clone());
        }
        self.by_service.entry(service.clone()).or_default().insert(place.clone());
        self.entries.insert(place, Entry { service, selector, filed });
    }

    fn remove(&mut self, place: &ObjectPlace) {
        let Some(entry) = self.entries.remove(place) else { return };
        if let Some(label) = &entry.filed {
            leave(&mut self.by_label, label, place);
        }
        leave(&mut self.by_service, &entry.service, place);
    }
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
    use crate::model::ids::Destination;
    use crate::model::object::{Kind, Location, Object, ObjectKey};

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
