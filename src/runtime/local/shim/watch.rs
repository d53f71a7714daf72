//! How the daemon notices the end of shims: by the log that each holds open, or by a handle on it.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, WaitOptions, pidfd_open, test_kill_process, waitpid};

use super::held_logs::{HeldLogs, LetGo};
use crate::error::{Context as _, Result};
use crate::model::pod::PodId;
use crate::runtime::local::host::process::ProcessId;
use crate::runtime::local::runtime::Inner;

/// How often shims are examined that cannot be watched.
const POLLING: Duration = Duration::from_millis(500);
/// How many ends are taken in at once.
const AT_ONCE: usize = 256;
/// The key of what wakes the thread.
const WAKE: u64 = 0;
/// The key of the logs that were let go of; shims have higher ones.
const LOGS: u64 = 1;
/// How long a pod may be without a shim after one ended at once.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// How often all pods are read although nothing is announced.
const RESYNC: Duration = Duration::from_secs(30);

/// Waits for the end of shims, in a thread of its own. However many there are, the end of one costs the same.
#[derive(Debug)]
pub(crate) struct ShimWatch {
    exits: OwnedFd,
    wake: OwnedFd,
    /// Nothing where a user may have no more instances of inotify: then each shim takes a descriptor.
    logs: OnceLock<HeldLogs>,
    shims: Mutex<Shims>,
}

