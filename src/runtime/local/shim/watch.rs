//! How the daemon notices the end of shims: by a handle on each.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::process::{Pid, PidfdFlags, WaitOptions, pidfd_open, waitpid};

use crate::model::pod::PodId;
use crate::runtime::local::host::process::ProcessId;
use crate::runtime::local::runtime::Inner;

/// How often shims are examined that cannot be watched.
const POLLING: Duration = Duration::from_millis(500);
/// How many ends are taken in at once.
const AT_ONCE: usize = 256;
/// The key of what wakes the thread; shims have higher ones.
const WAKE: u64 = 0;
/// How long a pod may be without a shim after one ended at once.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// How often all pods are read although nothing is announced.
const RESYNC: Duration = Duration::from_secs(30);

/// Waits for the end of shims, in a thread of its own. However many there are, the end of one costs the same.
#[derive(Debug)]
pub(crate) struct ShimWatch {
    exits: OwnedFd,
    wake: OwnedFd,
    shims: Mutex<Shims>,
}

#[derive(Debug, Default)]
struct Shims {
    /// The keys of those that were added so far.
    last: u64,
    watched: BTreeMap<u64, Shim>,
    /// Those that ended before they could be watched, and those for which this process has no descriptor left.
    unwatched: Vec<Shim>,
}

#[derive(Debug)]
struct Shim {
    pod: PodId,
    process: ProcessId,
    /// Becomes readable when it ends.
    _exit: Option<OwnedFd>,
}

impl ShimWatch {
    /// Watches no shim yet.
    pub(crate) fn new() -> io::Result<Self> {
        let exits = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&exits, &wake, epoll::EventData::new_u64(WAKE), epoll::EventFlags::IN)?;
        Ok(Self { exits, wake, shims: Mutex::default() })
    }

    /// Watches a pod's shim too.
    pub(crate) fn add(&self, pod: PodId, process: ProcessId) {
        let exit = Pid::from_raw(process.pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let mut shims = self.shims();
        shims.last += 1;
        let key = shims.last;
        // It lives now, so the descriptor is of it and of no later process with its number.
        let watch = |exit| epoll::add(&self.exits, exit, epoll::EventData::new_u64(key), epoll::EventFlags::IN);
        match exit {
            Some(exit) if process.lives() && watch(&exit).is_ok() => {
                shims.watched.insert(key, Shim { pod, process, _exit: Some(exit) });
            }
            _ => {
                shims.unwatched.push(Shim { pod, process, _exit: None });
                drop(shims);
                self.wake();
            }
        }
    }

    /// Makes the thread examine everything; it ends if its runtime is gone.
    pub(crate) fn wake(&self) {
        // A counter that is full wakes the thread as well.
        rustix::io::write(&self.wake, &1_u64.to_ne_bytes()).ok();
    }

    /// Tells the runtime of every shim that ends, as long as there is a runtime.
    pub(crate) fn run(&self, runtime: &Weak<Inner>) {
        let (mut pause, mut resynced) = (Duration::ZERO, Instant::now());
        loop {
            let keys = self.pause(pause);
            let Some(runtime) = runtime.upgrade() else { return };
            let ended = self.take_ended(&keys);
            // Where all are watched, nothing but a shim that ended at once has to be searched for.
            pause = if self.shims().unwatched.is_empty() { LONGEST_PAUSE } else { POLLING };
            ended.iter().for_each(|shim| runtime.shim_ended(&shim.pod));
            if keys.is_empty() || !ended.is_empty() {
                runtime.keep_shims();
            }
            if runtime.keep_watching() || resynced.elapsed() > RESYNC {
                runtime.resync();
                resynced = Instant::now();
            }
        }
    }

    /// Waits until a shim ends or somebody wakes this thread; the keys of those that ended.
    fn pause(&self, pause: Duration) -> Vec<u64> {
        let mut events = Vec::with_capacity(AT_ONCE);
        let timeout = Timespec::try_from(pause).ok();
        // Whatever woke it up, it examines everything; an interruption is no different.
        epoll::wait(&self.exits, spare_capacity(&mut events), timeout.as_ref()).ok();
        rustix::io::read(&self.wake, &mut [0; 8]).ok();
        events.iter().map(|event| event.data.u64()).collect()
    }

    fn take_ended(&self, keys: &[u64]) -> Vec<Shim> {
        let mut shims = self.shims();
        let mut ended: Vec<Shim> = keys.iter().filter_map(|key| shims.watched.remove(key)).collect();
        ended.extend(shims.unwatched.extract_if(.., |shim| !shim.process.lives()));
        drop(shims);
        ended.iter().for_each(Shim::reap);
        ended
    }

    fn shims(&self) -> MutexGuard<'_, Shims> {
        self.shims.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shim {
    fn reap(&self) {
        if let Some(pid) = Pid::from_raw(self.process.pid) {
            // Only a shim that this very process started is its child and has to be waited for.
            waitpid(Some(pid), WaitOptions::NOHANG).ok();
        }
    }
}
