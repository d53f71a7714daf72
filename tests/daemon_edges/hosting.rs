//! A small host of Git: pull requests, comments, statuses, and what people may do, in the words of one host or another.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, patch, post, put};
use axum::{Json, Router};
use launchway::clock::rfc3339;
use launchway::model::time::Timestamp;
use serde_json::{Value, json};

use crate::daemon_edges::triggers::sign;
use crate::support::daemon::{World, private, repository};

/// Whose words it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Gitea,
    DataCenter,
    Cloud,
}

impl Kind {
    pub(crate) const ALL: [Kind; 3] = [Kind::Gitea, Kind::DataCenter, Kind::Cloud];

    /// As configurations name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Gitea => "gitea",
            Kind::DataCenter => "bitbucket-data-center",
            Kind::Cloud => "bitbucket",
        }
    }

    /// Its words for a commit on which all went well, and for one that is broken.
    pub(crate) fn states(self) -> [&'static str; 2] {
        match self {
            Kind::Gitea => ["success", "error"],
            Kind::DataCenter | Kind::Cloud => ["SUCCESSFUL", "FAILED"],
        }
    }

    /// Something that nobody sees, hidden in a comment.
    pub(crate) fn hidden(self, what: &str) -> String {
        match self {
            Kind::Gitea => format!("<!-- {what}"),
            Kind::DataCenter | Kind::Cloud => format!("[//]: # ({what}"),
        }
    }

    /// Where the repository has what a pull request brings.
    fn reference(self, number: u64) -> String {
        match self {
            Kind::Gitea => format!("refs/pull/{number}/head"),
            Kind::DataCenter => format!("refs/pull-requests/{number}/from"),
            Kind::Cloud => format!("refs/heads/topic-{number}"),
        }
    }

    /// Whether the repository itself has what forks bring.
    pub(crate) fn shows_forks(self) -> bool {
        self != Kind::Cloud
    }

    /// As whom it knows somebody.
    pub(crate) fn login(self, name: &str) -> String {
        match self {
            Kind::Gitea | Kind::DataCenter => name.to_owned(),
            Kind::Cloud => format!("{name}-{}", &uuid(name)[1..9]),
        }
    }

    /// Where the text of a comment is.
    fn text(self, comment: &Value) -> Value {
        match self {
            Kind::Gitea => comment["body"].clone(),
            Kind::DataCenter => comment["text"].clone(),
            Kind::Cloud => comment["content"]["raw"].clone(),
        }
    }

    /// What is shown of a comment.
    fn comment(self, said: &Said) -> Value {
        match self {
            Kind::Gitea => json!({"id": said.id, "body": said.text}),
            Kind::DataCenter => json!({"id": said.id, "text": said.text, "version": said.version}),
            Kind::Cloud => json!({"id": said.id, "content": {"raw": said.text}}),
        }
    }

    /// What is shown of a pull request.
    fn pull(self, pull: &Pull) -> Value {
        let (number, head, origin) = (pull.number, &pull.head, if pull.is_fork { 2 } else { 1 });
        match self {
            Kind::Gitea => json!({
                "number": number, "html_url": format!("https://git.example/pulls/{number}"),
                "state": if pull.is_closed { "closed" } else { "open" },
                "head": {"ref": "topic", "sha": head, "repo_id": origin}, "base": {"ref": "main", "repo_id": 1},
            }),
            Kind::DataCenter => {
                let side = |branch: &str, commit: &str, repository: u64| {
                    let (id, repository) =
                        (format!("refs/heads/{branch}"), json!({"id": repository, "slug": "origin"}));
                    json!({"id": id, "displayId": branch, "latestCommit": commit, "repository": repository})
                };
                json!({
                    "id": number, "version": 3, "state": "OPEN", "fromRef": side("topic", head, origin),
                    "toRef": side("main", "1111111111111111111111111111111111111111", 1),
                })
            }
            Kind::Cloud => json!({
                "id": number, "state": "OPEN", "destination": {"branch": {"name": "main"}},
                "source": {
                    "branch": {"name": format!("topic-{number}")}, "commit": {"hash": head[..12]},
                    "repository": {"full_name": if pull.is_fork { "ben/origin" } else { "moody/origin" }},
                },
            }),
        }
    }

    /// A list as it is answered.
    fn list(self, all: Vec<Value>) -> Json<Value> {
        Json(match self {
            Kind::Gitea => Value::Array(all),
            Kind::DataCenter => json!({"values": all, "isLastPage": true}),
            Kind::Cloud => json!({"values": all, "pagelen": 50}),
        })
    }

    /// How it tells of a new comment on pull request 7: the headers and the body.
    pub(crate) fn call(self, delivery: &str, comment: &Written) -> (Vec<(&'static str, String)>, Vec<u8>) {
        let Written { id, login, text, at, repository, .. } = comment;
        let person = if *login == "ann" { 3 } else { 4 };
        let body = match self {
            Kind::Gitea => {
                let user = json!({"id": person, "login": login});
                let action = if comment.is_edited { "edited" } else { "created" };
                json!({
                    "action": action, "is_pull": true, "issue": {"number": 7, "pull_request": {"merged": false}},
                    "comment": {"id": id, "body": text, "user": user, "created_at": rfc3339(*at)},
                    "repository": {"full_name": repository}, "sender": user,
                })
            }
            Kind::DataCenter => {
                let (project, slug) = repository.split_once('/').unwrap();
                let user = json!({"id": person, "name": login, "slug": login, "active": true, "type": "NORMAL"});
                let repository = json!({"id": 1, "slug": slug, "project": {"key": project.to_uppercase()}});
                json!({
                    "eventKey": event(self, comment), "date": "2026-11-26T13:00:00+0100", "actor": user,
                    "pullRequest": {"id": 7, "version": 3, "toRef": {"id": "refs/heads/main", "repository": repository}},
                    "comment": {"id": id, "version": 0, "text": text, "author": user, "createdDate": at.0},
                })
            }
            Kind::Cloud => {
                let user = json!({"nickname": login, "uuid": uuid(login), "type": "user", "display_name": "A Person"});
                json!({
                    "actor": user, "repository": {"full_name": repository, "type": "repository"},
                    "pullrequest": {"id": 7, "state": "OPEN"},
                    "comment": {"id": id, "content": {"raw": text}, "user": user, "created_on": rfc3339(*at)},
                })
            }
        };
        let body = serde_json::to_vec(&body).unwrap();
        let words = match self {
            Kind::Gitea => ["x-gitea-event", "x-gitea-delivery", "x-gitea-signature", ""],
            Kind::DataCenter => ["x-event-key", "x-request-id", "x-hub-signature", "sha256="],
            Kind::Cloud => ["x-event-key", "x-request-uuid", "x-hub-signature", "sha256="],
        };
        let mut headers = vec![
            ("content-type", "application/json".to_owned()),
            (words[0], event(self, comment).to_owned()),
            (words[1], delivery.to_owned()),
            (words[2], format!("{}{}", words[3], sign(&body))),
        ];
        if self == Kind::Cloud {
            headers.push(("x-hook-uuid", "{1c1a9ae1-9d4d-4f0c-a7bc-000000000001}".to_owned()));
        }
        (headers, body)
    }
}

