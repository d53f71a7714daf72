//! `launchway status [REV]`.

use std::time::{Duration, Instant};

use clap::Args;

use super::arguments::Global;
use super::client::Client;
use super::follow;
use super::get::short;
use super::here;
use super::output::{Complaint, Exit, Outcome, Output, Table, heading, progress, remark};
use super::target;
use crate::control::commands::Done;
use crate::error::Failure;
use crate::server::api::act::SyncRequest;
use crate::server::view::{RepositoryView, RevisionView};

/// How often `--wait` asks.
const PERIOD: Duration = Duration::from_millis(300);
/// How long the sync may take that finds the newest head, where nobody waits for an end.
const SYNC: Duration = Duration::from_secs(3);

/// Show what is written on a commit
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  launchway status\n  launchway status 1a2b3c4\n  git push && launchway status --wait --timeout 300\n\nExits with 1 if anything on the commit failed, or was cancelled by a person or a newer push;\nwith --wait also if it waits for a person, but for a stage that is started by hand."
)]
pub(super) struct Arguments {
    /// The commit: its first digits, or any name that Git has for it here [default: HEAD of the work tree here if it was
    /// pushed, else the remote's head]
    #[arg(value_name = "REV")]
    revision: Option<String>,
    /// Wait until nothing more will happen
    #[arg(long)]
    wait: bool,
    /// With --wait: give up after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    timeout: u64,
}

/// How long all that is waited for may take together.
struct Patience {
    since: Instant,
    total: Duration,
}

impl Patience {
    fn left(&self) -> Duration {
        self.total.saturating_sub(self.since.elapsed())
    }
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let total = if arguments.wait { Duration::from_secs(arguments.timeout) } else { SYNC };
    let patience = Patience { since: Instant::now(), total };
    let client = Client::to_read(global).await?;
    let repository = target::repository(&client, global.repository.as_deref()).await?;
    let commit = match &arguments.revision {
        Some(revision) => here::commit(revision),
        None => newest(&client, &repository, arguments.wait, &patience).await?,
    };
    let path = format!("revisions/{}/{commit}", repository.name);
    let revision: RevisionView = match arguments.wait {
        false => client.get(&path, &[]).await?,
        true => settled(&client, &path, &patience, &repository, output).await?,
    };
    // After a while, what was proposed and what became of it may be news.
    let repository = match arguments.revision.is_some() && !arguments.wait {
        true => repository,
        false => client.get(&format!("repositories/{}", repository.name), &[]).await?,
    };
    output.show(&revision, |revision| human(revision, &repository))?;
    Ok(match arguments.wait {
        true => follow::exit(&revision),
        false if revision.has_failed() => Exit::Failed,
        false => Exit::Good,
    })
}

/// The commit that somebody means who names none: the head of the work tree here, if it was pushed; else the head that
/// the remote has now. The one that was last synced may be the one before.
async fn newest(client: &Client, repository: &RepositoryView, wait: bool, patience: &Patience) -> Outcome<String> {
    let here = here::repository();
    let head = here.as_ref().and_then(|here| here.resolve("HEAD").ok()).map(|head| head.to_string());
    if let Some(head) = pushed(client, repository, head.as_deref()).await? {
        return Ok(head);
    }
    let synced = sync(client, repository, patience.left()).await;
    if let Some(head) = pushed(client, repository, head.as_deref()).await? {
        return Ok(head);
    }
    let own = here.is_some_and(|here| here::belongs_to(&here, repository));
    match (synced, head.filter(|_| own)) {
        (Err(complaint), Some(head)) if wait => {
            remark(format!("{} is not known yet, and may still come: {:#}", short(&head), complaint.failure));
            return Ok(head);
        }
        // Whoever waits goes by the exit code: another commit's would mislead.
        (Err(complaint), None) if wait => return Err(complaint),
        (Ok(()), Some(head)) if wait => return Err(unpushed(&head, repository)),
        (Err(complaint), _) => remark(format!("this is the head that was last synced: {:#}", complaint.failure)),
        (Ok(()), Some(head)) => {
            remark(format!("{} is not known as a head of `{}`: this is its head", short(&head), repository.branch));
        }
        (Ok(()), None) => {}
    }
    let repository: RepositoryView = client.get(&format!("repositories/{}", repository.name), &[]).await?;
    let unseen = || Complaint::failed(Failure::transient(format!("`{}` was not synced yet", repository.name)));
    repository.seen.clone().ok_or_else(unseen)
}

