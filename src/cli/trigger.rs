//! `launchway trigger delivery`.

use clap::{Args, Subcommand};

use super::arguments::Global;
use super::client::Client;
use super::hold::project;
use super::output::{Outcome, Output};
use crate::control::commands::Done;
use crate::server::api::act::DeliveryRequest;

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
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let What::Delivery { service, force } = &arguments.what;
    let client = Client::to_act(global).await?;
    let project = project(&client, global).await?;
    let request =
        DeliveryRequest { project, stage: global.stage.clone(), service: service.clone(), force: force.clone() };
    let done: Done = client.post("deliveries", &request).await?;
    output.done(&done)
}
