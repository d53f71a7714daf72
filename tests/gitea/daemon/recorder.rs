//! Stands between Gitea and the daemon, and can tell the daemon once more what it was told.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use http::{HeaderMap, StatusCode};
use reqwest::Client;
use serde_json::Value;
use tokio::net::TcpListener;

/// Passes calls on and remembers the last push.
#[derive(Clone)]
pub(crate) struct Recorder {
    target: String,
    last_push: Arc<Mutex<Option<(HeaderMap, Bytes)>>>,
}

impl Recorder {
    /// A recorder before `target`, and its own address. It ends with the test.
    pub(crate) async fn before(target: String) -> (Self, String) {
        let recorder = Self { target, last_push: Arc::default() };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let routes = Router::new().fallback(pass_on).with_state(recorder.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        (recorder, url)
    }

    /// The last push, told again to the byte; what is answered.
    pub(crate) async fn replay(&self) -> Value {
        let (headers, body) = self.last_push.lock().unwrap().clone().expect("a push");
        let (status, text) = self.send(headers, body).await;
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    async fn send(&self, mut headers: HeaderMap, body: Bytes) -> (StatusCode, String) {
        headers.remove("host");
        headers.remove("content-length");
        let answer = Client::new().post(&self.target).headers(headers).body(body).send().await.unwrap();
        (answer.status(), answer.text().await.unwrap())
    }
}

async fn pass_on(State(recorder): State<Recorder>, headers: HeaderMap, body: Bytes) -> (StatusCode, String) {
    if headers.get("x-gitea-event").is_some_and(|event| event == "push") {
        *recorder.last_push.lock().unwrap() = Some((headers.clone(), body.clone()));
    }
    recorder.send(headers, body).await
}
