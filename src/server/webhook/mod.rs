//! `/webhooks/<repository>`: calls of Git hosts. An authentic call about the watched branch means "sync"; one about a comment, or a
//! check that somebody wants again, to do what is asked for.
//!
//! What a call is and means is decided in [`crate::forge::webhook`]; this is the HTTP around it. The order of checks is
//! part of the contract: nothing is read of a call to an unknown repository, nothing is interpreted of one that is not
//! authentic, and an authentic one is always answered 2xx unless its body is no JSON.

mod body;
mod delivery;
mod journal;

use std::sync::Arc;

use async_trait::async_trait;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::{Extension, Json, Router};
use serde::Serialize;

use super::listener::Bounds;
use super::origin::{Client, Origin};
use super::problem::Problem;
use crate::clock::Clock;
use crate::error::Result;
use crate::forge::address::ForgeKind;
use crate::forge::webhook::{Call, Host, Interest, Meant, Verdict, Watching, interpret, verify};
use crate::model::comment::Comment;
use crate::model::git_event::GitEvent;
use crate::model::ids::RepositoryName;
use crate::model::rerun::Rerun;
use crate::model::time::Timestamp;
use crate::model::webhook_call::{CallResult, WebhookCall};
use crate::secret::Secret;
use crate::store::Store;
use body::BodyReader;
use delivery::Deliveries;
use journal::Journal;

/// What the daemon knows of repositories, and does for them.
#[async_trait]
pub trait Hooks: Send + Sync {
    /// The target of calls for a repository; `None` if there is no such repository.
    fn repository(&self, name: &RepositoryName) -> Option<HookTarget>;

    /// The other repository that this path names on the host of a repository, if the same GitHub App opens both: an App has one
    /// webhook for all.
    fn beside(&self, name: &RepositoryName, path: &str) -> Option<RepositoryName>;

    /// Syncs a repository soon. Returns at once; many calls mean one sync.
    fn sync(&self, name: &RepositoryName);

    /// Takes what a comment asks for, of which this host has told; says whether it is new. It is durable then.
    ///
    /// # Errors
    /// Why it is not taken.
    async fn asked(&self, name: &RepositoryName, from: Host, comment: Comment) -> Result<bool>;

    /// Does again what a check is about, of which this host has told. It is durable then.
    ///
    /// # Errors
    /// Why it is not done.
    async fn rerun(&self, name: &RepositoryName, from: Host, rerun: &Rerun) -> Result<()>;

    /// Has what happened in a repository told to its sequences, as far as they wait for it; else says why it does not count.
    async fn happened(&self, name: &RepositoryName, events: &[GitEvent]) -> Result<(), String>;

    /// Counts how a call was answered: `accepted`, `ignored`, `duplicate` or `refused`.
    fn answered(&self, name: &RepositoryName, answer: &'static str);
}

/// What a call is checked against.
#[derive(Clone, Debug)]
pub struct HookTarget {
    /// The secrets that are valid now. Without any, no call is authentic.
    pub secrets: Vec<Secret>,
    /// The sort of its host, and where it is there, such as `acme/shop`, if it is on one.
    pub place: Option<(ForgeKind, String)>,
    /// The branch that is watched, once it is known.
    pub branch: Option<String>,
    /// Whether its pull requests are planned.
    pub pulls: bool,
    /// Whether comments on them may be commands.
    pub commands: bool,
    /// The GitHub App whose checks people may ask for again, by its id, if there is one.
    pub app: Option<u64>,
    /// The longest body in bytes, instead of the host's own limit.
    pub body_limit: Option<usize>,
}

/// What every 2xx answer says. Parts that a call does not have are `null`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Answer {
    result: CallResult,
    event: Option<String>,
    repository: RepositoryName,
    #[serde(rename = "ref")]
    reference: Option<String>,
    before: Option<String>,
    after: Option<String>,
    reason: Option<String>,
    /// The host's id of it.
    #[serde(skip)]
    delivery: Option<String>,
    /// The host's id of the repository, where the call names it as it is configured.
    #[serde(skip)]
    repository_id: Option<String>,
}

struct Webhooks {
    hooks: Arc<dyn Hooks>,
    deliveries: Deliveries,
    journal: Arc<Journal>,
    bodies: BodyReader,
    clock: Arc<dyn Clock>,
}

