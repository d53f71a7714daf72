//! A repository that belongs to somebody else than launchway runs as: whatever is written there, its owner goes on from.
//!
//! These need root, which alone can make such a repository, and are ignored elsewhere: `.ci/run root` runs them.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Output;

use launchway::model::ids::CommitId;
use launchway::model::time::Timestamp;
use launchway::source::{Limits, Mirror, NOTES_REF, NoteLine, Remote, RemoteUrl, Signature};

use crate::support::git::GitFixture;

/// Nobody's numbers, as far as this machine's list of users is concerned.
const OWNER: u32 = 64_201;
const GROUP: u32 = 64_202;

/// A bare repository of the owner's, in a folder that everybody may enter.
fn owned_repository() -> GitFixture {
    assert!(rustix::process::geteuid().is_root(), "this test needs root");
    let fixture = GitFixture::new();
    fixture.push_files(&[("a", "1")]);
    fs::write(fixture.path("gitconfig"), "[safe]\n\tdirectory = *\n").expect("so that tests may look");
    fs::set_permissions(fixture.root(), fs::Permissions::from_mode(0o755)).expect("entered by everybody");
    give(&fixture.bare());
    give(&fixture.work());
    fixture
}

fn give(path: &Path) {
    all_below(path).iter().for_each(|path| chown(path, Some(OWNER), Some(GROUP)).expect("given away"));
}

fn all_below(path: &Path) -> Vec<PathBuf> {
    let mut found = vec![path.to_owned()];
    if path.is_dir() {
        let inside = fs::read_dir(path).expect("a folder").map(|entry| entry.expect("an entry").path());
        inside.for_each(|path| found.extend(all_below(&path)));
    }
    found
}

/// Runs `git` in the work tree as the owner, or as another user of the group.
fn git_as(fixture: &GitFixture, user: u32, arguments: &[&str]) -> Output {
    let mut command = fixture.command(&fixture.work());
    command.uid(user).gid(GROUP).args(arguments).output().expect("git")
}

fn write_notes(fixture: &GitFixture, rounds: usize) {
    (0..rounds).for_each(|round| write_note(fixture, round).expect("written"));
}

fn write_note(fixture: &GitFixture, round: usize) -> launchway::error::Result<()> {
    let remote = Remote::new(RemoteUrl::parse(&fixture.bare().display().to_string(), false).expect("a path"), "main");
    let mirror = Mirror::open_or_create(&fixture.path("mirror.git"), Limits::default()).expect("a mirror");
    let commit = CommitId::new(fixture.git(&["rev-parse", "HEAD"]));
    mirror.fetch(&remote, &commit).expect("a fetch");
    let author = Signature { name: "launchway".into(), email: "launchway@localhost".into(), at: Timestamp(0) };
    let line = format!("success launchway/{round} told");
    let line = NoteLine { commit, context: format!("launchway/{round}"), line };
    mirror.write_notes(&remote, &[line], &author).map(drop)
}

/// What of a repository is somebody else's.
fn foreign(fixture: &GitFixture) -> Vec<PathBuf> {
    let owner = |path: &PathBuf| fs::symlink_metadata(path).expect("there").uid();
    all_below(&fixture.bare()).into_iter().filter(|path| owner(path) != OWNER).collect()
}

#[test]
#[ignore = "needs root"]
fn notes_belong_to_the_owner_of_the_repository_who_can_push_as_before() {
    let fixture = owned_repository();
    write_notes(&fixture, 30);
    assert_eq!(foreign(&fixture), [""; 0].map(PathBuf::from));
    // Thirty pushes meet most of the 256 folders of objects.
    for round in 0..30 {
        let file = fixture.work().join("a");
        fs::write(&file, format!("round {round}")).expect("written");
        assert!(git_as(&fixture, OWNER, &["commit", "--quiet", "--all", "-m", "again"]).status.success());
        let push = git_as(&fixture, OWNER, &["push", "--quiet", "origin", "HEAD"]);
        assert!(push.status.success(), "{}", String::from_utf8_lossy(&push.stderr));
    }
    let fetch = git_as(&fixture, OWNER, &["fetch", "--quiet", "origin", &format!("+{NOTES_REF}:{NOTES_REF}")]);
    assert!(fetch.status.success(), "{}", String::from_utf8_lossy(&fetch.stderr));
    let note = git_as(&fixture, OWNER, &["notes", "--ref=launchway", "append", "-m", "by hand", "HEAD~30"]);
    assert!(note.status.success(), "{}", String::from_utf8_lossy(&note.stderr));
    assert!(git_as(&fixture, OWNER, &["push", "--quiet", "origin", NOTES_REF]).status.success(), "notes too");
}

