//! Sinks: who is told what happens.

use std::path::Path;

use super::fields::Field;
use super::files::Holds;
use super::parse::{name, private_address, unique};
use crate::model::ids::{ProjectName, ServiceName, SinkName, StageName};
use crate::model::shipyard::{Operator, Requirement};
use crate::model::sink::Subscription;
use crate::secret::SecretSource;
use crate::sinks::http::SinkSettings;

/// All that are configured.
pub(super) fn sinks(field: &Field<'_>, folder: &Path) -> Vec<SinkSettings> {
    let sinks = field.items().iter().map(|field| sink(field, folder)).collect();
    unique(field, sinks, |sink: &SinkSettings| sink.name.as_str())
}

fn sink(field: &Field<'_>, folder: &Path) -> SinkSettings {
    field.known(&["name", "url", "secretFile", "caFile", "insecure", "subscriptions"]);
    let subscriptions = field.field("subscriptions").items();
    SinkSettings {
        name: SinkName::new(name(&field.field("name"))),
        url: private_address(&field.field("url"), field, "events would cross the network in the clear"),
        secret: field.field("secretFile").file(folder, Holds::Secret).map(SecretSource::File),
        ca_file: field.field("caFile").file(folder, Holds::Public),
        subscriptions: subscriptions.iter().map(subscription).collect(),
    }
}

fn subscription(field: &Field<'_>) -> Subscription {
    field.known(&["types", "projects", "stages", "services", "matchExpressions"]);
    let texts = |key: &str| -> Vec<String> {
        field.field(key).items().iter().filter_map(Field::text).map(str::to_owned).collect()
    };
    let expressions = field.field("matchExpressions").items();
    Subscription {
        types: texts("types"),
        projects: texts("projects").into_iter().map(ProjectName::new).collect(),
        stages: texts("stages").into_iter().map(StageName::new).collect(),
        services: texts("services").into_iter().map(ServiceName::new).collect(),
        selector: expressions.iter().filter_map(requirement).collect(),
    }
}

/// As in `triggeredOn` of a shipyard.
fn requirement(field: &Field<'_>) -> Option<Requirement> {
    field.known(&["key", "operator", "values"]);
    let (key, operator, values) = (field.field("key"), field.field("operator"), field.field("values"));
    key.required();
    operator.required();
    let operator = operator.word(&[
        ("In", Operator::In),
        ("NotIn", Operator::NotIn),
        ("Exists", Operator::Exists),
        ("DoesNotExist", Operator::DoesNotExist),
    ])?;
    let needs_values = matches!(operator, Operator::In | Operator::NotIn);
    let listed: Vec<String> = values.items().iter().filter_map(Field::text).map(str::to_owned).collect();
    if needs_values == listed.is_empty() {
        let message = if needs_values { "`In` and `NotIn` need `values`" } else { "`Exists` takes no `values`" };
        field.error("invalid", message, "as in a selector of Kubernetes");
    }
    Some(Requirement { key: key.text()?.to_owned(), operator, values: listed })
}
