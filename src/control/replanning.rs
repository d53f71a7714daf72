//! Heads that are planned again although nobody pushed: what they are planned on beside their files has changed, such as the
//! image of a tag, or what serves.

use std::collections::BTreeSet;

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::engine::transition::Touched;
use crate::model::ids::RepositoryName;

/// Asks for a sync of every repository of these whose head is to be planned again, as long as changes are announced. What was
/// asked for and not done before a daemon ended, its next one does: it syncs everything at its start.
pub(crate) async fn run(
    mut changes: Receiver<Touched>,
    repositories: BTreeSet<RepositoryName>,
    ask: impl Fn(&RepositoryName),
) {
    loop {
        match changes.recv().await {
            Ok(touched) => touched.unseen.intersection(&repositories).for_each(&ask),
            Err(RecvError::Lagged(_)) => repositories.iter().for_each(&ask),
            Err(RecvError::Closed) => return,
        }
    }
}
