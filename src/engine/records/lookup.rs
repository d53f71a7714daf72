//! What decisions ask for that is found by a search through many records.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::evaluation::{Earlier, Included};
use crate::model::ids::{
    CommitId, ConfigKey, Namespace, PlanId, ProjectName, RepositoryName, ServiceKey, ServiceName, StageName,
};
use crate::model::plan::Plan;
use crate::model::rollback::Past;
use crate::model::tag::SeenTags;
use crate::model::time::Timestamp;

/// What is found by a search through many records.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lookup {
    /// The part of a plan that is about a service. Plans never change.
    PlanOf(PlanId, ServiceName),
    /// The same of the newest plan that names the service; moves with the repository's record.
    NewestPlanOf(ProjectName, ServiceName),
    /// The newest version of a deployment config in the history; moves with the config's record.
    NewestVersion(ConfigKey),
    /// All versions in its history, oldest first; moves with the config's record.
    History(ConfigKey),
    /// When a revision was planned the last time, nothing if it never was; moves with the repository's record.
    PlannedAt(RepositoryName, CommitId),
    /// When any repository was planned the last time. It moves with none of the records that are read: two projects that are planned
    /// at once need not know of each other.
    LastPlanned,
    /// The plan of a revision without what it says of services; moves with the repository's record.
    Outline(RepositoryName, CommitId),
    /// Whether something with this id was told about a repository before, 1 or 0; two at once conflict.
    WasDelivered(RepositoryName, String),
    /// The tags that a repository had when they were compared last; only its syncs write them.
    SeenTags(RepositoryName),
    /// The stages of a project of which anything is left; grows only with the repository that declares it.
    Inhabited(ProjectName),
    /// The namespace in which anything is left of a stage, if anything is; it cannot change while there is.
    LivesIn(ProjectName, StageName),
    /// The last attempt at a revision for a service, at delivering it or at a sequence that only runs tasks; moves with
    /// the service's slot.
    Attempts(RepositoryName, CommitId, ServiceKey, Option<String>),
    /// What the ended runs of a sequence for a service were evaluated to, newest first, at most so many; moves with the
    /// service's slot.
    Evaluations(ServiceKey, String, Included, u32),
}

impl Lookup {
    /// Whether it finds a plan, or something of one: that is another only once a plan was written.
    pub fn is_of_plans(&self) -> bool {
        use Lookup::{NewestPlanOf, Outline, PlanOf, PlannedAt};
        matches!(self, PlanOf(..) | NewestPlanOf(..) | PlannedAt(..) | Outline(..))
    }
}

/// What a lookup found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A plan, if there is one.
    Plan(Option<Arc<Plan>>),
    /// A number.
    Number(u32),
    /// Versions.
    Versions(Vec<Past>),
    /// Stages.
    Stages(BTreeSet<StageName>),
    /// A namespace, if there is one.
    Namespace(Option<Namespace>),
    /// A time, if there is one.
    Moment(Option<Timestamp>),
    /// Evaluations.
    Evaluations(Vec<Earlier>),
    /// Tags, if they were compared before.
    Tags(Option<Arc<SeenTags>>),
}
