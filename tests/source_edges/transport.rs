//! Git servers as they really are: HTTP, `git://` and SSH, and the ways in which they refuse.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::git::GitFixture;
use crate::support::git_http::{GitHttp, basic};
use launchway::error::Class;
use launchway::model::ids::CommitId;
use launchway::secret::{Secret, SecretSource};
use launchway::source::{
    Credentials, Limits, Mirror, Remote, RemoteUrl, default_branch, named_by_head, remote_head, without_branch,
};

fn remote(url: &str) -> Remote {
    Remote::new(RemoteUrl::parse(url, false).expect(url), "main")
}

fn with_password(url: &str, password: &str) -> Remote {
    let secret = |text: &str| Some(SecretSource::Value(Secret::new(text)));
    let credentials = Credentials { username: secret("bot"), password: secret(password), ..Credentials::default() };
    Remote { credentials, ..remote(url) }
}

pub(super) fn mirror(fixture: &GitFixture) -> Mirror {
    Mirror::open_or_create(&fixture.path("mirror.git"), Limits::default()).expect("a mirror")
}

/// Looks, fetches and reads back: what must work over every transport.
pub(super) fn look_and_fetch(fixture: &GitFixture, remote: &Remote) {
    let mirror = mirror(fixture);
    for round in 0..3 {
        let pushed = fixture.push_files(&[("app/version", &format!("{round}\n"))]);
        let head = remote_head(remote).expect("a look").expect("a branch");
        assert_eq!(head.as_str(), pushed);
        assert_eq!(mirror.fetch(remote, &head).expect("a fetch"), head);
        let repository = mirror.open().expect("a handle");
        let tree = repository.tree(&head).expect("a tree");
        let entry = tree.entry("app/version").expect("readable").expect("there");
        assert_eq!(tree.read(&entry, 100).expect("content"), format!("{round}\n").as_bytes());
        assert_eq!(repository.log(None, &head, 10).expect("a log").len(), round + 1);
    }
    assert_eq!(default_branch(remote).expect("a branch"), "main");
}

#[test]
fn http_is_looked_at_and_fetched() {
    let fixture = GitFixture::new();
    let server = GitHttp::start(fixture.root());
    look_and_fetch(&fixture, &remote(&server.url("origin.git")));
}

#[test]
fn a_server_that_knows_only_v0_works() {
    let fixture = GitFixture::new();
    let server = GitHttp::start(fixture.root());
    look_and_fetch(&fixture, &remote(&server.url("v0/origin.git")));
}

#[test]
fn a_poll_costs_two_requests_and_reads_one_reference() {
    let fixture = GitFixture::new();
    let server = GitHttp::start(fixture.root());
    fixture.push_files(&[("a", "1")]);
    fixture.git(&["push", "--quiet", "origin", "HEAD:refs/heads/other", "HEAD:refs/tags/v1"]);
    remote_head(&remote(&server.url("origin.git"))).expect("a look").expect("a branch");
    let seen = server.take_seen();
    let calls: Vec<_> = seen.iter().map(|seen| (seen.method.as_str(), seen.path.as_str())).collect();
    assert_eq!(calls, [("GET", "/origin.git/info/refs"), ("POST", "/origin.git/git-upload-pack")]);
}

#[test]
fn a_branch_is_not_taken_for_one_whose_name_begins_with_its_own() {
    let fixture = GitFixture::new();
    let server = GitHttp::start(fixture.root());
    let head = fixture.push_files(&[("a", "1")]);
    fixture.commit_files(&[("a", "2")]);
    fixture.git(&["push", "--quiet", "origin", "HEAD:refs/heads/main-2", "HEAD:refs/heads/feature/main"]);
    for url in [server.url("origin.git"), server.url("v0/origin.git")] {
        assert_eq!(remote_head(&remote(&url)).expect("a look"), Some(CommitId::new(head.as_str())), "{url}");
        let ma = Remote { branch: "ma".to_owned(), ..remote(&url) };
        assert_eq!(remote_head(&ma).expect("a look"), None, "{url}");
    }
}

