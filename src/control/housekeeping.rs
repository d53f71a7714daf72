//! Deletes what nothing needs any more: history, pods of runs that ended, launchables.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::config::RetentionSettings;
use crate::engine::holds;
use crate::error::{Class, Result};
use crate::executor::drive::Driver;
use crate::model::hold::{HoldScope, Release};
use crate::model::pod::{ObservedPod, PodOwner, PodPhase};
use crate::model::run::{Phase, Run};
use crate::model::time::Timestamp;
use crate::runtime::{ImageUse, Runtime};
use crate::store::{Retained, Retention, RunFilter};

/// How often.
const INTERVAL: Duration = Duration::from_secs(3600);
/// After a start, sooner: who works with `up` for less than an hour a time has a disk too.
const FIRST: Duration = Duration::from_secs(60);
/// Runs that are read at once.
const PAGE: u32 = 500;

/// Deletes what nothing needs any more.
#[derive(Clone)]
pub struct Housekeeping {
    /// Knows the store and the time.
    pub driver: Driver,
    /// Knows pods and images.
    pub runtime: Arc<dyn Runtime>,
    /// How long things are kept.
    pub policy: RetentionSettings,
}

/// What was deleted, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Rows of the store, by kind.
    pub rows: Retained,
    /// Pods of hooks and tasks, with their output.
    pub pods: u64,
    /// Installed launchables.
    pub launchables: u64,
}

impl fmt::Debug for Housekeeping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Housekeeping").field("policy", &self.policy).finish_non_exhaustive()
    }
}

impl fmt::Display for Cleaned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.rows.iter().map(|(kind, rows)| (*rows, *kind));
        let kinds = rows.chain([(self.pods, "ended pods"), (self.launchables, "launchables")]);
        let some: Vec<String> = kinds.filter(|(count, _)| *count > 0).map(|(n, kind)| format!("{n} {kind}")).collect();
        f.write_str(&if some.is_empty() { "nothing".to_owned() } else { some.join(", ") })
    }
}

impl Housekeeping {
    /// Works until told to stop.
    pub async fn run(self, stop: CancellationToken) {
        let mut pause = FIRST;
        loop {
            tokio::select! { () = stop.cancelled() => return, () = tokio::time::sleep(pause) => {} }
            pause = INTERVAL;
            match self.clean(false).await {
                Ok(cleaned) => tracing::debug!(%cleaned, "deleted what nothing needs"),
                Err(failure) => tracing::warn!(problem = failure.one_line(), "cannot delete what nothing needs"),
            }
        }
    }

    /// Deletes once, or says what would be deleted.
    ///
    /// # Errors
    /// If the store or the runtime fails.
    pub async fn clean(&self, dry_run: bool) -> Result<Cleaned> {
        let now = self.driver.clock.now();
        let retention = Retention { before: ago(now, self.policy.age), most: self.policy.most };
        let store = &self.driver.store;
        let rows = if dry_run { store.superfluous(retention).await? } else { self.driver.retain(retention).await? };
        let pods = self.old_pods(ago(now, self.policy.output)).await?;
        for pod in pods.iter().filter(|_| !dry_run) {
            self.runtime.remove_pod(pod).await?;
        }
        if !dry_run {
            self.lift_pauses_of_nothing().await?;
        }
        // Last, because one deployment that cannot be read keeps all of them.
        let keep = self.images_in_use().await?;
        let launchables = self.runtime.collect_garbage(&keep, dry_run).await?;
        Ok(Cleaned { rows, pods: pods.len() as u64, launchables })
    }

    /// What pauses a delivery goes with the last of it.
    async fn lift_pauses_of_nothing(&self) -> Result<()> {
        let store = &self.driver.store;
        for hold in store.holds().await?.whole()? {
            let HoldScope { project, context: Some(context), .. } = hold.scope else { continue };
            let (project_of, context) = (Some(project.clone()), Some(context));
            let (sequences, open) = (Some(true), Some(true));
            let filter = RunFilter { project: project_of, context, sequences, open, limit: 1, ..RunFilter::default() };
            if store.runs(&filter).await?.whole()?.is_empty() {
                let release = Release { holds: vec![hold.id], ..Release::default() };
                self.driver.decide(|transition| holds::release(transition, &project, &release, None)).await?;
            }
        }
        Ok(())
    }

