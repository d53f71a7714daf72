//! Sinks: programs elsewhere that are told what happens, and may do tasks that they hear of.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::orders::task;
use crate::support::daemon::{World, complaint, eventually, http, private};

/// What was posted: the head and the event.
type Posted = (String, Value);

/// Takes events, and answers as it is told to.
#[derive(Clone)]
struct Receiver {
    address: String,
    /// What it answers to events whose type has this in it; 0 is to say nothing at all.
    answers: Arc<Mutex<Vec<(String, u16)>>>,
    posted: Arc<Mutex<Vec<Posted>>>,
    /// Connections on which nothing is ever said.
    silent: Arc<Mutex<Vec<TcpStream>>>,
}

impl Receiver {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let receiver = Self { address, answers: Arc::default(), posted: Arc::default(), silent: Arc::default() };
        let own = receiver.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let own = own.clone();
                std::thread::spawn(move || own.serve(stream));
            }
        });
        receiver
    }

    fn serve(&self, mut stream: TcpStream) {
        while let Some((head, event)) = request(&mut stream) {
            let kind = event["type"].as_str().unwrap_or_default().to_owned();
            self.posted.lock().unwrap().push((head, event));
            let answers = self.answers.lock().unwrap().clone();
            match answers.iter().rev().find(|(part, _)| kind.contains(part.as_str())).map_or(204, |(_, code)| *code) {
                0 => return self.silent.lock().unwrap().push(stream),
                code => drop(write!(stream, "HTTP/1.1 {code} X\r\ncontent-length: 0\r\n\r\n")),
            }
        }
    }

    /// From now on, it answers so to events whose type has `part` in it.
    fn answer(&self, part: &str, code: u16) {
        self.answers.lock().unwrap().push((part.to_owned(), code));
    }

    fn posted(&self) -> Vec<Posted> {
        self.posted.lock().unwrap().clone()
    }

    /// The short types of what was posted.
    fn kinds(&self) -> Vec<String> {
        let kind =
            |(_, event): &Posted| event["type"].as_str().unwrap().trim_start_matches("sh.keptn.event.").to_owned();
        self.posted().iter().map(kind).collect()
    }
}

/// One request, if there is one.
fn request(stream: &mut TcpStream) -> Option<Posted> {
    let (mut all, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let end = all.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4);
        let head = end.map(|end| String::from_utf8_lossy(&all[..end]).into_owned());
        if let (Some(head), Some(end)) = (head, end) {
            let length = header(&head, "content-length").parse::<usize>().unwrap();
            if all.len() >= end + length {
                return Some((head, serde_json::from_slice(&all[end..end + length]).unwrap()));
            }
        }
        match stream.read(&mut part) {
            Ok(count) if count > 0 => all.extend_from_slice(&part[..count]),
            _ => return None,
        }
    }
}

fn header(head: &str, name: &str) -> String {
    let line = |line: &str| line.to_lowercase().starts_with(&format!("{name}: "));
    let found = head.lines().find(|it| line(it)).unwrap_or_default();
    found.split_once(": ").map_or(String::new(), |(_, value)| value.to_owned())
}

const SHIPYARD: &str = "\
apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shop}
spec:
  stages:
  - name: dev
    sequences: [{name: check, tasks: [{name: scan}, {name: test}]}]
";

/// All that happens in a check, in its order.
const WHOLE: [&str; 9] = [
    "dev.check.triggered",
    "dev.check.started",
    "scan.triggered",
    "scan.started",
    "scan.finished",
    "test.triggered",
    "test.started",
    "test.finished",
    "dev.check.finished",
];

/// A daemon with sinks, a scan that a pod does, and a test that nobody does by itself.
fn shop(sinks: &str) -> World {
    let world = World::new(&[]);
    let configuration = std::fs::read_to_string(world.config()).unwrap();
    private(&world.config(), &format!("{configuration}\nsinks:\n{sinks}"));
    world.start();
    let commit = world.git.push_files(&[("shipyard.yaml", SHIPYARD), ("scan.yaml", &task("scan", "host", "exit 0"))]);
    world.status(&commit, "launchway/plan", "success");
    world
}

