//! Whether what comes back fits the rest of its application: the deployment configs that share its label
//! `app.kubernetes.io/part-of`, else `app`, else all of its stage. Those that go back with it are seen as they will be.

use serde_json::Value;

use super::{Stage, running};
use crate::engine::rollback::RolledBack;
use crate::model::object::{Kind, Object};
use crate::model::pod::references::{Objects, lacking};
use crate::model::pod::{ContainerPort, PodTemplate, Scalar};
use crate::model::selector::{Labels, selects};
use crate::model::state::{ConfigState, spec_of};

/// The labels that say which application something belongs to, the first one that is there counts.
const APPLICATION_LABELS: [&str; 2] = ["app.kubernetes.io/part-of", "app"];

/// A port of a `Service` object.
struct Port {
    port: u64,
    target: Option<Scalar>,
}

/// A `Service` object, as far as it leads to pods.
struct Leading {
    name: String,
    selector: Labels,
    ports: Vec<Port>,
}

/// What of the application does not fit what comes back.
pub(super) fn warnings(member: &RolledBack, members: &[RolledBack], stage: &Stage) -> Vec<String> {
    let (before, after) = (template_of(running(&member.state)), template_of(&member.object));
    let services: Vec<Leading> = stage.objects.iter().filter_map(|object| leading(object)).collect();
    let mut found = absent(member, &after, stage);
    let mut lost = Vec::new();
    for service in services.iter().filter(|service| selects(&service.selector, &before.metadata.labels)) {
        if !selects(&service.selector, &after.metadata.labels) {
            found.push(format!("service `{}` no longer leads to its pods", service.name));
            lost.extend(service.ports.iter().map(|port| (service, port)));
            continue;
        }
        let is_lost = |port: &&Port| has(&before, port) && !has(&after, port);
        for port in service.ports.iter().filter(is_lost) {
            let target = port.target.as_ref().map_or_else(|| port.port.to_string(), shown);
            found.push(format!(
                "port {} of service `{}` leads to port {target}, which it does not have",
                port.port, service.name
            ));
            lost.push((service, port));
        }
    }
    for (name, template) in siblings(member, members, stage) {
        let told = |(service, port): &(&Leading, &Port)| {
            let place = mentions(&template, &service.name, port.port)?;
            Some(format!(
                "`{name}` refers to port {} of service `{}` ({place}), which will not answer",
                port.port, service.name
            ))
        };
        found.extend(lost.iter().filter_map(told));
    }
    found.extend(refers_to_nothing(&after, &services));
    found
}

/// What its template needs and the stage does not have.
fn absent(member: &RolledBack, after: &PodTemplate, stage: &Stage) -> Vec<String> {
    let objects: Objects = stage.objects.iter().map(|object| (object.key.clone(), object.content.value())).collect();
    let missing = lacking(after, &member.state.destination.namespace, &objects);
    missing.map(|missing| format!("its pods will not start: {missing}")).collect()
}

/// The ports of services that the version that comes back names, and that are not there.
fn refers_to_nothing(after: &PodTemplate, services: &[Leading]) -> Vec<String> {
    let mut found = Vec::new();
    for (place, text) in texts(after) {
        for service in services {
            let declared = |port: u64| service.ports.iter().any(|declared| declared.port == port);
            for port in ports_named(text, &service.name).filter(|port| !declared(*port)) {
                found.push(format!(
                    "it refers to port {port} of service `{}` ({place}), which has no such port",
                    service.name
                ));
            }
        }
    }
    found
}

/// The other deployment configs of its application, by name, with what their pods will be.
fn siblings<'a>(
    member: &'a RolledBack,
    members: &'a [RolledBack],
    stage: &'a Stage,
) -> impl Iterator<Item = (&'a str, PodTemplate)> {
    let application = application(&member.state.object);
    let of_it = move |state: &&ConfigState| {
        let of_application = application.is_none() || self::application(&state.object) == application;
        state.key != member.state.key && !state.removed && of_application
    };
    let template = |state: &'a ConfigState| {
        let goes_back = members.iter().find(|other| other.state.key == state.key);
        let object = goes_back.map_or_else(|| running(state), |other| &*other.object);
        (state.key.name.as_str(), template_of(object))
    };
    stage.configs.iter().filter(of_it).map(template)
}

