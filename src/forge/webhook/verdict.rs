//! What an authentic call means: sync, do what a person asks for, or nothing.

use http::HeaderMap;
use serde_json::Value;

use super::comment::{comment, is_path};
use super::happened::happened;
use super::json::{self, Malformed};
use super::push::Update;
use super::rerun::rerun;
use super::{EventName, Host, single};
use crate::model::comment::Comment;
use crate::model::git_event::GitEvent;
use crate::model::rerun::Rerun;

/// Names of events are words.
const EVENT_LIMIT: usize = 64;

/// What a call is a reason for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Look at the repository again.
    Accepted,
    /// Do what a comment asks for, if its author may ask for it.
    Asked(Box<Comment>),
    /// Do again what a check is about.
    Again(Box<Rerun>),
    /// Of no interest.
    Ignored,
}

/// What a call says, and what follows from it. Parts that the call does not have are `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What follows.
    pub interest: Interest,
    /// The host's name of the event.
    pub event: Option<String>,
    /// The ref in full.
    pub reference: Option<String>,
    /// The commit before.
    pub before: Option<String>,
    /// The commit after: a hint for people, never what is deployed.
    pub after: Option<String>,
    /// Why it is ignored.
    pub reason: Option<String>,
    /// What else happened by it.
    pub happened: Vec<GitEvent>,
}

impl Verdict {
    /// The same of a call that is of no interest whatever it says.
    #[must_use]
    pub fn ignored(self, why: String) -> Self {
        Self { interest: Interest::Ignored, happened: Vec::new(), reason: Some(why), ..self }
    }
}

/// The body of a call, without what nobody reads.
#[derive(Debug)]
pub struct Call(Value);

impl Call {
    /// Reads a body. `Malformed` if it is no JSON.
    pub fn read(host: Host, body: &[u8]) -> Result<Self, Malformed> {
        match host {
            // It tries a webhook out without a body.
            Host::BitbucketDataCenter if body.is_empty() => Ok(Self(Value::Null)),
            _ => json::kept(body).map(Self),
        }
    }

    /// The path of the repository that it is about, as GitHub says it: `<owner>/<name>`.
    pub fn repository(&self) -> Option<String> {
        self.0.pointer("/repository/full_name").and_then(Value::as_str).filter(|path| is_path(path)).map(str::to_owned)
    }

    /// All that is kept of it.
    pub(super) fn payload(&self) -> &Value {
        &self.0
    }

    /// A text of it.
    pub(super) fn text(&self, field: &str) -> Option<String> {
        self.0.get(field)?.as_str().map(str::to_owned)
    }
}

/// What calls about a repository are of interest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watching<'a> {
    /// The branch that is watched, if it is known yet.
    pub branch: Option<&'a str>,
    /// Whether its pull requests are planned.
    pub pulls: bool,
    /// Whether comments on them may be commands.
    pub commands: bool,
    /// The GitHub App whose checks people may ask for again, by its id, if there is one.
    pub app: Option<u64>,
}

/// Tells what an authentic call means for a repository. Of a call about many refs, the one that is watched is told, else the
/// first. A call about a pull request means the same as any other: look again.
pub fn interpret(host: Host, headers: &HeaderMap, call: &Call, watching: Watching<'_>) -> Verdict {
    let event = event(host, headers, call);
    let watched = watching.branch.map(watched_ref);
    let mut updates = (host.dialect().updates)(&call.0);
    let happened = happened(host, event.as_deref().unwrap_or_default(), &call.0, &updates, watched.as_deref());
    let is_watched = |update: &Update| watched.is_none() || update.reference == watched;
    let told = updates.iter().position(is_watched).unwrap_or_default();
    let update = if updates.is_empty() { Update::default() } else { updates.swap_remove(told) };
    let is_pull = |event: &str| watching.pulls && host.dialect().pulls.contains(&event);
    let comments = host.dialect().comments;
    let is_comment = |event: &str| watching.commands && comments.events.contains(&event);
    let reruns = host.dialect().reruns;
    let app = |event: &str| watching.app.filter(|_| reruns.events.contains(&event));
    let found = match event.as_deref() {
        Some(event) if let Some(app) = app(event) => {
            rerun((reruns.read)(&call.0), app).map(|rerun| Interest::Again(Box::new(rerun)))
        }
        Some(event) if is_pull(event) => Ok(Interest::Accepted),
        Some(event) if is_comment(event) => {
            comment((comments.read)(&call.0)).map(|comment| Interest::Asked(Box::new(comment)))
        }
        event => indifference(host, event, &update, watched).map_or(Ok(Interest::Accepted), Err),
    };
    let (interest, reason) = found.map_or_else(|why| (Interest::Ignored, Some(why)), |interest| (interest, None));
    let Update { reference, before, after, .. } = update;
    Verdict { interest, event, reference, before, after, reason, happened }
}

