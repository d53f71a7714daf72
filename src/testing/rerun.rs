//! A person has the last sequence of a service run again.

use crate::engine::by_hand;
use crate::error::{Failure, Result};
use crate::executor::drive::Driver;
use crate::model::ids::{RunId, ServiceKey};
use crate::store::RunFilter;

/// Runs the last sequence of a service again that has ended, other than what was asked for by hand; says as which run.
///
/// # Errors
/// If none has ended, or it may not run again.
pub async fn rerun(driver: &Driver, service: &ServiceKey, from_start: bool, by: &str) -> Result<RunId> {
    let sequences = RunFilter {
        project: Some(service.project.clone()),
        stage: Some(service.stage.clone()),
        service: Some(service.service.to_string()),
        sequences: Some(true),
        ..RunFilter::default()
    };
    let known = driver.store.runs(&sequences).await?.whole()?;
    let mut sequences = known.iter().filter_map(|run| run.value.sequence());
    let last = sequences.find(|run| run.ended_at.is_some() && !run.is_by_hand());
    let last = last.ok_or_else(|| Failure::stalled("there is nothing to run again"))?;
    driver.decide(|transition| by_hand::rerun(transition, &last.id, from_start, by)).await
}
