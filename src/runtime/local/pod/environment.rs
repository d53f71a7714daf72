//! The environment of a container, from its record alone: nothing of the daemon's own reaches a pod.

use std::collections::BTreeMap;

use super::data;
use super::expand::expand;
use super::paths::PodDir;
use super::quantity;
use super::record::PodRecord;
use super::result;
use super::volume;
use crate::model::object::Kind;
use crate::model::pod::{Container, EnvFrom, EnvVarSource, KeyRef, ResourceFieldRef, Scalar};
use crate::runtime::ServiceAddress;
use crate::runtime::local::API_SOCKET;
use crate::runtime::local::host::process::{CONTAINER_MARK, POD_MARK};

/// Where a deployer finds the daemon's socket.
const API_SOCKET_VARIABLE: &str = "LAUNCHWAY_API_SOCKET";

/// Variables by name.
pub(crate) type Variables = BTreeMap<String, String>;

/// All variables of a container. Later sources win: launchway's own, services, `envFrom`, `env`; the marks by which
/// its processes are found win over all. Fails with what is missing, for people.
pub(crate) fn of_container(record: &PodRecord, dir: &PodDir, container: &Container) -> Result<Variables, String> {
    let mut variables = own(record, dir, container);
    record.services.iter().for_each(|service| variables.extend(of_service(service)));
    for source in &container.env_from {
        variables.extend(of_source(record, source)?);
    }
    for variable in &container.env {
        let value = match (&variable.value_from, &variable.value) {
            (Some(source), _) => match of_field(record, container, source)? {
                Some(value) => value,
                None => continue,
            },
            (None, value) => expand(value.as_deref().unwrap_or(""), &variables),
        };
        variables.insert(checked_name(&variable.name)?.to_owned(), value);
    }
    if let Some(api) = &record.api {
        variables.insert(API_SOCKET_VARIABLE.to_owned(), api.join(API_SOCKET).display().to_string());
    }
    variables.insert(POD_MARK.to_owned(), record.mark());
    variables.insert(CONTAINER_MARK.to_owned(), container.name.clone());
    match variables.iter().find(|(_, value)| value.contains('\0')) {
        Some((name, _)) => Err(format!("the value of variable `{name}` holds a zero byte")),
        None => Ok(variables),
    }
}

fn own(record: &PodRecord, dir: &PodDir, container: &Container) -> Variables {
    let pod = &record.pod;
    let fixed = [
        ("PATH", record.search_path.clone()),
        ("HOME", dir.home().display().to_string()),
        ("POD_NAME", pod.id.name.to_string()),
        ("POD_NAMESPACE", pod.id.namespace.to_string()),
        ("POD_IP", record.address.to_string()),
        ("LAUNCHWAY_REVISION", pod.commit.to_string()),
    ];
    let fixed = fixed.map(|(name, value)| (name.to_owned(), value));
    let mounts = volume::mounts(record, dir, container);
    let mounts = mounts.into_iter().map(|mount| (mount.variable, mount.path.display().to_string()));
    let result = pod.tells_result.then(|| (result::VARIABLE.to_owned(), dir.own_result().display().to_string()));
    fixed.into_iter().chain(ports(record, container)).chain(mounts).chain(result).collect()
}

/// `PORT` is the container's first port, or the pod's if it has none; every named port of the pod has `PORT_<NAME>`.
fn ports(record: &PodRecord, container: &Container) -> Variables {
    let own = record.ports.iter().find(|port| port.container == container.name);
    let first = own.or(record.ports.first()).map(|port| ("PORT".to_owned(), port.real.to_string()));
    let named = record.ports.iter().rev().filter_map(|port| {
        let name = port.name.as_ref()?;
        Some((format!("PORT_{}", variable_part(name)), port.real.to_string()))
    });
    first.into_iter().chain(named).collect()
}

/// `<NAME>_SERVICE_HOST`, `<NAME>_SERVICE_PORT` and `<NAME>_SERVICE_PORT_<PORTNAME>`, as Kubernetes names them.
fn of_service(service: &ServiceAddress) -> Variables {
    let name = variable_part(&service.name);
    let host = (format!("{name}_SERVICE_HOST"), service.address.to_string());
    let first = service.ports.first().map(|port| (format!("{name}_SERVICE_PORT"), port.port.to_string()));
    let named = service.ports.iter().filter_map(|port| {
        let port_name = variable_part(port.name.as_ref()?);
        Some((format!("{name}_SERVICE_PORT_{port_name}"), port.port.to_string()))
    });
    std::iter::once(host).chain(first).chain(named).collect()
}

