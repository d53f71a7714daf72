//! Keptn's shipyard: stages, their sequences, and the tasks in them. Source: shipyard 0.2.0 to 0.2.4.

mod deployment_strategy;
mod selector;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::deployment_config::StrategyKind;
use super::ids::StageName;

pub use deployment_strategy::{DEPLOYMENT_STRATEGY, DeploymentStrategy};
pub use selector::{Operator, Requirement, Selector};

/// What a shipyard file declares.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shipyard {
    /// `metadata.name`.
    pub name: String,
    /// `apiVersion`, as it is written; empty without a file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// In the file's order.
    pub stages: Vec<Stage>,
}

/// A stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// Unique in the shipyard.
    pub name: StageName,
    /// What can run in it.
    pub sequences: Vec<Sequence>,
}

/// What ends in a stage as `<stage>.<name>.finished`.
#[derive(Clone, Debug)]
pub enum Ended<'a> {
    /// The sequence of that name.
    Sequence(&'a Sequence),
    /// The task of that name, in all of these.
    Task(Vec<&'a Sequence>),
}

/// Tasks that run one after another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequence {
    /// Unique in its stage.
    pub name: String,
    /// Which events start it.
    pub triggered_on: Vec<SequenceTrigger>,
    /// At least one.
    pub tasks: Vec<Task>,
    /// How long all of it may take once it has begun, in milliseconds; launchway's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Which of its runs have their turn that wait for the same slot; launchway's own. If it is not said, the newest delivery of
    /// what is declared, and all of what executors do, as in Keptn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueuePolicy>,
}

/// Which of the runs that wait for a slot have their turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueuePolicy {
    /// The newest: older ones end as superseded before they have begun.
    Newest,
    /// All, one after another, each to its end.
    All,
}

/// One entry of `triggeredOn`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequenceTrigger {
    /// `<stage>.<sequence>.finished`, or a domain event.
    pub event: String,
    /// What must hold of what ended.
    pub selector: Selector,
}

/// One step of a sequence. What Keptn's format does not have is left out where it is stored if the file does not say it:
/// Keptn's shipyards keep their digests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// `deployment` is built in; others run as their `Task` object says.
    pub name: String,
    /// A pause before it, in milliseconds.
    pub triggered_after_ms: u64,
    /// Handed to whoever runs it.
    pub properties: Value,
    /// After which ends of the tasks before it, it runs.
    #[serde(default, skip_serializing_if = "Condition::is_default")]
    pub condition: Condition,
    /// How long it may take from its start to its end, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How long it may take until somebody has started it, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_timeout_ms: Option<u64>,
    /// For how long who has begun it may be silent, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_ms: Option<u64>,
    /// How often it is tried again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u32,
    /// Who all have to finish it; if nobody is named, whoever starts it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub executors: Vec<String>,
    /// Whether others of its service and stage wait during the pause before it.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub holds_slot: bool,
}

/// After which ends of the tasks before it a task runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Condition {
    /// All before it have passed.
    #[default]
    OnSuccess,
    /// One before it has not passed.
    OnFailure,
    /// Whatever became of those before it.
    Always,
}