/// Bitbucket Cloud's id of somebody.
fn uuid(name: &str) -> String {
    let digits: String = name.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("{{{digits:0<8}-8120-4f0c-a7bc-87800b9d6f70}}")
}

/// Its name for a call about a comment.
pub(crate) fn event(kind: Kind, comment: &Written) -> &'static str {
    match kind {
        Kind::Gitea => "issue_comment",
        Kind::DataCenter if comment.is_edited => "pr:comment:edited",
        Kind::DataCenter => "pr:comment:added",
        Kind::Cloud if comment.is_edited => "pullrequest:comment_updated",
        Kind::Cloud => "pullrequest:comment_created",
    }
}

/// A comment that somebody has written.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) id: u64,
    /// `ann`, who may write, or somebody else.
    pub(crate) login: &'static str,
    pub(crate) text: String,
    pub(crate) at: Timestamp,
    pub(crate) is_edited: bool,
    pub(crate) repository: &'static str,
}

/// A pull request, from the branch `topic`.
#[derive(Clone, Debug)]
pub(crate) struct Pull {
    pub(crate) number: u64,
    pub(crate) head: String,
    pub(crate) is_fork: bool,
    /// Whether a person has closed it.
    is_closed: bool,
}

/// A comment that is there.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    id: u64,
    /// The number of its pull request.
    pub(crate) on: u64,
    pub(crate) text: String,
    version: u64,
}

