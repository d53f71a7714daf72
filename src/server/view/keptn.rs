//! Keptn's shapes of what runs. Source: the API of Keptn 1.4 and the models of its `go-utils`.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::clock::rfc3339_sorting;
use crate::engine::sequence::dataflow;
use crate::model::cloud_event::CloudEvent;
use crate::model::outcome::{Outcome, Status};
use crate::model::run::{SequenceRun, SequenceState, TaskRecord};
use crate::model::shipyard::EVALUATION_TASK;
use crate::report::cloud_event;
use crate::server::problem::{Answer, Problem};

/// Where the event that begins a delivery says what is deployed: as Keptn's own command does, and as launchway's.
const IMAGES: [&str; 2] = ["/configurationChange/values/image", "/deployment/image"];

/// A part of a list of events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventPage {
    /// They, as CloudEvents.
    #[schemars(with = "Vec<Value>")]
    pub events: Vec<CloudEvent>,
    /// What asks for the next part; `0` if this is the last.
    pub next_page_key: String,
    /// How many are in this part.
    pub page_size: usize,
    /// How many there are.
    pub total_count: usize,
}

/// A part of a list of sequences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SequencePage {
    /// They.
    pub states: Vec<SequenceView>,
    /// What asks for the next part; 0 if this is the last.
    pub next_page_key: usize,
    /// How many are in this part.
    pub page_size: usize,
    /// How many there are.
    pub total_count: usize,
}

/// All runs of one context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SequenceView {
    /// The name of the first sequence.
    pub name: String,
    /// The service.
    pub service: String,
    /// The project.
    pub project: String,
    /// When it began, as RFC 3339.
    pub time: String,
    /// The context.
    pub shkeptncontext: String,
    /// Where it is.
    pub state: ContextState,
    /// What the problem is called that it is about, if the event that began it says so.
    #[serde(default, rename = "problemTitle", skip_serializing_if = "Option::is_none")]
    pub problem_title: Option<String>,
    /// Each stage that it came to, in the order in which it did.
    pub stages: Vec<StageView>,
}

/// Where a context is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ContextState {
    /// Nothing of it has begun.
    Triggered,
    /// It waits for its turn, and says why.
    Waiting,
    /// Something of it runs.
    Started,
    /// A person has it begin no further task.
    Paused,
    /// A person is to decide about it.
    WaitingForApproval,
    /// It has ended by itself.
    Finished,
    /// It was ended.
    Aborted,
    /// It took too long.
    TimedOut,
}

impl fmt::Display for ContextState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Where a context is in a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StageView {
    /// The stage.
    pub name: String,
    /// `triggered` until its sequence has finished, then the status of that.
    pub state: String,
    /// What is deployed, if the event that began it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// What its last evaluation came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest_evaluation: Option<EvaluationView>,
    /// What was told last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest_event: Option<LatestEvent>,
    /// What was told last that did not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest_failed_event: Option<LatestEvent>,
}

/// An evaluation in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvaluationView {
    /// `pass`, `warning` or `fail`.
    pub result: String,
    /// How much of what was possible it has reached, in per cent.
    #[schemars(with = "f64")]
    pub score: Number,
}

/// An event in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LatestEvent {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its id.
    pub id: String,
    /// When, as RFC 3339.
    pub time: String,
}

impl EventPage {
    /// Of all that there are, so many from here on.
    pub fn of(all: Vec<CloudEvent>, from: usize, size: usize) -> Self {
        let total_count = all.len();
        let events: Vec<_> = all.into_iter().skip(from).take(size).collect();
        let next_page_key = next(from, size, total_count).to_string();
        Self { page_size: events.len(), events, next_page_key, total_count }
    }
}

impl SequencePage {
    /// Of all that there are, so many from here on.
    pub fn of(all: Vec<SequenceView>, from: usize, size: usize) -> Self {
        let total_count = all.len();
        let states: Vec<_> = all.into_iter().skip(from).take(size).collect();
        let next_page_key = next(from, size, total_count);
        Self { page_size: states.len(), states, next_page_key, total_count }
    }
}

fn next(from: usize, size: usize, total: usize) -> usize {
    let next = from.saturating_add(size);
    if next < total { next } else { 0 }
}

