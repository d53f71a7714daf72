//! `launchway pause SERVICE` and `launchway resume SERVICE`.

use clap::Args;

use super::arguments::Global;
use super::client::Client;
use super::output::{Outcome, Output};
use super::under_way;
use crate::control::commands::Done;
use crate::server::api::keptn::PauseRequest;

/// Have what is under way for a service begin no further task, in this stage and all that follow
///
/// The task that it is at goes on to its end. Other deliveries have their turn meanwhile.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  launchway pause web -s dev")]
pub(super) struct Pause {
    /// The service
    #[arg(value_name = "SERVICE")]
    service: String,
}

/// Let what was paused go on
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  launchway resume web -s dev")]
pub(super) struct Resume {
    /// The service
    #[arg(value_name = "SERVICE")]
    service: String,
}

pub(super) async fn pause(arguments: &Pause, global: &Global, output: &mut Output) -> Outcome {
    set(&arguments.service, true, global, output).await
}

pub(super) async fn resume(arguments: &Resume, global: &Global, output: &mut Output) -> Outcome {
    set(&arguments.service, false, global, output).await
}

async fn set(service: &str, paused: bool, global: &Global, output: &mut Output) -> Outcome {
    let client = Client::to_act(global).await?;
    let (project, stage) = under_way::place(service, &client, global).await?;
    let done: Done =
        client.post("pauses", &PauseRequest { project, stage, service: service.to_owned(), paused }).await?;
    output.done(&done)
}
