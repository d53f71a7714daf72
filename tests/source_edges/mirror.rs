//! Mirrors: what is taken over, what survives, how packs are kept few.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use launchway::error::Class;
use launchway::model::ids::CommitId;
use launchway::source::{Limits, Mirror, Remote, RemoteUrl, Repository, default_branch, remote_head, without_branch};

use crate::source_edges::notes::most_memory;
use crate::support::git::GitFixture;
use crate::support::git_http::GitHttp;

fn local(path: &Path) -> Remote {
    Remote::new(RemoteUrl::parse(&path.display().to_string(), false).expect("a path"), "main")
}

fn mirror(fixture: &GitFixture) -> Mirror {
    Mirror::open_or_create(&fixture.path("mirror.git"), Limits::default()).expect("a mirror")
}

/// Pushes a commit and brings it into the mirror.
fn push_and_fetch(fixture: &GitFixture, remote: &Remote, mirror: &Mirror, content: &str) -> CommitId {
    fixture.push_files(&[("app/version", content)]);
    let head = remote_head(remote).expect("a look").expect("a branch");
    mirror.fetch(remote, &head).expect("a fetch")
}

fn read(mirror: &Mirror, commit: &CommitId) -> Vec<u8> {
    let repository = mirror.open().expect("a handle");
    let tree = repository.tree(commit).expect("a tree");
    let entry = tree.entry("app/version").expect("readable").expect("there");
    tree.read(&entry, 1000).expect("content")
}

fn packs(fixture: &GitFixture) -> usize {
    packs_in(&fixture.path("mirror.git"))
}

fn packs_in(mirror: &Path) -> usize {
    let files = fs::read_dir(mirror.join("objects/pack")).expect("a folder");
    files
        .filter(|file| file.as_ref().is_ok_and(|file| file.path().extension().is_some_and(|end| end == "pack")))
        .count()
}

#[test]
fn a_path_is_taken_over_first_whole_then_by_what_is_new() {
    let fixture = GitFixture::new();
    let (remote, mirror) = (local(&fixture.bare()), mirror(&fixture));
    let commits: Vec<_> = (0..5).map(|round| push_and_fetch(&fixture, &remote, &mirror, &round.to_string())).collect();
    for (round, commit) in commits.iter().enumerate() {
        assert_eq!(read(&mirror, commit), round.to_string().into_bytes());
    }
    let repository = mirror.open().expect("a handle");
    assert!(repository.is_descendant(&commits[4], &commits[0]).expect("related"));
    assert!(repository.contains(&commits[4]).expect("readable"));
    assert_eq!(fixture.git_in(&fixture.path("mirror.git"), &["fsck", "--strict"]), "");
}

#[test]
fn a_work_tree_means_its_committed_head() {
    let fixture = GitFixture::new();
    let commit = fixture.commit_files(&[("app/version", "1")]);
    fixture.write("app/version", "not committed");
    let (remote, mirror) = (local(&fixture.work()), mirror(&fixture));
    let head = remote_head(&remote).expect("a look").expect("a branch");
    assert_eq!(head.as_str(), commit);
    mirror.fetch(&remote, &head).expect("a fetch");
    assert_eq!(read(&mirror, &head), b"1");
    assert_eq!(default_branch(&remote).expect("a branch"), "main");
}

#[test]
fn a_linked_work_tree_is_read_too() {
    let fixture = GitFixture::new();
    fixture.commit_files(&[("app/version", "1")]);
    fixture.git(&["worktree", "add", "--quiet", "-b", "side", "../linked"]);
    let remote = Remote { branch: "side".to_owned(), ..local(&fixture.path("linked")) };
    let head = remote_head(&remote).expect("a look").expect("a branch");
    let mirror = mirror(&fixture);
    mirror.fetch(&remote, &head).expect("a fetch");
    assert_eq!(read(&mirror, &head), b"1");
    assert_eq!(default_branch(&remote).expect("a branch"), "side");
}

#[test]
fn a_packed_repository_and_one_that_borrows_objects_are_taken_over() {
    let fixture = GitFixture::new();
    fixture.push_files(&[("app/version", "1")]);
    fixture.git_in(&fixture.bare(), &["gc", "--quiet"]);
    let bare = fixture.bare().display().to_string();
    fixture.git_in(fixture.root(), &["clone", "--quiet", "--shared", "--bare", &bare, "borrows.git"]);
    fixture.git_in(fixture.root(), &["clone", "--quiet", "--depth=1", &format!("file://{bare}"), "shallow"]);
    for name in ["origin.git", "borrows.git", "shallow"] {
        let remote = local(&fixture.path(name));
        let head = remote_head(&remote).expect("a look").expect("a branch");
        let mirror = Mirror::open_or_create(&fixture.path(&format!("of-{name}")), Limits::default()).expect("a mirror");
        mirror.fetch(&remote, &head).expect("a fetch");
        assert_eq!(read(&mirror, &head), b"1", "{name}");
    }
    assert_eq!(packs_in(&fixture.path("of-origin.git")), 1, "what was linked is not written again");
}

