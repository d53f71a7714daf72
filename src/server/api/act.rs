//! Actions on resources.

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::extract::{Body, Segments};
use super::hooks;
use super::read::config_key;
use crate::control::commands::{Command, Done, Refusal};
use crate::engine::by_hand::Images;
use crate::error::Failure;
use crate::model::hold::HoldScope;
use crate::model::ids::{CommitId, HoldId};
use crate::server::origin::Origin;
use crate::server::problem::{Answer, Problem};
use crate::server::state::{Actor, ServerState};

type Segment3 = Segments<(String, String, String)>;
type Acted = Answer<Json<Done>>;

/// What `sync` may allow, and whether it brings back what was taken down.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct SyncRequest {
    /// Which repository; all if absent.
    pub repository: Option<String>,
    /// This revision may delete more than the rule allows: at least four digits of the head's id.
    pub allow_prune: Option<String>,
    /// This revision may replace history: at least four digits of the head's id.
    pub accept_rewrite: Option<String>,
    /// Bring back what was taken down.
    pub up: bool,
    /// Leave a head alone that was seen before; else one that a rule refused is judged anew. Not with what allows a
    /// revision something.
    pub only_new: bool,
}

/// How `latest` is meant.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct LatestRequest {
    /// Only say what that would do.
    pub dry_run: bool,
    /// With the images that are there, whatever the tags of its image triggers lead to by now.
    pub again: bool,
}

/// To which version `undo` goes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct UndoRequest {
    /// The last complete one before the one that was attempted last if absent.
    pub to_version: Option<u32>,
    /// Only say what that would do.
    pub dry_run: bool,
}

/// How many pods.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScaleRequest {
    /// So many.
    pub replicas: u32,
}

/// What may not change, and why.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HoldRequest {
    /// The project.
    pub project: String,
    /// One stage of it, or all.
    #[serde(default)]
    pub stage: Option<String>,
    /// One service, or all.
    #[serde(default)]
    pub service: Option<String>,
    /// Why.
    pub reason: String,
}

/// What is released.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ReleaseRequest {
    /// Holds, by their ids.
    pub holds: Vec<String>,
    /// What files pause.
    pub paused: Vec<PausedConfig>,
    /// Only say what that would start.
    pub dry_run: bool,
}

/// A deployment config whose file says `paused`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PausedConfig {
    /// Its project.
    pub project: String,
    /// Its stage.
    pub stage: String,
    /// Its name.
    pub name: String,
}

/// Which delivery is started.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeliveryRequest {
    /// Of which project.
    pub project: String,
    /// In which stage; may be left out if there is one.
    #[serde(default)]
    pub stage: Option<String>,
    /// For one service, also if nothing differs, or for all that differ.
    #[serde(default)]
    pub service: Option<String>,
    /// Why, although the stage before has not passed it.
    #[serde(default)]
    pub force: Option<String>,
}

pub(in crate::server) async fn sync(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    Extension(origin): Extension<Origin>,
    Body(request): Body<SyncRequest>,
) -> Acted {
    hooks::may_sync(&origin, &request, &state.watched)?;
    let SyncRequest { repository, allow_prune, accept_rewrite, up, only_new } = request;
    // What was pushed is new; a head that was refused is judged anew for those alone who may do more.
    let only_new = only_new || matches!(origin, Origin::Hooks { .. });
    if only_new && (allow_prune.is_some() || accept_rewrite.is_some()) {
        let detail = "`onlyNew` leaves a head alone for which something is to be allowed";
        return Err(Problem::new(StatusCode::BAD_REQUEST, detail).hint("leave out one or the other"));
    }
    let allow_prune = allow_prune.as_deref().map(commit_word).transpose().map_err(Refusal::Invalid)?;
    let accept_rewrite = accept_rewrite.as_deref().map(commit_word).transpose().map_err(Refusal::Invalid)?;
    let names = state.query.repository_names(repository.as_deref()).await?;
    if names.len() > 1 && (allow_prune.is_some() || accept_rewrite.is_some()) {
        let detail = "something is allowed to a revision of one repository";
        return Err(Problem::new(StatusCode::BAD_REQUEST, detail).hint("name it as `repository`"));
    }
    let mut all = Done::default();
    for repository in names {
        let (allow_prune, accept_rewrite) = (allow_prune.clone(), accept_rewrite.clone());
        let _turn = state.hook_turns.turn(&origin, &repository).await;
        let done = state.act(Command::Sync { repository, allow_prune, accept_rewrite, up, only_new }, &actor).await?;
        all.message =
            [all.message, done.message].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ");
        all.runs.extend(done.runs);
    }
    Ok(Json(all))
}

