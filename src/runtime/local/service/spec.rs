//! What a service may ask for, and which pods it selects.

use std::collections::BTreeSet;

use super::PodEndpoint;
use super::record::Endpoint;
use crate::error::{Failure, Result};
use crate::model::pod::Scalar;
use crate::runtime::{ServicePort, ServiceSpec};

/// The most ports that a service may have.
const MAX_PORTS: usize = 64;
/// The longest name that a DNS label has.
const MAX_NAME: usize = 63;

/// Refuses what cannot be served on this machine.
pub(super) fn check(spec: &ServiceSpec) -> Result<()> {
    check_name(spec.namespace.as_str())?;
    check_name(&spec.name)?;
    let earlier = spec.earlier.iter().map(|earlier| &earlier.ports);
    std::iter::once(&spec.ports).chain(earlier).try_for_each(|ports| check_ports(&spec.name, ports))
}

fn check_ports(service: &str, ports: &[ServicePort]) -> Result<()> {
    if ports.len() > MAX_PORTS {
        return Err(Failure::stalled(format!("service `{service}` has more than {MAX_PORTS} ports")));
    }
    ports.iter().try_for_each(|port| check_port(service, port))?;
    let numbers: BTreeSet<u16> = ports.iter().map(|port| port.port).collect();
    if numbers.len() < ports.len() {
        return Err(Failure::stalled(format!("service `{service}` has a port twice")));
    }
    Ok(())
}

/// A name becomes a folder's, so it must be what Kubernetes allows: a DNS label.
pub(super) fn check_name(name: &str) -> Result<()> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(allowed) || name.starts_with('-') {
        return Err(Failure::stalled(format!("`{}` is no name for a service", name.escape_debug()))
            .hint("use lower-case letters, digits and `-`, at most 63 of them"));
    }
    Ok(())
}

fn check_port(service: &str, port: &ServicePort) -> Result<()> {
    let number = port.port;
    if let Some(protocol) = port.protocol.as_deref().filter(|protocol| !protocol.eq_ignore_ascii_case("TCP")) {
        let protocol = protocol.escape_debug();
        return Err(Failure::stalled(format!("port {number} of service `{service}` is {protocol}"))
            .hint("the local runtime carries TCP only: remove the port, or deploy the stage to a cluster"));
    }
    let reachable = match &port.target_port {
        Scalar::Number(target) => (1..=i64::from(u16::MAX)).contains(target),
        Scalar::Text(target) => !target.is_empty(),
    };
    if number == 0 || !reachable {
        return Err(Failure::stalled(format!("port {number} of service `{service}` leads to no port"))
            .hint("ports are numbers from 1 to 65535; a target may be the name of a container's port"));
    }
    Ok(())
}

/// Whether a service leads to a pod.
pub(super) fn leads_to(spec: &ServiceSpec, pod: &PodEndpoint) -> bool {
    spec.selects(pod.version(), &pod.labels)
}

/// The pods that a service leads to, sorted. Where weights say what versions get, those without one get nothing.
pub(super) fn select<'a>(spec: &ServiceSpec, pods: impl IntoIterator<Item = &'a PodEndpoint>) -> Vec<Endpoint> {
    let weighed = |pod: &PodEndpoint| {
        if spec.backends.is_empty() {
            return Some(Endpoint::Equal(pod.dir.path().to_owned()));
        }
        let (config, version) = pod.version.as_ref()?;
        let backend = spec.backends.iter().find(|it| it.config == *config && it.version == *version)?;
        let (dir, version, weight) = (pod.dir.path().to_owned(), format!("{}-{version}", config.name), backend.weight);
        (weight > 0).then_some(Endpoint::Weighed { dir, version, weight })
    };
    let endpoint = |pod: &PodEndpoint| {
        let earlier = spec.earlier_of(pod.version()).filter(|earlier| earlier.ports != spec.ports);
        let endpoint = weighed(pod)?;
        Some(match earlier {
            Some(earlier) => Endpoint::Earlier { pod: Box::new(endpoint), ports: earlier.ports.clone() },
            None => endpoint,
        })
    };
    let selected = pods.into_iter().filter(|pod| leads_to(spec, pod)).filter_map(endpoint);
    selected.collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ids::Namespace;
    use crate::runtime::local::PodDir;
    use std::collections::BTreeMap;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn port(number: u16, target_port: Scalar, protocol: Option<&str>) -> ServicePort {
        ServicePort { name: None, port: number, target_port, protocol: protocol.map(str::to_owned) }
    }

    fn spec(name: &str, ports: Vec<ServicePort>, selector: &[(&str, &str)]) -> ServiceSpec {
        let namespace = Namespace::from("shop-dev");
        ServiceSpec {
            namespace,
            name: name.into(),
            ports,
            selector: labels(selector),
            external: vec![],
            backends: vec![],
            earlier: vec![],
        }
    }

    #[test]
    fn only_what_can_be_served_is_accepted() {
        let good = || port(80, Scalar::Number(8080), Some("TCP"));
        let many = (1..=65).map(|number| port(number, Scalar::Number(1), None)).collect();
        let cases = [
            (spec("web", vec![good()], &[]), None),
            (spec("web", vec![], &[]), None),
            (spec("../web", vec![], &[]), Some("`../web` is no name for a service")),
            (spec("", vec![], &[]), Some("`` is no name for a service")),
            (
                spec("dns", vec![port(53, Scalar::Number(53), Some("UDP"))], &[]),
                Some("port 53 of service `dns` is UDP"),
            ),
            (spec("web", vec![good(), good()], &[]), Some("service `web` has a port twice")),
            (spec("web", many, &[]), Some("service `web` has more than 64 ports")),
            (
                spec("web", vec![port(0, Scalar::Number(1), None)], &[]),
                Some("port 0 of service `web` leads to no port"),
            ),
            (
                spec("web", vec![port(1, Scalar::Number(0), None)], &[]),
                Some("port 1 of service `web` leads to no port"),
            ),
        ];
        for (spec, expected) in cases {
            assert_eq!(check(&spec).err().map(|failure| failure.to_string()).as_deref(), expected);
        }
    }

    #[test]
    fn pods_are_selected_by_all_labels_and_an_empty_selector_selects_none() {
        let pod = |name: &str, pairs: &[(&str, &str)]| PodEndpoint {
            name: name.into(),
            labels: labels(pairs).into(),
            dir: PodDir::new(format!("/pods/{name}")),
            version: None,
        };
        let pods = [pod("b", &[("app", "web"), ("tier", "front")]), pod("a", &[("app", "web")]), pod("c", &[])];
        let select = |selector: &[(&str, &str)]| select(&spec("web", vec![], selector), &pods);
        let equal = |name: &str| Endpoint::Equal(format!("/pods/{name}").into());
        assert_eq!(select(&[("app", "web")]), [equal("a"), equal("b")]);
        assert_eq!(select(&[("app", "web"), ("tier", "front")]), [equal("b")]);
        assert!(select(&[]).is_empty());
    }
}
