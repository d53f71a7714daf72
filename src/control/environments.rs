//! Brings environments of pull requests to what is decided about them. Each is a repository of its own to everything that deploys:
//! it is synced at what its pull request brings, taken down when it is over, and forgotten once nothing of it is there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::control::environment::EnvironmentRevisions;
use crate::control::environment_news::Ages;
use crate::control::watched::{READING, Watched};
use crate::control::watcher::{Host, Watcher};
use crate::engine::environments::{self, Hosted, is_same};
use crate::engine::transition::Transition;
use crate::error::{Class, Failure, Result};
use crate::executor::drive::Driver;
use crate::executor::{switch, sync};
use crate::forge::pull_request::{Known, PullRequestState};
use crate::model::environment::{Environment, Presence, Standing};
use crate::model::ids::{ConfigKey, Namespace};
use crate::model::pod::PodPhase;
use crate::model::preview::OpenPullRequest;
use crate::model::state::RepositoryState;
use crate::model::transaction::ObjectPlace;
use crate::report::environment::{EnvironmentReport, statuses};
use crate::report::status::stage_context;
use crate::runtime::{Runtime, ServiceAddress};

/// Who takes environments down, for people.
const BY: &str = "launchway: the environment of the pull request is over";
/// The most bytes that a fork's pull request brings: anybody may open one.
pub(super) const FORK: u64 = 64 << 20;

/// Looks after environments.
#[derive(Clone)]
pub struct Environments {
    /// Decides, and remembers.
    pub driver: Driver,
    /// Where pods live.
    pub runtime: Arc<dyn Runtime>,
    /// When the next one is too old.
    pub(super) ages: Arc<Ages>,
}

impl std::fmt::Debug for Environments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environments").finish_non_exhaustive()
    }
}

/// What came of looking after the environments of a repository.
#[derive(Debug, Default)]
pub(super) struct Brought {
    /// What there is to say of them, by the numbers of their pull requests.
    pub(super) reports: BTreeMap<u64, EnvironmentReport>,
    /// Why something is not as it is to be yet.
    pub(super) failure: Option<Failure>,
}

impl Environments {
    /// Looks after none yet.
    pub fn new(driver: Driver, runtime: Arc<dyn Runtime>) -> Self {
        Self { driver, runtime, ages: Arc::default() }
    }

    /// Decides which pull requests have an environment, and brings all of them there. `open` are those that their host lists, if it
    /// does. What fails of one keeps none of the others.
    pub(super) async fn bring(
        &self,
        state: &RepositoryState,
        watcher: Option<&Watcher>,
        open: Option<&[OpenPullRequest]>,
    ) -> Result<Brought> {
        if state.environments_wanted.is_none() && state.environments.is_empty() {
            return Ok(Brought::default());
        }
        let (closed, mut failure) = match watcher.and_then(Watcher::previewed).zip(open) {
            Some((host, open)) => closed(host, state, open).await,
            None => (BTreeSet::new(), None),
        };
        let is_off = watcher.is_some_and(|watcher| !watcher.previews);
        let hosted = open.map(|open| Hosted { open, closed: &closed });
        let life = self.driver.store.incarnation();
        let decide = |it: &mut Transition<'_>| environments::decide(it, &state.name, hosted, is_off, life);
        let decided = self.driver.decide(decide).await?;
        let settings = state.environments_wanted.as_ref();
        let next = settings.and_then(|settings| environments::next_end(settings, &state.approvals, &decided));
        self.ages.set(&state.name, next);
        let (mut reports, mut is_any_gone) = (BTreeMap::new(), false);
        // What ends makes room, and waits for no remote that is slow.
        let (ending, others): (Vec<_>, Vec<_>) = decided.iter().partition(|one| one.presence == Presence::Ending);
        for one in ending.into_iter().chain(others) {
            let mut problem = None;
            match one.presence {
                Presence::Nothing => {}
                Presence::There => problem = self.deploy(state, watcher, one).await.err(),
                Presence::Ending => match self.end(state, one).await {
                    Ok(true) => is_any_gone = true,
                    Ok(false) => failure = Some(Failure::waiting("an environment ends")),
                    Err(kept) => problem = Some(kept),
                },
            }
            let report = match self.report(state, watcher, one, problem.as_ref()).await {
                Ok(report) => report,
                // What stands in the way of telling one is told in place of what it has.
                Err(unknown) => report_without(state, watcher, one, Some(problem.get_or_insert(unknown))),
            };
            reports.extend(report.map(|report| (one.number, report)));
            if let Some(problem) = &problem {
                let (number, problem) = (one.number, problem.one_line());
                tracing::warn!(repository = %state.name, number, problem, "an environment is not as it is to be");
            }
            failure = problem.or(failure);
        }
        if is_any_gone {
            self.driver.decide(|transition| environments::look(transition, &state.name)).await?;
        }
        // What a person has to put right is told, and tried again with the next look.
        Ok(Brought { reports, failure: failure.filter(|failure| failure.class() != Class::Stalled) })
    }

