//! Writing commit statuses, deployments, pull requests and webhooks over real HTTP to doubles of hosts, which keep what they are sent and
//! enforce their limits.

#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test, both are how it fails")]

mod checks;
mod deployments;
mod github;
#[path = "../support/github_app.rs"]
mod github_app;
mod gitlab;
mod host;
mod others;
mod pull_requests;
mod soak;
mod webhooks;

use std::sync::Arc;

use launchway::clock::ManualClock;
use launchway::forge::address::RepositoryAddress;
use launchway::forge::{HostSettings, StatusWriter};
use launchway::model::commit_status::{CommitStatus, StatusState};
use launchway::model::ids::CommitId;
use launchway::model::time::Timestamp;
use launchway::secret::SecretSource;
use tempfile::TempDir;

pub(crate) const COMMIT: &str = "1111111111111111111111111111111111111111";
pub(crate) const OTHER: &str = "2222222222222222222222222222222222222222";
pub(crate) const TOKEN: &str = "d8a1c2e3f4051627384950617283940516273849";

/// A writer, its clock, and the folder with its token.
pub(crate) struct Writer {
    pub(crate) writer: Arc<dyn StatusWriter>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) folder: TempDir,
}

/// What opens a host.
pub(crate) fn settings(repository: RepositoryAddress, folder: &TempDir) -> HostSettings {
    std::fs::write(folder.path().join("token"), TOKEN).unwrap();
    HostSettings {
        repository,
        credential: Arc::new(SecretSource::File(folder.path().join("token"))),
        app: None,
        ca_file: None,
        insecure: false,
        public_url: Some("https://deploy.example".to_owned()),
        branch: Some("main".to_owned()),
    }
}

pub(crate) fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp(1_700_000_000_000)))
}

pub(crate) fn status(commit: &str, stage: &str, state: StatusState, description: &str) -> CommitStatus {
    CommitStatus {
        path: Some("/runs/7".to_owned()),
        ..CommitStatus::new(CommitId::from(commit), format!("launchway/{stage}"), state, description)
    }
}