impl QueuePolicy {
    /// All of them, as they are written.
    pub const WORDS: [&'static str; 2] = ["newest", "all"];

    /// The policy of that word.
    pub fn named(word: &str) -> Option<Self> {
        let all = [Self::Newest, Self::All];
        all.into_iter().zip(Self::WORDS).find(|(_, known)| *known == word).map(|(policy, _)| policy)
    }
}

impl Condition {
    /// All of them, as they are written.
    pub const WORDS: [&'static str; 3] = ["onSuccess", "onFailure", "always"];

    /// The condition of that word.
    pub fn named(word: &str) -> Option<Self> {
        let all = [Self::OnSuccess, Self::OnFailure, Self::Always];
        all.into_iter().zip(Self::WORDS).find(|(_, known)| *known == word).map(|(condition, _)| condition)
    }

    /// Whether a task has its turn, of those before which one has failed or none has.
    pub fn holds(self, has_failed: bool) -> bool {
        match self {
            Condition::OnSuccess => !has_failed,
            Condition::OnFailure => has_failed,
            Condition::Always => true,
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_yes(value: &bool) -> bool {
    *value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(value: &u32) -> bool {
    *value == 0
}

/// The one built-in task that deploys what changed.
pub const DEPLOYMENT_TASK: &str = "deployment";

/// The one that judges what was measured; also the name of a sequence that every stage has.
pub const EVALUATION_TASK: &str = "evaluation";

/// The one about which a person decides.
pub const APPROVAL_TASK: &str = "approval";

/// The one that goes back to what was before: a sequence with it waits for no delivery that has not begun.
pub const ROLLBACK_TASK: &str = "rollback";

impl Shipyard {
    /// What holds without a shipyard file: one stage that deploys.
    pub fn implicit() -> Self {
        let tasks = vec![Task::named(DEPLOYMENT_TASK)];
        let delivery = Sequence { name: "delivery".into(), tasks, ..Sequence::default() };
        Self {
            name: "default".into(),
            version: String::new(),
            stages: vec![Stage { name: StageName::new("default"), sequences: vec![delivery] }],
        }
    }

    /// The stage of that name.
    pub fn stage(&self, name: &StageName) -> Option<&Stage> {
        self.stages.iter().find(|stage| &stage.name == name)
    }
}

impl Task {
    /// One that starts at once and of which nothing else is said.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            triggered_after_ms: 0,
            properties: Value::Null,
            condition: Condition::default(),
            timeout_ms: None,
            start_timeout_ms: None,
            heartbeat_ms: None,
            retries: 0,
            executors: Vec::new(),
            holds_slot: true,
        }
    }
}

impl Sequence {
    /// Whether a task of that name is in it.
    pub fn has_task(&self, name: &str) -> bool {
        self.tasks.iter().any(|task| task.name == name)
    }
}

impl Stage {
    /// The sequence of that name.
    pub fn sequence(&self, name: &str) -> Option<&Sequence> {
        self.sequences.iter().find(|sequence| sequence.name == name)
    }

    /// What takes the place of the strategies of deployment configs in the sequence that a push runs: the first task that
    /// deploys says it, because whatever comes after that finds everything deployed.
    pub fn overriding_strategy(&self, named: Option<&str>) -> Option<StrategyKind> {
        let mut tasks = self.delivery_sequence(named)?.tasks.iter();
        tasks.find(|task| task.name == DEPLOYMENT_TASK)?.deployment_strategy()?.overriding()
    }

    /// What ends in it under a name, which a sequence has for itself.
    pub fn ended(&self, name: &str) -> Option<Ended<'_>> {
        let having = || self.sequences.iter().filter(|sequence| sequence.has_task(name)).collect();
        let task = || Some(having()).filter(|having: &Vec<&Sequence>| !having.is_empty()).map(Ended::Task);
        self.sequence(name).map(Ended::Sequence).or_else(task)
    }

    /// The sequence that a push runs: the named one, else `delivery`, else `artifact-delivery`, else the only one
    /// with a `deployment` task.
    pub fn delivery_sequence(&self, named: Option<&str>) -> Option<&Sequence> {
        if let Some(name) = named {
            return self.sequence(name);
        }
        let with_deployment = || {
            let mut found = self.sequences.iter().filter(|sequence| sequence.has_task(DEPLOYMENT_TASK));
            found.next().filter(|_| found.next().is_none())
        };
        self.sequence("delivery").or_else(|| self.sequence("artifact-delivery")).or_else(with_deployment)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_keptns_format_says_is_stored_as_before_there_were_additions() {
        let trigger = SequenceTrigger {
            event: "dev.delivery.finished".into(),
            selector: [Requirement::is("result", "fail")].into_iter().collect(),
        };
        let sequence = Sequence {
            name: "rollback".into(),
            triggered_on: vec![trigger],
            tasks: vec![Task { triggered_after_ms: 10, properties: json!({"a": 1}), ..Task::named("test") }],
            ..Sequence::default()
        };
        let stage = Stage { name: StageName::new("dev"), sequences: vec![sequence] };
        let written =
            serde_json::to_string(&Shipyard { name: "shop".into(), stages: vec![stage], ..Shipyard::default() })
                .unwrap();
        let before = concat!(
            r#"{"name":"shop","stages":[{"name":"dev","sequences":[{"name":"rollback","triggered_on":[{"event":"#,
            r#""dev.delivery.finished","selector":{"result":"fail"}}],"tasks":[{"name":"test","triggered_after_ms":10,"#,
            r#""properties":{"a":1}}]}]}]}"#,
        );
        assert_eq!(written, before);
        let read: Shipyard = serde_json::from_str(before).unwrap();
        assert!(read.stages[0].sequences[0].tasks[0].holds_slot);
        assert_eq!(serde_json::to_string(&read).unwrap(), before);
    }

    #[test]
    fn additions_are_stored_and_read() {
        let task = Task {
            condition: Condition::OnFailure,
            timeout_ms: Some(1),
            start_timeout_ms: Some(2),
            heartbeat_ms: Some(5),
            retries: 3,
            executors: vec!["helm-service".into()],
            holds_slot: false,
            ..Task::named("test")
        };
        let sequence = Sequence { tasks: vec![task], timeout_ms: Some(4), ..Sequence::default() };
        let written = serde_json::to_value(&sequence).unwrap();
        assert_eq!((&written["tasks"][0]["condition"], &written["timeout_ms"]), (&json!("onFailure"), &json!(4)));
        assert_eq!(serde_json::from_value::<Sequence>(written).unwrap(), sequence);
        for word in Condition::WORDS {
            assert_eq!(json!(Condition::named(word)), json!(word));
        }
    }
}
