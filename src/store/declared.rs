//! The declared objects that records refer to. Each content is stored once, by its digest.

use std::sync::Arc;

use crate::model::object::Object;
use crate::model::plan::ServicePlan;
use crate::model::run::Run;
use crate::model::state::{ConfigState, ObjectState};
use crate::store::record::PlanPart;

/// A record that refers to declared objects.
pub(super) trait Declares {
    /// They.
    fn objects(&self) -> Vec<&Arc<Object>>;
    /// They, to be given the content that was read for them.
    fn objects_mut(&mut self) -> Vec<&mut Arc<Object>>;
}

impl Declares for Run {
    fn objects(&self) -> Vec<&Arc<Object>> {
        match self {
            Run::Sequence(run) => run.changes.iter().filter_map(|change| change.object.as_ref()).collect(),
            Run::Deployment(run) => vec![&run.object],
        }
    }

    fn objects_mut(&mut self) -> Vec<&mut Arc<Object>> {
        match self {
            Run::Sequence(run) => run.changes.iter_mut().filter_map(|change| change.object.as_mut()).collect(),
            Run::Deployment(run) => vec![&mut run.object],
        }
    }
}

impl Declares for ConfigState {
    fn objects(&self) -> Vec<&Arc<Object>> {
        let attempted = self.attempted.as_ref().map(|attempt| &attempt.version);
        let versions = self.serving.iter().chain(attempted).map(|version| &version.object);
        [&self.object].into_iter().chain(versions).collect()
    }

    fn objects_mut(&mut self) -> Vec<&mut Arc<Object>> {
        let attempted = self.attempted.as_mut().map(|attempt| &mut attempt.version);
        let versions = self.serving.iter_mut().chain(attempted).map(|version| &mut version.object);
        [&mut self.object].into_iter().chain(versions).collect()
    }
}

impl Declares for ObjectState {
    fn objects(&self) -> Vec<&Arc<Object>> {
        vec![&self.object]
    }

    fn objects_mut(&mut self) -> Vec<&mut Arc<Object>> {
        vec![&mut self.object]
    }
}

impl Declares for PlanPart {
    fn objects(&self) -> Vec<&Arc<Object>> {
        let changes = self.stages.iter().flat_map(|(_, ServicePlan { changes, .. })| changes);
        changes.filter_map(|change| change.object.as_ref()).collect()
    }

    fn objects_mut(&mut self) -> Vec<&mut Arc<Object>> {
        let changes = self.stages.iter_mut().flat_map(|(_, ServicePlan { changes, .. })| changes);
        changes.filter_map(|change| change.object.as_mut()).collect()
    }
}
