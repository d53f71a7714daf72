//! `launchway scale dc/NAME`.

use clap::Args;

use super::arguments::Global;
use super::client::Client;
use super::output::{Outcome, Output};
use super::target::{ConfigName, config_path};
use crate::control::commands::Done;
use crate::server::api::act::ScaleRequest;

/// Change the number of pods until the next change in Git
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  launchway scale dc/web --replicas 3 -s dev")]
pub(super) struct Arguments {
    /// The deployment config
    #[arg(value_name = "dc/NAME")]
    config: ConfigName,
    /// How many pods
    #[arg(long, value_name = "N")]
    replicas: u32,
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let client = Client::to_act(global).await?;
    let config = arguments.config.find(&client, global).await?;
    let request = ScaleRequest { replicas: arguments.replicas };
    let done: Done = client.post(&format!("{}/scale", config_path(&config)), &request).await?;
    output.done(&done)
}
