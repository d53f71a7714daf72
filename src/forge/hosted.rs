//! Writing commit statuses through the API of a host: what all of them share.
//!
//! A host says in [`StatusApi`] how its statuses look, are read and are written. Reading first makes a repeated call show
//! nothing twice, also when the answer to an earlier one was lost or the daemon died before it came.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::Method;
use reqwest::Url;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::address::RepositoryAddress;
use super::answer::{Meaning, Words, meant, refusal};
use super::api::{Answer, ApiClient, ApiSettings, Manners};
use super::credential::Credential;
use super::paging::{More, Page};
use super::text::one_line;
use super::{Refusal, StatusWriter};
use crate::clock::Clock;
use crate::error::{Context, Result};
use crate::model::commit_status::{CommitStatus, StatusState};
use crate::model::ids::{CommitId, WriterName};
use crate::model::time::Timestamp;

/// Where and how statuses are written.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// The repository.
    pub repository: RepositoryAddress,
    /// Gives tokens that may write statuses.
    pub credential: Arc<dyn Credential>,
    /// The id of the GitHub App that they are given to, if they are: it writes check runs in place of statuses.
    pub app: Option<u64>,
    /// A file with certificates (PEM) to trust beside the system's.
    pub ca_file: Option<PathBuf>,
    /// Whether the token may be sent over `http://` to another machine.
    pub insecure: bool,
    /// The daemon's public address, for links.
    pub public_url: Option<String>,
    /// The branch that is watched, if it is configured.
    pub branch: Option<String>,
}

impl HostSettings {
    /// What opens the host.
    pub(super) fn api(&self) -> ApiSettings {
        ApiSettings {
            base: self.repository.base.clone(),
            credential: self.credential.clone(),
            ca_file: self.ca_file.clone(),
            insecure: self.insecure,
        }
    }
}

/// A part of a host's API, and what asks it.
#[derive(Debug)]
pub(super) struct Hosted<A: ?Sized> {
    pub(super) client: ApiClient,
    pub(super) api: Box<A>,
}

impl<A: ?Sized> Hosted<A> {
    /// Of a repository. `Stalled` if the token would be sent in the clear, or certificates cannot be read.
    pub(super) async fn new(
        settings: &HostSettings,
        manners: Manners,
        api: Box<A>,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>> {
        let client = ApiClient::new(settings.api(), manners, clock).await?;
        Ok(Arc::new(Self { client, api }))
    }
}

/// How long a host is left alone that wants fewer requests and does not say for how long.
const PAUSE: Duration = Duration::from_secs(60);

/// Each status is a request of its own; a call should end within seconds.
const BATCH: usize = 50;

/// A host's API of commit statuses.
#[async_trait]
pub(super) trait StatusApi: Send + Sync + std::fmt::Debug {
    /// A context of a commit, as it is sent and as it is read back.
    type Status: PartialEq + Send + Sync;

    /// What the writer is called.
    fn writer(&self) -> &'static str;

    /// What is said of the host.
    fn words(&self) -> Words;

    /// Whether its statuses show more than a line.
    fn shows_details(&self) -> bool {
        false
    }

    /// What an answer that is not 2xx means, if that is particular to the host. `now` is the time.
    fn meaning(&self, answer: &Answer, now: Timestamp) -> Option<Meaning>;

    /// What becomes of a status here.
    fn rendered(&self, status: &CommitStatus) -> Self::Status;

    /// Learns what has to be known before anything is rendered.
    async fn prepare(&self, _call: Call<'_>, _statuses: &[CommitStatus]) {}

    /// The latest status of each context that is on a commit; what cannot be told is left out, and written again.
    async fn present(&self, call: Call<'_>, commit: &CommitId) -> Result<Vec<Self::Status>, Refusal>;

    /// Writes one, given what is on the commit.
    async fn post(
        &self,
        call: Call<'_>,
        commit: &CommitId,
        status: &Self::Status,
        present: &[Self::Status],
    ) -> Result<(), Refusal>;
}

/// What a call to a host needs.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    client: &'a ApiClient,
}

impl Call<'_> {
    /// The time.
    pub(super) fn now(&self) -> Timestamp {
        self.client.now()
    }

    /// Reads something of a commit; nothing, if the host does not have it: the answer to writing tells why.
    pub(super) async fn get<A: StatusApi, T: DeserializeOwned>(
        self,
        api: &A,
        url: Url,
        commit: &CommitId,
    ) -> Result<Option<T>, Refusal> {
        Ok(self.get_part(api, url, commit).await?.map(|(found, _)| found))
    }

