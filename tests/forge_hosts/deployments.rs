//! Deployments and environments on GitHub and GitLab: one for each time that a commit was brought to an environment, whatever
//! is lost or told twice. Source of what the hosts take and refuse: their documentation of deployments.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header::RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use launchway::forge::address::{ForgeKind, RepositoryAddress};
use launchway::forge::{HostSettings, Refusal, github, gitlab};
use launchway::model::commit_status::{CommitStatus, StatusState};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::host::{Deployed, Fault, Host, Shared, World};
use crate::{COMMIT, OTHER, TOKEN, Writer, clock, settings, status};

const GONE: &str = "3333333333333333333333333333333333333333";
/// What GitHub takes in a minute and in an hour, beside the 60 and 400 commit statuses that another writer may write meanwhile.
const LIMITS: [(usize, i64); 2] = [(20, 60_000), (100, 3_600_000)];
const KINDS: [ForgeKind; 2] = [ForgeKind::Github, ForgeKind::Gitlab];

pub(crate) async fn start(kind: ForgeKind) -> (Host, Writer) {
    let (clock, folder) = (clock(), tempfile::tempdir().unwrap());
    let bearer = concat!("Bearer ", "d8a1c2e3f4051627384950617283940516273849");
    let host = match kind {
        ForgeKind::Github => Host::start(Arc::clone(&clock), bearer, "authorization", github_routes).await,
        _ => Host::start(Arc::clone(&clock), TOKEN, "private-token", gitlab_routes).await,
    };
    let writer = writer(kind, settings(address(kind, &host), &folder), &clock).await;
    (host, Writer { writer, clock, folder })
}

fn address(kind: ForgeKind, host: &Host) -> RepositoryAddress {
    let path = if kind == ForgeKind::Gitlab { "acme/web/shop.git" } else { "acme/shop.git" };
    RepositoryAddress::on(kind, &format!("http://{}/{path}", host.address), None).unwrap()
}

async fn writer(
    kind: ForgeKind,
    settings: HostSettings,
    clock: &Arc<launchway::clock::ManualClock>,
) -> Arc<dyn launchway::forge::StatusWriter> {
    match kind {
        ForgeKind::Github => github::deployments(settings, Arc::clone(clock) as _).await.unwrap(),
        _ => gitlab::deployments(settings, Arc::clone(clock) as _).await.unwrap(),
    }
}

fn said(status: u16, body: Value) -> Response {
    (StatusCode::from_u16(status).unwrap(), Json(body)).into_response()
}

/// A deployment of a commit, by its stage and number.
fn told(commit: &str, context: &str, state: StatusState, description: &str) -> CommitStatus {
    CommitStatus { context: context.to_owned(), ..status(commit, "", state, description) }
}

// GitHub, as GitHub Enterprise Server.

fn github_routes(shared: Shared) -> Router {
    Router::new()
        .route("/api/v3/repos/acme/shop/deployments", get(github_list).post(github_create))
        .route("/api/v3/repos/acme/shop/deployments/{id}/statuses", get(github_statuses).post(github_status))
        .fallback(async || said(404, json!({"message": "Not Found"})))
        .with_state(shared)
}

#[derive(Deserialize)]
struct Listed {
    sha: String,
    environment: String,
}

fn forbidden() -> Response {
    said(403, json!({"message": "Resource not accessible by personal access token"}))
}

async fn github_list(State(shared): State<Shared>, Query(asked): Query<Listed>) -> Response {
    let world = shared.world();
    if world.forbids {
        return forbidden();
    }
    let is_asked = |it: &&Deployed| it.sha == asked.sha && it.environment == asked.environment;
    let shown =
        |it: &Deployed| json!({"id": it.id, "sha": it.sha, "environment": it.environment, "payload": it.payload});
    Json(world.deployments.iter().rev().filter(is_asked).map(shown).collect::<Vec<_>>()).into_response()
}

