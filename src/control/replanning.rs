//! Heads that are planned again although nobody pushed: what they are planned on beside their files has changed, such as the
//! image of a tag.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use crate::control::watcher::Watcher;
use crate::executor::drive::Driver;
use crate::model::ids::RepositoryName;

/// Asks for a sync of every repository whose head is to be planned again, until told to stop. What was asked for and not
/// done before a daemon ended, its next one does: it syncs everything at its start.
pub(super) async fn run(driver: Driver, watchers: Arc<BTreeMap<RepositoryName, Watcher>>, stop: CancellationToken) {
    let mut changes = driver.changes();
    loop {
        let change = tokio::select! { () = stop.cancelled() => return, change = changes.recv() => change };
        match change {
            Ok(touched) => touched.unseen.iter().filter_map(|name| watchers.get(name)).for_each(ask),
            Err(RecvError::Lagged(_)) => watchers.values().for_each(ask),
            Err(RecvError::Closed) => return,
        }
    }
}

fn ask(watcher: &Watcher) {
    watcher.requests.request();
}
