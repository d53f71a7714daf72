//! Resources to read.

use axum::extract::State;
use axum::{Extension, Json};

use super::extract::{Parameters, Segments};
use super::hooks;
use crate::model::ids::{ConfigKey, ServiceKey};
use crate::server::origin::Origin;
use crate::server::problem::Answer;
use crate::server::query::Selection;
use crate::server::state::ServerState;
use crate::server::view::{
    ConfigDetail, ConfigView, EventView, Explanation, HistoryRow, HoldView, ImageTagView, List, PlanView, PodView,
    RepositoryView, RevisionView, RunDetail, RunView, ServiceView, SinkView, VersionDetail, WebhookCallView,
};

type Found<T> = Answer<Json<T>>;

pub(in crate::server) async fn repositories(
    State(state): State<ServerState>,
    Parameters(selection): Parameters<Selection>,
) -> Found<List<RepositoryView>> {
    state.query.repositories(&selection).await.map(Json)
}

pub(in crate::server) async fn repository(
    State(state): State<ServerState>,
    Segments(name): Segments<String>,
) -> Found<RepositoryView> {
    state.query.repository(&name).await.map(Json)
}

pub(in crate::server) async fn deliveries(
    State(state): State<ServerState>,
    Segments(name): Segments<String>,
) -> Found<List<WebhookCallView>> {
    state.query.deliveries(&name).await.map(Json)
}

pub(in crate::server) async fn sinks(
    State(state): State<ServerState>,
    Parameters(selection): Parameters<Selection>,
) -> Found<List<SinkView>> {
    state.query.sinks(&selection).await.map(Json)
}

pub(in crate::server) async fn revisions(
    State(state): State<ServerState>,
    Parameters(selection): Parameters<Selection>,
) -> Found<List<RevisionView>> {
    state.query.revisions(&selection).await.map(Json)
}

pub(in crate::server) async fn revision(
    State(state): State<ServerState>,
    Extension(origin): Extension<Origin>,
    Segments((repository, commit)): Segments<(String, String)>,
) -> Found<RevisionView> {
    hooks::may_follow(&origin, &commit)?;
    state.query.revision(&repository, &commit).await.map(Json)
}

pub(in crate::server) async fn plan(
    State(state): State<ServerState>,
    Segments(id): Segments<String>,
) -> Found<PlanView> {
    state.query.plan(&id).await.map(Json)
}

pub(in crate::server) async fn deployments(
    State(state): State<ServerState>,
    Parameters(selection): Parameters<Selection>,
) -> Found<List<ConfigView>> {
    state.query.configs(&selection).await.map(Json)
}

pub(in crate::server) async fn deployment(
    State(state): State<ServerState>,
    Segments(segments): Segments<(String, String, String)>,
) -> Found<ConfigDetail> {
    state.query.config(&config_key(segments)).await.map(Json)
}

pub(in crate::server) async fn history(
    State(state): State<ServerState>,
    Segments(segments): Segments<(String, String, String)>,
) -> Found<List<HistoryRow>> {
    state.query.history(&config_key(segments)).await.map(Json)
}

pub(in crate::server) async fn version(
    State(state): State<ServerState>,
    Segments((project, stage, name, version)): Segments<(String, String, String, u32)>,
) -> Found<VersionDetail> {
    state.query.version(&config_key((project, stage, name)), version).await.map(Json)
}

pub(in crate::server) async fn runs(
    State(state): State<ServerState>,
    Parameters(selection): Parameters<Selection>,
) -> Found<List<RunView>> {
    state.query.runs(&selection).await.map(Json)
}

pub(in crate::server) async fn run(
    State(state): State<ServerState>,
    Segments(id): Segments<String>,
) -> Found<RunDetail> {
    state.query.run(&id).await.map(Json)
}

pub(in crate::server) async fn events(
    State(state): State<ServerState>,
    Parameters(selection): Parameters<Selection>,
) -> Found<List<EventView>> {
    state.query.events(&selection).await.map(Json)
}

pub(in crate::server) async fn holds(
    State(state): State<ServerState>,
    Parameters(selection): Parameters<Selection>,
) -> Found<List<HoldView>> {
    state.query.holds(&selection).await.map(Json)
}

pub(in crate::server) async fn image_streams(
    State(state): State<ServerState>,
    Parameters(selection): Parameters<Selection>,
) -> Found<List<ImageTagView>> {
    state.query.image_streams(&selection).await.map(Json)
}

pub(in crate::server) async fn services(
    State(state): State<ServerState>,
    Parameters(selection): Parameters<Selection>,
) -> Found<List<ServiceView>> {
    state.query.services(&selection).await.map(Json)
}

pub(in crate::server) async fn pods(
    State(state): State<ServerState>,
    Parameters(selection): Parameters<Selection>,
) -> Found<List<PodView>> {
    state.query.pods(&selection).await.map(Json)
}

pub(in crate::server) async fn why(
    State(state): State<ServerState>,
    Segments((project, stage, service)): Segments<(String, String, String)>,
) -> Found<Explanation> {
    let service =
        ServiceKey { project: project.as_str().into(), stage: stage.as_str().into(), service: service.as_str().into() };
    state.query.why(&service).await.map(Json)
}

pub(in crate::server) fn config_key((project, stage, name): (String, String, String)) -> ConfigKey {
    ConfigKey { project: project.as_str().into(), stage: stage.as_str().into(), name }
}
