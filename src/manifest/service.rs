//! Which service an object is delivered with.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::object::Declared;
use crate::model::ids::ServiceName;
use crate::model::object::{Kind, ObjectKey};

/// The service of objects that belong to no single one.
pub const SHARED: &str = "shared";

/// The services of a stage's objects, in their order.
///
/// The label decides; a deployment config without it is its own. A `Service` goes with the one service whose pods it
/// selects, a `ConfigMap`, `Secret` or claim with the one that reads it, `Endpoints` with the `Service` of their name.
pub(crate) fn assign(objects: &[&Declared]) -> Vec<ServiceName> {
    let directory = Directory::new(objects);
    let named: HashMap<&str, ServiceName> = objects
        .iter()
        .filter(|object| object.key.kind == Kind::Service)
        .map(|object| (object.key.name.as_str(), directory.of_service(object)))
        .collect();
    let service_of = |object: &&Declared| match (directory.of_config(object), &object.key.kind) {
        (Some(service), _) => service.clone(),
        (None, Kind::Service | Kind::Endpoints) => named.get(object.key.name.as_str()).cloned().unwrap_or_else(shared),
        (None, _) => directory.of_reader(&object.key),
    };
    objects.iter().map(service_of).collect()
}

/// The deployment configs whose pods no `Service` selects.
pub(crate) fn unselected<'a>(objects: &[&'a Declared]) -> Vec<&'a Declared> {
    let directory = Directory::new(objects);
    let selectors = objects.iter().filter(|object| object.key.kind == Kind::Service).map(|it| &it.links.selector);
    let selected: BTreeSet<&str> =
        selectors.flat_map(|selector| directory.selected(selector)).map(|config| &*config.key.name).collect();
    let is_alone = |object: &&&Declared| {
        object.key.kind == Kind::DeploymentConfig && object.belongs.is_none() && !selected.contains(&*object.key.name)
    };
    objects.iter().filter(is_alone).copied().collect()
}

fn shared() -> ServiceName {
    ServiceName::new(SHARED)
}

/// The deployment configs of a stage, by what others find them by.
struct Directory<'a> {
    by_label: HashMap<(&'a str, &'a str), Vec<&'a Declared>>,
    readers: HashMap<&'a ObjectKey, Option<&'a ServiceName>>,
    /// The services of those that are no replication controllers.
    services: HashMap<&'a str, &'a ServiceName>,
}

impl<'a> Directory<'a> {
    fn new(objects: &[&'a Declared]) -> Self {
        let mut directory = Self { by_label: HashMap::new(), readers: HashMap::new(), services: HashMap::new() };
        let configs = || objects.iter().filter(|object| object.key.kind == Kind::DeploymentConfig);
        let own = configs().filter(|config| config.belongs.is_none());
        let own = own.filter_map(|config| Some((config.key.name.as_str(), config.links.service.as_ref()?)));
        directory.services = own.collect();
        for config in configs() {
            for (key, value) in &*config.links.pod_labels {
                directory.by_label.entry((key, value)).or_default().push(config);
            }
            let service = directory.of_config(config);
            for reference in &config.links.references {
                let reader = directory.readers.entry(reference).or_insert(service);
                if *reader != service {
                    *reader = None;
                }
            }
        }
        directory
    }

    /// What a label or the name says; a replication controller is delivered with the deployment config that deploys it.
    fn of_config(&self, object: &'a Declared) -> Option<&'a ServiceName> {
        let leads = object.belongs.as_ref().and_then(|belongs| self.services.get(belongs.to.as_str()).copied());
        leads.or(object.links.service.as_ref())
    }

    fn of_reader(&self, key: &ObjectKey) -> ServiceName {
        self.readers.get(key).copied().flatten().cloned().unwrap_or_else(shared)
    }

    fn of_service(&self, object: &Declared) -> ServiceName {
        if let Some(service) = &object.links.service {
            return service.clone();
        }
        let mut services = self.selected(&object.links.selector).filter_map(|config| self.of_config(config));
        let first = services.next();
        match first {
            Some(service) if services.all(|other| other == service) => service.clone(),
            _ => shared(),
        }
    }

    /// The configs whose pods a selector matches, found by its rarest label.
    fn selected<'b>(&'b self, selector: &'b BTreeMap<String, String>) -> impl Iterator<Item = &'a Declared> + 'b {
        let candidates = selector.iter().map(|(key, value)| self.by_label.get(&(key.as_str(), value.as_str())));
        let rarest = candidates.min_by_key(|configs| configs.map_or(0, Vec::len)).flatten();
        let matches = |config: &&Declared| {
            let has = |label| config.links.pod_labels.iter().any(|(key, value)| (key, value) == label);
            selector.iter().all(has)
        };
        rarest.into_iter().flatten().copied().filter(matches)
    }
}