/// What goes wrong with a request that writes: an answer instead of what is asked for.
fn wrong(world: &mut World, now: i64, is_limited: bool) -> Result<Option<Fault>, Box<Response>> {
    if world.forbids {
        return Err(Box::new(forbidden()));
    }
    let fault = world.faults.pop_front();
    if let Some(Fault::Status(status)) = fault {
        return Err(Box::new(said(status, json!({"message": "as the test wants it"}))));
    }
    let within = |span: i64| world.at.iter().filter(|at| **at > now - span).count();
    if is_limited && LIMITS.iter().any(|(most, span)| within(*span) >= *most) {
        world.limits_broken += 1;
        let body = Json(json!({"message": "You have exceeded a secondary rate limit."}));
        return Err(Box::new((StatusCode::FORBIDDEN, [(RETRY_AFTER, "60")], body).into_response()));
    }
    world.at.push(now);
    Ok(fault)
}

fn answered(fault: Option<Fault>, body: Value) -> Response {
    match fault {
        Some(Fault::Lost) => said(502, json!({})),
        _ => said(201, body),
    }
}

/// Unless it is told otherwise, GitHub merges the main branch into what is deployed, and waits for every status of it.
async fn github_create(State(shared): State<Shared>, Json(body): Json<Value>) -> Response {
    let now = shared.now();
    let mut world = shared.world();
    let fault = match wrong(&mut world, now, true) {
        Ok(fault) => fault,
        Err(answer) => return *answer,
    };
    let sha = body["ref"].as_str().unwrap_or_default().to_owned();
    if !world.commits.contains(&sha) {
        return said(422, json!({"message": format!("No ref found for: {sha}")}));
    }
    if body["auto_merge"] != false || body["required_contexts"] != json!([]) {
        return said(409, json!({"message": "Conflict: Commit status checks failed for master."}));
    }
    if body["description"].as_str().is_none_or(|text| text.chars().count() > 140) {
        return said(422, json!({"message": "Validation Failed"}));
    }
    let deployed = world.deploy(&sha, body["environment"].as_str().unwrap(), &body["payload"]);
    answered(fault, json!({"id": deployed, "payload": body["payload"]}))
}

async fn github_statuses(State(shared): State<Shared>, Path(id): Path<u64>) -> Response {
    let world = shared.world();
    let deployed = world.deployments.iter().find(|it| it.id == id);
    deployed.map_or_else(
        || said(404, json!({"message": "Not Found"})),
        |it| Json(it.states.iter().rev().cloned().collect::<Vec<_>>()).into_response(),
    )
}

/// What has succeeded takes the place of what the environment had, but in one of production.
async fn github_status(State(shared): State<Shared>, Path(id): Path<u64>, Json(body): Json<Value>) -> Response {
    const WORDS: [&str; 7] = ["error", "failure", "inactive", "in_progress", "queued", "pending", "success"];
    let now = shared.now();
    let mut world = shared.world();
    let fault = match wrong(&mut world, now, true) {
        Ok(fault) => fault,
        Err(answer) => return *answer,
    };
    let is_word = body["state"].as_str().is_some_and(|state| WORDS.contains(&state));
    let fits = body["description"].as_str().is_none_or(|text| text.chars().count() <= 140);
    let leads = |name: &str| body.get(name).is_none_or(|url| url.as_str().is_some_and(|url| url.starts_with("http")));
    let is_link = leads("log_url") && leads("environment_url");
    if !is_word || !fits || !is_link {
        return said(422, json!({"message": "Validation Failed"}));
    }
    let Some(at) = world.deployments.iter().position(|it| it.id == id) else { return said(404, json!({})) };
    let environment = world.deployments[at].environment.clone();
    if body["state"] == "success" && body["auto_inactive"] == true && environment != "production" {
        let before = world.deployments[..at].iter_mut().filter(|it| it.environment == environment);
        before.filter(|it| it.state() == "success").for_each(|it| it.states.push(json!({"state": "inactive"})));
    }
    world.deployments[at].states.push(body.clone());
    answered(fault, body)
}

