//! `launchway up`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use clap::Args;

use super::arguments::Global;
use super::daemon::{self, THIS_MACHINE};
use super::follow;
use super::output::{Complaint, Exit, Outcome, Output, colored};
use crate::config::{DEFAULT_POLL, RepositorySettings, Settings};
use crate::control::app::App;
use crate::error::Failure;
use crate::executor::switch;
use crate::model::action::Action;
use crate::model::ids::{CommitId, RepositoryName};
use crate::model::state::RevisionState;
use crate::server::query::Selection;
use crate::server::view::{RevisionView, StatusView};
use crate::source::{Limits, RemoteUrl, Repository};
use crate::store::OutboxRow;

/// How many uncommitted files are named.
const FILES_NAMED: usize = 5;
/// How often `--once` asks whether everything is there.
const PERIOD: Duration = Duration::from_millis(200);

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
    if switch::up(&app.driver, &name, THIS_MACHINE).await? {
        output.line(format!("{name} was down, and is up again"))?;
    }
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

/// The root of the repository that a path is in, as an absolute path; an address as it is.
fn located(location: &str) -> Result<String, Complaint> {
    let path = Path::new(location);
    if !path.exists() {
        return Ok(location.to_owned());
    }
    let root = Repository::around(path, Limits::default()).and_then(|found| {
        let root = found.root().canonicalize();
        root.map_err(|error| Failure::stalled(format!("cannot find `{location}`")).because(error))
    });
    Ok(root.map_err(Complaint::usage)?.display().to_string())
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

fn name_uncommitted(path: &Path, output: &mut Output) -> Outcome<()> {
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
        progress.tell_problem(app, name, output).await?;
        if let Some(newest) = app.driver.store.outlines(name, 1).await?.into_iter().next() {
            progress.tell(app, name, &newest.commit, output).await?;
        }
        tokio::select! {
            () = &mut stop => break,
            _ = changes.recv() => {}
        }
    }
    output.line("pods and services go on; `launchway down` stops them, `launchway up` watches again")?;
    Ok(Exit::Good)
}

/// Tells progress until nothing more will happen by itself to the head that the branch has at the start.
async fn once(app: &App, name: &RepositoryName, output: &mut Output) -> Outcome {
    let mut progress = Progress::default();
    let mut changes = app.driver.changes();
    let stop = daemon::stop_signal()?;
    tokio::pin!(stop);
    let head = tokio::select! {
        () = &mut stop => return Ok(Exit::Failed),
        head = head(app, name) => head?,
    };
    loop {
        // It may be planned anew meanwhile, as where a person lets something go.
        let (revision, view) = progress.tell(app, name, &head, output).await?.ok_or_else(|| unread(name))?;
        if view.is_settled() && is_done(app, &revision).await? {
            follow::waits(&view).into_iter().try_for_each(|line| output.line(line))?;
            return Ok(follow::exit(&view));
        }
        tokio::select! {
            () = &mut stop => return Ok(Exit::Failed),
            // Pods come and go without the store knowing.
            _ = tokio::time::timeout(PERIOD, changes.recv()) => {}
        }
    }
}

/// The head that the branch has now. What is remembered may be an earlier one, so it is synced first.
async fn head(app: &App, name: &RepositoryName) -> Outcome<CommitId> {
    let unwatched = || Failure::stalled(format!("no repository `{name}` is watched here"));
    app.watchers.get(name).ok_or_else(unwatched)?.requests.request_and_wait().await;
    let store = &app.driver.store;
    let state = store.repository(name).await?.map(|state| state.value);
    if let Some(problem) = state.as_ref().and_then(|state| state.problem.clone()) {
        return Err(Failure::stalled(problem).into());
    }
    Ok(state.and_then(|state| state.seen).ok_or_else(|| unread(name))?)
}

fn unread(name: &RepositoryName) -> Failure {
    Failure::transient(format!("the head of `{name}` could not be read"))
}

/// Whether what became of a revision was reported, and the pods are there that its repository should have.
async fn is_done(app: &App, revision: &RevisionState) -> Outcome<bool> {
    let store = &app.driver.store;
    let (name, commit) = (&revision.repository, &revision.commit);
    let tells_of_it = |row: &OutboxRow| match &row.action {
        Ok(Action::Report { repository, commit: of, .. }) => repository == name && of == commit,
        _ => false,
    };
    // Without a time it waits for a person, as where statuses are refused.
    if store.outbox(None).await?.iter().any(|row| row.due.is_some() && tells_of_it(row)) {
        return Ok(false);
    }
    let selection = Selection { repository: Some(name.to_string()), ..Selection::default() };
    let configs = app.query.configs(&selection).await.map_err(|problem| Failure::transient(problem.detail))?;
    let of_project = |name: &str| revision.plan().is_none_or(|plan| name.starts_with(&format!("{}/", plan.project)));
    if let Some(damaged) = configs.damaged.iter().find(|damaged| of_project(&damaged.name)) {
        return Err(Failure::stalled(damaged.problem.clone()).into());
    }
    Ok(configs.items.iter().all(|config| config.current >= Some(config.desired)))
}

/// What was reported of a revision, by place.
#[derive(Default)]
struct Progress {
    commit: Option<CommitId>,
    told: BTreeMap<String, StatusView>,
    problem: Option<String>,
}

impl Progress {
    /// Prints what keeps the repository from being synced, and that nothing does any more.
    async fn tell_problem(&mut self, app: &App, name: &RepositoryName, output: &mut Output) -> Outcome<()> {
        let problem = app.driver.store.repository(name).await?.and_then(|state| state.value.problem);
        if problem != self.problem {
            output.line(problem.as_deref().map_or_else(
                || format!("{name} is synced again"),
                |problem| format!("{} {name} cannot be synced: {problem}", colored("failure")),
            ))?;
            self.problem = problem;
        }
        Ok(())
    }

    /// Prints what is new; hands back the revision as it is now, unless it is gone.
    async fn tell(
        &mut self,
        app: &App,
        name: &RepositoryName,
        commit: &CommitId,
        output: &mut Output,
    ) -> Outcome<Option<(RevisionState, RevisionView)>> {
        let Some((revision, told)) = app.query.renderings.report(&*app.driver.store, name, commit).await? else {
            return Ok(None);
        };
        if self.commit.as_ref() != Some(commit) {
            self.commit = Some(commit.clone());
            self.told.clear();
            output.line(format!("{} {}", commit.short(), revision.subject))?;
            revision.warnings.iter().try_for_each(|warning| output.line(format!("  {warning}")))?;
        }
        let view = RevisionView::new(&revision, &told);
        for status in &view.statuses {
            let place = status.place();
            if self.told.get(&place) != Some(status) {
                output.line(format!("  {} {place} {}", colored(&status.state), status.description))?;
                self.told.insert(place, status.clone());
            }
        }
        Ok(Some((revision, view)))
    }
}