#[test]
fn what_was_taken_over_survives_rewriting_and_gc_in_the_users_repository() {
    let fixture = GitFixture::new();
    let (remote, mirror) = (local(&fixture.bare()), mirror(&fixture));
    let first = push_and_fetch(&fixture, &remote, &mirror, "1");
    let second = push_and_fetch(&fixture, &remote, &mirror, "2");
    fixture.git(&["reset", "--quiet", "--hard", first.as_str()]);
    fixture.commit_files(&[("app/version", "3")]);
    fixture.git(&["push", "--quiet", "--force", "origin", "HEAD"]);
    fixture.git_in(&fixture.bare(), &["reflog", "expire", "--expire=now", "--all"]);
    fixture.git_in(&fixture.bare(), &["gc", "--quiet", "--prune=now"]);
    assert!(!fixture.try_git_in(&fixture.bare(), &["cat-file", "-e", second.as_str()]).status.success());

    let head = remote_head(&remote).expect("a look").expect("a branch");
    let third = mirror.fetch(&remote, &head).expect("a fetch");
    assert_eq!(read(&mirror, &second), b"2");
    assert_eq!(read(&mirror, &third), b"3");
    let repository = mirror.open().expect("a handle");
    assert!(!repository.is_descendant(&third, &second).expect("related"), "a rewrite is seen");
    assert!(repository.is_descendant(&third, &first).expect("related"));
}

#[test]
fn packs_do_not_pile_up() {
    let fixture = GitFixture::new();
    let server = GitHttp::start(fixture.root());
    let over_http = Remote::new(RemoteUrl::parse(&server.url("origin.git"), false).expect("a url"), "main");
    let mirror = mirror(&fixture);
    let mut commits = Vec::new();
    for (round, remote) in [local(&fixture.bare()), over_http].iter().cycle().take(80).enumerate() {
        commits.push(push_and_fetch(&fixture, remote, &mirror, &round.to_string()));
    }
    assert!(packs(&fixture) <= 34, "{}", packs(&fixture));
    for (round, commit) in commits.iter().enumerate() {
        assert_eq!(read(&mirror, commit), round.to_string().into_bytes());
    }
    assert_eq!(fixture.git_in(&fixture.path("mirror.git"), &["fsck", "--strict"]), "");
}

#[test]
fn packs_are_left_alone_while_someone_reads() {
    let fixture = GitFixture::new();
    let (remote, mirror) = (local(&fixture.bare()), mirror(&fixture));
    let first = push_and_fetch(&fixture, &remote, &mirror, "0");
    let reader = mirror.open().expect("a handle");
    for round in 1..40 {
        push_and_fetch(&fixture, &remote, &mirror, &round.to_string());
    }
    assert!(packs(&fixture) >= 39);
    assert!(reader.tree(&first).expect("a tree").entry("app/version").expect("readable").is_some());
    drop(reader);
    push_and_fetch(&fixture, &remote, &mirror, "40");
    assert!(packs(&fixture) <= 2);
    assert_eq!(read(&mirror, &first), b"0");
}

/// Writes a file of so many bytes, nearly all of them zero and so nearly nothing once it is packed.
fn write_hollow(path: &Path, first: u8, bytes: u64) {
    fs::write(path, [first]).expect("written");
    File::options().write(true).open(path).and_then(|file| file.set_len(bytes)).expect("a sparse file");
}

#[test]
fn large_files_of_a_path_are_taken_over_without_being_unpacked() {
    for (name, packed_from) in [("each a file of its own", "100"), ("in a pack", "1")] {
        let fixture = GitFixture::new();
        let (remote, mirror) = (local(&fixture.bare()), mirror(&fixture));
        for repository in [fixture.work(), fixture.bare()] {
            fixture.git_in(&repository, &["config", "core.bigFileThreshold", "1m"]);
        }
        fixture.git_in(&fixture.bare(), &["config", "receive.unpackLimit", packed_from]);
        push_and_fetch(&fixture, &remote, &mirror, "1");
        let files = ["a", "b", "c", "d"];
        for file in files {
            write_hollow(&fixture.work().join(file), file.as_bytes()[0], 40 << 20);
        }
        let before = most_memory();
        let commit = push_and_fetch(&fixture, &remote, &mirror, "2");
        assert!(
            most_memory().saturating_sub(before) < 100_000,
            "{name}: {before} KiB before, {} KiB after",
            most_memory()
        );
        assert_eq!(read(&mirror, &commit), b"2");
        for file in files {
            let size = ["cat-file", "-s", &format!("{commit}:{file}")];
            assert_eq!(fixture.git_in(&fixture.path("mirror.git"), &size), (40 << 20).to_string(), "{name}");
        }
    }
}