fn check(world: &World, service: &str) {
    world.tell(&["trigger", "sequence", "check", service, "-s", "dev"]);
}

/// An executor that is no more than a webhook: it answers by events.
fn finish(world: &World, triggered: &Value) {
    let token = std::fs::read_to_string(world.state().join("operator-token")).unwrap();
    for (word, more) in [("started", json!({})), ("finished", json!({"status": "succeeded", "result": "pass"}))] {
        let mut data = json!({"project": "shop", "stage": "dev", "service": triggered["data"]["service"]});
        more.as_object().unwrap().iter().for_each(|(key, value)| data[key] = value.clone());
        let id = triggered["id"].as_str().unwrap();
        let event = json!({
            "specversion": "1.0", "id": format!("{id}-{word}"), "source": "webhook", "triggeredid": id,
            "type": format!("sh.keptn.event.test.{word}"), "data": data,
        });
        let headers = [("content-type", "application/json"), ("x-token", token.trim())];
        let body = event.to_string();
        let (code, _) = http(&world.address(), "POST", "/api/v1/event", &headers, body.as_bytes());
        assert_eq!(code, 200);
    }
}

#[test]
fn a_sink_is_told_everything_in_order_signed_and_does_a_task_that_it_hears_of() {
    let receiver = Receiver::new();
    let secret = tempfile::NamedTempFile::new().unwrap();
    private(secret.path(), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n");
    let sinks =
        format!("- {{name: ci, url: 'http://{}/hook', secretFile: {}}}\n", receiver.address, secret.path().display());
    let world = shop(&sinks);
    check(&world, "cart");
    eventually("the test is told", || receiver.kinds().contains(&"test.triggered".to_owned()));
    let triggered = receiver
        .posted()
        .into_iter()
        .map(|(_, event)| event)
        .find(|event| event["type"] == "sh.keptn.event.test.triggered");
    finish(&world, &triggered.unwrap());
    eventually("the end is told", || receiver.kinds().last().is_some_and(|kind| kind == "dev.check.finished"));
    assert_eq!(receiver.kinds(), WHOLE);
    let (_, told) = {
        let answer = http(&world.address(), "GET", "/api/v1/event?pageSize=100", &[], b"");
        (answer.0, serde_json::from_str::<Value>(&answer.1).unwrap())
    };
    let mut ids: Vec<&str> = told["events"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
    let posted = receiver.posted();
    let mut told: Vec<&str> = posted.iter().map(|(_, event)| event["id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    told.sort_unstable();
    assert_eq!(told, ids, "the API shows the same");
    for (head, event) in &posted {
        assert_eq!(header(head, "content-type"), "application/cloudevents+json; charset=utf-8");
        let (id, at) = (header(head, "webhook-id"), header(head, "webhook-timestamp"));
        let key = Key::new(HMAC_SHA256, &STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap());
        let signed = sign(&key, format!("{id}.{at}.{event}").as_bytes());
        assert_eq!(header(head, "webhook-signature"), format!("v1,{}", STANDARD.encode(signed)), "{event}");
    }
}

#[test]
fn a_sink_that_hangs_or_is_away_holds_up_neither_others_nor_sequences_and_is_told_later() {
    let (silent, other) = (Receiver::new(), Receiver::new());
    silent.answer("", 0);
    let sinks = format!(
        "- {{name: silent, url: 'http://{}'}}\n- name: other\n  url: 'http://{}'\n  subscriptions:\n  \
         - {{types: ['*.finished'], services: [cart], matchExpressions: [{{key: result, operator: In, values: [pass]}}]}}\n",
        silent.address, other.address
    );
    let world = shop(&sinks);
    check(&world, "cart");
    check(&world, "web");
    eventually("the scan of cart is told", || other.kinds() == ["scan.finished"]);
    let offered = || {
        let path = "/api/controlPlane/v1/event/triggered/sh.keptn.event.test.triggered";
        let told: Value = serde_json::from_str(&http(&world.address(), "GET", path, &[], b"").1).unwrap();
        told["events"].as_array().unwrap().clone()
    };
    eventually("both tests are offered", || offered().len() == 2);
    offered().iter().for_each(|triggered| finish(&world, triggered));
    eventually("the end of cart is told", || other.kinds() == ["scan.finished", "test.finished", "dev.check.finished"]);
    assert!(silent.kinds().iter().all(|kind| kind == "dev.check.triggered"), "{:?}", silent.kinds());
    world.kill();
    silent.answer("", 200);
    let before = silent.kinds().len();
    world.start();
    let of_cart = || {
        let told = silent.posted().split_off(before);
        let told = told.into_iter().filter(|(_, event)| event["data"]["service"] == "cart");
        told.map(|(_, event)| event["type"].as_str().unwrap().trim_start_matches("sh.keptn.event.").to_owned())
            .collect()
    };
    let expected: Vec<String> = WHOLE.map(str::to_owned).into();
    let told: Mutex<Vec<String>> = Mutex::default();
    eventually("what happened meanwhile is told in its order", || {
        *told.lock().unwrap() = of_cart();
        *told.lock().unwrap() == expected
    });
}

#[test]
fn what_is_refused_for_good_stands_in_the_history_and_the_rest_is_told() {
    let receiver = Receiver::new();
    receiver.answer("scan.triggered", 400);
    receiver.answer("scan.started", 307);
    let world = shop(&format!("- {{name: ci, url: 'http://{}'}}\n", receiver.address));
    check(&world, "cart");
    eventually("the test is told", || receiver.kinds().contains(&"test.triggered".to_owned()));
    let told = world.tell(&["events"]);
    assert!(told.contains("scan.triggered was not told to ci: sink `ci` answers 400"), "{told}");
    assert!(told.contains("scan.started was not told to ci: sink `ci` answers 307"), "{told}");
    assert_eq!(receiver.kinds().iter().filter(|kind| *kind == "scan.triggered").count(), 1, "it is not told again");
}

#[test]
fn an_event_that_a_sink_cannot_take_now_waits_with_what_follows_it_and_nothing_else_does() {
    let receiver = Receiver::new();
    receiver.answer("scan.started", 503);
    let world = shop(&format!("- {{name: ci, url: 'http://{}/T0/secret'}}\n", receiver.address));
    check(&world, "cart");
    eventually("it is told once", || receiver.kinds().contains(&"scan.started".to_owned()));
    check(&world, "web");
    let of = |service: &str| -> Vec<String> {
        let posted = receiver.posted().into_iter().filter(|(_, event)| event["data"]["service"] == service);
        posted.map(|(_, event)| event["type"].as_str().unwrap().to_owned()).collect()
    };
    eventually("the other one is told", || of("web").iter().any(|kind| kind.ends_with("scan.started")));
    assert!(!of("cart").iter().any(|kind| kind.ends_with("scan.finished")), "what follows waits");
    let told = || world.json(&["get", "sinks"])["items"][0].clone();
    eventually("it is told that it fails", || told()["status"] == "Failing" && told()["waiting"].as_u64() >= Some(2));
    assert_eq!(told()["url"], format!("http://{}", receiver.address), "the rest may be a secret");
    assert_eq!(told()["problem"], "sink `ci` answers 503 Service Unavailable");
    assert!(told()["failingSince"].is_string() && told()["oldest"].is_string(), "{}", told());
    receiver.answer("scan.started", 200);
    eventually("both are told", || {
        ["cart", "web"].iter().all(|service| of(service).iter().any(|kind| kind.ends_with("test.triggered")))
    });
    eventually("nothing waits", || (&told()["status"], &told()["waiting"]) == (&json!("Ready"), &json!(0)));
    world.stop();
    let nobody = world.run(&["get", "sinks"]);
    assert_eq!(nobody.status.code(), Some(3), "{}", complaint(&nobody));
}
