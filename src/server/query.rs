//! Reads from the store and the runtime what a view is made from.

mod configs;
mod deployer;
mod drift;
mod events;
mod facts;
mod holds;
mod image_streams;
mod openshift;
mod projects;
mod selection;
mod sequences;
mod sinks;
mod versions;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::problem::{Answer, Problem};
use super::view::{
    ConfigView, Explanation, HistoryRow, List, PlanView, PodView, RepositoryView, RevisionView, RunDetail, RunView,
    ServiceView, WebhookCallView, at_rest, explain,
};
use crate::control::commands::Refusal;
use crate::control::watched::Watched;
use crate::error::{Class, Failure, Result};
use crate::executor::hindrances::Hindrances;
use crate::executor::renderings::{Renderings, RevisionReport};
use crate::executor::selector_index::SelectorIndex;
use crate::executor::sinks::Subscribers;
use crate::model::ids::{CommitId, ConfigKey, Namespace, PlanId, RepositoryName, RunId, ServiceKey};
use crate::model::object::Kind;
use crate::model::pod::{ObservedPod, PodId, PodOwner, PodPhase};
use crate::model::run::Run;
use crate::model::state::{ConfigState, ObjectState, RepositoryState, RevisionState};
use crate::model::unique_name::UniqueName;
use crate::runtime::logs::{self, LogQuery};
use crate::runtime::{Runtime, ServiceAddress};
use crate::store::{EventRow, Listing, ReadStore, RunFilter, Versioned};

pub use self::selection::Selection;
pub use self::sequences::{EventSelection, SequenceSelection};
pub use self::versions::Versions;

/// The most rows of one answer.
pub const MOST: u32 = 1000;
/// The most bytes that are shown of what one try of a hook or task printed: the end of it.
const OUTPUT_OF_A_TRY: u64 = 64 << 10;

/// Where answers come from: the store, and the runtime if there is one in this process.
#[derive(Clone)]
pub struct Query {
    /// What is remembered.
    pub store: Arc<dyn ReadStore>,
    /// What runs.
    pub runtime: Option<Arc<dyn Runtime>>,
    /// What keeps deployment configs from what is wanted of them, as far as this process knows.
    pub hindrances: Arc<Hindrances>,
    /// Which `Service` objects lead to which pods, as far as this process knows.
    pub selectors: Arc<SelectorIndex>,
    /// What is said of revisions.
    pub renderings: Arc<Renderings>,
    /// Whom this process tells what happens; nothing, if it tells nobody anything.
    pub subscribers: Option<Arc<Subscribers>>,
    /// The repositories that this process watches; nothing, if it watches none and cannot tell who is.
    pub watched: Option<Arc<BTreeMap<RepositoryName, Arc<Watched>>>>,
}

impl std::fmt::Debug for Query {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Query").field("runtime", &self.runtime.is_some()).finish_non_exhaustive()
    }
}

impl Query {
    /// The watched repositories.
    pub async fn repositories(&self, selection: &Selection) -> Answer<List<RepositoryView>> {
        self.check(selection).await?;
        let states = self.store.repositories().await?;
        let pods_of_another_version = self.pods_of_another_version().await?;
        let known = states
            .found
            .iter()
            .map(|state| RepositoryView { pods_of_another_version, ..self.repository_view(&state.value) });
        let mut views: Vec<_> = known.chain(states.damaged.iter().map(RepositoryView::from)).collect();
        views.retain(|view| selection.takes_repository(&view.name));
        views.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(views.into_iter().collect())
    }

    /// One watched repository.
    pub async fn repository(&self, name: &str) -> Answer<RepositoryView> {
        if let Some(state) = self.store.repository(&name.into()).await? {
            let pods_of_another_version = self.pods_of_another_version().await?;
            return Ok(RepositoryView { pods_of_another_version, ..self.repository_view(&state.value) });
        }
        let watched: Vec<String> = self.repository_names(None).await?.iter().map(ToString::to_string).collect();
        let problem = Problem::not_found(format!("there is no repository `{name}`"));
        Err(problem.hint(format!("the watched ones: {}", watched.join(", "))))
    }

