//! What is read from trees, what is written to disk, and what is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use launchway::model::ids::CommitId;
use launchway::source::{Blob, EntryKind, Exported, Limits, ObjectId, PathChange, Repository};

use crate::support::git::GitFixture;

const MANIFEST: u64 = 4 << 20;

fn open(fixture: &GitFixture) -> Repository {
    open_with(fixture, Limits::default())
}

fn open_with(fixture: &GitFixture, limits: Limits) -> Repository {
    Repository::open_local(&fixture.work(), limits).expect("a repository")
}

fn commit(fixture: &GitFixture) -> CommitId {
    CommitId::new(fixture.commit("Change"))
}

/// Commits a tree that `git add` would never make: `entries` are lines for `git mktree`.
fn commit_tree(fixture: &GitFixture, entries: &[(&str, &str, &str)]) -> CommitId {
    let lines: Vec<u8> = entries.iter().flat_map(|(mode, id, name)| raw_entry(mode, id, name)).collect();
    let file = fixture.path("tree");
    fs::write(&file, lines).expect("written");
    let tree = fixture.git(&["hash-object", "-t", "tree", "-w", "--literally", &file.display().to_string()]);
    CommitId::new(fixture.git(&["commit-tree", "-m", "odd", &tree]))
}

fn raw_entry(mode: &str, id: &str, name: &str) -> Vec<u8> {
    let id = (0..20).map(|byte| u8::from_str_radix(&id[byte * 2..byte * 2 + 2], 16).expect("hex"));
    format!("{mode} {name}\0").into_bytes().into_iter().chain(id).collect()
}

fn blob(fixture: &GitFixture, content: &str) -> String {
    let file = fixture.path("blob");
    fs::write(&file, content).expect("written");
    fixture.git(&["hash-object", "-w", &file.display().to_string()])
}

#[test]
fn a_tree_lists_files_as_what_they_are() {
    let fixture = GitFixture::new();
    fixture.write("web/run", "#!/bin/sh\n");
    fs::set_permissions(fixture.work().join("web/run"), fs::Permissions::from_mode(0o755)).expect("mode");
    fixture.write("web/conf/a.yaml", "a: 1\n");
    symlink("conf/a.yaml", fixture.work().join("web/link")).expect("a link");
    let commit = commit(&fixture);
    let repository = open(&fixture);
    let tree = repository.tree(&commit).expect("a tree");
    let entries = tree.entries().expect("entries");
    let kinds: Vec<_> = entries.iter().map(|entry| (entry.path.as_str(), entry.kind)).collect();
    assert_eq!(
        kinds,
        [("web/conf/a.yaml", EntryKind::File), ("web/link", EntryKind::Symlink), ("web/run", EntryKind::Executable)]
    );
    assert_eq!(tree.read(&entries[0], MANIFEST).expect("content"), b"a: 1\n");
    assert_eq!(tree.read_blob(entries[0].id, "a", MANIFEST).expect("content"), Blob::Content(b"a: 1\n".to_vec()));
    assert_eq!(tree.read_blob(entries[0].id, "a", 4).expect("its size"), Blob::TooLarge(5));
    let refused = tree.read(&entries[1], MANIFEST).expect_err("a link").one_line();
    assert!(refused.contains("`web/link` is a symbolic link"), "{refused}");
    let large = tree.read(&entries[0], 4).expect_err("too large").one_line();
    assert!(large.contains("`web/conf/a.yaml` has 5 bytes, more than the limit of 4"), "{large}");
}

#[test]
fn ids_are_those_of_git() {
    let fixture = GitFixture::new();
    let commit = CommitId::new(fixture.commit_files(&[("web/conf/a.yaml", "a: 1\n")]));
    let repository = open(&fixture);
    let tree = repository.tree(&commit).expect("a tree");
    for path in ["web", "web/conf", "web/conf/a.yaml"] {
        let expected = fixture.git(&["rev-parse", &format!("HEAD:{path}")]);
        assert_eq!(tree.id_of(path).expect("readable").map(|id| id.to_string()), Some(expected), "{path}");
    }
    assert_eq!(tree.id().to_string(), fixture.git(&["rev-parse", "HEAD^{tree}"]));
    for path in ["other", "web/other", "web/conf/a.yaml/deeper", "../web"] {
        assert_eq!(tree.id_of(path).expect("readable"), None, "{path}");
    }
}