fn event(host: Host, headers: &HeaderMap, call: &Call) -> Option<String> {
    let name = match host.dialect().event {
        EventName::Always(name) => name.to_owned(),
        EventName::Header(header) => single(headers, header)?.to_owned(),
        EventName::Field(field) => call.text(field)?,
    };
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.: ".contains(&byte);
    ((1..=EVENT_LIMIT).contains(&name.len()) && name.bytes().all(is_word)).then_some(name)
}

fn watched_ref(branch: &str) -> String {
    if branch.starts_with("refs/") { branch.to_owned() } else { format!("refs/heads/{branch}") }
}

/// Why a call is of no interest; `None` if it is a push to the watched branch.
fn indifference(host: Host, event: Option<&str>, push: &Update, watched: Option<String>) -> Option<String> {
    let Some(event) = event else {
        return Some("the call names no event".to_owned());
    };
    if !host.dialect().pushes.contains(&event) {
        return Some(format!("`{event}` is not a push"));
    }
    let Some(reference) = &push.reference else {
        return Some("the call names no ref in full, such as `refs/heads/main`".to_owned());
    };
    if let Some(watched) = watched.filter(|watched| watched != reference) {
        return Some(format!("`{watched}` is watched"));
    }
    match &push.after {
        None if host.dialect().commit_required => Some("the call names no commit".to_owned()),
        // What is deployed stays when a branch is deleted.
        Some(after) if after.bytes().all(|digit| digit == b'0') => Some("the branch was deleted".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const COMMIT: &str = "6113728f27ae82c7b1a177c8d03f9e96e0adf246";
    const ZERO: &str = "0000000000000000000000000000000000000000";
    const MAIN: Watching<'_> = Watching { branch: Some("main"), pulls: false, commands: false, app: None };

    fn verdict(host: Host, event: &str, body: &Value) -> Verdict {
        let mut headers = HeaderMap::new();
        if let EventName::Header(header) = host.dialect().event {
            headers.insert(header, HeaderValue::from_str(event).unwrap());
        }
        interpret(host, &headers, &Call::read(host, body.to_string().as_bytes()).unwrap(), MAIN)
    }

    fn push() -> Value {
        json!({
            "ref": "refs/heads/main", "before": ZERO, "after": COMMIT, "created": true, "commits": null,
            "repository": {"id": 35, "full_name": "acme/shop", "html_url": "https://git.example/acme/shop"},
            "pusher": {"name": "ann", "email": null},
        })
    }

    fn with(field: &str, value: Value) -> Value {
        let mut body = push();
        body[field] = value;
        body
    }

    #[test]
    fn a_push_to_the_watched_branch_is_accepted_by_every_host() {
        for host in [Host::Gitea, Host::Github, Host::Generic] {
            let verdict = verdict(host, "push", &push());
            assert_eq!(verdict.interest, Interest::Accepted);
            assert_eq!(verdict.event.as_deref(), Some("push"));
            assert_eq!(verdict.reference.as_deref(), Some("refs/heads/main"));
            assert_eq!((verdict.before.as_deref(), verdict.after.as_deref()), (Some(ZERO), Some(COMMIT)));
            assert_eq!(verdict.reason, None);
        }
    }

    /// A push of two branches as each host tells it that has words of its own.
    fn told_by(host: Host, main: &str) -> (&'static str, Value) {
        match host {
            Host::BitbucketCloud => {
                let branch =
                    |name: &str| json!({"type": "branch", "name": name, "target": {"hash": COMMIT, "type": "commit"}});
                let changes = json!([{"old": null, "new": branch("next")}, {"old": branch(main), "new": branch(main)}]);
                ("repo:push", json!({"push": {"changes": changes}, "repository": {"full_name": "acme/shop"}}))
            }
            Host::BitbucketDataCenter => {
                let change = |name: &str| {
                    let id = format!("refs/heads/{name}");
                    json!({"ref": {"id": id, "displayId": name, "type": "BRANCH"}, "refId": id, "fromHash": COMMIT, "toHash": COMMIT, "type": "UPDATE"})
                };
                ("repo:refs_changed", json!({"changes": [change("next"), change(main)]}))
            }
            _ => {
                let update = |name: &str| json!({"name": format!("refs/heads/{name}"), "oldObjectId": COMMIT, "newObjectId": COMMIT});
                let updates = json!([update("next"), update(main)]);
                (
                    "git.push",
                    json!({"eventType": "git.push", "publisherId": "tfs", "resource": {"refUpdates": updates}}),
                )
            }
        }
    }

    #[test]
    fn a_call_about_many_refs_is_about_the_watched_one() {
        for host in [Host::BitbucketCloud, Host::BitbucketDataCenter, Host::Azure] {
            let (event, body) = told_by(host, "main");
            let accepted = verdict(host, event, &body);
            assert_eq!(
                (accepted.interest, accepted.reference.as_deref()),
                (Interest::Accepted, Some("refs/heads/main")),
                "{body}"
            );
            assert_eq!((accepted.before.as_deref(), accepted.after.as_deref()), (Some(COMMIT), Some(COMMIT)));
            let (event, body) = told_by(host, "other");
            let ignored = verdict(host, event, &body);
            assert_eq!(
                (ignored.interest, ignored.reference.as_deref()),
                (Interest::Ignored, Some("refs/heads/next")),
                "{body}"
            );
        }
        let (_, body) = told_by(Host::BitbucketCloud, "main");
        let mut gone = body;
        gone["push"]["changes"][1]["new"] = Value::Null;
        let gone = verdict(Host::BitbucketCloud, "repo:push", &gone);
        assert_eq!((gone.after.as_deref(), gone.reason.as_deref()), (Some(ZERO), Some("the branch was deleted")));
    }

    #[test]
    fn empty_and_odd_calls_of_these_hosts_are_of_no_interest() {
        for (host, event, body) in [
            (Host::BitbucketCloud, "repo:push", json!({"push": {"changes": []}})),
            (Host::BitbucketCloud, "repo:push", json!({"push": {"changes": [null, {"new": []}]}})),
            (Host::BitbucketDataCenter, "diagnostics:ping", Value::Null),
            (Host::BitbucketDataCenter, "repo:refs_changed", json!({"changes": {"ref": 1}})),
            (Host::Azure, "", json!({"eventType": "git.push", "resource": {"refUpdates": []}})),
            (Host::Azure, "", json!({"eventType": "git.push", "resource": null})),
            (Host::Azure, "", json!({"resource": {}})),
            (Host::Gitlab, "Tag Push Hook", json!({"ref": "refs/tags/main", "before": COMMIT, "after": COMMIT})),
        ] {
            let verdict = verdict(host, event, &body);
            assert_eq!(verdict.interest, Interest::Ignored, "{host:?} {body}");
        }
        let gitlab = json!({"object_kind": "push", "event_name": "push", "ref": "refs/heads/main", "before": COMMIT, "after": COMMIT});
        assert_eq!(verdict(Host::Gitlab, "Push Hook", &gitlab).interest, Interest::Accepted);
    }

    #[test]
    fn a_test_delivery_and_a_call_without_commits_are_accepted() {
        let test_delivery = with("before", json!(COMMIT));
        assert_eq!(verdict(Host::Gitea, "push", &test_delivery).interest, Interest::Accepted);
        assert_eq!(verdict(Host::Generic, "", &json!({"ref": "refs/heads/main"})).interest, Interest::Accepted);
    }

    #[test]
    fn calls_about_pull_requests_are_of_interest_where_those_are_looked_at() {
        for (host, header, event) in [
            (Host::Gitea, "x-gitea-event", "pull_request"),
            (Host::Github, "x-github-event", "pull_request"),
            (Host::Gitlab, "x-gitlab-event", "Merge Request Hook"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header, HeaderValue::from_static(event));
            let call = Call::read(host, br#"{"action": "opened", "number": 2}"#).unwrap();
            for (pulls, interest) in [(true, Interest::Accepted), (false, Interest::Ignored)] {
                assert_eq!(interpret(host, &headers, &call, Watching { pulls, ..MAIN }).interest, interest, "{host:?}");
            }
        }
    }

    #[test]
    fn everything_else_is_ignored_with_a_reason() {
        let create = json!({"ref": "next", "ref_type": "branch"});
        let delete = json!({"ref": "main", "ref_type": "branch", "pusher_type": "user"});
        let pull_request = json!({"action": "opened", "number": 2, "pull_request": {"head": {"repo": {"fork": true}}}});
        let cases = [
            (Host::Github, "ping", json!({"zen": "Design for failure."}), None, "`ping` is not a push"),
            (Host::Gitea, "create", create, Some("refs/heads/next"), "`create` is not a push"),
            (Host::Gitea, "delete", delete, Some("refs/heads/main"), "`delete` is not a push"),
            (Host::Github, "pull_request", pull_request, None, "`pull_request` is not a push"),
            (Host::Github, "brand/new", push(), Some("refs/heads/main"), "the call names no event"),
            (
                Host::Gitea,
                "push",
                with("ref", json!("refs/heads/next")),
                Some("refs/heads/next"),
                "`refs/heads/main` is watched",
            ),
            (
                Host::Gitea,
                "push",
                with("ref", json!("refs/tags/main")),
                Some("refs/tags/main"),
                "`refs/heads/main` is watched",
            ),
            (
                Host::Gitea,
                "push",
                with("ref", json!("refs/heads/../main")),
                None,
                "the call names no ref in full, such as `refs/heads/main`",
            ),
            (
                Host::Generic,
                "",
                with("ref", json!("main")),
                None,
                "the call names no ref in full, such as `refs/heads/main`",
            ),
            (Host::Github, "push", with("after", json!(ZERO)), Some("refs/heads/main"), "the branch was deleted"),
            (Host::Generic, "", with("after", json!(ZERO)), Some("refs/heads/main"), "the branch was deleted"),
            (Host::Github, "push", with("after", json!(7)), Some("refs/heads/main"), "the call names no commit"),
            (Host::Github, "push", json!([1, 2]), None, "the call names no ref in full, such as `refs/heads/main`"),
        ];
        for (host, event, body, reference, reason) in cases {
            let verdict = verdict(host, event, &body);
            assert_eq!(verdict.interest, Interest::Ignored, "{event} {body}");
            assert_eq!(verdict.reference.as_deref(), reference, "{event} {body}");
            assert_eq!(verdict.reason.as_deref(), Some(reason), "{event} {body}");
        }
    }

    /// JSON of any type, for one leaf.
    fn leaf() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f32>()
                .prop_map(|n| json!(n))
                .prop_filter("beyond 64 bits", |n| n.as_f64().is_none_or(|n| n.abs() < 9e18)),
            any::<String>().prop_map(Value::from),
            Just(json!([])),
            Just(json!([{"ref": "refs/heads/main"}, null])),
            Just(json!({})),
            Just(json!({"ref": {"name": []}})),
        ]
    }

    /// The pointers of all values in `value`, itself included.
    fn pointers(value: &Value, here: &str, found: &mut Vec<String>) {
        found.push(here.to_owned());
        if let Value::Object(fields) = value {
            for (key, value) in fields {
                pointers(value, &format!("{here}/{key}"), found);
            }
        }
    }

    proptest! {
        #[test]
        fn a_value_of_any_type_anywhere_is_understood_or_ignored(place in any::<prop::sample::Index>(), value in leaf()) {
            let mut body = push();
            let mut all = Vec::new();
            pointers(&body, "", &mut all);
            *body.pointer_mut(place.get::<String>(&all)).unwrap() = value;
            for host in [Host::Gitea, Host::Github, Host::Generic] {
                let verdict = verdict(host, "push", &body);
                let is_push = body["ref"] == "refs/heads/main";
                prop_assert!(is_push || verdict.interest == Interest::Ignored);
                prop_assert_eq!(verdict.reason.is_some(), verdict.interest == Interest::Ignored);
            }
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(body in any::<Vec<u8>>(), event in "\\PC{0,80}") {
            let mut headers = HeaderMap::new();
            if let Ok(event) = HeaderValue::from_str(&event) {
                headers.insert("x-gitea-event", event);
            }
            let host = Host::identify(&headers);
            if let Ok(call) = Call::read(host, &body) {
                let verdict = interpret(host, &headers, &call, MAIN);
                prop_assert_eq!(verdict.interest, Interest::Ignored);
            }
        }
    }
}