    fn repository_view(&self, state: &RepositoryState) -> RepositoryView {
        let Some(watched) = &self.watched else { return RepositoryView::from(state) };
        let polled_at = watched.get(&state.name.watched()).map(|watched| watched.polled_at());
        RepositoryView::from(&self.as_it_is(state.clone())).with_watching(polled_at)
    }

    /// A repository as it is remembered, with what could not be written down of it.
    fn as_it_is(&self, state: RepositoryState) -> RepositoryState {
        let watched = self.watched.as_ref().and_then(|watched| watched.get(&state.name));
        let problem = watched.map_or_else(|| state.problem.clone(), |watched| watched.problem(&state));
        RepositoryState { problem, ..state }
    }

    /// What the last webhooks of a watched repository came to, newest first.
    pub async fn deliveries(&self, name: &str) -> Answer<List<WebhookCallView>> {
        let name = RepositoryName::from(self.repository(name).await?.name.as_str());
        let calls = self.store.webhook_calls(&name).await?;
        Ok(calls.newest_first().into_iter().map(WebhookCallView::from).collect())
    }

    /// How many pods run on under another version of this program, if any do.
    async fn pods_of_another_version(&self) -> Answer<Option<usize>> {
        let Some(runtime) = &self.runtime else { return Ok(None) };
        Ok(Some(runtime.pods_of_another_version().await?).filter(|pods| *pods > 0))
    }

    /// Refuses a selection of a repository that is not there: an empty answer would pass for one that says something.
    async fn check(&self, selection: &Selection) -> Answer<()> {
        match &selection.repository {
            Some(name) => self.repository(name).await.map(drop),
            None => Ok(()),
        }
    }

    /// The last revisions, of one repository or all.
    pub async fn revisions(&self, selection: &Selection) -> Answer<List<RevisionView>> {
        self.check(selection).await?;
        let mut items = Vec::new();
        for repository in self.repository_names(selection.repository.as_deref()).await? {
            let revisions = self.store.outlines(&repository, selection.limit()).await?;
            items.extend(revisions.iter().map(|revision| RevisionView::new(revision, &RevisionReport::default())));
        }
        items.sort_by(|a, b| b.at.cmp(&a.at));
        Ok(items.into_iter().collect())
    }

    /// One revision with what is written on it; `commit` may be a prefix of at least four digits.
    pub async fn revision(&self, repository: &str, commit: &str) -> Answer<RevisionView> {
        let repository = RepositoryName::from(repository);
        let whole = CommitId::whole(commit);
        if let Some(commit) = &whole
            && let Some((state, report)) = self.renderings.report(&*self.store, &repository, commit).await?
        {
            return Ok(RevisionView::new(&state, &report));
        }
        let named = match whole {
            Some(_) => None,
            None => self.store.outline(&repository, commit).await.map_err(unclear)?,
        };
        let named = match named {
            Some(named) => Some(named),
            None => self.revision_of_pulls(&repository, commit).await?,
        };
        let report = match &named {
            Some(named) => self.renderings.report(&*self.store, &named.repository, &named.commit).await?,
            None => None,
        };
        let (state, report) = report
            .ok_or_else(|| Problem::not_found(format!("`{repository}` has no revision `{commit}` that was synced")))?;
        Ok(RevisionView::new(&state, &report))
    }