/// What the host has.
#[derive(Default)]
pub(crate) struct Hosted {
    pub(crate) pulls: Vec<Pull>,
    pub(crate) comments: Vec<Said>,
    /// Commits with what was written on them.
    statuses: Vec<(String, Value)>,
    pub(crate) writes: usize,
    /// Whether it says nothing of pull requests.
    pub(crate) is_away: bool,
    /// Whether it knows nothing of pull requests, as where a token may not see the repository any more.
    pub(crate) is_hidden: bool,
    /// Whether it says nothing of comments.
    pub(crate) is_mute: bool,
    /// What it answers in place of what people may do.
    pub(crate) tells_no_rights: Option<u16>,
    /// How often it was asked for that.
    pub(crate) asked: usize,
}

#[derive(Clone)]
struct Shared {
    kind: Kind,
    hosted: Arc<Mutex<Hosted>>,
}

impl Shared {
    fn hosted(&self) -> MutexGuard<'_, Hosted> {
        self.hosted.lock().unwrap()
    }
}

/// A host with pull requests; it ends when dropped.
pub(crate) struct Hosting {
    pub(crate) kind: Kind,
    pub(crate) address: SocketAddr,
    shared: Shared,
    _runtime: tokio::runtime::Runtime,
}

impl Hosting {
    pub(crate) fn start(kind: Kind) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Shared { kind, hosted: Arc::default() };
        let routes = match kind {
            Kind::Gitea => gitea(),
            Kind::DataCenter => data_center(),
            Kind::Cloud => cloud(),
        };
        let app = routes.with_state(shared.clone());
        runtime.spawn(async move { axum::serve(listener, app).await });
        Self { kind, address, shared, _runtime: runtime }
    }

    pub(crate) fn hosted(&self) -> MutexGuard<'_, Hosted> {
        self.shared.hosted()
    }

    /// The configuration of a repository on it, whose address is `url`.
    pub(crate) fn configure(&self, world: &World, url: &str, more: &[&str]) {
        let token = world.git.path("token");
        private(&token, "d8a1c2e3f4051627384950617283940516273849\n");
        let forge = format!("forge: {{kind: {}, url: 'http://{}'}}", self.kind.name(), self.address);
        let credentials = format!("credentials: {{tokenFile: {}}}", token.display());
        let more = [&[&*forge, &*credentials, "notes: true"], more].concat();
        world.configure(&repository("shop", url, &more));
    }

    /// A pull request, or what one brings now, which the branch `topic` of the work tree has.
    pub(crate) fn open(&self, world: &World, number: u64, is_fork: bool) -> String {
        let head = world.git.head();
        world.git.git(&["push", "-q", "-f", "origin", &format!("topic:{}", self.kind.reference(number))]);
        let mut hosted = self.hosted();
        hosted.pulls.retain(|pull| pull.number != number);
        hosted.pulls.push(Pull { number, head: head.clone(), is_fork, is_closed: false });
        head
    }

    /// A pull request is closed.
    pub(crate) fn close(&self, number: u64) {
        let mut hosted = self.hosted();
        hosted.pulls.iter_mut().filter(|pull| pull.number == number).for_each(|pull| pull.is_closed = true);
    }

    /// The only comment on a pull request.
    pub(crate) fn comment(&self, number: u64) -> String {
        let hosted = self.hosted();
        let mut found = hosted.comments.iter().filter(|said| said.on == number);
        let text = found.next().map(|said| said.text.clone());
        assert!(found.next().is_none(), "two comments: {:?}", hosted.comments);
        text.unwrap_or_default()
    }

    /// The states that were written on a commit last, by context.
    pub(crate) fn statuses(&self, commit: &str) -> BTreeMap<String, String> {
        let hosted = self.hosted();
        let of_commit = hosted.statuses.iter().filter(|(of, _)| of == commit).map(|(_, status)| status);
        let text = |status: &Value, field: &str| status[field].as_str().unwrap_or_default().to_owned();
        of_commit.map(|status| (text(status, "context"), text(status, "state"))).collect()
    }

    /// State and description of the last status `launchway/plan` of a commit.
    pub(crate) fn plan_status(&self, commit: &str) -> String {
        let hosted = self.hosted();
        let of = |row: &&(String, Value)| row.0 == commit && is_plan(&row.1);
        let found = hosted.statuses.iter().rev().find(of);
        let text = |field: &str| found.map(|(_, row)| row[field].as_str().unwrap().to_owned()).unwrap_or_default();
        format!("{} {}", text("state"), text("description"))
    }
}