impl SequenceView {
    /// Runs, newest first, as their contexts, newest first; of those that began in the same millisecond, what came last.
    pub fn of_runs(runs: &[SequenceRun]) -> Vec<Self> {
        let mut contexts: BTreeMap<&str, Vec<&SequenceRun>> = BTreeMap::new();
        for run in runs.iter().rev() {
            contexts.entry(run.context.as_deref().unwrap_or_default()).or_default().push(run);
        }
        let first = |(context, runs): (_, Vec<_>)| Some((*runs.first()?, context, runs));
        let mut contexts: Vec<(&SequenceRun, &str, Vec<&SequenceRun>)> =
            contexts.into_iter().filter_map(first).collect();
        // Ids grow.
        contexts.sort_by_key(|(first, ..)| Reverse((first.created_at, &first.id)));
        contexts.into_iter().map(|(first, context, runs)| Self::of(context, first, &runs)).collect()
    }

    /// The runs of one context, oldest first.
    fn of(context: &str, first: &SequenceRun, runs: &[&SequenceRun]) -> Self {
        let mut stages: Vec<StageView> = Vec::new();
        for run in runs {
            let view = StageView::of(run);
            let before = stages.iter().position(|stage| stage.name == view.name).map(|place| stages.remove(place));
            stages.push(view.after(before));
        }
        Self {
            name: first.sequence().to_owned(),
            service: first.service.service.to_string(),
            project: first.service.project.to_string(),
            time: rfc3339_sorting(first.created_at),
            shkeptncontext: context.to_owned(),
            state: state(runs),
            problem_title: text(&first.data, "/problem/ProblemTitle"),
            stages,
        }
    }
}

impl StageView {
    fn of(run: &SequenceRun) -> Self {
        let events = cloud_event::of_run(run);
        let failed = events.iter().rev().find(|event| event.text("result") == "fail" && event.time.is_some());
        Self {
            name: run.service.stage.to_string(),
            state: run.outcome.map_or("triggered", |outcome| dataflow::status(outcome.status)).to_owned(),
            image: IMAGES.into_iter().find_map(|place| text(&run.data, place)),
            latest_evaluation: EvaluationView::of(run),
            latest_event: events.iter().max_by_key(|event| &event.time).map(LatestEvent::of),
            latest_failed_event: failed.map(LatestEvent::of),
        }
    }
}

impl StageView {
    /// What another sequence in the same stage has come to before is still so.
    fn after(self, before: Option<Self>) -> Self {
        let Some(before) = before else { return self };
        let image = self.image.or(before.image);
        let latest_evaluation = self.latest_evaluation.or(before.latest_evaluation);
        Self { image, latest_evaluation, ..self }
    }
}

impl EvaluationView {
    /// The last one of a run that has ended; one that was ended from outside has come to nothing.
    fn of(run: &SequenceRun) -> Option<Self> {
        let was_ended = |outcome: &Outcome| matches!(outcome.status, Status::Aborted | Status::Superseded);
        let has_ended = |task: &TaskRecord| task.outcome.is_some_and(|outcome| !was_ended(&outcome));
        let is_over = |(_, task): &(usize, &TaskRecord)| task.name == EVALUATION_TASK && has_ended(task);
        let (index, task) = run.tasks.iter().enumerate().rev().find(is_over)?;
        let score = run.gathered(index + 1).pointer("/evaluation/score").and_then(Value::as_number).cloned();
        let score = score.unwrap_or_else(|| Number::from(0));
        Some(Self { result: task.outcome?.result.as_str().to_owned(), score })
    }
}

