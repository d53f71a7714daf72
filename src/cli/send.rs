//! `launchway send event`.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::Value;

use super::arguments::Global;
use super::client::Client;
use super::output::{Complaint, Exit, Outcome, Output};
use crate::clock::{Clock, Ids, SystemClock, Ulids};
use crate::error::{Context, Failure};
use crate::model::cloud_event::CloudEvent;
use crate::server::api::keptn::EventAnswer;

/// The most bytes of an event's file.
const LARGEST: u64 = 1 << 20;
/// What commands call themselves as the source of events.
pub(super) const SOURCE: &str = "launchway-cli";

/// Tell what happened elsewhere
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  launchway send event --file problem.json")]
pub(super) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Send a CloudEvent; without an id it gets one, and without a source, version or time those of this command
    #[command(after_help = "Example:\n  launchway send event --file problem.json")]
    Event {
        /// The event as JSON; `-` reads it from the standard input
        #[arg(short, long, value_name = "FILE")]
        file: PathBuf,
    },
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let What::Event { file } = &arguments.what;
    let mut event: Value = serde_json::from_str(&read(file)?).map_err(|error| {
        let (name, line, column) = (file.display(), error.line(), error.column());
        Complaint::usage(Failure::stalled(format!("{name}:{line}:{column}: no JSON: {error}")))
    })?;
    fill_in(&mut event);
    let event: CloudEvent = serde_json::from_value(event).map_err(|error| {
        let failure = Failure::stalled(format!("{}: no CloudEvent: {error}", file.display()));
        Complaint::usage(failure.hint("it needs a `type`, and `data` with project, stage and service"))
    })?;
    send(&Client::to_act(global).await?, &event, output).await
}

/// Sends an event and shows what became of it; one without effect is a failure.
pub(super) async fn send(client: &Client, event: &CloudEvent, output: &mut Output) -> Outcome {
    let answer: EventAnswer = client.post("event", event).await?;
    output.show(&answer, |answer| match answer.ignored.as_str() {
        "" => {
            let refused = answer.refused.iter().map(|reason| format!("not delivered to {reason}\n"));
            format!("context {}\n{}", answer.keptn_context, refused.collect::<String>())
        }
        reason => format!("ignored: {reason}\n"),
    })?;
    Ok(if answer.ignored.is_empty() && answer.refused.is_empty() { Exit::Good } else { Exit::Failed })
}

/// What a person need not say.
fn fill_in(event: &mut Value) {
    let Some(fields) = event.as_object_mut() else { return };
    let now = SystemClock.now();
    let usual = [
        ("id", Ulids::default().next(now)),
        ("source", SOURCE.to_owned()),
        ("specversion", "1.0".to_owned()),
        ("time", crate::clock::rfc3339(now)),
    ];
    for (key, value) in usual {
        fields.entry(key).or_insert(Value::String(value));
    }
}

fn read(file: &Path) -> Outcome<String> {
    let unreadable = || format!("cannot read `{}`", file.display());
    let mut text = String::new();
    let bytes = if file == Path::new("-") {
        std::io::stdin().take(LARGEST + 1).read_to_string(&mut text)
    } else {
        std::fs::File::open(file).and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text))
    };
    let bytes = bytes.or_stalled(unreadable)?;
    if bytes as u64 > LARGEST {
        return Err(Failure::stalled(format!("`{}` has more than {LARGEST} bytes", file.display())).into());
    }
    Ok(text)
}
