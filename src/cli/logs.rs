//! `launchway logs TARGET`.

use std::time::Duration;

use clap::Args;

use super::arguments::Global;
use super::client::Client;
use super::output::{Complaint, Exit, Outcome, Output};
use super::target::{self, Target};
use crate::error::Failure;

/// Show what pods, hooks and tasks printed
///
/// Of a deployment config: the version that serves, and the one that was attempted last if that is another.
#[derive(Debug, Args)]
#[command(
    disable_version_flag = true,
    after_help = "Examples:\n  launchway logs dc/web -s dev -f\n  launchway logs dc/web --since 5m --timestamps\n  launchway logs dc/web --previous\n  launchway logs dc/web --version 3\n  launchway logs pod/web-3-1 --tail 20\n  launchway logs run/shop/dev/web-3"
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
    /// The last so many lines of each container
    #[arg(long, value_name = "N")]
    tail: Option<u64>,
    /// What was printed in this last time, such as 30s, 5m or 2h
    #[arg(long, value_name = "DURATION", conflicts_with = "since_time", value_parser = seconds)]
    since: Option<u64>,
    /// What was printed since this time, such as 2026-11-24T18:00:00Z
    #[arg(long, value_name = "TIME")]
    since_time: Option<jiff::Timestamp>,
    /// Put before each line when it was printed
    #[arg(long)]
    timestamps: bool,
    /// Of a deployment config the version before; of a pod what its containers printed before they were started again
    #[arg(short, long, conflicts_with = "all")]
    previous: bool,
    /// Of a deployment config this version
    #[arg(long, value_name = "N", conflicts_with_all = ["all", "previous"])]
    version: Option<u32>,
    /// Of a deployment config all versions whose pods are kept
    #[arg(long)]
    all: bool,
    /// The last so many bytes of each container
    #[arg(long, value_name = "N")]
    bytes: Option<u64>,
}

/// A duration as `kubectl` takes it, in seconds; a begun one counts.
fn seconds(text: &str) -> Result<u64, String> {
    let duration = text.parse::<jiff::SignedDuration>().ok().and_then(|duration| Duration::try_from(duration).ok());
    let duration = duration.ok_or("give a time such as 30s, 5m or 2h")?;
    Ok(duration.as_secs() + u64::from(duration.subsec_nanos() > 0))
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let client = Client::to_read(global).await?;
    let (kind, name) = match &arguments.target {
        Target::Config(name) => ("name", name),
        Target::Pod(name) => ("pod", name),
        Target::ImageStream(_) => {
            let failure = Failure::stalled("an image stream prints nothing");
            return Err(Complaint::usage(failure.hint("`launchway get imagestreams` shows what its tags lead to")));
        }
        Target::Run(id) => ("run", id),
        Target::Revision(_) => {
            let failure = Failure::stalled("a revision prints nothing");
            return Err(Complaint::usage(failure.hint("`launchway describe revision/REV` names its runs")));
        }
    };
    // As with `oc`, 0 means what is shown anyhow.
    let version = arguments.version.filter(|version| *version > 0);
    if version.is_some() && !matches!(arguments.target, Target::Config(_)) {
        let failure = Failure::stalled("only a deployment config has versions");
        return Err(Complaint::usage(failure.hint("name it as `dc/NAME`")));
    }
    let repository = match &arguments.target {
        // A run's name says whose it is.
        Target::Run(_) => global.repository.clone(),
        _ => target::chosen_one(&client, global.repository.as_deref()).await?.map(|chosen| chosen.name),
    };
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    let (bytes, tail, since) = (number(arguments.bytes), number(arguments.tail), number(arguments.since));
    let since_time = arguments.since_time.map(|time| time.to_string());
    let version = version.map(|version| version.to_string());
    let is = |flag: bool| flag.then_some("true");
    let parameters = [
        (kind, Some(name.as_str())),
        ("repository", repository.as_deref()),
        ("stage", global.stage.as_deref()),
        ("container", arguments.container.as_deref()),
        ("bytes", bytes.as_deref()),
        ("tail", tail.as_deref()),
        ("sinceSeconds", since.as_deref()),
        ("sinceTime", since_time.as_deref()),
        ("timestamps", is(arguments.timestamps)),
        ("previous", is(arguments.previous)),
        ("version", version.as_deref()),
        ("all", is(arguments.all)),
        ("follow", is(arguments.follow)),
    ];
    client.stream("logs", &parameters, |piece| output.bytes(piece)).await?;
    Ok(Exit::Good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_kubectl_reads_them() {
        for (text, expected) in [("30s", Some(30)), ("5m", Some(300)), ("1h30m", Some(5400)), ("1500ms", Some(2))] {
            assert_eq!(seconds(text).ok(), expected, "{text}");
        }
        for wrong in ["5", "yesterday", "-5m", ""] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
