//! Notes on commits, read and written beside other writers.

use std::thread;

use launchway::error::Class;
use launchway::model::ids::CommitId;
use launchway::model::time::Timestamp;
use launchway::secret::{Secret, SecretSource};
use launchway::source::{Credentials, Limits, Mirror, NOTES_REF, NoteLine, Remote, RemoteUrl, Repository, Signature};

use crate::source_edges::transport::{Daemon, over_ssh};
use crate::support::git::GitFixture;
use crate::support::git_http::GitHttp;

fn remote(url: &str) -> Remote {
    Remote::new(RemoteUrl::parse(url, false).expect(url), "main")
}

fn mirror(fixture: &GitFixture, name: &str) -> Mirror {
    Mirror::open_or_create(&fixture.path(name), Limits::default()).expect("a mirror")
}

fn line(commit: &CommitId, context: &str, state: &str) -> NoteLine {
    NoteLine { commit: commit.clone(), context: context.to_owned(), line: format!("{state} {context} told") }
}

fn author() -> Signature {
    Signature {
        name: "launchway".to_owned(),
        email: "launchway@localhost".to_owned(),
        at: Timestamp(1_767_323_045_000),
    }
}

/// What `git notes` shows in the watched repository.
fn shown(fixture: &GitFixture, commit: &CommitId) -> Vec<String> {
    let text = fixture.git_in(&fixture.bare(), &["notes", "--ref=launchway", "show", commit.as_str()]);
    text.lines().map(str::to_owned).collect()
}

fn commits(fixture: &GitFixture, count: usize) -> Vec<CommitId> {
    (0..count).map(|number| CommitId::new(fixture.push_files(&[("a", &number.to_string())]))).collect()
}

#[test]
fn the_lock_of_a_writer_that_was_killed_is_removed() {
    let fixture = GitFixture::new();
    let commit = commits(&fixture, 1).remove(0);
    let (remote, mirror) = (remote(&fixture.bare().display().to_string()), mirror(&fixture, "mirror"));
    mirror.fetch(&remote, &commit).expect("a fetch");
    let lock = fixture.bare().join(format!("{NOTES_REF}.lock"));
    std::fs::create_dir_all(lock.parent().expect("a folder")).expect("folders");
    let file = std::fs::File::create(&lock).expect("a lock");
    file.set_modified(std::time::UNIX_EPOCH).expect("an old lock");
    mirror.write_notes(&remote, &[line(&commit, "ci", "success")], &author()).expect("written");
    assert_eq!(shown(&fixture, &commit), ["success ci told"]);
}

#[test]
fn the_locks_of_a_daemon_that_was_killed_keep_nothing_out_of_its_mirror() {
    let fixture = GitFixture::new();
    let first = commits(&fixture, 1).remove(0);
    let (remote, mirror) = (remote(&fixture.bare().display().to_string()), mirror(&fixture, "mirror"));
    mirror.fetch(&remote, &first).expect("a fetch");
    mirror.write_notes(&remote, &[line(&first, "ci", "running")], &author()).expect("written");
    for name in [NOTES_REF, "refs/heads/main"] {
        std::fs::File::create(fixture.path("mirror").join(format!("{name}.lock"))).expect("a lock");
    }
    let second = CommitId::new(fixture.push_files(&[("a", "new")]));
    assert_eq!(mirror.fetch(&remote, &second).expect("a fetch"), second);
    mirror.write_notes(&remote, &[line(&first, "ci", "success")], &author()).expect("written");
    assert_eq!(mirror.open().expect("open").read_notes(&first).expect("read"), ["success ci told"]);
}

#[test]
fn notes_are_written_where_git_shows_them() {
    let fixture = GitFixture::new();
    let server = GitHttp::start(fixture.root());
    let commits = commits(&fixture, 3);
    for url in [server.url("origin.git"), server.url("v0/origin.git"), fixture.bare().display().to_string()] {
        let (remote, mirror) = (remote(&url), mirror(&fixture, &format!("mirror-{}", url.len())));
        mirror.fetch(&remote, &commits[2]).expect("a fetch");
        for state in ["running", "success"] {
            let lines: Vec<_> =
                commits.iter().map(|commit| line(commit, &format!("ci/{}", url.len()), state)).collect();
            mirror.write_notes(&remote, &lines, &author()).expect("written");
        }
        for commit in &commits {
            let expected = format!("success ci/{} told", url.len());
            assert_eq!(
                shown(&fixture, commit)
                    .iter()
                    .filter(|line| line.contains(&format!("ci/{} ", url.len())))
                    .collect::<Vec<_>>(),
                [&expected]
            );
            assert!(mirror.open().expect("a handle").read_notes(commit).expect("notes").contains(&expected));
        }
    }
    assert_eq!(shown(&fixture, &commits[0]).len(), 3);
    assert_eq!(
        fixture.git_in(&fixture.bare(), &["log", "-1", "--format=%an %s", NOTES_REF]),
        "launchway Notes on 3 commits"
    );
}