    /// Pods of hooks and tasks that ended long ago, or whose run is gone. A run that is open may not have heard of the
    /// end yet.
    async fn old_pods(&self, before: Timestamp) -> Result<Vec<ObservedPod>> {
        let mut old = Vec::new();
        for namespace in self.runtime.namespaces().await? {
            for pod in self.runtime.observe(&namespace).await? {
                if self.is_old(&pod, before).await? {
                    old.push(pod);
                }
            }
        }
        Ok(old)
    }

    async fn is_old(&self, pod: &ObservedPod, before: Timestamp) -> Result<bool> {
        let PodOwner::Run { run, .. } = &pod.owner else { return Ok(false) };
        if !matches!(pod.phase, PodPhase::Ended { .. }) {
            return Ok(false);
        }
        let ended_at = pod.ended_at.unwrap_or(pod.created_at);
        match self.driver.store.run(run).await {
            Ok(run) => Ok(run.is_none_or(|run| run.value.is_ended() && ended_at < before)),
            // Nobody knows whether it needs its pod.
            Err(failure) if failure.class() == Class::Stalled => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// The images of what serves, of what is being brought up, and of the complete versions that a rollback may want.
    async fn images_in_use(&self) -> Result<Vec<ImageUse>> {
        let mut keep = BTreeSet::new();
        let mut before = None;
        loop {
            let filter =
                RunFilter { sequences: Some(false), before: before.take(), limit: PAGE, ..RunFilter::default() };
            // One that cannot be read may name an image that serves.
            let page = self.driver.store.runs(&filter).await?.whole()?;
            before = page.last().map(|run| run.value.id().clone());
            for run in page {
                let Run::Deployment(run) = run.value else { continue };
                if run.phase != Phase::Failed {
                    let spec = &run.spec.template.spec;
                    let containers = spec.init_containers.iter().chain(&spec.containers);
                    keep.extend(containers.map(|container| (run.repository.clone(), container.image.clone())));
                }
            }
            if before.is_none() {
                return Ok(keep.into_iter().map(|(repository, image)| ImageUse { repository, image }).collect());
            }
        }
    }
}

fn ago(now: Timestamp, time: Duration) -> Timestamp {
    Timestamp(now.0.saturating_sub(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::control::commands::by_hand;
    use crate::model::pod::ObservedPod;
    use crate::model::shipyard::Shipyard;
    use crate::simulation::runtime::Behaviour;
    use crate::simulation::world::World;
    use crate::testing::world::{deployment_config, hold_scope, hook, project};

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
        let policy = RetentionSettings::default();
        Housekeeping { driver: world.driver.clone(), runtime: world.runtime.clone(), policy }
    }

    #[tokio::test]
    async fn only_old_pods_of_what_has_ended_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::open(folder.path()).unwrap();
        deployed(&mut world, &["a"]).await;
        assert_eq!(names(&world), ["web-1-0", "web-1-hook-pre"]);
        world.pass(RetentionSettings::default().output - DAY).await.unwrap();
        deployed(&mut world, &["b"]).await;
        housekeeping(&world).clean(false).await.unwrap();
        assert!(names(&world).contains(&"web-1-hook-pre".to_owned()), "{:?}", names(&world));
        world.pass(2 * DAY).await.unwrap();
        housekeeping(&world).clean(false).await.unwrap();
        assert_eq!(names(&world), ["web-2-0", "web-2-hook-pre"], "what serves stays, and the output of this week");
    }

    #[tokio::test]
    async fn what_pauses_a_delivery_goes_with_the_last_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::open(folder.path()).unwrap();
        deployed(&mut world, &["a"]).await;
        let all = hold_scope(&"shop".into(), "*", "*");
        let gone = HoldScope { context: Some("gone".into()), ..all.clone() };
        for scope in [gone, all.clone()] {
            by_hand::place_hold(&world.driver, scope, "paused by ann".into(), "ann").await.unwrap();
        }
        housekeeping(&world).clean(false).await.unwrap();
        let left = world.driver.store.holds().await.unwrap().whole().unwrap();
        assert_eq!(left.iter().map(|hold| &hold.scope).collect::<Vec<_>>(), [&all]);
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
