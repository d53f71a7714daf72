//! `launchway sync`.

use std::time::Duration;

use clap::Args;

use super::arguments::Global;
use super::client::Client;
use super::follow::{Patience, follow};
use super::here;
use super::output::{Complaint, Outcome, Output};
use super::target;
use crate::control::commands::Done;
use crate::server::api::act::{SyncRequest, commit_word};

/// How long a followed revision may take to be synced.
const FIRST_SYNC: Duration = Duration::from_secs(10);

/// Sync a repository now
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  launchway sync shop\n  launchway sync shop --up\n  launchway sync shop --accept-rewrite 1a2b3c4\n  launchway sync shop --follow HEAD"
)]
pub(super) struct Arguments {
    /// The repository [default: the only one]
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Let this revision delete more than the rule allows
    #[arg(long, value_name = "REV")]
    allow_prune: Option<String>,
    /// Bring back what `launchway down` stopped
    #[arg(long)]
    up: bool,
    /// Let this revision replace history
    #[arg(long, value_name = "REV")]
    accept_rewrite: Option<String>,
    /// Show what becomes of this revision until its end
    #[arg(long, value_name = "REV")]
    follow: Option<String>,
    /// With --follow: for at most so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let named = |revision: &Option<String>| revision.as_deref().map(named).transpose();
    let (allow_prune, accept_rewrite) = (named(&arguments.allow_prune)?, named(&arguments.accept_rewrite)?);
    let commit = named(&arguments.follow)?;
    let client = Client::to_act(global).await?;
    let name = arguments.name.as_deref().or(global.repository.as_deref());
    let repository = target::repository(&client, name).await?;
    // What is seen before that is done is what this person changes.
    let comes_first = arguments.up || allow_prune.is_some() || accept_rewrite.is_some();
    let request = SyncRequest {
        repository: Some(repository.name.clone()),
        allow_prune,
        accept_rewrite,
        up: arguments.up,
        only_new: false,
    };
    let synced = client.post::<Done>("sync", &request);
    let Some(commit) = commit else {
        return output.done(&synced.await?);
    };
    let patience = Patience { first: FIRST_SYNC, whole: Duration::from_secs(arguments.timeout) };
    let followed = follow(&client, &repository.name, &commit, patience, output);
    tokio::pin!(synced, followed);
    if comes_first {
        synced.await?;
        return followed.await;
    }
    // Whoever pushes waits for what becomes of it, and not for a sync that takes long.
    tokio::select! {
        biased;
        done = &mut synced => done.map(drop)?,
        ended = &mut followed => return ended,
    }
    followed.await
}

/// A commit, which Git here may know by a name.
fn named(revision: &str) -> Outcome<String> {
    let commit = commit_word(&here::commit(revision)).map_err(Complaint::usage)?;
    Ok(commit.to_string())
}
