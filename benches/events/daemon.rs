//! A real daemon that is told events over HTTP, as executors tell them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use launchway::clock::from_rfc3339;
use serde_json::{Value, json};

use super::TASKS;
use crate::support::daemon::Daemon;
use crate::support::import::Importer;
use crate::support::kernel::{kernel_says, mib};
use crate::support::processor::processor_time;
use crate::support::{figures, git};

/// How many events are told at a hundred a second.
const EVENTS: usize = 2_000;
/// For how long there is one sequence a second.
const SECONDS: u32 = 60;
/// How many sequences wait for executors at once.
const RUNNING: usize = 1_000;
/// How many sequences pause for a second.
const PAUSES: usize = 100;
const PAUSE: Duration = Duration::from_secs(1);

const SHIPYARD: &str = "\
apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shop}
spec:
  stages:
  - name: dev
    sequences:
    - {name: check, tasks: [{name: build}, {name: verify}, {name: release}, {name: announce}]}
    - {name: later, tasks: [{name: build, triggeredAfter: 1s}]}
";

pub(crate) fn measure() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let bare = git::bare(folder.path());
    let mut importer = Importer::start(&bare);
    importer.commit([("shipyard.yaml".to_owned(), SHIPYARD.to_owned())]);
    importer.end();
    let daemon = Daemon::start(folder.path(), &bare);
    let mut shop = Shop::of(&daemon, folder.path());
    let at_rest = memory(&daemon);
    transitions(&mut shop);
    processor(&daemon, &mut shop);
    pauses(&mut shop);
    running(&daemon, &mut shop, &at_rest);
}

/// How long an event takes at a hundred a second, from its request to the answer that it is durable.
fn transitions(shop: &mut Shop) {
    let (mut times, begin) = (Vec::new(), Instant::now());
    let mut due = begin;
    while times.len() < EVENTS {
        shop.sequence("hundred", |shop, event| {
            wait_for(due);
            due += Duration::from_millis(10);
            let told = Instant::now();
            let answer = shop.tell(event);
            times.push(told.elapsed());
            answer
        });
    }
    figures::tell("an event at 100 a second, until it is durable and answered", times);
}

/// What a sequence a second takes of the processor.
fn processor(daemon: &Daemon, shop: &mut Shop) {
    let (before, begin) = (processor_time(daemon.process.id()), Instant::now());
    for second in 0..SECONDS {
        wait_for(begin + Duration::from_secs(second.into()));
        shop.sequence("second", Shop::tell);
    }
    wait_for(begin + Duration::from_secs(SECONDS.into()));
    let took = processor_time(daemon.process.id()) - before;
    let part = 100.0 * took.as_secs_f64() / f64::from(SECONDS);
    println!("a sequence of {} tasks a second: {part:.1} % of a core, {took:.1?} in {SECONDS} s", TASKS.len());
}

/// How late tasks begin that pause before.
fn pauses(shop: &mut Shop) {
    for number in 0..PAUSES {
        shop.tell(&shop.about(&format!("p{number}"), "dev.later.triggered", &format!("p{number}"), None));
        std::thread::sleep(Duration::from_millis(7));
    }
    let mut begun = shop.times("build.triggered");
    while begun.len() < PAUSES {
        std::thread::sleep(PAUSE);
        begun = shop.times("build.triggered");
    }
    let asked = shop.times("dev.later.started");
    let late = asked.iter().map(|(context, at)| {
        let (_, begun) = begun.iter().find(|(other, _)| other == context).unwrap();
        Duration::from_millis(u64::try_from(begun - at).unwrap()).saturating_sub(PAUSE)
    });
    figures::tell("how late a task begins after a pause of a second", late.collect());
}

/// What many sequences take of the memory that all wait for executors.
fn running(daemon: &Daemon, shop: &mut Shop, at_rest: &str) {
    for number in 0..RUNNING {
        let service = format!("r{number}");
        let started = shop.tell(&shop.about(&service, "dev.check.triggered", &service, None));
        let asked = format!("{}.0.1", started["runs"][0].as_str().unwrap());
        shop.tell(&shop.about(&service, "build.started", &format!("{asked}-s"), Some(&asked)));
    }
    println!("memory: {at_rest} at first, {} with {RUNNING} sequences running", memory(daemon));
}

