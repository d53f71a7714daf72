//! `launchway describe TARGET`.

use clap::Args;

use super::arguments::Global;
use super::client::Client;
use super::get::{image_tags, short, some_pods};
use super::here;
use super::moment::age;
use super::output::{Complaint, Exit, Outcome, Output, Table, colored, heading};
use super::target::{self, ConfigName, Target, config_path};
use crate::error::Failure;
use crate::server::view::{ConfigView, HistoryRow, ImageTagView, List, PlanView, RevisionView, RunDetail, StepView};

/// Show everything about one thing
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  launchway describe dc/web -s dev\n  launchway describe run/shop/dev/web-3\n  launchway describe revision/1a2b3c4\n  launchway describe is/app"
)]
pub(super) struct Arguments {
    /// What: dc/NAME, run/ID, revision/REV or is/NAME
    #[arg(value_name = "TARGET")]
    target: Target,
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let client = Client::to_read(global).await?;
    match &arguments.target {
        Target::Config(name) => describe_config(&client, global, name, output).await?,
        Target::Run(id) => {
            let run: RunDetail = client.get(&format!("runs/{id}"), &[]).await?;
            output.show(&run, human_run)?;
        }
        Target::Revision(revision) => describe_revision(&client, global, revision, output).await?,
        Target::ImageStream(name) => describe_stream(&client, global, name, output).await?,
        Target::Pod(_) => {
            let failure = Failure::stalled("a pod has nothing to describe beyond `launchway get pods`");
            return Err(Complaint::usage(failure.hint("`launchway logs pod/NAME` shows its output")));
        }
    }
    Ok(Exit::Good)
}

async fn describe_config(client: &Client, global: &Global, name: &str, output: &mut Output) -> Outcome<()> {
    let config = ConfigName(name.to_owned()).find(client, global).await?;
    let history: List<HistoryRow> = client.get(&format!("{}/history", config_path(&config)), &[]).await?;
    let place = [("project", Some(&*config.project)), ("stage", Some(&*config.stage))];
    let mut controllers: List<ConfigView> = match config.controllers.is_empty() {
        true => List { items: Vec::new(), damaged: Vec::new() },
        false => client.get("deployments", &place).await?,
    };
    controllers.items.retain(|other| other.deployed_by.as_ref() == Some(&config.name));
    output.show(&config, |config| human_config(config, &history, &controllers))
}

async fn describe_stream(client: &Client, global: &Global, name: &str, output: &mut Output) -> Outcome<()> {
    let parameters =
        [("repository", global.repository.as_deref()), ("stage", global.stage.as_deref()), ("name", Some(name))];
    let tags: List<ImageTagView> = client.get("imagestreams", &parameters).await?;
    if tags.items.is_empty() {
        let failure = Failure::stalled(format!("no tag of an image stream `{name}` is applied"));
        return Err(Complaint::failed(failure.hint("`launchway get imagestreams` lists all")));
    }
    output.show(&tags, image_tags)
}

async fn describe_revision(client: &Client, global: &Global, revision: &str, output: &mut Output) -> Outcome<()> {
    let repository = target::repository(client, global.repository.as_deref()).await?;
    let commit = here::commit(revision);
    let view: RevisionView = client.get(&format!("revisions/{}/{commit}", repository.name), &[]).await?;
    let plan: Option<PlanView> = match &view.plan {
        Some(id) => Some(client.get(&format!("plans/{id}"), &[]).await?),
        None => None,
    };
    output.show(&view, |view| human_revision(view, plan.as_ref()))
}

fn human_config(config: &ConfigView, history: &List<HistoryRow>, controllers: &List<ConfigView>) -> String {
    let pods = match (config.ready, config.current) {
        (Some(ready), Some(current)) => format!("{} wanted, {current} there, {ready} ready", config.desired),
        _ => format!("{} wanted", config.desired),
    };
    let pods = match &config.scaled_by {
        Some(by) => format!("{pods}; scaled by {by} until Git asks for another number"),
        None => pods,
    };
    let serving = config
        .serving
        .as_ref()
        .map_or("nothing".to_owned(), |version| format!("version {} of {}", version.version, short(&version.commit)));
    let parts = config.traffic.iter().map(|part| format!("{} % for version {}", part.percent, part.version));
    let kept = config.kept.iter().map(|kept| format!("version {} is kept until {}", kept.version, kept.until));
    let serving = [serving].into_iter().chain(parts).chain(kept).collect::<Vec<_>>().join(", ");
    let serving = unrecorded(config).map_or(serving.clone(), |there| format!("{there}; on record is {serving}"));
    let mut text = facts(&[
        ("Name", config.name.clone()),
        ("Project", config.project.clone()),
        ("Stage", config.stage.clone()),
        ("Service", config.service.clone()),
        ("Repository", config.repository.clone()),
        ("Namespace", config.namespace.clone()),
        ("Deployed by", config.deployed_by.as_ref().map(|leader| format!("dc/{leader}")).unwrap_or_default()),
        ("Strategy", strategy(config)),
        ("Triggers", if config.deployed_by.is_some() { String::new() } else { config.triggers.clone() }),
        ("Images", images(config)),
        ("Pods", pods),
        ("Serving", serving),
        ("Status", colored(&config.status)),
    ]);
    if !controllers.items.is_empty() {
        text.push_str(&format!("\n{}\n{}", heading("Controllers"), of_controllers(controllers)));
    }
    text.push_str(&format!("\n{}\n", heading("Versions")));
    let mut table = Table::new(["REVISION", "STATUS", "CAUSE", "COMMIT", "AGE", "MESSAGE"]);
    for row in &history.items {
        let (cause, message) = (row.cause.clone(), row.message.clone());
        let version = row.version.to_string();
        table.row([version, row.status.clone(), cause, short(&row.commit), age(&row.created_at), message]);
    }
    text + &table.render("None.")
}

