//! Has the tags of a repository's image streams looked up in their registries: when a stream changes, and from time to time.

use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use crate::engine::transition::Touched;
use crate::executor::drive::Driver;
use crate::executor::imports::import;
use crate::model::ids::RepositoryName;
use crate::model::object::Kind;
use crate::registry::Registry;
use crate::trigger::poll::next_sync;

/// How often a tag is looked up; source: OpenShift's scheduled imports.
const INTERVAL: Duration = Duration::from_secs(15 * 60);

/// Works until told to stop. Without a tag that asks for it, nothing is asked of anybody.
pub(super) async fn run(driver: Driver, registry: impl Registry, repository: RepositoryName, stop: CancellationToken) {
    let (mut changes, mut failures) = (driver.changes(), 0);
    loop {
        // A registry may take its time, and what was not looked up is at the next start.
        let Some(imported) = stop.run_until_cancelled(import(&driver, &registry, &repository)).await else { return };
        failures = match imported {
            Ok(0) => 0,
            Ok(_) => failures + 1,
            Err(failure) => {
                tracing::error!(%repository, problem = failure.one_line(), "cannot look up images");
                failures + 1
            }
        };
        let random = u64::try_from(ulid::Ulid::generate().random() & u128::from(u64::MAX)).unwrap_or(0);
        let now = driver.clock.now();
        let pause = next_sync(now, INTERVAL, failures, random).map_or(INTERVAL, |at| at.since(now));
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
            () = stream_changes(&mut changes) => {}
        }
    }
}

/// Waits until an image stream was declared or changed.
async fn stream_changes(changes: &mut tokio::sync::broadcast::Receiver<Touched>) {
    loop {
        match changes.recv().await {
            Ok(touched) if touched.objects.iter().any(|place| place.key.kind == Kind::ImageStream) => return,
            Ok(_) => {}
            Err(RecvError::Lagged(_)) => return,
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}
