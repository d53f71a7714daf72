//! A pod's output: what there is, and what comes.

use std::future::ready;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{StreamExt as _, TryStreamExt as _, try_unfold};

use super::follow::Follower;
use super::logs;
use super::runtime::{Inner, existing};
use super::table::Entry;
use crate::error::{Context, Result};
use crate::model::pod::PodId;
use crate::runtime::LogStream;

/// How often output is looked for while somebody follows it.
const LOG_PERIOD: Duration = Duration::from_millis(200);

impl Inner {
    pub(super) fn logs(&self, id: &PodId, container: Option<&str>, limit: u64) -> Result<Vec<u8>> {
        logs::read_all(&self.log_files(id, container)?, limit).or_transient(|| unreadable(id))
    }

    pub(super) fn follow_logs(&self, id: &PodId, container: Option<&str>, limit: u64) -> Result<Vec<Follower>> {
        let files = self.log_files(id, container)?;
        let (several, share) = (files.len() > 1, limit / files.len().max(1) as u64);
        let follow = |(name, path)| Follower::new(path, several.then_some(name), share);
        files.into_iter().map(follow).collect::<io::Result<_>>().or_transient(|| unreadable(id))
    }

    /// What came since the last time; nothing any more once the pod has ended and all was told.
    fn more_logs(&self, id: &PodId, followers: &mut [Follower]) -> Result<Option<Vec<u8>>> {
        let ended = self.table().get(id).is_none_or(Entry::ended); // asked first: what it printed then is all there is
        let mut came = Vec::new();
        for follower in &mut *followers {
            came.extend(follower.more().or_transient(|| unreadable(id))?);
        }
        if ended && came.is_empty() {
            came.extend(followers.iter_mut().flat_map(Follower::rest));
            return Ok(Some(came).filter(|came| !came.is_empty()));
        }
        Ok(Some(came))
    }

    /// The containers whose output is asked for, and where it is.
    fn log_files(&self, id: &PodId, container: Option<&str>) -> Result<Vec<(String, PathBuf)>> {
        let (dir, record) = self.record(id)?;
        let names: Vec<&str> = match container {
            Some(name) => vec![existing(&record, name)?],
            None => record.containers().map(|container| container.name.as_str()).collect(),
        };
        Ok(names.into_iter().map(|name| (name.to_owned(), dir.log(name))).collect())
    }
}

fn unreadable(id: &PodId) -> String {
    format!("cannot read the logs of pod `{id}`")
}

/// What comes, from the followers' places on, until the pod ends.
pub(super) fn stream(inner: Arc<Inner>, pod: PodId, followers: Vec<Follower>) -> LogStream {
    try_unfold((inner, pod, followers), next_logs).try_filter(|came| ready(!came.is_empty())).boxed()
}

type LogPlace = (Arc<Inner>, PodId, Vec<Follower>);

/// What came next of a pod's output; nothing at all if nothing came within [`LOG_PERIOD`].
async fn next_logs((inner, pod, mut followers): LogPlace) -> Result<Option<(Vec<u8>, LogPlace)>> {
    let look = move || {
        let came = inner.more_logs(&pod, &mut followers);
        came.map(|came| came.map(|came| (came, (inner, pod, followers))))
    };
    let next = tokio::task::spawn_blocking(look).await.or_transient(|| "reading logs broke off".to_owned())??;
    if next.as_ref().is_some_and(|(came, _)| came.is_empty()) {
        tokio::time::sleep(LOG_PERIOD).await;
    }
    Ok(next)
}
