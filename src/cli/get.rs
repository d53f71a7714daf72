//! `launchway get KIND`.

use std::collections::BTreeSet;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::arguments::Global;
use super::client::Client;
use super::listing::Listing;
use super::moment::age;
use super::output::{Complaint, Exit, Outcome, Output, Table, remark};
use crate::error::Failure;
use crate::server::view::{
    ConfigView, EventView, HoldView, ImageTagView, List, PodView, RepositoryView, RevisionView, RunView, ServiceView,
    SinkView,
};

/// Where deployment configs are asked for.
const DEPLOYMENTS: &str = "deployments";

/// List what runs, what is watched, and what happened
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  launchway get dc\n  launchway get pods web -s production --all\n  launchway get pods -w\n  launchway get holds -o json"
)]
pub(super) struct Arguments {
    /// What to list; without it, the kinds are listed
    kind: Option<Kind>,
    /// Only of this name
    name: Option<String>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: u32,
    /// Ended pods too
    #[arg(long)]
    all: bool,
    /// Go on with what changes, until Ctrl-C
    #[arg(short, long, requires = "kind")]
    watch: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    /// Deployment configs
    #[value(
        alias = "dc",
        alias = "deploy",
        alias = "deployment",
        alias = "deploymentconfig",
        alias = "deploymentconfigs"
    )]
    Deployments,
    /// Tags of image streams, and what they lead to
    #[value(name = "imagestreams", alias = "is", alias = "imagestream", alias = "istag")]
    ImageStreams,
    /// Services with their addresses
    #[value(alias = "svc", alias = "service")]
    Services,
    /// Pods
    #[value(alias = "pod", alias = "po")]
    Pods,
    /// Runs, newest first
    #[value(alias = "run")]
    Runs,
    /// Revisions, newest first
    #[value(alias = "revision", alias = "commits")]
    Revisions,
    /// Watched repositories
    #[value(alias = "repository", alias = "repo", alias = "repos")]
    Repositories,
    /// Why something may not change
    #[value(alias = "hold")]
    Holds,
    /// Who is told what happens, and whether they take it
    #[value(alias = "sink")]
    Sinks,
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let Some(kind) = arguments.kind else {
        output.show(&KindView::all(), |kinds| kinds_table(kinds))?;
        return Ok(Exit::Good);
    };
    let client = Client::to_read(global).await?;
    let limit = arguments.limit.to_string();
    let parameters = [
        ("repository", global.repository.as_deref()),
        ("stage", global.stage.as_deref()),
        ("name", arguments.name.as_deref()),
        ("limit", Some(limit.as_str())),
    ];
    let listing = Listing { client: &client, parameters: &parameters, watch: arguments.watch };
    list((kind, arguments.all), listing, output).await?;
    Ok(Exit::Good)
}

/// A kind that can be listed.
#[derive(Debug, Serialize)]
struct KindView {
    kind: String,
    short: String,
    what: String,
}

impl KindView {
    fn all() -> Vec<Self> {
        let values = Kind::value_variants().iter().filter_map(Kind::to_possible_value);
        let kind = |value: PossibleValue| Self {
            kind: value.get_name().to_owned(),
            short: value.get_name_and_aliases().min_by_key(|name| name.len()).unwrap_or_default().to_owned(),
            what: value.get_help().map(ToString::to_string).unwrap_or_default(),
        };
        values.map(kind).collect()
    }
}

fn kinds_table(kinds: &[KindView]) -> String {
    let mut table = Table::new(["KIND", "SHORT", "WHAT"]);
    kinds.iter().for_each(|it| table.row([it.kind.clone(), it.short.clone(), it.what.clone()]));
    table.render("")
}

async fn list((kind, all): (Kind, bool), listing: Listing<'_>, output: &mut Output) -> Outcome<()> {
    match kind {
        Kind::Deployments => {
            let list: List<ConfigView> = listing.read(DEPLOYMENTS).await?;
            if list.items.is_empty() && !listing.watch {
                refuse_unknown(listing).await?;
            }
            listing.show_read(list, DEPLOYMENTS, |_| true, deployments, output).await
        }
        Kind::ImageStreams => listing.show("imagestreams", |_| true, image_tags, output).await,
        Kind::Services => listing.show("services", |_| true, services, output).await,
        Kind::Pods => listing.show("pods", |pod: &PodView| all || !pod.has_ended(), pods, output).await,
        Kind::Runs => listing.show("runs", |_| true, runs, output).await,
        Kind::Revisions => listing.show("revisions", |_| true, revisions, output).await,
        Kind::Repositories => listing.show("repositories", |_| true, repositories, output).await,
        Kind::Holds => listing.show("holds", |_| true, holds, output).await,
        Kind::Sinks => listing.show("sinks", |_| true, sinks, output).await,
    }
}

