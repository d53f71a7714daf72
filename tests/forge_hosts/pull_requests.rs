//! Pull requests: never a second one for a branch, whatever is lost or told twice, on each host by its own rules.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, patch, post};
use axum::{Json, Router};
use launchway::error::Class;
use launchway::forge::address::ForgeKind;
use launchway::forge::pull_request::{PullRequest, PullRequestState, PullRequests};
use launchway::forge::{azure, bitbucket, gitea, github, gitlab};
use launchway::model::comment::Author;
use launchway::model::preview::OpenPullRequest;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::host::{Fault, Host, Shared, paged, repository, with_whole_paths};
use crate::{TOKEN, clock, settings};

const KINDS: [ForgeKind; 6] = [
    ForgeKind::Gitea,
    ForgeKind::Github,
    ForgeKind::Gitlab,
    ForgeKind::Bitbucket,
    ForgeKind::BitbucketDataCenter,
    ForgeKind::Azure,
];

/// How a host spells what all of them have.
#[derive(Clone, Copy)]
struct Dialect {
    kind: ForgeKind,
    /// Where the pull requests are.
    list: &'static str,
    /// How the token comes.
    header: &'static str,
    token: &'static str,
    /// The fields of a request: branches as pointers, title, text.
    fields: [&'static str; 4],
    /// What a branch begins with.
    prefix: &'static str,
    /// The answer where there is one already.
    exists: (u16, &'static str),
    /// The answer where the branch is nowhere.
    absent: u16,
    longest: usize,
    /// Where the text of a comment is.
    text: &'static str,
    /// What something hidden stands in.
    hidden: [&'static str; 2],
    shown: fn(&Value) -> Value,
}

fn word(pull: &Value, open: &str, merged: &str, closed: &str) -> String {
    match pull["state"].as_str().unwrap() {
        "open" => open,
        "merged" => merged,
        _ => closed,
    }
    .to_owned()
}

/// The repository of a side: a fork may be where one comes from.
fn origin(pull: &Value, side: &str) -> u64 {
    if side == "head" && pull["fork"] == true { 2 } else { 1 }
}

fn full_name(pull: &Value) -> &'static str {
    if origin(pull, "head") == 1 { "Acme/Shop" } else { "ben/shop" }
}

fn dialect(kind: ForgeKind) -> Dialect {
    const BEARER: &str = concat!("Bearer ", "d8a1c2e3f4051627384950617283940516273849");
    let plain = ["/head", "/base", "/title", "/body"];
    let gitea = Dialect {
        kind,
        list: "/api/v1/repos/acme/shop/pulls",
        header: "authorization",
        token: concat!("token ", "d8a1c2e3f4051627384950617283940516273849"),
        fields: plain,
        prefix: "",
        exists: (409, "pull request already exists for these targets"),
        absent: 404,
        longest: usize::MAX,
        text: "/body",
        hidden: ["<!-- ", " -->"],
        shown: |pull| {
            let branch = |name: &str| json!({"ref": pull[name], "repo_id": origin(pull, name), "sha": crate::COMMIT});
            json!({
                "number": pull["number"], "html_url": pull["url"], "state": word(pull, "open", "closed", "closed"),
                "merged": pull["state"] == "merged", "head": branch("head"), "base": branch("base"),
            })
        },
    };
    match kind {
        ForgeKind::Github => Dialect {
            list: "/api/v3/repos/acme/shop/pulls",
            token: BEARER,
            exists: (422, "A pull request already exists for acme:launchway/rollback-web-1."),
            absent: 422,
            longest: 65_536,
            shown: |pull| {
                let merged = (pull["state"] == "merged").then_some("2026-01-02T03:04:05Z");
                let state = word(pull, "open", "closed", "closed");
                let repository = json!({"full_name": full_name(pull)});
                let head = json!({"ref": pull["head"], "sha": crate::COMMIT, "repo": repository});
                json!({
                    "number": pull["number"], "html_url": pull["url"], "state": state, "merged_at": merged, "head": head,
                    "base": {"ref": pull["base"]},
                })
            },
            ..gitea
        },
        ForgeKind::Gitlab => Dialect {
            list: "/api/v4/projects/acme%2Fshop/merge_requests",
            header: "private-token",
            token: TOKEN,
            fields: ["/source_branch", "/target_branch", "/title", "/description"],
            exists: (409, "Another open merge request already exists for this source branch: !1"),
            absent: 400,
            longest: 1_048_576,
            shown: |pull| {
                let state = word(pull, "opened", "merged", "closed");
                json!({
                    "iid": pull["number"], "web_url": pull["url"], "state": state, "sha": crate::COMMIT,
                    "target_branch": pull["base"], "source_branch": pull["head"], "source_project_id": origin(pull, "head"), "target_project_id": 1,
                })
            },
            ..gitea
        },
        ForgeKind::Bitbucket => Dialect {
            list: "/2.0/repositories/acme/shop/pullrequests",
            token: BEARER,
            fields: ["/source/branch/name", "/destination/branch/name", "/title", "/description"],
            exists: (409, "there is one"),
            absent: 400,
            longest: 32_768,
            text: "/content/raw",
            hidden: ["[//]: # (", ")"],
            shown: |pull| {
                let state = word(pull, "OPEN", "MERGED", "DECLINED");
                let source = json!({
                    "branch": {"name": pull["head"]}, "commit": {"hash": crate::COMMIT[..12]},
                    "repository": {"full_name": full_name(pull)},
                });
                json!({
                    "id": pull["number"], "state": state, "links": {"html": {"href": pull["url"]}}, "source": source,
                    "destination": {"branch": {"name": pull["base"]}},
                })
            },
            ..gitea
        },
        ForgeKind::BitbucketDataCenter => Dialect {
            list: "/rest/api/latest/projects/ACME/repos/shop/pull-requests",
            token: BEARER,
            fields: ["/fromRef/id", "/toRef/id", "/title", "/description"],
            prefix: "refs/heads/",
            exists: (409, "com.atlassian.bitbucket.pull.DuplicatePullRequestException"),
            longest: 32_768,
            text: "/text",
            hidden: ["[//]: # (", ")"],
            shown: |pull| {
                let side = |name: &str| {
                    let (branch, repository) = (pull[name].as_str().unwrap(), json!({"id": origin(pull, name)}));
                    let id = format!("refs/heads/{branch}");
                    json!({"id": id, "displayId": branch, "latestCommit": crate::COMMIT, "repository": repository})
                };
                json!({
                    "id": pull["number"], "version": pull["version"], "state": word(pull, "OPEN", "MERGED", "DECLINED"),
                    "reviewers": [{"user": {"name": "ann"}}], "links": {"self": [{"href": pull["url"]}]},
                    "fromRef": side("head"), "toRef": side("base"),
                })
            },
            ..gitea
        },
        ForgeKind::Azure => Dialect {
            list: "/acme/web/_apis/git/repositories/shop/pullrequests",
            token: "Basic OmQ4YTFjMmUzZjQwNTE2MjczODQ5NTA2MTcyODM5NDA1MTYyNzM4NDk=",
            fields: ["/sourceRefName", "/targetRefName", "/title", "/description"],
            prefix: "refs/heads/",
            exists: (409, "TF401179: An active pull request for the source and target branch already exists."),
            absent: 400,
            longest: 4000,
            text: "/comments/0/content",
            hidden: ["[//]: # (", ")"],
            shown: |pull| {
                let status = word(pull, "active", "completed", "abandoned");
                let source = format!("refs/heads/{}", pull["head"].as_str().unwrap());
                json!({
                    "pullRequestId": pull["number"], "status": status, "sourceRefName": source,
                    "targetRefName": format!("refs/heads/{}", pull["base"].as_str().unwrap()),
                    "lastMergeSourceCommit": {"commitId": crate::COMMIT},
                    "forkSource": (origin(pull, "head") != 1).then(|| json!({"name": source})),
                })
            },
            ..gitea
        },
        _ => gitea,
    }
}

#[derive(Clone)]
struct Double {
    shared: Shared,
    dialect: Dialect,
}

async fn start(kind: ForgeKind) -> (Host, Arc<dyn PullRequests>, TempDir) {
    let (clock, folder) = (clock(), tempfile::tempdir().unwrap());
    let dialect = dialect(kind);
    let routes = move |shared: Shared| {
        let double = Double { shared, dialect };
        let inner = Router::new()
            .route(&dialect.list.replace("%2F", "/"), get(list).post(create))
            .route(&format!("{}/{{number}}", dialect.list.replace("%2F", "/")), any(one))
            .route(&format!("{}/{{number}}/{{what}}", dialect.list.replace("%2F", "/")), any(beside))
            .route("/api/v1/repos/acme/shop/issues/{number}/comments", any(comments))
            .route("/api/v3/repos/acme/shop/issues/{number}/comments", any(comments))
            .merge(said(dialect))
            .merge(permissions(dialect))
            .route("/api/v1/repos/acme/shop/labels", get(labels).post(make_label))
            .route("/api/v1/repos/acme/shop/issues/{number}/labels", post(label))
            .route("/api/v3/repos/acme/shop/issues/{number}/labels", post(label))
            .with_state(double);
        with_whole_paths(inner)
    };
    let host = Host::start(Arc::clone(&clock), dialect.token, dialect.header, routes).await;
    let (settings, time) = (settings(repository(kind, &host), &folder), clock as _);
    let opens = match kind {
        ForgeKind::Github => github::pull_requests(settings, time).await,
        ForgeKind::Gitlab => gitlab::pull_requests(settings, time).await,
        ForgeKind::Bitbucket => bitbucket::cloud_pull_requests(settings, time).await,
        ForgeKind::BitbucketDataCenter => bitbucket::data_center_pull_requests(settings, time).await,
        ForgeKind::Azure => azure::pull_requests(settings, time).await,
        _ => gitea::pull_requests(settings, time).await,
    };
    (host, opens.unwrap(), folder)
}

/// Where is told what people may do: `ann` may write, `ben` read, and `cleo` is nobody that the repository knows.
fn permissions(dialect: Dialect) -> Router<Double> {
    let list = dialect.list.replace("%2F", "/");
    match (list.strip_suffix("/pulls"), list.strip_suffix("/merge_requests")) {
        _ if list.starts_with("/2.0/") => {
            Router::new().route("/2.0/workspaces/acme/permissions/repositories/shop", get(most))
        }
        _ if is_data_center(&dialect) => Router::new().route("/rest/api/latest/users", get(users)),
        (Some(base), _) => Router::new().route(&format!("{base}/collaborators/{{login}}/permission"), get(permission)),
        (_, Some(base)) => Router::new().route(&format!("{base}/members/all/{{id}}"), get(member)),
        _ => Router::new(),
    }
}

async fn permission(State(double): State<Double>, Path(login): Path<String>) -> Response {
    let (id, permission) = match &*login {
        "ann" => (3, "write"),
        "root" => (1, "admin"),
        "ben" => (4, "read"),
        "none" => (5, "none"),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    let told = json!({"permission": permission, "role_name": permission, "user": {"id": id, "login": login}});
    answered(&double, told)
}

async fn member(State(double): State<Double>, Path(id): Path<u64>) -> Response {
    let (username, level, state) = match id {
        3 => ("ann", 30, "active"),
        1 => ("root", 50, "active"),
        4 => ("ben", 20, "active"),
        5 => ("none", 50, "blocked"),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    answered(&double, json!({"id": id, "username": username, "access_level": level, "state": state}))
}

/// Those who may do what is asked for, and have something in their names. A filter that it does not know it leaves out.
async fn users(State(double): State<Double>, Query(query): Query<BTreeMap<String, String>>) -> Response {
    let asked = |name: &str| query.get(name).map(String::as_str).unwrap_or_default();
    let writes = asked("permission.1") == "REPO_WRITE"
        && [asked("permission.1.projectKey"), asked("permission.1.repositorySlug")] == ["ACME", "shop"];
    let all = [(3, "ann", true), (9, "hannah", true), (1, "root", true), (5, "none", false), (4, "ben", true)];
    let all = &all[..if writes { 4 } else { 5 }];
    let found = all.iter().filter(|(_, name, _)| name.contains(asked("filter")));
    let shown = found.map(|(id, name, active)| json!({"id": id, "name": name, "slug": name, "active": active}));
    answered(&double, json!({"values": shown.collect::<Value>(), "isLastPage": true}))
}

/// The most that each of those may do who are asked for.
async fn most(State(double): State<Double>, Query(query): Query<BTreeMap<String, String>>) -> Response {
    let all = [("3", "write"), ("1", "admin"), ("4", "read")];
    let found = all.iter().filter(|(id, _)| query["q"] == format!("user.uuid=\"{id}\""));
    let shown = found.map(|(id, permission)| json!({"permission": permission, "user": {"uuid": id, "type": "user"}}));
    answered(&double, json!({"values": shown.collect::<Value>()}))
}

fn is_data_center(dialect: &Dialect) -> bool {
    dialect.list.contains("pull-requests")
}

fn answered(double: &Double, told: Value) -> Response {
    match double.shared.world().faults.pop_front() {
        Some(Fault::Status(status)) => StatusCode::from_u16(status).unwrap().into_response(),
        _ => Json(told).into_response(),
    }
}

/// Where comments are changed.
fn said(dialect: Dialect) -> Router<Double> {
    let list = dialect.list.replace("%2F", "/");
    match list.strip_suffix("/pulls") {
        Some(base) => Router::new().route(&format!("{base}/issues/comments/{{id}}"), any(edit)),
        None => Router::new()
            .route(&format!("{list}/{{number}}/notes/{{id}}"), any(edit_below))
            .route(&format!("{list}/{{number}}/comments/{{id}}"), any(edit_below))
            .route(&format!("{list}/{{number}}/threads/{{id}}"), get(edit_below))
            .route(&format!("{list}/{{number}}/threads/{{id}}/comments/1"), patch(edit_first)),
    }
}

async fn edit_below(double: State<Double>, Path((_, id)): Path<(u64, u64)>, body: Option<Json<Value>>) -> Response {
    edit(double, Path(id), body).await
}

/// The comment that begins a thread has no more than a text.
async fn edit_first(double: State<Double>, Path((_, id)): Path<(u64, u64)>, Json(body): Json<Value>) -> Response {
    edit(double, Path(id), Some(Json(json!({"comments": [body]})))).await
}

/// A comment, or what it says from now on.
async fn edit(State(double): State<Double>, Path(id): Path<u64>, body: Option<Json<Value>>) -> Response {
    let mut world = double.shared.world();
    let all = world.pulls.iter_mut().filter_map(|pull| pull["comments"].as_array_mut()).flatten();
    let Some(comment) = all.into_iter().find(|comment| comment["id"] == id) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let Some(Json(body)) = body else { return Json(double.said(comment)).into_response() };
    let is_data_center = is_data_center(&double.dialect);
    if comment["foreign"] == true {
        let why = json!({"errors": [{"exceptionName": "com.atlassian.bitbucket.AuthorisationException"}]});
        let status = if is_data_center { StatusCode::UNAUTHORIZED } else { StatusCode::FORBIDDEN };
        return (status, Json(why)).into_response();
    }
    // Somebody is faster.
    if let Some(times) = comment["moves"].as_u64().filter(|times| *times > 0) {
        comment["moves"] = json!(times - 1);
        comment["version"] = json!(comment["version"].as_u64().unwrap() + 1);
    }
    if is_data_center && body["version"] != comment["version"] {
        return StatusCode::CONFLICT.into_response();
    }
    comment["body"] = body.pointer(double.dialect.text).cloned().unwrap();
    comment["version"] = json!(comment["version"].as_u64().unwrap_or_default() + 1);
    Json(double.said(comment)).into_response()
}

impl Double {
    /// What is shown of a comment.
    fn said(&self, comment: &Value) -> Value {
        let (mut shown, text) = (json!({"id": comment["id"], "version": comment["version"]}), &comment["body"]);
        match self.dialect.text {
            "/content/raw" => shown["content"] = json!({"raw": text}),
            "/comments/0/content" => {
                shown["comments"] = json!([{"id": 1, "content": text, "isDeleted": comment["gone"] == true}]);
            }
            field => shown[&field[1..]] = text.clone(),
        }
        shown
    }
}

/// The open ones; those of the branches that are asked for, where the host filters. Gitea does not.
async fn list(State(double): State<Double>, Query(query): Query<BTreeMap<String, String>>) -> Response {
    if double.shared.world().faults.pop_front_if(|fault| matches!(fault, Fault::Status(404))).is_some() {
        return StatusCode::NOT_FOUND.into_response();
    }
    // the list of all
    let by_base = query.contains_key("$top")
        || query.contains_key("per_page")
        || query.contains_key("sort")
        || query.get("direction").is_some_and(|it| it == "INCOMING");
    let asked: String = query.values().cloned().collect::<Vec<_>>().join(" ");
    let world = double.shared.world();
    let open = world.pulls.iter().filter(|pull| pull["state"] == "open");
    let names = |pull: &Value, field: &str| asked.contains(pull[field].as_str().unwrap());
    let is_meant = |pull: &&Value| {
        let of_branch = if by_base { names(pull, "base") } else { names(pull, "head") };
        double.dialect.list.starts_with("/api/v1") || of_branch
    };
    let meant: Vec<Value> = open.filter(is_meant).map(double.dialect.shown).collect();
    paged(double.dialect.kind, world.most, &query, &meant)
}

async fn create(State(double): State<Double>, Json(body): Json<Value>) -> Response {
    let Dialect { fields, prefix, exists, absent, longest, shown, .. } = double.dialect;
    let mut world = double.shared.world();
    let fault = world.faults.pop_front();
    if let Some(Fault::Status(status)) = fault {
        return StatusCode::from_u16(status).unwrap().into_response();
    }
    let text = |field: &str| body.pointer(field).and_then(Value::as_str).unwrap().to_owned();
    let [head, base, title, told] = fields.map(text);
    let (head, base) = (head.strip_prefix(prefix).unwrap(), base.strip_prefix(prefix).unwrap());
    if told.encode_utf16().count() > longest {
        return StatusCode::BAD_REQUEST.into_response();
    }
    if !head.starts_with("launchway/rollback-") {
        return StatusCode::from_u16(absent).unwrap().into_response();
    }
    let is_there = |pull: &Value| pull["state"] == "open" && pull["head"] == head && pull["base"] == base;
    if world.pulls.iter().any(is_there) {
        return (StatusCode::from_u16(exists.0).unwrap(), Json(json!({"message": exists.1}))).into_response();
    }
    let number = world.pulls.len() + 1;
    let pull = json!({
        "number": number, "head": head, "base": base, "title": title, "body": told, "state": "open", "version": 0,
        "url": format!("https://host.example/pulls/{number}"), "labels": body.get("labels").cloned(),
    });
    world.pulls.push(pull.clone());
    match fault {
        Some(Fault::Lost) => StatusCode::BAD_GATEWAY.into_response(),
        _ => (StatusCode::CREATED, Json(shown(&pull))).into_response(),
    }
}

async fn one(
    State(double): State<Double>,
    Path(number): Path<usize>,
    method: axum::http::Method,
    body: Option<Json<Value>>,
) -> Response {
    let mut world = double.shared.world();
    let Some(pull) = world.pulls.get_mut(number - 1) else { return StatusCode::NOT_FOUND.into_response() };
    if let Some(Json(body)) = body.filter(|_| method != axum::http::Method::GET) {
        if is_data_center(&double.dialect)
            && (body["version"] != pull["version"] || body["reviewers"][0]["user"]["name"] != "ann")
        {
            return StatusCode::CONFLICT.into_response();
        }
        let closes = [("state", "closed"), ("state_event", "close"), ("status", "abandoned")];
        if closes.iter().any(|(field, word)| body[*field] == *word) {
            pull["state"] = json!("closed");
            return Json((double.dialect.shown)(pull)).into_response();
        }
        let [.., title, text] = double.dialect.fields;
        pull["title"] = body.pointer(title).cloned().unwrap();
        pull["body"] = body.pointer(text).cloned().unwrap();
        pull["version"] = json!(pull["version"].as_u64().unwrap() + 1);
    }
    Json((double.dialect.shown)(pull)).into_response()
}

/// What is asked for below a pull request: its comments, or to be declined.
async fn beside(
    State(double): State<Double>,
    Path((number, what)): Path<(usize, String)>,
    Query(query): Query<BTreeMap<String, String>>,
    method: axum::http::Method,
    body: Option<Json<Value>>,
) -> Response {
    if what != "decline" {
        return comments(State(double), Path(number), method, body).await;
    }
    let mut world = double.shared.world();
    let pull = &mut world.pulls[number - 1];
    if is_data_center(&double.dialect)
        && query.get("version").map(String::as_str) != Some(&*pull["version"].to_string())
    {
        return StatusCode::CONFLICT.into_response();
    }
    pull["state"] = json!("closed");
    Json((double.dialect.shown)(pull)).into_response()
}

async fn comments(
    State(double): State<Double>,
    Path(number): Path<usize>,
    method: axum::http::Method,
    body: Option<Json<Value>>,
) -> Response {
    let mut world = double.shared.world();
    let fault = (method != axum::http::Method::GET).then(|| world.faults.pop_front()).flatten();
    if let Some(Fault::Status(status)) = fault {
        return StatusCode::from_u16(status).unwrap().into_response();
    }
    let pull = &mut world.pulls[number - 1];
    if pull["comments"].is_null() {
        pull["comments"] = json!([]);
    }
    let all = pull["comments"].as_array_mut().unwrap();
    if let Some(Json(body)) = body.filter(|_| method != axum::http::Method::GET) {
        let text = body.pointer(double.dialect.text).cloned().unwrap();
        let made = json!({"id": 70 + all.len(), "body": text, "version": 0});
        all.push(made.clone());
        return match fault {
            Some(Fault::Lost) => StatusCode::BAD_GATEWAY.into_response(),
            _ => (StatusCode::CREATED, Json(double.said(&made))).into_response(),
        };
    }
    let shown = all.iter().map(|comment| double.said(comment));
    let shown: Vec<Value> = match is_data_center(&double.dialect) {
        // among all that happened, the newest first
        true => [json!({"id": 1, "action": "OPENED"})]
            .into_iter()
            .chain(shown.map(|comment| json!({"action": "COMMENTED", "comment": comment})))
            .rev()
            .collect(),
        false => shown.collect(),
    };
    let is_plain = double.dialect.list.ends_with("/pulls") || double.dialect.list.ends_with("/merge_requests");
    Json(if is_plain { json!(shown) } else { json!({"values": shown, "value": shown}) }).into_response()
}

async fn labels(State(double): State<Double>, Query(query): Query<BTreeMap<String, String>>) -> Response {
    let world = double.shared.world();
    paged(double.dialect.kind, world.most, &query, &world.labels)
}

/// Gitea takes one of a name that there is.
async fn make_label(State(double): State<Double>, Json(body): Json<Value>) -> Response {
    let mut world = double.shared.world();
    let made = json!({"id": world.labels.len() + 1, "name": body["name"]});
    world.labels.push(made.clone());
    (StatusCode::CREATED, Json(made)).into_response()
}

async fn label(State(double): State<Double>, Path(number): Path<usize>, Json(body): Json<Value>) -> Json<Value> {
    double.shared.world().pulls[number - 1]["labels"] = body["labels"].clone();
    Json(json!([]))
}

fn wanted(body: &str) -> PullRequest {
    PullRequest {
        head: "launchway/rollback-web-1".to_owned(),
        base: "main".to_owned(),
        title: "Roll back web".to_owned(),
        body: body.to_owned(),
    }
}

#[tokio::test]
async fn there_is_one_for_a_branch_however_often_it_is_asked_for() {
    for kind in KINDS {
        let (host, opens, _folder) = start(kind).await;
        host.fail_next([Fault::Status(503), Fault::Lost]);
        for _ in 0..2 {
            let failure = opens.open_or_update(&wanted("first")).await.unwrap_err();
            assert_eq!(failure.class(), Class::Transient, "{kind:?}: {failure:?}");
        }
        let made = opens.open_or_update(&wanted("second")).await.unwrap();
        assert_eq!((made.number, made.state), (1, PullRequestState::Open), "{kind:?}");
        assert!(made.url.starts_with("http") && made.url.ends_with('1'), "{kind:?}: {}", made.url);
        let world = host.shared.world();
        assert_eq!((world.pulls.len(), &world.pulls[0]["body"]), (1, &json!("second")), "{kind:?}");
    }
}

#[tokio::test]
async fn whether_they_may_be_opened_is_tried_out_and_opens_none() {
    for kind in KINDS {
        let (host, opens, _folder) = start(kind).await;
        opens.try_out("main").await.unwrap();
        for (status, class) in [(403, Class::Stalled), (401, Class::Stalled), (503, Class::Transient)] {
            host.fail_next([Fault::Status(status)]);
            let failure = opens.try_out("main").await.unwrap_err();
            assert_eq!(failure.class(), class, "{kind:?}: {failure:?}");
        }
        assert!(host.shared.world().pulls.is_empty(), "{kind:?}");
    }
}

#[tokio::test]
async fn what_became_of_it_is_heard_and_another_one_follows_a_closed_one() {
    for kind in KINDS {
        let (host, opens, folder) = start(kind).await;
        opens.open_or_update(&wanted("first")).await.unwrap();
        let labels = host.shared.world().pulls[0]["labels"].clone();
        let has_labels = !matches!(kind, ForgeKind::Bitbucket | ForgeKind::BitbucketDataCenter);
        assert_eq!(!labels.is_null(), has_labels, "{kind:?}: {labels}");
        assert_eq!(opens.read(1).await.unwrap().unwrap().base.as_deref(), Some("main"), "{kind:?}");
        for (state, expected) in [("closed", PullRequestState::Closed), ("merged", PullRequestState::Merged)] {
            host.shared.world().pulls[0]["state"] = json!(state);
            assert_eq!(opens.read(1).await.unwrap().unwrap().state, expected, "{kind:?}");
        }
        assert_eq!(opens.read(2).await.unwrap(), None, "{kind:?}");
        assert_eq!(opens.open_or_update(&wanted(&"long ".repeat(20_000))).await.unwrap().number, 2, "{kind:?}");
        std::fs::write(folder.path().join("token"), "another").unwrap();
        let failure = opens.read(1).await.unwrap_err();
        assert_eq!(failure.class(), Class::Stalled, "{kind:?}");
        assert!(!failure.one_line().contains("another") && !failure.one_line().contains(TOKEN));
    }
}

#[tokio::test]
async fn one_that_is_not_needed_is_closed_with_a_comment_that_is_there_once() {
    let why = "`1234567` says something else than what failed.";
    for kind in KINDS {
        let (host, opens, _folder) = start(kind).await;
        opens.open_or_update(&wanted("first")).await.unwrap();
        host.fail_next([Fault::Status(503), Fault::Lost]);
        for _ in 0..2 {
            let failure = opens.close(1, why).await.unwrap_err();
            assert_eq!(failure.class(), Class::Transient, "{kind:?}: {failure:?}");
            assert_eq!(opens.read(1).await.unwrap().unwrap().state, PullRequestState::Open, "{kind:?}");
        }
        for _ in 0..2 {
            opens.close(1, why).await.unwrap();
            assert_eq!(opens.read(1).await.unwrap().unwrap().state, PullRequestState::Closed, "{kind:?}");
        }
        let comments = host.shared.world().pulls[0]["comments"].clone();
        assert_eq!((comments.as_array().map(Vec::len), &comments[0]["body"]), (Some(1), &json!(why)), "{kind:?}");
        // One that a person has closed or merged, and one that is gone, are left as they are.
        opens.close(9, why).await.unwrap();
        // A token that may not comment closes it all the same.
        assert_eq!(opens.open_or_update(&wanted("second")).await.unwrap().number, 2, "{kind:?}");
        host.fail_next([Fault::Status(403)]);
        opens.close(2, why).await.unwrap();
        assert_eq!(opens.read(2).await.unwrap().unwrap().state, PullRequestState::Closed, "{kind:?}");
    }
}

#[tokio::test]
async fn who_may_write_is_what_the_host_tells_and_nothing_else_counts() {
    let author = |login: &str, id: u64| Author { login: login.to_owned(), id: id.to_string() };
    for kind in KINDS {
        let (host, tells, _folder) = start(kind).await;
        let ann = author("ann", 3);
        if kind == ForgeKind::Azure {
            let failure = tells.may_write(&ann).await.unwrap_err();
            assert_eq!(failure.class(), Class::Stalled, "{kind:?}: it is not known how such a host tells");
            continue;
        }
        for (author, expected) in [
            (ann.clone(), true),
            (author("root", 1), true),
            (author("ben", 4), false),
            (author("none", 5), false),
            (author("cleo", 6), false),
            // Somebody else goes by that name now.
            (author("ann", 4), false),
        ] {
            assert_eq!(tells.may_write(&author).await.unwrap(), expected, "{kind:?}: {author:?}");
        }
        for (status, class) in [(403, Class::Stalled), (401, Class::Stalled), (503, Class::Transient)] {
            host.fail_next([Fault::Status(status)]);
            let failure = tells.may_write(&ann).await.unwrap_err();
            assert_eq!(failure.class(), class, "{kind:?} {status}: {failure:?}");
            assert!(status != 403 || failure.one_line().contains("ask what people may do"), "{failure:?}");
        }
    }
}

/// Those whose pull requests are previewed.
const PREVIEWED: [(ForgeKind, &str); 6] = [
    (ForgeKind::Gitea, "refs/pull/1/head"),
    (ForgeKind::Github, "refs/pull/1/head"),
    (ForgeKind::Gitlab, "refs/merge-requests/1/head"),
    (ForgeKind::Bitbucket, "refs/heads/launchway/rollback-web-1"),
    (ForgeKind::BitbucketDataCenter, "refs/pull-requests/1/from"),
    (ForgeKind::Azure, "refs/heads/launchway/rollback-web-1"),
];

#[tokio::test]
async fn open_ones_are_listed_with_where_their_heads_are() {
    for (kind, reference) in PREVIEWED {
        let (host, opens, _folder) = start(kind).await;
        opens.open_or_update(&wanted("first")).await.unwrap();
        let listed = opens.open("main").await.unwrap();
        let expected = OpenPullRequest {
            number: 1,
            head: if kind == ForgeKind::Bitbucket { &crate::COMMIT[..12] } else { crate::COMMIT }.into(),
            branch: "launchway/rollback-web-1".to_owned(),
            is_fork: false,
            reference: Some(reference.to_owned()),
        };
        assert_eq!(listed, std::slice::from_ref(&expected), "{kind:?}");
        assert_eq!(opens.open("next").await.unwrap(), [], "{kind:?}");
        host.shared.world().faults.push_back(Fault::Status(404));
        let failure = opens.open("main").await.unwrap_err();
        assert_eq!(failure.class(), Class::Stalled, "{kind:?}: a repository that is hidden has no empty list");
        host.shared.world().pulls[0]["fork"] = json!(true);
        // A branch of that name is here too, and another one.
        let reference = expected.reference.clone().filter(|reference| !reference.starts_with("refs/heads/"));
        let forked = OpenPullRequest { is_fork: true, reference, ..expected };
        assert_eq!(opens.open("main").await.unwrap(), [forked], "{kind:?}");
    }
}

/// Those that are open for long are read too, each once, and not without end.
#[tokio::test]
async fn open_pull_requests_are_read_page_by_page() {
    for (kind, _) in PREVIEWED {
        let (host, opens, _folder) = start(kind).await;
        opens.open_or_update(&wanted("first")).await.unwrap();
        for (count, expected) in [(50, 50), (51, 51), (120, 120), (400, 300)] {
            {
                let mut world = host.shared.world();
                let first = world.pulls[0].clone();
                let numbered = |number: usize| {
                    let mut pull = first.clone();
                    pull["number"] = json!(number);
                    pull
                };
                world.pulls = (1..=count).map(numbered).collect();
            }
            let numbers: Vec<u64> = opens.open("main").await.unwrap().iter().map(|pull| pull.number).collect();
            assert_eq!(numbers, (1..=expected).collect::<Vec<u64>>(), "{kind:?} of {count}");
        }
    }
}

/// Whoever administers a host may have it give less of a page than is asked for. Azure DevOps has no such limit.
#[tokio::test]
async fn a_host_that_gives_less_of_a_page_hides_none() {
    for (kind, _) in PREVIEWED.into_iter().filter(|(kind, _)| *kind != ForgeKind::Azure) {
        let (host, opens, _folder) = start(kind).await;
        opens.open_or_update(&wanted("first")).await.unwrap();
        {
            let mut world = host.shared.world();
            let first = world.pulls[0].clone();
            let numbered = |number: usize| {
                let mut pull = first.clone();
                pull["number"] = json!(number);
                pull["head"] = json!(format!("launchway/rollback-web-{}", 28 - number));
                pull
            };
            world.pulls = (1..=27).map(numbered).collect();
            world.most = 10;
        }
        let numbers: Vec<u64> = opens.open("main").await.unwrap().iter().map(|pull| pull.number).collect();
        assert_eq!(numbers, (1..=27).collect::<Vec<u64>>(), "{kind:?}");
        // On the last page is the one of the branch.
        assert_eq!(opens.open_or_update(&wanted("second")).await.unwrap().number, 27, "{kind:?}");
        assert_eq!(host.shared.world().pulls.len(), 27, "{kind:?}");
    }
}

#[tokio::test]
async fn a_label_that_is_on_a_later_page_is_not_made_again() {
    let (host, opens, _folder) = start(ForgeKind::Gitea).await;
    {
        let mut world = host.shared.world();
        let name = |number: usize| if number == 27 { "rollback".to_owned() } else { format!("label-{number}") };
        world.labels = (1..=27).map(|number| json!({"id": number, "name": name(number)})).collect();
        world.most = 10;
    }
    opens.open_or_update(&wanted("first")).await.unwrap();
    let world = host.shared.world();
    assert_eq!((world.labels.len(), &world.pulls[0]["labels"]), (27, &json!([27])));
}

#[tokio::test]
async fn one_comment_says_the_newest_and_nobody_elses_is_changed() {
    const MARKER: &str = "launchway/plan 1a2b";
    for (kind, _) in PREVIEWED {
        let (host, says, _folder) = start(kind).await;
        let [before, behind] = dialect(kind).hidden;
        let text = |what: &str| format!("{before}{MARKER}{behind}\n{what}");
        let forged = json!({"id": 7, "body": text("mine"), "foreign": true, "version": 0});
        says.open_or_update(&wanted("first")).await.unwrap();
        host.shared.world().pulls[0]["comments"] =
            json!([{"id": 6, "body": "looks good", "version": 0}, forged.clone()]);
        let said = || host.shared.world().pulls[0]["comments"].clone();
        host.fail_next([Fault::Lost]);
        let failure = says.say(1, None, None, MARKER, "first").await.unwrap_err();
        assert_eq!(failure.class(), Class::Transient, "{kind:?}: {failure:?}");
        let id = says.say(1, None, None, MARKER, "second").await.unwrap();
        assert_eq!(says.say(1, Some(id), None, MARKER, "third").await.unwrap(), id, "{kind:?}");
        let all = said();
        assert_eq!(
            (all.as_array().map(Vec::len), &all[1], &all[2]["body"]),
            (Some(3), &forged, &json!(text("third"))),
            "{kind:?}"
        );

        host.shared.world().pulls[0]["comments"].as_array_mut().unwrap().pop();
        let again = says.say(1, Some(id), None, MARKER, "fourth").await.unwrap();
        let all = said();
        assert_eq!(
            (all.as_array().map(Vec::len), &all[2]["body"], &all[2]["id"]),
            (Some(3), &json!(text("fourth")), &json!(again)),
            "{kind:?}"
        );
    }
}

#[tokio::test]
async fn a_comment_that_somebody_else_changes_meanwhile_is_read_again() {
    let (host, says, _folder) = start(ForgeKind::BitbucketDataCenter).await;
    says.open_or_update(&wanted("first")).await.unwrap();
    let id = says.say(1, None, None, "marker", "first").await.unwrap();
    let moves = |times: usize| host.shared.world().pulls[0]["comments"][0]["moves"] = json!(times);
    moves(2);
    assert_eq!(says.say(1, Some(id), None, "marker", "second").await.unwrap(), id);
    assert_eq!(host.shared.world().pulls[0]["comments"][0]["body"], "[//]: # (marker)\nsecond");
    moves(9);
    let failure = says.say(1, Some(id), None, "marker", "third").await.unwrap_err();
    assert_eq!(failure.class(), Class::Transient, "{failure:?}");
    assert_eq!(host.shared.world().pulls[0]["comments"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn what_a_person_has_taken_back_is_said_anew() {
    let (host, says, _folder) = start(ForgeKind::Azure).await;
    says.open_or_update(&wanted("first")).await.unwrap();
    let id = says.say(1, None, None, "marker", "first").await.unwrap();
    host.shared.world().pulls[0]["comments"][0]["gone"] = json!(true);
    let another = says.say(1, Some(id), None, "marker", "second").await.unwrap();
    let comments = host.shared.world().pulls[0]["comments"].clone();
    assert!(another != id && comments[0]["body"] == "[//]: # (marker)\nfirst", "{comments}");
    assert_eq!(comments[1]["body"], "[//]: # (marker)\nsecond");
}
