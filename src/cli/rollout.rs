//! `launchway rollout VERB`: the words and the exit codes of `oc rollout`.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use super::arguments::Global;
use super::client::Client;
use super::describe::facts;
use super::get::short;
use super::output::{Complaint, Exit, Format, Outcome, Output, Table, colored, heading, yaml};
use super::place::{self, Place};
use super::rollback;
use super::target::{self, ConfigName, config_path};
use crate::control::commands::Done;
use crate::error::Failure;
use crate::server::api::act::{LatestRequest, UndoRequest};
use crate::server::view::{ConfigDetail, ConfigView, HistoryRow, List, PodCounts, RunDetail, StepView, VersionDetail};

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
        after_help = "Examples:\n  launchway rollout latest dc/web -s dev\n  launchway rollout latest --again dc/web\n  launchway rollout latest dc/web --dry-run\n  launchway rollout latest dc/web -o name"
    )]
    Latest {
        #[command(flatten)]
        config: Config,
        /// With the images that are there, whatever the tags of its image triggers lead to by now
        #[arg(long)]
        again: bool,
        #[command(flatten)]
        dry_run: DryRun,
    },
    /// Wait for the latest deployment and say how it ended
    #[command(after_help = "Example:\n  launchway rollout status dc/web -s production")]
    Status {
        #[command(flatten)]
        config: Config,
        /// Say how far it is, and do not wait
        #[arg(long)]
        no_watch: bool,
        /// Of this version [default: the latest]
        #[arg(long, value_name = "VERSION")]
        revision: Option<u32>,
    },
    /// List the versions: REVISION, STATUS, CAUSE; or show one, with what its pods look like
    #[command(
        after_help = "Examples:\n  launchway rollout history dc/web -s dev\n  launchway rollout history dc/web --revision 3"
    )]
    History {
        #[command(flatten)]
        config: Config,
        /// Only this version
        #[arg(long, value_name = "VERSION")]
        revision: Option<u32>,
    },
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
    #[command(
        after_help = "Examples:\n  launchway rollout undo dc/web -s production --to-revision 3\n  launchway rollout undo dc/web --dry-run"
    )]
    Undo {
        #[command(flatten)]
        config: Config,
        /// The version to go back to [default: the last complete one before]
        #[arg(long, value_name = "VERSION")]
        to_revision: Option<u32>,
        #[command(flatten)]
        dry_run: DryRun,
    },
}

#[derive(Debug, Args)]
struct Config {
    /// The deployment config
    #[arg(value_name = "dc/NAME")]
    name: ConfigName,
}

#[derive(Debug, Args)]
struct DryRun {
    /// Only say what that would do; `client` and `server` are the same here
    #[arg(
        long,
        value_name = "WHERE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "client",
        default_value = "none",
        hide_default_value = true
    )]
    dry_run: Where,
}

/// What `kubectl` and `oc` take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Where {
    /// Do it
    None,
    /// Only say it
    Client,
    /// Only say it
    Server,
}

impl DryRun {
    fn is_asked(&self) -> bool {
        self.dry_run != Where::None
    }
}

impl Arguments {
    /// Whether it says a name where that is all that is wanted.
    pub(super) fn says_name(&self) -> bool {
        matches!(self.verb, Verb::Latest { .. })
    }
}

/// As with `oc`, version 0 is the one that is meant anyhow.
fn named(version: Option<u32>) -> Option<u32> {
    version.filter(|version| *version > 0)
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    match &arguments.verb {
        Verb::Latest { config, again, dry_run } => {
            let request = LatestRequest { dry_run: dry_run.is_asked(), again: *again };
            latest(config, &request, global, output).await
        }
        Verb::Cancel(config) => cancel(config, global, output).await,
        Verb::Pause(config) => act(config, "pause", global, output).await,
        Verb::Resume(config) => act(config, "resume", global, output).await,
        Verb::Promote(config) => act(config, "promote", global, output).await,
        Verb::Retry(config) => act(config, "retry", global, output).await,
        Verb::Undo { config, to_revision, dry_run } => {
            let request = UndoRequest { to_version: named(*to_revision), dry_run: dry_run.is_asked() };
            undo(config, &request, global, output).await
        }
        Verb::History { config, revision } => history(config, named(*revision), global, output).await,
        Verb::Status { config, no_watch, revision } => {
            status(config, named(*revision), *no_watch, global, output).await
        }
    }
}

async fn act(config: &Config, action: &str, global: &Global, output: &mut Output) -> Outcome {
    let client = Client::to_act(global).await?;
    let found = config.find(&client, global, |target, _| format!("rollout {action} {target}")).await?;
    ask(&client, &format!("{}/{action}", config_path(&found)), &json!({}), output).await
}