fn is_plan(status: &Value) -> bool {
    status["context"] == "launchway/plan" || status["key"] == "launchway/plan"
}

fn gitea() -> Router<Shared> {
    let repository = Router::new()
        .route("/pulls", get(pulls))
        .route("/pulls/{number}", get(pull))
        .route("/issues/{number}/comments", get(comments).post(say))
        .route("/issues/comments/{id}", patch(async |shared, Path(id), body| edit(shared, Path((0, id)), body).await))
        .route("/collaborators/{login}/permission", get(permission))
        .route("/commits/{commit}/status", get(async || Json(json!({"statuses": []}))))
        .route("/statuses/{commit}", post(status));
    let code = Router::new()
        .route("/commits/{commit}/status", get(async || Json(json!({"statuses": []}))))
        .route("/statuses/{commit}", post(status));
    Router::new()
        .route("/api/v1/version", get(async || Json(json!({"version": "1.26.4"}))))
        .nest("/api/v1/repos/moody/app", code)
        .nest("/api/v1/repos/moody/origin", repository)
}

fn data_center() -> Router<Shared> {
    let repository = Router::new()
        .route("/pull-requests", get(pulls))
        .route("/pull-requests/{number}/activities", get(activities))
        .route("/pull-requests/{number}/comments", post(say))
        .route("/pull-requests/{number}/comments/{id}", get(comment).put(edit))
        .route("/commits/{commit}/builds", post(status));
    Router::new()
        .route("/rest/build-status/1.0/commits/{commit}", get(async || Json(json!({"values": []}))))
        .route("/rest/api/latest/users", get(users))
        .nest("/rest/api/latest/projects/moody/repos/origin", repository)
}

fn cloud() -> Router<Shared> {
    let repository = Router::new()
        .route("/pullrequests", get(pulls))
        .route("/pullrequests/{number}/comments", get(comments).post(say))
        .route("/pullrequests/{number}/comments/{id}", put(edit))
        .route("/commit/{commit}/statuses", get(async || Json(json!({"values": []}))))
        .route("/commit/{commit}/statuses/build", post(status));
    Router::new()
        .route("/2.0/workspaces/moody/permissions/repositories/origin", get(permissions))
        .nest("/2.0/repositories/moody/origin", repository)
}