/// A text somewhere in data.
fn text(data: &Value, place: &str) -> Option<String> {
    data.pointer(place).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

impl LatestEvent {
    fn of(event: &CloudEvent) -> Self {
        let time = event.time.clone().unwrap_or_default();
        Self { kind: event.kind.clone(), id: event.id.clone(), time }
    }
}

/// Where a context is, by what has not ended of it, or else by what ended last.
fn state(runs: &[&SequenceRun]) -> ContextState {
    let open = runs.iter().filter(|run| run.ended_at.is_none());
    // One that is being ended waits for who is at its task, and not to be resumed.
    let is_paused = |run: &&SequenceRun| run.paused.is_some() && !matches!(run.state, SequenceState::Ending { .. });
    if open.clone().any(is_paused) {
        return ContextState::Paused;
    }
    let (mut queued, mut waits, mut asks) = (false, false, false);
    for run in open {
        match run.state {
            SequenceState::Queued => (queued, waits) = (true, waits || !run.message.is_empty()),
            _ if run.awaits_approval().is_some() => asks = true,
            _ => return ContextState::Started,
        }
    }
    let last = runs.iter().max_by_key(|run| run.ended_at).and_then(|run| run.outcome);
    match (asks, queued, last.map(|outcome| outcome.status)) {
        (true, _, _) => ContextState::WaitingForApproval,
        (_, true, _) if waits => ContextState::Waiting,
        (_, true, _) => ContextState::Triggered,
        (_, _, Some(Status::Aborted | Status::Superseded)) => ContextState::Aborted,
        (_, _, Some(Status::TimedOut)) => ContextState::TimedOut,
        _ => ContextState::Finished,
    }
}

/// A project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectView {
    /// Its name.
    pub project_name: String,
    /// When its applied revision was planned, in nanoseconds since 1970.
    pub creation_date: String,
    /// The version of its shipyard's format.
    pub shipyard_version: String,
    /// Its stages, in the shipyard's order.
    pub stages: Vec<StageOfProject>,
}

/// A stage of a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StageOfProject {
    /// Its name.
    pub stage_name: String,
    /// The services that are declared in it or had a sequence in it.
    pub services: Vec<ServiceOfStage>,
}

/// A service of a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceOfStage {
    /// Its name.
    pub service_name: String,
    /// When its applied revision was planned, in nanoseconds since 1970.
    pub creation_date: String,
}

macro_rules! page {
    ($(#[$doc:meta])* $name:ident, $field:ident: $item:ty) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            /// They.
            pub $field: Vec<$item>,
            /// Always `0`: this is all.
            pub next_page_key: String,
            /// How many there are.
            pub page_size: usize,
            /// The same.
            pub total_count: usize,
        }

        impl $name {
            /// All that there are.
            pub fn of($field: Vec<$item>) -> Self {
                let count = $field.len();
                Self { $field, next_page_key: "0".to_owned(), page_size: count, total_count: count }
            }
        }
    };
}

page!(
    /// All projects.
    ProjectPage, projects: ProjectView
);
page!(
    /// All stages of a project.
    StagePage, stages: StageOfProject
);
page!(
    /// All services of a stage.
    ServicePage, services: ServiceOfStage
);

impl ProjectView {
    /// A stage of it.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn into_stage(self, name: &str) -> Answer<StageOfProject> {
        let missing = || Problem::not_found(format!("project `{}` has no stage `{name}`", self.project_name));
        self.stages.iter().find(|stage| stage.stage_name == name).cloned().ok_or_else(missing)
    }
}

impl StageOfProject {
    /// A service of it.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn into_service(self, name: &str) -> Answer<ServiceOfStage> {
        let missing = || Problem::not_found(format!("stage `{}` has no service `{name}`", self.stage_name));
        self.services.iter().find(|service| service.service_name == name).cloned().ok_or_else(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fixtures::delivery;
    use crate::model::outcome::Outcome;

    #[test]
    fn contexts_that_began_in_the_same_millisecond_stand_in_the_order_in_which_they_came() {
        let run = |id: &str, context: &str| SequenceRun { context: Some(context.to_owned()), ..delivery(id, "a") };
        let views = SequenceView::of_runs(&[run("s3", "a"), run("s2", "c"), run("s1", "b")]);
        let contexts: Vec<&str> = views.iter().map(|view| view.shkeptncontext.as_str()).collect();
        assert_eq!(contexts, ["a", "c", "b"], "newest first");
    }

    #[test]
    fn what_is_paused_waits_to_be_resumed_unless_it_is_being_ended() {
        let paused = SequenceRun { paused: Some("ann".into()), ..delivery("s1", "a") };
        let ends = SequenceState::Ending { task: 0, outcome: Outcome::ABORTED };
        let ending = SequenceRun { state: ends, ..paused.clone() };
        assert_eq!((state(&[&paused]), state(&[&ending])), (ContextState::Paused, ContextState::Started));
    }
}
