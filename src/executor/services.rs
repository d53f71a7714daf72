//! Reconciles services: each `Service` object of a stage answers on its runtime, and no other.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::engine::deployment::traffic;
use crate::error::{Failure, Result};
use crate::executor::declarations::Declarations;
use crate::executor::inherited;
use crate::executor::selector_index::SelectorIndex;
use crate::executor::set_aside::{Item, SetAside};
use crate::executor::traffic::{Traffic, are_shared};
use crate::model::ids::{ConfigKey, Namespace, ProjectName, RepositoryName, ServiceKey, StageName};
use crate::model::object::{Kind, Object, ObjectKey};
use crate::model::pod::{ObservedPod, Scalar};
use crate::model::state::{ConfigState, Earlier, ObjectState};
use crate::model::time::Timestamp;
use crate::model::transaction::ObjectPlace;
use crate::model::wanted::Backend;
use crate::runtime::{EarlierService, ExternalEndpoint, Runtime, ServicePort, ServiceSpec};
use crate::store::{ReadStore, RecordKey};

/// How many services are named that do not listen.
const NAMED: usize = 3;

/// The part of `ServiceSpec` of `core/v1` that a runtime gets.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DeclaredService {
    ports: Vec<DeclaredPort>,
    selector: BTreeMap<String, String>,
    external_name: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeclaredPort {
    name: Option<String>,
    port: u16,
    target_port: Option<Scalar>,
    protocol: Option<String>,
}

/// `subsets` of an `Endpoints` object.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DeclaredEndpoints {
    subsets: Vec<Subset>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Subset {
    addresses: Vec<EndpointAddress>,
    ports: Vec<EndpointPort>,
}

#[derive(Debug, Deserialize)]
struct EndpointAddress {
    ip: String,
}

#[derive(Debug, Deserialize)]
struct EndpointPort {
    port: u16,
}

/// Makes declared services answer.
pub struct Services<'a> {
    /// What is declared.
    pub store: &'a dyn ReadStore,
    /// What revisions declare.
    pub declarations: &'a dyn Declarations,
    /// Where it answers.
    pub runtime: &'a dyn Runtime,
    /// Which versions share the traffic.
    pub(super) traffic: &'a Traffic,
    /// Where one goes that fails.
    pub aside: &'a SetAside,
    /// Which of them leads where.
    pub(super) selectors: &'a SelectorIndex,
    /// The time.
    pub now: Timestamp,
}

impl std::fmt::Debug for Services<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Services").finish_non_exhaustive()
    }
}

/// Which services are to be there.
#[derive(Default)]
struct Answering {
    /// Those that are known.
    known: BTreeSet<(Namespace, String)>,
    /// Those of which something cannot be read: nobody knows where and how they answer.
    unclear: BTreeSet<ObjectPlace>,
}

impl Answering {
    /// Whether what answers somewhere may be one of them.
    fn may_include(&self, namespace: &Namespace, name: &str) -> bool {
        let is_unclear = self.unclear.iter().any(|place| place.key.name == name);
        is_unclear || self.known.contains(&(namespace.clone(), name.to_owned()))
    }
}