// GitLab.

fn gitlab_routes(shared: Shared) -> Router {
    Router::new()
        .route("/api/v4/projects/{project}", get(async || Json(json!({"default_branch": "main"}))))
        .route("/api/v4/projects/{project}/deployments", get(gitlab_list).post(gitlab_create))
        .route("/api/v4/projects/{project}/deployments/{id}", put(gitlab_update))
        .route("/api/v4/projects/{project}/environments", get(gitlab_environments))
        .route("/api/v4/projects/{project}/environments/{id}", put(gitlab_environment))
        .route("/api/v4/projects/{project}/repository/commits/{sha}", get(gitlab_commit))
        .route("/api/v4/projects/{project}/statuses/{sha}", post(async || said(500, json!({}))))
        .fallback(async || said(404, json!({"message": "404 Not Found"})))
        .with_state(shared)
}

#[derive(Deserialize)]
struct Page {
    environment: String,
    order_by: String,
    sort: String,
    per_page: usize,
    page: usize,
}

fn gitlab_shown(it: &Deployed) -> Value {
    let deployable = it.payload.is_string().then(|| json!({"name": it.payload}));
    json!({
        "id": it.id, "sha": it.sha, "ref": "main", "status": it.state(), "deployable": deployable,
        "environment": {"name": it.environment},
    })
}

async fn gitlab_list(State(shared): State<Shared>, Query(asked): Query<Page>) -> Response {
    let world = shared.world();
    if world.forbids {
        return said(403, json!({"message": "403 Forbidden"}));
    }
    assert_eq!((asked.order_by.as_str(), asked.sort.as_str()), ("id", "desc"));
    let per_page = asked.per_page.min(100);
    let those = world.deployments.iter().rev().filter(|it| it.environment == asked.environment).map(gitlab_shown);
    Json(those.skip((asked.page - 1) * per_page).take(per_page).collect::<Vec<_>>()).into_response()
}

async fn gitlab_commit(State(shared): State<Shared>, Path((_, sha)): Path<(String, String)>) -> Response {
    match shared.world().commits.contains(&sha) {
        true => said(200, json!({"id": sha})),
        false => said(404, json!({"message": "404 Commit Not Found"})),
    }
}

/// The environment of a name, which has one id for good: here its place among the names.
async fn gitlab_environments(State(shared): State<Shared>, Query(asked): Query<BTreeMap<String, String>>) -> Response {
    let world = shared.world();
    let shown = |(id, name): (usize, &String)| {
        let link = world.links.get(name).map(|(link, _)| link.clone());
        (*name == asked["name"]).then(|| json!({"id": id, "name": name, "external_url": link}))
    };
    Json(world.environments.iter().enumerate().filter_map(shown).collect::<Vec<_>>()).into_response()
}

/// Of a protected environment only those who may deploy there change anything.
async fn gitlab_environment(
    State(shared): State<Shared>,
    Path((_, id)): Path<(String, usize)>,
    Json(body): Json<Value>,
) -> Response {
    let mut world = shared.world();
    let Some(name) = world.environments.iter().nth(id).cloned() else { return said(404, json!({})) };
    if world.protected.contains(&name) {
        return said(403, json!({"message": "403 Forbidden"}));
    }
    let Some(link) = body["external_url"].as_str().filter(|link| link.starts_with("http")) else {
        return said(400, json!({"message": "external_url is not a valid URL"}));
    };
    let known = world.links.entry(name).or_default();
    *known = (link.to_owned(), known.1 + 1);
    said(200, json!({"id": id}))
}

const GITLAB_WORDS: [&str; 4] = ["running", "success", "failed", "canceled"];

