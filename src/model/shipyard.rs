//! Keptn's shipyard: stages, their sequences, and the tasks in them. Source: shipyard 0.2.0 to 0.2.4.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ids::StageName;

/// What a shipyard file declares.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shipyard {
    /// `metadata.name`.
    pub name: String,
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

/// Tasks that run one after another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequence {
    /// Unique in its stage.
    pub name: String,
    /// Which events start it.
    pub triggered_on: Vec<SequenceTrigger>,
    /// At least one.
    pub tasks: Vec<Task>,
}

/// One entry of `triggeredOn`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequenceTrigger {
    /// `<stage>.<sequence>.finished`, or a domain event.
    pub event: String,
    /// All must hold; without any, `result` must be `pass` or `warning`.
    pub selector: BTreeMap<String, String>,
}

/// One step of a sequence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// `deployment` is built in; others run as their `Task` object says.
    pub name: String,
    /// A pause before it, in milliseconds.
    pub triggered_after_ms: u64,
    /// Handed to whoever runs it.
    pub properties: Value,
}

/// The one built-in task that deploys what changed.
pub const DEPLOYMENT_TASK: &str = "deployment";

impl Shipyard {
    /// What holds without a shipyard file: one stage that deploys.
    pub fn implicit() -> Self {
        let deployment = Task { name: DEPLOYMENT_TASK.into(), triggered_after_ms: 0, properties: Value::Null };
        let delivery = Sequence { name: "delivery".into(), triggered_on: Vec::new(), tasks: vec![deployment] };
        Self {
            name: "default".into(),
            stages: vec![Stage { name: StageName::new("default"), sequences: vec![delivery] }],
        }
    }

    /// The stage of that name.
    pub fn stage(&self, name: &StageName) -> Option<&Stage> {
        self.stages.iter().find(|stage| &stage.name == name)
    }
}

impl Stage {
    /// The sequence that a push runs: the named one, else `delivery`, else `artifact-delivery`, else the only one
    /// with a `deployment` task.
    pub fn delivery_sequence(&self, named: Option<&str>) -> Option<&Sequence> {
        let by_name = |name: &str| self.sequences.iter().find(|sequence| sequence.name == name);
        if let Some(name) = named {
            return by_name(name);
        }
        let with_deployment = || {
            let mut found = self.sequences.iter().filter(|s| s.tasks.iter().any(|task| task.name == DEPLOYMENT_TASK));
            found.next().filter(|_| found.next().is_none())
        };
        by_name("delivery").or_else(|| by_name("artifact-delivery")).or_else(with_deployment)
    }
}