#[test]
fn what_is_there_already_costs_no_commit_and_no_request() {
    let fixture = GitFixture::new();
    let server = GitHttp::start(fixture.root());
    let commits = commits(&fixture, 1);
    let (remote, mirror) = (remote(&server.url("origin.git")), mirror(&fixture, "mirror.git"));
    let lines = [line(&commits[0], "launchway/plan", "success")];
    mirror.write_notes(&remote, &lines, &author()).expect("written");
    let tip = fixture.git_in(&fixture.bare(), &["rev-parse", NOTES_REF]);
    server.take_seen();
    mirror.write_notes(&remote, &lines, &author()).expect("nothing to write");
    assert_eq!(server.take_seen().len(), 0);
    assert_eq!(fixture.git_in(&fixture.bare(), &["rev-parse", NOTES_REF]), tip);
}

#[test]
fn notes_of_people_stay_as_they_are_under_any_fanout() {
    let fixture = GitFixture::new();
    let commits: Vec<_> = fixture.import_commits(300).into_iter().map(CommitId::new).collect();
    fixture.git_in(
        &fixture.bare(),
        &["notes", "--ref=launchway", "add", "-m", "by hand\n\n  indented", commits[0].as_str()],
    );
    copy_note(&fixture, &commits);
    let remote = remote(&fixture.bare().display().to_string());
    let mirror = mirror(&fixture, "mirror.git");
    mirror.fetch(&remote, &commits[299]).expect("a fetch");
    let lines: Vec<_> = commits.iter().map(|commit| line(commit, "launchway/plan", "success")).collect();
    mirror.write_notes(&remote, &lines, &author()).expect("written");
    for commit in commits.iter().step_by(37) {
        assert_eq!(shown(&fixture, commit), ["by hand", "", "  indented", "success launchway/plan told"]);
    }
    assert_eq!(fixture.git_in(&fixture.bare(), &["notes", "--ref=launchway", "list"]).lines().count(), 300);
}

/// Gives all commits the first one's note.
fn copy_note(fixture: &GitFixture, commits: &[CommitId]) {
    let pairs: String = commits.iter().skip(1).map(|commit| format!("{} {commit}\n", commits[0])).collect();
    let file = fixture.path("pairs");
    std::fs::write(&file, pairs).expect("written");
    let mut command = fixture.command(&fixture.bare());
    command.args(["notes", "--ref=launchway", "copy", "--stdin"]).stdin(std::fs::File::open(file).expect("the pairs"));
    assert!(command.status().expect("git").success());
}

#[test]
fn racing_writers_lose_nothing_over_http() {
    let fixture = GitFixture::new();
    let server = GitHttp::start(fixture.root());
    race(&fixture, &server.url("origin.git"));
}

#[test]
fn racing_writers_lose_nothing_on_a_path() {
    let fixture = GitFixture::new();
    race(&fixture, &fixture.bare().display().to_string());
}

#[test]
fn a_mirror_is_fetched_into_while_notes_are_written_from_it() {
    const ROUNDS: usize = 200;
    let fixture = GitFixture::new();
    let commit = commits(&fixture, 1).remove(0);
    let server = GitHttp::start(fixture.root());
    for (name, url) in [("path", fixture.bare().display().to_string()), ("http", server.url("origin.git"))] {
        let (remote, mirror) = (remote(&url), mirror(&fixture, name));
        mirror.fetch(&remote, &commit).expect("the first fetch");
        let rounds = if name == "http" { ROUNDS / 10 } else { ROUNDS };
        // A head that is not here yet has everything fetched, each time.
        let unseen = CommitId::new("1".repeat(40));
        thread::scope(|scope| {
            scope.spawn(|| (0..rounds).for_each(|_| drop(mirror.fetch(&remote, &unseen).expect("fetched"))));
            for round in 0..rounds {
                let lines = [line(&commit, &format!("{name}/{round}"), "success")];
                mirror.write_notes(&remote, &lines, &author()).expect("written");
            }
        });
    }
    assert_eq!(shown(&fixture, &commit).len(), ROUNDS + ROUNDS / 10);
}

