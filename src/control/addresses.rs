//! Where stages answer, for whoever leads people there.

use std::sync::Arc;

use crate::error::Result;
use crate::model::ids::{RepositoryName, StageName};
use crate::model::unique_name::UniqueName;
use crate::runtime::{Runtime, ServiceAddress, ServicePort};
use crate::store::ReadStore;

/// Knows where stages answer, if it knows where pods live.
#[derive(Clone, Default)]
pub(super) struct Addresses(pub(super) Option<Arc<dyn Runtime>>);

impl Addresses {
    /// The link to what a stage of a repository shows to browsers, if it is known and there is one such thing. What the runtime
    /// does not tell now is left out: nothing depends on it.
    pub(super) async fn of(
        &self,
        store: &dyn ReadStore,
        repository: &RepositoryName,
        stage: &StageName,
    ) -> Result<Option<String>> {
        let Some(runtime) = &self.0 else { return Ok(None) };
        let Some(state) = store.repository(repository).await? else { return Ok(None) };
        for namespace in &state.value.namespaces {
            let owner = store.name_owner(&UniqueName::Namespace(namespace.clone())).await?.map(|owner| owner.value);
            let is_it = owner.is_some_and(|it| it.repository == *repository && it.stage.as_ref() == Some(stage));
            if is_it {
                return Ok(runtime.services(namespace).await.ok().and_then(|services| link(&services)));
            }
        }
        Ok(None)
    }
}

/// The link to the one service with a port that is named for HTTP, or else to the only service there is.
fn link(services: &[ServiceAddress]) -> Option<String> {
    let named: Vec<(&ServiceAddress, &ServicePort)> = services
        .iter()
        .filter_map(|service| Some((service, service.ports.iter().find(|port| is_http(port))?)))
        .collect();
    let (service, port) = match (named.as_slice(), services) {
        ([only], _) => *only,
        ([], [only]) => (only, only.ports.first()?),
        _ => return None,
    };
    let is_encrypted = port.port == 443 || port.name.as_deref().is_some_and(|name| name.starts_with("https"));
    let (scheme, usual) = if is_encrypted { ("https", 443) } else { ("http", 80) };
    let host = service.address;
    Some(if port.port == usual { format!("{scheme}://{host}") } else { format!("{scheme}://{host}:{}", port.port) })
}

/// Whether a port says that it speaks HTTP, as meshes and gateways have ports named.
fn is_http(port: &ServicePort) -> bool {
    let name = port.name.as_deref().unwrap_or_default();
    ["http", "https"]
        .iter()
        .any(|word| name == *word || name.strip_prefix(word).is_some_and(|rest| rest.starts_with('-')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(last: u8, ports: &[(Option<&str>, u16)]) -> ServiceAddress {
        let port = |(name, port): &(Option<&str>, u16)| ServicePort {
            name: name.map(str::to_owned),
            port: *port,
            target_port: crate::model::pod::Scalar::Number((*port).into()),
            protocol: None,
        };
        let (name, ports) = (format!("service-{last}"), ports.iter().map(port).collect());
        ServiceAddress { name, address: [127, 0, 3, last].into(), ports, selects: None, ready: 1, problem: None }
    }

    #[test]
    fn a_link_leads_to_what_speaks_http_and_to_nothing_where_that_is_not_clear() {
        let plain = |last, port| service(last, &[(None, port)]);
        let named = |last, name, port| service(last, &[(Some("metrics"), 9090), (Some(name), port)]);
        for (services, expected) in [
            (vec![], None),
            (vec![service(1, &[])], None),
            (vec![plain(1, 80)], Some("http://127.0.3.1")),
            (vec![plain(1, 8080)], Some("http://127.0.3.1:8080")),
            (vec![plain(1, 443)], Some("https://127.0.3.1")),
            (vec![plain(1, 80), plain(2, 80)], None),
            (vec![plain(1, 5432), named(2, "http", 8080)], Some("http://127.0.3.2:8080")),
            (vec![plain(1, 5432), named(2, "http-web", 80)], Some("http://127.0.3.2")),
            (vec![plain(1, 5432), named(2, "https", 8443)], Some("https://127.0.3.2:8443")),
            (vec![named(1, "httpd", 80), plain(2, 80)], None),
            (vec![named(1, "http", 80), named(2, "http", 80)], None),
        ] {
            assert_eq!(link(&services).as_deref(), expected, "{services:?}");
        }
    }
}