fn memory(daemon: &Daemon) -> String {
    let process = daemon.process.id().to_string();
    let says = |field: &str| mib(kernel_says(&process, "status", field));
    format!("{} resident, {} of that its own", says("VmRSS"), says("RssAnon"))
}

fn wait_for(due: Instant) {
    std::thread::sleep(due.saturating_duration_since(Instant::now()));
}

/// The daemon's way in, over one connection.
struct Shop {
    connection: BufReader<TcpStream>,
    token: String,
    sequences: usize,
}

impl Shop {
    fn of(daemon: &Daemon, folder: &Path) -> Self {
        let connection = TcpStream::connect(&daemon.address).unwrap();
        connection.set_nodelay(true).unwrap();
        let token = std::fs::read_to_string(folder.join("state/operator-token")).unwrap();
        Self { connection: BufReader::new(connection), token: token.trim().to_owned(), sequences: 0 }
    }

    fn about(&self, service: &str, kind: &str, id: &str, triggered: Option<&str>) -> Value {
        let data =
            json!({"project": "shop", "stage": "dev", "service": service, "status": "succeeded", "result": "pass"});
        let kind = format!("sh.keptn.event.{kind}");
        let mut event = json!({"specversion": "1.0", "id": id, "source": "ci", "type": kind, "data": data});
        if let Some(triggered) = triggered {
            event["triggeredid"] = json!(triggered);
        }
        event
    }

    /// A whole sequence of a service, each event told as `tell` does it.
    fn sequence(&mut self, service: &str, mut tell: impl FnMut(&mut Self, &Value) -> Value) {
        self.sequences += 1;
        let id = format!("{service}-{}", self.sequences);
        let triggered = self.about(service, "dev.check.triggered", &id, None);
        let run = tell(self, &triggered)["runs"][0].as_str().unwrap().to_owned();
        for (place, task) in TASKS.iter().enumerate() {
            let asked = format!("{run}.{place}.1");
            for phase in ["started", "finished"] {
                let told = self.about(service, &format!("{task}.{phase}"), &format!("{asked}-{phase}"), Some(&asked));
                tell(self, &told);
            }
        }
    }

    fn tell(&mut self, event: &Value) -> Value {
        let answer = self.ask("POST", "/api/v1/event", &event.to_string());
        assert_eq!(answer.get("ignored").and_then(Value::as_str).unwrap_or_default(), "", "{answer}");
        answer
    }

    /// When something was told last, by context.
    fn times(&mut self, kind: &str) -> Vec<(String, i64)> {
        let path = format!("/api/mongodb-datastore/event?project=shop&type=sh.keptn.event.{kind}&pageSize={PAUSES}");
        let events = self.ask("GET", &path, "")["events"].clone();
        let text = |event: &Value, key: &str| event[key].as_str().unwrap().to_owned();
        let time = |event: &Value| from_rfc3339(&text(event, "time")).unwrap().0;
        let later = events
            .as_array()
            .unwrap()
            .iter()
            .filter(|event| event["data"]["service"].as_str().unwrap().starts_with('p'));
        later.map(|event| (text(event, "shkeptncontext"), time(event))).collect()
    }

    fn ask(&mut self, method: &str, path: &str, body: &str) -> Value {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nx-token: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.token,
            body.len()
        );
        self.connection.get_mut().write_all(format!("{head}{body}").as_bytes()).unwrap();
        let (mut status, mut length) = (String::new(), 0);
        self.connection.read_line(&mut status).unwrap();
        loop {
            let mut line = String::new();
            self.connection.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim().split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut answer = vec![0; length];
        self.connection.read_exact(&mut answer).unwrap();
        assert!(status.contains(" 200 "), "{status}{}", String::from_utf8_lossy(&answer));
        serde_json::from_slice(&answer).unwrap()
    }
}
