//! Writes commit statuses through GitHub's API.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::header::{AUTHORIZATION, RETRY_AFTER};
use reqwest::Url;

use super::status::{GithubStatus, rendered};
use super::{app, checks};
use crate::clock::{Clock, rfc3339};
use crate::error::{Failure, Result};
use crate::forge::address::RepositoryAddress;
use crate::forge::answer::{Meaning, TOKEN_FILE, Words};
use crate::forge::api::{Answer, Manners};
use crate::forge::budget::Budget;
use crate::forge::hosted::{Call, HostSettings, HostedWriter, StatusApi};
use crate::forge::paging::pages;
use crate::forge::{Refusal, StatusWriter};
use crate::model::commit_status::CommitStatus;
use crate::model::ids::CommitId;
use crate::model::time::Timestamp;

/// Statuses of a page; GitHub's own limit.
const PAGE_SIZE: usize = 100;

/// How much may be written. Source: GitHub's secondary limits on requests that create content, with some room for others
/// who use the same token.
pub(super) const WRITES: &[(usize, Duration)] = &[(60, Duration::from_secs(60)), (400, Duration::from_secs(60 * 60))];

pub(super) const WORDS: Words = Words {
    name: "GitHub",
    rights: "a fine-grained one needs `Commit statuses: read and write` for the repository",
    renewal: TOKEN_FILE,
};

/// A writer to GitHub, whose token may write commit statuses; check runs, if it is that of an App.
///
/// # Errors
/// `Stalled` if the token would be sent in the clear, or certificates cannot be read.
pub async fn writer(settings: HostSettings, clock: Arc<dyn Clock>) -> Result<Arc<dyn StatusWriter>> {
    if let Some(app) = settings.app {
        return checks::writer(settings, app, clock).await;
    }
    let api = settings.api();
    let github = GithubApi { settings, writes: Budget::new(WRITES) };
    Ok(Arc::new(HostedWriter::new(api, manners(), github, clock).await?))
}

/// How GitHub is spoken to.
pub(super) fn manners() -> Manners {
    Manners {
        name: WORDS.name,
        header: AUTHORIZATION,
        authorization: |token| format!("Bearer {token}"),
        accept: "application/vnd.github+json",
        limited,
    }
}

/// What is said of GitHub to whoever opens it so.
pub(super) fn words(settings: &HostSettings, rights: &'static str) -> Words {
    let renewal = if settings.app.is_some() { app::RENEWAL } else { TOKEN_FILE };
    Words { rights, renewal, ..WORDS }
}

/// An address below the repository's.
pub(super) fn url<'a>(settings: &'a HostSettings, rest: impl IntoIterator<Item = &'a str>) -> Url {
    let repository = &settings.repository;
    api_url(repository, ["repos", repository.owner.as_str(), repository.name.as_str()].into_iter().chain(rest))
}

/// An address below that of the API. The service has a host of its own for it; GitHub Enterprise Server a path.
pub(super) fn api_url<'a>(repository: &'a RepositoryAddress, path: impl IntoIterator<Item = &'a str>) -> Url {
    let is_service = repository.base.host_str().is_some_and(|host| host.eq_ignore_ascii_case("github.com"));
    let prefix: &[&str] = if is_service { &[] } else { &["api", "v3"] };
    let mut url = repository.api(prefix.iter().copied().chain(path));
    if is_service {
        // The host is a valid one, and the scheme takes hosts.
        url.set_host(Some("api.github.com")).unwrap_or_default();
    }
    url
}

/// Takes one write from what there may be of them.
///
/// # Errors
/// `Transient` until there may be more.
pub(super) fn spend(writes: &Budget, now: Timestamp, what: &str) -> Result<()> {
    writes.spend(now).map_err(|until| {
        Failure::transient(format!("GitHub takes so many {what} in an hour; more follow from {} on", rfc3339(until)))
    })
}

/// Whether GitHub asks for fewer requests, which it answers 403 to as to what it forbids; and until when, if it says so.
pub(super) fn limited(answer: &Answer) -> Option<Option<Timestamp>> {
    let number = |name: &str| answer.headers.get(name)?.to_str().ok()?.trim().parse::<i64>().ok();
    let is_spent = number("x-ratelimit-remaining") == Some(0);
    let asks_for_less = || {
        let words = ["rate limit", "abuse", "blocked from content creation"];
        is_spent || answer.headers.contains_key(RETRY_AFTER) || words.iter().any(|words| answer.says(words))
    };
    let is_limited = matches!(answer.status.as_u16(), 403 | 429) && asks_for_less();
    let reset = || number("x-ratelimit-reset").filter(|_| is_spent).map(|seconds| Timestamp(seconds * 1000));
    is_limited.then(reset)
}

#[derive(Debug)]
struct GithubApi {
    settings: HostSettings,
    writes: Budget,
}

