//! Sequences and their events in Keptn's shapes, made from runs.
//!
//! Source: the API of Keptn 1.4: `shipyard-controller` and `mongodb-datastore`.

use axum::http::StatusCode;
use serde::Deserialize;

use super::{MOST, Query};
use crate::clock::{from_rfc3339, rfc3339_sorting};
use crate::model::cloud_event::CloudEvent;
use crate::model::ids::{RunId, ServiceKey};
use crate::model::run::SequenceRun;
use crate::report::cloud_event;
use crate::server::problem::{Answer, Problem};
use crate::server::view::{ContextState, EventPage, SequencePage, SequenceView};
use crate::store::RunFilter;

/// How many runs are read at once.
const AT_ONCE: u32 = 100;
/// How many runs are searched for one answer.
const SEARCHED: usize = 5_000;
/// How many events or sequences a page has unless the request says otherwise. Source: Keptn's `pageSize`.
const USUAL_PAGE: usize = 20;

/// Which events are meant; absent parts match everything.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EventSelection {
    /// Of this project.
    pub project: Option<String>,
    /// In this stage.
    pub stage: Option<String>,
    /// Of this service.
    pub service: Option<String>,
    /// Of this type.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// From here.
    pub source: Option<String>,
    /// Of this context.
    pub keptn_context: Option<String>,
    /// Of this id.
    #[serde(alias = "eventID")]
    pub event_id: Option<String>,
    /// Not before, as RFC 3339.
    pub from_time: Option<String>,
    /// Before, as RFC 3339.
    pub before_time: Option<String>,
    /// At most so many.
    pub page_size: Option<usize>,
    /// After so many.
    pub next_page_key: Option<String>,
}

/// Which sequences are meant; absent parts match everything.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SequenceSelection {
    /// Of this name.
    pub name: Option<String>,
    /// In this state.
    pub state: Option<ContextState>,
    /// Begun not before, as RFC 3339.
    pub from_time: Option<String>,
    /// Begun before, as RFC 3339.
    pub before_time: Option<String>,
    /// Of these contexts, with commas between them.
    pub keptn_context: Option<String>,
    /// At most so many.
    pub page_size: Option<usize>,
    /// After so many.
    pub next_page_key: Option<String>,
}

impl EventSelection {
    fn runs(&self) -> RunFilter {
        RunFilter {
            project: self.project.as_deref().map(Into::into),
            stage: self.stage.as_deref().map(Into::into),
            service: self.service.clone(),
            context: self.keptn_context.clone(),
            sequences: Some(true),
            ..RunFilter::default()
        }
    }

    fn takes(&self, event: &CloudEvent, period: &Period) -> bool {
        let is = |wanted: Option<&String>, value: &str| wanted.is_none_or(|wanted| wanted == value);
        is(self.kind.as_ref(), &event.kind)
            && is(self.source.as_ref(), &event.source)
            && is(self.event_id.as_ref(), &event.id)
            && period.has(event.time.as_deref().unwrap_or_default())
    }

    fn page(&self) -> Answer<(usize, usize)> {
        page(self.page_size, self.next_page_key.as_deref())
    }
}

impl Query {
    /// Events that were sent and received, newest first.
    pub async fn cloud_events(&self, selection: &EventSelection) -> Answer<EventPage> {
        let (from, size) = selection.page()?;
        let period = Period::of(selection.from_time.as_deref(), selection.before_time.as_deref())?;
        let runs = self.sequences_of(selection.runs(), |found: usize| found < SEARCHED).await?;
        let mut events = cloud_event::newest_first(&runs);
        events.retain(|event| selection.takes(event, &period));
        Ok(EventPage::of(events, from, size))
    }

    /// The tasks of a type that executors may take, oldest first.
    pub async fn open_tasks(&self, kind: &str, selection: &EventSelection) -> Answer<EventPage> {
        let (from, size) = selection.page()?;
        let period = Period::of(selection.from_time.as_deref(), selection.before_time.as_deref())?;
        let filter = RunFilter { open: Some(true), ..selection.runs() };
        let runs = self.sequences_of(filter, |_| true).await?;
        let mut events: Vec<CloudEvent> = runs.iter().rev().filter_map(cloud_event::open_task).collect();
        events.retain(|event| event.kind == kind && selection.takes(event, &period));
        Ok(EventPage::of(events, from, size))
    }

