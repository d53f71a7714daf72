//! Webhooks: one that leads to the daemon, with its secret and just the events that are read, on each host by its own rules;
//! and none of anybody else's is touched.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use launchway::error::Class;
use launchway::forge::address::ForgeKind;
use launchway::forge::registration::{Beside, Test, WantedWebhook, Webhooks};
use launchway::forge::{azure, bitbucket, gitea, github, gitlab};
use launchway::secret::Secret;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::host::{Fault, Hook, Host, Shared, paged, repository, with_whole_paths};
use crate::{TOKEN, clock, settings};

const KINDS: [ForgeKind; 6] = [
    ForgeKind::Gitea,
    ForgeKind::Github,
    ForgeKind::Gitlab,
    ForgeKind::Bitbucket,
    ForgeKind::BitbucketDataCenter,
    ForgeKind::Azure,
];

const HERE: &str = "https://deploy.example/webhooks/shop";
const SECRET: &str = "0123456789abcdef";
const PROJECT: &str = "10e4f93c-42a6-4d81-9c1f-6a177953f216";
const REPOSITORY: &str = "afdf4653-27ef-4d8f-b253-15c93cc3f931";

/// How a host spells what all of them have.
#[derive(Clone, Copy)]
struct Dialect {
    kind: ForgeKind,
    list: &'static str,
    /// What stands behind an id to have one tried out, or where all are.
    test: &'static str,
    header: &'static str,
    token: &'static str,
    /// Pointers to an address and a secret, as they are sent.
    url: &'static str,
    secret: &'static str,
    /// What it refuses with.
    forbidden: u16,
}

