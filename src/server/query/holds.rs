//! Why something may not change.

use std::collections::BTreeSet;

use super::{Query, Selection};
use crate::error::Result;
use crate::model::ids::ServiceKey;
use crate::model::state::RevisionState;
use crate::server::problem::Answer;
use crate::server::view::{HoldView, List};

impl Query {
    /// What is held and paused.
    pub async fn holds(&self, selection: &Selection) -> Answer<List<HoldView>> {
        self.check(selection).await?;
        let states = self.store.repositories().await?;
        let declaring = |project: &str| {
            let mut states = states.found.iter().map(|state| &state.value);
            let found = states.find(|state| state.project.as_ref().is_some_and(|name| name.as_str() == project));
            found.map(|state| state.name.to_string())
        };
        let holds = self.store.holds().await?;
        let all = holds.found.iter().map(HoldView::from).chain(self.paused().await?);
        let all = all.map(|hold| HoldView { repository: declaring(&hold.project), ..hold });
        Ok(all.filter(|hold| selection.takes_hold(hold)).collect::<List<_>>().beside(&holds.damaged))
    }

    /// What the files of the last revisions pause: as it is applied, or as it waits to be.
    async fn paused(&self) -> Result<BTreeSet<HoldView>> {
        let mut found = BTreeSet::new();
        for config in self.store.configs(None, None).await?.found.into_iter().map(|config| config.value) {
            if !config.removed && config.spec().is_ok_and(|spec| spec.paused) {
                found.insert(HoldView::paused(&config.service_key(), &config.object));
            }
            found.extend(config.quarantined.iter().map(|bad| HoldView::quarantined(&config, bad)));
        }
        for repository in self.repository_names(None).await? {
            let last = self.store.revisions(&repository, 1).await?.into_iter().next();
            let Some(plan) = last.as_ref().and_then(RevisionState::plan) else { continue };
            for (stage, part) in plan.stages.iter().flat_map(|stage| stage.services.iter().map(move |it| (stage, it))) {
                let (project, stage, service) = (plan.project.clone(), stage.stage.clone(), part.service.clone());
                let service = ServiceKey { project, stage, service };
                let paused = part.changes.iter().filter(|change| change.is_paused());
                let objects = paused.filter_map(|change| change.object.as_ref());
                found.extend(objects.map(|object| HoldView::paused(&service, object)));
            }
        }
        Ok(found)
    }
}
