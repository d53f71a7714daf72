//! What the records of services say, in memory.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::Ipv4Addr;

use super::by_label::ByLabel;
use super::record::{self, ServiceDir, ServiceRecord, ServicesDir};
use super::{PodEndpoint, spec};
use crate::error::{Context, Result};
use crate::model::ids::Namespace;
use crate::runtime::ServiceSpec;

/// Records by namespace. Those of a namespace are read when they are first asked for, all of them when an address is; they
/// are kept true since.
#[derive(Debug, Default)]
pub(super) struct Known {
    namespaces: BTreeMap<Namespace, Records>,
    /// The addresses of all of these.
    addresses: BTreeSet<Ipv4Addr>,
    /// Whether those of all namespaces were read.
    has_all: bool,
}

/// The records of a namespace's services.
#[derive(Debug, Default)]
pub(super) struct Records {
    by_name: BTreeMap<String, ServiceRecord>,
    /// By the first label of their selectors: what lacks it is not selected. Who has none is not concerned by any pod.
    by_label: ByLabel<String>,
}

impl Known {
    /// What the records of a namespace's services say.
    pub(super) fn of(&mut self, dir: &ServicesDir, namespace: &Namespace) -> Result<&Records> {
        match self.namespaces.entry(namespace.clone()) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(unknown) => {
                let records = read_records(dir, namespace)?;
                self.addresses.extend(records.all().map(|record| record.address));
                Ok(unknown.insert(records))
            }
        }
    }

    /// Takes over what was written.
    pub(super) fn note(&mut self, record: &ServiceRecord) {
        if let Some(known) = self.namespaces.get_mut(&record.spec.namespace) {
            known.insert(record.clone());
            self.addresses.insert(record.address);
        }
    }

    /// Forgets a service that is gone.
    pub(super) fn forget(&mut self, namespace: &Namespace, name: &str) {
        if let Some(record) = self.namespaces.get_mut(namespace).and_then(|known| known.remove(name)) {
            self.addresses.remove(&record.address);
        }
    }

    /// The addresses that a service which has no record may not have.
    pub(super) fn taken_for(&mut self, dir: &ServicesDir, spec: &ServiceSpec) -> Result<&BTreeSet<Ipv4Addr>> {
        if !self.has_all {
            dir.namespaces()
                .or_transient(|| "cannot list the namespaces of services".to_owned())?
                .iter()
                .try_for_each(|namespace| self.of(dir, namespace).map(drop))?;
            self.has_all = true;
        }
        self.of(dir, &spec.namespace)?;
        // If somebody deleted its record, it may have the same address again.
        self.forget(&spec.namespace, &spec.name);
        Ok(&self.addresses)
    }
}

impl Records {
    /// All of them, by name.
    pub(super) fn all(&self) -> impl Iterator<Item = &ServiceRecord> {
        self.by_name.values()
    }

    /// The services that select one of these pods.
    pub(super) fn selecting(&self, pods: &[&PodEndpoint]) -> Vec<ServiceSpec> {
        let selects = |spec: &&ServiceSpec| pods.iter().any(|pod| spec::leads_to(spec, pod));
        self.candidates(pods).filter(selects).cloned().collect()
    }

    /// The services that may.
    fn candidates(&self, pods: &[&PodEndpoint]) -> impl Iterator<Item = &ServiceSpec> {
        let names = self.by_label.with_any(pods.iter().flat_map(|pod| &*pod.labels));
        names.into_iter().filter_map(|name| self.by_name.get(name)).map(|record| &record.spec)
    }

    fn insert(&mut self, record: ServiceRecord) {
        let name = record.spec.name.clone();
        self.remove(&name);
        self.by_label.add(first_labels(&record.spec), &name);
        self.by_name.insert(name, record);
    }

    fn remove(&mut self, name: &str) -> Option<ServiceRecord> {
        let record = self.by_name.remove(name)?;
        self.by_label.remove(first_labels(&record.spec), &record.spec.name);
        Some(record)
    }
}

fn first_labels(spec: &ServiceSpec) -> impl Iterator<Item = (&String, &String)> {
    spec.selectors().flat_map(|selector| selector.iter().take(1))
}

fn read_records(dir: &ServicesDir, namespace: &Namespace) -> Result<Records> {
    spec::check_name(namespace.as_str())?;
    let failed = || format!("cannot read the services of `{namespace}`");
    let mut records = Records::default();
    for id in dir.services_of(namespace).or_transient(failed)? {
        read_record(&dir.of(&id)).or_transient(failed)?.into_iter().for_each(|record| records.insert(record));
    }
    Ok(records)
}