async fn undo(config: &Config, request: &UndoRequest, global: &Global, output: &mut Output) -> Outcome {
    let client = Client::to_act(global).await?;
    let to_it = |target: &str, version: u32| format!("rollout undo {target} --to-revision {version}");
    let found = config.find(&client, global, to_it).await?;
    let done: Done = client.post(&format!("{}/undo", config_path(&found)), request).await?;
    output.show(&done, rollback::told)?;
    Ok(Exit::Good)
}

async fn latest(config: &Config, request: &LatestRequest, global: &Global, output: &mut Output) -> Outcome {
    let client = Client::to_act(global).await?;
    let found = config.find(&client, global, |target, _| format!("rollout latest {target}")).await?;
    let path = format!("{}/latest", config_path(&found));
    if output.format() != Format::Name {
        return ask(&client, &path, &json!(request), output).await;
    }
    let _done: Done = client.post(&path, request).await?;
    output.line(title(&found))?;
    Ok(Exit::Good)
}

impl Config {
    /// The deployment config; for who names a version of one, `command` says the same of that.
    async fn find(
        &self,
        client: &Client,
        global: &Global,
        command: impl Fn(&str, u32) -> String,
    ) -> Outcome<ConfigView> {
        let found = self.name.find(client, global).await;
        target::or_its_version(found, &self.name.0, client, global, command).await
    }
}

