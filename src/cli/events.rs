//! `launchway events`.

use clap::Args;

use super::arguments::Global;
use super::client::Client;
use super::get;
use super::output::{Complaint, Exit, Outcome, Output};
use super::target::{ConfigName, Target};
use crate::error::Failure;
use crate::server::view::{EventView, List, RunDetail};

/// Show what runs were told, oldest first
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  launchway events\n  launchway events run/shop/dev/web-3\n  launchway events dc/web -s dev"
)]
pub(super) struct Arguments {
    /// Only of this run, as `run/ID`, or of the latest version of a deployment config, as `dc/NAME`
    #[arg(value_name = "TARGET")]
    target: Option<Target>,
    /// Only after this number
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    after: i64,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 1000)]
    limit: u32,
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let client = Client::to_read(global).await?;
    let run = match &arguments.target {
        Some(target) => Some(run_of(target, &client, global).await?),
        None => None,
    };
    let (after, limit) = (arguments.after.to_string(), arguments.limit.to_string());
    let parameters = [("run", run.as_deref()), ("after", Some(after.as_str())), ("limit", Some(limit.as_str()))];
    let list: List<EventView> = client.get("events", &parameters).await?;
    output.show(&list, get::events)?;
    Ok(Exit::Good)
}

/// The run whose events are meant, which must be there.
async fn run_of(target: &Target, client: &Client, global: &Global) -> Outcome<String> {
    match target {
        Target::Run(id) => {
            let detail: RunDetail = client.get(&format!("runs/{id}"), &[]).await?;
            Ok(detail.run.id)
        }
        Target::Config(name) => {
            let config = ConfigName(name.clone()).find(client, global).await?;
            let latest = config.attempted.or(config.serving);
            let none = || Complaint::failed(Failure::waiting(format!("`{name}` was never deployed")));
            latest.map(|version| version.run).ok_or_else(none)
        }
        Target::Revision(_) | Target::Pod(_) => {
            let failure = Failure::stalled("only runs and deployment configs have events");
            Err(Complaint::usage(failure.hint("`launchway get runs` lists runs")))
        }
    }
}
