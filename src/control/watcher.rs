//! Watches one repository: waits for a request, syncs, and remembers what is wrong.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::control::approvals;
use crate::control::watched::{QUESTION, Watched};
use crate::engine::environments;
use crate::error::{Failure, Result};
use crate::executor::drive::Driver;
use crate::executor::git_events::{self, Noted};
use crate::executor::sync::Synced;
use crate::forge::StatusWriter;
use crate::forge::address::{ForgeKind, RepositoryAddress};
use crate::forge::pull_request::PullRequests;
use crate::model::action::Action;
use crate::model::time::Timestamp;
use crate::secret::SecretSource;
use crate::telemetry::Metrics;
use crate::trigger::debounce::Debounce;
use crate::trigger::poll::next_sync;
use crate::trigger::schedule::Schedule;
use crate::trigger::watch::{RefWatch, RefWatches};

/// Longer than any interval: the pause when nothing is planned.
const UNPLANNED: Duration = Duration::from_secs(24 * 3600);
/// How often a repository on this machine is synced that cannot be watched: a push to it is not heard of.
const UNWATCHED: Duration = Duration::from_secs(30);

/// How often open pull requests are listed where nobody asks and nothing is pushed: each time is a request to the host.
const PULLS: Duration = Duration::from_secs(60);

/// What has a repository's pull requests.
#[derive(Clone)]
pub struct Host {
    /// Opens them, and tells in them.
    pub pull_requests: Arc<dyn PullRequests>,
    /// Writes on their commits.
    pub statuses: Arc<dyn StatusWriter>,
    /// Which sort of host it is.
    pub kind: ForgeKind,
    /// The repository there.
    pub repository: RepositoryAddress,
    /// The GitHub App that opens it, by its id, if one does.
    pub app: Option<u64>,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").field("pull_requests", &self.pull_requests).finish_non_exhaustive()
    }
}

/// One repository and what asks for its syncs.
#[derive(Clone, Debug)]
pub struct Watcher {
    /// What is synced.
    pub watched: Arc<Watched>,
    /// Where everything asks for a sync.
    pub requests: Arc<Debounce>,
    /// What says that its files changed, if it is on this machine.
    pub events: RefWatches,
    /// Time between syncs that nobody asked for; zero: none.
    pub poll: Duration,
    /// Further times at which to sync.
    pub schedule: Option<Arc<Schedule>>,
    /// Whether it was synced since the daemon started, whatever came of it.
    pub synced: Arc<AtomicBool>,
    /// What signs its webhooks.
    pub webhook_secrets: Vec<SecretSource>,
    /// Counts syncs.
    pub metrics: Arc<Metrics>,
    /// The sort of its host, and where it is there, such as `acme/shop`, if it is on one.
    pub place: Option<(ForgeKind, String)>,
    /// Where its pull requests are, if there is a host that has those.
    pub host: Option<Host>,
    /// Whether they are told what merging them would do.
    pub previews: bool,
    /// Whether people command in comments on them.
    pub commands: bool,
    /// Who may say in signed commits what becomes of what waits for approval.
    pub allowed_signers: Option<PathBuf>,
}

/// What hears of pushes to a repository on this machine.
enum Watch {
    /// There is none yet, or the repository is elsewhere.
    None,
    /// There are no file events: it is polled.
    Refused,
    Made(RefWatch),
}

