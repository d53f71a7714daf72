//! File events on real repositories, moved by the real `git`.

#![expect(clippy::unwrap_used, reason = "in a test, that is how it fails")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use launchway::trigger::debounce::Debounce;
use launchway::trigger::watch::{RefWatch, RefWatches};

/// How long an event may take; only a failing test waits so long.
const DEADLINE: Duration = Duration::from_secs(10);

struct Fixture {
    folder: tempfile::TempDir,
}

impl Fixture {
    /// A bare repository `shop.git` and a clone `work` with one commit that is pushed.
    fn new() -> Self {
        let fixture = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::write(fixture.path("gitconfig"), "[init]\n\tdefaultBranch = main\n").unwrap();
        fixture.git(".", &["init", "--quiet", "--bare", "shop.git"]);
        fixture.git(".", &["init", "--quiet", "work"]);
        fixture.git("work", &["remote", "add", "origin", "../shop.git"]);
        fixture.commit_and_push();
        fixture
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn git(&self, folder: &str, args: &[&str]) {
        let output = Command::new("git")
            .args(args)
            .current_dir(self.path(folder))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("GIT_CONFIG_GLOBAL", self.path("gitconfig"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_NAME"), "Ada")))
            .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_EMAIL"), "ada@example.org")))
            .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_DATE"), "2026-11-21T08:30:00Z")))
            .output()
            .unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn commit(&self, folder: &str) {
        self.git(folder, &["commit", "--quiet", "--allow-empty", "--message", "change"]);
    }

    fn commit_and_push(&self) {
        self.commit("work");
        self.git("work", &["push", "--quiet", "origin", "HEAD:main"]);
    }
}

fn watch(path: &Path) -> (Arc<Debounce>, Option<RefWatch>) {
    let requests = Arc::new(Debounce::new());
    let request = Arc::clone(&requests);
    (requests, RefWatches::default().watch(path, move || request.request()).ok())
}

async fn expect_request(requests: &Debounce) {
    tokio::time::timeout(DEADLINE, requests.next()).await.expect("a file event");
}

#[tokio::test]
async fn a_push_to_a_bare_repository_rings() {
    let fixture = Fixture::new();
    let (requests, watch) = watch(&fixture.path("shop.git"));
    assert!(watch.is_some());
    for _ in 0..3 {
        fixture.commit_and_push();
        expect_request(&requests).await;
    }
    fixture.git("work", &["push", "--quiet", "origin", "HEAD:refs/heads/a/new/branch"]);
    expect_request(&requests).await;
}

#[tokio::test]
async fn one_instance_watches_two_repositories_and_each_hears_of_its_own() {
    let (events, fixtures) = (RefWatches::default(), [Fixture::new(), Fixture::new()]);
    let [(first, _first), (second, _second)] = fixtures.each_ref().map(|fixture| {
        let requests = Arc::new(Debounce::new());
        let request = Arc::clone(&requests);
        (requests, events.watch(&fixture.path("shop.git"), move || request.request()).unwrap())
    });
    fixtures[1].commit_and_push();
    expect_request(&second).await;
    let nothing = tokio::time::timeout(Duration::ZERO, first.next()).await;
    assert!(nothing.is_err(), "the other repository's events are no business of this one");
    fixtures[0].commit_and_push();
    expect_request(&first).await;
}

#[tokio::test]
async fn packed_refs_ring() {
    let fixture = Fixture::new();
    let (requests, _watch) = watch(&fixture.path("shop.git"));
    fixture.git("shop.git", &["pack-refs", "--all"]);
    expect_request(&requests).await;
    fixture.commit_and_push();
    expect_request(&requests).await;
}

#[tokio::test]
async fn a_commit_in_a_work_tree_or_a_linked_one_rings() {
    let fixture = Fixture::new();
    fixture.git("work", &["worktree", "add", "--quiet", "-b", "topic", "../linked"]);
    for watched in ["work", "linked", "work/.git"] {
        for committed in ["work", "linked"] {
            let (requests, _watch) = watch(&fixture.path(watched));
            fixture.commit(committed);
            expect_request(&requests).await;
        }
    }
}

#[tokio::test]
async fn a_repository_that_was_replaced_rings_and_its_watch_is_not_current_any_more() {
    for replace in [true, false] {
        let fixture = Fixture::new();
        let (requests, watch) = watch(&fixture.path("shop.git"));
        let watch = watch.unwrap();
        assert!(watch.is_current());
        fixture.commit_and_push();
        expect_request(&requests).await;
        assert!(watch.is_current(), "pushes leave the folders");
        match replace {
            true => std::fs::rename(fixture.path("shop.git"), fixture.path("old.git")).unwrap(),
            false => std::fs::remove_dir_all(fixture.path("shop.git")).unwrap(),
        }
        expect_request(&requests).await;
        assert!(!watch.is_current(), "there is none");
        fixture.git(".", &["init", "--quiet", "--bare", "shop.git"]);
        assert!(!watch.is_current(), "it is another");
    }
}

#[tokio::test]
async fn a_folder_without_a_repository_is_polled_only() {
    let folder = tempfile::tempdir().unwrap();
    assert!(watch(folder.path()).1.is_none());
    assert!(watch(Path::new("/nowhere")).1.is_none());
}
