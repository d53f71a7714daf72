//! Statuses that our writer posts, read back from a real Gitea.

use std::sync::Arc;

use launchway::clock::SystemClock;
use launchway::forge::address::RepositoryAddress;
use launchway::forge::{HostSettings, gitea};
use launchway::forge::{Refusal, StatusWriter};
use launchway::model::commit_status::{CommitStatus, StatusState};
use launchway::model::ids::CommitId;
use launchway::secret::SecretSource;
use tempfile::TempDir;

use crate::receiver::Receiver;
use crate::repository::{Repository, ShownStatus};

/// A writer and the file with its token.
struct Writer {
    writer: Arc<dyn StatusWriter>,
    folder: TempDir,
}

impl Writer {
    async fn new(repository: &Repository, token: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = HostSettings {
            repository: RepositoryAddress::new(&repository.http_url(), None).unwrap(),
            credential: Arc::new(SecretSource::File(folder.path().join("token"))),
            app: None,
            ca_file: None,
            insecure: false,
            public_url: Some("https://deploy.example".to_owned()),
            branch: None,
        };
        let writer = gitea::writer(settings, Arc::new(SystemClock)).await.unwrap();
        let writer = Self { writer, folder };
        writer.set_token(token);
        writer
    }

    fn set_token(&self, token: &str) {
        std::fs::write(self.folder.path().join("token"), token).unwrap();
    }

    async fn write(&self, statuses: &[CommitStatus]) -> Result<(), Refusal> {
        self.writer.write(statuses).await
    }
}

fn status(commit: &str, context: &str, state: StatusState, description: &str) -> CommitStatus {
    CommitStatus {
        path: Some("/runs/7".to_owned()),
        ..CommitStatus::new(CommitId::from(commit), context, state, description)
    }
}

fn shown(context: &str, state: &str, description: &str) -> ShownStatus {
    ShownStatus {
        context: context.to_owned(),
        state: state.to_owned(),
        description: description.to_owned(),
        target_url: "https://deploy.example/runs/7".to_owned(),
    }
}

#[tokio::test]
#[ignore = "starts a Gitea, which takes minutes to build"]
async fn statuses_are_read_back_as_they_were_meant() {
    let repository = Repository::create("statuses").await;
    let commit = repository.first_push().await.head();
    let writer = Writer::new(&repository, repository.server.admin_token()).await;
    let statuses = [
        status(&commit, "a", StatusState::Pending, "queued"),
        status(&commit, "b", StatusState::Running, "2 of 3 pods are ready"),
        status(&commit, "c", StatusState::Success, "3 services in 4 s 🚢"),
        status(&commit, "d", StatusState::Failure, "exit code 3\nno such table: <b>orders</b>"),
        status(&commit, "e", StatusState::Error, ""),
        status(&commit, "f", StatusState::Cancelled, "by a newer revision"),
        status(&commit, "g", StatusState::Skipped, "nothing to deploy"),
    ];
    writer.write(&statuses).await.unwrap();
    let expected = [
        shown("a", "pending", "queued"),
        shown("b", "pending", "2 of 3 pods are ready"),
        shown("c", "success", "3 services in 4 s 🚢"),
        shown("d", "failure", "exit code 3 no such table: <b>orders</b>"),
        shown("e", "error", ""),
        shown("f", "failure", "cancelled: by a newer revision"),
        shown("g", "skipped", "nothing to deploy"),
    ];
    assert_eq!(repository.statuses(&commit).await, expected);
}

#[tokio::test]
#[ignore = "starts a Gitea, which takes minutes to build"]
async fn writing_again_posts_only_what_changed() {
    let repository = Repository::create("statuses-again").await;
    let commit = repository.first_push().await.head();
    let writer = Writer::new(&repository, repository.server.admin_token()).await;
    // More than Gitea shows on two pages.
    let mut statuses: Vec<CommitStatus> = (0..60)
        .map(|number| status(&commit, &format!("launchway/dev/s{number:02}"), StatusState::Pending, "queued"))
        .collect();
    for _ in 0..2 {
        writer.write(&statuses).await.unwrap();
        assert_eq!(repository.posted(&commit).await, 60);
    }
    statuses[59].state = StatusState::Success;
    writer.write(&statuses).await.unwrap();
    assert_eq!(repository.posted(&commit).await, 61);
    assert_eq!(repository.statuses(&commit).await[59].state, "success");
}

#[tokio::test]
#[ignore = "starts a Gitea, which takes minutes to build"]
async fn a_token_without_rights_is_named_as_such_until_it_is_replaced() {
    let repository = Repository::create("statuses-rights").await;
    let private = Repository::create_private("statuses-private").await;
    let commit = repository.first_push().await.head();
    let reader = repository.server.user_token("reader", &["read:repository"]).await;
    let stranger = repository.server.user_token("stranger", &["write:repository"]).await;
    let nobody = "0123456789012345678901234567890123456789".to_owned();
    let cases = [
        (&repository, &nobody, "does not accept the token"),
        (&repository, &reader, "needs the scope write:repository"),
        (&repository, &stranger, "allowed to write to the repository"),
        (&private, &stranger, "does not know the repository"),
    ];
    let statuses = [status(&commit, "launchway/dev", StatusState::Success, "")];
    for (repository, token, expected) in cases {
        let writer = Writer::new(repository, token).await;
        let Err(Refusal::All(failure)) = writer.write(&statuses).await else { panic!("{expected}") };
        let text = failure.one_line();
        assert!(text.contains(expected) && !text.contains(token.as_str()), "{text}");
    }
    let writer = Writer::new(&repository, &nobody).await;
    writer.write(&statuses).await.unwrap_err();
    writer.set_token(repository.server.admin_token());
    writer.write(&statuses).await.unwrap();
    assert_eq!(repository.statuses(&commit).await.len(), 1);
}

#[tokio::test]
#[ignore = "starts a Gitea, which takes minutes to build"]
async fn an_unknown_commit_is_given_up_and_holds_up_no_other() {
    let repository = Repository::create("statuses-unknown").await;
    let commit = repository.first_push().await.head();
    let writer = Writer::new(&repository, repository.server.admin_token()).await;
    let unknown = "1111111111111111111111111111111111111111";
    let statuses = [unknown, &commit].map(|commit| status(commit, "launchway/dev", StatusState::Success, "done"));
    let Err(Refusal::Commit(failure)) = writer.write(&statuses).await else { panic!("it is about one commit") };
    assert!(failure.one_line().contains("does not have the commit 1111111"), "{failure}");
    assert_eq!(repository.statuses(&commit).await, [shown("launchway/dev", "success", "done")]);
}

#[tokio::test]
#[ignore = "starts a Gitea, which takes minutes to build"]
async fn our_own_statuses_cause_no_sync() {
    let repository = Repository::create("statuses-hook").await;
    let mut receiver = Receiver::start().await;
    let commit = receiver.watch(&repository).await.0.head();
    let writer = Writer::new(&repository, repository.server.admin_token()).await;
    writer.write(&[status(&commit, "launchway/dev", StatusState::Success, "done")]).await.unwrap();
    let answered = receiver.next().await;
    assert_eq!((&answered.body["event"], &answered.body["result"]), (&"status".into(), &"ignored".into()));
    assert_eq!(receiver.looks(), 1);
}
