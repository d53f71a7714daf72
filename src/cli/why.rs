//! `launchway why SERVICE`.

use std::collections::BTreeSet;

use clap::Args;

use super::arguments::Global;
use super::client::Client;
use super::get::short;
use super::output::{Complaint, Exit, Outcome, Output, heading};
use super::target::{self, ConfigName};
use crate::error::Failure;
use crate::server::view::{ChangeView, ConfigView, Explanation, List, PlanView, RepositoryView, RevisionView};

/// Explain what a service waits for
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  launchway why dc/web -s production")]
pub(super) struct Arguments {
    /// The deployment config whose service is meant
    #[arg(value_name = "dc/NAME")]
    config: ConfigName,
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let client = Client::to_read(global).await?;
    let Place { project, stage, service, .. } = place(&arguments.config.0, &client, global).await?;
    let path = format!("services/{project}/{stage}/{service}/why");
    let explanation: Explanation = client.get(&path, &[]).await?;
    output.show(&explanation, human)?;
    Ok(Exit::Good)
}

/// Where a service is, or is to be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    repository: String,
    project: String,
    stage: String,
    service: String,
}

/// The service of a deployment config, also of one that was planned and never deployed.
async fn place(name: &str, client: &Client, global: &Global) -> Outcome<Place> {
    let (repository, stage) = (global.repository.as_deref(), global.stage.as_deref());
    let parameters = [("name", Some(name)), ("repository", repository), ("stage", stage)];
    let deployed: List<ConfigView> = client.get("deployments", &parameters).await?;
    let mut places: BTreeSet<Place> = deployed.items.into_iter().map(Place::from).collect();
    let mut unread = Vec::new();
    let watched: List<RepositoryView> = client.get("repositories", &[]).await?;
    for watched in watched.items.iter().filter(|watched| repository.is_none_or(|name| name == watched.name)) {
        let parameters = [("repository", Some(watched.name.as_str())), ("limit", Some("1"))];
        let last: List<RevisionView> = client.get("revisions", &parameters).await?;
        let Some(last) = last.items.into_iter().next() else { continue };
        if let (Some(id), Some(project)) = (&last.plan, &watched.project) {
            let plan: PlanView = client.get(&format!("plans/{id}"), &[]).await?;
            places.extend(planned(&plan, name, stage, watched, project));
        }
        unread
            .extend(last.problems.first().map(|problem| format!("{} is not deployed: {problem}", short(&last.commit))));
    }
    if let (true, Some(problem)) = (places.is_empty(), unread.into_iter().next()) {
        let failure = Failure::stalled(format!("there is no deployment config `{name}`, and {problem}"));
        return Err(Complaint::failed(failure.hint("push a fix; `launchway validate` checks files before a push")));
    }
    let choice = |place: &Place| format!("-r {} -s {}", place.repository, place.stage);
    target::only(places.into_iter().collect(), &format!("deployment config `{name}`"), choice)
}

fn planned(plan: &PlanView, name: &str, stage: Option<&str>, watched: &RepositoryView, project: &str) -> Vec<Place> {
    let named = plan.changes.iter().filter(|change| change.kind == "DeploymentConfig" && change.name == name);
    let chosen = named.filter(|change| stage.is_none_or(|stage| stage == change.stage));
    let place = |change: &ChangeView| Place {
        repository: watched.name.clone(),
        project: project.to_owned(),
        stage: change.stage.clone(),
        service: change.service.clone(),
    };
    chosen.map(place).collect()
}

impl From<ConfigView> for Place {
    fn from(config: ConfigView) -> Self {
        let ConfigView { repository, project, stage, service, .. } = config;
        Self { repository, project, stage, service }
    }
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