impl Services<'_> {
    /// Makes all declared services answer, and ends those that are declared no longer; says whether some of these may not go
    /// yet.
    ///
    /// # Errors
    /// If the store or the runtime fails; one service that fails is set aside.
    pub async fn reconcile_all(&self) -> Result<bool> {
        let mut are_left = false;
        let answering = self.apply_all().await?;
        let mut namespaces = BTreeSet::from_iter(self.runtime.namespaces().await?);
        namespaces.extend(answering.known.iter().map(|(namespace, _)| namespace.clone()));
        for namespace in namespaces {
            let there = self.runtime.services(&namespace).await;
            let there = self.aside.judge(Item::Namespace(namespace.clone()), there).unwrap_or_default();
            let left = there.into_iter().map(|service| service.name);
            for name in left.filter(|name| !answering.may_include(&namespace, name)) {
                let stays = self.end(&namespace, &name).await;
                are_left |= self.aside.judge(Item::Leftover(namespace.clone(), name), stays).unwrap_or_default();
            }
        }
        Ok(are_left)
    }

    /// Ends a service that no object declares, if it may go; says whether it stays. Then it leads where it leads, to all pods
    /// alike: no version that it may name is one of this life of the store.
    async fn end(&self, namespace: &Namespace, name: &str) -> Result<bool> {
        if self.may_go(namespace, name).await? {
            self.runtime.remove_service(namespace, name).await?;
            return Ok(false);
        }
        if let Some(spec) = self.runtime.service_spec(namespace, name).await?.filter(|spec| !spec.backends.is_empty()) {
            self.runtime.apply_service(&ServiceSpec { backends: Vec::new(), ..spec }).await?;
        }
        Ok(true)
    }

    async fn may_go(&self, namespace: &Namespace, name: &str) -> Result<bool> {
        inherited::service_may_go(self.store, self.declarations, self.runtime, namespace, name).await
    }

    /// Makes the service answer that an object is, or leads elsewhere.
    ///
    /// # Errors
    /// As [`Services::reconcile_all`].
    pub async fn reconcile(&self, place: &ObjectPlace) -> Result<()> {
        let Some(place) = &place.service() else { return Ok(()) };
        let declared = self.store.object(&place.project, &place.stage, &place.key).await?;
        let Some(service) = declared.map(|declared| declared.value) else {
            self.selectors.forget(place);
            return Ok(());
        };
        let leads = ObjectKey { kind: Kind::Endpoints, name: place.key.name.clone() };
        let endpoints = self.store.object(&place.project, &place.stage, &leads).await?;
        let is_down = self.is_down(&service.repository, &mut BTreeMap::new()).await?;
        self.answer(&service, endpoints.as_ref().map(|endpoints| &endpoints.value), is_down).await.map(drop)
    }

    /// Ends the service that an object was, unless it is there again; says whether it may not go yet.
    ///
    /// # Errors
    /// As [`Services::reconcile_all`].
    pub async fn leave(&self, namespace: &Namespace, place: &ObjectPlace) -> Result<bool> {
        if place.key.kind != Kind::Service {
            return Ok(false);
        }
        let declared = self.store.object(&place.project, &place.stage, &place.key).await?;
        let is_there = declared.is_some_and(|declared| declared.value.destination.namespace == *namespace);
        if is_there {
            return Ok(false);
        }
        self.selectors.forget(place);
        self.end(namespace, &place.key.name).await
    }

    /// Applies all services; says which there are to be. What is declared and cannot be read stays as it is.
    async fn apply_all(&self) -> Result<Answering> {
        let services = self.store.objects(None, None, Some(&Kind::Service)).await?;
        let mut answering = Answering::default();
        if services.found.is_empty() && services.damaged.is_empty() {
            self.selectors.keep_only(&BTreeSet::new());
            return Ok(answering);
        }
        let endpoints = self.store.objects(None, None, Some(&Kind::Endpoints)).await?;
        for damaged in services.damaged.iter().chain(&endpoints.damaged) {
            let RecordKey::Object(place) = &damaged.key else { continue };
            let key = ObjectKey { kind: Kind::Service, ..place.key.clone() };
            let service = ObjectPlace { key, ..place.clone() };
            answering.unclear.insert(service.clone());
            self.aside.judge::<()>(Item::Service(service), Err(damaged.failure()));
        }
        let leads: BTreeMap<_, _> = endpoints.found.iter().map(|it| (home(&it.value), &it.value)).collect();
        let mut there: BTreeSet<ObjectPlace> = answering.unclear.clone();
        there.extend(services.found.iter().map(|service| ObjectPlace::from(&service.value)));
        self.selectors.keep_only(&there);
        let mut down = BTreeMap::new();
        for service in services.found.iter().map(|service| &service.value) {
            let (place, name) = (ObjectPlace::from(service), service.object.key.name.clone());
            if answering.unclear.contains(&place) {
                continue;
            }
            let answers = match self.is_down(&service.repository, &mut down).await {
                Ok(is_down) => self.answer(service, leads.get(&home(service)).copied(), is_down).await,
                Err(failure) => Err(failure),
            };
            if self.aside.judge(Item::Service(place), answers).unwrap_or(true) {
                answering.known.insert((service.destination.namespace.clone(), name));
            }
        }
        Ok(answering)
    }

    /// Where the services are that lead to a deployment config's pods or are delivered with it.
    pub(super) fn leading_to(&self, state: &ConfigState, pods: &[ObservedPod]) -> BTreeSet<ObjectPlace> {
        let ConfigKey { project, stage, .. } = state.key.clone();
        let service = ServiceKey { project, stage, service: state.service.clone() };
        let is_wanted = |pod: &&ObservedPod| pod.version().map(|(_, version)| version) == state.wanted.version();
        match pods.iter().find(is_wanted) {
            Some(pod) => self.selectors.leading_to(&service, &pod.labels),
            None => self.selectors.leading_to(&service, &state.pod_labels()),
        }
    }

    /// Makes services answer that are in these places, one that fails aside.
    pub(super) async fn reconcile_some(&self, places: &BTreeSet<ObjectPlace>) {
        for place in places {
            let reconciled = self.reconcile(place).await;
            self.aside.judge(Item::Service(place.clone()), reconciled);
        }
    }

    /// Whether a service does not listen, as it was found last.
    pub(super) fn has_problem(&self, place: &ObjectPlace) -> bool {
        self.problem(place).is_some()
    }

    fn problem(&self, place: &ObjectPlace) -> Option<String> {
        self.aside.problem(&Item::Service(place.clone()))
    }

    /// What keeps services from listening, as it was found last; nothing, if they do. Of many the first few are named.
    pub(super) fn problems(&self, places: &BTreeSet<ObjectPlace>) -> String {
        let problem = |place: &ObjectPlace| Some(format!("service `{}`: {}", place.key.name, self.problem(place)?));
        let mut problems: Vec<String> = places.iter().filter_map(problem).collect();
        if problems.len() > NAMED {
            let more = problems.split_off(NAMED).len();
            problems.push(format!("{more} more services"));
        }
        problems.join("; ")
    }

    /// Whether a repository is down; what is known of it is not read again.
    async fn is_down(&self, name: &RepositoryName, known: &mut BTreeMap<RepositoryName, bool>) -> Result<bool> {
        if let Some(is_down) = known.get(name) {
            return Ok(*is_down);
        }
        let repository = self.store.repository(name).await?;
        let is_down = repository.is_some_and(|repository| repository.value.down);
        known.insert(name.clone(), is_down);
        Ok(is_down)
    }

    /// Makes a service answer, unless its repository is down; says whether it is to.
    async fn answer(&self, service: &ObjectState, endpoints: Option<&ObjectState>, is_down: bool) -> Result<bool> {
        match is_down {
            true => self.selectors.forget(&ObjectPlace::from(service)),
            false => self.apply(service, endpoints).await?,
        }
        Ok(!is_down)
    }

    /// A service that cannot listen on all of its ports has failed, and is applied again after a while: that brings back
    /// its processes, too.
    ///
    /// One that is recorded by another life of the store leads where it leads for as long as nothing confirms that record; how
    /// versions share its traffic follows from what is there and wanted in this life all the same: those of the other are none.
    async fn apply(&self, service: &ObjectState, endpoints: Option<&ObjectState>) -> Result<()> {
        let declared = service_spec(service, endpoints);
        self.selectors.note(service, &declared.selector);
        let mut spec = match inherited::confirms(self.store, service, endpoints).await? {
            true => declared,
            false => self.runtime.service_spec(&declared.namespace, &declared.name).await?.unwrap_or(declared),
        };
        let place = ObjectPlace::from(service);
        let _turn = self.traffic.turn(&place).await;
        spec.backends = self.backends(service, &spec).await?;
        self.selectors.note_applied(&place, &spec);
        let applied = self.runtime.apply_service(&spec).await?;
        applied.problem.map_or(Ok(()), |problem| Err(Failure::transient(problem)))
    }

    /// How a service divides its traffic among the versions that it leads to. Only its own pods are read, and all of those whose
    /// versions have shares: these follow from how many there are.
    async fn backends(&self, service: &ObjectState, spec: &ServiceSpec) -> Result<Vec<Backend>> {
        let sharing = self.traffic.sharing();
        if !are_shared(&sharing, &service.project, &service.stage) {
            return Ok(Vec::new());
        }
        let mut pods = self.runtime.observe_selected(spec).await?;
        let owners = pods.iter().filter_map(|pod| pod.version()).map(|(config, _)| config);
        let shared: BTreeSet<ConfigKey> = owners.filter(|config| sharing.contains_key(config)).cloned().collect();
        pods.retain(|pod| !pod.version().is_some_and(|(config, _)| shared.contains(config)));
        for config in &shared {
            pods.extend(self.runtime.observe_config(&spec.namespace, config).await?);
        }
        let leads_to = |pod: &ObservedPod| spec.selects(pod.version(), &pod.labels);
        Ok(traffic::backends(leads_to, &pods, &sharing, self.now))
    }
}

