//! `launchway sync`.

use std::time::Duration;

use clap::Args;

use super::arguments::Global;
use super::client::Client;
use super::follow::{Patience, follow};
use super::get::short;
use super::here;
use super::output::{Complaint, Outcome, Output};
use super::target;
use crate::control::commands::Done;
use crate::error::Failure;
use crate::server::api::act::{SyncRequest, commit_word};
use crate::server::view::RevisionView;

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
    let client = Client::to_sync(global).await?;
    let repository = repository(&client, arguments.name.as_deref().or(global.repository.as_deref())).await?;
    // What is seen before that is done is what this person changes.
    let comes_first = arguments.up || allow_prune.is_some() || accept_rewrite.is_some();
    let request = SyncRequest {
        repository: Some(repository.clone()),
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
    let followed = follow(&client, &repository, &commit, patience, output);
    tokio::pin!(synced, followed);
    if comes_first {
        synced.await?;
    } else {
        // Whoever pushes waits for what becomes of it, and not for a sync that takes long.
        tokio::select! {
            biased;
            done = &mut synced => done.map(drop)?,
            ended = &mut followed => return ended,
        }
    }
    let known: Option<RevisionView> = client.find(&format!("revisions/{repository}/{commit}")).await?;
    match known {
        Some(_) => followed.await,
        None => Err(Complaint::failed(unknown(&repository, &commit))),
    }
}

fn unknown(repository: &str, commit: &str) -> Failure {
    Failure::waiting(format!("`{}` is not known as a head of `{repository}`", short(commit))).hint(
        "is it pushed to the branch that is watched? of several that are pushed at once only the last is deployed",
    )
}

/// The name of the repository that is meant; a hook knows it, and is shown no others.
async fn repository(client: &Client, name: Option<&str>) -> Outcome<String> {
    match name.filter(|_| client.is_for_hooks()) {
        Some(name) => Ok(name.to_owned()),
        None => Ok(target::repository(client, name).await?.name),
    }
}

/// A commit, which Git here may know by a name.
fn named(revision: &str) -> Outcome<String> {
    let commit = commit_word(&here::commit(revision)).map_err(Complaint::usage)?;
    Ok(commit.to_string())
}