    /// One that a pull request of a repository brings, to an environment that is there.
    async fn revision_of_pulls(&self, repository: &RepositoryName, commit: &str) -> Answer<Option<RevisionState>> {
        let state = self.store.repository(repository).await?;
        for one in state.into_iter().flat_map(|state| state.value.environments) {
            let environment = repository.environment(one.number);
            if let Some(found) = self.store.outline(&environment, commit).await.map_err(unclear)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// One plan.
    pub async fn plan(&self, id: &str) -> Answer<PlanView> {
        let plan = self.store.plan(&PlanId::from(id)).await?;
        let plan = plan.ok_or_else(|| Problem::not_found(format!("there is no plan `{id}`")))?;
        Ok(PlanView::new(&plan, None))
    }

    /// Deployment configs.
    pub async fn configs(&self, selection: &Selection) -> Answer<List<ConfigView>> {
        self.check(selection).await?;
        let states = self.config_states(selection).await?;
        Ok(self.config_views(&states.found).await?.beside(&states.damaged))
    }

    /// The versions of a deployment config, oldest first.
    pub async fn history(&self, key: &ConfigKey) -> Answer<List<HistoryRow>> {
        let filter = RunFilter {
            project: Some(key.project.clone()),
            stage: Some(key.stage.clone()),
            config: Some(key.name.clone()),
            sequences: Some(false),
            limit: MOST,
            ..RunFilter::default()
        };
        let runs = self.store.runs(&filter).await?;
        let events = self.all_events(&key.events()).await?;
        let rows = runs.found.iter().filter_map(|run| match &run.value {
            Run::Deployment(run) => Some(HistoryRow::from(&**run).with_scalings(&events)),
            Run::Sequence(_) => None,
        });
        let mut items: Vec<_> = rows.collect();
        items.sort_by_key(|row| row.version);
        Ok(List::from_iter(items).beside(&runs.damaged))
    }

    /// What was said of one run as far as it is kept, oldest first.
    async fn all_events(&self, run: &RunId) -> Result<Vec<EventRow>> {
        let mut events: Vec<EventRow> = Vec::new();
        loop {
            let after = events.last().map_or(0, |event| event.number);
            let some = self.store.events(Some(run), after, MOST).await?;
            if some.is_empty() {
                return Ok(events);
            }
            events.extend(some);
        }
    }

    /// Runs, newest first.
    pub async fn runs(&self, selection: &Selection) -> Answer<List<RunView>> {
        self.check(selection).await?;
        let runs = self.store.runs(&selection.runs()).await?;
        let taken = runs.found.iter().filter(|run| selection.takes_run(&run.value));
        Ok(taken.map(|run| RunView::from(&run.value)).collect::<List<_>>().beside(&runs.damaged))
    }

    /// The sequences that wait for a person to approve them, of the last that have not ended.
    pub async fn awaiting_approval(&self) -> Answer<List<RunView>> {
        let open =
            Selection { kind: Some("sequence".into()), open: Some(true), limit: Some(MOST), ..Selection::default() };
        let mut open = self.runs(&open).await?;
        open.items.retain(|run| run.awaits_approval.is_some());
        Ok(open)
    }

    /// A run as it is remembered.
    pub async fn stored_run(&self, id: &str) -> Answer<Versioned<Run>> {
        self.store.run(&RunId::from(id)).await?.ok_or_else(|| no_run(id))
    }

    /// One run with its steps.
    pub async fn run(&self, id: &str) -> Answer<RunDetail> {
        let run = self.stored_run(id).await?;
        let (namespace, parent) = match &run.value {
            Run::Sequence(run) => (&run.destination.namespace, None),
            Run::Deployment(run) => (&run.destination.namespace, self.store.run(&run.parent).await?),
        };
        let mut detail = RunDetail::new(&run.value, parent.as_ref().map(|parent| &parent.value));
        self.add_output(namespace, &mut detail).await;
        Ok(detail)
    }

    /// What the pods of hooks and tasks have printed, as long as they are kept; what is remembered of them stays else.
    async fn add_output(&self, namespace: &Namespace, detail: &mut RunDetail) {
        let Some(runtime) = &self.runtime else { return };
        for one in detail.steps.iter_mut().flat_map(|step| &mut step.tries) {
            let pod = PodId { namespace: namespace.clone(), name: one.pod.as_str().into() };
            let end = LogQuery { bytes: Some(OUTPUT_OF_A_TRY), ..LogQuery::default() };
            let Ok(output) = runtime.logs(&pod, &end).await else { continue };
            match logs::whole(output).await {
                Ok(output) if !output.is_empty() => {
                    one.output = String::from_utf8_lossy(&output).trim_end().to_owned();
                }
                _ => {}
            }
        }
    }

    /// The pods of the chosen stages.
    pub async fn pods(&self, selection: &Selection) -> Answer<List<PodView>> {
        Ok(self.observed(selection).await?.iter().map(PodView::from).collect())
    }

    /// The same as the runtime sees them; of one deployment config or of one run if the selection names it.
    pub async fn observed(&self, selection: &Selection) -> Answer<Vec<ObservedPod>> {
        self.check(selection).await?;
        let runtime = self.runtime()?;
        let mut chosen = Vec::new();
        for namespace in self.namespaces(&**runtime, selection).await? {
            let mut pods = runtime.observe(&namespace).await?;
            pods.retain(|pod| selection.name.as_ref().is_none_or(|name| owned_by(pod, name)));
            pods.retain(|pod| selection.run.as_ref().is_none_or(|run| run_by(pod, run)));
            chosen.extend(pods);
        }
        Ok(chosen)
    }

    /// Those pods of a deployment config that are of the versions that are meant, with their hooks; and those of which nobody
    /// can tell.
    pub async fn of_versions(
        &self,
        pods: Vec<ObservedPod>,
        selection: &Selection,
        versions: Versions,
    ) -> Answer<Vec<ObservedPod>> {
        let states = self.config_states(&Selection { name: None, ..selection.clone() }).await?.found;
        Ok(versions.among(pods, &states))
    }

    /// The pods of a deployment config's versions.
    pub async fn replicas(&self, key: &ConfigKey) -> Answer<Vec<ObservedPod>> {
        let runtime = self.runtime()?;
        let state = self.config_state(key).await?;
        Ok(runtime.observe_config(&state.destination.namespace, key).await?)
    }

    /// The services of the chosen stages.
    pub async fn services(&self, selection: &Selection) -> Answer<List<ServiceView>> {
        self.check(selection).await?;
        let runtime = self.runtime()?;
        let declared = self.objects_in(selection, Some(&Kind::Service)).await?;
        let place = |state: &ObjectState| (state.destination.namespace.clone(), state.object.key.name.clone());
        let kept = declared.filter(ObjectState::is_kept);
        let kept: BTreeMap<(Namespace, String), ObjectState> = kept.map(|state| (place(&state), state)).collect();
        let mut items = Vec::new();
        for namespace in self.namespaces(&**runtime, selection).await? {
            let services = runtime.services(&namespace).await?;
            let chosen = services.iter().filter(|service| selection.takes(selection.name.as_ref(), &service.name));
            let kept = |service: &ServiceAddress| kept.get(&(namespace.clone(), service.name.clone()));
            items.extend(chosen.map(|service| ServiceView::new(&namespace, service, kept(service))));
        }
        Ok(items.into_iter().collect())
    }

    /// Why a service is not what was pushed.
    pub async fn why(&self, service: &ServiceKey) -> Answer<Explanation> {
        let facts = self.facts(service).await?;
        let is_known = !facts.configs.is_empty() || !facts.slot.is_empty() || facts.planned.is_some();
        if is_known {
            return Ok(explain(service, &facts));
        }
        let last = self.last_sequence(service).await?;
        let unknown = || Problem::not_found(format!("nothing is known about service `{service}`"));
        last.as_ref().map(|last| at_rest(service, last)).ok_or_else(unknown)
    }

    /// The runtime.
    ///
    /// # Errors
    /// If there is none in this process.
    pub fn runtime(&self) -> Answer<&Arc<dyn Runtime>> {
        self.runtime.as_ref().ok_or_else(|| {
            Problem::new(axum::http::StatusCode::SERVICE_UNAVAILABLE, "only a running daemon can tell what runs")
                .hint("start it with `launchway up` or `launchway serve`")
        })
    }

    /// The chosen repository, or all.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn repository_names(&self, chosen: Option<&str>) -> Result<Vec<RepositoryName>> {
        match chosen {
            Some(name) => Ok(vec![name.into()]),
            None => {
                let views = self.store.repositories().await?;
                let damaged = views.damaged.iter().map(|damaged| damaged.key.to_string().as_str().into());
                Ok(views.found.into_iter().map(|state| state.value.name).chain(damaged).collect())
            }
        }
    }

    async fn config_states(&self, selection: &Selection) -> Result<Listing<ConfigState>> {
        let project = selection.project.as_deref().map(Into::into);
        let stage = selection.stage.as_deref().map(Into::into);
        let states = self.store.configs(project.as_ref(), stage.as_ref()).await?;
        let found = states.found.into_iter().map(|state| state.value).filter(|state| selection.takes_config(state));
        Ok(Listing { found: found.collect(), damaged: states.damaged })
    }

    /// Configs with what became of their repositories, and with the number of their pods.
    async fn config_views(&self, states: &[ConfigState]) -> Answer<List<ConfigView>> {
        let repositories = self.store.repositories().await?.found.into_iter().map(|state| state.value);
        let down: BTreeSet<_> = repositories.filter(|state| state.down).map(|state| state.name).collect();
        let held_back = self.held_back(states).await?;
        let mut items = Vec::new();
        for state in states {
            let view = ConfigView::from(state).with_repository(down.contains(&state.repository));
            let waits = held_back.get(&state.service_key()).map_or(&[][..], Vec::as_slice);
            items.push(match self.pods_of(state).await? {
                Some(pods) => view.with_pods(&pods, state).with_drift(&pods, state, waits),
                None => view.with_drift(&[], state, waits),
            });
        }
        Ok(items.into_iter().collect())
    }

    /// Whether any pod has not ended or any service answers where a repository delivers to.
    ///
    /// # Errors
    /// If the store or the runtime cannot be read.
    pub async fn runs_anything(&self, repository: &RepositoryName) -> Result<bool> {
        let Some(runtime) = &self.runtime else { return Ok(false) };
        let selection = Selection { repository: Some(repository.to_string()), ..Selection::default() };
        for namespace in self.namespaces(&**runtime, &selection).await? {
            let pods = runtime.observe(&namespace).await?;
            let is_there = pods.iter().any(|pod| !matches!(pod.phase, PodPhase::Ended { .. }));
            if is_there || !runtime.services(&namespace).await?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The objects beside deployment configs in the chosen project and stage, of one kind or all.
    async fn objects_in(
        &self,
        selection: &Selection,
        kind: Option<&Kind>,
    ) -> Result<impl Iterator<Item = ObjectState> + use<>> {
        let project = selection.project.as_deref().map(Into::into);
        let stage = selection.stage.as_deref().map(Into::into);
        let objects = self.store.objects(project.as_ref(), stage.as_ref(), kind).await?;
        Ok(objects.found.into_iter().map(|state| state.value))
    }

    /// The namespaces of the chosen stages, of which something is applied or in which something is running.
    async fn namespaces(&self, runtime: &dyn Runtime, selection: &Selection) -> Result<BTreeSet<Namespace>> {
        let stages = Selection { name: None, service: None, ..selection.clone() };
        let mut found: BTreeSet<_> =
            self.config_states(&stages).await?.found.into_iter().map(|state| state.destination.namespace).collect();
        let objects = self.objects_in(selection, None).await?;
        let chosen = objects.filter(|state| selection.takes_of(&state.repository));
        found.extend(chosen.map(|state| state.destination.namespace));
        // What another life of the store has left there is on no record yet, and a record may be damaged.
        for namespace in runtime.namespaces().await? {
            let owner = self.store.name_owner(&UniqueName::Namespace(namespace.clone())).await?;
            if owner.map_or_else(|| selection.takes_nobodys(), |owner| selection.takes_owner(&owner.value)) {
                found.insert(namespace);
            }
        }
        Ok(found)
    }
}

fn no_run(id: &str) -> Problem {
    let hint = "`launchway get runs` lists them by their whole names, such as run/shop/dev/web-3";
    Problem::not_found(format!("there is no run `{id}`")).hint(hint)
}

/// A commit id that is none, or could be several, is the asker's mistake.
fn unclear(failure: Failure) -> Problem {
    match failure.class() {
        Class::Stalled => Refusal::Invalid(failure).into(),
        Class::Transient | Class::Waiting => failure.into(),
    }
}

/// Whether a pod is a hook or a task of that run.
fn run_by(pod: &ObservedPod, id: &str) -> bool {
    matches!(&pod.owner, PodOwner::Run { run, .. } if run.as_str() == id)
}

/// Whether a pod is of the deployment config of that name, or a hook of one of its versions.
fn owned_by(pod: &ObservedPod, name: &str) -> bool {
    match &pod.owner {
        PodOwner::Version { config, .. } => config.name == name,
        PodOwner::Run { run, .. } => {
            let deployment = run.as_str().rsplit('/').next().unwrap_or_default();
            deployment.rsplit_once('-').is_some_and(|(config, _)| config == name)
        }
        PodOwner::Unknown => pod.id.may_be_of(name),
    }
}