/// The routes of webhooks.
pub fn router(hooks: Arc<dyn Hooks>, store: Arc<dyn Store>, clock: Arc<dyn Clock>, bounds: Bounds) -> Router {
    let (journal, bodies) = (Arc::new(Journal::new(Arc::clone(&store))), BodyReader::new(bounds.body));
    let deliveries = Deliveries::new(store, Arc::clone(&clock));
    let webhooks = Webhooks { hooks, deliveries, journal, bodies, clock };
    Router::new()
        .route("/webhooks/{repository}", post(receive).fallback(async || wrong_method()))
        .with_state(Arc::new(webhooks))
}

async fn receive(
    State(webhooks): State<Arc<Webhooks>>,
    Extension(origin): Extension<Origin>,
    name: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: axum::body::Body,
) -> Result<Json<Answer>, Problem> {
    let Ok(Path(name)) = name else { return Err(unknown_repository()) };
    let repository = RepositoryName::new(name);
    let target = webhooks.hooks.repository(&repository).ok_or_else(unknown_repository)?;
    let host = Host::identify(&headers);
    let answered = webhooks.answer(&origin.client(), host, &repository, &target, &headers, body).await;
    let call = call(webhooks.clock.now(), host, &answered);
    let meant = answered.as_ref().map_or(&repository, |answer| &answer.repository);
    webhooks.hooks.answered(meant, call.result.as_str());
    let id = answered.as_ref().ok().and_then(|answer| answer.repository_id.clone());
    webhooks.journal.remember(meant, call, id);
    answered.map(Json)
}

impl Webhooks {
    async fn answer(
        &self,
        client: &Client,
        host: Host,
        repository: &RepositoryName,
        target: &HookTarget,
        headers: &HeaderMap,
        body: axum::body::Body,
    ) -> Result<Answer, Problem> {
        require_json(headers)?;
        let limit = target.body_limit.unwrap_or(host.dialect().body_limit);
        let body = self.bodies.read(client, headers, body, limit).await?;
        verify(host, &target.secrets, headers, &body, self.clock.now()).map_err(|problem| {
            tracing::warn!(%repository, ?host, secrets = target.secrets.len(), %problem, "refused a webhook");
            Problem::new(StatusCode::UNAUTHORIZED, problem.to_string())
        })?;
        let (call, asked) = (Call::read(host, &body).map_err(bad_request)?, repository);
        let delivery = host.delivery_id(headers, &call).map_err(bad_request)?;
        let beside = self.beside(host, repository, target, &call);
        let (repository, target) = beside.as_ref().map_or((repository, target), |(name, target)| (name, target));
        let HookTarget { branch, pulls, commands, app, .. } = target;
        let watching = Watching { branch: branch.as_deref(), pulls: *pulls, commands: *commands, app: *app };
        let mut verdict = interpret(host, headers, &call, watching);
        // Whoever has one repository's secret speaks for no other that does not take it as well.
        if beside.is_some() && verify(host, &target.secrets, headers, &body, self.clock.now()).is_err() {
            let why = format!("`{repository}` does not take the secret of this webhook: give it the same in `webhook`");
            return Ok(answer(asked.clone(), delivery, CallResult::Ignored, verdict.ignored(why)));
        }
        let (meant, repository_id) = self.meant(host, repository, target, &call).await;
        if let Meant::Another(why) = meant {
            return Ok(answer(repository.clone(), delivery, CallResult::Ignored, verdict.ignored(why)));
        }
        let outcome = self.act(repository, host, delivery.as_deref(), &mut verdict).await;
        if let (Meant::Renamed(what), CallResult::Accepted) = (meant, outcome) {
            tracing::warn!(%repository, ?host, what, "a repository has another name on its host");
            verdict.reason = Some(what);
        }
        Ok(Answer { repository_id, ..answer(repository.clone(), delivery, outcome, verdict) })
    }

    /// Whether a call is about the repository at its place, by the host's id of it where its name differs; and that id, where the
    /// name is the one that is configured.
    async fn meant(
        &self,
        host: Host,
        repository: &RepositoryName,
        target: &HookTarget,
        call: &Call,
    ) -> (Meant, Option<String>) {
        let Some((_, watched)) = target.place.as_ref().filter(|(kind, _)| host.is_of(*kind)) else {
            return (Meant::Watched, None);
        };
        let named = host.repository(call);
        if named.is_at(watched) {
            return (Meant::Watched, named.id);
        }
        let known = self.journal.repository_id(repository).await;
        (named.meant(watched, known.as_deref()), None)
    }

    /// The repository that a call of a GitHub App is about, where that is another one than it was sent for.
    fn beside(
        &self,
        host: Host,
        repository: &RepositoryName,
        target: &HookTarget,
        call: &Call,
    ) -> Option<(RepositoryName, HookTarget)> {
        if host != Host::Github || target.app.is_none() {
            return None;
        }
        let name = self.hooks.beside(repository, &call.repository()?)?;
        let target = self.hooks.repository(&name)?;
        Some((name, target))
    }