#[test]
#[ignore = "needs root"]
fn what_the_owner_links_to_is_not_written_to() {
    let fixture = owned_repository();
    let (objects, elsewhere) = (fixture.bare().join("objects"), fixture.path("elsewhere"));
    fs::rename(&objects, &elsewhere).expect("moved");
    all_below(&elsewhere).iter().for_each(|path| chown(path, Some(0), Some(0)).expect("root's"));
    let before = all_below(&elsewhere);
    std::os::unix::fs::symlink(&elsewhere, &objects).expect("linked");
    let refused = write_note(&fixture, 0).expect_err("not written");
    assert!(refused.one_line().contains("do not belong to one user"), "{refused:#}");
    assert_eq!(all_below(&elsewhere), before);
}

#[test]
#[ignore = "needs root"]
fn what_the_owner_configures_is_not_run() {
    let fixture = owned_repository();
    let (ran, script) = (fixture.path("ran"), fixture.path("script"));
    fs::write(&script, format!("#!/bin/sh\ntouch {}\n", ran.display())).expect("written");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("executable");
    write_note(&fixture, 0).expect("written");
    let set = |key: &str, value: &str| drop(fixture.git_in(&fixture.bare(), &["config", key, value]));
    set("core.bare", "false");
    let checkout = fixture.path("checkout");
    fs::create_dir(&checkout).expect("made");
    set("core.worktree", &checkout.display().to_string());
    set("receive.denyCurrentBranch", "updateInstead");
    fixture.git_in(&fixture.bare(), &["symbolic-ref", "HEAD", NOTES_REF]);
    fixture.git_in(&fixture.bare(), &["read-tree", "-m", "-u", NOTES_REF]);
    set("core.fsmonitor", &script.display().to_string());
    [fixture.bare(), checkout].iter().for_each(|path| give(path));
    fs::set_permissions(fixture.root(), fs::Permissions::from_mode(0o777)).expect("a script may write here");
    let refused = write_note(&fixture, 1).expect_err("it is checked out there");
    assert!(refused.one_line().contains("does not take notes"), "{refused:#}");
    assert!(!ran.exists());
}

#[test]
#[ignore = "needs root"]
fn a_shared_repository_stays_shared() {
    let fixture = owned_repository();
    fixture.git_in(&fixture.bare(), &["config", "core.sharedRepository", "group"]);
    for path in all_below(&fixture.bare()).iter().filter(|path| path.is_dir()) {
        fs::set_permissions(path, fs::Permissions::from_mode(0o2775)).expect("shared");
    }
    write_notes(&fixture, 10);
    for path in all_below(&fixture.bare()).iter().filter(|path| path.starts_with(fixture.bare().join("objects"))) {
        let (mode, wanted) = (fs::metadata(path).expect("there"), if path.is_dir() { 0o2775 } else { 0o444 });
        assert_eq!((mode.mode() & 0o2777 & wanted, mode.gid()), (wanted, GROUP), "{}", path.display());
    }
    // Another member of the group.
    fs::write(fixture.work().join("a"), "2").expect("written");
    assert!(git_as(&fixture, OWNER, &["commit", "--quiet", "--all", "-m", "again"]).status.success());
    let push = git_as(&fixture, OWNER + 7, &["push", "--quiet", "origin", "HEAD"]);
    assert!(push.status.success(), "{}", String::from_utf8_lossy(&push.stderr));
}

#[test]
#[ignore = "needs root"]
fn what_others_may_not_read_stays_so_and_what_they_may_read_too() {
    for mode in [0o755, 0o700] {
        let fixture = owned_repository();
        let objects = fixture.bare().join("objects");
        fs::set_permissions(&objects, fs::Permissions::from_mode(mode)).expect("set");
        let before = all_below(&objects);
        write_notes(&fixture, 5);
        let new = all_below(&objects).into_iter().filter(|path| !before.contains(path));
        let modes = new.filter(|path| path.is_dir()).map(|path| fs::metadata(path).expect("there").mode() & 0o777);
        let modes: Vec<u32> = modes.collect();
        assert!(!modes.is_empty() && modes.iter().all(|new| *new == mode), "{mode:o}: {modes:?}");
    }
}