fn dialect(kind: ForgeKind) -> Dialect {
    const BEARER: &str = concat!("Bearer ", "d8a1c2e3f4051627384950617283940516273849");
    let gitea = Dialect {
        kind,
        list: "/api/v1/repos/acme/shop/hooks",
        test: "tests",
        header: "authorization",
        token: concat!("token ", "d8a1c2e3f4051627384950617283940516273849"),
        url: "/config/url",
        secret: "/config/secret",
        forbidden: 403,
    };
    let plain = Dialect { token: BEARER, url: "/url", ..gitea };
    match kind {
        ForgeKind::Github => {
            Dialect { list: "/api/v3/repos/acme/shop/hooks", test: "pings", token: BEARER, forbidden: 404, ..gitea }
        }
        ForgeKind::Gitlab => Dialect {
            list: "/api/v4/projects/acme/shop/hooks",
            test: "test/push_events",
            header: "private-token",
            token: TOKEN,
            secret: "/token",
            ..plain
        },
        ForgeKind::Bitbucket => Dialect { list: "/2.0/repositories/acme/shop/hooks", secret: "/secret", ..plain },
        ForgeKind::BitbucketDataCenter => Dialect {
            list: "/rest/api/latest/projects/ACME/repos/shop/webhooks",
            secret: "/configuration/secret",
            ..plain
        },
        ForgeKind::Azure => Dialect {
            list: "/acme/_apis/hooks/subscriptions",
            token: "Basic OmQ4YTFjMmUzZjQwNTE2MjczODQ5NTA2MTcyODM5NDA1MTYyNzM4NDk=",
            url: "/consumerInputs/url",
            secret: "/consumerInputs/basicAuthPassword",
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

async fn start(kind: ForgeKind) -> (Host, Arc<dyn Webhooks>, TempDir) {
    let (clock, folder) = (clock(), tempfile::tempdir().unwrap());
    let dialect = dialect(kind);
    let routes = move |shared: Shared| {
        let ids = json!({"id": REPOSITORY, "project": {"id": PROJECT}});
        let inner = Router::new()
            .route(dialect.list, any(list_or_create))
            .route(&format!("{}/test", dialect.list), post(connection))
            .route(&format!("{}/{{id}}", dialect.list), any(one))
            .route(&format!("{}/{{id}}/{}", dialect.list, dialect.test), post(try_out))
            .route("/acme/_apis/hooks/testnotifications", post(notification))
            .route("/acme/web/_apis/git/repositories/shop", get(async || Json(ids)))
            .with_state(Double { shared, dialect });
        with_whole_paths(inner)
    };
    let host = Host::start(Arc::clone(&clock), dialect.token, dialect.header, routes).await;
    let (settings, time) = (settings(repository(kind, &host), &folder), clock as _);
    let hooks = match kind {
        ForgeKind::Github => github::webhooks(settings, time).await,
        ForgeKind::Gitlab => gitlab::webhooks(settings, time).await,
        ForgeKind::Bitbucket => bitbucket::cloud_webhooks(settings, time).await,
        ForgeKind::BitbucketDataCenter => bitbucket::data_center_webhooks(settings, time).await,
        ForgeKind::Azure => azure::webhooks(settings, time).await,
        _ => gitea::webhooks(settings, time).await,
    };
    (host, hooks.unwrap(), folder)
}

impl Double {
    fn refusal(&self) -> Option<Response> {
        let mut world = self.shared.world();
        if world.forbids {
            return Some(StatusCode::from_u16(self.dialect.forbidden).unwrap().into_response());
        }
        match world.faults.front().copied() {
            Some(Fault::Status(status)) => {
                world.faults.pop_front();
                Some(StatusCode::from_u16(status).unwrap().into_response())
            }
            _ => None,
        }
    }

    /// What of a webhook is shown: never its secret, but for Data Center.
    fn shown(&self, hook: &Hook) -> Value {
        let mut shown = hook.whole.clone();
        let is_set = hook.secret.is_some();
        match self.dialect.kind {
            ForgeKind::Github if is_set => shown["config"]["secret"] = json!("********"),
            ForgeKind::Azure if is_set => shown["consumerInputs"]["basicAuthPassword"] = json!("********"),
            ForgeKind::Bitbucket => shown["secret_set"] = json!(is_set),
            // It lists the bare event by its plain name.
            ForgeKind::Gitea => {
                let plain = |event: &mut Value| {
                    if *event == "pull_request_only" {
                        *event = json!("pull_request");
                    }
                };
                shown["events"].as_array_mut().into_iter().flatten().for_each(plain);
            }
            ForgeKind::BitbucketDataCenter if is_set => shown["configuration"]["secret"] = json!(hook.secret),
            _ => {}
        }
        match self.dialect.kind {
            ForgeKind::Bitbucket => shown["uuid"] = json!(hook.id),
            ForgeKind::Azure => shown["id"] = json!(hook.id),
            _ => shown["id"] = json!(hook.id.parse::<u64>().unwrap()),
        }
        shown
    }

    /// Takes what was sent over what there was, by the rules of the host.
    fn taken(&self, hook: &mut Hook, mut body: Value) {
        let Dialect { kind, url, secret, .. } = self.dialect;
        let sent = body.pointer_mut(secret).map(Value::take).and_then(|sent| sent.as_str().map(str::to_owned));
        let is_new = hook.whole.is_null();
        let has_moved = !is_new && body.pointer(url) != hook.whole.pointer(url);
        match kind {
            // Its API changes everything but the secret.
            ForgeKind::Gitea if !is_new => {}
            // It forgets the token where the address changes.
            ForgeKind::Gitlab => {
                hook.secret = sent.or(hook.secret.take().filter(|_| !has_moved));
            }
            _ => hook.secret = sent.or(hook.secret.take()),
        }
        if kind == ForgeKind::Gitlab {
            let fields = ["push_events", "tag_push_events", "merge_requests_events", "note_events"];
            for field in fields.into_iter().filter(|_| is_new) {
                hook.whole[field] = json!(field == "push_events");
            }
            for (field, value) in body.as_object().unwrap() {
                hook.whole[field] = value.clone();
            }
            return;
        }
        hook.whole = body;
    }
}

async fn list_or_create(
    State(double): State<Double>,
    Query(query): Query<BTreeMap<String, String>>,
    method: Method,
    body: Option<Json<Value>>,
) -> Response {
    if let Some(refusal) = double.refusal() {
        return refusal;
    }
    let Dialect { kind, url, .. } = double.dialect;
    let mut world = double.shared.world();
    if method == Method::GET {
        let all: Vec<Value> = world.hooks.iter().map(|hook| double.shown(hook)).collect();
        // Azure DevOps has one page of subscriptions.
        let most = if kind == ForgeKind::Azure { usize::MAX } else { world.most };
        return paged(kind, most, &query, &all);
    }
    let Json(body) = body.unwrap();
    let fault = world.faults.pop_front();
    let is_known = world.hooks.iter().any(|hook| hook.whole.pointer(url) == body.pointer(url));
    if kind == ForgeKind::Github && is_known {
        let exists =
            json!({"message": "Validation Failed", "errors": [{"message": "Hook already exists on this repository"}]});
        return (StatusCode::UNPROCESSABLE_ENTITY, Json(exists)).into_response();
    }
    let number = world.hooks.iter().filter_map(|hook| hook.id.parse::<u64>().ok()).max().unwrap_or_default() + 1;
    let id = match kind {
        ForgeKind::Bitbucket | ForgeKind::Azure => format!("{{{number:08}-0000}}"),
        _ => number.to_string(),
    };
    let mut hook = Hook { id, secret: None, whole: Value::Null };
    double.taken(&mut hook, body);
    let shown = double.shown(&hook);
    world.hooks.push(hook);
    match fault {
        Some(Fault::Lost) => StatusCode::BAD_GATEWAY.into_response(),
        _ => (StatusCode::CREATED, Json(shown)).into_response(),
    }
}

async fn one(
    State(double): State<Double>,
    Path(id): Path<String>,
    method: Method,
    body: Option<Json<Value>>,
) -> Response {
    if let Some(refusal) = double.refusal() {
        return refusal;
    }
    let mut world = double.shared.world();
    let Some(place) = world.hooks.iter().position(|hook| hook.id == id) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if method == Method::DELETE {
        world.hooks.remove(place);
        return StatusCode::NO_CONTENT.into_response();
    }
    if let Some(Json(body)) = body.filter(|_| method != Method::GET) {
        let hook = &mut world.hooks[place];
        double.taken(hook, body);
    }
    Json(double.shown(&world.hooks[place])).into_response()
}

async fn try_out(State(double): State<Double>, Path(id): Path<String>) -> Response {
    if let Some(refusal) = double.refusal() {
        return refusal;
    }
    double.shared.world().tried.push(id);
    StatusCode::NO_CONTENT.into_response()
}

/// What Data Center calls a test of the connection.
async fn connection(State(double): State<Double>, Query(query): Query<BTreeMap<String, String>>) -> Response {
    assert_eq!(query["url"], HERE);
    double.shared.world().tried.push(query["webhookId"].clone());
    Json(json!({"statusCode": 401})).into_response()
}

/// Azure DevOps puts the secret that it hides in by itself.
async fn notification(State(double): State<Double>, Json(body): Json<Value>) -> Response {
    assert_eq!(body["details"]["consumerInputs"]["basicAuthPassword"], "********");
    double.shared.world().tried.push(body["subscriptionId"].as_str().unwrap().to_owned());
    Json(json!({})).into_response()
}

fn wanted() -> WantedWebhook {
    wanted_with(Beside::default())
}

fn wanted_with(beside: Beside) -> WantedWebhook {
    let (secret, branch) = (Secret::new(SECRET), Some("main".to_owned()));
    WantedWebhook::new("https://deploy.example", "shop", vec!["shop-next".to_owned()], secret, branch, beside).unwrap()
}

/// A webhook as somebody has made it by hand, who has chosen everything, also what is not for the daemon.
fn by_hand(kind: ForgeKind, id: u64, url: &str) -> Hook {
    let whole = match kind {
        ForgeKind::Github => json!({
            "name": "web", "active": true, "events": ["push"],
            "config": {"url": url, "content_type": "json", "insecure_ssl": "1"},
        }),
        ForgeKind::Gitlab => json!({
            "url": url, "push_events": true, "merge_requests_events": false, "note_events": false,
            "enable_ssl_verification": false, "alert_status": "executable",
        }),
        ForgeKind::Bitbucket => json!({"url": url, "active": true, "events": ["repo:push"], "description": "by hand"}),
        ForgeKind::BitbucketDataCenter => json!({
            "name": "by hand", "url": url, "active": true, "events": ["repo:refs_changed"], "configuration": {},
            "sslVerificationRequired": false,
        }),
        ForgeKind::Azure => json!({
            "publisherId": "tfs", "eventType": "git.push", "resourceVersion": "1.0", "consumerId": "webHooks",
            "consumerActionId": "httpRequest", "status": "enabled",
            "publisherInputs": {"projectId": PROJECT, "repository": REPOSITORY, "branch": "main"},
            "consumerInputs": {"url": url, "basicAuthUsername": "ann", "resourceDetailsToSend": "all"},
        }),
        _ => json!({
            "type": "gitea", "active": true, "events": ["push"], "branch_filter": "*",
            "config": {"url": url, "content_type": "json"}, "authorization_header": "Bearer of-a-proxy",
        }),
    };
    let id = match kind {
        ForgeKind::Bitbucket | ForgeKind::Azure => format!("{{{id:08}-0000}}"),
        _ => id.to_string(),
    };
    Hook { id, secret: Some(SECRET.to_owned()), whole }
}

/// What of a webhook has to be so: where it leads, whether it is on, and what it tells.
fn told(kind: ForgeKind, hook: &Hook) -> (String, bool, Vec<String>) {
    let whole = &hook.whole;
    let url = whole.pointer(dialect(kind).url).and_then(Value::as_str).unwrap().to_owned();
    match kind {
        ForgeKind::Gitlab => {
            let fields = whole.as_object().unwrap().iter();
            let on = fields.filter(|(name, on)| name.ends_with("_events") && **on == true);
            (url, true, on.map(|(name, _)| name.clone()).collect())
        }
        ForgeKind::Azure => (url, whole["status"] == "enabled", vec![whole["eventType"].as_str().unwrap().to_owned()]),
        _ => {
            let events = whole["events"].as_array().unwrap().iter();
            (url, whole["active"] == true, events.map(|event| event.as_str().unwrap().to_owned()).collect())
        }
    }
}

fn event(kind: ForgeKind) -> &'static str {
    match kind {
        ForgeKind::Gitlab => "push_events",
        ForgeKind::Bitbucket => "repo:push",
        ForgeKind::BitbucketDataCenter => "repo:refs_changed",
        ForgeKind::Azure => "git.push",
        _ => "push",
    }
}

fn right(kind: ForgeKind) -> (String, bool, Vec<String>) {
    (HERE.to_owned(), true, vec![event(kind).to_owned()])
}

#[tokio::test]
async fn one_is_registered_with_the_secret_and_a_second_look_finds_it_right() {
    for (kind, most) in KINDS.into_iter().flat_map(|kind| [(kind, 50), (kind, 25)]) {
        let (host, hooks, _folder) = start(kind).await;
        host.shared.world().most = most;
        let foreign: Vec<Hook> = (1..=120).map(|id| by_hand(kind, id, "https://chat.example/hook")).collect();
        host.shared.world().hooks.clone_from(&foreign);
        let standing = hooks.look(&wanted()).await.unwrap();
        assert!(!standing.is_there() && !standing.is_right(), "{kind:?}");
        hooks.register(&wanted(), &standing).await.unwrap();
        let standing = hooks.look(&wanted()).await.unwrap();
        assert!(standing.is_right(), "{kind:?}: {standing:?}");
        let world = host.shared.world();
        assert_eq!(world.hooks[..120], foreign, "{kind:?}");
        let [made] = &world.hooks[120..] else { panic!("{kind:?}: {:?}", &world.hooks[120..]) };
        assert_eq!((told(kind, made), made.secret.as_deref()), (right(kind), Some(SECRET)), "{kind:?}");
        let sends_json = made.whole.pointer("/config/content_type").is_none_or(|kind| kind == "json");
        assert!(sends_json && !made.whole.to_string().contains(SECRET), "{kind:?}: {made:?}");
    }
}

#[tokio::test]
async fn there_is_one_also_where_the_answer_was_lost() {
    for kind in KINDS {
        let (host, hooks, _folder) = start(kind).await;
        let standing = hooks.look(&wanted()).await.unwrap();
        host.fail_next([Fault::Status(503), Fault::Lost]);
        for _ in 0..2 {
            let failure = hooks.register(&wanted(), &standing).await.unwrap_err();
            assert_eq!(failure.class(), Class::Transient, "{kind:?}: {failure:?}");
        }
        let standing = hooks.look(&wanted()).await.unwrap();
        assert!(standing.is_right(), "{kind:?}: {standing:?}");
        assert_eq!(host.shared.world().hooks.len(), 1, "{kind:?}");
    }
}

/// What somebody may have done to a webhook.
fn spoiled(kind: ForgeKind) -> Vec<(&'static str, Hook)> {
    let hook = |url: &str| by_hand(kind, 7, url);
    let mut off = hook(HERE);
    match kind {
        ForgeKind::Gitlab => off.whole["alert_status"] = json!("disabled"),
        ForgeKind::Azure => off.whole["status"] = json!("disabledBySystem"),
        _ => off.whole["active"] = json!(false),
    }
    let mut others = hook(HERE);
    match kind {
        ForgeKind::Gitlab => others.whole["note_events"] = json!(true),
        ForgeKind::Azure => others.whole["publisherInputs"]["branch"] = json!("next"),
        _ => others.whole["events"].as_array_mut().unwrap().push(json!("fork")),
    }
    let open = Hook { secret: None, ..hook(HERE) };
    let shows = matches!(kind, ForgeKind::Github | ForgeKind::Bitbucket | ForgeKind::Azure);
    let mut all = vec![
        ("leads to http://deploy.example/webhooks/shop", hook("http://deploy.example/webhooks/shop")),
        ("leads to https://deploy.example/webhooks/store", hook("https://deploy.example/webhooks/store")),
        ("switched off", off),
        (if kind == ForgeKind::Azure { "some branches only" } else { "and not of" }, others),
    ];
    if shows {
        all.push(("has no secret", open));
    }
    if kind == ForgeKind::BitbucketDataCenter {
        all.push(("has another secret", Hook { secret: Some("another".to_owned()), ..hook(HERE) }));
    }
    all
}

#[tokio::test]
async fn a_wrong_one_is_repaired_and_what_is_of_others_stays() {
    for kind in KINDS {
        for (expected, wrong) in spoiled(kind) {
            let (host, hooks, _folder) = start(kind).await;
            let foreign = [
                by_hand(kind, 1, "https://staging.example/webhooks/shop"),
                by_hand(kind, 2, "https://deploy.example/webhooks/shop-next"),
            ];
            host.shared.world().hooks = foreign.iter().cloned().chain([wrong]).collect();
            let standing = hooks.look(&wanted()).await.unwrap();
            let told_wrong = standing.wrong.join("; ");
            assert!(standing.is_there() && told_wrong.contains(expected), "{kind:?} {expected}: {told_wrong}");
            assert_eq!(standing.others, ["https://staging.example/webhooks/shop"], "{kind:?}");
            hooks.register(&wanted(), &standing).await.unwrap();
            let standing = hooks.look(&wanted()).await.unwrap();
            // GitLab switches one on again once a call of it succeeds.
            let waits = kind == ForgeKind::Gitlab && expected == "switched off";
            assert_eq!(standing.is_right(), !waits, "{kind:?} {expected}: {standing:?}");
            let world = host.shared.world();
            let [one, two, mended] = &world.hooks[..] else { panic!("{kind:?}: {:?}", world.hooks) };
            assert_eq!([one, two], [&foreign[0], &foreign[1]], "{kind:?}");
            assert_eq!(
                (told(kind, mended), mended.secret.as_deref()),
                (right(kind), Some(SECRET)),
                "{kind:?} {expected}"
            );
            let chosen = ["/config/insecure_ssl", "/enable_ssl_verification", "/sslVerificationRequired"];
            let chosen = chosen.iter().find_map(|pointer| mended.whole.pointer(pointer));
            assert!(
                chosen.is_none_or(|chosen| *chosen == json!("1") || *chosen == json!(false)),
                "{kind:?}: {mended:?}"
            );
            if kind == ForgeKind::Gitea {
                assert_eq!(mended.whole["authorization_header"], "Bearer of-a-proxy");
            }
        }
    }
}

#[tokio::test]
async fn several_of_one_address_become_one() {
    for kind in KINDS {
        let (host, hooks, _folder) = start(kind).await;
        host.shared.world().hooks = (1..=3).map(|id| by_hand(kind, id, HERE)).collect();
        let standing = hooks.look(&wanted()).await.unwrap();
        assert!(standing.wrong.join("; ").contains("2 more of it"), "{kind:?}: {standing:?}");
        hooks.register(&wanted(), &standing).await.unwrap();
        assert!(hooks.look(&wanted()).await.unwrap().is_right(), "{kind:?}");
        assert_eq!(host.shared.world().hooks.len(), 1, "{kind:?}");
    }
}

#[tokio::test]
async fn a_token_without_the_right_says_which_one_is_missing() {
    for (kind, right) in KINDS.into_iter().zip([
        "administer the repository",
        "`Webhooks: read and write`",
        "the role Maintainer",
        "`Webhooks: Read and write`",
        "`Repository admin`",
        "`Service hooks (read and write)`",
    ]) {
        let (host, hooks, folder) = start(kind).await;
        let standing = hooks.look(&wanted()).await.unwrap();
        host.shared.world().forbids = true;
        let looked = hooks.look(&wanted()).await.unwrap_err();
        assert_eq!(looked.class(), Class::Stalled, "{kind:?}: {looked:?}");
        assert!(looked.hint_text().unwrap().contains(right), "{kind:?}: {looked:?}");
        assert_eq!(hooks.register(&wanted(), &standing).await.unwrap_err().class(), Class::Stalled, "{kind:?}");
        std::fs::write(folder.path().join("token"), "another").unwrap();
        let failure = hooks.look(&wanted()).await.unwrap_err();
        let told = format!("{} {}", failure.one_line(), failure.hint_text().unwrap());
        assert!(told.contains("does not accept the token") && !told.contains("another"), "{kind:?}: {told}");
        assert!(host.shared.world().hooks.is_empty());
    }
}

#[tokio::test]
async fn each_host_tries_one_out_in_its_own_way() {
    for (kind, expected) in KINDS.into_iter().zip([
        Test::Sent("push"),
        Test::Sent("ping"),
        Test::Sent("Push Hook"),
        Test::Never,
        Test::Unsigned("diagnostics:ping"),
        Test::Sent("git.push"),
    ]) {
        let (host, hooks, _folder) = start(kind).await;
        let standing = hooks.look(&wanted()).await.unwrap();
        assert_eq!(hooks.test(&wanted(), &standing).await.unwrap(), Test::Never, "{kind:?}: there is none");
        hooks.register(&wanted(), &standing).await.unwrap();
        let standing = hooks.look(&wanted()).await.unwrap();
        assert_eq!(hooks.test(&wanted(), &standing).await.unwrap(), expected, "{kind:?}");
        let world = host.shared.world();
        let tried = if expected == Test::Never { Vec::new() } else { vec![world.hooks[0].id.clone()] };
        assert_eq!(world.tried, tried, "{kind:?}");
    }
}

#[tokio::test]
async fn one_tells_of_pull_requests_and_comments_where_those_are_looked_at() {
    let (pulls, comments) = (Beside { pulls: true, comments: false }, Beside { pulls: false, comments: true });
    let both = Beside { pulls: true, comments: true };
    for (kind, beside, expected) in [
        (ForgeKind::Gitea, pulls, vec!["push", "pull_request_only", "pull_request_sync"]),
        (ForgeKind::Gitea, comments, vec!["push", "pull_request_comment"]),
        (ForgeKind::Github, pulls, vec!["push", "pull_request"]),
        (ForgeKind::Github, both, vec!["push", "pull_request", "issue_comment"]),
        (ForgeKind::Gitlab, pulls, vec!["push_events", "merge_requests_events"]),
        (ForgeKind::Gitlab, comments, vec!["push_events", "note_events"]),
        (
            ForgeKind::Bitbucket,
            both,
            vec!["repo:push", "pullrequest:created", "pullrequest:updated", "pullrequest:comment_created"],
        ),
        (
            ForgeKind::BitbucketDataCenter,
            both,
            vec!["repo:refs_changed", "pr:opened", "pr:from_ref_updated", "pr:modified", "pr:comment:added"],
        ),
        (ForgeKind::Azure, both, vec!["git.push"]),
    ] {
        let (host, hooks, _folder) = start(kind).await;
        host.shared.world().hooks = vec![by_hand(kind, 1, HERE)];
        let standing = hooks.look(&wanted_with(beside)).await.unwrap();
        assert_eq!(standing.is_right(), expected.len() == 1, "{kind:?}: {standing:?}");
        hooks.register(&wanted_with(beside), &standing).await.unwrap();
        assert_eq!(told(kind, &host.shared.world().hooks[0]).2, expected, "{kind:?}");
        let standing = hooks.look(&wanted_with(beside)).await.unwrap();
        assert!(standing.is_right(), "{kind:?}: {standing:?}");
    }
}

#[tokio::test]
async fn what_sequences_may_be_triggered_on_stays_as_a_person_has_chosen_it() {
    for (kind, chosen) in [
        (ForgeKind::Github, "pull_request"),
        (ForgeKind::Gitlab, "tag_push_events"),
        (ForgeKind::Bitbucket, "pullrequest:fulfilled"),
        (ForgeKind::BitbucketDataCenter, "pr:merged"),
    ] {
        let (host, hooks, _folder) = start(kind).await;
        let mut hook = by_hand(kind, 1, HERE);
        match kind {
            ForgeKind::Gitlab => hook.whole[chosen] = json!(true),
            _ => hook.whole["events"].as_array_mut().unwrap().push(json!(chosen)),
        }
        host.shared.world().hooks = vec![hook];
        let standing = hooks.look(&wanted()).await.unwrap();
        assert!(standing.is_right(), "{kind:?}: {standing:?}");
        hooks.register(&wanted(), &standing).await.unwrap();
        let told = told(kind, &host.shared.world().hooks[0]).2;
        assert_eq!(BTreeSet::from_iter(told), BTreeSet::from([event(kind).to_owned(), chosen.to_owned()]), "{kind:?}");
    }
}
