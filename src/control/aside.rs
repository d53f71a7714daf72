//! Work that waits for another machine, on threads of its own: those that the whole daemon shares are so few that a host
//! which answers nothing would take them all, and pods and people would wait for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::sync::{Semaphore, oneshot};

use crate::error::{Context, Result};

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

/// Works on a thread of its own once it has a turn, which ends with the work, also if nobody waits for that any more.
///
/// # Errors
/// Those of the work, or if there is no thread.
pub async fn aside<T: Send + 'static>(
    turns: Arc<Semaphore>,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let broken = || "reading the repository broke off".to_owned();
    let turn = turns.acquire_owned().await.or_transient(broken)?;
    let (done, waits) = oneshot::channel();
    let work = move || {
        let worked = work();
        drop(turn);
        drop(done.send(worked));
    };
    let thread = thread::Builder::new().name("repository".into()).spawn(work);
    thread.or_transient(|| "there is no thread to read the repository".to_owned())?;
    waits.await.or_transient(broken)?
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_host_that_hangs_takes_its_own_turns_and_no_others() {
        let hosts = Hosts::default();
        let (release, held) = mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let hangs = |_| {
            let held = held.clone();
            tokio::spawn(aside(hosts.turns("slow"), move || Ok(held.lock().unwrap().recv().ok())))
        };
        // More than the daemon's shared threads.
        let hanging: Vec<_> = (0..600).map(hangs).collect();
        while hosts.turns("slow").available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(aside(hosts.turns("quick"), || Ok(1)).await.unwrap(), 1);
        assert_eq!(tokio::task::spawn_blocking(|| 2).await.unwrap(), 2, "pods wait for none of it");
        drop(release);
        for task in hanging {
            assert_eq!(task.await.unwrap().unwrap(), None);
        }
    }
}