/// What a service and its endpoints have in common.
fn home(object: &ObjectState) -> (&ProjectName, &StageName, &str) {
    (&object.project, &object.stage, &object.object.key.name)
}

impl DeclaredService {
    fn of(object: &Object) -> Self {
        object.spec().unwrap_or_default()
    }

    fn ports(&self) -> Vec<ServicePort> {
        let port = |port: &DeclaredPort| ServicePort {
            target_port: port.target_port.clone().unwrap_or(Scalar::Number(port.port.into())),
            name: port.name.clone(),
            port: port.port,
            protocol: port.protocol.clone(),
        };
        self.ports.iter().map(port).collect()
    }
}

/// What a runtime gets of a declared service.
fn service_spec(service: &ObjectState, endpoints: Option<&ObjectState>) -> ServiceSpec {
    let declared = DeclaredService::of(&service.object);
    let (ports, selector) = (declared.ports(), declared.selector);
    let named = declared.external_name.map(|host| ExternalEndpoint { host, port: None });
    let external = named.into_iter().chain(endpoints.map(external_endpoints).into_iter().flatten()).collect();
    ServiceSpec {
        namespace: service.destination.namespace.clone(),
        name: service.object.key.name.clone(),
        ports,
        selector,
        external,
        backends: Vec::new(),
        earlier: service.earlier.iter().map(|earlier| earlier_service(service, earlier)).collect(),
    }
}

/// What it was for a version.
fn earlier_service(service: &ObjectState, earlier: &Earlier) -> EarlierService {
    let (project, stage, name) = (service.project.clone(), service.stage.clone(), earlier.config.clone());
    let declared = DeclaredService::of(&earlier.object);
    let (config, version) = (ConfigKey { project, stage, name }, earlier.version);
    EarlierService { config, version, ports: declared.ports(), selector: declared.selector }
}

fn external_endpoints(endpoints: &ObjectState) -> Vec<ExternalEndpoint> {
    let declared: DeclaredEndpoints = endpoints.object.content.read().unwrap_or_default();
    let of_subset = |subset: Subset| -> Vec<ExternalEndpoint> {
        let port = subset.ports.first().map(|port| port.port);
        subset.addresses.into_iter().map(|address| ExternalEndpoint { host: address.ip, port }).collect()
    };
    declared.subsets.into_iter().flat_map(of_subset).collect()
}
