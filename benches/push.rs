//! From a push to the first pod of what was pushed: `cargo bench --bench push`.
//!
//! A real daemon on the local runtime watches a bare repository by its file events alone. Each push changes the code of
//! a service with `git push`, so that it is fetched, planned, deployed as a new version and installed; its first pod
//! tells the time it started by making a file. The next push waits until the version before is complete.

#![expect(clippy::unwrap_used, reason = "a benchmark that fails has no result")]
#![expect(clippy::print_stdout, reason = "that is its result")]

mod support {
    pub(crate) mod daemon;
    pub(crate) mod figures;
    pub(crate) mod git;
    pub(crate) mod version;
}

use std::path::Path;
use std::time::{Duration, Instant};

use support::daemon::{Daemon, wait_until};
use support::version::{commit, started};
use support::{figures, git};

const PUSHES: u32 = 100;

fn main() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let bare = git::bare(folder.path());
    git::run(folder.path(), &["clone", "--quiet", "origin.git", "work"]);
    let work = folder.path().join("work");
    commit(&work, 0);
    git::run(&work, &["push", "--quiet", "origin", "HEAD:main"]);
    let daemon = Daemon::start(folder.path(), &bare);
    wait_until("the first version runs", || started(&work, 0));
    let (mut since_start, mut since_end) = (Vec::new(), Vec::new());
    for number in 1..=PUSHES {
        wait_until("the version before is complete", || daemon.ask(&["rollout", "status", "dc/web"]));
        commit(&work, number);
        let (begun, pushed) = push(&work);
        wait_until("its pod runs", || started(&work, number));
        since_start.push(begun.elapsed());
        since_end.push(pushed.elapsed());
    }
    figures::tell("from the start of `git push` to the first pod", since_start);
    figures::tell("from the end of `git push` to the first pod", since_end);
}

/// Pushes; when that began and when it was over.
fn push(work: &Path) -> (Instant, Instant) {
    let begun = Instant::now();
    git::run(work, &["push", "--quiet", "origin", "HEAD:main"]);
    assert!(begun.elapsed() < Duration::from_secs(10));
    (begun, Instant::now())
}