impl Watcher {
    /// Syncs at once, and then whenever that is requested, until told to stop.
    pub async fn run(self, driver: Driver, stop: CancellationToken) {
        let (mut watch, mut failures, mut looked) = (Watch::None, 0, Timestamp::default());
        self.requests.request();
        loop {
            let Some(now) = stop.run_until_cancelled(self.watch(watch)).await else { return };
            watch = now;
            let pause = self.pause(driver.clock.now(), failures);
            let is_deaf = failures == 0 && matches!(watch, Watch::Refused);
            let pause = if is_deaf { pause.min(UNWATCHED) } else { pause };
            let sync = tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => self.requests.begin(),
                sync = self.requests.next() => sync,
            };
            // Whoever asks has reason to believe that it works now.
            let before = if sync.was_requested { 0 } else { failures };
            let noted = self.note_git_events(&driver).await;
            let synced = self.sync(&driver).await;
            failures = if synced.is_ok() { 0 } else { before.saturating_add(1) };
            if synced.is_ok() {
                self.tell_git_events(&driver, noted).await;
                self.read_approvals(&driver).await;
            }
            let has_moved = matches!(synced, Ok(Synced::Revision(..)));
            if has_moved || sync.was_requested || driver.clock.now().since(looked) >= PULLS {
                looked = driver.clock.now();
                self.look_at_pull_requests(&driver).await;
            }
        }
    }

    /// Hears of the repository that is there now, if it is on this machine. What was missed meanwhile is synced.
    async fn watch(&self, before: Watch) -> Watch {
        let was_refused = matches!(before, Watch::Refused);
        let (events, requests) = (self.events.clone(), self.requests.clone());
        let watch = move |watched: &Watched| match (watched.remote.url.local_path(), before) {
            (None, _) => Ok(Watch::None),
            (_, Watch::Made(watch)) if watch.is_current() => Ok(Watch::Made(watch)),
            (Some(path), _) => {
                let asked = requests.clone();
                let watch = events.watch(path, move || asked.request())?;
                requests.request();
                Ok(Watch::Made(watch))
            }
        };
        self.watched.ask(QUESTION, watch).await.unwrap_or_else(|failure| {
            if !was_refused {
                let problem = failure.one_line();
                tracing::warn!(repository = %self.watched.name, problem, "no file events for this repository");
            }
            Watch::Refused
        })
    }

    /// Where pull requests are told what merging them would do, if they are.
    pub fn previewed(&self) -> Option<&Host> {
        self.host.as_ref().filter(|_| self.previews)
    }

    /// Has the open pull requests checked, whatever has become of the sync.
    async fn look_at_pull_requests(&self, driver: &Driver) {
        let repository = &self.watched.name;
        let (is_previewed, action) =
            (self.previewed().is_some(), || Action::Preview { repository: repository.clone() });
        let asked = driver.decide(|transition| match is_previewed {
            true => {
                transition.ask(&Action::previews_of(repository), action());
                Ok(())
            }
            // What there was before it was switched off has an end too.
            false => environments::look(transition, repository),
        });
        if let Err(failure) = asked.await {
            tracing::error!(%repository, problem = failure.one_line(), "cannot ask for a look at pull requests");
        }
    }

    /// Finds out what has happened beside pushes, before the head is read.
    async fn note_git_events(&self, driver: &Driver) -> Option<Noted> {
        let repository = &self.watched.name;
        let noted = git_events::note(driver, repository, &self.watched).await;
        if let Some(failure) = noted.as_ref().ok().and_then(|noted| noted.problem.as_ref()) {
            let problem = failure.one_line();
            tracing::warn!(%repository, problem, "new tags are heard of by webhooks alone");
        }
        noted.inspect_err(|failure| self.told_later(failure)).ok()
    }

    /// Tells it to sequences, now that what was pushed with it is known.
    async fn tell_git_events(&self, driver: &Driver, noted: Option<Noted>) {
        let Some(noted) = noted else { return };
        match git_events::tell(driver, &self.watched, &self.watched, &noted).await {
            Ok(()) if noted.has_more => self.requests.request(),
            Ok(()) => {}
            Err(failure) => self.told_later(&failure),
        }
    }

    fn told_later(&self, failure: &Failure) {
        let (repository, problem) = (&self.watched.name, failure.one_line());
        tracing::warn!(%repository, problem, "what has happened in Git is told after the next sync");
    }

    /// Carries out what signed commits say of what waits for approval.
    async fn read_approvals(&self, driver: &Driver) {
        if let Err(failure) = approvals::read(driver, &self.watched, self.allowed_signers.as_deref()).await {
            let (repository, problem) = (&self.watched.name, failure.one_line());
            tracing::warn!(%repository, problem, "what commits approve is read after the next sync");
        }
    }

    /// How long to wait for somebody to ask.
    fn pause(&self, now: Timestamp, failures: u32) -> Duration {
        let random = u64::try_from(ulid::Ulid::generate().random() & u128::from(u64::MAX)).unwrap_or(0);
        let polled = next_sync(now, self.poll, failures, random);
        let scheduled = self.schedule.as_ref().and_then(|schedule| schedule.next_after(now));
        polled.into_iter().chain(scheduled).min().map_or(UNPLANNED, |at| at.since(now))
    }

    async fn sync(&self, driver: &Driver) -> Result<Synced> {
        self.metrics.sync(&self.watched.name);
        let synced = self.watched.sync(driver).await;
        match &synced {
            Ok(Synced::Revision(commit, _)) => {
                tracing::info!(repository = %self.watched.name, %commit, "a new revision");
            }
            Ok(Synced::Unchanged) => {}
            Err(failure) => {
                tracing::warn!(repository = %self.watched.name, problem = failure.one_line(), "cannot sync the repository");
            }
        }
        self.metrics.repository_healthy(&self.watched.name, synced.is_ok());
        let first = !self.synced.swap(true, Ordering::SeqCst);
        if let Err(failure) = self.watched.remember(driver, synced.as_ref().err().map(Failure::one_line), first).await {
            tracing::error!(repository = %self.watched.name, problem = failure.one_line(), "cannot remember what is wrong");
        }
        synced
    }
}