/// Two mirrors and a person with `git notes` write at the same time to the same commits.
fn race(fixture: &GitFixture, url: &str) {
    const ROUNDS: usize = 8;
    let commits = commits(fixture, 2);
    thread::scope(|scope| {
        for writer in ["one", "two"] {
            let (commits, remote) = (&commits, remote(url));
            let mirror = mirror(fixture, writer);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let lines: Vec<_> =
                        commits.iter().map(|commit| line(commit, &format!("{writer}/{round}"), "success")).collect();
                    mirror.write_notes(&remote, &lines, &author()).expect("written in the end");
                }
            });
        }
        scope.spawn(|| {
            for round in 0..ROUNDS {
                append_by_hand(fixture, &commits[0], &format!("hand {round}"));
            }
        });
    });
    for commit in &commits {
        let lines = shown(fixture, commit);
        for expected in ["one", "two"]
            .iter()
            .flat_map(|writer| (0..ROUNDS).map(move |round| format!("success {writer}/{round} told")))
        {
            assert_eq!(lines.iter().filter(|line| **line == expected).count(), 1, "{expected} in {lines:?}");
        }
    }
    let by_hand = shown(fixture, &commits[0]).iter().filter(|line| line.starts_with("hand ")).count();
    assert_eq!(by_hand, ROUNDS);
}

/// What a person does: fetch, append, push, again if somebody was faster.
fn append_by_hand(fixture: &GitFixture, commit: &CommitId, text: &str) {
    let work = fixture.work();
    for _attempt in 0..100 {
        fixture.try_git_in(&work, &["fetch", "--quiet", "origin", &format!("+{NOTES_REF}:{NOTES_REF}")]);
        fixture.git(&["notes", "--ref=launchway", "append", "-m", text, commit.as_str()]);
        if fixture.try_git_in(&work, &["push", "--quiet", "origin", NOTES_REF]).status.success() {
            return;
        }
    }
    unreachable!("a person always gets through");
}

#[test]
fn a_remote_that_refuses_notes_needs_a_person() {
    let fixture = GitFixture::new();
    let server = GitHttp::start(fixture.root());
    let commits = commits(&fixture, 1);
    let lines = [line(&commits[0], "launchway/plan", "success")];
    let secret = |text: &str| Some(SecretSource::Value(Secret::new(text)));
    let credentials = Credentials { username: secret("bot"), password: secret("hunter2"), ..Credentials::default() };
    let wrong = Remote { credentials, ..remote(&server.url("auth/origin.git")) };
    let failure = mirror(&fixture, "mirror.git").write_notes(&wrong, &lines, &author()).expect_err("unauthorised");
    assert_eq!(failure.class(), Class::Stalled, "{}", failure.one_line());
    assert!(failure.one_line().contains("does not accept"), "{}", failure.one_line());

    fixture.write_program(&fixture.bare().join("hooks/pre-receive"), "#!/bin/sh\nexit 1\n");
    let remote = remote(&server.url("origin.git"));
    let failure = mirror(&fixture, "mirror.git").write_notes(&remote, &lines, &author()).expect_err("declined");
    assert_eq!(failure.class(), Class::Stalled, "{}", failure.one_line());
    assert!(failure.one_line().contains("hook declined"), "{}", failure.one_line());
}

#[test]
fn a_host_that_takes_no_pushes_is_told_of_over_every_transport() {
    let fixture = GitFixture::new();
    let commits = commits(&fixture, 1);
    let lines = [line(&commits[0], "launchway/plan", "success")];
    let daemon = Daemon::start_with(&fixture, &[]);
    let failure =
        mirror(&fixture, "mirror-git").write_notes(&remote(&format!("{}/origin.git", daemon.url)), &lines, &author());
    let failure = failure.expect_err("not enabled");
    assert_eq!(failure.class(), Class::Stalled, "{}", failure.one_line());
    assert!(failure.one_line().contains("not exported"), "{}", failure.one_line());

    let refusal = "ERROR: The key you are authenticating with has been marked as read only.";
    let body = format!("case $last in *receive-pack*) echo '{refusal}' >&2; exit 1;; esac; exec sh -c \"$last\"");
    let ssh = over_ssh(&fixture, &body);
    let failure = mirror(&fixture, "mirror-ssh").write_notes(&ssh, &lines, &author()).expect_err("read only");
    assert_eq!(failure.class(), Class::Stalled, "{}", failure.one_line());
    assert!(failure.one_line().contains("marked as read only"), "{}", failure.one_line());
    let log = std::fs::read_to_string(fixture.path("ssh.log")).expect("a log");
    assert_eq!(log.lines().filter(|line| line.contains("receive-pack")).count(), 1, "it is tried once");
}