/// The label that says which application a deployment config belongs to, with its value.
fn application(object: &Object) -> Option<(&'static str, String)> {
    let labels = object.content.at("/metadata/labels")?;
    APPLICATION_LABELS.iter().find_map(|label| Some((*label, labels.get(label)?.as_str()?.to_owned())))
}

fn template_of(object: &Object) -> PodTemplate {
    spec_of(object).unwrap_or_default().template
}

fn leading(object: &Object) -> Option<Leading> {
    if object.key.kind != Kind::Service {
        return None;
    }
    let selector = object.content.at("/spec/selector")?;
    let ports = object.content.at("/spec/ports").unwrap_or_default();
    let port = |port: &Value| {
        let target = port.get("targetPort").and_then(|target| serde_json::from_value(target.clone()).ok());
        Some(Port { port: port.get("port")?.as_u64()?, target })
    };
    let ports = ports.as_array().into_iter().flatten().filter_map(port).collect();
    Some(Leading { name: object.key.name.clone(), selector: serde_json::from_value(selector).ok()?, ports })
}

/// Whether the pods have the port that a service's port leads to.
fn has(template: &PodTemplate, port: &Port) -> bool {
    let mut declared = template.spec.containers.iter().flat_map(|container| &container.ports);
    let number = |number: u64| move |port: &ContainerPort| u64::from(port.container_port) == number;
    match &port.target {
        None => declared.any(number(port.port)),
        Some(Scalar::Number(target)) => declared.any(number(u64::try_from(*target).unwrap_or_default())),
        Some(Scalar::Text(name)) => declared.any(|port| port.name.as_ref() == Some(name)),
    }
}

fn shown(scalar: &Scalar) -> String {
    match scalar {
        Scalar::Number(number) => number.to_string(),
        Scalar::Text(name) => format!("`{name}`"),
    }
}

/// Every text of a template that may name a service, with where it stands.
fn texts(template: &PodTemplate) -> impl Iterator<Item = (String, &str)> {
    let containers = template.spec.init_containers.iter().chain(&template.spec.containers);
    containers.flat_map(|container| {
        let variables = container.env.iter();
        let variables = variables.filter_map(|variable| Some((variable.name.clone(), variable.value.as_deref()?)));
        let words = container.command.iter().chain(&container.args);
        variables.chain(words.map(|word| (format!("command of `{}`", container.name), word.as_str())))
    })
}

/// Where a template names a service, at this port or at none.
fn mentions(template: &PodTemplate, service: &str, port: u64) -> Option<String> {
    let variable = format!("{}_SERVICE_", service.to_uppercase().replace('-', "_"));
    let names = |text: &str| {
        let named: Vec<Option<u64>> = names_of(text, service).collect();
        named.iter().any(|at| at.is_none_or(|at| at == port)) || text.contains(&variable)
    };
    texts(template).find(|(_, text)| names(text)).map(|(place, _)| place)
}

fn ports_named<'a>(text: &'a str, service: &'a str) -> impl Iterator<Item = u64> + 'a {
    names_of(text, service).flatten()
}

/// Each time that a text names a service as a whole word, with the port that follows.
fn names_of<'a>(text: &'a str, service: &'a str) -> impl Iterator<Item = Option<u64>> + 'a {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    text.match_indices(service).filter_map(move |(start, _)| {
        let (before, after) = (&text[..start], &text[start + service.len()..]);
        let stands_alone = !before.ends_with(is_part) && !after.starts_with(is_part);
        let port = after.strip_prefix(':').map(|rest| rest.split(|it: char| !it.is_ascii_digit()).next());
        stands_alone.then(|| port.flatten().and_then(|digits| digits.parse().ok()))
    })
}
