//! `launchway down`.

use clap::Args;

use super::arguments::Global;
use super::client::Client;
use super::daemon;
use super::output::{Exit, Outcome, Output};
use super::target;
use crate::control::command::Done;

/// Stop what a repository runs here, with or without a daemon; nothing comes back by itself
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  launchway down\n  launchway down shop")]
pub(super) struct Arguments {
    /// The repository [default: the only one]
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let client = Client::to_read(global).await?;
    let name = arguments.name.as_deref().or(global.repository.as_deref());
    let repository = target::repository(&client, name).await?;
    let done = match &client {
        Client::Daemon { .. } => {
            let client = Client::to_act(global).await?;
            client.post(&format!("repositories/{}/down", repository.name), &serde_json::json!({})).await?
        }
        Client::Store { .. } => Done {
            message: daemon::take_down(&global.state_folder()?, &repository.name.as_str().into()).await?,
            runs: Vec::new(),
        },
    };
    output.show(&done, |done| format!("{}\n", done.message))?;
    Ok(Exit::Good)
}
