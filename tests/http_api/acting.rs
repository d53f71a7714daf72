use launchway::control::commands::Command;
use launchway::engine::by_hand::Images;
use launchway::testing::world::config_key;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{OPERATOR, READER, shop};

#[tokio::test]
async fn an_operators_request_becomes_a_command_with_their_name() {
    let server = shop().await;
    let post =
        |path: &'static str, body: Value| server.request(Method::POST, path).bearer_auth(OPERATOR).json(&body).send();
    for (path, body) in [
        ("/api/v1/deployments/shop/dev/web/latest", json!({})),
        ("/api/v1/deployments/shop/dev/web/undo", json!({"toVersion": 1})),
        ("/api/v1/deployments/shop/dev/web/scale", json!({"replicas": 3})),
        ("/api/v1/sync", json!({"allowPrune": "1a2b"})),
        ("/api/v1/holds", json!({"project": "shop", "stage": "dev", "reason": "sale"})),
        ("/api/v1/deliveries", json!({"project": "shop", "stage": "dev"})),
    ] {
        let response = post(path, body).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        assert_eq!(response.json::<Value>().await.unwrap()["message"], "rolled out");
    }
    let released = server.request(Method::DELETE, "/api/v1/holds/h1").bearer_auth(OPERATOR).send().await.unwrap();
    assert_eq!(released.status(), StatusCode::OK);
    let asked = server.asked.all();
    let config = config_key("dev", "web");
    assert_eq!(asked.len(), 7);
    assert!(asked.iter().all(|(_, by)| by == "ann"));
    assert_eq!(asked[0].0, Command::Latest { config: config.clone(), images: Images::Newest, dry_run: false });
    assert_eq!(asked[1].0, Command::Undo { config: config.clone(), to_version: Some(1), dry_run: false });
    assert_eq!(asked[2].0, Command::Scale { config, replicas: 3 });
}

#[tokio::test]
async fn what_is_only_tried_is_told_apart_from_what_is_done() {
    let server = shop().await;
    let post = |path: &'static str| server.request(Method::POST, path).bearer_auth(OPERATOR);
    let (latest, undo) = ("/api/v1/deployments/shop/dev/web/latest", "/api/v1/deployments/shop/dev/web/undo");
    let without_a_body = post(latest).send().await.unwrap();
    assert_eq!(without_a_body.status(), StatusCode::OK);
    for path in [latest, undo] {
        let response = post(path).json(&json!({"dryRun": true})).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{path}");
    }
    let mistyped = post(latest).json(&json!({"dryrun": true})).send().await.unwrap();
    assert_eq!(mistyped.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let config = config_key("dev", "web");
    let asked: Vec<Command> = server.asked.all().into_iter().map(|(command, _)| command).collect();
    let latest = |dry_run| Command::Latest { config: config.clone(), images: Images::Newest, dry_run };
    let undone = Command::Undo { config: config.clone(), to_version: None, dry_run: true };
    assert_eq!(asked, [latest(false), latest(true), undone]);
}

#[tokio::test]
async fn who_may_not_act_does_not() {
    let server = shop().await;
    let path = "/api/v1/deployments/shop/dev/web/latest";
    let nobody = server.request(Method::POST, path).send().await.unwrap();
    assert_eq!(nobody.status(), StatusCode::UNAUTHORIZED);
    let reader = server.request(Method::POST, path).bearer_auth(READER).send().await.unwrap();
    assert_eq!(reader.status(), StatusCode::FORBIDDEN);
    let lured = server.request(Method::POST, path).bearer_auth(OPERATOR).header("origin", "https://evil.example");
    assert_eq!(lured.send().await.unwrap().status(), StatusCode::FORBIDDEN);
    assert!(server.asked.all().is_empty());
}

#[tokio::test]
async fn a_refusal_says_what_to_do() {
    let server = shop().await;
    let path = "/api/v1/deployments/shop/dev/web/retry";
    let response = server.request(Method::POST, path).bearer_auth(OPERATOR).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::CONFLICT);
    let problem: Value = response.json().await.unwrap();
    assert_eq!(problem["detail"], "rollout #1 is complete");
    assert_eq!(problem["hint"], "use `rollout latest`");
}

#[tokio::test]
async fn a_body_that_makes_no_sense_is_refused() {
    let server = shop().await;
    let post = |body: &'static str| {
        let request = server.request(Method::POST, "/api/v1/deployments/shop/dev/web/scale").bearer_auth(OPERATOR);
        request.header("content-type", "application/json").body(body).send()
    };
    for body in ["{", "{}", r#"{"replicas": -1}"#, r#"{"replicas": 1, "more": 2}"#] {
        let response = post(body).await.unwrap();
        assert!(response.status().is_client_error(), "{body}: {}", response.status());
        assert_eq!(response.headers()["content-type"], "application/problem+json", "{body}");
    }
    for allowed in [r#""allowPrune": "1a2b""#, r#""acceptRewrite": "1a2b""#] {
        let request = server.request(Method::POST, "/api/v1/sync").bearer_auth(OPERATOR);
        let body = format!("{{{allowed}, \"onlyNew\": true}}");
        let response = request.header("content-type", "application/json").body(body).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{allowed}");
    }
    for word in ["zzzz", "HEAD", "1a2", ""] {
        let request = server.request(Method::POST, "/api/v1/sync").bearer_auth(OPERATOR);
        let response = request.json(&json!({"allowPrune": word})).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::UNPROCESSABLE_ENTITY, "{word}");
    }
    assert!(server.asked.all().is_empty());
    let get = server.request(Method::PUT, "/api/v1/holds").bearer_auth(OPERATOR).send().await.unwrap();
    assert_eq!(get.status(), StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn what_cannot_be_done_in_a_pod_is_no_mistake_of_the_server() {
    let server = shop().await;
    let exec = async |body: Value| {
        let request = server.request(Method::POST, "/api/v1/deployments/shop/dev/web/exec").bearer_auth(OPERATOR);
        let request = request.header("connection", "upgrade").header("upgrade", "launchway-exec.v1");
        let response = request.json(&body).send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        response.status().as_u16()
    };
    // The pods of this world only pretend to run.
    assert_eq!(exec(json!({"command": ["id"]})).await, 422);
    assert_eq!(exec(json!({"command": []})).await, 422);
    assert_eq!(exec(json!({"command": ["id"], "pod": "web-9-9"})).await, 404);
    // More than a request may have.
    assert_eq!(exec(json!({"command": ["x".repeat(2 << 20)]})).await, 413);
}