#[test]
fn nothing_compressed_is_taken_from_a_server() {
    let fixture = GitFixture::new();
    let server = GitHttp::start(fixture.root());
    fixture.push_files(&[("a", "1")]);
    let remote = remote(&server.url("compressed/origin.git"));
    let failure = remote_head(&remote).expect_err("refused");
    assert_eq!(failure.class(), Class::Stalled, "{}", failure.one_line());
    assert!(failure.one_line().contains("answers compressed"), "{}", failure.one_line());
    assert!(server.take_seen().iter().all(|seen| seen.encodings.is_none()), "nor asked for");
    let failure = mirror(&fixture).fetch(&remote, &CommitId::new("1".repeat(40))).expect_err("refused");
    assert!(failure.one_line().contains("answers compressed"), "{}", failure.one_line());
}

#[test]
fn a_fetch_is_bounded_over_every_transport() {
    let fixture = GitFixture::new();
    let (server, daemon) = (GitHttp::start(fixture.root()), Daemon::start(&fixture));
    let noise: String = (0..4000).map(|line| format!("{:x}\n", line * 2_654_435_761_u64 % 1_000_000_007)).collect();
    let head = CommitId::new(fixture.push_files(&[("noise", &noise)]));
    let ssh = over_ssh(&fixture, "exec sh -c \"$last\"");
    for (name, remote) in [
        ("http", remote(&server.url("origin.git"))),
        ("git", remote(&format!("{}/origin.git", daemon.url))),
        ("ssh", ssh),
    ] {
        let mirror = |fetch| {
            let limits = Limits { fetch, ..Limits::default() };
            Mirror::open_or_create(&fixture.path(&format!("mirror-{name}")), limits)
        };
        let failure = mirror(10_000).expect("a mirror").fetch(&remote, &head).expect_err(name);
        assert_eq!(failure.class(), Class::Stalled, "{name}: {}", failure.one_line());
        assert!(failure.one_line().contains("sends more than 10000 bytes"), "{name}: {}", failure.one_line());
        assert!(failure.one_line().contains("limits: {fetch"), "{name}: {}", failure.one_line());
        assert_eq!(mirror(1 << 20).expect("a mirror").fetch(&remote, &head).expect("a fetch"), head, "{name}");
    }
}

#[test]
fn a_long_negotiation_finds_what_both_have() {
    let fixture = GitFixture::new();
    let (server, daemon) = (GitHttp::start(fixture.root()), Daemon::start(&fixture));
    let ssh = over_ssh(&fixture, "exec sh -c \"$last\"");
    let commits = fixture.import_commits(200);
    let remotes = [remote(&server.url("origin.git")), remote(&format!("{}/origin.git", daemon.url)), ssh];
    let mirrors = remotes.each_ref().map(|remote| {
        let name = format!("mirror-{}", remote.url.to_string().len());
        let mirror = Mirror::open_or_create(&fixture.path(&name), Limits::default()).expect("a mirror");
        let head = remote_head(remote).expect("a look").expect("a branch");
        assert_eq!(mirror.fetch(remote, &head).expect("a fetch").as_str(), commits[199]);
        mirror
    });
    // The remote goes back far behind what the mirrors offer first, and forward again from there.
    fixture.git(&["fetch", "--quiet", "origin", "main"]);
    fixture.git(&["reset", "--quiet", "--hard", &commits[20]]);
    fixture.commit_files(&[("a", "1")]);
    fixture.git(&["push", "--quiet", "--force", "origin", "HEAD"]);
    for (remote, mirror) in remotes.iter().zip(mirrors) {
        let head = remote_head(remote).expect("a look").expect("a branch");
        mirror.fetch(remote, &head).expect("a fetch");
        let log = mirror.open().expect("a handle").log(None, &head, 100).expect("a log");
        assert_eq!(log.len(), 22, "{}", remote.url);
    }
}

#[test]
fn nothing_is_transferred_when_the_commit_is_here() {
    let fixture = GitFixture::new();
    let server = GitHttp::start(fixture.root());
    let remote = remote(&server.url("origin.git"));
    let head = CommitId::new(fixture.push_files(&[("a", "1")]));
    let mirror = mirror(&fixture);
    mirror.fetch(&remote, &head).expect("a fetch");
    server.take_seen();
    mirror.fetch(&remote, &head).expect("no fetch");
    assert_eq!(server.take_seen().len(), 0);
}