/// Also of what was never deployed, because a task comes before that.
async fn cancel(config: &Config, global: &Global, output: &mut Output) -> Outcome {
    let (client, name) = (Client::to_act(global).await?, &config.name.0);
    let found = place::of_delivered(name, &client, global).await;
    let command = |target: &str, _| format!("rollout cancel {target}");
    let Place { project, stage, .. } = target::or_its_version(found, name, &client, global, command).await?;
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

async fn history(config: &Config, revision: Option<u32>, global: &Global, output: &mut Output) -> Outcome {
    let client = Client::to_read(global).await?;
    let shown = |target: &str, version: u32| format!("rollout history {target} --revision {version}");
    let found = config.find(&client, global, shown).await?;
    let path = format!("{}/history", config_path(&found));
    if let Some(version) = revision {
        let detail: VersionDetail = client.get(&format!("{path}/{version}"), &[]).await?;
        let template = yaml(&detail.template)?;
        output.show(&detail, |detail| one_version(&found, detail, &template))?;
        return Ok(Exit::Good);
    }
    let rows: List<HistoryRow> = client.get(&path, &[]).await?;
    output.show(&rows, |rows| {
        let mut table = Table::new(["REVISION", "STATUS", "CAUSE"]);
        for row in &rows.items {
            table.row([row.version.to_string(), row.status.clone(), row.cause.clone()]);
        }
        format!("{}\n{}", title(&found), table.render("No rollout history found."))
    })?;
    Ok(Exit::Good)
}

/// A version with what its pods look like.
fn one_version(config: &ConfigView, detail: &VersionDetail, template: &str) -> String {
    let row = &detail.row;
    let told = facts(&[
        ("Status", colored(&row.status)),
        ("Cause", row.cause.clone()),
        ("Commit", short(&row.commit)),
        ("Message", row.message.clone()),
    ]);
    format!("{} with revision #{}\n{told}\n{}\n{template}", title(config), row.version, heading("Pod template"))
}

async fn status(
    config: &Config,
    revision: Option<u32>,
    no_watch: bool,
    global: &Global,
    output: &mut Output,
) -> Outcome {
    let client = Client::to_read(global).await?;
    let of_it = |target: &str, version: u32| format!("rollout status {target} --revision {version}");
    let found = config.find(&client, global, of_it).await?;
    let path = match revision {
        Some(version) => format!("runs/{}", of_version(&client, &found, version).await?),
        None => format!("runs/{}", of_latest(&found)?),
    };
    let mut said = String::new();
    loop {
        let detail: RunDetail = client.get(&path, &[]).await?;
        if detail.run.ended_at.is_some() {
            return ended(&subject(&found, &detail), &detail, output);
        }
        let pods = match revision {
            Some(_) => None,
            None => client.get::<ConfigDetail>(&config_path(&found), &[]).await?.pods,
        };
        let now = progress(&detail.steps, pods);
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

/// The run of a version that is known.
async fn of_version(client: &Client, config: &ConfigView, version: u32) -> Outcome<String> {
    let detail: VersionDetail = client.get(&format!("{}/history/{version}", config_path(config)), &[]).await?;
    Ok(detail.row.run)
}

/// The run of the version that was attempted last.
fn of_latest(config: &ConfigView) -> Outcome<&str> {
    let Some(version) = config.attempted.as_ref().or(config.serving.as_ref()) else {
        let failure = Failure::waiting(format!("{} waiting on {}", title(config), first_cause(config)));
        let hint = format!("`launchway why {}` says for what", config.target());
        return Err(Complaint::failed(failure.hint(hint)));
    };
    if config.status == "Down" {
        let failure = Failure::stalled(format!("{} does not run: its repository is down", title(config)));
        let hint = format!("`launchway sync {} --up` brings it back", config.repository);
        return Err(Complaint::failed(failure.hint(hint)));
    }
    Ok(&version.run)
}

/// What has to happen before there is a first version, in the words of `oc`.
fn first_cause(config: &ConfigView) -> String {
    match config.images.iter().any(|brought| brought.image.is_empty()) {
        true => "image update".to_owned(),
        false if config.triggers.is_empty() => {
            format!("manual update (use 'launchway rollout latest {}')", config.target())
        }
        false => "its first deployment".to_owned(),
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

/// Ends what a step says that counts pods.
const COUNTED: &str = " old pods";

/// How far it is: in the words of `oc` as long as pods are exchanged, with what else it is at.
fn progress(steps: &[StepView], pods: Option<PodCounts>) -> String {
    let step = steps.iter().find(|step| step.status == "running");
    let exchanged = pods.and_then(exchanged);
    // Pods are counted once.
    let says = |message: &str| !message.is_empty() && (exchanged.is_none() || !message.ends_with(COUNTED));
    let at = step.map(|step| match step.message.as_str() {
        message if says(message) => format!("{}: {message}", step.name),
        _ => format!("at {}", step.name),
    });
    let told = match (&exchanged, at.filter(|at| at != "at rollout")) {
        (Some(exchanged), None) => format!(": {exchanged}..."),
        (Some(exchanged), Some(at)) => format!(": {exchanged}... ({at})"),
        (None, Some(at)) => format!(": {at}..."),
        (None, None) => "...".to_owned(),
    };
    format!("Waiting for rollout to finish{told}")
}

/// How far pods are exchanged; nothing, once they are. Source: the words of `oc rollout status`.
fn exchanged(pods: PodCounts) -> Option<String> {
    let PodCounts { wanted, replicas, updated, available } = pods;
    let old = replicas.saturating_sub(updated);
    match () {
        () if updated < wanted => Some(format!("{updated} out of {wanted} new replicas have been updated")),
        () if old > 0 => Some(format!("{old} old replicas are pending termination")),
        () if available < updated => Some(format!("{available} of {updated} updated replicas are available")),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_are_counted_once_and_what_else_it_is_at_is_told() {
        let at = |name: &str, message: &str| {
            let step = json!({"name": name, "status": "running", "message": message, "runs": [], "tries": []});
            vec![serde_json::from_value::<StepView>(step).expect("a step")]
        };
        let some = PodCounts { wanted: 2, replicas: 2, updated: 1, available: 2 };
        let all = PodCounts { updated: 2, ..some };
        let (waits, counts) = (": 1 out of 2 new replicas have been updated...", "1 updated, 2 available, 1 old pods");
        for (steps, pods, expected) in [
            (at("rollout", counts), Some(some), waits.to_owned()),
            (at("step 1, 50 %", counts), Some(some), format!("{waits} (at step 1, 50 %)")),
            (at("pause 1", "waits for a person"), Some(some), format!("{waits} (pause 1: waits for a person)")),
            (at("pre", ""), Some(some), format!("{waits} (at pre)")),
            (at("post", ""), Some(all), ": at post...".to_owned()),
            (at("rollout", counts), None, format!(": rollout: {counts}...")),
            (Vec::new(), None, "...".to_owned()),
        ] {
            assert_eq!(progress(&steps, pods), format!("Waiting for rollout to finish{expected}"));
        }
    }

    #[test]
    fn pods_that_are_exchanged_are_told_in_the_words_of_oc() {
        for (wanted, replicas, updated, available, expected) in [
            (3, 3, 0, 3, Some("0 out of 3 new replicas have been updated")),
            (3, 4, 2, 3, Some("2 out of 3 new replicas have been updated")),
            (3, 4, 3, 3, Some("1 old replicas are pending termination")),
            (3, 3, 3, 2, Some("2 of 3 updated replicas are available")),
            (3, 3, 3, 3, None),
        ] {
            let found = exchanged(PodCounts { wanted, replicas, updated, available });
            assert_eq!(found.as_deref(), expected);
        }
    }
}