    /// Reads a page of a list. What is beyond those that are read is written again, which shows nothing new.
    pub(super) async fn page<A: StatusApi, T: DeserializeOwned>(
        self,
        api: &A,
        url: Url,
        commit: &CommitId,
    ) -> Result<Option<Page<T>>, Refusal> {
        Ok(self.get_part(api, url, commit).await?.map(|(items, more)| Page::new(items, more)))
    }

    /// The same with what is said of what follows.
    pub(super) async fn get_part<A: StatusApi, T: DeserializeOwned>(
        self,
        api: &A,
        url: Url,
        commit: &CommitId,
    ) -> Result<Option<(T, More)>, Refusal> {
        let answer = self.client.send(Method::GET, url, None).await?;
        if matches!(answer.status.as_u16(), 404 | 422) {
            return Ok(None);
        }
        let Some(answer) = self.success(api, answer, commit)? else { return Ok(None) };
        let foreign = || format!("the answer is not that of {}; is `forge.url` right?", api.words().name);
        let found = serde_json::from_slice(&answer.body).or_stalled(foreign).map_err(Refusal::All)?;
        Ok(Some((found, More::told(&answer.headers))))
    }

    /// Writes something of a commit; the answer, if it is one to what was written.
    pub(super) async fn post<A: StatusApi>(
        self,
        api: &A,
        url: Url,
        body: &(impl Serialize + Sync),
        commit: &CommitId,
    ) -> Result<Option<Answer>, Refusal> {
        self.write(api, Method::POST, url, body, commit).await
    }

    /// The same with another method.
    pub(super) async fn write<A: StatusApi>(
        self,
        api: &A,
        method: Method,
        url: Url,
        body: &(impl Serialize + Sync),
        commit: &CommitId,
    ) -> Result<Option<Answer>, Refusal> {
        let body = serde_json::to_vec(body).or_stalled(|| "cannot encode a status".to_owned());
        let body = body.map_err(Refusal::Commit)?;
        let answer = self.client.send(method, url, Some(body)).await?;
        self.success(api, answer, commit)
    }

    /// An answer that is 2xx; nothing, if what was asked for is so already. A busy host is left alone for as long as it wants.
    fn success<A: StatusApi>(self, api: &A, answer: Answer, commit: &CommitId) -> Result<Option<Answer>, Refusal> {
        if answer.status.is_success() {
            return Ok(Some(answer));
        }
        let meaning = api.meaning(&answer, self.now());
        let refusal = match meaning {
            Some(meaning) => meant(api.words(), meaning, commit),
            None => Some(refusal(api.words(), answer.status.as_u16(), commit)),
        };
        let Some(refusal) = refusal else { return Ok(None) };
        if let Refusal::Busy(_) = &refusal {
            let until = match meaning {
                Some(Meaning::Limited(until)) => Some(until.unwrap_or(self.now() + PAUSE)),
                _ => None,
            };
            self.client.keep_quiet(&answer, until);
        }
        Err(refusal)
    }
}

/// Writes commit statuses to a host.
#[derive(Debug)]
pub(super) struct HostedWriter<A> {
    client: ApiClient,
    api: A,
}

impl<A: StatusApi> HostedWriter<A> {
    /// A writer. `Stalled` if the token would be sent in the clear, or certificates cannot be read.
    pub(super) async fn new(settings: ApiSettings, manners: Manners, api: A, clock: Arc<dyn Clock>) -> Result<Self> {
        Ok(Self { client: ApiClient::new(settings, manners, clock).await?, api })
    }

