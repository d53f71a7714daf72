//! `launchway prune`.

use clap::Args;

use super::arguments::Global;
use super::client::Client;
use super::output::{Outcome, Output};
use crate::control::commands::Done;
use crate::server::api::act::PruneRequest;

/// Delete what nothing needs any more: old runs, revisions, statuses, output and launchables
///
/// The daemon does so by itself every hour, as `retention` of its configuration says. What serves stays, and what a
/// rollback may want: as many old versions as `revisionHistoryLimit` of a deployment config says.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  launchway prune --dry-run\n  launchway prune")]
pub(super) struct Arguments {
    /// Only say what would be deleted
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let client = Client::to_act(global).await?;
    let done: Done = client.post("prune", &PruneRequest { dry_run: arguments.dry_run }).await?;
    output.done(&done)
}
