//! `launchway rerun SERVICE`.

use clap::Args;

use super::arguments::Global;
use super::client::Client;
use super::output::{Complaint, Outcome, Output};
use super::under_way;
use crate::control::commands::Done;
use crate::error::Failure;
use crate::server::api::keptn::RerunRequest;
use crate::server::view::{List, RunView};

/// Run the last sequence of a service again, from the task that failed
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  launchway rerun web -s dev --sequence rollback")]
pub(super) struct Arguments {
    /// The service
    #[arg(value_name = "SERVICE")]
    service: String,
    /// The sequence, where it is not the last one
    #[arg(long, value_name = "NAME")]
    sequence: Option<String>,
    /// Run all of it again, also what has passed
    #[arg(long)]
    from_start: bool,
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let client = Client::to_act(global).await?;
    let Arguments { service, sequence, from_start } = arguments;
    let (project, stage) = under_way::place_before(service, &client, global).await?;
    let last = last_ended(&client, (&project, &stage, service), sequence.as_deref()).await?.ok_or_else(|| {
        let what = sequence.as_deref().unwrap_or("sequence");
        Complaint::failed(Failure::stalled(format!("no {what} of `{service}` has ended in stage {stage}")))
    })?;
    let request = RerunRequest { run: last, from_start: *from_start };
    let done: Done = client.post("reruns", &request).await?;
    output.done(&done)
}

/// The last ended run of a service's sequences, or of the one that is named.
async fn last_ended(
    client: &Client,
    (project, stage, service): (&str, &str, &str),
    sequence: Option<&str>,
) -> Outcome<Option<String>> {
    let mut before = None;
    loop {
        let parameters = [
            ("project", Some(project)),
            ("stage", Some(stage)),
            ("service", Some(service)),
            ("kind", Some("sequence")),
            ("open", Some("false")),
            ("before", before.as_deref()),
        ];
        let ended: List<RunView> = client.get("runs", &parameters).await?;
        let is_meant = |run: &&RunView| sequence.is_none_or(|name| name == run.name);
        if let Some(last) = ended.items.iter().find(is_meant) {
            return Ok(Some(last.id.clone()));
        }
        before = match ended.items.last() {
            Some(oldest) => Some(oldest.id.clone()),
            None => return Ok(None),
        };
    }
}