impl GithubApi {
    fn url<'a>(&'a self, rest: impl IntoIterator<Item = &'a str>) -> Url {
        url(&self.settings, rest)
    }
}

#[async_trait]
impl StatusApi for GithubApi {
    type Status = GithubStatus;

    fn writer(&self) -> &'static str {
        "github"
    }

    fn words(&self) -> Words {
        WORDS
    }

    /// GitHub answers 403 both to whom it forbids something and to whom it asks to slow down, and 422 for all sorts of
    /// reasons.
    fn meaning(&self, answer: &Answer, _: Timestamp) -> Option<Meaning> {
        if let Some(until) = limited(answer) {
            return Some(Meaning::Limited(until));
        }
        match answer.status.as_u16() {
            422 if answer.says("no commit found") => Some(Meaning::Gone),
            422 if answer.says("maximum number of statuses") => Some(Meaning::Full),
            _ => None,
        }
    }

    fn rendered(&self, status: &CommitStatus) -> GithubStatus {
        rendered(status, self.settings.public_url.as_deref())
    }

    /// GitHub lists all that was ever written, the newest first.
    async fn present(&self, call: Call<'_>, commit: &CommitId) -> Result<Vec<GithubStatus>, Refusal> {
        let all: Vec<GithubStatus> = pages(PAGE_SIZE, |at| {
            let mut url = self.url(["commits", commit.as_str(), "statuses"]);
            let (size, page) = (PAGE_SIZE.to_string(), (at + 1).to_string());
            url.query_pairs_mut().append_pair("per_page", &size).append_pair("page", &page);
            call.page(self, url, commit)
        })
        .await?
        .unwrap_or_default();
        let mut present: Vec<GithubStatus> = Vec::new();
        for status in all {
            if !present.iter().any(|newer| newer.context.eq_ignore_ascii_case(&status.context)) {
                present.push(status);
            }
        }
        Ok(present)
    }

    async fn post(
        &self,
        call: Call<'_>,
        commit: &CommitId,
        status: &GithubStatus,
        _present: &[GithubStatus],
    ) -> Result<(), Refusal> {
        spend(&self.writes, call.now(), "statuses")?;
        let url = self.url(["statuses", commit.as_str()]);
        call.post(self, url, status, commit).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, StatusCode};

    use super::*;
    use crate::secret::{Secret, SecretSource};

    fn github(url: &str) -> GithubApi {
        let settings = HostSettings {
            repository: RepositoryAddress::new(url, None).unwrap(),
            credential: Arc::new(SecretSource::Value(Secret::new("token"))),
            app: None,
            ca_file: None,
            insecure: false,
            public_url: None,
            branch: None,
        };
        GithubApi { settings, writes: Budget::new(WRITES) }
    }

    #[test]
    fn the_service_and_the_server_have_their_apis_in_other_places() {
        let at = |url: &str| github(url).url(["statuses", "1a2b"]).to_string();
        assert_eq!(at("https://github.com/acme/shop.git"), "https://api.github.com/repos/acme/shop/statuses/1a2b");
        assert_eq!(at("git@github.com:acme/shop.git"), "https://api.github.com/repos/acme/shop/statuses/1a2b");
        assert_eq!(at("https://git.example/acme/shop"), "https://git.example/api/v3/repos/acme/shop/statuses/1a2b");
    }

    #[test]
    fn what_is_forbidden_is_told_from_what_is_too_much() {
        let most = r#"{"message":"Validation Failed","errors":[{"message":"This SHA and context has reached the maximum number of statuses."}]}"#;
        let limited = Some(Meaning::Limited(None));
        for (status, body, headers, expected) in [
            (403, r#"{"message":"Resource not accessible by personal access token"}"#, &[][..], None),
            (403, r#"{"message":"You have exceeded a secondary rate limit."}"#, &[], limited),
            (403, r#"{"message":"Your request has been blocked from content creation"}"#, &[], limited),
            (403, "{}", &[("retry-after", "30")], limited),
            (
                403,
                "{}",
                &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1700000000")],
                Some(Meaning::Limited(Some(Timestamp(1_700_000_000_000)))),
            ),
            (429, "", &[], None),
            (422, r#"{"message":"No commit found for SHA: 1111"}"#, &[], Some(Meaning::Gone)),
            (422, most, &[], Some(Meaning::Full)),
            (422, "nonsense", &[], None),
        ] {
            let pairs = headers
                .iter()
                .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value)));
            let status = StatusCode::from_u16(status).unwrap();
            let answer = Answer { status, headers: pairs.collect::<HeaderMap>(), body: body.into() };
            let meaning = github("https://github.com/acme/shop").meaning(&answer, Timestamp(0));
            assert_eq!(meaning, expected, "{status} {body}");
        }
    }
}