    /// Brings what a pull request brings to its environment, unless a person has taken that down.
    async fn deploy(&self, state: &RepositoryState, watcher: Option<&Watcher>, one: &Environment) -> Result<()> {
        let Some((watcher, project)) = watcher.zip(state.project.as_ref()) else { return Ok(()) };
        let own = EnvironmentRevisions::new(watcher.watched.clone(), project, one);
        if self.driver.store.repository(&own.name).await?.is_some_and(|known| known.value.down) {
            return Ok(());
        }
        let gone = || Failure::transient(format!("what pull request {} brings is not there", one.number));
        let (number, expected) = (one.number, one.head.clone());
        let (branch, reference) = (state.branch.clone(), one.reference.clone().ok_or_else(gone)?);
        let most = one.is_fork.then_some(FORK);
        let fetch = move |watched: &Watched| {
            let remote = watched.remote_at(branch);
            watched.mirror.fetch_pull(&remote, number, &reference, &expected, most)
        };
        let head = watcher.watched.ask(READING, fetch).await?.ok_or_else(gone)?;
        // What people have approved is that commit, and no other with the same first digits.
        let is_it = if one.is_fork { head == one.head } else { is_same(&head, &one.head) };
        if !is_it {
            // What it brings by now was not decided about, and may not be approved.
            return Err(Failure::transient(format!("pull request {number} was pushed to meanwhile")));
        }
        let fresh = own.unknown();
        self.driver.decide(|transition| environments::prepare(transition, &fresh, &head)).await?;
        sync::sync(&self.driver, &own.at_head(head), false).await.map(drop)
    }

    /// Ends an environment; says whether nothing of it is there any more. All of it comes to the same if it is done twice.
    async fn end(&self, state: &RepositoryState, one: &Environment) -> Result<bool> {
        let name = state.name.environment(one.number);
        if let Some(known) = self.driver.store.repository(&name).await?.map(|known| known.value)
            && !self.end_all(&known).await?
        {
            return Ok(false);
        }
        self.driver.decide(|transition| environments::gone(transition, &state.name, one.number)).await?;
        Ok(true)
    }

    async fn end_all(&self, own: &RepositoryState) -> Result<bool> {
        let store = &self.driver.store;
        if !own.down {
            switch::down(&self.driver, &own.name, BY).await?;
        }
        switch::finish_down(&self.driver, &own.name).await?;
        if let Some(project) = &own.project {
            let configs = store.configs(Some(project), None).await?.whole()?.into_iter().map(|config| config.value);
            let configs: BTreeSet<ConfigKey> =
                configs.filter(|config| config.repository == own.name).map(|config| config.key).collect();
            if !configs.is_empty() {
                self.driver.decide(|transition| environments::let_go(transition, &configs)).await?;
                return Ok(false); // each is forgotten with its last pod
            }
            if !store.open_slot_keys(Some(project)).await?.is_empty() {
                self.driver.examine_slots(project).await?;
                return Ok(false);
            }
        }
        for namespace in &own.namespaces {
            if !self.is_empty(namespace).await? {
                return Ok(false);
            }
        }
        self.forget(own).await?;
        Ok(true)
    }

