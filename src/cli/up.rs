//! `launchway up`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use super::arguments::Global;
use super::daemon;
use super::output::{Complaint, Exit, Outcome, Output, colored};
use crate::config::{DEFAULT_POLL, RepositorySettings, Settings};
use crate::control::app::App;
use crate::control::commands::by_hand;
use crate::control::reporter;
use crate::error::{Failure, Result};
use crate::model::commit_status::{CommitStatus, StatusState};
use crate::model::ids::{CommitId, RepositoryName};
use crate::source::{Limits, RemoteUrl, Repository};
use crate::store::{ReadStore, RunFilter};

/// How many uncommitted files are named.
const FILES_NAMED: usize = 5;

/// Watch one repository and deploy what is pushed to it, on this machine
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  launchway up\n  launchway up ~/src/shop --branch main\n  launchway up https://git.example/shop.git --once"
)]
pub(super) struct Arguments {
    /// A work tree, a bare repository, or an address
    #[arg(value_name = "PATH or URL", default_value = ".")]
    location: String,
    /// The branch to watch [default: the one that the repository's HEAD names]
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// Bring the head up, or find that it fails, and end
    #[arg(long)]
    once: bool,
    /// Where the API, the page and webhooks are served [default: any free port of this machine]
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0", hide_default_value = true)]
    listen: std::net::SocketAddr,
    /// Allow git:// and http:// to other machines
    #[arg(long)]
    insecure: bool,
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let url = located(&arguments.location)?;
    let remote = RemoteUrl::parse(&url, arguments.insecure).map_err(Complaint::usage)?;
    let name = RepositoryName::new(remote.short_name());
    let settings = settings(arguments, &url, name.clone());
    let app = App::start(&settings, &global.state_folder()?).await?;
    by_hand::up(&app.driver, &name).await?;
    output.line(format!("watching {remote}, serving {}", app.url))?;
    if let Some(path) = remote.local_path() {
        name_uncommitted(path, output)?;
    }
    let work = async {
        match arguments.once {
            true => once(&app, &name, output).await,
            false => watch(&app, &name, output).await,
        }
    };
    let ended = tokio::select! {
        ended = work => ended,
        failure = app.lost() => Err(Complaint::from(failure)),
    };
    app.stop().await;
    ended
}

/// A path as an absolute one, an address as it is.
fn located(location: &str) -> Result<String, Complaint> {
    let path = PathBuf::from(location);
    if !path.exists() {
        return Ok(location.to_owned());
    }
    let absolute = path.canonicalize();
    let absolute = absolute.map_err(|error| Failure::stalled(format!("cannot find `{location}`")).because(error));
    Ok(absolute.map_err(Complaint::usage)?.display().to_string())
}

/// One repository, with what somebody at their own machine expects to be allowed.
fn settings(arguments: &Arguments, url: &str, name: RepositoryName) -> Settings {
    let mut repository = RepositorySettings::new(name, url);
    repository.branch.clone_from(&arguments.branch);
    repository.insecure = arguments.insecure;
    repository.allow.host_image = true;
    repository.poll = DEFAULT_POLL;
    Settings { listen: arguments.listen, ..Settings::of([repository]) }
}

fn name_uncommitted(path: &std::path::Path, output: &mut Output) -> Outcome<()> {
    let Ok(repository) = Repository::open_local(path, Limits::default()) else { return Ok(()) };
    let files = repository.uncommitted(FILES_NAMED + 1)?;
    if files.is_empty() {
        return Ok(());
    }
    let more = if files.len() > FILES_NAMED { ", and more" } else { "" };
    let named = files.iter().take(FILES_NAMED).cloned().collect::<Vec<_>>().join(", ");
    output.line(format!("note: only what is committed is deployed; not committed: {named}{more}"))
}

/// Tells progress until Ctrl-C.
async fn watch(app: &App, name: &RepositoryName, output: &mut Output) -> Outcome {
    let mut progress = Progress::default();
    let mut changes = app.driver.changes();
    let stop = daemon::stop_signal()?;
    tokio::pin!(stop);
    loop {
        progress.tell(app, name, output).await?;
        tokio::select! {
            () = &mut stop => break,
            _ = changes.recv() => {}
        }
    }
    output.line("pods and services go on; `launchway down` stops them, `launchway up` watches again")?;
    Ok(Exit::Good)
}

/// Tells progress until nothing more will happen to the head by itself.
async fn once(app: &App, name: &RepositoryName, output: &mut Output) -> Outcome {
    let mut progress = Progress::default();
    let mut changes = app.driver.changes();
    let stop = daemon::stop_signal()?;
    tokio::pin!(stop);
    loop {
        let statuses = progress.tell(app, name, output).await?;
        if let Some(statuses) = statuses
            && is_at_rest(app, name).await?
        {
            return Ok(if has_failed(&statuses) { Exit::Failed } else { Exit::Good });
        }
        if let Some(problem) = problem(app, name).await? {
            return Err(Complaint::from(Failure::stalled(problem)));
        }
        tokio::select! {
            () = &mut stop => return Ok(Exit::Failed),
            // The last statuses are written a moment after the run ended.
            _ = tokio::time::timeout(Duration::from_millis(500), changes.recv()) => {}
        }
    }
}

fn has_failed(statuses: &[CommitStatus]) -> bool {
    statuses
        .iter()
        .any(|status| matches!(status.state, StatusState::Failure | StatusState::Error | StatusState::Cancelled))
}

/// Whether all runs ended and nothing waits to be performed, but for what waits for a person.
async fn is_at_rest(app: &App, name: &RepositoryName) -> Result<bool> {
    let store: &Arc<_> = &app.driver.store;
    let filter = RunFilter { repository: Some(name.clone()), open: Some(true), limit: 1, ..RunFilter::default() };
    Ok(store.runs(&filter).await?.is_empty() && !store.outbox(None).await?.iter().any(|row| row.due.is_some()))
}

async fn problem(app: &App, name: &RepositoryName) -> Result<Option<String>> {
    Ok(app.driver.store.repository(name).await?.and_then(|state| state.value.problem))
}

/// What was told of the newest revision, by context.
#[derive(Default)]
struct Progress {
    commit: Option<CommitId>,
    told: BTreeMap<String, CommitStatus>,
}

impl Progress {
    /// Prints what is new; hands back the statuses of the newest revision, if it was looked at.
    async fn tell(
        &mut self,
        app: &App,
        name: &RepositoryName,
        output: &mut Output,
    ) -> Outcome<Option<Vec<CommitStatus>>> {
        let store: &Arc<_> = &app.driver.store;
        let Some(revision) = store.revisions(name, 1).await?.into_iter().next() else { return Ok(None) };
        if self.commit.as_ref() != Some(&revision.commit) {
            *self = Self { commit: Some(revision.commit.clone()), told: BTreeMap::new() };
            output.line(format!("{} {}", revision.commit.short(), revision.subject))?;
        }
        let statuses = reporter::statuses(&**store as &dyn ReadStore, name, &revision.commit).await?;
        for status in &statuses {
            if self.told.get(&status.context) != Some(status) {
                output.line(format!(
                    "  {} {} {}",
                    colored(status.state.as_str()),
                    status.context,
                    status.description
                ))?;
                self.told.insert(status.context.clone(), status.clone());
            }
        }
        Ok(Some(statuses))
    }
}