#[test]
fn credentials_are_sent_and_checked() {
    let fixture = GitFixture::new();
    let server = GitHttp::start(fixture.root());
    let url = server.url("auth/origin.git");
    look_and_fetch(&fixture, &with_password(&url, "secret"));

    let missing = remote_head(&remote(&url)).expect_err("no credentials");
    assert_eq!(missing.class(), Class::Stalled);
    assert!(missing.one_line().contains("none are set"), "{}", missing.one_line());

    let wrong = remote_head(&with_password(&url, "hunter2")).expect_err("wrong credentials");
    assert_eq!(wrong.class(), Class::Stalled);
    assert!(wrong.one_line().contains("does not accept"), "{}", wrong.one_line());
    assert!(!wrong.one_line().contains("hunter2"));
}

#[test]
fn a_changed_token_file_counts_at_once() {
    let fixture = GitFixture::new();
    let server = GitHttp::start(fixture.root());
    fixture.push_files(&[("a", "1")]);
    let file = fixture.path("token");
    std::fs::write(&file, "old").expect("written");
    let credentials = Credentials { token: Some(SecretSource::File(file.clone())), ..Credentials::default() };
    let url = RemoteUrl::parse(&server.url("auth/origin.git").replace("http://", "http://bot@"), false).expect("a url");
    let remote = Remote { credentials, ..Remote::new(url, "main") };
    assert!(remote_head(&remote).is_err());
    std::fs::write(&file, "secret\n").expect("written");
    assert!(remote_head(&remote).expect("a look").is_some());
}

#[test]
fn refusals_say_who_must_act() {
    let fixture = GitFixture::new();
    let server = GitHttp::start(fixture.root());
    for (path, class, words) in [
        ("status/401/x", Class::Stalled, "wants credentials"),
        ("status/403/x", Class::Stalled, "does not allow"),
        ("status/404/x", Class::Stalled, "does not exist"),
        ("status/429/x", Class::Transient, "not available"),
        ("status/500/x", Class::Transient, "not available"),
        ("status/503/x", Class::Transient, "not available"),
        ("page/x", Class::Stalled, "not answer as a Git server"),
        ("missing.git", Class::Stalled, "does not exist"),
    ] {
        let failure = remote_head(&remote(&server.url(path))).expect_err(path);
        assert_eq!(failure.class(), class, "{path}: {}", failure.one_line());
        assert!(failure.one_line().contains(words), "{path}: {}", failure.one_line());
    }
}

#[test]
fn an_unreachable_server_is_transient() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    for scheme in ["http", "git"] {
        let failure = remote_head(&remote(&format!("{scheme}://{address}/x"))).expect_err("nobody listens");
        assert_eq!(failure.class(), Class::Transient, "{}", failure.one_line());
    }
}