/// A person's word for a commit.
///
/// # Errors
/// If it is none.
pub fn commit_word(word: &str) -> Result<CommitId, Failure> {
    let none = || Failure::stalled(format!("`{word}` names no commit")).hint("give at least four digits of its id");
    CommitId::word(word).ok_or_else(none)
}

pub(in crate::server) async fn down(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    Segments(name): Segments<String>,
) -> Acted {
    state.act(Command::Down { repository: name.as_str().into() }, &actor).await.map(Json)
}

/// Whether anything is deleted.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct PruneRequest {
    /// Only say what would go.
    pub dry_run: bool,
}

pub(in crate::server) async fn prune(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    Body(PruneRequest { dry_run }): Body<PruneRequest>,
) -> Acted {
    state.act(Command::Prune { dry_run }, &actor).await.map(Json)
}

pub(in crate::server) async fn latest(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    Segments(segments): Segment3,
    body: Option<Body<LatestRequest>>,
) -> Acted {
    let LatestRequest { dry_run, again } = body.map(|Body(request)| request).unwrap_or_default();
    let images = if again { Images::AsTheyAre } else { Images::Newest };
    state.act(Command::Latest { config: config_key(segments), images, dry_run }, &actor).await.map(Json)
}

pub(in crate::server) async fn cancel(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    Segments(segments): Segment3,
) -> Acted {
    state.act(Command::Cancel { config: config_key(segments) }, &actor).await.map(Json)
}

pub(in crate::server) async fn retry(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    Segments(segments): Segment3,
) -> Acted {
    state.act(Command::Retry { config: config_key(segments) }, &actor).await.map(Json)
}

pub(in crate::server) async fn pause(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    Segments(segments): Segment3,
) -> Acted {
    state.act(Command::Pause { config: config_key(segments) }, &actor).await.map(Json)
}

pub(in crate::server) async fn resume(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    Segments(segments): Segment3,
) -> Acted {
    state.act(Command::Resume { config: config_key(segments) }, &actor).await.map(Json)
}

pub(in crate::server) async fn promote(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    Segments(segments): Segment3,
) -> Acted {
    state.act(Command::Promote { config: config_key(segments) }, &actor).await.map(Json)
}

pub(in crate::server) async fn undo(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    Segments(segments): Segment3,
    Body(request): Body<UndoRequest>,
) -> Acted {
    let UndoRequest { to_version, dry_run } = request;
    let command = Command::Undo { config: config_key(segments), to_version, dry_run };
    state.act(command, &actor).await.map(Json)
}

pub(in crate::server) async fn scale(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    Segments(segments): Segment3,
    Body(request): Body<ScaleRequest>,
) -> Acted {
    let command = Command::Scale { config: config_key(segments), replicas: request.replicas };
    state.act(command, &actor).await.map(Json)
}

pub(in crate::server) async fn hold(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    Body(request): Body<HoldRequest>,
) -> Acted {
    let scope = HoldScope {
        project: request.project.as_str().into(),
        stage: request.stage.as_deref().map(Into::into),
        service: request.service.as_deref().map(Into::into),
        context: None,
    };
    state.act(Command::Hold { scope, reason: request.reason }, &actor).await.map(Json)
}

pub(in crate::server) async fn release(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    Segments(id): Segments<String>,
) -> Acted {
    let command = Command::Release { holds: vec![HoldId::new(id)], paused: Vec::new(), dry_run: false };
    state.act(command, &actor).await.map(Json)
}

pub(in crate::server) async fn release_all(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    Body(request): Body<ReleaseRequest>,
) -> Acted {
    let config = |paused: PausedConfig| config_key((paused.project, paused.stage, paused.name));
    let command = Command::Release {
        holds: request.holds.into_iter().map(HoldId::new).collect(),
        paused: request.paused.into_iter().map(config).collect(),
        dry_run: request.dry_run,
    };
    state.act(command, &actor).await.map(Json)
}

pub(in crate::server) async fn deliver(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    Body(request): Body<DeliveryRequest>,
) -> Acted {
    let command = Command::TriggerDelivery {
        project: request.project.as_str().into(),
        stage: request.stage.as_deref().map(Into::into),
        service: request.service.as_deref().map(Into::into),
        force: request.force,
    };
    state.act(command, &actor).await.map(Json)
}