/// The replication controllers that a deployment config deploys.
fn of_controllers(controllers: &List<ConfigView>) -> String {
    let mut table = Table::new(["NAME", "REVISION", "DESIRED", "CURRENT", "READY", "SERVING", "STATUS"]);
    let count = |count: Option<u32>| count.map(|count| count.to_string()).unwrap_or_default();
    for config in &controllers.items {
        let serving = config.serving.as_ref().map(|serving| serving.version);
        let (revision, desired) = (config.latest_version.to_string(), config.desired.to_string());
        let (current, ready) = (count(config.current), count(config.ready));
        table.row([config.name.clone(), revision, desired, current, ready, count(serving), config.status.clone()]);
    }
    table.render("None.")
}

/// What serves in place of what is on record, and what to do about it.
fn unrecorded(config: &ConfigView) -> Option<String> {
    let there = some_pods(config.unrecorded);
    let until = format!(
        "until a deployment takes their place, such as by a push or `launchway rollout latest {}`",
        config.target()
    );
    (config.unrecorded > 0).then(|| format!("{there} from before the store was lost or restored, {until}"))
}

/// How a new version takes over, and who says so.
fn strategy(config: &ConfigView) -> String {
    let asked =
        |own: &String| format!("{}, which the stage's deploymentstrategy asks for; its own: {own}", config.strategy);
    config.overrides.as_ref().map_or(config.strategy.clone(), asked)
}

/// What its image triggers have brought.
fn images(config: &ConfigView) -> String {
    let told = config.images.iter().map(|brought| {
        let image = if brought.image.is_empty() { "none yet" } else { &brought.image };
        let by_hand = if brought.automatic { "" } else { " (not automatic)" };
        format!("{} from {}{by_hand} in {}", image, brought.tag, brought.containers.join(", "))
    });
    told.collect::<Vec<_>>().join("; ")
}

fn human_run(detail: &RunDetail) -> String {
    let run = &detail.run;
    let mut text = facts(&[
        ("Run", run.id.clone()),
        ("Name", run.name.clone()),
        ("Service", format!("{}/{}/{}", run.project, run.stage, run.service)),
        ("Commit", run.commit.clone()),
        ("Cause", run.cause.clone()),
        ("Attempt", run.attempt.to_string()),
        ("Status", colored(&run.status)),
        ("Message", run.message.clone()),
    ]);
    text.push_str(&format!("\n{}\n", heading("Steps")));
    for step in &detail.steps {
        text.push_str(&human_step(step));
    }
    if !detail.annotations.is_empty() {
        text.push_str(&format!("\n{}\n", heading("Annotations")));
        let lines = detail.annotations.iter().map(|(name, value)| format!("  {name}: {value}\n"));
        text.extend(lines);
    }
    text
}

fn human_step(step: &StepView) -> String {
    let mut text = format!("  {} {}", step.name, colored(&step.status));
    if !step.message.is_empty() {
        text.push_str(&format!(": {}", step.message));
    }
    text.push('\n');
    for id in &step.runs {
        text.push_str(&format!("    run/{id}\n"));
    }
    for attempt in &step.tries {
        text.push_str(&format!("    {} {}\n", attempt.pod, colored(&attempt.status)));
        for line in attempt.output.lines() {
            text.push_str(&format!("      {line}\n"));
        }
    }
    text
}

fn human_revision(revision: &RevisionView, plan: Option<&PlanView>) -> String {
    let mut text = facts(&[
        ("Commit", revision.commit.clone()),
        ("Subject", revision.subject.clone()),
        ("Repository", revision.repository.clone()),
        ("Result", colored(&revision.result)),
        ("Problems", revision.problems.join("; ")),
        ("Warnings", revision.warnings.join("; ")),
    ]);
    if let Some(plan) = plan {
        text.push_str(&format!("\n{}\n", heading("Plan")));
        let mut table = Table::new(["STAGE", "SERVICE", "OBJECT", "DECISION", "CAUSE"]);
        for change in &plan.changes {
            let object = format!("{}/{}", change.kind, change.name);
            let (stage, service) = (change.stage.clone(), change.service.clone());
            table.row([stage, service, object, change.decision.clone(), change.cause.clone()]);
        }
        text.push_str(&table.render("Nothing changes."));
    }
    text
}

/// Names and values, lined up; empty ones are left out.
fn facts(facts: &[(&str, String)]) -> String {
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 2;
    let line = |(name, value): &(&str, String)| format!("{:width$}{value}\n", format!("{name}:"));
    facts.iter().filter(|(_, value)| !value.is_empty()).map(line).collect()
}