/// GitLab makes the environment before it looks at the commit.
async fn gitlab_create(State(shared): State<Shared>, Path(project): Path<String>, Json(body): Json<Value>) -> Response {
    let now = shared.now();
    let mut world = shared.world();
    let fault = match wrong(&mut world, now, false) {
        Ok(fault) => fault,
        Err(answer) => return *answer,
    };
    assert_eq!(project, "acme/web/shop");
    let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    world.environments.insert(text("environment"));
    if world.protected.contains(&text("environment")) {
        return said(403, json!({"message": "403 Forbidden"}));
    }
    if !world.commits.contains(&text("sha")) {
        return said(400, json!({"message": {"sha": ["The commit does not exist"]}}));
    }
    if text("ref") != "main" || body["tag"] != false || !GITLAB_WORDS.contains(&&*text("status")) {
        return said(400, json!({"error": "status does not have a valid value"}));
    }
    let id = world.deploy(&text("sha"), &text("environment"), &Value::Null);
    let deployed = world.deployments.last_mut().unwrap();
    deployed.states.push(json!({"state": text("status")}));
    answered(fault, json!({"id": id, "sha": text("sha"), "status": text("status"), "deployable": null}))
}

/// What has begun does not begin again, and nothing ends twice in the same way.
async fn gitlab_update(
    State(shared): State<Shared>,
    Path((_, id)): Path<(String, u64)>,
    Json(body): Json<Value>,
) -> Response {
    let now = shared.now();
    let mut world = shared.world();
    let fault = match wrong(&mut world, now, false) {
        Ok(fault) => fault,
        Err(answer) => return *answer,
    };
    let Some(deployed) = world.deployments.iter_mut().find(|it| it.id == id) else { return said(404, json!({})) };
    if deployed.payload.is_string() {
        return said(403, json!({"message": "Deployments created using GitLab CI can not be updated using the API"}));
    }
    let environment = deployed.environment.clone();
    if world.protected.contains(&environment) {
        return said(403, json!({"message": "403 Forbidden"}));
    }
    let Some(deployed) = world.deployments.iter_mut().find(|it| it.id == id) else { return said(404, json!({})) };
    let state = body["status"].as_str().unwrap_or_default().to_owned();
    let event = if state == "running" { "run" } else { "succeed" };
    if !GITLAB_WORDS.contains(&&*state) || state == "running" || deployed.state() == state {
        return said(400, json!({"message": {"status": [format!("cannot transition via \"{event}\"")]}}));
    }
    deployed.states.push(json!({"state": state}));
    let shown = gitlab_shown(deployed);
    answered(fault, shown)
}

// What both have to do.

fn words(kind: ForgeKind, state: StatusState) -> &'static str {
    match (kind, state) {
        (ForgeKind::Github, StatusState::Running) => "in_progress",
        (_, StatusState::Running) => "running",
        (_, StatusState::Success) => "success",
        (ForgeKind::Github, StatusState::Cancelled) => "inactive",
        (_, StatusState::Cancelled) => "canceled",
        (ForgeKind::Github, _) => "failure",
        (_, _) => "failed",
    }
}