async fn pulls(State(shared): State<Shared>) -> Response {
    let hosted = shared.hosted();
    if hosted.is_away {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    if hosted.is_hidden {
        return StatusCode::NOT_FOUND.into_response();
    }
    let open = hosted.pulls.iter().filter(|pull| !pull.is_closed);
    shared.kind.list(open.map(|pull| shared.kind.pull(pull)).collect()).into_response()
}

/// One, also where it is closed.
async fn pull(State(shared): State<Shared>, Path(number): Path<u64>) -> Response {
    let hosted = shared.hosted();
    if hosted.is_away {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let found = hosted.pulls.iter().find(|pull| pull.number == number && !hosted.is_hidden);
    found.map_or(StatusCode::NOT_FOUND.into_response(), |pull| Json(shared.kind.pull(pull)).into_response())
}

/// All that was said on a pull request, in what it is shown in.
fn said(shared: &Shared, number: u64, shown: impl Fn(Value) -> Value) -> Response {
    let hosted = shared.hosted();
    if hosted.is_mute {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let found = hosted.comments.iter().filter(|said| said.on == number);
    shared.kind.list(found.map(|said| shown(shared.kind.comment(said))).collect()).into_response()
}

async fn comments(State(shared): State<Shared>, Path(number): Path<u64>) -> Response {
    said(&shared, number, |comment| comment)
}

async fn activities(State(shared): State<Shared>, Path(number): Path<u64>) -> Response {
    said(&shared, number, |comment| json!({"action": "COMMENTED", "commentAction": "ADDED", "comment": comment}))
}

async fn comment(State(shared): State<Shared>, Path((_, id)): Path<(u64, u64)>) -> Response {
    let hosted = shared.hosted();
    let found = hosted.comments.iter().find(|said| said.id == id);
    found.map_or(StatusCode::NOT_FOUND.into_response(), |said| Json(shared.kind.comment(said)).into_response())
}

/// `ann` may write, `ben` read.
async fn permission(State(shared): State<Shared>, Path(login): Path<String>) -> Response {
    if let Some(refusal) = asked(&shared) {
        return refusal;
    }
    let (id, permission) = match &*login {
        "ann" => (3, "write"),
        "ben" => (4, "read"),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    Json(json!({"permission": permission, "role_name": permission, "user": {"id": id, "login": login}})).into_response()
}

/// The people who may do what is asked for: `ann` may write. What it does not know is left out.
async fn users(State(shared): State<Shared>, Query(query): Query<Value>) -> Response {
    if let Some(refusal) = asked(&shared) {
        return refusal;
    }
    let writes = query["permission.1"] == "REPO_WRITE"
        && query["permission.1.projectKey"] == "moody"
        && query["permission.1.repositorySlug"] == "origin";
    let all: &[(u64, &str)] = if writes { &[(3, "ann")] } else { &[(3, "ann"), (4, "ben")] };
    let filter = query["filter"].as_str().unwrap_or_default();
    let found = all.iter().filter(|(_, name)| name.contains(filter));
    let shown = found.map(|(id, name)| json!({"id": id, "name": name, "slug": name, "active": true, "type": "NORMAL"}));
    shared.kind.list(shown.collect()).into_response()
}

/// What those may do who are asked for: `ann` may write, `ben` read.
async fn permissions(State(shared): State<Shared>, Query(query): Query<Value>) -> Response {
    if let Some(refusal) = asked(&shared) {
        return refusal;
    }
    let all = [("ann", "write"), ("ben", "read")];
    let found = all.iter().filter(|(name, _)| query["q"] == format!("user.uuid=\"{}\"", uuid(name)));
    let shown = found.map(|(name, permission)| json!({"permission": permission, "user": {"uuid": uuid(name)}}));
    shared.kind.list(shown.collect()).into_response()
}

fn asked(shared: &Shared) -> Option<Response> {
    let mut hosted = shared.hosted();
    hosted.asked += 1;
    Some(StatusCode::from_u16(hosted.tells_no_rights?).unwrap().into_response())
}

async fn say(State(shared): State<Shared>, Path(number): Path<u64>, Json(body): Json<Value>) -> Response {
    let mut hosted = shared.hosted();
    hosted.writes += 1;
    let text = shared.kind.text(&body).as_str().unwrap().to_owned();
    let said = Said { id: 100 + hosted.comments.len() as u64, on: number, text, version: 0 };
    hosted.comments.push(said.clone());
    (StatusCode::CREATED, Json(shared.kind.comment(&said))).into_response()
}

async fn edit(State(shared): State<Shared>, Path((_, id)): Path<(u64, u64)>, Json(body): Json<Value>) -> Response {
    let mut hosted = shared.hosted();
    hosted.writes += 1;
    let Some(said) = hosted.comments.iter_mut().find(|said| said.id == id) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if shared.kind == Kind::DataCenter && body["version"] != said.version {
        return StatusCode::CONFLICT.into_response();
    }
    said.text = shared.kind.text(&body).as_str().unwrap().to_owned();
    said.version += 1;
    Json(shared.kind.comment(said)).into_response()
}

async fn status(State(shared): State<Shared>, Path(commit): Path<String>, Json(body): Json<Value>) -> Response {
    let mut hosted = shared.hosted();
    hosted.writes += usize::from(is_plan(&body));
    hosted.statuses.push((commit, body));
    (StatusCode::CREATED, Json(json!({}))).into_response()
}