    /// Whether nothing runs or answers in a namespace; pods that have ended go with their output.
    async fn is_empty(&self, namespace: &Namespace) -> Result<bool> {
        for pod in self.runtime.observe(namespace).await? {
            if !matches!(pod.phase, PodPhase::Ended { .. }) {
                return Ok(false);
            }
            self.runtime.remove_pod(&pod).await?;
        }
        Ok(self.runtime.services(namespace).await?.is_empty())
    }

    async fn forget(&self, own: &RepositoryState) -> Result<()> {
        let objects = match &own.project {
            Some(project) => self.driver.store.objects(Some(project), None, None).await?.whole()?,
            None => Vec::new(),
        };
        let objects = objects.iter().map(|object| &object.value).filter(|object| object.repository == own.name);
        let objects: BTreeSet<ObjectPlace> = objects.map(ObjectPlace::from).collect();
        self.driver.decide(|transition| environments::forget(transition, &own.name, &objects)).await
    }

    /// What there is to say of one.
    async fn report(
        &self,
        state: &RepositoryState,
        watcher: Option<&Watcher>,
        one: &Environment,
        problem: Option<&Failure>,
    ) -> Result<Option<EnvironmentReport>> {
        let Some(mut report) = report_without(state, watcher, one, problem) else { return Ok(None) };
        let Some((watcher, project)) = watcher.zip(state.project.as_ref()) else { return Ok(Some(report)) };
        if one.standing != Standing::Wanted {
            return Ok(Some(report));
        }
        let own = EnvironmentRevisions::new(watcher.watched.clone(), project, one);
        let store = &*self.driver.store;
        let Some(known) = store.repository(&own.name).await?.map(|known| known.value) else { return Ok(Some(report)) };
        if let Some(seen) = &known.seen
            && let Some((_, said)) = self.driver.renderings.report(store, &own.name, seen).await?
        {
            let context = stage_context(own.stage());
            let all = statuses(said.statuses, one.number);
            report.status = all.into_iter().find(|status| status.context == context);
        }
        // Until something of it is planned, the namespace may be somebody else's.
        if !known.namespaces.contains(&own.namespace()) {
            return Ok(Some(report));
        }
        let services = self.runtime.services(&own.namespace()).await?;
        report.services = services.iter().map(|service| (service.name.clone(), places(service))).collect();
        Ok(Some(report))
    }
}

/// What there is to say of one, but for what is there; nothing, where nobody asks for environments.
fn report_without(
    state: &RepositoryState,
    watcher: Option<&Watcher>,
    one: &Environment,
    problem: Option<&Failure>,
) -> Option<EnvironmentReport> {
    let settings = state.environments_wanted.clone()?;
    let (environment, problem) = (one.clone(), problem.map(Failure::one_line));
    let is_commanded = watcher.is_some_and(|watcher| watcher.commands);
    Some(EnvironmentReport { environment, settings, status: None, services: Vec::new(), is_commanded, problem })
}

/// Of the pull requests that have an environment and are not listed as open, those that their host says are not; and why it does
/// not say it of some. Others are asked for once they are to have one: each is a request.
async fn closed(host: &Host, state: &RepositoryState, open: &[OpenPullRequest]) -> (BTreeSet<u64>, Option<Failure>) {
    let (mut closed, mut failure) = (BTreeSet::new(), None);
    let is_listed = |number: u64| open.iter().any(|pull| pull.number == number);
    // Who has it go to another branch takes it from this one.
    let is_elsewhere = |known: &Known| known.base.as_ref().is_some_and(|base| base != &state.branch);
    let there = state.environments.iter().filter(|one| one.presence == Presence::There);
    for number in there.map(|one| one.number).filter(|number| !is_listed(*number)) {
        match host.pull_requests.read(number).await {
            Ok(Some(known)) if known.state != PullRequestState::Open || is_elsewhere(&known) => {
                closed.insert(number);
            }
            // A host that does not know it does not say that it is closed: it may hide the repository from the token.
            Ok(_) => {}
            Err(unknown) => failure = Some(unknown),
        }
    }
    (closed, failure)
}

/// Where a service answers.
fn places(service: &ServiceAddress) -> Vec<String> {
    service.ports.iter().map(|port| format!("{}:{}", service.address, port.port)).collect()
}
