//! `launchway rollout VERB`: the words and the exit codes of `oc rollout`.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;

use super::arguments::Global;
use super::client::Client;
use super::output::{Complaint, Exit, Outcome, Output, Table};
use super::place::{self, Place};
use super::target::{ConfigName, config_path};
use crate::control::commands::Done;
use crate::error::Failure;
use crate::server::api::act::UndoRequest;
use crate::server::view::{ConfigView, HistoryRow, List, RunDetail};

/// How often `status` asks.
const PERIOD: Duration = Duration::from_millis(300);

/// Start, watch, end and undo deployments
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  launchway rollout status dc/web -s production\n  launchway rollout undo dc/web -s production"
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Deploy what is declared now, also if nothing changed
    #[command(
        after_help = "Examples:\n  launchway rollout latest dc/web -s dev\n  launchway rollout latest --again dc/web"
    )]
    Latest {
        #[command(flatten)]
        config: Config,
        /// With the images that are declared, and none that a trigger could bring; so it is without this too, as long as
        /// image triggers bring none
        #[arg(long)]
        again: bool,
    },
    /// Wait for the latest deployment and say how it ended
    #[command(after_help = "Example:\n  launchway rollout status dc/web -s production")]
    Status {
        #[command(flatten)]
        config: Config,
        /// Say how far it is, and do not wait
        #[arg(long)]
        no_watch: bool,
    },
    /// List the versions: REVISION, STATUS, CAUSE
    #[command(after_help = "Example:\n  launchway rollout history dc/web -s dev")]
    History(Config),
    /// End the deployment or the task that is under way
    #[command(after_help = "Example:\n  launchway rollout cancel dc/web -s dev")]
    Cancel(Config),
    /// Let nothing new start; of what is under way, the rollout of a Deployment stops where it is, any other goes on
    #[command(after_help = "Example:\n  launchway rollout pause dc/web -s production")]
    Pause(Config),
    /// Let a canary that waits go on, and what is paused
    #[command(after_help = "Example:\n  launchway rollout resume dc/web -s production")]
    Resume(Config),
    /// Give the new version everything: a canary skips the steps that are left, A/B ends
    #[command(after_help = "Example:\n  launchway rollout promote dc/web -s production")]
    Promote(Config),
    /// Attempt the failed latest version again
    #[command(after_help = "Example:\n  launchway rollout retry dc/web -s dev")]
    Retry(Config),
    /// Deploy what an earlier version was
    #[command(after_help = "Example:\n  launchway rollout undo dc/web -s production --to-revision 3")]
    Undo {
        #[command(flatten)]
        config: Config,
        /// The version to go back to [default: the last complete one before]
        #[arg(long, value_name = "VERSION")]
        to_revision: Option<u32>,
    },
}

#[derive(Debug, Args)]
struct Config {
    /// The deployment config
    #[arg(value_name = "dc/NAME")]
    name: ConfigName,
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    match &arguments.verb {
        Verb::Latest { config, again: _as_always } => act(config, "latest", &json!({}), global, output).await,
        Verb::Cancel(config) => cancel(config, global, output).await,
        Verb::Pause(config) => act(config, "pause", &json!({}), global, output).await,
        Verb::Resume(config) => act(config, "resume", &json!({}), global, output).await,
        Verb::Promote(config) => act(config, "promote", &json!({}), global, output).await,
        Verb::Retry(config) => act(config, "retry", &json!({}), global, output).await,
        Verb::Undo { config, to_revision } => {
            let request = json!(UndoRequest { to_version: *to_revision });
            act(config, "undo", &request, global, output).await
        }
        Verb::History(config) => history(config, global, output).await,
        Verb::Status { config, no_watch } => status(config, *no_watch, global, output).await,
    }
}

async fn act(
    config: &Config,
    action: &str,
    request: &serde_json::Value,
    global: &Global,
    output: &mut Output,
) -> Outcome {
    let client = Client::to_act(global).await?;
    let found = config.name.find(&client, global).await?;
    ask(&client, &format!("{}/{action}", config_path(&found)), request, output).await
}

