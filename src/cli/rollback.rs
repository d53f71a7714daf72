//! `launchway rollback`: one deployment config, several, or all of a stage.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::Value;

use super::arguments::Global;
use super::client::Client;
use super::here;
use super::output::{Complaint, Exit, Outcome, Output};
use super::target::{self, ConfigName};
use crate::control::commands::Done;
use crate::control::commands::propose::ProposalView;
use crate::engine::rollback::evaluate::{Alteration, Evaluation};
use crate::error::{Context, Failure};
use crate::manifest::rollback::{RollbackRequest, RollbackSettings, requests};
use crate::server::api::rollback::RollbacksRequest;
use crate::server::view::{ConfigView, List};

/// The most bytes of a file with requests.
const LARGEST_FILE: u64 = 1 << 20;
/// The most characters of a value in what people read.
const MOST_OF_A_VALUE: usize = 100;

/// Go back to what ran before, one or several deployment configs together: all of them, or none
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  launchway rollback dc/web -s production --dry-run\n  launchway rollback dc/web dc/api -s production --notes 'orders fail'\n  launchway rollback --all --to-revision 1a2b3c4 -s production\n  launchway rollback -f request.json"
)]
pub(super) struct Arguments {
    /// The deployment configs, or Deployments
    #[arg(value_name = "dc/NAME")]
    names: Vec<ConfigName>,
    /// The version to go back to [default: the last complete one before]
    #[arg(long, value_name = "N", conflicts_with_all = ["to_revision", "file"])]
    to_version: Option<u32>,
    /// To what was deployed when this revision had been applied
    #[arg(long, value_name = "REV")]
    to_revision: Option<String>,
    /// Only labels and strategy, or only template, replicas and selector
    #[arg(long, value_name = "PART", conflicts_with = "file")]
    only: Option<Part>,
    /// Why; it stands in the history
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    notes: Option<String>,
    /// Only say what that would do
    #[arg(long)]
    dry_run: bool,
    /// All deployment configs of the stage
    #[arg(long, requires = "to_revision", conflicts_with_all = ["names", "file"])]
    all: bool,
    /// A file with requests in OpenShift's proposed form, `-` for standard input
    #[arg(short, long, value_name = "FILE", conflicts_with = "names")]
    file: Option<PathBuf>,
    /// Propose it as a pull request that restores the files; merging it deploys it
    #[arg(long)]
    pull_request: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Part {
    /// Labels and strategy
    Config,
    /// Template, replicas and selector
    Application,
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let rollbacks = asked(arguments)?;
    let client = Client::to_act(global).await?;
    let (project, stage) = match rollbacks.is_empty() {
        true => whole_stage(&client, global).await?,
        false => one_stage(&rollbacks, &client, global).await?,
    };
    let request = RollbacksRequest {
        project,
        stage,
        rollbacks,
        all: arguments.all.then(|| settings(arguments, None)),
        to_revision: arguments.to_revision.as_deref().map(here::commit),
        dry_run: arguments.dry_run,
        pull_request: arguments.pull_request,
    };
    let done: Done = client.post("rollbacks", &request).await?;
    output.show(&done, |done| {
        let proposed = done.proposal.as_deref().map(|proposal| proposed(proposal, arguments.dry_run));
        format!("{}{}", told(done), proposed.unwrap_or_default())
    })?;
    let refused = done.proposal.as_ref().is_some_and(|proposal| proposal.state == "refused");
    Ok(if refused { Exit::Failed } else { Exit::Good })
}

/// What goes back, with what is to be known of it.
pub(super) fn told(done: &Done) -> String {
    // A proposal begins from what Git says, which may serve nowhere.
    let otherwise = if done.proposal.is_some() { "what Git declares" } else { "nothing" };
    let evaluated = done.evaluations.iter().map(|evaluation| evaluated(evaluation, otherwise));
    format!("{}\n{}", done.message, evaluated.collect::<String>())
}

/// What is asked for by name or file; nothing, if all of a stage is meant.
fn asked(arguments: &Arguments) -> Outcome<Vec<RollbackRequest>> {
    if let Some(file) = &arguments.file {
        return from_file(file);
    }
    if arguments.names.is_empty() && !arguments.all {
        let failure = Failure::stalled("nothing is named that goes back");
        return Err(Complaint::usage(failure.hint("name it as `dc/NAME`, or `--all --to-revision REV`, or `-f FILE`")));
    }
    if arguments.names.len() > 1 && arguments.to_version.is_some() {
        let failure = Failure::stalled("several deployment configs have no version in common");
        return Err(Complaint::usage(failure.hint("go back to a revision, or write a file with a release for each")));
    }
    let request = |ConfigName(name): &ConfigName| {
        let release = arguments.to_version.map(|version| format!("{name}-{version}"));
        RollbackRequest::new(name.clone(), settings(arguments, release))
    };
    Ok(arguments.names.iter().map(request).collect())
}

fn settings(arguments: &Arguments, release: Option<String>) -> RollbackSettings {
    RollbackSettings {
        release,
        config: !matches!(arguments.only, Some(Part::Application)),
        application: !matches!(arguments.only, Some(Part::Config)),
        strategy: None,
        notes: arguments.notes.clone().unwrap_or_default(),
    }
}

fn from_file(path: &Path) -> Outcome<Vec<RollbackRequest>> {
    let name = path.display().to_string();
    let mut bytes = Vec::new();
    let read = match path.as_os_str() == "-" {
        true => io::stdin().lock().take(LARGEST_FILE + 1).read_to_end(&mut bytes),
        false => File::open(path).and_then(|file| file.take(LARGEST_FILE + 1).read_to_end(&mut bytes)),
    };
    read.or_stalled(|| format!("cannot read `{name}`"))?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(Complaint::usage(Failure::stalled(format!("`{name}` has more than {LARGEST_FILE} bytes"))));
    }
    requests(&name, &bytes).map_err(|problems| {
        let told = problems.iter().map(|problem| format!("{problem:#}")).collect::<Vec<_>>().join("\n");
        Complaint::failed(Failure::stalled(told))
    })
}

