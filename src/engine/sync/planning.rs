//! The plan of a head, made once.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::model::ids::StageName;
use crate::model::plan::Plan;
use crate::model::project::Project;
use crate::plan::build::{Applied, Refusal, Revision, build};

/// What a head is planned against, and what comes of that. A decision begins anew whenever it needs another record, and planning
/// goes through all that is declared: so the first plan is kept. It is of one head.
#[derive(Debug)]
pub struct Planning {
    applied: BTreeMap<StageName, Applied>,
    /// Whether a person allowed it to delete more than the rule does, and the plan.
    made: OnceLock<(bool, Result<Plan, Refusal>)>,
}

impl Planning {
    /// Against what the stages of the declared project have.
    pub fn against(applied: BTreeMap<StageName, Applied>) -> Self {
        Self { applied, made: OnceLock::new() }
    }

    /// What the stages of the declared project have.
    pub fn applied(&self) -> &BTreeMap<StageName, Applied> {
        &self.applied
    }

    /// The same, once everything is decided.
    pub fn into_applied(self) -> BTreeMap<StageName, Applied> {
        self.applied
    }

    /// What a revision of the head would do. When it is planned changes nothing of that.
    pub(super) fn plan(&self, project: &Project, revision: &Revision) -> Result<Plan, Refusal> {
        let make = || build(project, revision, &self.applied);
        let (prune_allowed, made) = self.made.get_or_init(|| (revision.prune_allowed, make()));
        if *prune_allowed != revision.prune_allowed {
            return make();
        }
        Ok(Plan { at: revision.at, ..made.clone()? })
    }
}
