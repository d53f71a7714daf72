//! `launchway repository check`: whether repositories answer, whether their hosts call, and how far pods are kept apart here.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use super::webhook;
use crate::cli::arguments::Global;
use crate::cli::client::Client;
use crate::cli::get::short;
use crate::cli::output::{Complaint, Exit, Outcome, Output};
use crate::cli::serve::load;
use crate::clock::SystemClock;
use crate::config::{RepositorySettings, Settings};
use crate::control::repository;
use crate::error::{Context, Failure, Result};
use crate::model::ids::CommitId;
use crate::runtime::local::Reach;
use crate::server::view::RepositoryView;
use crate::source::{Remote, RemoteUrl, default_branch, remote_head, without_branch};

/// What is to be checked.
pub(super) struct Asked<'a> {
    pub(super) which: Option<&'a str>,
    pub(super) branch: Option<&'a str>,
    pub(super) config: Option<&'a Path>,
    pub(super) register_webhook: bool,
}

/// What a check found.
#[derive(Debug, Serialize)]
struct Checked {
    url: String,
    branch: String,
    /// Where the branch is.
    head: Option<String>,
    problem: Option<String>,
    hint: Option<String>,
    /// Whether its host takes statuses: nothing, if it has none that does.
    statuses: Option<Tried>,
    /// Whether its host takes deployments: nothing, if it is not to show any.
    deployments: Option<Tried>,
    /// Whether the hosts of the code that it deploys take statuses, by their names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    code: BTreeMap<String, Tried>,
    /// What the daemon that watches it could not write, if it could not, such as to an environment that is protected.
    unwritten: Option<String>,
    /// Whether its host takes pull requests: nothing, if it has none that does.
    pull_requests: Option<Tried>,
    /// Whether its host calls.
    webhook: Option<webhook::Found>,
    /// What has the webhook registered.
    #[serde(skip)]
    command: String,
    /// What its pods would be kept from here.
    isolation: Reach,
}

/// Whether a host takes what was tried out.
#[derive(Debug, Serialize)]
struct Tried {
    problem: Option<String>,
    hint: Option<String>,
}

pub(super) async fn run(asked: &Asked<'_>, global: &Global, output: &mut Output) -> Outcome {
    let settings = asked.config.map(load).transpose()?;
    let repositories = match &settings {
        Some(settings) => configured(settings, asked.which)?,
        None => Vec::new(),
    };
    let remotes = match &settings {
        Some(settings) => {
            let opened = |it| repository::opened(settings, it, Arc::new(SystemClock));
            futures::future::try_join_all(repositories.iter().copied().map(opened)).await?
        }
        None => vec![without_credentials(asked.which.unwrap_or_default(), asked.branch)?],
    };
    let check = move || {
        let reach = Reach::on_this_machine()?;
        Ok(remotes.into_iter().map(|remote| check(remote, &reach)).collect::<Vec<Checked>>())
    };
    let checked: Result<Vec<Checked>> =
        tokio::task::spawn_blocking(check).await.or_transient(|| "the check broke off".to_owned())?;
    let mut checked = checked?;
    if let (Some(settings), Some(config)) = (&settings, asked.config) {
        let state = global.state.clone().or_else(|| settings.state.clone());
        let client = Client::to_read(&Global { state, ..global.clone() }).await;
        for (checked, repository) in checked.iter_mut().zip(repositories) {
            let clock = Arc::new(SystemClock);
            checked.statuses = tried(repository::try_statuses(settings, repository, clock.clone()).await);
            checked.deployments = tried(repository::try_deployments(settings, repository, clock.clone()).await);
            for code in &repository.code {
                let found = tried(repository::try_statuses(settings, code, clock.clone()).await);
                checked.code.extend(found.map(|found| (code.name.to_string(), found)));
            }
            let base = &checked.branch;
            checked.pull_requests = tried(repository::try_pull_requests(settings, repository, clock, base).await);
            let registers = asked.register_webhook;
            let task = webhook::Task { settings, repository, registers, client: &client };
            checked.webhook = webhook::check(&task).await;
            checked.unwritten = unwritten(&client, repository).await;
            let (name, config) = (&repository.name, config.display());
            checked.command = format!("launchway repository check {name} --config {config} --register-webhook");
        }
    }
    output.show(&checked, |checked| {
        let isolation = checked.first().map(|checked| isolation(&checked.isolation));
        checked.iter().map(human).chain(isolation).collect()
    })?;
    // Whoever wants no pull requests gives no right to open them.
    let has_failed = |checked: &Checked| {
        let webhook = checked.webhook.as_ref().is_some_and(webhook::Found::has_failed);
        let tried = checked.statuses.iter().chain(&checked.deployments).chain(checked.code.values());
        let tried = tried.into_iter().any(|tried| tried.problem.is_some());
        checked.problem.is_some() || tried || (asked.register_webhook && webhook)
    };
    Ok(if checked.iter().any(has_failed) { Exit::Failed } else { Exit::Good })
}

/// What the daemon says that it could not write; nothing, if none answers or nothing is missing.
async fn unwritten(client: &Outcome<Client>, repository: &RepositorySettings) -> Option<String> {
    let Ok(client @ Client::Daemon(_)) = client else { return None };
    let known: Option<RepositoryView> = client.find(&format!("repositories/{}", repository.name)).await.ok()?;
    known?.status_problem
}

