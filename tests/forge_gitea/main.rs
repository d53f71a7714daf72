//! Writing commit statuses over real HTTP, to a Gitea that fails in every way that a writer has to bear.

#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test, both are how it fails")]

mod fake;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fake::{FakeGitea, Fault};
use launchway::clock::ManualClock;
use launchway::error::Class;
use launchway::forge::address::RepositoryAddress;
use launchway::forge::{HostSettings, gitea};
use launchway::forge::{Refusal, StatusWriter};
use launchway::model::commit_status::{CommitStatus, StatusState};
use launchway::model::ids::CommitId;
use launchway::model::time::Timestamp;
use launchway::secret::SecretSource;
use tempfile::TempDir;

const COMMIT: &str = "1111111111111111111111111111111111111111";
const OTHER: &str = "2222222222222222222222222222222222222222";
const TOKEN: &str = "d8a1c2e3f4051627384950617283940516273849";

struct Fixture {
    gitea: FakeGitea,
    clock: Arc<ManualClock>,
    folder: TempDir,
    writer: Arc<dyn StatusWriter>,
}

impl Fixture {
    async fn start() -> Self {
        let gitea = FakeGitea::start().await;
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::new(Timestamp(1_700_000_000_000)));
        let settings = settings(&format!("http://{}/acme/shop.git", gitea.address), folder.path());
        std::fs::write(folder.path().join("token"), TOKEN).unwrap();
        let writer = gitea::writer(settings, Arc::clone(&clock) as _).await.unwrap();
        Self { gitea, clock, folder, writer }
    }

    fn fail_next(&self, faults: impl IntoIterator<Item = Fault>) {
        self.gitea.world().faults.extend(faults);
    }

    /// The class and the text of the failure to write one status.
    async fn failure(&self) -> (Class, String) {
        let refusal = self.writer.write(&[status(COMMIT, "dev", StatusState::Success)]).await.unwrap_err();
        let text = refusal.failure().one_line();
        assert!(!text.contains(TOKEN), "{text}");
        (refusal.failure().class(), text)
    }
}

fn settings(repository: &str, folder: &Path) -> HostSettings {
    HostSettings {
        repository: RepositoryAddress::new(repository, None).unwrap(),
        credential: Arc::new(SecretSource::File(folder.join("token"))),
        app: None,
        ca_file: None,
        insecure: false,
        public_url: Some("https://deploy.example".to_owned()),
        branch: None,
    }
}

fn status(commit: &str, stage: &str, state: StatusState) -> CommitStatus {
    CommitStatus {
        path: Some("/runs/7".to_owned()),
        ..CommitStatus::new(CommitId::from(commit), format!("launchway/{stage}"), state, format!("{state} it is"))
    }
}

#[tokio::test]
async fn statuses_are_posted_in_gitea_s_words() {
    let fixture = Fixture::start().await;
    let mut statuses = vec![
        status(COMMIT, "plan", StatusState::Success),
        status(COMMIT, "dev", StatusState::Running),
        status(COMMIT, "production", StatusState::Skipped),
    ];
    statuses[1].path = None;
    fixture.writer.write(&statuses).await.unwrap();
    let expected = [
        "success launchway/plan success it is",
        "pending launchway/dev running it is",
        "skipped launchway/production skipped it is",
    ];
    assert_eq!(fixture.gitea.rows(COMMIT), expected);
    let world = fixture.gitea.world();
    assert_eq!(world.rows[0].1["target_url"], "https://deploy.example/runs/7");
    assert_eq!(world.rows[1].1["target_url"], "");
    assert!(world.tokens.iter().all(|token| *token == format!("token {TOKEN}")));
}

#[tokio::test]
async fn writing_the_same_again_posts_nothing() {
    let fixture = Fixture::start().await;
    let statuses = [status(COMMIT, "plan", StatusState::Pending), status(COMMIT, "plan", StatusState::Success)];
    for _ in 0..3 {
        fixture.writer.write(&statuses).await.unwrap();
        assert_eq!(fixture.gitea.rows(COMMIT), ["success launchway/plan success it is"]);
    }
    fixture.writer.write(&[status(COMMIT, "plan", StatusState::Failure)]).await.unwrap();
    fixture.writer.write(&statuses[1..]).await.unwrap();
    assert_eq!(fixture.gitea.rows(COMMIT).len(), 3, "a new outcome is a new row, also one that was there before");
}

