//! How the daemon notices what shims do: one watched folder, and a handle on every shim.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Mutex, PoisonError, Weak};
use std::time::Duration;

use notify::{Event, EventHandler, RecommendedWatcher, RecursiveMode, Watcher};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::process::{Pid, PidfdFlags, WaitOptions, pidfd_open, waitpid};

use crate::error::{Context, Result};
use crate::model::pod::PodId;
use crate::runtime::local::host::process::ProcessId;
use crate::runtime::local::pod::paths::Root;
use crate::runtime::local::runtime::Inner;

/// How often pods are read where they cannot be watched.
const POLLING: Duration = Duration::from_millis(500);
/// How long a pod may be without a shim after one ended at once.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Refreshes every pod that a shim says has changed, for as long as the result lives. A user has few instances of inotify
/// (`fs.inotify.max_user_instances`), and other programs need some too: where none is left, all pods are read regularly.
pub(crate) fn watch_changes(folder: &Path, runtime: &Weak<Inner>) -> Result<Option<RecommendedWatcher>> {
    let watched = notify::recommended_watcher(Listener(Weak::clone(runtime))).and_then(|mut watcher| {
        watcher.watch(folder, RecursiveMode::NonRecursive)?;
        Ok(watcher)
    });
    match watched {
        Ok(watcher) => Ok(Some(watcher)),
        Err(error) => {
            tracing::warn!(%error, every = ?POLLING, "pods cannot be watched, and are read regularly instead");
            let runtime = Weak::clone(runtime);
            let thread = std::thread::Builder::new().name("pods".to_owned());
            thread.spawn(move || poll_pods(&runtime)).or_transient(|| "cannot start a thread".to_owned())?;
            Ok(None)
        }
    }
}

/// Refreshes all pods again and again, as long as there is a runtime.
fn poll_pods(runtime: &Weak<Inner>) {
    while let Some(runtime) = runtime.upgrade() {
        runtime.refresh_each();
        drop(runtime);
        std::thread::sleep(POLLING);
    }
}

struct Listener(Weak<Inner>);

impl EventHandler for Listener {
    fn handle_event(&mut self, event: notify::Result<Event>) {
        let Some(runtime) = self.0.upgrade() else { return };
        match event {
            Ok(event) if !event.need_rescan() => {
                event.paths.iter().filter_map(|path| Root::changed(path)).for_each(|pod| runtime.refresh(&pod));
            }
            _ => runtime.refresh_all(),
        }
    }
}

/// Waits for the end of shims, in a thread of its own.
#[derive(Debug)]
pub(crate) struct ShimWatch {
    added: Mutex<Vec<Shim>>,
    wake: OwnedFd,
}

#[derive(Debug)]
struct Shim {
    pod: PodId,
    process: ProcessId,
    /// Becomes readable when it ends; none if it has ended already.
    exit: Option<OwnedFd>,
}

impl ShimWatch {
    /// Watches no shim yet.
    pub(crate) fn new() -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { added: Mutex::default(), wake })
    }

    /// Watches a pod's shim too.
    pub(crate) fn add(&self, pod: PodId, process: ProcessId) {
        let open = |pid| pidfd_open(pid, PidfdFlags::empty()).ok();
        let exit = Pid::from_raw(process.pid).and_then(open).filter(|_| process.lives());
        self.added.lock().unwrap_or_else(PoisonError::into_inner).push(Shim { pod, process, exit });
        self.wake();
    }

    /// Makes the thread look around; it ends if its runtime is gone.
    pub(crate) fn wake(&self) {
        // A counter that is full wakes the thread as well.
        rustix::io::write(&self.wake, &1_u64.to_ne_bytes()).ok();
    }

    /// Tells the runtime of every shim that ends, as long as there is a runtime.
    pub(crate) fn run(&self, runtime: &Weak<Inner>) {
        let mut shims: Vec<Shim> = Vec::new();
        loop {
            shims.append(&mut self.added.lock().unwrap_or_else(PoisonError::into_inner));
            self.pause(&shims);
            let Some(runtime) = runtime.upgrade() else { return };
            for shim in shims.extract_if(.., |shim| shim.ended()) {
                runtime.shim_ended(&shim.pod);
            }
            runtime.keep_shims();
        }
    }

    fn pause(&self, shims: &[Shim]) {
        let mut fds = vec![PollFd::new(&self.wake, PollFlags::IN)];
        fds.extend(shims.iter().filter_map(|shim| shim.exit.as_ref()).map(|exit| PollFd::new(exit, PollFlags::IN)));
        let none_to_wait_for = shims.iter().any(|shim| shim.exit.is_none());
        let pause = if none_to_wait_for { Duration::ZERO } else { LONGEST_PAUSE };
        // Whatever woke it up, it looks at all.
        poll(&mut fds, Timespec::try_from(pause).ok().as_ref()).ok();
        rustix::io::read(&self.wake, &mut [0; 8]).ok();
    }
}

impl Shim {
    fn ended(&self) -> bool {
        let ended = self.exit.is_none() || !self.process.lives();
        if let Some(pid) = Pid::from_raw(self.process.pid).filter(|_| ended) {
            // Only a shim that this very process started is its child and has to be waited for.
            waitpid(Some(pid), WaitOptions::NOHANG).ok();
        }
        ended
    }
}
