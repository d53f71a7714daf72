//! Mirrors that are damaged or were lost.

use std::fs;
use std::path::{Path, PathBuf};

use launchway::error::{Class, Failure};
use launchway::model::ids::CommitId;
use launchway::model::time::Timestamp;
use launchway::source::{Limits, Mirror, NoteLine, Remote, RemoteUrl, Repository, Signature, remote_head};

use crate::support::git::GitFixture;
use crate::support::git_http::GitHttp;

/// What may happen to the mirror in this folder.
type Damage = fn(&Path);

const DAMAGES: [(&str, Damage); 8] = [
    ("all objects are gone", |mirror| {
        fs::remove_dir_all(mirror.join("objects")).expect("removed");
        fs::create_dir(mirror.join("objects")).expect("made");
    }),
    ("references are empty", |mirror| each(&mirror.join("refs"), |file| replace(file, |_| Vec::new()))),
    ("an old reference is empty", |mirror| fs::write(mirror.join("refs/heads/old"), "").expect("written")),
    ("what is at its beginning is empty", |mirror| {
        for file in ["HEAD", "config"] {
            fs::write(mirror.join(file), "").expect("written");
        }
    }),
    ("objects are empty", |mirror| each(&mirror.join("objects"), |file| replace(file, |_| Vec::new()))),
    ("packs are cut", |mirror| {
        each(&mirror.join("objects/pack"), |file| replace(file, |bytes| bytes[..bytes.len() / 2].to_vec()));
    }),
    ("packs are garbled", |mirror| {
        each(&mirror.join("objects/pack"), |file| {
            replace(file, |bytes| bytes.iter().enumerate().map(|(at, byte)| byte ^ u8::from(at % 40 == 39)).collect());
        });
    }),
    ("indexes lead nowhere", |mirror| {
        each(&mirror.join("objects"), |file| {
            if file.extension().is_none_or(|end| end != "idx") {
                fs::remove_file(file).expect("removed");
            }
        });
    }),
];

/// Does something to all files below a folder.
fn each(folder: &Path, change: impl Fn(&Path) + Copy) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { each(&path, change) } else { change(&path) }
    }
}

/// A new file, as the remote may have a link to the old one.
fn replace(file: &Path, change: impl Fn(&[u8]) -> Vec<u8>) {
    let content = change(&fs::read(file).expect("readable"));
    fs::remove_file(file).expect("removed");
    fs::write(file, content).expect("written");
}

fn remote(url: &str) -> Remote {
    Remote::new(RemoteUrl::parse(url, true).expect("an address"), "main")
}

fn local(fixture: &GitFixture) -> Remote {
    remote(&fixture.bare().display().to_string())
}

fn mirror(fixture: &GitFixture) -> (PathBuf, Mirror) {
    let path = fixture.path("mirror.git");
    let mirror = Mirror::open_or_create(&path, Limits::default()).expect("a mirror");
    (path, mirror)
}

fn fetch(mirror: &Mirror, remote: &Remote) -> Result<CommitId, Failure> {
    mirror.fetch(remote, &remote_head(remote).expect("a look").expect("a branch"))
}

fn read(mirror: &Mirror, commit: &CommitId) -> Result<Vec<u8>, Failure> {
    let repository = mirror.open()?;
    let tree = repository.tree(commit)?;
    let entry = tree.entry("app/version")?.expect("there");
    tree.read(&entry, 1000)
}

fn write_note(mirror: &Mirror, remote: &Remote, commit: &CommitId) -> Result<(), Failure> {
    let note = NoteLine { commit: commit.clone(), context: "a".into(), line: "success a".into() };
    let author = Signature { name: "a".into(), email: "a@localhost".into(), at: Timestamp(0) };
    mirror.write_notes(remote, &[note], &author)
}

#[test]
fn a_damaged_mirror_is_made_anew_by_the_next_push() {
    for (name, damage) in DAMAGES {
        for over_http in [false, true] {
            let fixture = GitFixture::new();
            let server = GitHttp::start(fixture.root());
            let remote = if over_http { remote(&server.url("origin.git")) } else { local(&fixture) };
            let (path, mirror) = mirror(&fixture);
            fixture.push_files(&[("app/version", "1")]);
            fixture.git_in(&fixture.bare(), &["gc", "--quiet"]);
            let first = fetch(&mirror, &remote).expect("a fetch");
            damage(&path);
            fixture.push_files(&[("app/version", "2")]);
            let second = fetch(&mirror, &remote).expect(name);
            // What a fetch does not need is found when it is read.
            for (commit, content) in [(&first, b"1"), (&second, b"2")] {
                let found = read(&mirror, commit).or_else(|failure| {
                    assert!(mirror.is_to_blame(&failure), "{name}: {}", failure.one_line());
                    fetch(&mirror, &remote)?;
                    read(&mirror, commit)
                });
                assert_eq!(found.expect(name), content, "{name}");
            }
            let repository = mirror.open().expect("a handle");
            assert!(repository.is_descendant(&second, &first).expect("related"), "{name}");
            assert!(!path.with_extension("damaged").exists());
        }
    }
}