/// What came of trying something out; nothing, if there was nothing to be tried.
fn tried(tried: Result<Option<()>>) -> Option<Tried> {
    match tried {
        Ok(tried) => tried.map(|()| Tried { problem: None, hint: None }),
        Err(failure) => Some(Tried { problem: Some(failure.one_line()), hint: failure.hint_text().map(str::to_owned) }),
    }
}

fn without_credentials(location: &str, branch: Option<&str>) -> Result<Remote> {
    Ok(Remote::new(RemoteUrl::parse(location, true)?, branch.unwrap_or_default()))
}

/// The repositories of a configuration, or the one that is named.
fn configured<'a>(settings: &'a Settings, name: Option<&str>) -> Outcome<Vec<&'a RepositorySettings>> {
    let named = |settings: &&RepositorySettings| name.is_none_or(|name| settings.name.as_str() == name);
    let found: Vec<&RepositorySettings> = settings.repositories.iter().filter(named).collect();
    if found.is_empty() {
        let names: Vec<&str> = settings.repositories.iter().map(|settings| settings.name.as_str()).collect();
        let failure = Failure::stalled(format!("the configuration has no repository `{}`", name.unwrap_or_default()));
        return Err(Complaint::usage(failure.hint(format!("it has {}", names.join(", ")))));
    }
    Ok(found)
}

/// Whether a repository answers, and what its branch says.
fn check(mut remote: Remote, reach: &Reach) -> Checked {
    let found = head(&mut remote);
    let (head, failure) = (found.as_ref().ok().map(ToString::to_string), found.as_ref().err());
    Checked {
        url: remote.url.to_string(),
        branch: remote.branch,
        head,
        problem: failure.map(Failure::one_line),
        hint: failure.and_then(Failure::hint_text).map(str::to_owned),
        statuses: None,
        code: BTreeMap::new(),
        deployments: None,
        unwritten: None,
        pull_requests: None,
        webhook: None,
        command: String::new(),
        isolation: reach.clone(),
    }
}

fn head(remote: &mut Remote) -> Result<CommitId> {
    if remote.branch.is_empty() {
        remote.branch = default_branch(remote)?;
    }
    remote_head(remote)?.ok_or_else(|| without_branch(remote, false))
}

fn human(checked: &Checked) -> String {
    let Checked { url, branch, head, problem, hint, webhook, command, .. } = checked;
    let own = [
        ("statuses", &checked.statuses, "the token may write them"),
        ("deployments", &checked.deployments, "the token may write them"),
        ("pull requests", &checked.pull_requests, "the token may open them"),
    ];
    let own = own.into_iter().filter_map(|(what, tried, good)| Some((what.to_owned(), tried.as_ref()?, good)));
    let code = |(name, tried)| (format!("statuses on the code `{name}`"), tried, "the token may write them");
    let tried = own.chain(checked.code.iter().map(code)).map(|(what, Tried { problem, hint }, good)| {
        let hint = hint.iter().map(|hint| format!("  hint: {hint}\n")).collect::<String>();
        let told = problem.as_deref().unwrap_or(good);
        format!("  {what}: {told}\n{hint}")
    });
    let webhook = webhook.as_ref().map(|webhook| webhook.human(command));
    let unwritten = checked.unwritten.as_ref().map(|problem| format!("  not written by the daemon: {problem}\n"));
    let webhook: String = tried.chain(unwritten).chain(webhook).collect();
    match (head, problem) {
        (Some(head), _) => format!("{url} answers; `{branch}` is at {}\n{webhook}", short(head)),
        (None, problem) => {
            let hint = hint.iter().map(|hint| format!("  hint: {hint}\n")).collect::<String>();
            format!("{url}: {}\n{hint}{webhook}", problem.as_deref().unwrap_or_default())
        }
    }
}

/// What pods of this user's daemon are kept from on this machine, and what not.
fn isolation(reach: &Reach) -> String {
    let sockets = if reach.sockets { "its sockets" } else { "connecting to its sockets, which do not answer them" };
    let parts =
        [(reach.files, "the state folder"), (reach.sockets, sockets), (reach.processes, "the processes of others")];
    let named = |holds: bool| {
        let names: Vec<&str> = parts.iter().filter(|part| part.0 == holds).map(|part| part.1).collect();
        names.join(", ")
    };
    match (named(true), named(false)) {
        (kept, open) if open.is_empty() => format!("pods of this user are kept from {kept}\n"),
        (kept, open) => {
            let kept = if kept.is_empty() { "nothing" } else { &kept };
            let why = reach.problems.join("; ");
            format!("pods of this user are kept from {kept} here, and not from {open}: {why}\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pods_are_not_kept_from_is_said_with_the_reason() {
        let whole = Reach { files: true, sockets: true, processes: true, problems: vec!["no Landlock".into()] };
        let told = isolation(&whole);
        assert_eq!(told, "pods of this user are kept from the state folder, its sockets, the processes of others\n");
        let told = isolation(&Reach { sockets: false, ..whole });
        let open = "here, and not from connecting to its sockets, which do not answer them: no Landlock\n";
        assert!(told.ends_with(open), "{told}");
    }

    #[test]
    fn a_folder_without_a_repository_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let remote = without_credentials(&folder.path().display().to_string(), None).expect("a path");
        assert!(check(remote, &Reach::default()).problem.is_some());
    }
}