/// Where the deployment configs are that are named: those of one rollback are in one stage.
async fn one_stage(rollbacks: &[RollbackRequest], client: &Client, global: &Global) -> Outcome<(String, String)> {
    let mut place: Option<(String, String)> = None;
    for request in rollbacks {
        let found = ConfigName(request.id.clone()).find(client, global).await;
        let back = |target: &str, version: u32| format!("rollback {target} --to-version {version}");
        let found = target::or_its_version(found, &request.id, client, global, back).await?;
        let here = (found.project, found.stage);
        if let Some(other) = place.replace(here.clone()).filter(|other| *other != here) {
            let message = format!(
                "`{}` is in stage {} of {}, and another in {} of {}",
                request.id, here.1, here.0, other.1, other.0
            );
            return Err(Complaint::usage(Failure::stalled(message).hint("choose one stage with `-s`")));
        }
    }
    place.ok_or_else(|| Complaint::usage(Failure::stalled("nothing is named that goes back")))
}

/// The stage all of which goes back.
async fn whole_stage(client: &Client, global: &Global) -> Outcome<(String, String)> {
    let repository = target::repository(client, global.repository.as_deref()).await?;
    let parameters = [("repository", Some(repository.name.as_str())), ("stage", global.stage.as_deref())];
    let found: List<ConfigView> = client.get("deployments", &parameters).await?;
    let mut places: Vec<(String, String)> = found.items.into_iter().map(|it| (it.project, it.stage)).collect();
    places.sort();
    places.dedup();
    target::only(places, "stage", |(_, stage)| format!("-s {stage}"))
}

/// What is proposed: all of it, where nothing was proposed yet.
fn proposed(proposal: &ProposalView, dry_run: bool) -> String {
    if !dry_run {
        return String::new();
    }
    let ProposalView { branch, title, body, files, diff, .. } = proposal;
    let files: String = files.iter().map(|file| format!("  {file}\n")).collect();
    format!("\nbranch: {branch}\nfiles:\n{files}\n{diff}\ntitle: {title}\n\n{body}")
}

/// What is to be known of one deployment config that goes back from a version, or from something else.
fn evaluated(evaluation: &Evaluation, otherwise: &str) -> String {
    let Evaluation { title, from, to, changes, hooks, warnings, .. } = evaluation;
    let serves = from.map_or_else(|| otherwise.to_owned(), |from| format!("version {from}"));
    let mut text = format!("\n{title}: from {serves} to what version {to} was\n");
    let lines = changes.iter().map(|change| format!("  {}\n", altered(change)));
    text.extend(lines);
    if changes.is_empty() {
        text.push_str("  nothing differs\n");
    }
    text.extend(hooks.iter().map(|hook| format!("  runs {hook}\n")));
    text.extend(warnings.iter().map(|warning| format!("  warning: {warning}\n")));
    text
}

fn altered(change: &Alteration) -> String {
    let what = format!("{} {}", change.area.as_str(), change.name);
    match (&change.old, &change.new) {
        (Some(old), Some(new)) => format!("{what}: {} -> {}", short(old), short(new)),
        (None, Some(new)) => format!("{what}: added {}", short(new)),
        (Some(old), None) => format!("{what}: removed {}", short(old)),
        (None, None) => what,
    }
}

/// A value, or the one of an entry that holds little else.
fn short(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Object(entry) => match entry.get("value") {
            Some(Value::String(text)) => text.clone(),
            _ => value.to_string(),
        },
        value => value.to_string(),
    };
    match text.char_indices().nth(MOST_OF_A_VALUE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::engine::rollback::evaluate::Area;

    #[test]
    fn what_differs_is_a_line_each() {
        let change = |name: &str, old: Option<Value>, new: Option<Value>| {
            let (area, pointer) = (Area::Environment, String::new());
            Alteration { area, name: name.to_owned(), pointer, old, new }
        };
        for (change, expected) in [
            (change("main/A", Some("1".into()), Some("2".into())), "environment main/A: 1 -> 2"),
            (change("main/A", None, Some(json!({"name": "A", "value": "2"}))), "environment main/A: added 2"),
            (change("main/A", Some(json!({"name": "A"})), None), "environment main/A: removed {\"name\":\"A\"}"),
            (
                change("main/A", Some("x".repeat(200).into()), None),
                &format!("environment main/A: removed {}…", "x".repeat(100)),
            ),
        ] {
            assert_eq!(altered(&change), expected);
        }
    }
}