#[test]
fn odd_entries_are_listed_as_refused_and_not_entered() {
    let fixture = GitFixture::new();
    fixture.commit_files(&[("a", "1")]);
    let file = blob(&fixture, "x");
    let folder = fixture.git(&["rev-parse", "HEAD^{tree}"]);
    let head = fixture.head();
    let commit = commit_tree(
        &fixture,
        &[
            ("40000", &folder, ".."),
            ("40000", &folder, ".git"),
            ("100644", &file, "a\\b"),
            ("100644", &file, "c\nd"),
            ("160000", &head, "sub"),
            ("40000", &folder, "usual"),
            ("100666", &file, "z"),
        ],
    );
    let repository = open(&fixture);
    let tree = repository.tree(&commit).expect("a tree");
    let entries = tree.entries().expect("entries");
    let usable: Vec<_> =
        entries.iter().filter(|entry| tree.read(entry, MANIFEST).is_ok()).map(|entry| entry.path.as_str()).collect();
    assert_eq!(usable, ["usual/a"]);
    assert_eq!(entries.len(), 7);
    let refused = tree.read(&entries[3], MANIFEST).expect_err("odd").one_line();
    assert!(refused.contains(r"`c\nd` has control characters"), "{refused}");
    let refused = tree.read(&entries[4], MANIFEST).expect_err("a submodule").one_line();
    assert!(refused.contains("`sub` is a submodule"), "{refused}");
}

#[test]
fn objects_are_hashed_so_that_a_collision_is_noticed() {
    let program = env!("CARGO_BIN_EXE_launchway");
    let found = std::process::Command::new("grep").args(["-qaF", "SHA1 collision attack detected", program]).status();
    assert!(found.expect("grep").success(), "libgit2 is built with another SHA-1");
}

#[test]
fn lfs_pointers_are_refused_with_their_path() {
    let fixture = GitFixture::new();
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n";
    let commit = CommitId::new(fixture.commit_files(&[("web/model.bin", pointer)]));
    let repository = open(&fixture);
    let tree = repository.tree(&commit).expect("a tree");
    let entry = tree.entry("web/model.bin").expect("readable").expect("there");
    let refused = tree.read(&entry, MANIFEST).expect_err("a pointer").one_line();
    assert!(refused.contains("`web/model.bin` is a Git LFS pointer"), "{refused}");
    let refused = tree.export("web", &fixture.path("out")).expect_err("a pointer").one_line();
    assert!(refused.contains("`model.bin` is a Git LFS pointer"), "{refused}");
}

#[test]
fn trees_beyond_the_limits_are_refused() {
    let fixture = GitFixture::new();
    let commit = CommitId::new(fixture.commit_files(&[("a/b/c/d", "12345"), ("e", "12345"), ("f", "1")]));
    for (limits, words) in [
        (Limits { entries: 5, ..Limits::default() }, "more than 5 entries"),
        (Limits { depth: 2, ..Limits::default() }, "deeper than 2 folders"),
    ] {
        let repository = open_with(&fixture, limits);
        let tree = repository.tree(&commit).expect("a tree");
        for failure in [tree.entries().map(drop), tree.export("", &fixture.path("out")).map(drop)] {
            let failure = failure.expect_err(words).one_line();
            assert!(failure.contains(words), "{failure}");
            drop(fs::remove_dir_all(fixture.path("out")));
        }
    }
    let repository = open_with(&fixture, Limits { launchable: 9, ..Limits::default() });
    let failure = repository.tree(&commit).expect("a tree").export("", &fixture.path("out")).expect_err("too large");
    assert!(failure.one_line().contains("`e` has 5 bytes, more than the limit of 4"), "{}", failure.one_line());
}

#[test]
fn a_tree_bomb_is_refused_before_it_is_unpacked() {
    let fixture = GitFixture::new();
    let mut tree = fixture.git(&["rev-parse", &format!("{}^{{tree}}", fixture.commit_files(&[("a", "1")]))]);
    for _level in 0..30 {
        let names: Vec<String> = (0..10).map(|name| format!("d{name}")).collect();
        let entries: Vec<_> = names.iter().map(|name| ("40000", tree.as_str(), name.as_str())).collect();
        let commit = commit_tree(&fixture, &entries);
        tree = fixture.git(&["rev-parse", &format!("{commit}^{{tree}}")]);
    }
    let repository = open_with(&fixture, Limits { entries: 1000, ..Limits::default() });
    let bomb = repository.tree_by_id(ObjectId::parse(&tree).expect("an id"));
    assert!(bomb.entries().expect_err("a bomb").one_line().contains("more than 1000 entries"));
}

