//! `launchway hold`.

use clap::Args;

use super::arguments::Global;
use super::client::Client;
use super::output::{Complaint, Outcome, Output};
use super::target::{self, ConfigName};
use crate::control::commands::Done;
use crate::error::Failure;
use crate::server::api::act::HoldRequest;

/// Let nothing change in a project, a stage or a service
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  launchway hold dc/web -s production --reason 'sale until Monday'\n  launchway hold -s production --reason audit"
)]
pub(super) struct Hold {
    /// The deployment config whose service is held [default: the whole stage, or the whole project]
    #[arg(value_name = "dc/NAME")]
    config: Option<ConfigName>,
    /// Why, for those who wonder
    #[arg(long, value_name = "TEXT", default_value = "no reason given")]
    reason: String,
}

pub(super) async fn hold(arguments: &Hold, global: &Global, output: &mut Output) -> Outcome {
    let client = Client::to_act(global).await?;
    let request = match &arguments.config {
        Some(name) => {
            let config = name.find(&client, global).await?;
            let (stage, service) = (Some(config.stage), Some(config.service));
            HoldRequest { project: config.project, stage, service, reason: arguments.reason.clone() }
        }
        None => {
            let project = project(&client, global).await?;
            HoldRequest { project, stage: global.stage.clone(), service: None, reason: arguments.reason.clone() }
        }
    };
    let done: Done = client.post("holds", &request).await?;
    output.done(&done)
}

/// The project of the chosen repository.
pub(super) async fn project(client: &Client, global: &Global) -> Outcome<String> {
    let repository = target::repository(client, global.repository.as_deref()).await?;
    repository.project.ok_or_else(|| {
        let failure = Failure::waiting(format!("no revision of `{}` could be read yet", repository.name));
        Complaint::failed(failure.hint("`launchway repository list` says why"))
    })
}
