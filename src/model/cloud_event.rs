//! Events as they are told over HTTP: CloudEvents with what Keptn adds. Source: CloudEvents 1.0; keptn/spec 0.2.4.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What all of Keptn's types begin with.
pub const PREFIX: &str = "sh.keptn.event.";
/// An event's type without it, as shipyards say it.
pub fn short(kind: &str) -> &str {
    kind.strip_prefix(PREFIX).unwrap_or(kind)
}

/// What launchway calls itself as the source of events.
pub const SOURCE: &str = "launchway";
/// The version of the events' specification.
const KEPTN_SPEC: &str = "0.2.4";
/// The version of CloudEvents.
pub const SPEC_VERSION: &str = "1.0";

fn spec_version() -> String {
    SPEC_VERSION.to_owned()
}

/// One event, as its JSON has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloudEvent {
    /// Unique for its source; whoever sends it again gives the same.
    #[serde(default)]
    pub id: String,
    /// Who tells it.
    pub source: String,
    /// The version of CloudEvents.
    #[serde(default = "spec_version")]
    pub specversion: String,
    /// What happened.
    #[serde(rename = "type")]
    pub kind: String,
    /// When, as RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// What `data` is written in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datacontenttype: Option<String>,
    /// What all events of a delivery through all stages have in common.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shkeptncontext: Option<String>,
    /// The version of Keptn's specification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shkeptnspecversion: Option<String>,
    /// The `.triggered` event that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triggeredid: Option<String>,
    /// The revision that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gitcommitid: Option<String>,
    /// The rest: of which project, stage and service it is, how it went, and whatever tasks leave to each other.
    #[serde(default)]
    pub data: Value,
}

impl CloudEvent {
    /// One of launchway's own.
    pub fn of(kind: impl Into<String>, id: impl Into<String>, data: Value) -> Self {
        Self {
            id: id.into(),
            source: SOURCE.to_owned(),
            specversion: SPEC_VERSION.to_owned(),
            kind: kind.into(),
            time: None,
            datacontenttype: Some("application/json".to_owned()),
            shkeptncontext: None,
            shkeptnspecversion: Some(KEPTN_SPEC.to_owned()),
            triggeredid: None,
            gitcommitid: None,
            data,
        }
    }

    /// A text in its data; empty if there is none.
    pub fn text(&self, key: &str) -> &str {
        self.data[key].as_str().unwrap_or_default()
    }

    /// Its type without what all have.
    pub fn short_kind(&self) -> &str {
        short(&self.kind)
    }

    /// What its type says.
    pub fn meaning(&self) -> Meaning<'_> {
        Meaning::of(&self.kind)
    }
}

/// What an event says, by its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning<'a> {
    /// A task is to be done: only launchway says that.
    TaskTriggered {
        /// The task's name.
        task: &'a str,
    },
    /// How an executor gets on with a task.
    Task {
        /// The task's name.
        task: &'a str,
        /// How.
        phase: Phase,
    },
    /// What came of a task counts no more.
    TaskInvalidated {
        /// The task's name.
        task: &'a str,
    },
    /// A sequence is to run.
    SequenceTriggered {
        /// In which stage.
        stage: &'a str,
        /// Which.
        sequence: &'a str,
    },
    /// A sequence has begun or ended: only launchway says that.
    SequenceTold,
    /// What an executor logs.
    Log,
    /// Something happened elsewhere that sequences may be triggered on.
    Domain,
}

impl<'a> Meaning<'a> {
    /// What a type says.
    pub fn of(kind: &'a str) -> Self {
        let parts: Vec<&str> = short(kind).split('.').collect();
        match parts[..] {
            [task, "triggered"] => Meaning::TaskTriggered { task },
            [task, "started"] => Meaning::Task { task, phase: Phase::Started },
            [task, "status", "changed"] => Meaning::Task { task, phase: Phase::StatusChanged },
            [task, "finished"] => Meaning::Task { task, phase: Phase::Finished },
            [task, "invalidated"] => Meaning::TaskInvalidated { task },
            [stage, sequence, "triggered"] => Meaning::SequenceTriggered { stage, sequence },
            [_, _, "started" | "finished"] => Meaning::SequenceTold,
            ["sh", "keptn", "log", "error"] => Meaning::Log,
            _ => Meaning::Domain,
        }
    }
}

/// How far an executor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It has begun.
    Started,
    /// It tells something.
    StatusChanged,
    /// It is done.
    Finished,
}

impl Phase {
    /// How types of events end that say so.
    pub fn word(self) -> &'static str {
        match self {
            Phase::Started => "started",
            Phase::StatusChanged => "status.changed",
            Phase::Finished => "finished",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_says_what_an_event_means() {
        for (kind, meaning) in [
            ("sh.keptn.event.test.triggered", Meaning::TaskTriggered { task: "test" }),
            ("sh.keptn.event.test.started", Meaning::Task { task: "test", phase: Phase::Started }),
            ("sh.keptn.event.test.status.changed", Meaning::Task { task: "test", phase: Phase::StatusChanged }),
            ("sh.keptn.event.get-action.finished", Meaning::Task { task: "get-action", phase: Phase::Finished }),
            ("sh.keptn.event.evaluation.invalidated", Meaning::TaskInvalidated { task: "evaluation" }),
            (
                "sh.keptn.event.dev.delivery.triggered",
                Meaning::SequenceTriggered { stage: "dev", sequence: "delivery" },
            ),
            ("sh.keptn.event.dev.delivery.finished", Meaning::SequenceTold),
            ("sh.keptn.log.error", Meaning::Log),
            ("sh.keptn.event.problem.open", Meaning::Domain),
            ("sh.keptn.event.production.problem.open", Meaning::Domain),
            ("com.example.image.built", Meaning::Domain),
            ("push", Meaning::Domain),
        ] {
            assert_eq!(CloudEvent::of(kind, "1", Value::Null).meaning(), meaning, "{kind}");
        }
    }
}