#[test]
fn what_a_path_brings_at_once_is_bounded_as_over_a_network() {
    let limits = Limits { fetch: 2 << 20, ..Limits::default() };
    for (name, is_local) in [("path.git", true), ("http.git", false)] {
        let fixture = GitFixture::new();
        let server = GitHttp::start(fixture.root());
        let over_http = Remote::new(RemoteUrl::parse(&server.url("origin.git"), false).expect("a url"), "main");
        let remote = if is_local { local(&fixture.bare()) } else { over_http };
        let mirror = Mirror::open_or_create(&fixture.path(name), limits).expect("a mirror");
        let small = push_and_fetch(&fixture, &remote, &mirror, name);
        // One that is written into a pack, and one that is linked.
        for mebibytes in [3, 9] {
            let mut state = 1_u64;
            let noise = std::iter::repeat_with(|| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(mebibytes);
                state.to_be_bytes()[0]
            });
            let bytes: Vec<u8> = noise.take(usize::try_from(mebibytes).expect("few") << 20).collect();
            fs::write(fixture.work().join("noise"), bytes).expect("written");
            fixture.push_files(&[("app/version", name)]);
            let head = remote_head(&remote).expect("a look").expect("a branch");
            let failure = mirror.fetch(&remote, &head).expect_err("too much");
            assert_eq!(failure.class(), Class::Stalled);
            assert!(failure.one_line().contains("sends more than 2097152 bytes at once"), "{}", failure.one_line());
            assert!(failure.hint_text().is_some_and(|hint| hint.contains("limits: {fetch: …}")));
            assert!(
                !mirror.is_at(&remote, &head).expect("readable") && mirror.is_at(&remote, &small).expect("readable")
            );
        }
        let raised = Mirror::open_or_create(&fixture.path(name), Limits::default()).expect("a mirror");
        let head = remote_head(&remote).expect("a look").expect("a branch");
        assert_eq!(raised.fetch(&remote, &head).expect("a fetch"), head);
    }
}

#[test]
fn packs_with_large_files_are_not_unpacked_to_be_consolidated() {
    let fixture = GitFixture::new();
    let (remote, mirror, path) = (local(&fixture.bare()), mirror(&fixture), fixture.path("mirror.git"));
    push_and_fetch(&fixture, &remote, &mirror, "1");
    for number in 0..40 {
        let file = fixture.path("hollow");
        write_hollow(&file, number, 12 << 20);
        let file = file.display().to_string();
        let store = ["-c", "core.bigFileThreshold=1m", "hash-object", "-w", "--no-filters", &file];
        fixture.git_in(&path, &store);
    }
    let before = most_memory();
    for round in 0..40 {
        push_and_fetch(&fixture, &remote, &mirror, &round.to_string());
    }
    assert!(most_memory().saturating_sub(before) < 100_000, "{before} KiB before, {} KiB after", most_memory());
    assert!((41..80).contains(&packs(&fixture)), "{}", packs(&fixture));
    assert_eq!(fixture.git_in(&path, &["fsck", "--strict", "--no-dangling"]), "");
}

#[test]
fn loose_objects_of_our_own_are_packed() {
    let fixture = GitFixture::new();
    let (remote, mirror) = (local(&fixture.bare()), mirror(&fixture));
    let first = push_and_fetch(&fixture, &remote, &mirror, "0");
    let names: String =
        (0..6000).map(|name| format!("{}\n", fixture.path(&format!("loose/{name}")).display())).collect();
    fs::create_dir(fixture.path("loose")).expect("a folder");
    for name in names.lines() {
        fs::write(name, name).expect("written");
    }
    let store = format!("git hash-object -w --no-filters --stdin-paths <<'END' >/dev/null\n{names}END\n");
    fixture.write_program(&fixture.path("store"), &format!("#!/bin/sh\n{store}"));
    let status = Command::new(fixture.path("store")).current_dir(fixture.path("mirror.git")).status();
    assert!(status.expect("git").success());
    let count = || fixture.git_in(&fixture.path("mirror.git"), &["count-objects"]);
    assert!(count().starts_with("600"), "{}", count());
    push_and_fetch(&fixture, &remote, &mirror, "1");
    assert!(count().starts_with("395"), "{}", count());
    assert_eq!(packs(&fixture), 2, "one of the second push, and one of what was loose");
    assert_eq!(read(&mirror, &first), b"0");
}

