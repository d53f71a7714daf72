//! Plain pages for people, rendered here; no script is needed.

mod render;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, Uri, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use serde::Deserialize;
use serde_json::json;

use super::api::extract::{Segments, Submitted};
use super::problem::{Answer, Problem};
use super::query::Selection;
use super::state::{Actor, ServerState};
use crate::control::commands::{Command, SequenceCommand};

/// How many of the last revisions and runs the first page shows.
const SHOWN: u32 = 20;

/// A page, or the page that says why not.
type Page = Result<Html<String>, Sorry>;

/// A problem, for people.
pub(super) struct Sorry(Problem);

impl From<Problem> for Sorry {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl IntoResponse for Sorry {
    fn into_response(self) -> Response {
        let page = render::page("problem.html", &json!({ "problem": self.0 }));
        let mut response = self.0.into_response();
        if let Ok(page) = page {
            let status = response.status();
            response = (status, page).into_response();
        }
        response
    }
}

/// A problem as who asks can read it: a browser is shown a page.
pub(super) fn problem(problem: Problem, uri: &Uri, headers: &HeaderMap) -> Response {
    let accepted = headers.get(header::ACCEPT).and_then(|accepted| accepted.to_str().ok()).unwrap_or_default();
    match accepted.contains("text/html") && !uri.path().starts_with("/api/") {
        true => Sorry(problem).into_response(),
        false => problem.into_response(),
    }
}

/// What runs, and what happened last.
pub(super) async fn overview(State(state): State<ServerState>) -> Page {
    let last = Selection { limit: Some(SHOWN), ..Selection::default() };
    let sequences = Selection { kind: Some("sequence".into()), ..last.clone() };
    let repositories = state.query.repositories(&Selection::default()).await?;
    let deployments = state.query.configs(&Selection::default()).await?;
    let revisions = state.query.revisions(&last).await?;
    let runs = state.query.runs(&sequences).await?;
    let waiting = state.query.awaiting_approval().await?;
    let holds = state.query.holds(&Selection::default()).await?;
    let sinks = match &state.query.subscribers {
        Some(_) => state.query.sinks(&Selection::default()).await?.items,
        None => Vec::new(),
    };
    let mut damaged = Vec::new();
    for record in [deployments.damaged, runs.damaged, waiting.damaged, holds.damaged].concat() {
        if !damaged.contains(&record) {
            damaged.push(record);
        }
    }
    let page = json!({
        "damaged": damaged,
        "repositories": repositories.items,
        "deployments": deployments.items,
        "revisions": revisions.items,
        "runs": runs.items,
        "waiting": waiting.items,
        "holds": holds.items,
        "sinks": sinks,
    });
    Ok(render::page("overview.html", &page)?)
}

/// A run: steps, hooks with their output, what it changes.
pub(super) async fn run(State(state): State<ServerState>, Segments(id): Segments<String>) -> Page {
    let run = state.query.run(&id).await?;
    let changes = render::changes(&run.changes);
    Ok(render::page("run.html", &json!({ "run": run, "changes": changes }))?)
}

/// What the form of a run says that waits for approval.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Decided {
    run: String,
    asked: String,
    verdict: Verdict,
    #[serde(default)]
    reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Verdict {
    Approve,
    Reject,
}

/// Lets the run go on that a person has seen, or ends it, and shows what becomes of it.
pub(super) async fn decide(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    submitted: Answer<Submitted<Decided>>,
) -> Result<Redirect, Sorry> {
    let Submitted(Decided { run, asked, verdict, reason }) = submitted?;
    let run = state.query.stored_run(&run).await?.value;
    let decide = SequenceCommand::Decide {
        service: run.service(),
        approve: verdict == Verdict::Approve,
        reason: reason.trim().to_owned(),
        run: Some(run.id().clone()),
        asked: Some(asked),
        revision: None,
    };
    state.act(Command::Sequence(decide), &actor).await?;
    Ok(Redirect::to(&format!("/runs/{}", run.id())))
}

/// A revision: what is written on it.
pub(super) async fn revision(
    State(state): State<ServerState>,
    Segments((repository, commit)): Segments<(String, String)>,
) -> Page {
    let revision = state.query.revision(&repository, &commit).await?;
    let plan = match &revision.plan {
        Some(id) => state.query.plan(id).await?.changes,
        None => Vec::new(),
    };
    let changes = render::changes(&plan);
    Ok(render::page("revision.html", &json!({ "revision": revision, "changes": changes }))?)
}

/// How pages look.
pub(super) async fn style() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], include_str!("../templates/style.css"))
}