#[test]
fn changes_are_found_path_by_path() {
    let fixture = GitFixture::new();
    let old = CommitId::new(fixture.commit_files(&[
        ("same/x", "1"),
        ("a/edited", "1"),
        ("a/removed", "1"),
        ("folder-to-file/x", "1"),
        ("file-to-folder", "1"),
        ("mode", "1"),
    ]));
    for path in ["a/removed", "folder-to-file/x", "file-to-folder"] {
        fs::remove_file(fixture.work().join(path)).expect("removed");
    }
    fs::remove_dir(fixture.work().join("folder-to-file")).expect("removed");
    fs::set_permissions(fixture.work().join("mode"), fs::Permissions::from_mode(0o755)).expect("mode");
    let new = CommitId::new(fixture.commit_files(&[
        ("a/edited", "2"),
        ("added/deep/x", "1"),
        ("folder-to-file", "2"),
        ("file-to-folder/x", "2"),
    ]));
    let changes = open(&fixture).changed_paths(&old, &new).expect("changes");
    let shown: Vec<_> = changes.iter().map(|change| (change.path.as_str(), shape(change))).collect();
    assert_eq!(
        shown,
        [
            ("a/edited", "changed"),
            ("a/removed", "removed"),
            ("added/deep/x", "added"),
            ("file-to-folder", "removed"),
            ("file-to-folder/x", "added"),
            ("folder-to-file", "added"),
            ("folder-to-file/x", "removed"),
            ("mode", "changed"),
        ]
    );
    assert_eq!(open(&fixture).changed_paths(&new, &new).expect("changes"), []);
}

#[test]
fn changes_are_what_two_listings_differ_in() {
    let fixture = GitFixture::new();
    // A small generator of numbers: the same trees at every run.
    let mut state = 7_u32;
    let mut number = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % below
    };
    let mut commits = Vec::new();
    for _commit in 0..8 {
        for _file in 0..6 {
            let path = ["a", "b", "a/b", "b/a", "b/a/c", "a-b", "a.b"][number(7) as usize];
            clear(&fixture.work(), Path::new(path));
            fixture.write(path, &number(3).to_string());
        }
        commits.push(commit(&fixture));
    }
    let repository = open(&fixture);
    for (old, new) in commits.iter().flat_map(|old| commits.iter().map(move |new| (old, new))) {
        let list = |commit| {
            let entries = repository.tree(commit).expect("a tree").entries().expect("entries");
            entries.into_iter().map(|entry| (entry.path.clone(), entry)).collect::<BTreeMap<_, _>>()
        };
        let (before, after) = (list(old), list(new));
        let paths: BTreeSet<_> = before.keys().chain(after.keys()).collect();
        let change = |path: &String| PathChange {
            path: path.clone(),
            old: before.get(path).cloned(),
            new: after.get(path).cloned(),
        };
        let expected: Vec<_> = paths.into_iter().map(change).filter(|change| change.old != change.new).collect();
        assert_eq!(repository.changed_paths(old, new).expect("changes"), expected);
    }
}

/// Removes what stands in the way of a file at `path`.
fn clear(work: &Path, path: &Path) {
    for place in path.ancestors().skip(1).filter(|place| !place.as_os_str().is_empty()) {
        drop(fs::remove_file(work.join(place)));
    }
    drop(fs::remove_dir_all(work.join(path)));
}

fn shape(change: &PathChange) -> &'static str {
    match (&change.old, &change.new) {
        (None, Some(_)) => "added",
        (Some(_), None) => "removed",
        _ => "changed",
    }
}

