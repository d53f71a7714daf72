//! `launchway down`.

use std::time::{Duration, Instant};

use clap::Args;

use super::arguments::Global;
use super::client::Client;
use super::daemon;
use super::output::{Complaint, Outcome, Output};
use super::target;
use crate::control::commands::Done;
use crate::error::Failure;
use crate::server::view::{List, PodView, RepositoryView, ServiceView};

/// How long to pause before asking again whether everything has ended.
const PERIOD: Duration = Duration::from_millis(100);
/// How long it may take; pods with a longer grace period end later, without anybody waiting.
const PATIENCE: Duration = Duration::from_secs(120);

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
        Client::Daemon(_) => match over_daemon(global, &repository.name).await {
            // It ended meanwhile, and what it was about to end is still there.
            Err(_) if Client::is_gone(global).await => alone(global, &repository.name).await?,
            done => done?,
        },
        Client::Store { .. } => alone(global, &repository.name).await?,
    };
    output.done(&done)
}

async fn over_daemon(global: &Global, repository: &str) -> Outcome<Done> {
    let client = Client::to_act(global).await?;
    let done = client.post(&format!("repositories/{repository}/down"), &serde_json::json!({})).await?;
    wait_until_gone(&client, repository).await?;
    Ok(done)
}

/// Without a daemon.
async fn alone(global: &Global, repository: &str) -> Outcome<Done> {
    let message = daemon::take_down(&global.state_folder()?, &repository.into()).await?;
    Ok(Done { message, ..Done::default() })
}

/// Waits until no pod of the repository runs and no service of it answers, unless somebody wants them back.
async fn wait_until_gone(client: &Client, repository: &str) -> Outcome<()> {
    let started = Instant::now();
    let parameters = [("repository", Some(repository))];
    loop {
        let state: RepositoryView = client.get(&format!("repositories/{repository}"), &[]).await?;
        if state.status != "Down" {
            let by = state.up_by.map_or_else(String::new, |by| format!(" by {by}"));
            return Err(Complaint::failed(Failure::stalled(format!(
                "{repository} was brought up again{by} meanwhile"
            ))));
        }
        let pods: List<PodView> = client.get("pods", &parameters).await?;
        let services: List<ServiceView> = client.get("services", &parameters).await?;
        let alive = |pod: &&PodView| matches!(pod.status.as_str(), "Starting" | "Ready" | "Stopping");
        let running: Vec<&PodView> = pods.items.iter().filter(alive).collect();
        if running.is_empty() && services.items.is_empty() {
            return Ok(());
        }
        if started.elapsed() > PATIENCE {
            let (pods, services) = (running.len(), services.items.len());
            let why = running.iter().find(|pod| !pod.message.is_empty());
            let why = why.map(|pod| format!("; pod {}: {}", pod.name, pod.message)).unwrap_or_default();
            let message = format!("{pods} pods and {services} services of {repository} still end{why}");
            return Err(Failure::waiting(message).hint("`launchway get pods` shows them").into());
        }
        tokio::time::sleep(PERIOD).await;
    }
}
