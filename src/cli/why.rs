//! `launchway why SERVICE`.

use clap::Args;

use super::arguments::Global;
use super::client::Client;
use super::output::{Exit, Outcome, Output, heading};
use super::place::{self, Place};
use super::target::ConfigName;
use super::under_way::{self, was_before};
use crate::server::view::Explanation;

/// Explain what a service waits for
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  launchway why dc/web -s production")]
pub(super) struct Arguments {
    /// The deployment config whose service is meant, or a service that executors deliver
    #[arg(value_name = "dc/NAME")]
    config: ConfigName,
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let client = Client::to_read(global).await?;
    let (project, stage, service) = match place::of_anything(&arguments.config.0, &client, global).await {
        Ok(Place { project, stage, service, .. }) => (project, stage, service),
        // A service that executors deliver has no deployment config here.
        Err(unknown) => match under_way::place(&arguments.config.0, &client, global).await {
            Ok((project, stage)) => (project, stage, arguments.config.0.clone()),
            // Where something of it runs or ran, what matters is why there is no one place.
            Err(reason) if unknown.exit == Exit::Failed && was_before(&arguments.config.0, &client, global).await => {
                return Err(reason);
            }
            Err(_nothing) => return Err(unknown),
        },
    };
    let path = format!("services/{project}/{stage}/{service}/why");
    let explanation: Explanation = client.get(&path, &[]).await?;
    output.show(&explanation, human)?;
    Ok(Exit::Good)
}

fn human(explanation: &Explanation) -> String {
    if explanation.reasons.is_empty() {
        return format!("{} waits for nothing: it is what was pushed.\n", explanation.service);
    }
    let mut text = format!("{}\n", heading(&explanation.service));
    for reason in &explanation.reasons {
        text.push_str(&format!("  {}\n", reason.message));
        if let Some(hint) = &reason.hint {
            text.push_str(&format!("    {hint}\n"));
        }
    }
    text
}