/// Whoever administers Gitea may have it give less of a page than is asked for.
#[tokio::test]
async fn what_is_on_a_later_page_is_not_posted_again() {
    for counts_nothing in [false, true] {
        let fixture = Fixture::start().await;
        {
            let mut world = fixture.gitea.world();
            (world.most, world.counts_nothing) = (Some(10), counts_nothing);
        }
        let stage = |number: usize| status(COMMIT, &format!("dev/s{number}"), StatusState::Success);
        let statuses: Vec<CommitStatus> = (0..25).map(stage).collect();
        for _ in 0..2 {
            fixture.writer.write(&statuses).await.unwrap();
            assert_eq!(fixture.gitea.rows(COMMIT).len(), 25, "{counts_nothing}");
        }
    }
}

#[tokio::test]
async fn after_a_failure_nothing_is_posted_twice() {
    for fault in [Fault::LostAnswer, Fault::Status(502), Fault::Status(429)] {
        let fixture = Fixture::start().await;
        let stages = ["plan", "dev", "production"];
        let statuses = stages.map(|stage| status(COMMIT, stage, StatusState::Success));
        fixture.writer.write(&statuses[..1]).await.unwrap();
        fixture.fail_next([fault]);
        assert!(matches!(fixture.writer.write(&statuses).await, Err(Refusal::Busy(_))));
        fixture.writer.write(&statuses).await.unwrap();
        assert_eq!(fixture.gitea.rows(COMMIT), stages.map(|stage| format!("success launchway/{stage} success it is")));
    }
}

#[tokio::test]
async fn a_host_that_asks_for_a_pause_gets_it() {
    let fixture = Fixture::start().await;
    fixture.fail_next([Fault::Busy(429, "120")]);
    assert_eq!(fixture.failure().await.0, Class::Transient);
    let requests = fixture.gitea.world().tokens.len();
    fixture.clock.advance(Duration::from_secs(119));
    assert_eq!(fixture.failure().await.0, Class::Transient);
    assert_eq!(fixture.gitea.world().tokens.len(), requests, "nothing is asked during the pause");
    fixture.clock.advance(Duration::from_secs(1));
    fixture.writer.write(&[status(COMMIT, "dev", StatusState::Success)]).await.unwrap();
}

#[tokio::test]
async fn missing_rights_are_said_once_and_for_a_person() {
    let cases = [(401, "write:repository"), (403, "write:repository"), (404, "the token's user"), (422, "422")];
    for (code, expected) in cases {
        let fixture = Fixture::start().await;
        fixture.fail_next([Fault::Status(code)]);
        let (class, text) = fixture.failure().await;
        assert_eq!(class, Class::Stalled, "{code}");
        assert!(text.contains(expected), "{code}: {text}");
    }
}

#[tokio::test]
async fn a_commit_that_is_gone_does_not_keep_others_waiting() {
    let fixture = Fixture::start().await;
    fixture.gitea.world().gone.push(COMMIT.to_owned());
    let statuses = [status(COMMIT, "dev", StatusState::Success), status(OTHER, "dev", StatusState::Success)];
    let Err(Refusal::Commit(failure)) = fixture.writer.write(&statuses).await else { panic!("it is about one commit") };
    assert!(failure.one_line().contains("does not have the commit 1111111"), "{failure}");
    assert_eq!(fixture.gitea.rows(OTHER), ["success launchway/dev success it is"]);
}

#[tokio::test]
async fn a_redirect_does_not_take_the_token_elsewhere() {
    let fixture = Fixture::start().await;
    let elsewhere = FakeGitea::start().await;
    fixture.fail_next([Fault::Redirect(format!("http://{}/api/v1/repos/acme/shop/statuses/x", elsewhere.address))]);
    assert_eq!(fixture.failure().await.0, Class::Stalled);
    assert!(elsewhere.world().tokens.is_empty());
}

