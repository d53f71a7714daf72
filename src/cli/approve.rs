//! `launchway approve SERVICE` and `launchway reject SERVICE`.

use clap::Args;

use super::arguments::Global;
use super::client::Client;
use super::here;
use super::output::{Outcome, Output};
use super::under_way;
use crate::control::commands::Done;
use crate::server::api::keptn::ApprovalRequest;

/// Let a sequence go on that waits for approval
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  launchway approve web -s production --revision 890b149 --reason 'seen by ann'")]
pub(super) struct Approve {
    #[command(flatten)]
    about: About,
}

/// End a sequence that waits for approval
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  launchway reject web -s production --reason 'not before monday'")]
pub(super) struct Reject {
    #[command(flatten)]
    about: About,
}

#[derive(Clone, Debug, Args)]
struct About {
    /// Of this service
    #[arg(value_name = "SERVICE")]
    service: String,
    /// Why; it is said on the commit
    #[arg(long, value_name = "TEXT", default_value_t)]
    reason: String,
    /// This run, where more than one waits
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// Only if it is this revision that waits
    #[arg(long, value_name = "REV")]
    revision: Option<String>,
}

pub(super) async fn approve(arguments: &Approve, global: &Global, output: &mut Output) -> Outcome {
    decide(&arguments.about, true, global, output).await
}

pub(super) async fn reject(arguments: &Reject, global: &Global, output: &mut Output) -> Outcome {
    decide(&arguments.about, false, global, output).await
}

async fn decide(about: &About, approve: bool, global: &Global, output: &mut Output) -> Outcome {
    let client = Client::to_act(global).await?;
    let (project, stage) = under_way::place(&about.service, &client, global).await?;
    let About { service, reason, run, revision } = about.clone();
    let revision = revision.as_deref().map(here::commit);
    let request = ApprovalRequest { project, stage, service, approve, reason, run, asked: None, revision };
    let done: Done = client.post("approvals", &request).await?;
    output.done(&done)
}