/// Also of what was never deployed, because a task comes before that.
async fn cancel(config: &Config, global: &Global, output: &mut Output) -> Outcome {
    let (client, name) = (Client::to_act(global).await?, &config.name.0);
    let Place { project, stage, .. } = place::of_delivered(name, &client, global).await?;
    ask(&client, &format!("deployments/{project}/{stage}/{name}/cancel"), &json!({}), output).await
}

async fn ask(client: &Client, path: &str, request: &serde_json::Value, output: &mut Output) -> Outcome {
    let done: Done = client.post(path, request).await?;
    output.done(&done)
}

fn title(config: &ConfigView) -> String {
    let kind = if is_deployment(config) { "deployment.apps" } else { "deploymentconfig.apps.openshift.io" };
    format!("{kind}/{}", config.name)
}

fn is_deployment(config: &ConfigView) -> bool {
    config.kind == "Deployment"
}

async fn history(config: &Config, global: &Global, output: &mut Output) -> Outcome {
    let client = Client::to_read(global).await?;
    let found = config.name.find(&client, global).await?;
    let rows: List<HistoryRow> = client.get(&format!("{}/history", config_path(&found)), &[]).await?;
    output.show(&rows, |rows| {
        let mut table = Table::new(["REVISION", "STATUS", "CAUSE"]);
        for row in &rows.items {
            table.row([row.version.to_string(), row.status.clone(), row.cause.clone()]);
        }
        format!("{}\n{}", title(&found), table.render("No rollout history found."))
    })?;
    Ok(Exit::Good)
}

async fn status(config: &Config, no_watch: bool, global: &Global, output: &mut Output) -> Outcome {
    let client = Client::to_read(global).await?;
    let found = config.name.find(&client, global).await?;
    let Some(version) = found.attempted.as_ref().or(found.serving.as_ref()) else {
        let failure = Failure::waiting(format!("{} is waiting on its first deployment", title(&found)));
        let hint = format!("`launchway why {}` says for what", found.target());
        return Err(Complaint::failed(failure.hint(hint)));
    };
    if found.status == "Down" {
        let failure = Failure::stalled(format!("{} does not run: its repository is down", title(&found)));
        let hint = format!("`launchway sync {} --up` brings it back", found.repository);
        return Err(Complaint::failed(failure.hint(hint)));
    }
    let path = format!("runs/{}", version.run);
    let mut said = String::new();
    loop {
        let detail: RunDetail = client.get(&path, &[]).await?;
        if detail.run.ended_at.is_some() {
            return ended(&subject(&found, &detail), &detail, output);
        }
        let now = progress(&detail);
        if now != said {
            output.line(&now)?;
            said = now;
        }
        if no_watch {
            return Ok(Exit::Good);
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// What `oc` and `kubectl` speak of: the former of the version's replication controller.
fn subject(config: &ConfigView, detail: &RunDetail) -> String {
    match is_deployment(config) {
        true => format!("deployment \"{}\"", config.name),
        false => format!("replication controller \"{}\"", detail.run.name),
    }
}

fn ended(subject: &str, detail: &RunDetail, output: &mut Output) -> Outcome {
    match detail.run.status.as_str() {
        "success" => {
            output.line(format!("{subject} successfully rolled out"))?;
            Ok(Exit::Good)
        }
        "cancelled" | "superseded" => Err(Complaint::failed(Failure::stalled(format!("{subject} was cancelled")))),
        _ => {
            let message = format!("{subject} has failed progressing: {}", detail.run.message);
            Err(Complaint::failed(Failure::stalled(message)))
        }
    }
}

fn progress(detail: &RunDetail) -> String {
    let step = detail.steps.iter().find(|step| step.status == "running");
    match step {
        Some(step) if step.message.is_empty() => format!("Waiting for rollout to finish: at {}...", step.name),
        Some(step) => format!("Waiting for rollout to finish: {}: {}...", step.name, step.message),
        None => "Waiting for rollout to finish...".to_owned(),
    }
}