#[test]
fn what_looks_like_a_lost_race_and_is_none_is_told_of() {
    let fixture = GitFixture::new();
    let commits = commits(&fixture, 1);
    let lines = [line(&commits[0], "launchway/plan", "success")];
    // No reference can have a name that is another's folder.
    fixture.git_in(&fixture.bare(), &["update-ref", &format!("{NOTES_REF}/taken"), commits[0].as_str()]);
    let (server, daemon) = (GitHttp::start(fixture.root()), Daemon::start(&fixture));
    for (name, remote) in [
        ("http", remote(&server.url("origin.git"))),
        ("git", remote(&format!("{}/origin.git", daemon.url))),
        ("ssh", over_ssh(&fixture, "exec sh -c \"$last\"")),
        ("path", remote(&fixture.bare().display().to_string())),
    ] {
        let mirror = mirror(&fixture, &format!("mirror-{name}"));
        let failure = mirror.write_notes(&remote, &lines, &author()).expect_err(name);
        assert_eq!(failure.class(), Class::Stalled, "{name}: {}", failure.one_line());
        assert!(failure.one_line().contains("does not take notes"), "{name}: {}", failure.one_line());
    }
    let pushes = server.take_seen().iter().filter(|seen| seen.path.ends_with("/git-receive-pack")).count();
    assert!(pushes <= 8, "{pushes} pushes");
}

#[test]
fn the_size_of_a_note_is_known_before_it_is_unpacked() {
    let fixture = GitFixture::new();
    let server = GitHttp::start(fixture.root());
    let commits = commits(&fixture, 1);
    // 400 MiB of nothing, which Git stores in 400 KiB.
    let large = fixture.path("large");
    std::fs::File::create(&large).and_then(|file| file.set_len(400 << 20)).expect("a sparse file");
    let store = ["-c", "core.bigFileThreshold=1m", "hash-object", "-w", "--no-filters", &large.display().to_string()];
    let blob = fixture.git_in(&fixture.bare(), &store);
    let notes = ["notes", "--ref=launchway", "add", "-C", &blob, commits[0].as_str()];
    fixture.git_in(&fixture.bare(), &notes);
    let remote = remote(&server.url("origin.git"));
    let line = line(&commits[0], "launchway/plan", "success");
    let before = most_memory();
    let failure = mirror(&fixture, "mirror").write_notes(&remote, &[line], &author()).expect_err("too large");
    assert!(failure.one_line().contains("is larger than"), "{}", failure.one_line());
    assert!(most_memory().saturating_sub(before) < 200_000, "{before} KiB before, {} KiB after", most_memory());
}

/// The most memory that this process has had, in KiB. The kernel counts roughly: it may say a little less later.
pub(crate) fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn notes_are_read_from_a_persons_repository_too() {
    let fixture = GitFixture::new();
    let commits = commits(&fixture, 2);
    fixture
        .git_in(&fixture.bare(), &["notes", "--ref=launchway", "add", "-m", "success a/b told", commits[0].as_str()]);
    let repository = Repository::open_local(&fixture.bare(), Limits::default()).expect("a repository");
    assert_eq!(repository.read_notes(&commits[0]).expect("notes"), ["success a/b told"]);
    assert_eq!(repository.read_notes(&commits[1]).expect("notes"), [""; 0]);
}

#[test]
fn what_is_no_note_holds_up_no_push_and_whoever_writes_one_hears_of_it() {
    let fixture = GitFixture::new();
    let server = GitHttp::start(fixture.root());
    let commit = commits(&fixture, 1).remove(0);
    let file = fixture.git_in(&fixture.bare(), &["rev-parse", "main:a"]);
    let lines = [line(&commit, "launchway/plan", "success")];
    for (name, url) in [("local", fixture.bare().display().to_string()), ("http", server.url("origin.git"))] {
        fixture.git_in(&fixture.bare(), &["update-ref", NOTES_REF, file.trim()]);
        let (remote, mirror) = (remote(&url), mirror(&fixture, name));
        assert_eq!(mirror.fetch(&remote, &commit).expect("a fetch"), commit, "{name}");
        let failure = mirror.write_notes(&remote, &lines, &author()).expect_err("somebody else's");
        assert_eq!(failure.class(), Class::Stalled, "{name}: {}", failure.one_line());
        assert!(failure.one_line().contains("points at no commit"), "{name}: {}", failure.one_line());

        fixture.git_in(&fixture.bare(), &["update-ref", "-d", NOTES_REF]);
        mirror.write_notes(&remote, &lines, &author()).expect("written");
        assert_eq!(shown(&fixture, &commit), ["success launchway/plan told"], "{name}");
    }
}
