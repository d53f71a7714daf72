//! Why something may not change now.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ids::{ConfigKey, HoldId, ProjectName, ServiceKey, ServiceName, StageName};
use super::time::Timestamp;

/// A hold on a project, a stage or a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// Its identity.
    pub id: HoldId,
    /// What placed it.
    pub kind: HoldKind,
    /// What it covers.
    pub scope: HoldScope,
    /// Why, for people.
    pub reason: String,
    /// Who placed it.
    pub by: String,
    /// Since when.
    pub since: Timestamp,
}

/// What places holds. A rollback's keeps Git from undoing it, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HoldKind {
    /// A person, who wants nothing to change.
    Person,
    /// A rollback, which a person has to release.
    Rollback,
    /// A person who has paused a deployment config's rollouts, whose replicas may change, or a delivery, or a stage.
    Pause,
}

impl Hold {
    /// Whether it has sequences begin no further task: a person has paused a delivery or a stage. One of a service pauses rollouts.
    pub fn pauses_tasks(&self) -> bool {
        self.kind == HoldKind::Pause && self.scope.service.is_none()
    }
}

impl HoldKind {
    /// Its word in lists.
    pub fn as_str(self) -> &'static str {
        match self {
            HoldKind::Person => "hold",
            HoldKind::Rollback => "rollback",
            HoldKind::Pause => "pause",
        }
    }
}

/// All holds of a project, oldest first: one record, so that whoever goes on because none is in the way meets whoever
/// places one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectHolds {
    /// The project.
    pub project: ProjectName,
    /// Its holds.
    pub holds: Vec<Hold>,
    /// What is let go although its file says `paused`, until a revision says that no longer.
    #[serde(default)]
    pub lifted: Vec<Lifted>,
    /// `Deployment`s whose rollouts stay where they are because the file says `paused`, until a revision says that no longer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped: Vec<ConfigKey>,
}

/// A deployment config that a person lets go on although its file says `paused`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lifted {
    /// Which.
    pub config: ConfigKey,
    /// Who lets it.
    pub by: String,
    /// Since when.
    pub since: Timestamp,
}

/// What a person releases in a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Release {
    /// Holds, which go.
    pub holds: Vec<HoldId>,
    /// What files pause.
    pub paused: Vec<Lifted>,
}

impl ProjectHolds {
    /// Nothing is held.
    pub fn none(project: ProjectName) -> Self {
        Self { project, holds: Vec::new(), lifted: Vec::new(), stopped: Vec::new() }
    }

    /// Whether a person lets a deployment config go on that its file pauses.
    pub fn has_lifted(&self, config: &ConfigKey) -> bool {
        self.lifted.iter().any(|lifted| lifted.config == *config)
    }

    /// What is left once something was released.
    #[must_use]
    pub fn after(mut self, release: &Release) -> Self {
        self.holds.retain(|hold| !release.holds.contains(&hold.id));
        self.lifted.retain(|known| release.paused.iter().all(|new| new.config != known.config));
        self.lifted.extend(release.paused.iter().cloned());
        self
    }
}

/// What a hold covers: everything below the parts that are given.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HoldScope {
    /// The project.
    pub project: ProjectName,
    /// One stage of it, or all.
    pub stage: Option<StageName>,
    /// One service of it, or all.
    pub service: Option<ServiceName>,
    /// What has this context alone, in whichever of these, or everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
}

impl HoldScope {
    /// One service in one stage.
    pub fn of(ServiceKey { project, stage, service }: ServiceKey) -> Self {
        Self { project, stage: Some(stage), service: Some(service), context: None }
    }

    /// Whether a service of a stage is covered, whatever is to be done to it.
    pub fn covers(&self, project: &ProjectName, stage: &StageName, service: &ServiceName) -> bool {
        self.context.is_none() && self.has(project, stage, service)
    }

    /// Whether what has a context is covered for a service of a stage.
    pub fn covers_context(
        &self,
        context: Option<&String>,
        project: &ProjectName,
        stage: &StageName,
        service: &ServiceName,
    ) -> bool {
        (self.context.is_none() || self.context.as_ref() == context) && self.has(project, stage, service)
    }

    fn has(&self, project: &ProjectName, stage: &StageName, service: &ServiceName) -> bool {
        &self.project == project
            && self.stage.as_ref().is_none_or(|held| held == stage)
            && self.service.as_ref().is_none_or(|held| held == service)
    }

    /// The service in a stage that is all it covers, if it covers no more.
    pub fn one_service(&self) -> Option<ServiceKey> {
        let (stage, service) = (self.stage.clone()?, self.service.clone()?);
        if self.context.is_some() {
            return None;
        }
        Some(ServiceKey { project: self.project.clone(), stage, service })
    }
}

impl fmt::Display for HoldScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.project)?;
        match (&self.stage, &self.service) {
            (Some(stage), Some(service)) => write!(f, "/{stage}/{service}"),
            (Some(stage), None) => write!(f, "/{stage}"),
            (None, Some(service)) => write!(f, "/*/{service}"),
            (None, None) => Ok(()),
        }?;
        self.context.as_ref().map_or(Ok(()), |context| write!(f, " context {context}"))
    }
}
