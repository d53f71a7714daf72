//! Reconciles services: each `Service` object of a stage answers on its runtime, and no other.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::engine::deployment::traffic;
use crate::error::Result;
use crate::executor::declarations::Declarations;
use crate::executor::inherited;
use crate::model::ids::{ConfigKey, Namespace, ProjectName, RepositoryName, StageName};
use crate::model::object::{Kind, ObjectKey};
use crate::model::pod::Scalar;
use crate::model::state::{ObjectState, Versioned, Wanted};
use crate::model::time::Timestamp;
use crate::model::transaction::ObjectPlace;
use crate::runtime::{ExternalEndpoint, Runtime, ServicePort, ServiceSpec};
use crate::store::ReadStore;

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
    addresses: Vec<Address>,
    ports: Vec<EndpointPort>,
}

#[derive(Debug, Deserialize)]
struct Address {
    ip: String,
}

#[derive(Debug, Deserialize)]
struct EndpointPort {
    port: u16,
}

/// Makes declared services answer. `sharing` are the deployment configs whose versions share the traffic.
pub struct Services<'a> {
    /// What is declared.
    pub store: &'a dyn ReadStore,
    /// What revisions declare.
    pub declarations: &'a dyn Declarations,
    /// Where it answers.
    pub runtime: &'a dyn Runtime,
    /// Deployment configs whose versions share the traffic.
    pub sharing: &'a BTreeMap<ConfigKey, Wanted>,
    /// The time.
    pub now: Timestamp,
}

impl std::fmt::Debug for Services<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Services").field("sharing", &self.sharing.len()).finish_non_exhaustive()
    }
}

impl Services<'_> {
    /// Makes all declared services answer, and ends those that are declared no longer.
    ///
    /// # Errors
    /// If the store or the runtime fails; one service that cannot be applied does not keep the others back.
    pub async fn reconcile_all(&self) -> Result<()> {
        let mut wanted: BTreeMap<Namespace, BTreeSet<String>> = BTreeMap::new();
        for namespace in self.runtime.namespaces().await? {
            wanted.entry(namespace).or_default();
        }
        for (namespace, name) in self.apply_all(None).await? {
            wanted.entry(namespace).or_default().insert(name);
        }
        for (namespace, names) in wanted {
            for service in self.runtime.services(&namespace).await? {
                if !names.contains(&service.name) && self.may_go(&namespace, &service.name).await? {
                    self.runtime.remove_service(&namespace, &service.name).await?;
                }
            }
        }
        Ok(())
    }

    async fn may_go(&self, namespace: &Namespace, name: &str) -> Result<bool> {
        inherited::service_may_go(self.store, self.declarations, self.runtime, namespace, name).await
    }

    /// Makes the services of a stage answer.
    ///
    /// # Errors
    /// As [`Services::reconcile_all`].
    pub async fn reconcile_stage(&self, project: &ProjectName, stage: &StageName) -> Result<()> {
        self.apply_all(Some((project, stage))).await.map(drop)
    }

    /// Makes the service answer that an object is, or leads elsewhere.
    ///
    /// # Errors
    /// As [`Services::reconcile_all`].
    pub async fn reconcile(&self, place: &ObjectPlace) -> Result<()> {
        if !matches!(place.key.kind, Kind::Service | Kind::Endpoints) {
            return Ok(());
        }
        let of_kind = |kind| ObjectKey { kind, name: place.key.name.clone() };
        let declared = self.store.object(&place.project, &place.stage, &of_kind(Kind::Service)).await?;
        let Some(service) = declared.map(|declared| declared.value) else { return Ok(()) };
        if self.down().await?.contains(&service.repository) {
            return Ok(());
        }
        let endpoints = self.store.object(&place.project, &place.stage, &of_kind(Kind::Endpoints)).await?;
        self.apply(&service, endpoints.as_ref().map(|endpoints| &endpoints.value)).await.map(drop)
    }

    /// Applies the services of a stage, or all; says which there are.
    async fn apply_all(&self, place: Option<(&ProjectName, &StageName)>) -> Result<Vec<(Namespace, String)>> {
        let (project, stage) = place.unzip();
        let mut declared = self.store.objects(project, stage, Some(&Kind::Service)).await?;
        if declared.is_empty() {
            return Ok(Vec::new());
        }
        let down = self.down().await?;
        declared.retain(|service| !down.contains(&service.value.repository));
        let endpoints = self.store.objects(project, stage, Some(&Kind::Endpoints)).await?;
        let endpoints: BTreeMap<_, _> = endpoints.iter().map(|it| (home(&it.value), &it.value)).collect();
        let mut applied = Vec::new();
        for Versioned { value: service, .. } in &declared {
            applied.push(self.apply(service, endpoints.get(&home(service)).copied()).await?);
        }
        Ok(applied)
    }

    async fn apply(&self, service: &ObjectState, endpoints: Option<&ObjectState>) -> Result<(Namespace, String)> {
        let mut spec = service_spec(service, endpoints);
        let here = |config: &ConfigKey| (&config.project, &config.stage) == (&service.project, &service.stage);
        if self.sharing.keys().any(here) {
            let pods = self.runtime.observe(&spec.namespace).await?;
            spec.backends = traffic::backends(&spec.selector, &pods, self.sharing, self.now);
        }
        let answers = match inherited::confirms(self.store, service, endpoints).await? {
            true => self.runtime.apply_service(&spec).await,
            false => self.runtime.keep_service(&spec).await,
        };
        if let Err(failure) = answers {
            tracing::warn!(namespace = %spec.namespace, service = spec.name, problem = failure.one_line(), "cannot apply a service");
        }
        Ok((spec.namespace, spec.name))
    }

    async fn down(&self) -> Result<BTreeSet<RepositoryName>> {
        let repositories = self.store.repositories().await?.into_iter().map(|state| state.value);
        Ok(repositories.filter(|state| state.down).map(|state| state.name).collect())
    }
}

/// What a service and its endpoints have in common.
fn home(object: &ObjectState) -> (&ProjectName, &StageName, &str) {
    (&object.project, &object.stage, &object.object.key.name)
}

/// What a runtime gets of a declared service.
fn service_spec(service: &ObjectState, endpoints: Option<&ObjectState>) -> ServiceSpec {
    let declared: DeclaredService = service.object.spec().unwrap_or_default();
    let port = |port: DeclaredPort| ServicePort {
        target_port: port.target_port.unwrap_or(Scalar::Number(port.port.into())),
        name: port.name,
        port: port.port,
        protocol: port.protocol,
    };
    let named = declared.external_name.map(|host| ExternalEndpoint { host, port: None });
    let external = named.into_iter().chain(endpoints.map(external_endpoints).into_iter().flatten()).collect();
    ServiceSpec {
        namespace: service.destination.namespace.clone(),
        name: service.object.key.name.clone(),
        ports: declared.ports.into_iter().map(port).collect(),
        selector: declared.selector,
        external,
        backends: Vec::new(),
    }
}

fn external_endpoints(endpoints: &ObjectState) -> Vec<ExternalEndpoint> {
    let declared: DeclaredEndpoints = endpoints.object.content.read().unwrap_or_default();
    let of_subset = |subset: Subset| -> Vec<ExternalEndpoint> {
        let port = subset.ports.first().map(|port| port.port);
        subset.addresses.into_iter().map(|address| ExternalEndpoint { host: address.ip, port }).collect()
    };
    declared.subsets.into_iter().flat_map(of_subset).collect()
}