/// Who mistypes what is deployed, or its stage, must not believe that it is there and empty.
async fn refuse_unknown(Listing { client, parameters, .. }: Listing<'_>) -> Outcome<()> {
    let given = |wanted: &str| parameters.iter().find(|(name, _)| *name == wanted)?.1;
    let stage = given("stage");
    if let Some(name) = given("name") {
        let place = stage.map_or_else(String::new, |stage| format!(" in stage {stage}"));
        let failure = Failure::stalled(format!("there is no deployment config `{name}`{place}"));
        return Err(Complaint::failed(failure.hint("`launchway get deployments` lists what there is")));
    }
    let Some(stage) = stage else { return Ok(()) };
    let everywhere: List<ConfigView> = client.get(DEPLOYMENTS, &[("repository", given("repository"))]).await?;
    let stages: BTreeSet<&str> = everywhere.items.iter().map(|config| config.stage.as_str()).collect();
    if !stages.is_empty() {
        let stages: Vec<&str> = stages.into_iter().collect();
        remark(format!("nothing is in stage {stage}; what is deployed is in {}", stages.join(", ")));
    }
    Ok(())
}

fn deployments(list: &List<ConfigView>) -> String {
    let mut table = Table::new([
        "NAME",
        "REPOSITORY",
        "STAGE",
        "REVISION",
        "DESIRED",
        "CURRENT",
        "TRIGGERED BY",
        "SERVING",
        "STATUS",
    ]);
    for config in &list.items {
        table.row([
            config.name.clone(),
            config.repository.clone(),
            config.stage.clone(),
            revision(config).to_string(),
            config.during_test.map_or_else(|| config.desired.to_string(), |pods| format!("{pods} (during test)")),
            config.current.map(|current| current.to_string()).unwrap_or_default(),
            config.triggers.clone(),
            serving(config),
            config.status.clone(),
        ]);
    }
    table.without_common("REPOSITORY").render("Nothing is deployed.")
}

/// The version whose status is told: the one that was tried last, also where what served has come back as a newer one.
fn revision(config: &ConfigView) -> u32 {
    config.attempted.as_ref().map_or(config.latest_version, |attempted| attempted.version)
}

/// The version that serves, or those that have a part of the traffic: `1 (90 %), 2 (10 %)`; or what serves in its place.
fn serving(config: &ConfigView) -> String {
    if config.unrecorded > 0 {
        return format!("{} of an earlier store", some_pods(config.unrecorded));
    }
    if config.traffic.is_empty() {
        return config.serving.as_ref().map(|serving| serving.version.to_string()).unwrap_or_default();
    }
    let parts = config.traffic.iter().map(|part| format!("{} ({} %)", part.version, part.percent));
    parts.collect::<Vec<_>>().join(", ")
}

/// `1 pod`, `2 pods`.
pub(super) fn some_pods(count: u32) -> String {
    format!("{count} pod{}", if count == 1 { "" } else { "s" })
}

/// Also what `describe` prints of one stream.
pub(super) fn image_tags(list: &List<ImageTagView>) -> String {
    let mut table = Table::new(["NAME", "REPOSITORY", "STAGE", "FROM", "IMAGE", "TAGGED BY"]);
    for tag in &list.items {
        table.row([
            format!("{}:{}", tag.stream, tag.tag),
            tag.repository.clone(),
            tag.stage.clone(),
            tag.from.clone(),
            tag.image.clone(),
            tag.tagged_by.clone().unwrap_or_default(),
        ]);
    }
    table.without_common("REPOSITORY").render("No tag of an image stream is applied.")
}

fn services(list: &List<ServiceView>) -> String {
    let mut table = Table::new(["NAME", "NAMESPACE", "ADDRESS", "READY", "PROBLEM"]);
    for service in &list.items {
        let addresses = service.ports.iter().map(|port| format!("{}:{port}", service.address));
        table.row([
            service.name.clone(),
            service.namespace.clone(),
            addresses.collect::<Vec<_>>().join(" "),
            service.ready.to_string(),
            service.problem.clone().unwrap_or_default(),
        ]);
    }
    table.render("There are no services.")
}