#[test]
fn a_folder_is_exported_with_its_bits_and_links() {
    let fixture = GitFixture::new();
    fixture.write("web/bin/launch", "#!/bin/sh\n");
    fs::set_permissions(fixture.work().join("web/bin/launch"), fs::Permissions::from_mode(0o755)).expect("mode");
    fixture.write("web/app.py", "pass\n");
    symlink("../app.py", fixture.work().join("web/bin/app")).expect("a link");
    let commit = commit(&fixture);
    let repository = open(&fixture);
    let tree = repository.tree(&commit).expect("a tree");
    let out = fixture.path("out/web");
    let exported = tree.export("web", &out).expect("exported");
    assert_eq!(exported, Exported { bytes: 15, entries: 4 });
    assert_eq!(mode(&out.join("bin/launch")), 0o755);
    assert_eq!(mode(&out.join("app.py")), 0o644);
    assert_eq!(fs::read_to_string(out.join("bin/app")).expect("through the link"), "pass\n");
    let again = fixture.path("out/again");
    let id = tree.id_of("web").expect("readable").expect("there");
    assert_eq!(repository.export_tree(id, &again).expect("exported"), exported);
    assert!(repository.export_tree(id, &again).is_err(), "an existing folder is not written into");
    assert!(tree.export("none", &fixture.path("none")).is_err());
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("there").permissions().mode() & 0o777
}

#[test]
fn links_that_lead_out_are_refused() {
    for target in ["/etc/passwd", "../../x", "a/../../x"] {
        let fixture = GitFixture::new();
        fixture.write("web/bin/launch", "");
        symlink(target, fixture.work().join("web/bin/link")).expect("a link");
        let commit = commit(&fixture);
        let repository = open(&fixture);
        let failure = repository.tree(&commit).expect("a tree").export("web", &fixture.path("out")).expect_err(target);
        assert!(failure.one_line().contains("`bin/link` leads out"), "{}", failure.one_line());
    }
}

#[test]
fn a_file_is_never_written_through_a_link() {
    let fixture = GitFixture::new();
    let (link, file) = (blob(&fixture, "../outside"), blob(&fixture, "x"));
    fs::create_dir(fixture.path("outside")).expect("a folder");
    let inner = commit_tree(&fixture, &[("100644", &file, "stolen")]);
    let inner = fixture.git(&["rev-parse", &format!("{inner}^{{tree}}")]);
    // One name twice: a link out of the folder, then a folder with a file in it.
    let commit = commit_tree(&fixture, &[("120000", &link, "a"), ("40000", &inner, "a")]);
    let repository = open(&fixture);
    assert!(repository.tree(&commit).expect("a tree").export("", &fixture.path("out")).is_err());
    assert!(!fixture.path("outside/stolen").exists());
}

#[test]
fn commits_tell_about_themselves() {
    let fixture = GitFixture::new();
    let first = CommitId::new(fixture.commit_files(&[("a", "1")]));
    fixture.write("a", "2");
    let second = CommitId::new(fixture.commit("Second\u{1b}[31m line\n\nbody"));
    let repository = open(&fixture);
    let info = repository.commit_info(&second).expect("a commit");
    assert_eq!((info.subject.as_str(), info.author.as_str()), ("Second[31m line", "Ada"));
    assert_eq!(info.parents, std::slice::from_ref(&first));
    assert_eq!(info.time.0, 1_767_323_045_000);
    assert_eq!(repository.resolve("HEAD~1").expect("a commit"), first);
    assert_eq!(repository.resolve("main").expect("a commit"), second);
    assert!(repository.resolve("nothing").is_err());
    let log = repository.log(Some(&first), &second, 10).expect("a log");
    assert_eq!(log.iter().map(|info| &info.id).collect::<Vec<_>>(), [&second]);
    assert!(repository.is_descendant(&second, &first).expect("related"));
    assert!(!repository.is_descendant(&first, &second).expect("related"));
    let missing = repository.commit_info(&CommitId::new("1".repeat(40))).expect_err("missing").one_line();
    assert!(missing.contains("is not in this repository"), "{missing}");
}

#[test]
fn uncommitted_files_are_named() {
    let fixture = GitFixture::new();
    fixture.commit_files(&[("a", "1"), ("b", "1")]);
    assert_eq!(open(&fixture).uncommitted(10).expect("compared"), [""; 0]);
    fixture.write("a", "2");
    fixture.write("new", "1");
    assert_eq!(open(&fixture).uncommitted(10).expect("compared"), ["a", "new"]);
    assert_eq!(open(&fixture).uncommitted(1).expect("compared").len(), 1);
}
