//! Reconciles services: each `Service` object of a stage answers on its runtime, and no other.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::engine::deployment::traffic;
use crate::error::Result;
use crate::model::ids::{ConfigKey, Namespace, StageName};
use crate::model::object::Kind;
use crate::model::pod::Scalar;
use crate::model::state::{ObjectState, Versioned, Wanted};
use crate::model::time::Timestamp;
use crate::runtime::{ExternalEndpoint, Runtime, ServicePort, ServiceSpec};
use crate::store::ReadStore;

/// The part of `ServiceSpec` of `core/v1` that a runtime is told.
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

/// Makes all declared services answer, and ends those that are declared no longer. `sharing` are the deployment configs
/// whose versions share the traffic.
///
/// # Errors
/// If the store or the runtime fails; one service that cannot be applied does not keep the others back.
pub async fn reconcile_services(
    store: &dyn ReadStore,
    runtime: &dyn Runtime,
    sharing: &BTreeMap<ConfigKey, Wanted>,
    now: Timestamp,
) -> Result<()> {
    let repositories = store.repositories().await?;
    let down: BTreeSet<_> =
        repositories.into_iter().filter(|state| state.value.down).map(|state| state.value.name).collect();
    let mut declared = store.objects(None, None, Some(&Kind::Service)).await?;
    declared.retain(|service| !down.contains(&service.value.repository));
    let endpoints = store.objects(None, None, Some(&Kind::Endpoints)).await?;
    let mut wanted: BTreeMap<Namespace, BTreeSet<String>> = BTreeMap::new();
    for namespace in runtime.namespaces().await? {
        wanted.entry(namespace).or_default();
    }
    for Versioned { value: service, .. } in &declared {
        let mut spec = service_spec(service, endpoints_of(service, &endpoints));
        if !sharing.is_empty() {
            let pods = runtime.observe(&spec.namespace).await?;
            spec.backends = traffic::backends(&spec.selector, &pods, sharing, now);
        }
        wanted.entry(spec.namespace.clone()).or_default().insert(spec.name.clone());
        if let Err(failure) = runtime.apply_service(&spec).await {
            tracing::warn!(namespace = %spec.namespace, service = spec.name, problem = failure.one_line(), "cannot apply a service");
        }
    }
    for (namespace, names) in wanted {
        for service in runtime.services(&namespace).await? {
            if !names.contains(&service.name) {
                runtime.remove_service(&namespace, &service.name).await?;
            }
        }
    }
    Ok(())
}

fn endpoints_of<'a>(service: &ObjectState, all: &'a [Versioned<ObjectState>]) -> Option<&'a ObjectState> {
    let home = |object: &ObjectState| (object.project.clone(), object.stage.clone(), object.object.key.name.clone());
    let same = |other: &&Versioned<ObjectState>| -> bool {
        let (mine, theirs): ((_, StageName, String), _) = (home(service), home(&other.value));
        mine == theirs
    };
    all.iter().find(same).map(|found| &found.value)
}

/// What a runtime is told about a declared service.
fn service_spec(service: &ObjectState, endpoints: Option<&ObjectState>) -> ServiceSpec {
    let spec = service.object.content.get("spec").cloned().unwrap_or_default();
    let declared: DeclaredService = serde_json::from_value(spec).unwrap_or_default();
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
    let declared: DeclaredEndpoints = DeclaredEndpoints::deserialize(&*endpoints.object.content).unwrap_or_default();
    let of_subset = |subset: Subset| -> Vec<ExternalEndpoint> {
        let port = subset.ports.first().map(|port| port.port);
        subset.addresses.into_iter().map(|address| ExternalEndpoint { host: address.ip, port }).collect()
    };
    declared.subsets.into_iter().flat_map(of_subset).collect()
}
