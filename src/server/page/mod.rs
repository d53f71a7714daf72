//! Plain pages for people, rendered here; no script is needed.

mod render;

use axum::extract::State;
use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use serde_json::json;

use super::api::extract::Segments;
use super::problem::Problem;
use super::query::Selection;
use super::state::ServerState;

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

/// What runs, and what happened last.
pub(super) async fn overview(State(state): State<ServerState>) -> Page {
    let last = Selection { limit: Some(SHOWN), ..Selection::default() };
    let sequences = Selection { kind: Some("sequence".into()), ..last.clone() };
    let repositories = state.query.repositories(&Selection::default()).await?;
    let deployments = state.query.configs(&Selection::default()).await?;
    let revisions = state.query.revisions(&last).await?;
    let runs = state.query.runs(&sequences).await?;
    let holds = state.query.holds(&Selection::default()).await?;
    let damaged = [deployments.damaged, runs.damaged, holds.damaged].concat();
    let page = json!({
        "damaged": damaged,
        "repositories": repositories.items,
        "deployments": deployments.items,
        "revisions": revisions.items,
        "runs": runs.items,
        "holds": holds.items,
    });
    Ok(render::page("overview.html", &page)?)
}

/// A run: steps, hooks with their output, what it changes.
pub(super) async fn run(State(state): State<ServerState>, Segments(id): Segments<String>) -> Page {
    let run = state.query.run(&id).await?;
    let changes = render::changes(&run.changes);
    Ok(render::page("run.html", &json!({ "run": run, "changes": changes }))?)
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