#[derive(Debug)]
struct Shims {
    /// The highest key so far.
    last: u64,
    /// Those that hold their logs, by the log's number. They take no descriptor of this process, which each program that it
    /// starts would copy and close again.
    holding: BTreeMap<i32, Shim>,
    /// Those of which there is a descriptor, by its key.
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
        let (holding, watched, unwatched) = Default::default();
        let shims = Mutex::new(Shims { last: LOGS, holding, watched, unwatched });
        Ok(Self { exits, wake, logs: OnceLock::new(), shims })
    }

    /// From now on shims take no descriptor, if there is an instance of inotify for that.
    pub(crate) fn watch_logs(&self) {
        let logs = HeldLogs::new().and_then(|logs| {
            epoll::add(&self.exits, &logs, epoll::EventData::new_u64(LOGS), epoll::EventFlags::IN)?;
            Ok(logs)
        });
        match logs {
            Ok(logs) => drop(self.logs.set(logs)),
            Err(error) => tracing::info!(%error, "the daemon has a file open for each pod"),
        }
    }

    /// Watches a pod's shim too, whose standard error is `log`.
    pub(crate) fn add(&self, pod: PodId, process: ProcessId, log: &Path) {
        let shim = Shim { pod, process, _exit: None };
        let mut shims = self.shims();
        let held = self.logs.get().and_then(|logs| logs.watch(log, process.pid, shims.holding.len()));
        match held {
            // If it ends from now on, its log is let go of later than this.
            Some(number) if process.lives() => drop(shims.holding.insert(number, shim)),
            _ => self.watch_exit(&mut shims, shim),
        }
    }

    /// Watches a shim by a descriptor.
    fn watch_exit(&self, shims: &mut Shims, shim: Shim) {
        let exit = Pid::from_raw(shim.process.pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        shims.last += 1;
        let key = shims.last;
        // It lives now, so the descriptor is of it and of no later process with its number.
        let watch = |exit| epoll::add(&self.exits, exit, epoll::EventData::new_u64(key), epoll::EventFlags::IN);
        match exit {
            Some(exit) if shim.process.lives() && watch(&exit).is_ok() => {
                shims.watched.insert(key, Shim { _exit: Some(exit), ..shim });
            }
            _ => {
                shims.unwatched.push(shim);
                self.wake();
            }
        }
    }

    /// Makes the thread examine everything; it ends if its runtime is gone.
    pub(crate) fn wake(&self) {
        // A counter that is full wakes the thread as well.
        rustix::io::write(&self.wake, &1_u64.to_ne_bytes()).ok();
    }

    /// Tells the runtime of every shim that ends, in a thread, as long as there is a runtime.
    pub(crate) fn start(self: Arc<Self>, runtime: Weak<Inner>) -> Result<()> {
        let thread = std::thread::Builder::new().name("shims".to_owned());
        thread.spawn(move || self.run(&runtime)).map(drop).or_transient(|| "cannot start a thread".to_owned())
    }

    fn run(&self, runtime: &Weak<Inner>) {
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
                self.watch_gone();
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
        if keys.contains(&LOGS) {
            self.take_let_go(&mut shims);
        }
        let mut ended: Vec<Shim> = keys.iter().filter_map(|key| shims.watched.remove(key)).collect();
        ended.extend(shims.unwatched.extract_if(.., |shim| !shim.process.lives()));
        drop(shims);
        ended.iter().for_each(Shim::reap);
        ended
    }

    /// Whose log was let go of is about to end, or has: a descriptor says when.
    fn take_let_go(&self, shims: &mut Shims) {
        let let_go = match self.logs.get().map(HeldLogs::take_let_go) {
            Some(LetGo::These(numbers)) => {
                numbers.iter().filter_map(|number| shims.holding.remove(number)).collect::<Vec<_>>()
            }
            Some(LetGo::Unknown) => {
                let all = std::mem::take(&mut shims.holding);
                all.keys().for_each(|number| self.logs.get().into_iter().for_each(|logs| logs.forget(*number)));
                all.into_values().collect()
            }
            None => Vec::new(),
        };
        let_go.into_iter().for_each(|shim| self.watch_exit(shims, shim));
    }

    /// The safety net: somebody else may have a log open by now, and nobody says then that its shim let go of it.
    fn watch_gone(&self) {
        let mut shims = self.shims();
        let gone: Vec<Shim> = shims.holding.extract_if(.., |_, shim| shim.is_gone()).map(|(_, shim)| shim).collect();
        gone.into_iter().for_each(|shim| self.watch_exit(&mut shims, shim));
    }

    fn shims(&self) -> MutexGuard<'_, Shims> {
        self.shims.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shim {
    /// Whether no process has its number, which takes two calls of the kernel.
    fn is_gone(&self) -> bool {
        self.reap();
        Pid::from_raw(self.process.pid).is_none_or(|pid| test_kill_process(pid) == Err(Errno::SRCH))
    }

    fn reap(&self) {
        if let Some(pid) = Pid::from_raw(self.process.pid) {
            // Only a shim that this very process started is its child and has to be waited for.
            waitpid(Some(pid), WaitOptions::NOHANG).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, OpenOptions};
    use std::path::PathBuf;
    use std::process::{Child, Command, Stdio};

    use super::*;
    use crate::runtime::local::host::wait::wait_until;

    /// A process that has a log as its standard error, as a shim has.
    struct Holder {
        child: Child,
        log: PathBuf,
    }

    impl Holder {
        fn start(log: PathBuf) -> Self {
            let file = File::create(&log).unwrap();
            let child = Command::new("sleep").arg("1000").stdin(Stdio::null()).stderr(file).spawn().unwrap();
            Self { child, log }
        }

        fn watched_by(&self, watch: &ShimWatch, name: &str) -> PodId {
            let pod = PodId { namespace: "shop-dev".into(), name: name.into() };
            let process = ProcessId::of(self.child.id().try_into().unwrap()).unwrap();
            watch.add(pod.clone(), process, &self.log);
            pod
        }

        /// Ends it; the pods whose shims have ended since.
        fn end(mut self, watch: &ShimWatch) -> Vec<PodId> {
            self.child.kill().unwrap();
            loop {
                let ended = watch.take_ended(&watch.pause(POLLING));
                if !ended.is_empty() {
                    return ended.into_iter().map(|shim| shim.pod).collect();
                }
            }
        }
    }

    fn watch() -> ShimWatch {
        let watch = ShimWatch::new().unwrap();
        watch.watch_logs();
        watch
    }

    fn counts(watch: &ShimWatch) -> (usize, usize) {
        let shims = watch.shims();
        (shims.holding.len(), shims.watched.len() + shims.unwatched.len())
    }

    #[test]
    fn a_shim_that_holds_its_log_takes_no_descriptor_and_its_end_is_noticed() {
        let (folder, watch) = (tempfile::tempdir().unwrap(), watch());
        let [web, api] = ["web", "api"].map(|name| Holder::start(folder.path().join(name)));
        let web_pod = web.watched_by(&watch, "web");
        let api_pod = api.watched_by(&watch, "api");
        assert_eq!(counts(&watch), (2, 0));
        assert_eq!(web.end(&watch), [web_pod]);
        assert_eq!(counts(&watch), (1, 0));
        drop(OpenOptions::new().append(true).open(&api.log).unwrap());
        assert!(watch.take_ended(&watch.pause(POLLING)).is_empty(), "somebody else has let go of it");
        assert_eq!(counts(&watch), (0, 1), "nobody knows, so a descriptor says when it ends");
        assert_eq!(api.end(&watch), [api_pod]);
    }

    #[test]
    fn an_end_that_nobody_was_told_of_is_noticed_by_and_by() {
        let (folder, watch) = (tempfile::tempdir().unwrap(), watch());
        let mut web = Holder::start(folder.path().join("web"));
        let pod = web.watched_by(&watch, "web");
        let number = watch.shims().holding.keys().copied().next().unwrap();
        watch.logs.get().unwrap().forget(number);
        watch.watch_gone();
        assert_eq!(counts(&watch), (1, 0), "it lives");
        web.child.kill().unwrap();
        let gone = || {
            watch.watch_gone();
            counts(&watch) == (0, 1)
        };
        assert!(wait_until(LONGEST_PAUSE, POLLING / 50, gone));
        let ended = watch.take_ended(&watch.pause(POLLING));
        assert_eq!(ended.into_iter().map(|shim| shim.pod).collect::<Vec<_>>(), [pod]);
    }

    #[test]
    fn a_shim_whose_log_somebody_replaced_is_watched_by_a_descriptor() {
        let (folder, watch) = (tempfile::tempdir().unwrap(), watch());
        let web = Holder::start(folder.path().join("web"));
        fs::remove_file(&web.log).unwrap();
        fs::write(&web.log, "").unwrap();
        let pod = web.watched_by(&watch, "web");
        assert_eq!(counts(&watch), (0, 1));
        assert_eq!(web.end(&watch), [pod]);
    }

    #[test]
    fn where_the_kernel_forgets_who_has_let_go_a_descriptor_says_of_each_when_it_ends() {
        let (folder, watch) = (tempfile::tempdir().unwrap(), watch());
        let holders = ["web", "api"].map(|name| Holder::start(folder.path().join(name)));
        let pods = [holders[0].watched_by(&watch, "web"), holders[1].watched_by(&watch, "api")];
        let most = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
        for number in 0..=most.trim().parse().unwrap() {
            // By turns: what is the same as the last one is not queued.
            let holder: &Holder = &holders[number % 2];
            drop(OpenOptions::new().append(true).open(&holder.log).unwrap());
        }
        assert!(watch.take_ended(&watch.pause(POLLING)).is_empty());
        assert_eq!(counts(&watch), (0, 2));
        for (holder, pod) in holders.into_iter().zip(pods) {
            assert_eq!(holder.end(&watch), [pod]);
        }
    }
}
