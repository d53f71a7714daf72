//! `launchway status [REV]`.

use std::path::Path;
use std::time::{Duration, Instant};

use clap::Args;

use super::arguments::Global;
use super::client::Client;
use super::get::short;
use super::output::{Complaint, Exit, Outcome, Output, Table, heading};
use super::target;
use crate::error::Failure;
use crate::server::view::{RepositoryView, RevisionView};
use crate::source::{Limits, Repository};

/// How often `--wait` asks.
const PERIOD: Duration = Duration::from_millis(300);

/// Show what is written on a commit
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  launchway status\n  launchway status 1a2b3c4\n  launchway status --wait --timeout 300\n\nExits with 1 if anything on the commit failed."
)]
pub(super) struct Arguments {
    /// The commit: its first digits, or any name that Git has for it here [default: the head that was last synced]
    #[arg(value_name = "REV")]
    revision: Option<String>,
    /// Wait until nothing more will happen
    #[arg(long)]
    wait: bool,
    /// With --wait: give up after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    timeout: u64,
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let client = Client::to_read(global).await?;
    let repository = target::repository(&client, global.repository.as_deref()).await?;
    let named = arguments.revision.as_deref().map(resolved);
    let Some(commit) = named.or_else(|| repository.seen.clone()) else {
        let failure = Failure::transient(format!("`{}` was not synced yet", repository.name));
        return Err(Complaint::failed(failure));
    };
    let path = format!("revisions/{}/{commit}", repository.name);
    let revision: RevisionView = match arguments.wait {
        false => client.get(&path, &[]).await?,
        true => settled(&client, &path, arguments.timeout, &repository, output).await?,
    };
    output.show(&revision, |revision| human(revision, &repository))?;
    Ok(if revision.has_failed() { Exit::Failed } else { Exit::Good })
}

/// The revision once nothing more will happen to it. It may be so new that it was not synced yet.
async fn settled(
    client: &Client,
    path: &str,
    timeout: u64,
    repository: &RepositoryView,
    output: &mut Output,
) -> Outcome<RevisionView> {
    let started = Instant::now();
    loop {
        let found: Option<RevisionView> = client.find(path).await?;
        match found {
            Some(revision) if revision.is_settled() => return Ok(revision),
            found if started.elapsed() > Duration::from_secs(timeout) => {
                let revision = found.ok_or_else(|| {
                    let failure = Failure::waiting(format!("this commit was not synced within {timeout} s"));
                    Complaint::failed(failure.hint("is it pushed to the branch that is watched?"))
                })?;
                output.show(&revision, |revision| human(revision, repository))?;
                return Err(Complaint::failed(Failure::waiting(format!("not at its end after {timeout} s"))));
            }
            _ => tokio::time::sleep(PERIOD).await,
        }
    }
}

/// What Git here calls `revision`, such as `HEAD~1`; as it is, where Git has no such name.
fn resolved(revision: &str) -> String {
    let here = Repository::discover(Path::new(".")).and_then(|path| Repository::open_local(&path, Limits::default()));
    let commit = here.and_then(|repository| repository.resolve(revision));
    commit.map_or_else(|_no_such_name| revision.to_owned(), |commit| commit.to_string())
}

fn human(revision: &RevisionView, repository: &RepositoryView) -> String {
    let mut text = format!("{} {}\n", heading(&short(&revision.commit)), revision.subject);
    if let Some(problem) = &repository.status_problem {
        text.push_str(&format!("  this cannot be written on the commit: {problem}\n"));
    }
    for problem in &revision.problems {
        text.push_str(&format!("  {problem}\n"));
    }
    let mut table = Table::new(["STATE", "CONTEXT", "DESCRIPTION"]);
    for status in &revision.statuses {
        table.row([status.state.clone(), status.context.clone(), status.description.clone()]);
    }
    text + &table.render("Nothing is written on it.")
}