#[test]
fn a_head_that_was_seen_is_fetched_again_when_the_mirror_has_lost_it() {
    for (name, damage) in DAMAGES {
        let fixture = GitFixture::new();
        let (path, mirror) = mirror(&fixture);
        let remote = local(&fixture);
        fixture.push_files(&[("app/version", "1")]);
        fixture.git_in(&fixture.bare(), &["gc", "--quiet"]);
        let head = fetch(&mirror, &remote).expect("a fetch");
        assert!(mirror.is_at(&remote, &head).expect("a look"));
        write_note(&mirror, &remote, &head).expect("notes");
        damage(&path);
        if let Err(failure) = read(&mirror, &head).map(drop).and_then(|()| write_note(&mirror, &remote, &head)) {
            assert!(mirror.is_to_blame(&failure), "{name}: {}", failure.one_line());
        }
        if !mirror.is_at(&remote, &head).expect("a look") {
            assert_eq!(fetch(&mirror, &remote).expect(name), head);
        }
        assert!(mirror.is_at(&remote, &head).expect("a look"), "{name}");
        assert_eq!(read(&mirror, &head).expect(name), b"1", "{name}");
        write_note(&mirror, &remote, &head).expect(name);
    }
}

#[test]
fn loose_objects_that_are_cut_short_are_found_before_they_are_read() {
    let fixture = GitFixture::new();
    let (path, earlier) = mirror(&fixture);
    let remote = local(&fixture);
    fixture.push_files(&[("app/version", "1")]);
    let head = fetch(&earlier, &remote).expect("a fetch");
    each(&path.join("objects"), |file| replace(file, |bytes| bytes[..bytes.len() / 2].to_vec()));
    let (_, mirror) = mirror(&fixture);
    assert!(!mirror.is_at(&remote, &head).expect("a look"));
    assert_eq!(fetch(&mirror, &remote).expect("a fetch"), head);
    assert_eq!(read(&mirror, &head).expect("content"), b"1");
}

#[test]
fn a_mirror_of_a_damaged_remote_is_whole_once_the_remote_is() {
    let fixture = GitFixture::new();
    let remote = local(&fixture);
    let commit = CommitId::new(fixture.push_files(&[("app/version", "1")]));
    let (folder, name) = commit.as_str().split_at(2);
    let object = fixture.bare().join("objects").join(folder).join(name);
    let content = fs::read(&object).expect("a loose object");
    replace(&object, |_| Vec::new());
    let (_, mirror) = mirror(&fixture);
    for _ in 0..2 {
        mirror.fetch(&remote, &commit).expect_err("nobody has it");
    }
    replace(&object, |_| content.clone());
    assert_eq!(mirror.fetch(&remote, &commit).expect("a fetch"), commit);
    assert_eq!(read(&mirror, &commit).expect("content"), b"1");
}

#[test]
fn a_mirror_is_not_to_blame_for_what_it_never_had_nor_replaced_under_a_reader() {
    let fixture = GitFixture::new();
    let (remote, (path, mirror)) = (local(&fixture), mirror(&fixture));
    fixture.push_files(&[("app/version", "1")]);
    let head = fetch(&mirror, &remote).expect("a fetch");
    let failure = read(&mirror, &CommitId::new("1".repeat(40))).expect_err("unknown");
    assert!(!mirror.is_to_blame(&failure));
    let explained = mirror.explained(Failure::stalled("a sentence"));
    assert_eq!((explained.class(), explained.to_string()), (Class::Stalled, "a sentence".to_owned()));
    fs::write(path.join("refs/heads/main"), "").expect("written");
    let reader = mirror.open().expect("a handle");
    assert_eq!(fetch(&mirror, &remote).expect_err("it is read").class(), Class::Transient);
    assert!(reader.contains(&head).expect("readable"));
    drop(reader);
    assert_eq!(fetch(&mirror, &remote).expect("a fetch"), head);
}

#[test]
fn a_commit_that_is_gone_is_no_ancestor_and_a_hole_in_the_history_is_no_answer() {
    let fixture = GitFixture::new();
    let gone = CommitId::new("1".repeat(40));
    let [first, second, third] = ["1", "2", "3"].map(|content| fixture.commit_files(&[("app/version", content)]));
    let repository = || Repository::open_local(&fixture.work(), Limits::default()).expect("a repository");
    let [first, second, third] = [first, second, third].map(CommitId::new);
    assert!(!repository().is_descendant(&third, &gone).expect("compared"));
    let (folder, name) = second.as_str().split_at(2);
    fs::remove_file(fixture.work().join(".git/objects").join(folder).join(name)).expect("removed");
    for old in [&first, &second, &gone] {
        repository().is_descendant(&third, old).expect_err("a hole");
    }
}