fn of_source(record: &PodRecord, source: &EnvFrom) -> Result<Variables, String> {
    let refs = [(Kind::ConfigMap, &source.config_map_ref), (Kind::Secret, &source.secret_ref)];
    let mut variables = Variables::new();
    for (kind, object) in refs.into_iter().filter_map(|(kind, object)| Some((kind, object.as_ref()?))) {
        let Some(content) = record.object(&kind, &object.name) else {
            if object.optional {
                continue;
            }
            return Err(format!("there is no {kind} `{}`", object.name));
        };
        for (key, value) in data::entries(&kind, content)? {
            let name = format!("{}{key}", source.prefix);
            // Like Kubernetes: keys that cannot be variables are left out.
            if checked_name(&name).is_ok() {
                variables.insert(name, utf8(&key, value)?);
            }
        }
    }
    Ok(variables)
}

fn of_field(record: &PodRecord, container: &Container, source: &EnvVarSource) -> Result<Option<String>, String> {
    if let Some(key) = &source.config_map_key_ref {
        return of_key(record, &Kind::ConfigMap, key);
    }
    if let Some(key) = &source.secret_key_ref {
        return of_key(record, &Kind::Secret, key);
    }
    if let Some(field) = &source.field_ref {
        return pod_field(record, &field.field_path).map(Some);
    }
    match &source.resource_field_ref {
        Some(resource) => resource_field(record, container, resource).map(Some),
        None => Ok(Some(String::new())),
    }
}

fn of_key(record: &PodRecord, kind: &Kind, wanted: &KeyRef) -> Result<Option<String>, String> {
    let missing = |what: String| if wanted.optional { Ok(None) } else { Err(what) };
    let Some(content) = record.object(kind, &wanted.name) else {
        return missing(format!("there is no {kind} `{}`", wanted.name));
    };
    match data::entries(kind, content)?.remove(&wanted.key) {
        Some(value) => utf8(&wanted.key, value).map(Some),
        None => missing(format!("{kind} `{}` has no key `{}`", wanted.name, wanted.key)),
    }
}

fn pod_field(record: &PodRecord, path: &str) -> Result<String, String> {
    let (pod, metadata) = (&record.pod, &record.pod.template.metadata);
    let of_map = |map: &BTreeMap<String, String>, key: &str| map.get(key).cloned().unwrap_or_default();
    let subscript = |field: &str| path.strip_prefix(field)?.strip_prefix("['")?.strip_suffix("']");
    if let Some(key) = subscript("metadata.labels") {
        return Ok(of_map(&metadata.labels, key));
    }
    if let Some(key) = subscript("metadata.annotations") {
        return Ok(of_map(&metadata.annotations, key));
    }
    match path {
        "metadata.name" => Ok(pod.id.name.to_string()),
        "metadata.namespace" => Ok(pod.id.namespace.to_string()),
        "metadata.uid" => Ok(record.uid.clone()),
        "spec.nodeName" => Ok("localhost".to_owned()),
        "spec.serviceAccountName" => Ok("default".to_owned()),
        "status.hostIP" | "status.hostIPs" => Ok("127.0.0.1".to_owned()),
        "status.podIP" | "status.podIPs" => Ok(record.address.to_string()),
        other => Err(format!("a pod has no field `{other}`")),
    }
}

fn resource_field(record: &PodRecord, own: &Container, wanted: &ResourceFieldRef) -> Result<String, String> {
    let container = match &wanted.container_name {
        Some(name) => record.container(name).ok_or_else(|| format!("there is no container `{name}`"))?,
        None => own,
    };
    let resources = &container.resources;
    let value = match wanted.resource.split_once('.') {
        Some(("limits", name)) => resources.limits.get(name),
        Some(("requests", name)) => resources.requests.get(name).or_else(|| resources.limits.get(name)),
        _ => None,
    };
    let value = value.ok_or_else(|| format!("container `{}` has no `{}`", container.name, wanted.resource))?;
    let divisor = Scalar::Text(wanted.divisor.clone().filter(|text| text != "0").unwrap_or_else(|| "1".to_owned()));
    match (quantity::thousandths(value), quantity::thousandths(&divisor)) {
        (Some(value), Some(divisor)) if divisor > 0 => Ok(quantity::div_up(value, divisor).to_string()),
        _ => Err(format!("`{}` of container `{}` is not a quantity", wanted.resource, container.name)),
    }
}

fn utf8(key: &str, value: Vec<u8>) -> Result<String, String> {
    String::from_utf8(value).ok().ok_or_else(|| format!("the value of `{key}` is not text, so it cannot be a variable"))
}

fn checked_name(name: &str) -> Result<&str, String> {
    let fits = !name.is_empty() && !name.contains(['=', '\0']);
    if fits { Ok(name) } else { Err(format!("`{name}` cannot be the name of a variable")) }
}

/// A name as part of a variable's: upper case, everything but letters and digits becomes `_`.
pub(crate) fn variable_part(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}
