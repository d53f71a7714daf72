//! A first push of many deployment configs, and the daemon that runs what it brought up.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::declared::{config, configs};
use crate::support::daemon::{Daemon, wait_until};
use crate::support::import::Importer;
use crate::support::kernel::mib;
use crate::support::{cold, figures, git};

/// How often `status` is asked for.
const ASKED_EVERY: Duration = Duration::from_millis(250);
/// How long a daemon may take to give back what it needed.
const CALM: Duration = Duration::from_secs(15);
/// How often one among many is pushed.
const SINGLE_PUSHES: u32 = 20;
/// How often `status` is asked for while nothing happens.
const STATUSES: u32 = 20;
/// How often the daemon is started again.
const STARTS: u32 = 3;

/// Says how many are deployed a second.
pub(crate) fn measure(services: u32) -> f64 {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let bare = git::bare(folder.path());
    let mut importer = Importer::start(&bare);
    importer.commit([("README".to_owned(), "Nothing yet\n".to_owned())]);
    let mut daemon = Daemon::start(folder.path(), &bare);
    let files = configs(services, 1, "first");
    let begin = Instant::now();
    importer.commit(files);
    let pushed = Instant::now();
    println!("made the push in {:.1?}", begin.elapsed());
    let rate = watch(&daemon, services, &head(&bare), pushed);
    std::thread::sleep(CALM);
    println!("memory {CALM:?} after: {}", mib(daemon.memory("VmRSS")));
    let commit = head(&bare);
    figures::tell("`launchway status REV` at rest", (0..STATUSES).map(|_| status(&daemon, &commit)).collect());
    let before = daemon.processor_time();
    std::thread::sleep(CALM);
    println!("processor time while nothing happens: {:.1?} in {CALM:?}", daemon.processor_time() - before);
    tell_kernel_objects(&daemon, services);
    push_one(&daemon, &mut importer, services);
    for _ in 0..STARTS {
        daemon.kill();
        std::mem::forget(daemon); // what it runs is to go on
        let begin = Instant::now();
        daemon = Daemon::start(folder.path(), &bare);
        let (took, memory) = (begin.elapsed(), mib(daemon.memory("VmRSS")));
        println!("start to ready: {took:.1?}, {:.1?} of processor time, {memory}", daemon.processor_time());
    }
    importer.end();
    cold_plan(&bare);
    rate
}

/// The commit that the branch of a bare repository is at.
fn head(bare: &std::path::Path) -> String {
    let output = git::git(bare).args(["rev-parse", "main"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Watches a push until everything is deployed.
fn watch(daemon: &Daemon, services: u32, commit: &str, pushed: Instant) -> f64 {
    let (all, over) = (u64::from(services), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| ask_for_status(daemon, commit, &over));
        daemon.wait_for_runs(all);
        println!("planned, and all runs queued: {:.2?} after the push", pushed.elapsed());
        daemon.wait_for_rest(all);
        let took = pushed.elapsed();
        over.store(true, Ordering::Relaxed);
        let each = daemon.processor_time() / services;
        let rate = f64::from(services) / took.as_secs_f64();
        println!(
            "all deployed: {took:.1?} after the push, {rate:.0} a second; {each:.2?} of the daemon's processor time each"
        );
        println!("peak memory of the daemon: {}", mib(daemon.memory("VmHWM")));
        asked.join().unwrap().tell();
        rate
    })
}

/// How long people wait who ask for the status of a commit, and for parts of that.
#[derive(Default)]
struct Waits {
    all: Vec<Duration>,
    /// A start of the program, which says no more than its version.
    start: Vec<Duration>,
    /// The daemon's answer.
    answer: Vec<Duration>,
}

impl Waits {
    fn tell(self) {
        figures::tell("`launchway status REV` meanwhile", self.all);
        figures::tell("  a start of the program meanwhile", self.start);
        figures::tell("  an answer of the daemon meanwhile", self.answer);
    }
}

/// Of the push by its name: without one, `status` first has the daemon sync.
fn ask_for_status(daemon: &Daemon, commit: &str, over: &AtomicBool) -> Waits {
    let mut waits = Waits::default();
    let path = format!("/api/v1/revisions/shop/{commit}");
    while !over.load(Ordering::Relaxed) {
        waits.all.push(status(daemon, commit));
        waits.start.push(timed(|| daemon.ask(&["--version"])));
        waits.answer.push(timed(|| daemon.get(&path)));
        std::thread::sleep(ASKED_EVERY);
    }
    waits
}

fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let begin = Instant::now();
    work();
    begin.elapsed()
}

fn status(daemon: &Daemon, commit: &str) -> Duration {
    timed(|| daemon.ask(&["status", commit]))
}

fn tell_kernel_objects(daemon: &Daemon, services: u32) {
    let (files, inotify) = daemon.open_files();
    let threads = daemon.memory("Threads");
    println!(
        "{services} pods: the daemon has {files} files open, {inotify} of them inotify instances, and {threads} threads"
    );
    let (shims, files, inotify) = daemon.shims();
    println!("{shims} shims have {files} files open, {inotify} of them inotify instances");
}

/// One of many that run is pushed again and again.
fn push_one(daemon: &Daemon, importer: &mut Importer, services: u32) {
    let mut times = Vec::new();
    for push in 0..SINGLE_PUSHES {
        let (queued, delivered) = (daemon.queued(), daemon.delivered());
        let number = push * 7 % services;
        importer.commit([config(number, 1, &format!("push {push}"))]);
        let begin = Instant::now();
        wait_until("it is planned", || daemon.queued() > queued);
        times.push(begin.elapsed());
        daemon.wait_for_rest(delivered + 1);
    }
    figures::tell("push of one, until it is planned and its run is queued", times);
}

/// What `launchway plan` takes that knows nothing yet.
fn cold_plan(bare: &std::path::Path) {
    let (took, peak) = cold::run(bare, &["plan", ".", "--to", "main"]);
    println!("a cold `launchway plan`: {took:.2?}, {} at the peak", mib(peak));
}
