//! `launchway logs TARGET`.

use clap::Args;

use super::arguments::Global;
use super::client::Client;
use super::output::{Complaint, Exit, Outcome, Output};
use super::target::{self, Target};
use crate::error::Failure;

/// Show what pods, hooks and tasks printed
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  launchway logs dc/web -s dev\n  launchway logs dc/web -s dev -f\n  launchway logs pod/web-3-1 --bytes 2000\n  launchway logs run/shop/dev/web-3"
)]
pub(super) struct Arguments {
    /// Whose: dc/NAME, pod/NAME or run/ID
    #[arg(value_name = "TARGET")]
    target: Target,
    /// Only this container's
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,
    /// Go on with what they print, until they end
    #[arg(short, long)]
    follow: bool,
    /// The last so many bytes of each pod
    #[arg(long, value_name = "N")]
    bytes: Option<u64>,
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let client = Client::to_read(global).await?;
    let (kind, name) = match &arguments.target {
        Target::Config(name) => ("name", name),
        Target::Pod(name) => ("pod", name),
        Target::Run(id) => ("run", id),
        Target::Revision(_) => {
            let failure = Failure::stalled("a revision prints nothing");
            return Err(Complaint::usage(failure.hint("`launchway describe revision/REV` names its runs")));
        }
    };
    let repository = match &arguments.target {
        // A run's name says whose it is.
        Target::Run(_) => global.repository.clone(),
        _ => target::chosen_one(&client, global.repository.as_deref()).await?.map(|chosen| chosen.name),
    };
    let bytes = arguments.bytes.map(|bytes| bytes.to_string());
    let parameters = [
        (kind, Some(name.as_str())),
        ("repository", repository.as_deref()),
        ("stage", global.stage.as_deref()),
        ("container", arguments.container.as_deref()),
        ("bytes", bytes.as_deref()),
        ("follow", arguments.follow.then_some("true")),
    ];
    client.stream("logs", &parameters, |piece| output.bytes(piece)).await?;
    Ok(Exit::Good)
}