fn pods(list: &List<PodView>) -> String {
    let mut table = Table::new(["NAME", "NAMESPACE", "STATUS", "RESTARTS", "AGE", "MESSAGE"]);
    for pod in &list.items {
        table.row([
            pod.name.clone(),
            pod.namespace.clone(),
            pod.status.clone(),
            pod.restarts.to_string(),
            age(&pod.created_at),
            pod.message.clone(),
        ]);
    }
    table.render("There are no pods.")
}

fn runs(list: &List<RunView>) -> String {
    let mut table = Table::new(["RUN", "NAME", "REPOSITORY", "STAGE", "SERVICE", "COMMIT", "STATUS", "AGE", "MESSAGE"]);
    for run in &list.items {
        table.row([
            run.id.clone(),
            run.name.clone(),
            run.repository.clone(),
            run.stage.clone(),
            run.service.clone(),
            short(&run.commit),
            run.status.clone(),
            age(&run.created_at),
            run.message.clone(),
        ]);
    }
    table.without_common("REPOSITORY").render("Nothing has run.")
}

fn revisions(list: &List<RevisionView>) -> String {
    let mut table = Table::new(["COMMIT", "REPOSITORY", "RESULT", "AGE", "SUBJECT"]);
    for revision in &list.items {
        table.row([
            short(&revision.commit),
            revision.repository.clone(),
            revision.result.clone(),
            age(&revision.at),
            revision.subject.clone(),
        ]);
    }
    table.render("No revision was synced.")
}

/// Also what `repository list` prints.
pub(super) fn repositories(list: &List<RepositoryView>) -> String {
    let mut table = Table::new(["NAME", "STATUS", "BRANCH", "APPLIED", "CHANGED", "SYNCED", "URL", "PROBLEM"]);
    let ago = |at: Option<&String>| at.map(|at| format!("{} ago", age(at))).unwrap_or_default();
    for repository in &list.items {
        table.row([
            repository.name.clone(),
            repository.status.clone(),
            repository.branch.clone(),
            repository.applied.as_deref().map(short).unwrap_or_default(),
            ago(repository.synced_at.as_ref()),
            ago(repository.polled_at.as_ref().or(repository.synced_at.as_ref())),
            repository.url.clone(),
            problems(repository),
        ]);
    }
    table.render("No repository is watched.")
}

fn problems(repository: &RepositoryView) -> String {
    let problems = [&repository.problem, &repository.status_problem];
    problems.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join("; ")
}

fn holds(list: &List<HoldView>) -> String {
    let mut table = Table::new(["HOLD", "SCOPE", "BY", "AGE", "REASON"]);
    for hold in &list.items {
        let age = hold.since.as_deref().map(age).unwrap_or_default();
        table.row([hold.id.clone(), hold.scope.clone(), hold.by.clone(), age, hold.reason.clone()]);
    }
    table.render("Nothing is held.")
}

fn sinks(list: &List<SinkView>) -> String {
    let mut table = Table::new(["NAME", "URL", "STATUS", "SINCE", "WAITING", "OLDEST", "PROBLEM"]);
    let ago = |at: Option<&String>| at.map(|at| format!("{} ago", age(at))).unwrap_or_default();
    for sink in &list.items {
        table.row([
            sink.name.clone(),
            sink.url.clone(),
            sink.status.clone(),
            ago(sink.failing_since.as_ref()),
            sink.waiting.to_string(),
            ago(sink.oldest.as_ref()),
            sink.problem.clone().unwrap_or_default(),
        ]);
    }
    table.render("Nobody is told what happens: the configuration has no `sinks`.")
}

/// Also what `launchway events` prints.
pub(super) fn events(list: &List<EventView>) -> String {
    let mut table = Table::new(["AGE", "RUN", "EVENT", "MESSAGE"]);
    for event in &list.items {
        table.row([age(&event.at), event.run.clone(), event.event.clone(), event.message.clone()]);
    }
    table.render("Nothing has happened.")
}

/// A commit as `git log --oneline` shows it.
pub(super) fn short(commit: &str) -> String {
    commit.get(..7).unwrap_or(commit).to_owned()
}
