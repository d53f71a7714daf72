//! What is installed, from where, and what is refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::Ordering;

use flate2::Compression;
use flate2::write::GzEncoder;
use launchway::error::Class;
use launchway::model::ids::RepositoryName;
use launchway::model::pod::SecurityContext;
use launchway::runtime::{ImageUse, RuntimeChange};

use crate::support::{World, eventually, prepare, repository, tree};

/// Writes `app.tar.gz` with one file, `bin/launch`.
pub(crate) fn archive(folder: &Path, content: &str) -> String {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut header = tar::Header::new_gnu();
    header.set_size(content.len() as u64);
    header.set_mode(0o755);
    builder.append_data(&mut header, "bin/launch", content.as_bytes()).unwrap();
    let bytes = builder.into_inner().unwrap().finish().unwrap();
    let path = folder.join("app.tar.gz");
    fs::write(&path, bytes).unwrap();
    format!("file://{}", path.display())
}

pub(crate) fn sha256(path: &Path) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &fs::read(path).unwrap());
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_tree_is_installed_once_and_sealed() {
    let world = World::new(&[("bin/launch", "#!/bin/sh\n"), ("data/x", "1")]);
    let launchables = world.open();
    let mut changes = world.changes.subscribe();
    let waiting = launchables.prepare(&repository(), &tree('a'), SecurityContext::default()).unwrap_err();
    assert_eq!((waiting.class(), waiting.to_string().as_str()), (Class::Waiting, "`git:apps/web` is being installed"));
    let path = prepare(&launchables, &tree('a')).unwrap();
    assert!(matches!(changes.blocking_recv(), Ok(RuntimeChange::Image(_))));
    assert_eq!(fs::read_to_string(path.join("data/x")).unwrap(), "1");
    assert_eq!(fs::metadata(path.join("data")).unwrap().permissions().mode() & 0o222, 0);
    let again = world.open();
    assert_eq!(prepare(&again, &tree('a')).unwrap(), path);
    assert_eq!(world.trees.exports.load(Ordering::SeqCst), 1);
}

#[test]
fn an_archive_is_installed_by_its_content() {
    let world = World::new(&[]);
    let launchables = world.open();
    let image = archive(world.root.path(), "one");
    let first = prepare(&launchables, &image).unwrap();
    assert_eq!(fs::read_to_string(first.join("bin/launch")).unwrap(), "one");
    let named = format!("{image}@sha256:{}", sha256(&world.root.path().join("app.tar.gz")));
    assert_eq!(prepare(&launchables, &named).unwrap(), first);
    archive(world.root.path(), "another");
    let second = prepare(&launchables, &image).unwrap();
    assert_eq!(fs::read_to_string(second.join("bin/launch")).unwrap(), "another");
    assert!(first.exists() && first != second);
}

#[test]
fn a_wrong_digest_is_refused_and_leaves_nothing() {
    let world = World::new(&[]);
    let launchables = world.open();
    let image = archive(world.root.path(), "one");
    let found = sha256(&world.root.path().join("app.tar.gz"));
    let wrong = "0".repeat(64);
    let failure = prepare(&launchables, &format!("{image}@sha256:{wrong}")).unwrap_err();
    assert_eq!(failure.class(), Class::Stalled);
    assert_eq!(failure.to_string(), format!("`{image}` has the digest sha256:{found}, not sha256:{wrong}"));
    assert!(failure.hint_text().unwrap().contains("change the digest"));
    assert_eq!(fs::read_dir(world.root.path().join("launchables")).unwrap().count(), 0);
}

#[test]
fn what_is_missing_says_so_and_is_found_when_it_is_there() {
    let world = World::new(&[]);
    let launchables = world.open();
    let image = format!("file://{}/app.tar.gz@sha256:{}", world.root.path().display(), "0".repeat(64));
    let failure = prepare(&launchables, &image).unwrap_err();
    assert!(failure.one_line().contains("cannot be opened: No such file or directory"), "{}", failure.one_line());
    assert!(failure.one_line().contains("a file on the machine that runs launchway"));
    archive(world.root.path(), "one");
    let image =
        format!("{}@sha256:{}", archive(world.root.path(), "one"), sha256(&world.root.path().join("app.tar.gz")));
    prepare(&launchables, &image).unwrap();
    let missing = prepare(&launchables, &format!("git:gone@{}", "dead".repeat(10))).unwrap_err();
    assert_eq!(missing.one_line(), "`gone` is not in the repository (push it)");
}

#[test]
fn a_failure_may_be_forgotten_at_once() {
    let world = World::new(&[]);
    let launchables = world.open();
    let image = archive(world.root.path(), "one");
    let digest = sha256(&world.root.path().join("app.tar.gz"));
    let image = format!("{image}@sha256:{digest}");
    fs::rename(world.root.path().join("app.tar.gz"), world.root.path().join("elsewhere")).unwrap();
    prepare(&launchables, &image).unwrap_err();
    fs::rename(world.root.path().join("elsewhere"), world.root.path().join("app.tar.gz")).unwrap();
    launchables.forget_failure(&repository(), &image).unwrap();
    prepare(&launchables, &image).unwrap();
}

#[test]
fn the_host_is_allowed_by_the_configuration_alone() {
    let world = World::new(&[]);
    let launchables = world.open();
    launchables.prepare(&repository(), "host", SecurityContext::default()).unwrap();
    assert_eq!(launchables.path(&repository(), "host").unwrap(), None);
    let other = RepositoryName::from("other");
    let failure = launchables.prepare(&other, "host", SecurityContext::default()).unwrap_err();
    assert_eq!(
        failure.one_line(),
        "repository `other` may not use the image `host` (set `allow: {hostImage: true}` for it in the daemon's \
         configuration)"
    );
}

#[test]
fn too_large_a_launchable_is_refused() {
    let mut world = World::new(&[("a", "12345"), ("b", "12345")]);
    world.settings.limits.bytes = 9;
    let failure = prepare(&world.open(), &tree('a')).unwrap_err();
    assert_eq!(failure.to_string(), "the launchable has more than 9 bytes");
}

#[test]
fn only_what_nobody_uses_is_collected() {
    let world = World::new(&[("a", "")]);
    let launchables = world.open();
    let (kept, dropped) = (prepare(&launchables, &tree('a')).unwrap(), prepare(&launchables, &tree('b')).unwrap());
    let used = ImageUse { repository: repository(), image: tree('a') };
    eventually("what is not used is gone", || {
        launchables.collect(std::slice::from_ref(&used), false).unwrap();
        !dropped.exists()
    });
    assert!(kept.exists());
    assert_eq!(fs::read_dir(world.root.path().join("launchables")).unwrap().count(), 1);
    assert_eq!(launchables.collect(&[], true).unwrap(), 1);
    assert!(launchables.path(&used.repository, &used.image).unwrap().is_some(), "it was only counted");
    assert_eq!(launchables.collect(&[], false).unwrap(), 1);
    assert!(!kept.exists());
}

#[test]
fn what_was_half_done_is_removed_at_the_start() {
    let world = World::new(&[("a", "")]);
    let path = prepare(&world.open(), &tree('a')).unwrap();
    let folder = world.root.path().join("launchables");
    let half = folder.join(format!("git-{}", "b".repeat(40)));
    fs::create_dir_all(half.join("tree/bin")).unwrap();
    fs::create_dir_all(folder.join(".trash-git-1/tree")).unwrap();
    let launchables = world.open();
    assert!(path.exists());
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    prepare(&launchables, &tree('b')).unwrap();
}
