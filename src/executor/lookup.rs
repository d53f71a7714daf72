//! Answers what decisions ask for that is found by a search through many records.

use std::sync::Arc;

use crate::engine::records::{Found, Lookup};
use crate::error::Result;
use crate::executor::evaluations;
use crate::model::ids::{ConfigKey, Namespace, ProjectName, StageName};
use crate::model::object::Kind;
use crate::model::rollback::Past;
use crate::model::run::Run;
use crate::model::state::AppliedDigest;
use crate::store::{ReadStore, RunFilter};

/// What a lookup finds now.
///
/// # Errors
/// If the store fails, or a record that counts cannot be read.
pub(super) async fn look_up(store: &dyn ReadStore, lookup: &Lookup) -> Result<Found> {
    Ok(match lookup {
        Lookup::PlanOf(plan, service) => Found::Plan(store.plan_of(plan, service).await?.map(Arc::new)),
        Lookup::NewestPlanOf(project, service) => {
            Found::Plan(store.newest_plan_of(project, service).await?.map(Arc::new))
        }
        Lookup::NewestVersion(config) => {
            let filter = RunFilter { limit: 1, ..versions_of(config) };
            let newest = store.runs(&filter).await?.whole()?.into_iter().next().map(|run| run.value);
            Found::Number(match newest {
                Some(Run::Deployment(run)) => run.version,
                Some(Run::Sequence(_)) | None => 0,
            })
        }
        Lookup::History(config) => Found::Versions(history(store, config).await?),
        Lookup::PlannedAt(repository, commit) => {
            let revision = store.outline(repository, commit.as_str()).await?;
            Found::Moment(revision.and_then(|revision| revision.plan().map(|plan| plan.at)))
        }
        Lookup::LastPlanned => {
            let repositories = store.repositories().await?.found;
            Found::Moment(repositories.iter().filter_map(|known| known.value.planned_at).max())
        }
        Lookup::Outline(repository, commit) => {
            let revision = store.outline(repository, commit.as_str()).await?;
            Found::Plan(revision.and_then(|revision| revision.plan().cloned()).map(Arc::new))
        }
        Lookup::WasDelivered(repository, id) => Found::Number(u32::from(store.was_delivered(repository, id).await?)),
        Lookup::SeenTags(repository) => Found::Tags(store.seen_tags(repository).await?.map(Arc::new)),
        Lookup::Inhabited(project) => {
            let open = store.open_slot_keys(Some(project)).await?.into_iter().map(|slot| slot.stage);
            Found::Stages(store.applied_stages(project).await?.into_iter().chain(open).collect())
        }
        Lookup::LivesIn(project, stage) => Found::Namespace(lives_in(store, project, stage).await?),
        Lookup::Attempts(repository, commit, service, sequence) => {
            Found::Number(store.attempts(repository, commit, service, sequence.as_deref()).await?)
        }
        Lookup::Evaluations(service, sequence, included, most) => {
            Found::Evaluations(evaluations::earlier(store, (service, sequence), *included, *most).await?)
        }
    })
}

/// Where what is applied of a stage is, which is all in one place; else, where what is under way brings it.
async fn lives_in(store: &dyn ReadStore, project: &ProjectName, stage: &StageName) -> Result<Option<Namespace>> {
    if let Some(AppliedDigest { key, .. }) = store.applied(project, stage).await?.into_iter().next() {
        let destination = if key.kind == Kind::DeploymentConfig {
            let key = ConfigKey { project: project.clone(), stage: stage.clone(), name: key.name };
            store.config(&key).await?.map(|config| config.value.destination)
        } else {
            store.object(project, stage, &key).await?.map(|object| object.value.destination)
        };
        return Ok(destination.map(|destination| destination.namespace));
    }
    let open = store.open_slots(Some(project)).await?.into_iter().map(|slot| slot.value);
    let mut open = open.filter(|slot| &slot.service.stage == stage);
    let Some(run) = open.find_map(|slot| slot.holder.or_else(|| slot.waiting.into_iter().next())) else {
        return Ok(None);
    };
    let run = store.run(&run).await?;
    Ok(run.and_then(|run| run.value.sequence().map(|run| run.destination.namespace.clone())))
}

/// What lists the versions of a deployment config.
fn versions_of(config: &ConfigKey) -> RunFilter {
    RunFilter {
        project: Some(config.project.clone()),
        stage: Some(config.stage.clone()),
        config: Some(config.name.clone()),
        sequences: Some(false),
        ..RunFilter::default()
    }
}

async fn history(store: &dyn ReadStore, config: &ConfigKey) -> Result<Vec<Past>> {
    let runs = store.runs(&versions_of(config)).await?.whole()?;
    let mut versions: Vec<Past> = runs
        .iter()
        .filter_map(|run| match &run.value {
            Run::Deployment(run) => Some(Past::from(&**run)),
            Run::Sequence(_) => None,
        })
        .collect();
    versions.sort_by_key(|past| past.version);
    Ok(versions)
}
