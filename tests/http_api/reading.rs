use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{READER, shop, shop_scaled, shop_watching};

#[tokio::test]
async fn deployments_say_what_serves_and_what_was_tried() {
    let server = shop().await;
    let list = server.json("/api/v1/deployments?stage=dev").await;
    let web = &list["items"][0];
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    assert_eq!(web["name"], "web");
    assert_eq!(web["serving"]["version"], 1);
    assert_eq!(web["attempted"]["version"], 2);
    assert_eq!(web["status"], "Failed");
    assert_eq!(web["triggers"], "config");
    assert_eq!((&web["desired"], &web["ready"]), (&Value::from(2), &Value::from(2)));
}

#[tokio::test]
async fn one_deployment_config_tells_its_hooks_and_conditions() {
    let server = shop().await;
    let web = server.json("/api/v1/deployments/shop/dev/web").await;
    assert_eq!(web["serving"]["version"], 1, "as the list says it");
    let pre = json!([{"point": "pre", "type": "pod", "failurePolicy": "Abort", "command": ["true"]}]);
    assert_eq!(web["hooks"], pre);
    let condition = |index: usize| {
        let condition = &web["conditions"][index];
        ["type", "status", "reason"].map(|field| condition[field].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(condition(0), ["Available", "True", ""]);
    assert_eq!(condition(1), ["Progressing", "False", "ProgressDeadlineExceeded"]);
    let why = web["conditions"][1]["message"].as_str().unwrap();
    assert!(why.starts_with("replication controller \"web-2\" has failed progressing: "), "{why}");
    assert!(web["warnings"][0].as_str().unwrap().contains("readiness probe"), "{web:#}");
}

#[tokio::test]
async fn a_version_tells_what_its_pods_look_like() {
    let server = shop().await;
    let version = server.json("/api/v1/deployments/shop/dev/web/history/1").await;
    assert_eq!((&version["version"], &version["status"]), (&Value::from(1), &Value::from("Complete")));
    assert_eq!(version["template"]["spec"]["containers"][0]["image"], "a");
    let absent = server.get("/api/v1/deployments/shop/dev/web/history/9").await;
    assert_eq!(absent.status(), StatusCode::NOT_FOUND);
    assert_eq!(absent.json::<Value>().await.unwrap()["detail"], "unable to find the specified revision");
}

#[tokio::test]
async fn the_history_has_openshifts_columns() {
    let server = shop().await;
    let rows = server.json("/api/v1/deployments/shop/dev/web/history").await;
    let row = |index: usize| {
        let row = &rows["items"][index];
        (row["version"].as_u64().unwrap(), row["status"].as_str().unwrap().to_owned())
    };
    assert_eq!((row(0), row(1)), ((1, "Complete".into()), (2, "Failed".into())));
    assert!(!rows["items"][0]["cause"].as_str().unwrap().is_empty());
}

#[tokio::test]
async fn the_history_tells_the_last_of_many_scalings() {
    let server = shop_scaled(2_500).await;
    let rows = server.json("/api/v1/deployments/shop/dev/web/history").await;
    let scalings = rows["items"][0]["scalings"].as_array().unwrap();
    assert_eq!((scalings.len(), &scalings[2_499]["to"]), (2_500, &Value::from(2_500)));
}

#[tokio::test]
async fn a_run_tells_its_steps() {
    let server = shop().await;
    let run = server.json("/api/v1/runs/shop/dev/web-2").await;
    assert_eq!(run["status"], "failure");
    let steps: Vec<(&str, &str)> = run["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| (step["name"].as_str().unwrap(), step["status"].as_str().unwrap()))
        .collect();
    assert_eq!(steps, [("prepare", "success"), ("pre", "failure"), ("rollout", "skipped")]);
    assert_eq!(run["steps"][1]["tries"][0]["exitCode"], 3);
    let lifecycle = "openshift.io/deployment.lifecycle.pre.execnewpod";
    let expected = json!({format!("{lifecycle}.phase"): "Failed", format!("{lifecycle}.pod"): "web-2-hook-pre"});
    assert_eq!(run["annotations"], expected);
    let parent = run["parent"].as_str().unwrap();
    let sequence = server.json(&format!("/api/v1/runs/{parent}")).await;
    assert_eq!((&sequence["kind"], &sequence["name"]), (&Value::from("sequence"), &Value::from("delivery")));
    assert_eq!(sequence["changes"][0]["decision"], "deploy");
}

#[tokio::test]
async fn a_revision_has_its_statuses_and_its_plan() {
    let server = shop().await;
    let revisions = server.json("/api/v1/revisions").await;
    let last = &revisions["items"][0];
    let (repository, commit) = (last["repository"].as_str().unwrap(), last["commit"].as_str().unwrap());
    let revision = server.json(&format!("/api/v1/revisions/{repository}/{commit}")).await;
    assert_eq!(revision["commit"], commit);
    let states: Vec<_> = revision["statuses"].as_array().unwrap().iter().map(|status| &status["context"]).collect();
    assert!(states.contains(&&Value::from("launchway/dev/web/pre")), "{states:?}");
    let plan = server.json(&format!("/api/v1/plans/{}", revision["plan"].as_str().unwrap())).await;
    assert_eq!(plan["to"], commit);
    assert_eq!(plan["changes"][0]["reasons"][0]["pointer"], "/spec/template/spec/containers/0/image");
}

#[tokio::test]
async fn digits_that_two_revisions_begin_with_are_refused() {
    let server = shop().await;
    let response = server.get("/api/v1/revisions/repo/000000").await;
    assert_eq!(response.status(), StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn a_failed_attempt_is_why_a_service_is_not_what_was_pushed() {
    let server = shop().await;
    let why = server.json("/api/v1/services/shop/dev/web/why").await;
    let kinds: Vec<_> = why["reasons"].as_array().unwrap().iter().map(|reason| &reason["kind"]).collect();
    assert!(kinds.contains(&&Value::from("drift")), "{why:#}");
    assert!(why["reasons"].to_string().contains("rollout retry dc/web"), "{why:#}");
}

#[tokio::test]
async fn pods_and_events_are_listed() {
    let server = shop().await;
    let pods = server.json("/api/v1/pods?stage=production&name=web").await;
    let ready = pods["items"].as_array().unwrap().iter().filter(|pod| pod["status"] == "Ready").count();
    assert_eq!(ready, 2);
    let events = server.json("/api/v1/events?run=shop/dev/web-2").await;
    assert!(events["items"].as_array().unwrap().iter().any(|event| event["event"] == "podEnded"), "{events:#}");
    let after = events["items"].as_array().unwrap().last().unwrap()["number"].as_i64().unwrap();
    for (stage, expected) in [("dev", true), ("production", false), ("nowhere", false)] {
        let of_stage = server.json(&format!("/api/v1/events?stage={stage}")).await;
        let runs = of_stage["items"].as_array().unwrap().iter().map(|event| event["run"].as_str().unwrap());
        let runs: Vec<&str> = runs.collect();
        assert_eq!(runs.contains(&"shop/dev/web-2"), expected, "{stage}: {runs:?}");
        assert_eq!(runs.is_empty(), stage == "nowhere", "{stage}: {runs:?}");
    }
    let rest = server.json(&format!("/api/v1/events?run=shop/dev/web-2&after={after}")).await;
    assert_eq!(rest["items"], Value::Array(vec![]));
}

#[tokio::test]
async fn what_is_not_there_is_a_problem_that_names_it() {
    let server = shop().await;
    for path in [
        "/api/v1/runs/nope",
        "/api/v1/deployments/shop/dev/nope",
        "/api/v1/plans/nope",
        "/api/v1/revisions/repo/ffff",
        "/api/v1/nope",
        "/api/v1/repositories?repository=nope",
        "/api/v1/deployments?repository=nope",
        "/api/v1/holds?repository=nope",
        "/api/v1/events?repository=nope",
    ] {
        let response = server.get(path).await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        let problem: Value = response.json().await.unwrap();
        assert!(problem["detail"].as_str().unwrap().contains('`'), "{problem}");
    }
    let response = server.get("/api/v1/runs?limit=many").await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert_eq!(response.headers()["content-type"], "application/problem+json");
}

#[tokio::test]
async fn a_lured_browser_reads_nothing() {
    let server = shop().await;
    let from = |name: &'static str, value: &'static str| {
        server.request(Method::GET, "/api/v1/deployments").header(name, value).send()
    };
    assert_eq!(from("host", "evil.example").await.unwrap().status(), StatusCode::FORBIDDEN);
    assert_eq!(from("origin", "https://evil.example").await.unwrap().status(), StatusCode::FORBIDDEN);
    assert_eq!(from("x-token", "guess").await.unwrap().status(), StatusCode::UNAUTHORIZED);
    assert_eq!(from("x-token", READER).await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn it_is_alive_and_not_ready_before_its_first_look() {
    let server = shop_watching(&["never-seen"]).await;
    assert_eq!(server.get("/healthz").await.status(), StatusCode::OK);
    let ready = server.get("/readyz").await;
    assert_eq!(ready.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(ready.text().await.unwrap().contains("`never-seen` has not been synced yet"));
    let from_elsewhere = server.request(Method::GET, "/readyz").header("x-forwarded-for", "192.0.2.7");
    let ready = from_elsewhere.send().await.unwrap();
    assert_eq!(ready.status(), StatusCode::SERVICE_UNAVAILABLE);
    let told = ready.text().await.unwrap();
    assert!(told.contains("a repository has not been synced yet") && !told.contains("never-seen"), "{told}");
}

#[tokio::test]
async fn what_is_remembered_and_not_watched_does_not_keep_a_daemon_from_being_ready() {
    let server = shop().await;
    assert_eq!(server.get("/readyz").await.status(), StatusCode::OK);
}
