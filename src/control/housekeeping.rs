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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::pod::ObservedPod;
    use crate::model::shipyard::Shipyard;
    use crate::testing::runtime::Behaviour;
    use crate::testing::world::{World, deployment_config, hook, project};

    const DAY: Duration = Duration::from_secs(24 * 3600);

    /// `web` with a hook, in as many versions as images are given.
    async fn deployed(world: &mut World, images: &[&str]) {
        let strategy = json!({"strategy": {"type": "Recreate", "recreateParams": {"pre": hook("Abort")}}});
        for image in images {
            let web = deployment_config("web", image, 1, strategy.clone());
            world.push(&project(Shipyard::implicit(), &[web])).await.unwrap();
            world.settle().await.unwrap();
        }
    }

    /// The pods that are there, without replicas that have ended: those are the reconciler's.
    fn names(world: &World) -> Vec<String> {
        let ended = |pod: &&ObservedPod| matches!(pod.phase, PodPhase::Ended { .. });
        let replica = |pod: &&ObservedPod| matches!(pod.owner, PodOwner::Version { .. });
        let pods = world.runtime.pods();
        pods.iter().filter(|pod| !(ended(pod) && replica(pod))).map(|pod| pod.id.name.to_string()).collect()
    }

    fn housekeeping(world: &World) -> Housekeeping {
        Housekeeping { driver: world.driver.clone(), runtime: world.runtime.clone() }
    }

    #[tokio::test]
    async fn only_old_pods_of_what_has_ended_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::open(folder.path()).unwrap();
        deployed(&mut world, &["a"]).await;
        assert_eq!(names(&world), ["web-1-0", "web-1-hook-pre"]);
        world.pass(KEEP_OUTPUT - DAY).await.unwrap();
        deployed(&mut world, &["b"]).await;
        housekeeping(&world).clean().await.unwrap();
        assert!(names(&world).contains(&"web-1-hook-pre".to_owned()), "{:?}", names(&world));
        world.pass(2 * DAY).await.unwrap();
        housekeeping(&world).clean().await.unwrap();
        assert_eq!(names(&world), ["web-2-0", "web-2-hook-pre"], "what serves stays, and the output of this week");
    }

    #[tokio::test]
    async fn images_that_serve_or_that_a_rollback_may_want_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::open(folder.path()).unwrap();
        world.runtime.behave("shop-default/web-3-hook-pre", Behaviour::fails(1));
        deployed(&mut world, &["a", "b", "c"]).await;
        let kept = housekeeping(&world).images_in_use().await.unwrap();
        let kept: Vec<&str> = kept.iter().map(|image| image.image.as_str()).collect();
        assert_eq!(kept, ["a", "b"], "and not what failed");
    }
}