fn unpushed(head: &str, repository: &RepositoryView) -> Complaint {
    let message = format!("{} is not known as a head of `{}`", short(head), repository.branch);
    Complaint::failed(Failure::stalled(message).hint("push it there, or name a commit: `launchway status REV --wait`"))
}

/// The commit, if the repository had it as its head.
async fn pushed(client: &Client, repository: &RepositoryView, commit: Option<&str>) -> Outcome<Option<String>> {
    let Some(commit) = commit else { return Ok(None) };
    let found: Option<RevisionView> = client.find(&format!("revisions/{}/{commit}", repository.name)).await?;
    Ok(found.map(|revision| revision.commit))
}

/// Has the daemon read the remote's head.
async fn sync(client: &Client, repository: &RepositoryView, patience: Duration) -> Outcome<()> {
    if matches!(client, Client::Store { .. }) {
        return Err(Failure::transient("no daemon runs").into());
    }
    let request = SyncRequest { repository: Some(repository.name.clone()), only_new: true, ..SyncRequest::default() };
    let synced = tokio::time::timeout(patience, client.post::<Done>("sync", &request)).await;
    let late = || Complaint::from(Failure::waiting(format!("it is not synced after {} s", patience.as_secs())));
    synced.map_err(|_elapsed| late())?.map(drop)
}

/// The revision once nothing more will happen to it. It may be so new that it was not synced yet.
async fn settled(
    client: &Client,
    path: &str,
    patience: &Patience,
    repository: &RepositoryView,
    output: &mut Output,
) -> Outcome<RevisionView> {
    let timeout = patience.total.as_secs();
    let mut told = String::new();
    loop {
        let found: Option<RevisionView> = client.find(path).await?;
        match found {
            Some(revision) if revision.is_settled() => return Ok(revision),
            _ if matches!(client, Client::Store { .. }) => {
                let failure = Failure::transient("no daemon runs that would bring it to its end");
                return Err(failure.hint("start it with `launchway up` or `launchway serve`").into());
            }
            found if patience.left().is_zero() => {
                let revision = found.ok_or_else(|| {
                    let failure = Failure::waiting(format!("this commit was not synced within {timeout} s"));
                    Complaint::failed(failure.hint("is it pushed to the branch that is watched?"))
                })?;
                output.show(&revision, |revision| human(revision, repository))?;
                return Err(Complaint::failed(Failure::waiting(format!("not at its end after {timeout} s"))));
            }
            found => {
                let now = under_way(found.as_ref(), repository);
                if told != now {
                    progress(&now);
                    told = now;
                }
                tokio::time::sleep(PERIOD).await;
            }
        }
    }
}

/// What is waited for.
fn under_way(revision: Option<&RevisionView>, repository: &RepositoryView) -> String {
    let Some(revision) = revision else { return format!("waiting until {} is synced", repository.name) };
    let open = revision.statuses.iter().find(|status| status.is_open());
    let told = open.map(|status| format!(": {} {} {}", status.state, status.place(), status.description));
    format!("waiting for {}{}", short(&revision.commit), told.unwrap_or_default())
}

/// What an upgrade has left as it was.
fn older(pods: usize) -> String {
    let run = if pods == 1 { "1 pod runs" } else { &format!("{pods} pods run") };
    format!("{run} on under another version of launchway, each until it starts anew.\n")
}

fn human(revision: &RevisionView, repository: &RepositoryView) -> String {
    let mut text = format!("{} {}\n", heading(&short(&revision.commit)), revision.subject);
    if let Some(problem) = &repository.status_problem {
        text.push_str(&format!("  this cannot be written on the commit: {problem}\n"));
    }
    for problem in revision.problems.iter().chain(&revision.warnings) {
        text.push_str(&format!("  {problem}\n"));
    }
    let mut table = Table::new(["STATE", "CONTEXT", "DESCRIPTION"]);
    for status in &revision.statuses {
        table.row([status.state.clone(), status.place(), status.description.clone()]);
    }
    text.push_str(&table.render("Nothing is written on it."));
    text.extend(follow::waits(revision).into_iter().map(|line| line + "\n"));
    let proposals = repository.proposals.iter().filter(|proposal| !proposal.is_over());
    text.extend(proposals.map(|proposal| format!("{}\n", proposal.message)));
    text.extend(repository.pods_of_another_version.map(older));
    text
}
