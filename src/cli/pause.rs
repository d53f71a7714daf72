//! `launchway pause [SERVICE]` and `launchway resume [SERVICE]`.

use clap::Args;

use super::arguments::Global;
use super::client::Client;
use super::hold::project;
use super::output::{Complaint, Outcome, Output};
use super::under_way;
use crate::control::commands::Done;
use crate::error::Failure;
use crate::server::api::keptn::PauseRequest;

/// Have what is under way for a service begin no further task, in this stage and all that follow
///
/// The task that it is at goes on to its end. Other deliveries have their turn meanwhile. Without a service, nothing in the stage
/// begins a task, and nothing new begins there.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  launchway pause web -s dev\n  launchway pause -s production")]
pub(super) struct Pause {
    /// The service [default: all that is in the stage]
    #[arg(value_name = "SERVICE")]
    service: Option<String>,
}

/// Let what was paused go on
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  launchway resume web -s dev\n  launchway resume -s production")]
pub(super) struct Resume {
    /// The service [default: the stage that was paused]
    #[arg(value_name = "SERVICE")]
    service: Option<String>,
}

pub(super) async fn pause(arguments: &Pause, global: &Global, output: &mut Output) -> Outcome {
    set(arguments.service.as_deref(), true, global, output).await
}

pub(super) async fn resume(arguments: &Resume, global: &Global, output: &mut Output) -> Outcome {
    set(arguments.service.as_deref(), false, global, output).await
}

async fn set(service: Option<&str>, paused: bool, global: &Global, output: &mut Output) -> Outcome {
    let client = Client::to_act(global).await?;
    let (project, stage) = match (service, &global.stage) {
        (Some(service), _) => under_way::place(service, &client, global).await?,
        (None, Some(stage)) => (project(&client, global).await?, stage.clone()),
        (None, None) => {
            let failure = Failure::stalled("neither a service nor a stage is named");
            return Err(Complaint::usage(failure.hint("`--stage STAGE` means all of a stage")));
        }
    };
    let request = PauseRequest { project, stage, service: service.map(str::to_owned), paused };
    let done: Done = client.post("pauses", &request).await?;
    output.done(&done)
}
