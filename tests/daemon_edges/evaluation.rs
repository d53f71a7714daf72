//! Objectives that launchway judges itself, by values that events give and by those of a Prometheus.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::daemon::{World, eventually, http, private, repository};

/// What opens the Prometheus.
const TOKEN: &str = "of-nobodys-business";

/// Answers as Prometheus does, and remembers what it was asked.
struct Prometheus {
    address: String,
    answer: Arc<Mutex<(u16, String)>>,
    asked: Arc<Mutex<Vec<String>>>,
    /// What made each question one of somebody's.
    opened: Arc<Mutex<Vec<String>>>,
}

impl Prometheus {
    /// One that cannot answer for now.
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let answer = Arc::new(Mutex::new((503, String::new())));
        let prometheus = Self { address, answer, asked: Arc::default(), opened: Arc::default() };
        let (answer, asked) = (prometheus.answer.clone(), prometheus.asked.clone());
        let opened = prometheus.opened.clone();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (mut head, mut part) = (Vec::new(), [0; 4096]);
                while !head.ends_with(b"\r\n\r\n") {
                    match stream.read(&mut part) {
                        Ok(count) if count > 0 => head.extend_from_slice(&part[..count]),
                        _ => break,
                    }
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                let authorization = head.lines().find_map(|line| line.strip_prefix("authorization: "));
                opened.lock().unwrap().push(authorization.unwrap_or_default().to_owned());
                asked.lock().unwrap().push(head.lines().next().unwrap_or_default().to_owned());
                let (code, body) = answer.lock().unwrap().clone();
                let length = body.len();
                let more = format!("location: http://{}/elsewhere\r\nconnection: close\r\n", "127.0.0.1:9");
                write!(stream, "HTTP/1.1 {code} X\r\ncontent-length: {length}\r\n{more}\r\n{body}").ok();
            }
        });
        prometheus
    }

    fn answer(&self, code: u16, body: &Value) {
        *self.answer.lock().unwrap() = (code, body.to_string());
    }

    fn measures(&self, value: &str) {
        let result = json!([{"metric": {}, "value": [1.5, value]}]);
        self.answer(200, &json!({"status": "success", "data": {"resultType": "vector", "result": result}}));
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

/// A service that is evaluated whenever somebody asks for it.
struct Shop {
    world: World,
    prometheus: Prometheus,
    commit: String,
}

impl Shop {
    fn new() -> Self {
        let (world, prometheus) = (World::new(&[]), Prometheus::new());
        let shipyard = format!(
            "\
apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {{name: shop}}
spec:
  stages:
  - name: dev
    sequences:
    - name: check
      tasks:
      - name: evaluation
        properties:
          objectives:
          - {{sli: response_time_p95, pass: [{{criteria: ['<600', '<=+10%']}}], warning: [{{criteria: ['<=800']}}]}}
          - {{sli: users}}
          prometheus:
            url: http://{}/under
            queries:
              response_time_p95: 'p95{{service=\"$SERVICE\"}}[$DURATION_SECONDS]'
    - name: rollback
      triggeredOn: [{{event: dev.check.finished, selector: {{match: {{evaluation.result: fail}}}}}}]
      tasks: [{{name: rollback}}]
",
            prometheus.address
        );
        private(&world.git.path("token"), &format!("{TOKEN}\n"));
        let (token, bare) = (world.git.path("token"), world.git.bare());
        let opened =
            format!("prometheus: [{{url: 'http://{}/under/', tokenFile: {}}}]", prometheus.address, token.display());
        world.configure(&repository("shop", &bare.display().to_string(), &[&opened]));
        world.start();
        let commit = world.git.push_files(&[("shipyard.yaml", &shipyard)]);
        world.status(&commit, "launchway/plan", "success");
        Self { world, prometheus, commit }
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let token = std::fs::read_to_string(self.world.state().join("operator-token")).unwrap();
        let headers = [("content-type", "application/json"), ("x-token", token.trim())];
        let (code, text) = http(&self.world.address(), method, path, &headers, body.to_string().as_bytes());
        assert_eq!(code, 200, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    /// Somebody asks for an evaluation of a service, and gives these values; all that follows has `id` as its context.
    fn evaluate(&self, id: &str, service: &str, values: &Value) {
        let data = json!({"project": "shop", "stage": "dev", "service": service, "evaluation": {"values": values}});
        let kind = "sh.keptn.event.dev.check.triggered";
        let event =
            json!({"specversion": "1.0", "id": id, "source": "ci", "type": kind, "shkeptncontext": id, "data": data});
        self.call("POST", "/api/v1/event", &event);
    }

    /// What was told of an evaluation, once it has ended.
    fn finished(&self, id: &str) -> Value {
        let path = format!("/api/v1/event?keptnContext={id}&type=sh.keptn.event.evaluation.finished&pageSize=10");
        let events = || self.call("GET", &path, &Value::Null)["events"].clone();
        eventually("an evaluation has ended", || events().as_array().is_some_and(|it| it.len() == 1));
        events()[0]["data"].clone()
    }

    fn status(&self, service: &str, state: &str) -> String {
        self.world.status(&self.commit, &format!("launchway/dev/{service}/check.evaluation"), state)
    }
}

#[test]
fn objectives_are_judged_by_prometheus_and_by_what_was_before_although_the_daemon_dies_meanwhile() {
    let shop = Shop::new();
    shop.evaluate("c1", "cart", &json!({}));
    eventually("it is asked", || shop.prometheus.asked() > 0);
    let waits = shop.status("cart", "running");
    assert!(waits.contains("asks http://") || waits.contains("503"), "{waits}");
    shop.world.kill();
    shop.prometheus.measures("500");
    shop.world.start();
    assert_eq!(shop.finished("c1")["evaluation"]["score"], json!(100));
    assert!(shop.status("cart", "success").contains("pass, score 100 %"), "{}", shop.status("cart", "success"));
    let asked = shop.prometheus.asked.lock().unwrap().last().cloned().unwrap();
    assert!(asked.starts_with("GET /under/api/v1/query?query=p95%7B") && asked.contains("&time="), "{asked}");
    assert!(asked.contains("cart") && asked.contains("300s"), "{asked}");
    let opened = shop.prometheus.opened.lock().unwrap().clone();
    assert!(opened.iter().all(|it| *it == format!("Bearer {TOKEN}")), "{opened:?}");
    let told = [shop.world.tell(&["events"]), shop.call("GET", "/api/v1/event?pageSize=100", &Value::Null).to_string()];
    assert!(told.iter().all(|told| !told.contains(TOKEN)), "{told:?}");

    shop.prometheus.measures("812");
    shop.evaluate("c2", "cart", &json!({}));
    let told = shop.finished("c2");
    assert_eq!((&told["result"], &told["status"]), (&json!("fail"), &json!("succeeded")));
    let evaluation = &told["evaluation"];
    assert_eq!((&evaluation["result"], &evaluation["score"]), (&json!("fail"), &json!(0)));
    assert_eq!(evaluation["indicatorResults"][0]["value"]["comparedValue"], json!(500.0));
    assert_eq!(evaluation["comparedEvents"].as_array().map(Vec::len), Some(1));
    let status = shop.status("cart", "failure");
    let line = "fail, score 0 %: response_time_p95 is 812, not <600 and <=+10% (550)";
    assert!(status.contains(line), "{status}");
    let offered = "/api/controlPlane/v1/event/triggered/sh.keptn.event.rollback.triggered";
    let events = || shop.call("GET", offered, &Value::Null)["events"].clone();
    eventually("what is triggered on `evaluation.result` runs", || events().as_array().is_some_and(|it| it.len() == 1));
}

#[test]
fn given_values_are_asked_of_nobody_and_what_cannot_be_measured_is_an_error_or_fails() {
    let shop = Shop::new();
    shop.evaluate("c1", "one", &json!({"response_time_p95": "700", "users": 12}));
    assert_eq!(shop.finished("c1")["evaluation"]["indicatorResults"][1]["value"]["value"], json!(12));
    assert!(shop.status("one", "failure").contains("fail, score 50 %: response_time_p95 is 700, not <600"));
    assert_eq!(shop.prometheus.asked(), 0);

    shop.prometheus.answer(400, &json!({"status": "error", "errorType": "bad_data", "error": "parse error"}));
    shop.evaluate("c2", "two", &json!({}));
    let told = shop.finished("c2");
    assert_eq!((&told["status"], &told["result"]), (&json!("succeeded"), &json!("fail")));
    assert!(told["message"].as_str().unwrap().contains("response_time_p95 has no value: parse error"), "{told}");

    shop.prometheus.answer(302, &json!({}));
    shop.evaluate("c3", "three", &json!({}));
    let told = shop.finished("c3");
    assert_eq!((&told["status"], &told["evaluation"]), (&json!("errored"), &Value::Null));
    assert!(told["message"].as_str().unwrap().contains("redirects are not followed"), "{told}");
}
