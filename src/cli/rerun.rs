//! `launchway rerun SERVICE`.

use clap::Args;

use super::arguments::Global;
use super::client::Client;
use super::hold::project;
use super::output::{Complaint, Outcome, Output};
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
    let project = project(&client, global).await?;
    let parameters = [
        ("project", Some(project.as_str())),
        ("stage", global.stage.as_deref()),
        ("service", Some(arguments.service.as_str())),
        ("kind", Some("sequence")),
        ("open", Some("false")),
    ];
    let ended: List<RunView> = client.get("runs", &parameters).await?;
    let is_meant = |run: &&RunView| arguments.sequence.as_ref().is_none_or(|name| *name == run.name);
    let last = ended.items.iter().find(is_meant).ok_or_else(|| {
        let what = arguments.sequence.as_deref().unwrap_or("sequence");
        Complaint::failed(Failure::stalled(format!("no {what} of `{}` has ended", arguments.service)))
    })?;
    let request = RerunRequest { run: last.id.clone(), from_start: arguments.from_start };
    let done: Done = client.post("reruns", &request).await?;
    output.done(&done)
}
