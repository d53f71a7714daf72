//! `launchway abort SERVICE`.

use clap::Args;

use super::arguments::Global;
use super::client::Client;
use super::output::{Outcome, Output};
use super::under_way;
use crate::control::commands::Done;
use crate::server::api::keptn::AbortRequest;

/// End what is under way for a service
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  launchway abort web -s dev")]
pub(super) struct Arguments {
    /// The service
    #[arg(value_name = "SERVICE")]
    service: String,
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let client = Client::to_act(global).await?;
    let (project, stage) = under_way::place(&arguments.service, &client, global).await?;
    let done: Done =
        client.post("aborts", &AbortRequest { project, stage, service: arguments.service.clone() }).await?;
    output.done(&done)
}