#[tokio::test]
async fn a_renamed_repository_keeps_its_statuses() {
    let mut fixture = Fixture::start().await;
    let before = settings(&format!("http://{}/acme/renamed.git", fixture.gitea.address), fixture.folder.path());
    fixture.writer = gitea::writer(before, Arc::clone(&fixture.clock) as _).await.unwrap();
    for _ in 0..2 {
        fixture.writer.write(&[status(COMMIT, "dev", StatusState::Success)]).await.unwrap();
    }
    assert_eq!(fixture.gitea.rows(COMMIT), ["success launchway/dev success it is"], "read and written where it is now");
    assert!(fixture.gitea.world().tokens.iter().all(|token| *token == format!("token {TOKEN}")));
}

#[tokio::test]
async fn redirects_without_end_need_a_person() {
    let fixture = Fixture::start().await;
    let again = || Fault::Redirect(format!("/api/v1/repos/acme/shop/statuses/{COMMIT}"));
    fixture.fail_next(std::iter::repeat_with(again).take(20));
    let (class, text) = fixture.failure().await;
    assert_eq!(class, Class::Stalled);
    assert!(text.contains("redirects more than 5 times"), "{text}");
}

#[tokio::test]
async fn a_new_token_is_taken_without_a_restart() {
    let fixture = Fixture::start().await;
    fixture.writer.write(&[status(COMMIT, "dev", StatusState::Pending)]).await.unwrap();
    std::fs::write(fixture.folder.path().join("token"), "another\n").unwrap();
    fixture.writer.write(&[status(COMMIT, "dev", StatusState::Success)]).await.unwrap();
    assert_eq!(fixture.gitea.world().tokens.last().unwrap(), "token another");
    std::fs::remove_file(fixture.folder.path().join("token")).unwrap();
    assert_eq!(fixture.failure().await.0, Class::Stalled);
}

#[tokio::test]
async fn a_server_that_is_down_is_asked_again_later() {
    let Fixture { gitea, writer, folder: _folder, .. } = Fixture::start().await;
    let address = gitea.address;
    drop(gitea);
    // The listener closes when its task sees the shutdown.
    while tokio::net::TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    let written = writer.write(&[status(COMMIT, "dev", StatusState::Success)]).await;
    let Err(Refusal::Busy(failure)) = written else { panic!("{written:?}") };
    assert!(failure.one_line().starts_with(&format!("cannot reach `http://{address}/`")), "{failure}");
}

#[tokio::test]
async fn a_token_does_not_cross_the_network_in_the_clear() {
    let folder = tempfile::tempdir().unwrap();
    let clock = || Arc::new(ManualClock::default()) as _;
    let cases = [
        ("http://git.example/acme/shop", false, false),
        ("http://git.example/acme/shop", true, true),
        ("http://127.0.0.2:3000/acme/shop", false, true),
        ("http://[::1]:3000/acme/shop", false, true),
        ("http://localhost/acme/shop", false, true),
        ("http://localhost.evil.example/acme/shop", false, false),
        ("https://git.example/acme/shop", false, true),
    ];
    for (url, insecure, allowed) in cases {
        let settings = HostSettings { insecure, ..settings(url, folder.path()) };
        assert_eq!(gitea::writer(settings, clock()).await.is_ok(), allowed, "{url} {insecure}");
    }
}

#[tokio::test]
async fn certificates_that_cannot_be_read_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.pem");
    let with_ca =
        || HostSettings { ca_file: Some(path.clone()), ..settings("https://git.example/acme/shop", folder.path()) };
    let clock = || Arc::new(ManualClock::default()) as _;
    let missing = gitea::writer(with_ca(), clock()).await.err().unwrap();
    std::fs::write(&path, "-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n").unwrap();
    let broken = gitea::writer(with_ca(), clock()).await.err().unwrap();
    std::fs::write(&path, "").unwrap();
    let empty = gitea::writer(with_ca(), clock()).await.err().unwrap();
    for failure in [missing, broken, empty] {
        assert!(failure.one_line().contains("ca.pem"), "{failure}");
    }
}