#[test]
fn a_server_that_hangs_is_given_up() {
    let fixture = GitFixture::new();
    let server = GitHttp::start(fixture.root());
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent = silent.local_addr().map(|address| (silent, format!("git://{address}/x"))).expect("an address");
    for url in [server.url("hang/x"), silent.1] {
        let mut remote = remote(&url);
        remote.time.list = Duration::from_millis(300);
        remote.time.transfer = Duration::from_millis(300);
        let started = Instant::now();
        let failure = remote_head(&remote).expect_err("a hang");
        assert_eq!(failure.class(), Class::Transient, "{}", failure.one_line());
        let commit = CommitId::new("1".repeat(40));
        let failure = mirror(&fixture).fetch(&remote, &commit).expect_err("a hang");
        assert_eq!(failure.class(), Class::Transient, "{}", failure.one_line());
        assert!(started.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn a_pack_that_does_not_add_up_is_refused_and_nothing_of_it_is_kept() {
    let fixture = GitFixture::new();
    let commit = CommitId::new(fixture.push_files(&[("app/version", "1\n")]));
    let server = GitHttp::start(fixture.root());
    let mirror = mirror(&fixture);
    let damaged = remote(&server.url("damaged/origin.git"));
    assert_eq!(remote_head(&damaged).expect("a look"), Some(commit.clone()));
    mirror.fetch(&damaged, &commit).expect_err("another checksum");
    assert!(mirror.open().expect("a handle").tree(&commit).is_err(), "nothing of it is there");
    let whole = mirror.fetch(&remote(&server.url("origin.git")), &commit).expect("a whole one");
    let repository = mirror.open().expect("a handle");
    assert!(repository.tree(&whole).expect("a tree").entry("app/version").expect("readable").is_some());
}

#[test]
fn a_redirect_on_the_same_host_keeps_the_credentials() {
    let fixture = GitFixture::new();
    let server = GitHttp::start(fixture.root());
    server.redirect_to(&server.url("auth/"));
    look_and_fetch(&fixture, &with_password(&server.url("redirect/origin.git"), "secret"));
}

#[test]
fn a_redirect_to_another_host_does_not_get_the_credentials() {
    let fixture = GitFixture::new();
    fixture.push_files(&[("a", "1")]);
    let (first, other) = (GitHttp::start(fixture.root()), GitHttp::start(fixture.root()));

    first.redirect_to(&other.url(""));
    let remote = with_password(&first.url("redirect/origin.git"), "secret");
    let head = remote_head(&remote).expect("a look").expect("a branch");
    mirror(&fixture).fetch(&remote, &head).expect("a fetch");
    assert!(first.take_seen().iter().all(|seen| seen.authorization == Some(basic("bot", "secret"))));
    let seen = other.take_seen();
    assert!(seen.len() >= 4 && seen.iter().all(|seen| seen.authorization.is_none()), "{seen:?}");

    first.redirect_to(&other.url("auth/"));
    let failure = remote_head(&remote).expect_err("no credentials there");
    assert_eq!(failure.class(), Class::Stalled);
    assert!(failure.one_line().contains("not sent to another host"), "{}", failure.one_line());
}

#[test]
fn redirects_without_end_or_to_pages_are_refused() {
    let fixture = GitFixture::new();
    let server = GitHttp::start(fixture.root());
    server.redirect_to(&server.url("redirect/"));
    let failure = remote_head(&remote(&server.url("redirect/x"))).expect_err("a loop");
    assert!(failure.one_line().contains("redirects more than"), "{}", failure.one_line());
    server.redirect_to(&server.url("login?next="));
    let failure = remote_head(&remote(&server.url("redirect/x"))).expect_err("a page");
    assert_eq!(failure.class(), Class::Stalled, "{}", failure.one_line());
    server.redirect_to("http://git.example/");
    let failure = remote_head(&remote(&server.url("redirect/x"))).expect_err("unencrypted elsewhere");
    assert!(failure.one_line().contains("not encrypted"), "{}", failure.one_line());
}

/// A running `git daemon`; it ends when dropped.
pub(super) struct Daemon {
    child: Child,
    pub(super) url: String,
}

impl Daemon {
    pub(super) fn start(fixture: &GitFixture) -> Self {
        Self::start_with(fixture, &["--enable=receive-pack"])
    }

    pub(super) fn start_with(fixture: &GitFixture, more: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        let program = PathBuf::from(fixture.git(&["--exec-path"])).join("git-daemon");
        let mut command = Command::new(program);
        command.envs(fixture.environment()).args(["--listen=127.0.0.1", "--export-all", "--reuseaddr"]).args(more);
        command.arg(format!("--port={port}")).arg(format!("--base-path={}", fixture.root().display()));
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("git daemon");
        wait_until(|| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { child, url: format!("git://127.0.0.1:{port}") }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub(super) fn wait_until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < deadline, "the condition did not come true");
        std::thread::yield_now();
    }
}

#[test]
fn the_git_protocol_is_looked_at_and_fetched() {
    let fixture = GitFixture::new();
    let daemon = Daemon::start(&fixture);
    look_and_fetch(&fixture, &remote(&format!("{}/origin.git", daemon.url)));
    let failure = remote_head(&remote(&format!("{}/missing.git", daemon.url))).expect_err("missing");
    assert_eq!(failure.class(), Class::Stalled);
    assert!(failure.one_line().contains("not exported"), "{}", failure.one_line());
}

/// A program that takes `ssh`'s arguments, writes them down, and runs the command here.
fn fake_ssh(fixture: &GitFixture, body: &str) -> PathBuf {
    let path = fixture.path("ssh");
    let log = fixture.path("ssh.log");
    let environment: String =
        fixture.environment().iter().map(|(name, value)| format!("export {name}='{value}'\n")).collect();
    let script =
        format!("#!/bin/sh\n{environment}printf '%s\\n' \"$@\" >>'{}'\nfor last; do :; done\n{body}\n", log.display());
    fixture.write_program(&path, &script);
    path
}

pub(super) fn over_ssh(fixture: &GitFixture, body: &str) -> Remote {
    let url = format!("ssh://git@git.example:2222{}", fixture.bare().display());
    Remote { ssh_program: fake_ssh(fixture, body), ..remote(&url) }
}

#[test]
fn ssh_is_looked_at_and_fetched() {
    let fixture = GitFixture::new();
    look_and_fetch(&fixture, &over_ssh(&fixture, "exec sh -c \"$last\""));
    let log = std::fs::read_to_string(fixture.path("ssh.log")).expect("a log");
    for argument in ["StrictHostKeyChecking=yes", "BatchMode=yes", "-p", "2222", "-l", "git", "git.example"] {
        assert!(log.lines().any(|line| line == argument), "{argument}");
    }
}

#[test]
fn an_ssh_server_that_drops_the_version_works() {
    let fixture = GitFixture::new();
    look_and_fetch(&fixture, &over_ssh(&fixture, "unset GIT_PROTOCOL\nexec sh -c \"$last\""));
}

#[test]
fn what_ssh_complains_about_is_told() {
    let fixture = GitFixture::new();
    for (body, class, words) in [
        ("echo 'Host key verification failed.' >&2; exit 255", Class::Stalled, "host key"),
        ("echo 'git@h: Permission denied (publickey).' >&2; exit 255", Class::Stalled, "refuses this SSH key"),
        (
            "echo 'ssh: connect to host h port 22: Connection refused' >&2; exit 255",
            Class::Transient,
            "Connection refused",
        ),
        ("exec sh -c \"git-upload-pack /missing.git\"", Class::Stalled, "does not exist"),
        ("echo Welcome", Class::Stalled, "not answer as a Git server"),
    ] {
        let remote = over_ssh(&fixture, body);
        let commit = CommitId::new("1".repeat(40));
        let look = remote_head(&remote).expect_err(body);
        assert_eq!(look.class(), class, "{body}: {}", look.one_line());
        assert!(look.one_line().contains(words), "{body}: {}", look.one_line());
        if !body.contains("Welcome") {
            let fetch = mirror(&fixture).fetch(&remote, &commit).expect_err(body);
            assert!(fetch.one_line().contains(words), "{body}: {}", fetch.one_line());
        }
    }
}

#[test]
fn an_ssh_program_that_hangs_is_ended_with_its_children() {
    let fixture = GitFixture::new();
    let pid = fixture.path("pid");
    let mut remote = over_ssh(&fixture, &format!("sleep 1000 & echo $! >'{}'; wait", pid.display()));
    remote.time.list = Duration::from_secs(1);
    let failure = remote_head(&remote).expect_err("a hang");
    assert_eq!(failure.class(), Class::Transient, "{}", failure.one_line());
    let pid = std::fs::read_to_string(pid).expect("a pid");
    let state = PathBuf::from(format!("/proc/{}/stat", pid.trim()));
    wait_until(|| std::fs::read_to_string(&state).map_or(true, |stat| stat.contains(") Z ")));
}

#[test]
fn a_missing_ssh_program_is_named() {
    let fixture = GitFixture::new();
    let missing = Remote { ssh_program: fixture.path("none"), ..remote("ssh://git.example/x") };
    let failure = remote_head(&missing).expect_err("no program");
    assert_eq!(failure.class(), Class::Stalled);
    assert!(failure.one_line().contains("OpenSSH"), "{}", failure.one_line());
}

#[test]
fn an_empty_repository_and_a_missing_branch_differ() {
    let fixture = GitFixture::new();
    let server = GitHttp::start(fixture.root());
    let daemon = Daemon::start(&fixture);
    let urls = || {
        let file = format!("file://{}", fixture.bare().display());
        [server.url("origin.git"), server.url("v0/origin.git"), format!("{}/origin.git", daemon.url), file]
    };
    for url in urls() {
        assert_eq!(remote_head(&remote(&url)).expect("a look"), None, "{url}");
        let failure = without_branch(&remote(&url), false);
        assert_eq!(failure.class(), Class::Waiting, "{url}: {}", failure.one_line());
    }
    fixture.push_files(&[("a", "1")]);
    for url in urls() {
        let other = Remote { branch: "other".to_owned(), ..remote(&url) };
        assert_eq!(remote_head(&other).expect("a look"), None, "{url}");
        assert_eq!(without_branch(&other, false).class(), Class::Stalled, "{url}");
    }
}

#[test]
fn a_branch_that_git_would_not_allow_is_refused() {
    for branch in ["", "a b", "a..b", "a\nref-prefix refs/", "-/../x", "a.lock"] {
        let remote = Remote { branch: branch.to_owned(), ..remote("https://git.example/x") };
        assert_eq!(remote_head(&remote).expect_err(branch).class(), Class::Stalled);
    }
}

#[test]
fn a_server_that_is_shallow_itself_is_told_of() {
    let fixture = GitFixture::new();
    for round in 0..3 {
        fixture.push_files(&[("a", &round.to_string())]);
    }
    let bare = format!("file://{}", fixture.bare().display());
    fixture.git_in(fixture.root(), &["clone", "--quiet", "--bare", "--depth=1", &bare, "shallow.git"]);
    let (server, daemon) = (GitHttp::start(fixture.root()), Daemon::start(&fixture));
    let urls = [server.url("shallow.git"), server.url("v0/shallow.git"), format!("{}/shallow.git", daemon.url)];
    for url in urls {
        let head = remote_head(&remote(&url)).expect("a look").expect("a branch");
        let failure = mirror(&fixture).fetch(&remote(&url), &head).expect_err("shallow");
        assert_eq!(failure.class(), Class::Stalled, "{url}: {}", failure.one_line());
        assert!(failure.one_line().contains("is a shallow clone"), "{url}: {}", failure.one_line());
        assert!(failure.one_line().contains("--unshallow"), "{url}: {}", failure.one_line());
    }
}

#[test]
fn the_main_branch_of_an_empty_repository_is_known_where_the_server_tells() {
    let fixture = GitFixture::new();
    fixture.git_in(&fixture.bare(), &["symbolic-ref", "HEAD", "refs/heads/trunk"]);
    let (server, daemon) = (GitHttp::start(fixture.root()), Daemon::start(&fixture));
    for url in [server.url("origin.git"), format!("{}/origin.git", daemon.url)] {
        assert_eq!(named_by_head(&remote(&url)).expect("a look").as_deref(), Some("trunk"), "{url}");
    }
    let old = remote(&server.url("v0/origin.git"));
    assert_eq!(named_by_head(&old).expect("a look"), None);
    let failure = default_branch(&old).expect_err("nobody knows");
    assert_eq!(failure.class(), Class::Waiting, "{}", failure.one_line());
    assert!(failure.one_line().contains("has no commits yet"), "{}", failure.one_line());
}

#[test]
fn sha256_repositories_are_refused() {
    let fixture = GitFixture::new();
    fixture.git_in(fixture.root(), &["init", "--quiet", "--bare", "--object-format=sha256", "long.git"]);
    let server = GitHttp::start(fixture.root());
    let local = fixture.path("long.git").display().to_string();
    for url in [server.url("long.git"), local] {
        let failure = remote_head(&remote(&url)).expect_err("sha256");
        assert_eq!(failure.class(), Class::Stalled);
        assert!(failure.one_line().contains("SHA-256"), "{}", failure.one_line());
    }
}
