//! Deletes what is old: history, pods of runs that ended, launchables that nothing uses.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::error::Result;
use crate::executor::drive::Driver;
use crate::model::pod::{PodOwner, PodPhase};
use crate::model::run::{Phase, Run};
use crate::model::time::Timestamp;
use crate::runtime::{ImageUse, Runtime};
use crate::store::{Retention, RunFilter};

/// How often.
const INTERVAL: Duration = Duration::from_secs(3600);
/// Events of ended runs, plans, deliveries and posted statuses go after this.
const KEEP_HISTORY: Duration = Duration::from_secs(30 * 24 * 3600);
/// Pods of hooks and tasks, with their output, go this long after they were started.
const KEEP_OUTPUT: Duration = Duration::from_secs(7 * 24 * 3600);

/// Deletes what is old.
#[derive(Clone)]
pub struct Housekeeping {
    /// Knows the store and the time.
    pub driver: Driver,
    /// Knows pods and images.
    pub runtime: Arc<dyn Runtime>,
}

impl std::fmt::Debug for Housekeeping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Housekeeping").finish_non_exhaustive()
    }
}

impl Housekeeping {
    /// Works until told to stop.
    pub async fn run(self, stop: CancellationToken) {
        loop {
            tokio::select! { () = stop.cancelled() => return, () = tokio::time::sleep(INTERVAL) => {} }
            if let Err(failure) = self.clean().await {
                tracing::warn!(problem = failure.one_line(), "cannot delete what is old");
            }
        }
    }

    /// Deletes once.
    ///
    /// # Errors
    /// If the store or the runtime fails.
    pub async fn clean(&self) -> Result<()> {
        let now = self.driver.clock.now();
        self.driver.store.retain(Retention { before: ago(now, KEEP_HISTORY) }).await?;
        self.remove_old_pods(ago(now, KEEP_OUTPUT)).await?;
        let keep = self.images_in_use().await?;
        self.runtime.collect_garbage(&keep).await
    }

    async fn remove_old_pods(&self, before: Timestamp) -> Result<()> {
        for namespace in self.runtime.namespaces().await? {
            for pod in self.runtime.observe(&namespace).await? {
                let old = matches!(pod.phase, PodPhase::Ended { .. }) && pod.created_at < before;
                if old && matches!(pod.owner, PodOwner::Run { .. }) {
                    self.runtime.remove_pod(&pod.id).await?;
                }
            }
        }
        Ok(())
    }

    /// The images of what serves, of what is being brought up, and of the complete versions that a rollback may want.
    async fn images_in_use(&self) -> Result<Vec<ImageUse>> {
        let mut keep = BTreeSet::new();
        for run in self.driver.store.runs(&RunFilter { sequences: Some(false), ..RunFilter::default() }).await? {
            let Run::Deployment(run) = run.value else { continue };
            if run.phase != Phase::Failed {
                let containers =
                    run.spec.template.spec.init_containers.iter().chain(&run.spec.template.spec.containers);
                keep.extend(containers.map(|container| (run.repository.clone(), container.image.clone())));
            }
        }
        Ok(keep.into_iter().map(|(repository, image)| ImageUse { repository, image }).collect())
    }
}

fn ago(now: Timestamp, time: Duration) -> Timestamp {
    Timestamp(now.0.saturating_sub(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)))
}
