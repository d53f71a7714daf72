//! Sinks: who is told what happens, beside the commits.

use super::ids::{ProjectName, ServiceName, StageName};
use super::shipyard::Selector;

/// Which events a sink is told. All that is said must hold; of a list that is empty, everything does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subscription {
    /// Types, with or without `sh.keptn.event.`; `*` stands for any letters.
    pub types: Vec<String>,
    /// Projects.
    pub projects: Vec<ProjectName>,
    /// Stages.
    pub stages: Vec<StageName>,
    /// Services.
    pub services: Vec<ServiceName>,
    /// What the data must be.
    pub selector: Selector,
}