#[test]
fn objects_that_a_push_had_moved_only_in_part_are_completed() {
    let fixture = GitFixture::new();
    let (remote, mirror) = (local(&fixture.bare()), mirror(&fixture));
    let first = push_and_fetch(&fixture, &remote, &mirror, "1");
    // As if the first fetch had linked the commit and folders of a later push, and not yet its file.
    let second = fixture.push_files(&[("app/version", "2")]);
    for object in ["HEAD", "HEAD^{tree}", "HEAD:app"].map(|name| fixture.git(&["rev-parse", name])) {
        let path = format!("objects/{}/{}", &object[..2], &object[2..]);
        let target = fixture.path("mirror.git").join(&path);
        fs::create_dir_all(target.parent().expect("a folder")).expect("a folder");
        fs::copy(fixture.bare().join(&path), target).expect("copied");
    }
    let second = mirror.fetch(&remote, &CommitId::new(second)).expect("a fetch");
    assert_eq!((read(&mirror, &first), read(&mirror, &second)), (b"1".to_vec(), b"2".to_vec()));
}

#[test]
fn a_mirror_that_was_cut_short_is_completed() {
    let fixture = GitFixture::new();
    let (remote, path) = (local(&fixture.bare()), fixture.path("mirror.git"));
    fs::create_dir_all(path.join("objects")).expect("half a mirror");
    let mirror = mirror(&fixture);
    let commit = push_and_fetch(&fixture, &remote, &mirror, "1");
    // Killed while linking: objects are there in part, references are not.
    let tree = fixture.git_in(&fixture.bare(), &["rev-parse", &format!("{commit}:app/version")]);
    fs::remove_file(path.join("objects").join(&tree[..2]).join(&tree[2..])).expect("removed");
    fs::remove_file(path.join("refs/heads/main")).expect("removed");
    mirror.fetch(&remote, &commit).expect("a fetch");
    assert_eq!(read(&mirror, &commit), b"1");
}

#[test]
fn a_branch_that_vanishes_is_waited_for() {
    let fixture = GitFixture::new();
    let (remote, mirror) = (local(&fixture.bare()), mirror(&fixture));
    push_and_fetch(&fixture, &remote, &mirror, "1");
    fixture.git(&["push", "--quiet", "origin", "HEAD:refs/heads/other"]);
    fixture.git_in(&fixture.bare(), &["update-ref", "-d", "refs/heads/main"]);
    assert_eq!(remote_head(&remote).expect("a look"), None);
    let unknown = CommitId::new("1".repeat(40));
    assert_eq!(mirror.fetch(&remote, &unknown).expect_err("no branch").class(), Class::Waiting);
}

#[test]
fn a_branch_that_was_there_was_deleted_and_one_that_never_was_waits_for_a_push() {
    let fixture = GitFixture::new();
    let remote = local(&fixture.bare());
    let told = |was_there| without_branch(&remote, was_there).one_line();
    assert_eq!(remote_head(&remote).expect("a look"), None);
    assert!(told(false).contains("has no commits yet"), "{}", told(false));
    assert!(told(true).contains("branch `main` of") && told(true).contains("was deleted"), "{}", told(true));
    fixture.commit_files(&[("app/version", "1")]);
    fixture.git(&["push", "--quiet", "origin", "HEAD:refs/heads/other"]);
    assert!(told(false).contains("does not exist"), "{}", told(false));
}

#[test]
fn what_is_no_repository_is_named() {
    let fixture = GitFixture::new();
    fs::create_dir(fixture.path("plain")).expect("a folder");
    for (name, words) in [("missing", "does not exist"), ("plain", "is not a Git repository")] {
        let failure = remote_head(&local(&fixture.path(name))).expect_err(name);
        assert_eq!(failure.class(), Class::Stalled);
        assert!(failure.one_line().contains(words), "{}", failure.one_line());
    }
}

#[test]
fn programs_in_a_repositorys_configuration_are_not_run() {
    let fixture = GitFixture::new();
    let marker = fixture.path("ran");
    let program = format!("touch {}", marker.display());
    fixture.commit_files(&[("app/version", "1"), (".gitattributes", "* filter=evil diff=evil\n")]);
    for key in ["core.fsmonitor", "filter.evil.clean", "filter.evil.smudge", "diff.evil.textconv", "core.sshCommand"] {
        fixture.git(&["config", key, &program]);
    }
    fixture.write_program(&fixture.work().join(".git/hooks/reference-transaction"), &format!("#!/bin/sh\n{program}\n"));
    fixture.write("app/version", "2");
    let (remote, mirror) = (local(&fixture.work()), mirror(&fixture));
    let head = remote_head(&remote).expect("a look").expect("a branch");
    mirror.fetch(&remote, &head).expect("a fetch");
    let repository = Repository::open_local(&fixture.work(), Limits::default()).expect("a repository");
    assert_eq!(repository.uncommitted(10).expect("compared"), ["app/version"]);
    repository.tree(&head).expect("a tree").export("app", &fixture.path("out")).expect("exported");
    assert!(!marker.exists());
}
