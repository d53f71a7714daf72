//! What happened to runs.

use std::collections::BTreeMap;

use super::{MOST, Query, Selection};
use crate::error::Result;
use crate::model::ids::{RepositoryName, RunId, ServiceKey};
use crate::server::problem::Answer;
use crate::server::view::{EventView, List};
use crate::store::EventRow;

impl Query {
    /// What happened to runs, oldest first: what follows a number, or else the last of it.
    pub async fn events(&self, selection: &Selection) -> Answer<List<EventView>> {
        self.check(selection).await?;
        let most = usize::try_from(selection.limit()).unwrap_or(usize::MAX);
        let is_chosen = selection.repository.is_some() || selection.stage.is_some();
        let (mut items, mut known) = (Vec::new(), BTreeMap::new());
        if is_chosen {
            known = self.told_beside_runs(selection).await?;
        }
        let mut reached = selection.after;
        while items.len() < most {
            let rows = self.some_events(selection, reached, if is_chosen { MOST } else { selection.limit() }).await?;
            let Some(EventRow { number, .. }) = rows.last() else { break };
            reached = Some(*number);
            for row in &rows {
                if !is_chosen || self.is_told_in(selection, &row.run, &mut known).await? {
                    items.push(EventView::from(row));
                }
            }
        }
        items.truncate(most);
        if selection.after.is_none() {
            items.reverse();
        }
        Ok(items.into_iter().collect())
    }

    /// At most so many from where others were read up to: forwards after a number that is asked for, else back from the last.
    async fn some_events(&self, selection: &Selection, reached: Option<i64>, most: u32) -> Result<Vec<EventRow>> {
        let run = selection.run.as_deref().map(RunId::from);
        match selection.after {
            Some(after) => self.store.events(run.as_ref(), reached.unwrap_or(after), most).await,
            None => self.store.newest_events(run.as_ref(), reached.unwrap_or(i64::MAX), most).await,
        }
    }

    /// Under what facts are remembered that concern deployment configs of a repository or stage and no run.
    async fn told_beside_runs(&self, selection: &Selection) -> Result<BTreeMap<RunId, bool>> {
        let Selection { repository, stage, .. } = selection.clone();
        let selection = Selection { repository, stage, ..Selection::default() };
        let configs = self.config_states(&selection).await?;
        // What a commit says has no stage before it counts.
        let repositories = self.repository_names(selection.repository.as_deref()).await?;
        let repositories = repositories.iter().filter(|_| selection.stage.is_none()).map(RepositoryName::events);
        let configs = configs.found.iter().map(|config| config.key.events());
        Ok(configs.chain(repositories).map(|run| (run, true)).collect())
    }

    /// Whether a run is of the repository and in the stage; `known` is what was found of runs before.
    async fn is_told_in(&self, selection: &Selection, run: &RunId, known: &mut BTreeMap<RunId, bool>) -> Result<bool> {
        if let Some(known) = known.get(run) {
            return Ok(*known);
        }
        let is_of = match ServiceKey::with_events(run) {
            Some(service) => self.is_in(selection, &service).await?,
            None => self.store.run(run).await?.is_some_and(|found| selection.takes_place(&found.value)),
        };
        known.insert(run.clone(), is_of);
        Ok(is_of)
    }

    /// Whether a service is of the repository and in the stage.
    async fn is_in(&self, selection: &Selection, service: &ServiceKey) -> Result<bool> {
        let project = match &selection.repository {
            Some(name) => self.store.repository(&name.as_str().into()).await?.and_then(|state| state.value.project),
            None => Some(service.project.clone()),
        };
        let is_here = selection.takes(selection.stage.as_ref(), service.stage.as_str());
        Ok(is_here && project.as_ref() == Some(&service.project))
    }
}
