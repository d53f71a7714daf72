//! The documentation is right: what it tells people to type is typed on an account with nothing in it, and what it shows
//! of the answers is what is seen.

#![expect(clippy::unwrap_used, reason = "in a test, that is how it fails")]

mod documentation {
    pub(crate) mod page;
    pub(crate) mod session;
}

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use documentation::page::{Page, Step};
use documentation::session::Session;

/// What is typed elsewhere: by its first line, and where.
const ELSEWHERE: [(&str, &str); 12] = [
    ("cargo run -- demo", "tests/demo.rs, and `.ci/run demo`"),
    ("launchway demo", "tests/demo.rs compares what it shows"),
    ("cargo build --release", "`.ci/run simulation` builds so"),
    ("cargo build", "`.ci/run`"),
    ("cargo build --profile dist --bins", "needs root, systemd, and an hour"),
    ("sudo podman build --file deploy/Containerfile --tag launchway .", "tests/container"),
    ("launchway store restore STATE/store.db.schema-2", "tests/upgrade.rs"),
    (
        "git -c gpg.format=ssh -c user.signingKey=~/.ssh/id_ed25519 commit --allow-empty -S \\",
        "tests/daemon_edges/approvals.rs, with a key of its own",
    ),
    ("#!/bin/sh", "tests/daemon_edges/custom.rs runs what it defines"),
    ("deployment=$(api) || exit", "tests/daemon_edges/custom.rs goes through regions"),
    ("api /rollout '{\"until\": \"30%\"}' > /dev/null || exit", "tests/daemon_edges/custom.rs asks so"),
    ("launchway store restore ~/launchway.db", "after the daemon has ended: by this test"),
];

/// Two pages make a service of the same name, which has the same address.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn pages() -> Vec<Page> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = docs.chain([root.join("README.md")]).filter(|path| path.extension().is_some_and(|it| it == "md"));
    pages.map(|path: PathBuf| Page::read(&path)).collect()
}

fn page(name: &str) -> Page {
    pages().into_iter().find(|page| page.name == name).unwrap()
}

fn is_elsewhere(step: &Step) -> bool {
    ELSEWHERE.iter().any(|(typed, _)| step.first_line() == *typed)
}

/// Types everything of a page.
fn follow(page: &Page) -> Session {
    let mut session = Session::new(Path::new(env!("CARGO_MANIFEST_DIR")));
    page.steps.iter().filter(|step| !is_elsewhere(step)).for_each(|step| session.take(page, step));
    session
}

#[test]
fn everything_that_is_typed_on_a_page_is_typed_by_a_test() {
    let followed = ["getting-started.md", "README.md", "operating.md", "events.md"];
    let pages = pages();
    let typed = pages.iter().flat_map(|page| page.steps.iter().map(move |step| (page.name.as_str(), step)));
    let (elsewhere, here): (Vec<_>, Vec<_>) = typed.partition(|(_, step)| is_elsewhere(step));
    let lost: Vec<_> = here.iter().filter(|(page, _)| !followed.contains(page)).collect();
    assert!(lost.is_empty(), "nobody types {lost:#?}");
    let left: BTreeSet<_> = elsewhere.iter().map(|(_, step)| step.first_line()).collect();
    assert_eq!(left, ELSEWHERE.iter().map(|(typed, _)| *typed).collect(), "an exception that is none");
}

#[test]
fn getting_started_goes_as_it_is_told_and_so_does_the_operators_copy() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut session = follow(&page("getting-started.md"));
    let operating = page("operating.md");
    let (restoring, others): (Vec<_>, Vec<_>) =
        operating.steps.iter().partition(|step| step.first_line() == "launchway store restore ~/launchway.db");
    others.into_iter().filter(|step| !is_elsewhere(step)).for_each(|step| session.take(&operating, step));
    session.interrupt();
    assert_eq!(restoring.len(), 1);
    session.take(&operating, restoring[0]);
}

#[test]
fn the_readme_goes_as_it_is_told() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    follow(&page("README.md"));
}

#[test]
fn tasks_and_events_go_as_they_are_told() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    follow(&page("events.md"));
}
