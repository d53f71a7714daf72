//! Asks a host's API for what is no status: those have words of their own for what an answer means.

use http::Method;
use reqwest::Url;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::answer::{Words, unanswered};
use super::api::{Answer, ApiClient};
use super::paging::{More, Page};
use crate::error::{Context, Failure, Result};

/// What a request to a host needs.
#[derive(Clone, Copy)]
pub(super) struct Ask<'a> {
    pub(super) client: &'a ApiClient,
    /// What is said of the host, and which rights the token needs.
    pub(super) words: Words,
    /// What is asked for, for people: the token may not do it, or may.
    pub(super) what: &'static str,
    /// Answers to what may be taken later all the same, beside those that mean it everywhere.
    pub(super) busy: &'static [u16],
    /// Answers that only say that what a request names is not there, where nobody thinks that it is.
    pub(super) absent: &'static [u16],
}

impl Ask<'_> {
    /// The same where the token needs other rights.
    pub(super) fn needing(self, rights: &'static str) -> Self {
        Self { words: Words { rights, ..self.words }, ..self }
    }

    /// Reads something; nothing, if it is not there.
    pub(super) async fn get<T: DeserializeOwned>(self, url: Url) -> Result<Option<T>> {
        Ok(self.get_part(url).await?.map(|(found, _)| found))
    }

    /// Reads a page of a list; nothing, if it is not there.
    pub(super) async fn page<T: DeserializeOwned>(self, url: Url) -> Result<Option<Page<T>>> {
        Ok(self.get_part(url).await?.map(|(items, more)| Page::new(items, more)))
    }

    /// Reads a part of a list, with what is said of what follows; nothing, if it is not there.
    pub(super) async fn get_part<T: DeserializeOwned>(self, url: Url) -> Result<Option<(T, More)>> {
        let answer = self.send(Method::GET, url, None, &[(404, "")]).await?;
        answer.map(|answer| Ok((self.read(&answer)?, More::told(&answer.headers)))).transpose()
    }

    /// The same. That a host knows of no list says nothing of what is on it: it may hide the repository from the token.
    pub(super) async fn list<T: DeserializeOwned>(self, url: Url) -> Result<(T, More)> {
        let answer = self.send(Method::GET, url, None, &[]).await?;
        let unanswered = || Failure::stalled(format!("{} does not answer", self.words.name));
        let answer = answer.ok_or_else(unanswered)?;
        Ok((self.read(&answer)?, More::told(&answer.headers)))
    }

    /// Writes something. An answer of one of `refusals`, a status and words in it, is nothing.
    pub(super) async fn write<T: DeserializeOwned>(
        self,
        method: Method,
        url: Url,
        body: &(impl Serialize + Sync),
        refusals: &[(u16, &str)],
    ) -> Result<Option<T>> {
        let answer = self.tell(method, url, body, refusals).await?;
        answer.map(|answer| self.read(&answer)).transpose()
    }

    /// The same where nobody reads what the host answers.
    pub(super) async fn tell(
        self,
        method: Method,
        url: Url,
        body: &(impl Serialize + Sync),
        refusals: &[(u16, &str)],
    ) -> Result<Option<Answer>> {
        let body = serde_json::to_vec(body).or_stalled(|| "cannot encode a request".to_owned())?;
        self.send(method, url, Some(body), refusals).await
    }

    /// Writes something; or the answer by which the host refuses it, if that is one of `refusals`.
    pub(super) async fn offer(
        self,
        method: Method,
        url: Url,
        body: &(impl Serialize + Sync),
        refusals: &[(u16, &str)],
    ) -> Result<Result<Answer, Answer>> {
        let body = serde_json::to_vec(body).or_stalled(|| "cannot encode a request".to_owned())?;
        self.judged(method, url, Some(body), refusals).await
    }

    /// Has what is `known` be so, or makes one more of a list.
    pub(super) async fn save(
        self,
        known: Option<Url>,
        list: Url,
        body: &(impl Serialize + Sync),
    ) -> Result<Option<()>> {
        let (method, url) = known.map_or((Method::POST, list), |known| (Method::PUT, known));
        Ok(self.tell(method, url, body, &[]).await?.map(drop))
    }

    pub(super) fn read<T: DeserializeOwned>(self, answer: &Answer) -> Result<T> {
        let foreign = || format!("the answer is not that of {}; is `forge.url` right?", self.words.name);
        serde_json::from_slice(&answer.body).or_stalled(foreign)
    }

    async fn send(
        self,
        method: Method,
        url: Url,
        body: Option<Vec<u8>>,
        refusals: &[(u16, &str)],
    ) -> Result<Option<Answer>> {
        Ok(self.judged(method, url, body, refusals).await?.ok())
    }

    /// An answer that is 2xx, or one that only says that this is refused; any other is a failure.
    async fn judged(
        self,
        method: Method,
        url: Url,
        body: Option<Vec<u8>>,
        refusals: &[(u16, &str)],
    ) -> Result<Result<Answer, Answer>> {
        let sent = self.client.send(method, url, body).await;
        let answer = sent.map_err(super::Refusal::into_failure)?;
        let status = answer.status.as_u16();
        if answer.status.is_success() {
            return Ok(Ok(answer));
        }
        if let Some(until) = self.client.limited(&answer) {
            self.client.keep_quiet(&answer, until);
            return Err(Failure::transient(format!("{} wants fewer requests", self.words.name)));
        }
        let is_refused = refusals.iter().any(|(refused, words)| *refused == status && answer.says(words));
        if is_refused || self.absent.contains(&status) {
            return Ok(Err(answer));
        }
        if self.busy.contains(&status) {
            return Err(Failure::transient(format!("{} answers {status}", self.words.name)));
        }
        if status == 429 {
            self.client.keep_quiet(&answer, None);
        }
        Err(unanswered(self.words, status, self.what))
    }
}

/// An address with more to ask for.
pub(super) fn asking(mut url: Url, pairs: &[(&str, &str)]) -> Url {
    url.query_pairs_mut().extend_pairs(pairs);
    url
}
