//! What comes of a simulation.

use std::time::Duration;

use serde::Serialize;

use crate::clock::from_rfc3339;
use crate::model::cloud_event::CloudEvent;
use crate::model::run::SequenceRun;
use crate::model::time::Timestamp;
use crate::server::view::SequenceView;

/// What would come of a script.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Simulation {
    /// When its time begins.
    #[serde(skip)]
    pub began: Timestamp,
    /// What each line leads to; the first one of line 0 is what the revision itself does, if it does anything.
    pub steps: Vec<Step>,
    /// What has not ended.
    pub waiting: Vec<Waiting>,
    /// Where every context stands, newest first, as `/api/controlPlane/v1/sequence` has it.
    pub states: Vec<SequenceView>,
}

/// What a line leads to.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// Counts from 1.
    pub line: u32,
    /// As it is written.
    pub command: String,
    /// Why it has no effect; empty if it has one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ignored: String,
    /// What is told then, in its order.
    pub events: Vec<CloudEvent>,
}

/// A sequence that has not ended.
#[derive(Clone, Debug, Serialize)]
pub struct Waiting {
    /// In which stage.
    pub stage: String,
    /// For which service.
    pub service: String,
    /// Its name.
    pub sequence: String,
    /// The task that it is at, if it is at one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// What it waits for, for people.
    pub message: String,
}

impl Waiting {
    /// A run.
    pub fn of(run: &SequenceRun) -> Self {
        let task = run.task();
        let message = match task {
            Some(task) if task.started_at.is_none() && run.message.is_empty() => "pauses before it",
            Some(task) if run.message.is_empty() => task.message.as_str(),
            _ => run.message.as_str(),
        };
        Self {
            stage: run.service.stage.to_string(),
            service: run.service.service.to_string(),
            sequence: run.sequence().to_owned(),
            task: task.map(|task| task.step.clone()),
            message: message.to_owned(),
        }
    }
}

impl Simulation {
    /// For people: below each line what is told then, with the time since the beginning; at the end where everything stands.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for step in &self.steps {
            text.push_str(&format!("> {}\n", step.command));
            step.events.iter().for_each(|event| text.push_str(&self.event(event)));
            if !step.ignored.is_empty() {
                text.push_str(&format!("  ignored: {}\n", step.ignored));
            }
        }
        if !self.states.is_empty() {
            text.push('\n');
        }
        for state in self.states.iter().rev() {
            let stages: Vec<String> = state.stages.iter().map(|it| format!("{} {}", it.name, it.state)).collect();
            text.push_str(&format!("{} {}: {} ({})\n", state.service, state.name, state.state, stages.join(", ")));
        }
        for waiting in &self.waiting {
            let task = waiting.task.as_ref().map(|task| format!(" at {task}")).unwrap_or_default();
            let place = format!("{}/{} {}{task}", waiting.stage, waiting.service, waiting.sequence);
            text.push_str(&format!("  {place}: {}\n", waiting.message));
        }
        text
    }

    fn event(&self, event: &CloudEvent) -> String {
        let at = event.time.as_deref().and_then(from_rfc3339).unwrap_or(self.began);
        let place = format!("{}/{}", event.text("stage"), event.text("service"));
        let outcome: Vec<&str> = ["status", "result", "message"]
            .into_iter()
            .map(|key| event.text(key))
            .filter(|it| !it.is_empty())
            .collect();
        let is_asked = event.kind.ends_with(".triggered");
        let outcome = if is_asked { String::new() } else { outcome.join(" ") };
        let line = format!("  {:<8}  {:<32} {place}  {outcome}", since(at.since(self.began)), event.short_kind());
        format!("{}\n", line.trim_end())
    }
}

/// Hours, minutes, seconds, and milliseconds where there are any.
fn since(time: Duration) -> String {
    let (seconds, milliseconds) = (time.as_secs(), time.subsec_millis());
    let whole = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds % 3600 / 60, seconds % 60);
    if milliseconds == 0 { whole } else { format!("{whole}.{milliseconds:03}") }
}
