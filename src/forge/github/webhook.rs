//! GitHub's deliveries.

use serde_json::Value;

use crate::forge::webhook::{
    Again, Authentication, Comments, DeliveryId, Dialect, EventName, MIB, Merges, Named, Reruns, closed_as_merged,
    in_words_of_github, number, single_ref, text,
};

/// How GitHub calls. Its older `X-Hub-Signature` (SHA-1) does not count. Deliveries have up to 25 MiB; GitHub sends
/// nothing at all for larger ones.
pub(in crate::forge) const DIALECT: Dialect = Dialect {
    event: EventName::Header("x-github-event"),
    pushes: &["push"],
    pulls: &["pull_request"],
    comments: Comments { events: &["issue_comment"], read: in_words_of_github },
    tags: &[],
    merges: Merges { events: &["pull_request"], read: closed_as_merged },
    reruns: Reruns { events: &["check_run", "check_suite"], read: rerequested },
    authentication: Authentication::Hmac { headers: &["x-hub-signature-256"], prefix: "sha256=" },
    delivery: DeliveryId::Header(&["x-github-delivery"]),
    commit_required: true,
    body_limit: 25 * MIB,
    updates: single_ref,
    repository: Named::full_name,
};

/// A check, or all of a commit, that somebody asks for again. Only the App that made it is told.
fn rerequested(payload: &Value) -> Again {
    let what = if payload.get("check_run").is_some() { "/check_run" } else { "/check_suite" };
    let of = |field: &str| format!("{what}/{field}");
    Again {
        is_asked_for: text(payload, "/action") == Some("rerequested"),
        app: number(payload, &of("app/id")),
        repository: text(payload, "/repository/full_name").map(str::to_owned),
        login: text(payload, "/sender/login").map(str::to_owned),
        commit: text(payload, &of("head_sha")).map(str::to_owned),
        context: text(payload, &of("name")).map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};
    use serde_json::json;

    use super::*;
    use crate::forge::webhook::{Call, Host, Interest, Verdict, Watching, interpret};
    use crate::model::ids::CommitId;
    use crate::model::rerun::Rerun;

    const COMMIT: &str = "6113728f27ae82c7b1a177c8d03f9e96e0adf246";

    fn payload(action: &str) -> Value {
        json!({
            "action": action,
            "check_run": {
                "id": 4, "name": "launchway/dev/web", "head_sha": COMMIT, "external_id": "launchway/dev/web",
                "app": {"id": 1234, "slug": "launchway"}, "check_suite": {"id": 5, "head_sha": COMMIT},
            },
            "repository": {"full_name": "acme/shop"}, "sender": {"login": "ann", "id": 3, "type": "User"},
        })
    }

    fn verdict(event: &'static str, payload: &Value, app: Option<u64>) -> Verdict {
        let headers = HeaderMap::from_iter([("x-github-event".parse().unwrap(), HeaderValue::from_static(event))]);
        let call = Call::read(Host::Github, payload.to_string().as_bytes()).unwrap();
        interpret(Host::Github, &headers, &call, Watching { branch: Some("main"), app, ..Watching::default() })
    }

    #[test]
    fn what_people_ask_for_again_is_read() {
        let wanted = |context: Option<&str>| {
            Interest::Again(Box::new(Rerun {
                repository: "acme/shop".to_owned(),
                login: "ann".to_owned(),
                commit: CommitId::new(COMMIT),
                context: context.map(str::to_owned),
            }))
        };
        let run = verdict("check_run", &payload("rerequested"), Some(1234));
        assert_eq!((run.interest, run.reason), (wanted(Some("launchway/dev/web")), None));
        let suite = json!({
            "action": "rerequested", "check_suite": {"id": 5, "head_sha": COMMIT, "app": {"id": 1234}},
            "repository": {"full_name": "acme/shop"}, "sender": {"login": "ann"},
        });
        assert_eq!(verdict("check_suite", &suite, Some(1234)).interest, wanted(None));
    }

    #[test]
    fn whatever_else_happens_to_checks_is_ignored_and_said() {
        let nobody = "nobody asks for the check again";
        for action in ["created", "completed", "requested_action", "requested"] {
            let verdict = verdict("check_run", &payload(action), Some(1234));
            assert_eq!((verdict.interest, verdict.reason.as_deref()), (Interest::Ignored, Some(nobody)), "{action}");
        }
        for (pointer, value, why) in [
            ("/check_run/app/id", json!(1235), "the check is another App's"),
            ("/check_run/app", Value::Null, "the check is another App's"),
            ("/check_run/head_sha", json!("main"), "the call does not say on which commit it is"),
            ("/repository/full_name", json!("acme/../x"), "the call does not say in which repository it is"),
            (
                "/sender/login",
                json!("ci[bot]"),
                "the call does not say who asks, by a name of letters, digits and `-_.~`",
            ),
            ("/sender/login", json!("a/b"), "the call does not say who asks, by a name of letters, digits and `-_.~`"),
        ] {
            let mut payload = payload("rerequested");
            *payload.pointer_mut(pointer).unwrap() = value;
            let verdict = verdict("check_run", &payload, Some(1234));
            assert_eq!((verdict.interest, verdict.reason.as_deref()), (Interest::Ignored, Some(why)), "{pointer}");
        }
        let without = verdict("check_run", &payload("rerequested"), None);
        assert_eq!(without.reason.as_deref(), Some("`check_run` is not a push"));
    }
}
