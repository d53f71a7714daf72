use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::support::{OPERATOR, shop};

#[tokio::test]
async fn facts_arrive_from_where_the_client_stopped() {
    let server = shop().await;
    let all = server.json("/api/v1/events").await;
    let last_but_one = all["items"].as_array().unwrap().iter().rev().nth(1).unwrap()["number"].clone();
    let request = server.request(Method::GET, "/api/v1/watch").header("last-event-id", last_but_one.to_string());
    let mut response = request.send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let first = String::from_utf8(response.chunk().await.unwrap().unwrap().to_vec()).unwrap();
    let last = all["items"].as_array().unwrap().last().unwrap();
    assert!(first.contains(&format!("id: {}", last["number"])), "{first}");
    let data = first.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    assert_eq!(&serde_json::from_str::<Value>(data).unwrap(), last);
}

#[tokio::test]
async fn the_description_names_only_what_is_answered() {
    let server = shop().await;
    let document = server.json("/api/v1/openapi.json").await;
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let request = server.request(method.clone(), &path.replace(['{', '}'], "")).bearer_auth(OPERATOR);
            let response = request.send().await.unwrap();
            assert_ne!(response.status(), StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
            if response.status() == StatusCode::NOT_FOUND {
                let problem: Value = response.json().await.unwrap();
                assert!(!problem["message"].as_str().unwrap().starts_with("there is nothing at"), "{method} {path}");
            }
        }
    }
}
