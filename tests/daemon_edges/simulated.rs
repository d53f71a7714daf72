//! What `launchway simulate` tells of a script is what a daemon tells of the same.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::process::Command as Program;

use launchway::model::cloud_event::{PREFIX, Phase};
use launchway::simulation::script::{Command, ExecutorAnswer, Place, Script, TaskName};
use serde_json::{Value, json};

use super::events::Shop;
use crate::support::daemon::eventually;

const SHIPYARD: &str = "\
apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shop}
spec:
  stages:
  - name: dev
    sequences:
    - name: delivery
      tasks:
      - {name: deploy, properties: {strategy: direct}}
      - {name: test, triggeredAfter: 1s, retries: 1}
    - name: rollback
      triggeredOn: [{event: dev.delivery.finished, selector: {match: {result: fail}}}]
      tasks: [{name: undo}]
    - name: repair
      triggeredOn: [{event: problem.open, selector: {match: {problem.kind: slow}}}]
      tasks: [{name: restart, startTimeout: 1s}, {name: notify, condition: always}]
  - name: production
    sequences:
    - name: delivery
      triggeredOn: [{event: dev.delivery.finished}]
      tasks:
      - {name: approval, properties: {pass: automatic, warning: manual}}
      - {name: deploy, properties: {strategy: direct}}
      - name: evaluation
        properties:
          objectives: [{sli: speed, pass: [{criteria: [\"<9\"]}]}]
";

const SCRIPT: &str = "\
answer deploy deploy.uri=http://cart.dev
trigger dev.delivery cart labels.build=\"17\" deploy.image=cart:17 evaluation.values.speed=5
pass 1s
start test by=k6 test.threads=3
report test by=k6 message=\"half of it\"
finish test by=k6 result=warning test.load=12 message=\"slower than before\"
approve production/cart seen by ada
trigger dev.delivery cart deploy.image=cart:18 evaluation.values.speed=12
pass 1s
do test result=fail
pass 2s
do test result=fail message=\"too slow\"
start undo
abort dev/cart
finish undo status=aborted result=fail
send problem.open cart stage=dev problem.kind=slow
pass 1s
do notify
rerun dev/cart delivery
pass 1s
pause dev/cart
do test
resume production/cart
";

/// A daemon to which a script is told.
struct Audience<'a> {
    shop: &'a Shop,
    answers: Vec<(String, ExecutorAnswer)>,
    sent: RefCell<usize>,
    /// By source, id and type.
    heard: RefCell<BTreeMap<(String, String, String), Value>>,
}

impl Audience<'_> {
    fn send(&self, source: &str, kind: &str, more: &Value) {
        *self.sent.borrow_mut() += 1;
        let mut event = json!({
            "specversion": "1.0", "id": format!("{source}-{}", self.sent.borrow()), "source": source, "type": kind,
        });
        more.as_object().unwrap().iter().for_each(|(key, value)| event[key] = value.clone());
        let (code, answer) = self.shop.call("POST", "/api/v1/event", &event);
        assert_eq!(code, 200, "{event}: {answer}");
    }

    fn open(&self, name: &TaskName) -> Option<Value> {
        let path = format!("/api/controlPlane/v1/event/triggered/sh.keptn.event.{}.triggered", name.task);
        let events = self.shop.call("GET", &path, &Value::Null).1["events"].clone();
        let is_there = |place: &Place, event: &Value| {
            event["data"]["stage"] == place.stage.as_str() && event["data"]["service"] == place.service.as_str()
        };
        let is_meant = |event: &&Value| name.place.as_ref().is_none_or(|place| is_there(place, event));
        events.as_array().unwrap().iter().find(is_meant).cloned()
    }

    fn execute(&self, open: &Value, task: &str, phases: &[Phase], answer: &ExecutorAnswer) {
        for phase in phases {
            let mut data = json!({});
            ["project", "stage", "service"].iter().for_each(|key| data[key] = open["data"][key].clone());
            if *phase == Phase::Finished {
                (data["status"], data["result"]) = (json!("succeeded"), json!("pass"));
            }
            if *phase != Phase::Started || phases.len() == 1 {
                answer.data.as_object().unwrap().iter().for_each(|(key, value)| data[key] = value.clone());
            }
            let kind = format!("sh.keptn.event.{task}.{}", phase.word());
            self.send(&answer.by, &kind, &json!({"triggeredid": open["id"], "data": data}));
        }
    }

    fn carry_out(&mut self, command: &Command) {
        let world = &self.shop.world;
        match command {
            Command::Send { kind, service, data } => {
                let mut data = data.clone();
                (data["project"], data["service"]) = (json!("shop"), json!(service));
                self.send("script", kind, &json!({ "data": data }));
            }
            Command::Task { task, phases, answer } => {
                // What is ending is offered to nobody, and its executor tells its end all the same.
                let asked = format!("sh.keptn.event.{}.triggered", task.task);
                let latest = || {
                    self.heard
                        .borrow()
                        .values()
                        .filter(|event| event["type"] == asked)
                        .max_by_key(|it| it["time"].to_string())
                        .cloned()
                };
                let open = self.open(task).or_else(latest).unwrap();
                self.execute(&open, &task.task, phases, answer);
            }
            Command::Answer { task, answer } => self.answers.push((task.clone().unwrap(), answer.clone().unwrap())),
            Command::Decide { place, approve: true, reason } => {
                let place = (place.service.as_str(), place.stage.as_str());
                drop(world.tell(&["approve", place.0, "-s", place.1, "--reason", reason]));
            }
            Command::Pause { place, paused } => {
                let verb = if *paused { "pause" } else { "resume" };
                drop(world.tell(&[verb, place.service.as_str(), "-s", place.stage.as_str()]));
            }
            Command::Abort { place } => {
                drop(world.tell(&["abort", place.service.as_str(), "-s", place.stage.as_str()]));
            }
            Command::Rerun { place, sequence, from_start } => {
                let named = sequence.iter().flat_map(|sequence| ["--sequence", sequence]);
                let options = named.chain(from_start.then_some("--from-start"));
                let words = ["rerun", place.service.as_str(), "-s", place.stage.as_str()];
                drop(world.tell(&words.into_iter().chain(options).collect::<Vec<_>>()));
            }
            Command::Pass(_) => {} // it passes by itself
            other => unreachable!("{other:?} is nothing that a daemon can be told"),
        }
    }

    /// Everything that was told until now, while executors do what they do by themselves.
    fn hear(&self) -> Vec<Value> {
        for (task, answer) in &self.answers {
            if let Some(open) = self.open(&TaskName { place: None, task: task.clone() }) {
                self.execute(&open, task, &[Phase::Started, Phase::Finished], answer);
            }
        }
        let events = self.shop.call("GET", "/api/v1/event?pageSize=500", &Value::Null).1["events"].clone();
        let key = |event: &Value| ["source", "id", "type"].map(|key| event[key].as_str().unwrap().to_owned());
        for event in events.as_array().unwrap().iter().rev() {
            let [source, id, kind] = key(event);
            if !kind.starts_with(PREFIX) {
                continue; // what happened is what the script tells
            }
            self.heard.borrow_mut().entry((source, id, kind)).or_insert_with(|| event.clone());
        }
        let mut heard: Vec<Value> = self.heard.borrow().values().cloned().collect();
        heard.sort_by_key(|event| event["time"].to_string());
        heard
    }
}

/// Without how long it took exactly until time was up.
fn timeless(line: &str) -> String {
    match line.split_once(" within ") {
        Some((what, rest)) => format!("{what} in vain{}", rest.trim_start_matches(|it: char| it != ':')),
        None => line.to_owned(),
    }
}

/// Events without what differs each time: each as its type, its source, what it answers, its delivery and its data.
fn answer(events: &[Value]) -> Vec<String> {
    let kind_of = |id: &Value| {
        let of =
            events.iter().find(|event| event["id"] == *id && event["type"].as_str().unwrap().ends_with("triggered"));
        of.map(|event| event["type"].as_str().unwrap().to_owned()).unwrap_or_default()
    };
    let person = |text: &str| {
        let approval = events.iter().find(|event| event["type"] == "sh.keptn.event.approval.finished");
        let name = approval.filter(|it| it["source"] != "launchway").and_then(|event| event["source"].as_str());
        text.replace(name.unwrap_or("somebody"), "somebody")
    };
    let mut contexts: Vec<&Value> = Vec::new();
    let mut lines: Vec<String> = Vec::new();
    for event in events {
        let context = &event["shkeptncontext"];
        let place = contexts.iter().position(|known| *known == context).unwrap_or_else(|| {
            contexts.push(context);
            contexts.len() - 1
        });
        let (kind, source, data) = (&event["type"], &event["source"], &event["data"]);
        assert!(event["gitcommitid"].is_string(), "{event}");
        let mut data = data.clone();
        if let Some(evaluation) = data["evaluation"].as_object_mut() {
            ["timeStart", "timeEnd", "comparedEvents"].iter().for_each(|key| drop(evaluation.remove(*key)));
        }
        lines.push(timeless(&person(&format!(
            "{place} {kind} of {source} answers {}: {data}",
            kind_of(&event["triggeredid"])
        ))));
    }
    lines.sort();
    lines
}

/// Contexts in their order, with their stages.
fn states(states: &Value) -> Vec<String> {
    let stages = |state: &Value| -> Vec<String> {
        let stages = state["stages"].as_array().unwrap().iter();
        stages
            .map(|stage| {
                format!("{} {} {} {}", stage["name"], stage["state"], stage["image"], stage["latestEvaluation"])
            })
            .collect()
    };
    let state = |it: &Value| format!("{} {} {} {:?}", it["name"], it["service"], it["state"], stages(it));
    states.as_array().unwrap().iter().map(state).collect()
}

#[test]
fn a_simulation_tells_what_a_daemon_tells() {
    let shop = Shop::of(SHIPYARD);
    let folder = shop.world.git.path("shop");
    fs::create_dir_all(&folder).unwrap();
    let (shipyard, path) = (folder.join("shipyard.yaml"), folder.join("script.txt"));
    fs::write(&shipyard, SHIPYARD).unwrap();
    fs::write(&path, SCRIPT).unwrap();
    let mut program = Program::new(env!("CARGO_BIN_EXE_launchway"));
    let done = program.arg("simulate").arg(&shipyard).arg("--script").arg(&path).args(["-o", "json"]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let simulated: Value = serde_json::from_slice(&done.stdout).unwrap();

    let script = Script::read("script.txt", SCRIPT).unwrap();
    let mut daemon = Audience { shop: &shop, answers: Vec::new(), sent: RefCell::default(), heard: RefCell::default() };
    let mut expected: Vec<Value> = Vec::new();
    for (line, step) in script.lines.iter().zip(simulated["steps"].as_array().unwrap()) {
        assert_eq!((step["line"].as_u64(), &step["ignored"]), (Some(line.number.into()), &Value::Null), "{step}");
        expected.extend(step["events"].as_array().unwrap().iter().cloned());
        daemon.carry_out(&line.command);
        // A daemon's time passes by itself: what comes later in the script may have come already.
        let is_told = || {
            let mut heard = answer(&daemon.hear());
            answer(&expected)
                .iter()
                .all(|line| heard.iter().position(|it| it == line).map(|at| heard.remove(at)).is_some())
        };
        eventually(&format!("what follows from `{}`", line.text), is_told);
    }
    assert_eq!(answer(&daemon.hear()), answer(&expected));
    assert_eq!(states(&shop.states()), states(&simulated["states"]));
}