    /// Does what a call is a reason for, unless it was taken before.
    async fn act(
        &self,
        repository: &RepositoryName,
        host: Host,
        delivery: Option<&str>,
        verdict: &mut Verdict,
    ) -> CallResult {
        let interest = std::mem::replace(&mut verdict.interest, Interest::Ignored);
        if interest == Interest::Ignored && verdict.happened.is_empty() {
            return CallResult::Ignored;
        }
        let claim = match delivery {
            Some(id) => match self.deliveries.claim(repository, id).await {
                Some(claim) => Some(claim),
                None => return CallResult::Duplicate,
            },
            None => None,
        };
        match self.take(repository, host, interest, &verdict.happened).await {
            Ok(is_new) => {
                verdict.reason = None;
                if let Some(claim) = claim {
                    claim.taken().await;
                }
                if is_new { CallResult::Accepted } else { CallResult::Duplicate }
            }
            // The host may deliver it again.
            Err(why) => {
                verdict.reason = Some(why);
                CallResult::Ignored
            }
        }
    }

    /// Takes what is asked for, or looks; what else has happened is noted first, because it is told to sequences after that.
    /// Says whether it is new, or why it is not taken.
    async fn take(
        &self,
        repository: &RepositoryName,
        host: Host,
        interest: Interest,
        happened: &[GitEvent],
    ) -> Result<bool, String> {
        match interest {
            Interest::Asked(comment) => {
                let asked = self.hooks.asked(repository, host, *comment).await;
                return asked.map_err(|failure| {
                    let why = failure.one_line();
                    tracing::warn!(%repository, ?host, why, "a command in a comment is not carried out");
                    why
                });
            }
            Interest::Again(rerun) => {
                let done = self.hooks.rerun(repository, host, &rerun).await;
                return done.map(|()| true).map_err(|failure| failure.one_line());
            }
            Interest::Ignored => self.hooks.happened(repository, happened).await?,
            // A push counts, whether or not anything waits for what came with it.
            Interest::Accepted if !happened.is_empty() => drop(self.hooks.happened(repository, happened).await),
            Interest::Accepted => {}
        }
        self.hooks.sync(repository);
        Ok(true)
    }
}

fn answer(repository: RepositoryName, delivery: Option<String>, outcome: CallResult, verdict: Verdict) -> Answer {
    let reason = match outcome {
        CallResult::Duplicate => Some("this delivery was taken before".to_owned()),
        CallResult::Accepted | CallResult::Ignored | CallResult::Refused => verdict.reason,
    };
    Answer {
        result: outcome,
        event: verdict.event,
        repository,
        reference: verdict.reference,
        before: verdict.before,
        after: verdict.after,
        reason,
        delivery,
        repository_id: None,
    }
}

/// What is kept of a call.
fn call(at: Timestamp, host: Host, answered: &Result<Answer, Problem>) -> WebhookCall {
    let answer = answered.as_ref().ok();
    let part = |part: fn(&Answer) -> &Option<String>| answer.and_then(|answer| part(answer).clone());
    let (result, status, reason) = match answered {
        Ok(answer) => (answer.result, StatusCode::OK.as_u16(), answer.reason.clone()),
        Err(problem) => (CallResult::Refused, problem.status, Some(problem.detail.clone())),
    };
    WebhookCall {
        at,
        host: host.as_str().to_owned(),
        id: part(|answer| &answer.delivery),
        event: part(|answer| &answer.event),
        reference: part(|answer| &answer.reference),
        before: part(|answer| &answer.before),
        after: part(|answer| &answer.after),
        result,
        status,
        reason,
        times: 1,
    }
}

/// Hosts sign forms in different ways, and compressed bodies hide their size.
fn require_json(headers: &HeaderMap) -> Result<(), Problem> {
    let encoding = headers.get(CONTENT_ENCODING).map(|value| value.as_bytes());
    if encoding.is_some_and(|encoding| !encoding.eq_ignore_ascii_case(b"identity")) {
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must not be compressed"));
    }
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        let detail = "choose application/json as the webhook's content type; forms are not taken";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    }
    Ok(())
}

fn unknown_repository() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is no such repository")
}

fn wrong_method() -> Problem {
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "webhooks are delivered with POST")
}

fn bad_request(problem: impl std::error::Error) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, problem.to_string())
}
