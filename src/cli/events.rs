//! `launchway events`.

use clap::Args;

use super::arguments::Global;
use super::client::Client;
use super::get;
use super::output::{Exit, Outcome, Output};
use super::target::Target;
use crate::server::view::{EventView, List};

/// Show what runs were told, oldest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  launchway events\n  launchway events run/shop/dev/web-3")]
pub(super) struct Arguments {
    /// Only of this run, as `run/ID`
    #[arg(value_name = "RUN")]
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
        Some(Target::Run(id) | Target::Config(id)) => Some(id.as_str()),
        Some(Target::Revision(_) | Target::Pod(_)) | None => None,
    };
    let (after, limit) = (arguments.after.to_string(), arguments.limit.to_string());
    let parameters = [("run", run), ("after", Some(after.as_str())), ("limit", Some(limit.as_str()))];
    let list: List<EventView> = client.get("events", &parameters).await?;
    output.show(&list, get::events)?;
    Ok(Exit::Good)
}