    /// What runs and ran in a project, a context each, newest first.
    pub async fn sequences(&self, project: &str, selection: &SequenceSelection) -> Answer<SequencePage> {
        let (from, size) = page(selection.page_size, selection.next_page_key.as_deref())?;
        let period = Period::of(selection.from_time.as_deref(), selection.before_time.as_deref())?;
        let filter = RunFilter { project: Some(project.into()), sequences: Some(true), ..RunFilter::default() };
        let mut runs = Vec::new();
        match &selection.keptn_context {
            Some(contexts) => {
                for context in contexts.split(',').map(str::trim).filter(|context| !context.is_empty()) {
                    let filter = RunFilter { context: Some(context.to_owned()), ..filter.clone() };
                    runs.extend(self.sequences_of(filter, |_| true).await?);
                }
            }
            None => runs = self.sequences_of(filter, |found: usize| found < SEARCHED).await?,
        }
        if runs.is_empty() {
            self.declaring_project(project).await?;
        }
        let mut views = SequenceView::of_runs(&runs);
        views.retain(|view| {
            let is = |wanted: Option<&String>, value: &str| wanted.is_none_or(|wanted| wanted == value);
            is(selection.name.as_ref(), &view.name)
                && selection.state.is_none_or(|wanted| wanted == view.state)
                && period.has(&view.time)
        });
        Ok(SequencePage::of(views, from, size))
    }

    /// The runs of a context that have not ended, in one stage or all.
    pub async fn open_runs_of(&self, project: &str, context: &str, stage: Option<&str>) -> Answer<Vec<RunId>> {
        let filter = RunFilter {
            project: Some(project.into()),
            context: Some(context.to_owned()),
            sequences: Some(true),
            ..RunFilter::default()
        };
        let runs = self.sequences_of(filter, |_| true).await?;
        if runs.is_empty() {
            return Err(Problem::not_found(format!("project `{project}` has no sequence with context `{context}`")));
        }
        let is_meant = |run: &&SequenceRun| {
            let is_here = stage.is_none_or(|stage| stage.is_empty() || stage == run.service.stage.as_str());
            run.ended_at.is_none() && is_here
        };
        Ok(runs.iter().filter(is_meant).map(|run| run.id.clone()).collect())
    }

    /// The context of what is under way for a service, or waits for its turn; of several, of the first.
    pub async fn open_context_of(&self, service: &ServiceKey) -> Answer<String> {
        let filter = RunFilter {
            project: Some(service.project.clone()),
            stage: Some(service.stage.clone()),
            service: Some(service.service.to_string()),
            sequences: Some(true),
            open: Some(true),
            ..RunFilter::default()
        };
        let runs = self.sequences_of(filter, |_| true).await?;
        let found = runs.into_iter().rev().find_map(|run| run.context);
        found.ok_or_else(|| {
            Problem::new(StatusCode::CONFLICT, format!("nothing of {service} is under way"))
                .hint("`launchway get runs` tells what is")
        })
    }

    /// Sequences, newest first, as long as `more` wants more than were found.
    async fn sequences_of(&self, filter: RunFilter, more: impl Fn(usize) -> bool) -> Answer<Vec<SequenceRun>> {
        let mut found: Vec<SequenceRun> = Vec::new();
        let mut filter = RunFilter { limit: AT_ONCE, ..filter };
        loop {
            let page = self.store.runs(&filter).await?.found;
            let is_last = page.len() < AT_ONCE as usize;
            filter.before = page.last().map(|run| run.value.id().clone());
            found.extend(page.into_iter().filter_map(|run| run.value.sequence().cloned()));
            if is_last || !more(found.len()) {
                return Ok(found);
            }
        }
    }
}

/// Times that sort as texts.
struct Period {
    from: Option<String>,
    before: Option<String>,
}

impl Period {
    fn of(from: Option<&str>, before: Option<&str>) -> Answer<Self> {
        let sorting = |text: &str| {
            let none = || Problem::new(StatusCode::BAD_REQUEST, format!("`{text}` is no time as RFC 3339 has it"));
            from_rfc3339(text).map(rfc3339_sorting).ok_or_else(none)
        };
        Ok(Self { from: from.map(sorting).transpose()?, before: before.map(sorting).transpose()? })
    }

    fn has(&self, time: &str) -> bool {
        self.from.as_deref().is_none_or(|from| from <= time)
            && self.before.as_deref().is_none_or(|before| time < before)
    }
}

/// From where, and how many.
fn page(size: Option<usize>, key: Option<&str>) -> Answer<(usize, usize)> {
    let wrong = |key: &str| {
        let problem = Problem::new(StatusCode::BAD_REQUEST, format!("`{key}` is no key of a page"));
        problem.hint("take `nextPageKey` as the page before has it, or leave it out")
    };
    let key = key.filter(|key| !key.is_empty());
    let from = key.map_or(Ok(0), |key| key.parse().map_err(|_not_a_number| wrong(key)))?;
    Ok((from, size.unwrap_or(USUAL_PAGE).clamp(1, MOST as usize)))
}