    /// Writes what is not there yet on one commit.
    async fn write_commit(&self, call: Call<'_>, commit: &CommitId, wanted: &[A::Status]) -> Result<(), Refusal> {
        let present = self.api.present(call, commit).await?;
        for status in wanted.iter().filter(|status| !present.contains(status)) {
            self.api.post(call, commit, status, &present).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl<A: StatusApi> StatusWriter for HostedWriter<A> {
    fn name(&self) -> WriterName {
        self.api.writer().into()
    }

    /// A commit that the host does not have does not keep the others from being written; its failure comes back.
    async fn write(&self, statuses: &[CommitStatus]) -> Result<(), Refusal> {
        self.client.ready()?;
        let call = Call { client: &self.client };
        self.api.prepare(call, statuses).await;
        let mut outcome = Ok(());
        for (commit, wanted) in by_commit(statuses) {
            let wanted: Vec<A::Status> = wanted.into_iter().map(|status| self.api.rendered(status)).collect();
            match self.write_commit(call, commit, &wanted).await {
                Ok(()) => {}
                Err(refusal @ Refusal::Commit(_)) => outcome = outcome.and(Err(refusal)),
                Err(refusal) => return Err(refusal),
            }
        }
        outcome
    }

    fn batch(&self) -> usize {
        BATCH
    }

    fn shows_details(&self) -> bool {
        self.api.shows_details()
    }
}

/// What is to be visible on each commit: failures first, since a host may want no more after a while, else in the order
/// of writing. Of several statuses of one context only the last is: it is what a reader would see, and writing an earlier
/// one again after a failure would take it back.
pub(super) fn by_commit(statuses: &[CommitStatus]) -> Vec<(&CommitId, Vec<&CommitStatus>)> {
    let last: HashMap<_, _> =
        statuses.iter().enumerate().map(|(index, status)| ((&status.commit, &status.context), index)).collect();
    let mut commits: Vec<(&CommitId, Vec<&CommitStatus>)> = Vec::new();
    for (index, status) in statuses.iter().enumerate() {
        if last.get(&(&status.commit, &status.context)) != Some(&index) {
            continue;
        }
        match commits.iter_mut().find(|(commit, _)| *commit == &status.commit) {
            Some((_, wanted)) => wanted.push(status),
            None => commits.push((&status.commit, vec![status])),
        }
    }
    let has_failed = |status: &CommitStatus| matches!(status.state, StatusState::Failure | StatusState::Error);
    commits.iter_mut().for_each(|(_, wanted)| wanted.sort_by_key(|status| !has_failed(status)));
    commits
}

/// What happened, in at most `limit` characters. Hosts that have no word of their own for it are told that it was cancelled.
pub(super) fn description(status: &CommitStatus, limit: usize) -> String {
    let description = match status.state {
        StatusState::Cancelled if !status.description.starts_with("cancelled") => {
            format!("cancelled: {}", status.description)
        }
        _ => status.description.clone(),
    };
    one_line(description.trim_end_matches([':', ' ']), limit)
}

/// The page that tells more, if the daemon has a public address.
pub(super) fn link(status: &CommitStatus, public_url: Option<&str>) -> String {
    match (public_url, &status.path) {
        (Some(base), Some(path)) => format!("{}/{}", base.trim_end_matches('/'), path.trim_start_matches('/')),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(commit: &str, context: &str, state: StatusState, description: &str) -> CommitStatus {
        CommitStatus {
            path: Some("/runs/01ABC".to_owned()),
            ..CommitStatus::new(CommitId::from(commit), context, state, description)
        }
    }

    #[test]
    fn the_last_of_each_context_is_written_and_failures_come_first() {
        let statuses = [
            status("a", "one", StatusState::Pending, "first"),
            status("b", "one", StatusState::Success, "other"),
            status("a", "one", StatusState::Success, "last"),
            status("a", "two", StatusState::Error, "broken"),
        ];
        let told: Vec<(&str, Vec<&str>)> = by_commit(&statuses)
            .into_iter()
            .map(|(commit, statuses)| {
                (commit.as_str(), statuses.iter().map(|status| status.description.as_str()).collect())
            })
            .collect();
        assert_eq!(told, [("b", vec!["other"]), ("a", vec!["broken", "last"])]);
    }

    #[test]
    fn what_was_cancelled_says_so_and_links_lead_to_the_daemon() {
        let told = |state, text| description(&status("a", "one", state, text), 40);
        assert_eq!(told(StatusState::Cancelled, "superseded by 1a2b3c4"), "cancelled: superseded by 1a2b3c4");
        assert_eq!(told(StatusState::Cancelled, "cancelled by ann"), "cancelled by ann");
        assert_eq!(told(StatusState::Cancelled, ""), "cancelled");
        assert_eq!(told(StatusState::Success, "version 3"), "version 3");
        let linked = |base| link(&status("a", "one", StatusState::Success, ""), base);
        assert_eq!(linked(Some("https://deploy.example/")), "https://deploy.example/runs/01ABC");
        assert_eq!(linked(None), "");
    }
}
