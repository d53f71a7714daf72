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
use crate::server::view::{
    ConditionView, ConfigDetail, ConfigView, HistoryRow, HookView, ImageTagView, List, PlanView, RevisionView,
    RunDetail, RunsWithView, StepView,
};

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
    let found = ConfigName(name.to_owned()).find(client, global).await;
    let shown = |target: &str, version: u32| format!("rollout history {target} --revision {version}");
    let found = target::or_its_version(found, name, client, global, shown).await?;
    let detail: ConfigDetail = client.get(&config_path(&found), &[]).await?;
    let history: List<HistoryRow> = client.get(&format!("{}/history", config_path(&found)), &[]).await?;
    let config = &detail.config;
    let place = [("project", Some(&*config.project)), ("stage", Some(&*config.stage))];
    let mut controllers: List<ConfigView> = match config.controllers.is_empty() {
        true => List { items: Vec::new(), damaged: Vec::new() },
        false => client.get("deployments", &place).await?,
    };
    controllers.items.retain(|other| other.deployed_by.as_ref() == Some(&config.name));
    output.show(&detail, |detail| human_config(detail, &history, &controllers))
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

fn human_config(detail: &ConfigDetail, history: &List<HistoryRow>, controllers: &List<ConfigView>) -> String {
    let mut text = config_facts(detail);
    if !controllers.items.is_empty() {
        text.push_str(&format!("\n{}\n{}", heading("Controllers"), of_controllers(controllers)));
    }
    if !detail.conditions.is_empty() {
        text.push_str(&format!("\n{}\n{}", heading("Conditions"), conditions(&detail.conditions)));
    }
    if !detail.warnings.is_empty() {
        text.push_str(&format!("\n{}\n", heading("Warnings")));
        text.extend(detail.warnings.iter().map(|warning| format!("  {warning}\n")));
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

fn config_facts(detail: &ConfigDetail) -> String {
    let config = &detail.config;
    let wanted = match config.during_test {
        Some(pods) => format!("{pods} wanted (during test)"),
        None => format!("{} wanted", config.desired),
    };
    let pods = match (config.ready, config.current) {
        (Some(ready), Some(current)) => format!("{wanted}, {current} there, {ready} ready"),
        _ => wanted,
    };
    let pods = match &config.scaled_by {
        Some(by) => format!("{pods}; scaled by {by} until Git asks for another number"),
        None => pods,
    };
    facts(&[
        ("Name", config.name.clone()),
        ("Project", config.project.clone()),
        ("Stage", config.stage.clone()),
        ("Service", config.service.clone()),
        ("Repository", config.repository.clone()),
        ("Namespace", config.namespace.clone()),
        ("Deployed by", config.deployed_by.as_ref().map(|leader| format!("dc/{leader}")).unwrap_or_default()),
        ("Strategy", [strategy(config)].into_iter().chain(detail.hooks.iter().map(hook)).collect()),
        ("Triggers", if config.deployed_by.is_some() { String::new() } else { config.triggers.clone() }),
        ("Images", images(config)),
        ("Pods", pods),
        ("Serving", serving(config)),
        ("Drift", config.drift.clone().unwrap_or_default()),
        ("Runs with", detail.runs_with.iter().map(runs_with).collect::<Vec<_>>().join(", ")),
        ("Status", colored(&config.status)),
    ])
}

/// `ConfigMap/colors as it was for version 1`.
fn runs_with(object: &RunsWithView) -> String {
    let RunsWithView { kind, name, declared, versions } = object;
    let versions: Vec<String> = versions.iter().map(u32::to_string).collect();
    let earlier = match versions.as_slice() {
        [] => String::new(),
        [version] => format!(" as it was for version {version}"),
        several => format!(" as it was for versions {}", several.join(" and ")),
    };
    let gone = if *declared { "" } else { " (declared no longer)" };
    format!("{kind}/{name}{earlier}{gone}")
}

/// What answers, and in which parts.
fn serving(config: &ConfigView) -> String {
    let serving = config
        .serving
        .as_ref()
        .map_or("nothing".to_owned(), |version| format!("version {} of {}", version.version, short(&version.commit)));
    let parts = config.traffic.iter().map(|part| format!("{} % for version {}", part.percent, part.version));
    let kept = config.kept.iter().map(|kept| format!("version {} is kept until {}", kept.version, kept.until));
    let serving = [serving].into_iter().chain(parts).chain(kept).collect::<Vec<_>>().join(", ");
    unrecorded(config).map_or(serving.clone(), |there| format!("{there}; on record is {serving}"))
}

/// A hook below its strategy, in the words of `oc describe`.
fn hook(hook: &HookView) -> String {
    let point = match hook.point.as_str() {
        "pre" => "Pre-deployment",
        "mid" => "Mid-deployment",
        "post" => "Post-deployment",
        other => other,
    };
    let kind = if hook.kind == "pod" { "pod type" } else { "tag images" };
    let tags = hook.tags.iter().map(|tag| format!("container {} to {}", tag.container, tag.to));
    // A script of several lines is told on one.
    let command = hook.command.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
    let more = facts(&[
        ("Container", hook.container.clone()),
        ("Image", hook.image.clone().unwrap_or_default()),
        ("Command", command),
        ("Env", hook.environment.join(", ")),
        ("Volumes", hook.volumes.join(", ")),
        ("Tag", tags.collect::<Vec<_>>().join(", ")),
        ("Timeout", hook.timeout_seconds.map(|seconds| format!("{seconds}s")).unwrap_or_default()),
        ("Retries", hook.retries.map(|retries| retries.to_string()).unwrap_or_default()),
    ]);
    let lines: String = more.lines().map(|line| format!("\n    {line}")).collect();
    format!("\n  {point} hook ({kind}, failure policy: {}):{lines}", hook.failure_policy)
}

fn conditions(conditions: &[ConditionView]) -> String {
    let mut table = Table::new(["TYPE", "STATUS", "REASON", "MESSAGE"]);
    for condition in conditions {
        let ConditionView { kind, status, reason, message } = condition.clone();
        table.row([kind, status, reason.unwrap_or_default(), message]);
    }
    table.render("None.")
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
pub(super) fn facts(facts: &[(&str, String)]) -> String {
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 2;
    let line = |(name, value): &(&str, String)| format!("{:width$}{value}\n", format!("{name}:"));
    facts.iter().filter(|(_, value)| !value.is_empty()).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::view::TagView;

    #[test]
    fn what_a_version_runs_with_is_told_as_it_is_declared_now() {
        let told = |declared, versions: &[u32]| {
            let (kind, name) = ("ConfigMap".to_owned(), "colors".to_owned());
            runs_with(&RunsWithView { kind, name, declared, versions: versions.to_vec() })
        };
        assert_eq!(told(true, &[1]), "ConfigMap/colors as it was for version 1");
        assert_eq!(told(true, &[1, 3]), "ConfigMap/colors as it was for versions 1 and 3");
        assert_eq!(told(false, &[]), "ConfigMap/colors (declared no longer)");
        assert_eq!(told(false, &[2]), "ConfigMap/colors as it was for version 2 (declared no longer)");
    }

    #[test]
    fn a_hook_is_told_as_upstream_tells_it() {
        let pod = HookView {
            point: "pre".into(),
            kind: "pod".into(),
            failure_policy: "Retry".into(),
            container: "web".into(),
            command: vec!["sh".into(), "-c".into(), "a\nb".into()],
            environment: vec!["A".into(), "B".into()],
            ..HookView::default()
        };
        assert_eq!(
            hook(&pod),
            "\n  Pre-deployment hook (pod type, failure policy: Retry):\n    Container: web\n    Command:   sh -c a b\n    Env:       A, B"
        );
        let tags = HookView {
            point: "analysis-2".into(),
            kind: "tagImages".into(),
            failure_policy: "Abort".into(),
            tags: vec![TagView { container: "web".into(), to: "app:live".into() }],
            ..HookView::default()
        };
        assert_eq!(
            hook(&tags),
            "\n  analysis-2 hook (tag images, failure policy: Abort):\n    Tag:       container web to app:live"
        );
    }
}
