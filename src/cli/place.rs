//! Where a deployment config is, or is to be: what is applied, what is being delivered, and what is planned.

use super::arguments::Global;
use super::client::Client;
use super::get::short;
use super::output::{Complaint, Outcome};
use super::target;
use crate::error::Failure;
use crate::server::view::{ChangeView, ConfigView, List, PlanView, RepositoryView, RevisionView, RunView};

/// The most open runs that are searched for what they deliver.
const MOST_RUNS: &str = "1000";

/// Where a service is, or is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) repository: String,
    pub(super) project: String,
    pub(super) stage: String,
    pub(super) service: String,
}

/// Of a deployment config that is applied; also of one that never was, if a delivery is under way that brings it.
pub(super) async fn of_delivered(name: &str, client: &Client, global: &Global) -> Outcome<Place> {
    let chosen = target::chosen(client, global.repository.as_deref()).await?;
    let mut places = applied(name, client, global, &chosen).await?;
    if places.is_empty() {
        places = delivered(name, client, global, &chosen).await?;
    }
    only(places, name, &chosen)
}

/// The same, or of one that was planned. Where it moves from one service to another, the last revision's counts.
pub(super) async fn of_anything(name: &str, client: &Client, global: &Global) -> Outcome<Place> {
    let chosen = target::chosen(client, global.repository.as_deref()).await?;
    let (mut places, mut unread) = (Vec::new(), Vec::new());
    let watched: List<RepositoryView> = client.get("repositories", &[]).await?;
    for watched in watched.items.iter().filter(|watched| target::may_be_of(&chosen, &watched.name)) {
        let parameters = [("repository", Some(watched.name.as_str())), ("limit", Some("1"))];
        let last: List<RevisionView> = client.get("revisions", &parameters).await?;
        let Some(last) = last.items.into_iter().next() else { continue };
        let problem =
            last.problems.first().map(|problem| format!("{} is not deployed: {problem}", short(&last.commit)));
        unread.extend(problem);
        let mut revisions = vec![last];
        for carrier in revisions[0].carriers.clone() {
            revisions.extend(client.find(&format!("revisions/{}/{carrier}", watched.name)).await?);
        }
        for id in revisions.iter().filter_map(|revision| revision.plan.as_ref()) {
            let plan: PlanView = client.get(&format!("plans/{id}"), &[]).await?;
            places.extend(planned(&plan, name, global.stage.as_deref(), watched));
        }
    }
    places.extend(applied(name, client, global, &chosen).await?);
    if places.is_empty() {
        places = delivered(name, client, global, &chosen).await?;
    }
    if let (true, Some(problem)) = (places.is_empty(), unread.into_iter().next()) {
        let failure = Failure::stalled(format!("there is no deployment config `{name}`, and {problem}"));
        return Err(Complaint::failed(failure.hint("push a fix; `launchway validate` checks files before a push")));
    }
    only(places, name, &chosen)
}

/// The only one; of those that a user could not tell apart, the first.
fn only(places: Vec<Place>, name: &str, sought: &[RepositoryView]) -> Outcome<Place> {
    let choice = |place: &Place| format!("-r {} -s {}", place.repository, place.stage);
    let mut chosen: Vec<Place> = Vec::new();
    for place in places {
        if chosen.iter().all(|other| choice(other) != choice(&place)) {
            chosen.push(place);
        }
    }
    target::only(chosen, &format!("deployment config `{name}`{}", target::among(sought)), choice)
}

async fn applied(name: &str, client: &Client, global: &Global, chosen: &[RepositoryView]) -> Outcome<Vec<Place>> {
    let found = target::applied(name, client, global, chosen).await?;
    Ok(found.into_iter().map(Place::from).collect())
}

/// Where open deliveries bring it.
async fn delivered(name: &str, client: &Client, global: &Global, chosen: &[RepositoryView]) -> Outcome<Vec<Place>> {
    let parameters = [
        ("kind", Some("sequence")),
        ("open", Some("true")),
        ("repository", global.repository.as_deref()),
        ("stage", global.stage.as_deref()),
        ("brings", Some(name)),
        ("limit", Some(MOST_RUNS)),
    ];
    let open: List<RunView> = client.get("runs", &parameters).await?;
    let meant = open.items.into_iter().filter(|run| target::may_be_of(chosen, &run.repository));
    let place = |RunView { repository, project, stage, service, .. }| Place { repository, project, stage, service };
    Ok(meant.map(place).collect())
}

fn planned(plan: &PlanView, name: &str, stage: Option<&str>, watched: &RepositoryView) -> Vec<Place> {
    let Some(project) = &watched.project else { return Vec::new() };
    let named = plan.changes.iter().filter(|change| is_of(change, name));
    let chosen = named.filter(|change| stage.is_none_or(|stage| stage == change.stage));
    let place = |change: &ChangeView| Place {
        repository: watched.name.clone(),
        project: project.clone(),
        stage: change.stage.clone(),
        service: change.service.clone(),
    };
    chosen.map(place).collect()
}

fn is_of(change: &ChangeView, name: &str) -> bool {
    change.kind == "DeploymentConfig" && change.name == name
}

impl From<ConfigView> for Place {
    fn from(config: ConfigView) -> Self {
        let ConfigView { repository, project, stage, service, .. } = config;
        Self { repository, project, stage, service }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_offered_once() {
        let place = |stage: &str, service: &str| Place {
            repository: "shop".into(),
            project: "shop".into(),
            stage: stage.into(),
            service: service.into(),
        };
        let moved = only(vec![place("dev", "new"), place("dev", "old")], "web", &[]);
        assert_eq!(moved.ok().map(|place| place.service), Some("new".to_owned()));
        let two = only(vec![place("dev", "web"), place("production", "web")], "web", &[]).expect_err("ambiguous");
        assert!(two.failure.hint_text().is_some_and(|hint| hint.contains("-s dev\n  -r shop -s production")));
    }
}
