//! By which strategy a `deployment` task deploys. Source: Keptn's `deploymentstrategy`; its proposal has `blue_green` too.

use super::{ROLLBACK_TASK, Task};
use crate::model::deployment_config::StrategyKind;

/// The property that says it.
pub const DEPLOYMENT_STRATEGY: &str = "deploymentstrategy";

/// What `deploymentstrategy` may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeploymentStrategy {
    /// Each deployment config's own, as without the property.
    Direct,
    /// Blue/green, whatever they say themselves.
    BlueGreen,
    /// A canary, whatever they say themselves.
    Canary,
    /// Programs elsewhere deploy.
    UserManaged,
}

impl DeploymentStrategy {
    /// All of them, as they are written.
    pub const WORDS: [&'static str; 5] = ["direct", "blue_green", "blue_green_service", "canary", "user_managed"];

    /// What takes the place of the strategies of deployment configs, if anything does.
    pub fn overriding(self) -> Option<StrategyKind> {
        match self {
            Self::Direct | Self::UserManaged => None,
            Self::BlueGreen => Some(StrategyKind::BlueGreen),
            Self::Canary => Some(StrategyKind::Canary),
        }
    }

    fn named(word: &str) -> Option<Self> {
        match word {
            "direct" => Some(Self::Direct),
            "blue_green" | "blue_green_service" => Some(Self::BlueGreen),
            "canary" => Some(Self::Canary),
            "user_managed" => Some(Self::UserManaged),
            _ => None,
        }
    }
}

impl Task {
    /// By which strategy it deploys, if it is a `deployment` that says so.
    pub fn deployment_strategy(&self) -> Option<DeploymentStrategy> {
        DeploymentStrategy::named(self.properties[DEPLOYMENT_STRATEGY].as_str()?)
    }

    /// Whether launchway goes back in it, unless a `Task` object says how it runs.
    pub fn is_built_in_rollback(&self) -> bool {
        let is_theirs =
            !self.executors.is_empty() || self.deployment_strategy() == Some(DeploymentStrategy::UserManaged);
        self.name == ROLLBACK_TASK && !is_theirs
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_word_means_something_and_nothing_else_does() {
        for word in DeploymentStrategy::WORDS {
            assert!(DeploymentStrategy::named(word).is_some(), "{word}");
        }
        for properties in [json!(null), json!({}), json!({"deploymentstrategy": "Canary"}), json!(["canary"])] {
            let task = Task { properties: properties.clone(), ..Task::named("deployment") };
            assert_eq!(task.deployment_strategy(), None, "{properties}");
        }
    }
}