/// A record, if it is there and is not damaged: one that nobody will ever read must not stand in the way of the others.
fn read_record(dir: &ServiceDir) -> io::Result<Option<ServiceRecord>> {
    match record::read(&dir.record()) {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            tracing::warn!(service = %dir.path().display(), %error, "service left alone");
            Ok(None)
        }
        read => read,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::local::PodDir;
    use crate::runtime::local::service::pods::Pods;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn record(name: &str, selector: &[(&str, &str)], address: u8) -> ServiceRecord {
        let (namespace, selector) = ("shop-dev".into(), labels(selector));
        let (ports, external, backends, earlier) = Default::default();
        let spec = ServiceSpec { namespace, name: name.into(), ports, selector, external, backends, earlier };
        ServiceRecord { v: record::VERSION, generation: 1, address: Ipv4Addr::new(127, 128, 0, address), spec }
    }

    fn pod(name: &str, pairs: &[(&str, &str)]) -> PodEndpoint {
        let dir = PodDir::new(format!("/pods/{name}"));
        PodEndpoint { name: name.into(), labels: labels(pairs).into(), dir, version: None }
    }

    #[test]
    fn a_pod_is_compared_with_the_services_that_share_a_label_with_it() {
        let (root, namespace) = (tempfile::tempdir().unwrap(), "shop-dev".into());
        let dir = ServicesDir::new(root.path());
        let mut known = Known::default();
        known.of(&dir, &namespace).unwrap();
        for number in 0..200_u8 {
            let name = format!("app-{number}");
            known.note(&record(&name, &[("app", &name), ("tier", "web")], number));
        }
        known.note(&record("none", &[], 200));
        known.note(&record("tier", &[("tier", "web")], 201));
        let web = pod("a", &[("app", "app-7"), ("tier", "web")]);
        let names = |specs: Vec<ServiceSpec>| specs.into_iter().map(|spec| spec.name).collect::<Vec<_>>();
        let services = known.of(&dir, &namespace).unwrap();
        assert_eq!(services.candidates(&[&web]).count(), 2);
        assert_eq!(names(services.selecting(&[&web])), ["app-7", "tier"]);
        assert!(names(services.selecting(&[&pod("b", &[("app", "app-7")])])) == [""; 0]);

        known.note(&record("tier", &[("app", "other")], 201));
        known.forget(&namespace, "app-7");
        let services = known.of(&dir, &namespace).unwrap();
        assert_eq!(services.candidates(&[&web]).count(), 0);
        let other = pod("c", &[("app", "other")]);
        assert_eq!(names(services.selecting(&[&web, &other])), ["tier"]);
    }

    #[test]
    fn a_service_is_compared_with_the_pods_that_have_its_first_label() {
        let mut pods: Pods = (0..200).map(|number| pod(&format!("pod-{number}"), &[("app", "other")])).collect();
        pods.insert(pod("web-1", &[("app", "web"), ("x", "y")]));
        pods.insert(pod("web-2", &[("app", "web")]));
        let names = |pods: &Pods, selector| {
            pods.candidates(&record("web", selector, 1).spec).map(|pod| pod.name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names(&pods, &[("app", "web"), ("x", "y")]), ["web-1", "web-2"]);
        assert!(names(&pods, &[]).is_empty(), "who selects nothing");
        assert!(pods.insert(pod("web-1", &[("app", "other")])).is_some() && pods.remove(&"web-2".into()).is_some());
        assert!(names(&pods, &[("app", "web")]).is_empty());
    }

    #[test]
    fn an_address_is_taken_as_long_as_the_service_is_known() {
        let (root, namespace) = (tempfile::tempdir().unwrap(), "shop-dev".into());
        let dir = ServicesDir::new(root.path());
        let (mut known, web) = (Known::default(), record("web", &[], 1));
        let new = record("new", &[], 2).spec;
        assert!(known.taken_for(&dir, &new).unwrap().is_empty());
        known.note(&web);
        assert_eq!(known.taken_for(&dir, &new).unwrap(), &[web.address].into());
        assert!(known.taken_for(&dir, &web.spec).unwrap().is_empty(), "its own record was deleted");
        known.note(&web);
        known.forget(&namespace, "web");
        assert!(known.taken_for(&dir, &new).unwrap().is_empty());
    }
}
