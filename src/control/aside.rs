//! Work that waits for another machine, or for a file system, on threads of its own: those that the whole daemon shares are
//! so few that a host which answers nothing would take them all, and pods and people would wait for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use crate::error::{Context, Failure, Result};

/// How many ask one host at once. Whoever comes later waits for that host's answers, and for no other's.
const AT_ONCE: usize = 32;

/// Turns at hosts, by name.
#[derive(Debug, Default)]
pub struct Hosts(Mutex<BTreeMap<String, Arc<Semaphore>>>);

impl Hosts {
    /// Those at one of them.
    pub fn turns(&self, host: &str) -> Arc<Semaphore> {
        let mut hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.entry(host.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(AT_ONCE))).clone()
    }
}

/// Where the work of one repository is done. Nobody can end work that a file system holds: its thread is left behind, and no
/// other is started before it has ended.
#[derive(Debug)]
pub struct Aside {
    turns: Arc<Semaphore>,
    left: Mutex<Option<JoinHandle<()>>>,
}

impl Aside {
    /// For a repository on the host of these turns.
    pub fn new(turns: Arc<Semaphore>) -> Self {
        Self { turns, left: Mutex::default() }
    }

    /// Works on a thread of its own once it has a turn, for `patience` at most.
    ///
    /// # Errors
    /// Those of the work, if it takes longer, if earlier work has not ended yet, or if there is no thread.
    pub async fn work<T: Send + 'static>(
        &self,
        patience: Duration,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let broken = || "reading the repository broke off".to_owned();
        if self.left().as_ref().is_some_and(|left| !left.is_finished()) {
            return Err(does_not_answer());
        }
        let _turn = self.turns.acquire().await.or_transient(broken)?;
        let (done, waits) = oneshot::channel();
        // Nobody waits any more for work that took too long.
        let thread = thread::Builder::new().name("repository".into()).spawn(move || drop(done.send(work())));
        let thread = thread.or_transient(|| "there is no thread to read the repository".to_owned())?;
        match timeout(patience, waits).await {
            Ok(worked) => worked.or_transient(broken)?,
            Err(_too_long) => {
                *self.left() = Some(thread);
                Err(does_not_answer())
            }
        }
    }

    fn left(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn does_not_answer() -> Failure {
    Failure::transient("reading the repository does not end: the file system that it is on does not answer")
        .hint("is it mounted, and its server there? nothing else waits for it")
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    #[tokio::test]
    async fn a_host_that_hangs_takes_its_own_turns_and_no_others() {
        let hosts = Hosts::default();
        let (release, held) = mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let hangs = |_| {
            let (held, aside) = (held.clone(), Aside::new(hosts.turns("slow")));
            tokio::spawn(async move { aside.work(LONG, move || Ok(held.lock().unwrap().recv().ok())).await })
        };
        // More than the daemon's shared threads.
        let hanging: Vec<_> = (0..600).map(hangs).collect();
        while hosts.turns("slow").available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(Aside::new(hosts.turns("quick")).work(LONG, || Ok(1)).await.unwrap(), 1);
        assert_eq!(tokio::task::spawn_blocking(|| 2).await.unwrap(), 2, "pods wait for none of it");
        drop(release);
        for task in hanging {
            assert_eq!(task.await.unwrap().unwrap(), None);
        }
    }

    #[tokio::test]
    async fn work_that_does_not_end_is_left_behind_and_not_begun_again() {
        let hosts = Hosts::default();
        let aside = Aside::new(hosts.turns(""));
        let (release, held) = mpsc::channel::<()>();
        let hung = aside.work(Duration::from_millis(20), move || Ok(held.recv().ok())).await;
        assert!(hung.unwrap_err().to_string().contains("does not answer"));
        assert_eq!(hosts.turns("").available_permits(), AT_ONCE, "others on this machine have their turns");
        let again = aside.work(LONG, || -> Result<()> { unreachable!("it would hang as well") }).await;
        assert!(again.unwrap_err().to_string().contains("does not answer"));
        drop(release);
        while aside.left().as_ref().is_some_and(|left| !left.is_finished()) {
            tokio::task::yield_now().await;
        }
        assert_eq!(aside.work(LONG, || Ok(1)).await.unwrap(), 1);
    }
}