/// What became of each deployment, oldest first.
fn shown(host: &Host) -> Vec<String> {
    let world = host.shared.world();
    let states = |it: &Deployed| {
        it.states.iter().map(|state| state["state"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    world.deployments.iter().map(|it| format!("{} {}: {}", &it.sha[..1], it.environment, states(it))).collect()
}

#[tokio::test]
async fn a_commit_has_a_deployment_for_each_time_that_it_was_brought_to_a_stage() {
    for kind in KINDS {
        let (host, Writer { writer, folder: _folder, .. }) = start(kind).await;
        for (commit, context, state) in [
            (COMMIT, "dev", StatusState::Running),
            (COMMIT, "dev", StatusState::Success),
            (OTHER, "dev", StatusState::Running),
            (OTHER, "dev", StatusState::Success),
            (COMMIT, "production", StatusState::Failure),
            (COMMIT, "dev#2", StatusState::Running),
            (COMMIT, "dev#2", StatusState::Success),
        ] {
            for _again in 0..2 {
                writer.write(&[told(commit, context, state, "version 1 serves")]).await.unwrap();
            }
        }
        let running = words(kind, StatusState::Running);
        let gone = if kind == ForgeKind::Github { " inactive" } else { "" };
        let expected = [
            format!("1 dev: {running} success{gone}"),
            format!("2 dev: {running} success{gone}"),
            format!("1 production: {}", words(kind, StatusState::Failure)),
            format!("1 dev: {running} success"),
        ];
        assert_eq!(shown(&host), expected, "{kind:?}");
    }
}

#[tokio::test]
async fn what_is_told_leads_to_the_daemon_and_is_cut_where_github_would_refuse_it() {
    let (host, Writer { writer, folder: _folder, .. }) = start(ForgeKind::Github).await;
    writer.write(&[told(COMMIT, "dev", StatusState::Running, &"x".repeat(200))]).await.unwrap();
    let world = host.shared.world();
    let Deployed { payload, states, .. } = &world.deployments[0];
    assert_eq!(payload, &json!({"launchway": "dev"}));
    assert_eq!(states[0]["log_url"], "https://deploy.example/runs/7");
    assert_eq!(states[0]["description"].as_str().unwrap().chars().count(), 140);
}

#[tokio::test]
async fn what_others_have_deployed_there_is_left_alone() {
    for kind in KINDS {
        let (host, Writer { writer, folder: _folder, .. }) = start(kind).await;
        let payload = if kind == ForgeKind::Gitlab { json!("deploy-job") } else { json!({"by": "another"}) };
        {
            let mut world = host.shared.world();
            world.deploy(COMMIT, "dev", &payload);
            world.deployments[0].states.push(json!({"state": "failed"}));
        }
        writer.write(&[told(COMMIT, "dev", StatusState::Running, "it runs")]).await.unwrap();
        assert_eq!(shown(&host), ["1 dev: failed".to_owned(), format!("1 dev: {}", words(kind, StatusState::Running))]);
    }
}

#[tokio::test]
async fn whoever_dies_before_the_answer_comes_makes_no_second_one() {
    for kind in KINDS {
        let (host, Writer { writer, clock, folder }) = start(kind).await;
        host.fail_next([Fault::Lost]);
        let wanted = [told(COMMIT, "dev", StatusState::Running, "it runs")];
        assert!(matches!(writer.write(&wanted).await, Err(Refusal::Busy(_))), "{kind:?}");
        let again = self::writer(kind, settings(address(kind, &host), &folder), &clock).await;
        again.write(&[told(COMMIT, "dev", StatusState::Success, "it serves")]).await.unwrap();
        assert_eq!(host.shared.world().deployments.len(), 1, "{kind:?}");
        assert_eq!(host.shared.world().deployments[0].state(), "success", "{kind:?}");
    }
}

#[tokio::test]
async fn a_token_without_the_right_needs_a_person_and_says_which_right() {
    for (kind, right) in [(ForgeKind::Github, "`Deployments: read and write`"), (ForgeKind::Gitlab, "Developer")] {
        let (host, Writer { writer, folder: _folder, .. }) = start(kind).await;
        host.shared.world().forbids = true;
        let wanted = [told(COMMIT, "dev", StatusState::Running, "it runs")];
        let Err(Refusal::All(failure)) = writer.write(&wanted).await else { panic!("{kind:?} forbids it") };
        assert!(failure.one_line().contains("the token may not create deployments"), "{failure}");
        assert!(failure.hint_text().is_some_and(|hint| hint.contains(right)), "{failure:?}");
        host.shared.world().forbids = false;
        writer.write(&wanted).await.unwrap();
        assert_eq!(host.shared.world().deployments.len(), 1);
    }
}

#[tokio::test]
async fn a_commit_that_is_gone_has_no_deployment_and_keeps_no_other_from_its() {
    for kind in KINDS {
        let (host, Writer { writer, folder: _folder, .. }) = start(kind).await;
        let gone = told(GONE, "dev", StatusState::Running, "it runs");
        let written = writer.write(&[gone, told(OTHER, "dev", StatusState::Running, "it runs")]).await;
        let Err(Refusal::Commit(failure)) = written else { panic!("{kind:?}: {written:?}") };
        assert!(failure.one_line().contains("takes no deployment of 3333333"), "{failure}");
        assert_eq!(shown(&host), [format!("2 dev: {}", words(kind, StatusState::Running))]);
        let made = if kind == ForgeKind::Gitlab { 1 } else { 0 };
        assert_eq!(host.shared.world().environments.len(), made, "no environment for what is gone");
    }
}

/// What the token may not do in one environment it may do in others: people protect single ones.
#[tokio::test]
async fn a_protected_environment_keeps_no_other_from_its_deployments() {
    let (host, Writer { writer, folder: _folder, .. }) = start(ForgeKind::Gitlab).await;
    host.shared.world().protected.insert("production".to_owned());
    let both = ["production", "test"].map(|stage| told(COMMIT, stage, StatusState::Running, "it runs"));
    let written = writer.write(&both).await;
    let Err(Refusal::Environments { refused, failure }) = written else { panic!("{written:?}") };
    assert_eq!(refused, ["production".into()].into());
    assert!(failure.one_line().contains("the token may not deploy there"), "{failure}");
    assert!(failure.hint_text().is_some_and(|hint| hint.contains("among those who may deploy there")), "{failure:?}");
    assert_eq!(shown(&host), ["1 test: running"]);

    // One that becomes protected while something goes on there.
    host.shared.world().protected.clear();
    writer.write(&both).await.unwrap();
    host.shared.world().protected.insert("production".to_owned());
    let ends = ["production", "test"].map(|stage| told(COMMIT, stage, StatusState::Success, "it serves"));
    assert!(matches!(writer.write(&ends).await, Err(Refusal::Environments { .. })));
    assert_eq!(shown(&host), ["1 test: running success", "1 production: running"]);
}

#[tokio::test]
async fn environments_lead_to_where_they_answer() {
    const AT: &str = "http://127.0.3.1:8080";
    let answering = |at: Option<&str>| CommitStatus {
        address: at.map(str::to_owned),
        ..told(COMMIT, "dev", StatusState::Success, "it serves")
    };
    let (host, Writer { writer, folder: _folder, .. }) = start(ForgeKind::Github).await;
    writer.write(&[answering(Some(AT))]).await.unwrap();
    writer.write(&[CommitStatus { commit: OTHER.into(), ..answering(None) }]).await.unwrap();
    let said = |at: usize| host.shared.world().deployments[at].states[0].get("environment_url").cloned();
    assert_eq!((said(0), said(1)), (Some(json!(AT)), None));

    let (host, Writer { writer, folder: _folder, .. }) = start(ForgeKind::Gitlab).await;
    let links = || host.shared.world().links.get("dev").cloned();
    writer.write(&[answering(None)]).await.unwrap();
    assert_eq!(links(), None);
    for _again in 0..2 {
        writer.write(&[answering(Some(AT))]).await.unwrap();
        assert_eq!(links(), Some((AT.to_owned(), 1)), "it is said once");
    }
    // It moved, and then somebody has given it a name.
    writer.write(&[answering(Some("http://127.0.3.2:8080"))]).await.unwrap();
    assert_eq!(links(), Some(("http://127.0.3.2:8080".to_owned(), 2)));
    let named = ("https://shop.example".to_owned(), 3);
    host.shared.world().links.insert("dev".to_owned(), named.clone());
    writer.write(&[answering(Some(AT))]).await.unwrap();
    assert_eq!(links(), Some(named), "what somebody else has said stays");
    // That a link may not be changed keeps no deployment from being told.
    host.shared.world().links.clear();
    host.shared.world().protected.insert("dev".to_owned());
    writer.write(&[answering(Some(AT))]).await.unwrap();
    assert_eq!(links(), None);
}

#[tokio::test]
async fn the_main_branch_is_asked_for_where_the_configuration_names_none() {
    let (host, Writer { clock, folder, .. }) = start(ForgeKind::Gitlab).await;
    let settings = HostSettings { branch: None, ..settings(address(ForgeKind::Gitlab, &host), &folder) };
    let writer = self::writer(ForgeKind::Gitlab, settings, &clock).await;
    writer.write(&[told(COMMIT, "dev", StatusState::Running, "it runs")]).await.unwrap();
    assert_eq!(shown(&host), ["1 dev: running"]);
}

#[tokio::test]
async fn gitlab_is_read_far_enough_to_find_one_behind_those_of_many_others() {
    let (host, Writer { writer, folder: _folder, .. }) = start(ForgeKind::Gitlab).await;
    writer.write(&[told(COMMIT, "dev", StatusState::Running, "it runs")]).await.unwrap();
    for _ in 0..250 {
        host.shared.world().deploy(OTHER, "dev", &json!("deploy-job"));
    }
    writer.write(&[told(COMMIT, "dev", StatusState::Success, "it serves")]).await.unwrap();
    assert_eq!(shown(&host)[0], "1 dev: running success");
    assert_eq!(host.shared.world().deployments.len(), 251);
}

/// Whatever fails, each host ends with one deployment for each that was told, each as it was told last.
#[tokio::test]
async fn hosts_show_what_was_told_whatever_fails() {
    for kind in KINDS {
        let (host, writer) = start(kind).await;
        let mut numbers = crate::soak::Numbers(11);
        let mut expected: Vec<(String, &str)> = Vec::new();
        for transition in 0..150 {
            let commit = [COMMIT, OTHER][usize::try_from(numbers.below(2)).unwrap()];
            let stage = ["dev", "test"][usize::try_from(numbers.below(2)).unwrap()];
            let of_it = format!("{} {stage}", &commit[..1]);
            let number = 1 + expected.iter().filter(|(known, _)| *known == of_it).count();
            let context = if number == 1 { stage.to_owned() } else { format!("{stage}#{number}") };
            let ends = [StatusState::Success, StatusState::Failure, StatusState::Cancelled];
            let end = ends[usize::try_from(numbers.below(3)).unwrap()];
            // Some are told of only when they have ended.
            let begins = (numbers.below(3) > 0).then_some(StatusState::Running);
            for state in begins.into_iter().chain([end]) {
                if numbers.below(3) == 0 {
                    let faults = [Fault::Status(409), Fault::Status(502), Fault::Status(503), Fault::Lost];
                    host.fail_next([faults[usize::try_from(numbers.below(4)).unwrap()]]);
                }
                let next = [told(commit, &context, state, &format!("transition {transition}"))];
                while let Err(refusal) = writer.writer.write(&next).await {
                    assert!(matches!(refusal, Refusal::Busy(_)), "{kind:?}: {refusal:?}");
                    writer.clock.advance(Duration::from_secs(60));
                }
            }
            expected.push((of_it, words(kind, end)));
        }
        let world = host.shared.world();
        assert_eq!(world.limits_broken, 0);
        // GitHub has what was there before replaced by what has succeeded since.
        let replaced = |it: &Deployed| it.states.last().is_some_and(|last| last.get("description").is_none());
        let mut shown: Vec<(String, &str)> = Vec::new();
        for it in &world.deployments {
            let had = if kind == ForgeKind::Github && replaced(it) { "success" } else { it.state() };
            shown.push((format!("{} {}", &it.sha[..1], it.environment), had));
        }
        assert_eq!(shown, expected, "{kind:?}");
        let twice = |it: &&Deployed| it.states.windows(2).any(|pair| pair[0]["state"] == pair[1]["state"]);
        assert!(!world.deployments.iter().any(|it| twice(&it)), "{kind:?} was told twice");
    }
}
