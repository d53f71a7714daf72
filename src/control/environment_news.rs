//! Has pull requests checked where something happens to an environment of one, or one gets too old: nobody else asks for that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use crate::control::environments::Environments;
use crate::engine::environments;
use crate::engine::transition::Touched;
use crate::model::ids::RepositoryName;
use crate::model::time::Timestamp;

/// How long what happens is gathered before it is told: each time is a request to the host.
const SOON: Duration = Duration::from_secs(2);
/// How long to wait where none gets too old.
const IDLE: Duration = Duration::from_secs(3600);

/// When the first environment of each repository gets too old. Every look at its pull requests says it anew.
#[derive(Debug, Default)]
pub(super) struct Ages {
    next: Mutex<BTreeMap<RepositoryName, Timestamp>>,
    moved: Notify,
}

impl Ages {
    /// When that is for a repository; nothing, if it has none.
    pub(super) fn set(&self, repository: &RepositoryName, next: Option<Timestamp>) {
        let mut all = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        match next {
            Some(next) => drop(all.insert(repository.clone(), next)),
            None => drop(all.remove(repository)),
        }
        self.moved.notify_one();
    }

    /// How long it takes until the next one does.
    fn pause(&self, now: Timestamp) -> Duration {
        let all = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        all.values().min().map_or(IDLE, |next| next.since(now).min(IDLE))
    }

    /// The repositories in which one has.
    fn take_due(&self, now: Timestamp) -> BTreeSet<RepositoryName> {
        let mut all = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let due: BTreeSet<_> = all.iter().filter(|(_, at)| **at <= now).map(|(name, _)| name.clone()).collect();
        all.retain(|_, at| *at > now);
        due
    }
}

impl Environments {
    /// Works until told to stop. What is announced and missed is found by the next look, which comes from time to time.
    pub(super) async fn follow(self, stop: CancellationToken) {
        let (mut changes, mut news) = (self.driver.changes(), BTreeMap::<RepositoryName, Timestamp>::new());
        while !stop.is_cancelled() {
            let now = self.driver.clock.now();
            let pause = news.values().map(|at| at.since(now)).chain([self.ages.pause(now)]).min().unwrap_or(IDLE);
            let concerned = tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => BTreeSet::new(),
                () = self.ages.moved.notified() => BTreeSet::new(),
                change = changes.recv() => match change {
                    Ok(touched) => concerned(&touched),
                    Err(RecvError::Lagged(_)) => BTreeSet::new(),
                    Err(RecvError::Closed) => return,
                },
            };
            let now = self.driver.clock.now();
            for repository in concerned {
                news.entry(repository).or_insert(now + SOON);
            }
            let mut due = self.ages.take_due(now);
            due.extend(news.iter().filter(|(_, at)| **at <= now).map(|(repository, _)| repository.clone()));
            news.retain(|_, at| *at > now);
            for repository in &due {
                self.ask(repository).await;
            }
        }
    }

    async fn ask(&self, repository: &RepositoryName) {
        let asked = self.driver.decide(|transition| environments::look(transition, repository)).await;
        if let Err(failure) = asked {
            tracing::error!(%repository, problem = failure.one_line(), "cannot ask for a look at pull requests");
        }
    }
}

/// The repositories to whose environments something happened.
fn concerned(touched: &Touched) -> BTreeSet<RepositoryName> {
    let all = touched.reports.iter().map(|(repository, _)| repository).chain(&touched.unseen);
    all.filter(|name| name.pull().is_some()).map(RepositoryName::watched).collect()
}
