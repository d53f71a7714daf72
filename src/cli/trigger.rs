//! `launchway trigger delivery`, `trigger sequence` and `trigger evaluation`.

use clap::{Args, Subcommand};

use serde_json::{Value, json};

use super::arguments::Global;
use super::client::Client;
use super::hold::project;
use super::output::{Outcome, Output};
use super::send::{SOURCE, send};
use super::target;
use crate::clock::{Clock, Ids, SystemClock, Ulids, rfc3339};
use crate::control::commands::Done;
use crate::model::cloud_event::{CloudEvent, PREFIX};
use crate::model::data::merge;
use crate::model::shipyard::EVALUATION_TASK;
use crate::server::api::act::DeliveryRequest;
use crate::server::view::ProjectView;

/// Start a sequence by hand
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  launchway trigger delivery web -s production")]
pub(super) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Start a stage's delivery sequence with what the last revision declares
    #[command(after_help = "Example:\n  launchway trigger delivery web -s production")]
    Delivery {
        /// For this service, also if nothing differs: a failed test runs again [default: all that differ]
        #[arg(value_name = "SERVICE")]
        service: Option<String>,
        /// Start it although the stage before has not passed it; the reason is said on the commit
        #[arg(long, value_name = "REASON")]
        force: Option<String>,
    },
    /// Start a sequence of a stage for a service
    #[command(after_help = "Example:\n  launchway trigger sequence rollback web -s production --data reason=slow")]
    Sequence {
        /// The sequence
        #[arg(value_name = "NAME")]
        sequence: String,
        /// For this service
        #[arg(value_name = "SERVICE")]
        service: String,
        #[command(flatten)]
        data: Data,
    },
    /// Start the evaluation of a service in a stage
    #[command(after_help = "Example:\n  launchway trigger evaluation web -s dev --data evaluation.timeframe=5m")]
    Evaluation {
        /// Of this service
        #[arg(value_name = "SERVICE")]
        service: String,
        #[command(flatten)]
        data: Data,
    },
}

/// What the tasks of a sequence find.
#[derive(Debug, Args)]
struct Data {
    /// A value for the tasks, such as `deployment.image=web:1`; may be given several times
    ///
    /// It is read as JSON where it is that, so `true` and `17` are no texts; `'version="1.10"'` is one.
    #[arg(long = "data", value_name = "KEY=VALUE", value_parser = datum)]
    data: Vec<(String, Value)>,
    /// A label; may be given several times
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = pair)]
    labels: Vec<(String, String)>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or("it is no KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// As in the scripts of `simulate`: JSON, else a text.
fn datum(text: &str) -> Result<(String, Value), String> {
    let (path, value) = pair(text)?;
    if path.split('.').any(str::is_empty) {
        return Err(format!("the key `{path}` has an empty part"));
    }
    let value = serde_json::from_str(&value).unwrap_or(Value::String(value));
    Ok((path, value))
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let client = Client::to_act(global).await?;
    let project = project(&client, global).await?;
    let stage = || stage(&project, &client, global);
    match &arguments.what {
        What::Delivery { service, force } => {
            let (stage, service, force) = (global.stage.clone(), service.clone(), force.clone());
            let done: Done = client.post("deliveries", &DeliveryRequest { project, stage, service, force }).await?;
            output.done(&done)
        }
        What::Sequence { sequence, service, data } => {
            send(&client, &event(&project, (&stage().await?, sequence, service), data), output).await
        }
        What::Evaluation { service, data } => {
            send(&client, &event(&project, (&stage().await?, EVALUATION_TASK, service), data), output).await
        }
    }
}

/// The stage that the user names, or the only one.
async fn stage(project: &str, client: &Client, global: &Global) -> Outcome<String> {
    if let Some(stage) = &global.stage {
        return Ok(stage.clone());
    }
    let declared: ProjectView = client.keptn(&format!("project/{project}")).await?;
    let stages: Vec<String> = declared.stages.into_iter().map(|stage| stage.stage_name).collect();
    target::only(stages, &format!("stage in `{project}`"), |stage| format!("--stage {stage}"))
}

/// The event that starts a sequence.
fn event(project: &str, (stage, sequence, service): (&str, &str, &str), given: &Data) -> CloudEvent {
    let mut data = json!({ "project": project, "stage": stage, "service": service });
    if !given.labels.is_empty() {
        let labels = given.labels.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str())));
        data["labels"] = Value::Object(labels.collect());
    }
    for (path, value) in &given.data {
        let nested = path.rsplit('.').fold(value.clone(), |inner, key| json!({ key: inner }));
        data = merge(data, nested);
    }
    let now = SystemClock.now();
    let kind = format!("{PREFIX}{stage}.{sequence}.triggered");
    let event = CloudEvent::of(kind, Ulids::default().next(now), data);
    CloudEvent { source: SOURCE.to_owned(), time: Some(rfc3339(now)), ..event }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_scripts_of_simulations_read_them() {
        for (given, expected) in [
            ("a.c=true", Some(("a.c", json!(true)))),
            ("build=17", Some(("build", json!(17)))),
            ("version=\"1.10\"", Some(("version", json!("1.10")))),
            ("image=web:1", Some(("image", json!("web:1")))),
            ("zones=[\"a\"]", Some(("zones", json!(["a"])))),
            ("empty=", Some(("empty", json!("")))),
            ("a=b=c", Some(("a", json!("b=c")))),
            ("a..c=1", None),
            ("=1", None),
            ("a", None),
        ] {
            let expected = expected.map(|(key, value)| (key.to_owned(), value));
            assert_eq!(datum(given).ok(), expected, "{given}");
        }
    }
}
