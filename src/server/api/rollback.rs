//! Going back to what ran before.

use axum::extract::State;
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::act::commit_word;
use super::extract::Body;
use crate::control::commands::{Command, Done, Refusal, RollbackCommand};
use crate::manifest::rollback::{RollbackRequest, RollbackSettings};
use crate::server::problem::Answer;
use crate::server::state::{Actor, ServerState};

/// Which deployment configs go back, and to what: all of them, or none.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RollbacksRequest {
    /// Their project.
    pub project: String,
    /// Their stage.
    pub stage: String,
    /// Which ones, each with what of it comes back.
    #[serde(default)]
    pub rollbacks: Vec<RollbackRequest>,
    /// In place of these: all that there are, so. Needs `toRevision`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<RollbackSettings>,
    /// To what was deployed when this revision had been applied: at least four digits of its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_revision: Option<String>,
    /// Only say what that would do.
    #[serde(default)]
    pub dry_run: bool,
    /// Have Git say it, as a pull request, and deploy it once that is merged.
    #[serde(default)]
    pub pull_request: bool,
}

pub(in crate::server) async fn roll_back(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    Body(request): Body<RollbacksRequest>,
) -> Answer<Json<Done>> {
    let RollbacksRequest { project, stage, rollbacks, all, to_revision, dry_run, pull_request } = request;
    let to_revision = to_revision.as_deref().map(commit_word).transpose().map_err(Refusal::Invalid)?;
    let (project, stage) = (project.as_str().into(), stage.as_str().into());
    let asked = RollbackCommand { project, stage, rollbacks, all, to_revision, dry_run, pull_request };
    state.act(Command::Rollback(asked), &actor).await.map(Json)
}
