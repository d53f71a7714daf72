//! From the call about a push to what was pushed, and from its end to the status on the host.

use std::time::{Duration, Instant};

use launchway::clock::from_rfc3339;
use launchway::model::time::Timestamp;
use serde_json::Value;

use super::caller::{Caller, SECRET, push, sign};
use super::place::Place;
use crate::support::daemon::wait_until;
use crate::support::{figures, git, version};

/// The context of a whole stage, and its last state.
const STAGE: (&str, &str) = ("launchway/default", "success");

pub(crate) fn measure(place: &Place, pushes: u32) {
    let mut caller = Caller::new(&place.daemon.address);
    let (mut answered, mut queued, mut started, mut shown) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut before = place.head();
    shown_after_its_end(place, &before);
    for number in 1..=pushes {
        version::commit(&place.work, number);
        git::run(&place.work, &["push", "--quiet", "origin", "HEAD:main"]);
        let commit = place.head();
        let body = push(&before, &commit);
        let signature = sign(SECRET, &body);
        let (begun, at) = (Instant::now(), now());
        assert_eq!(caller.call(&number.to_string(), &body, Some(&signature)), 200);
        answered.push(begun.elapsed());
        wait_until("its pod runs", || version::started(&place.work, number));
        started.push(begun.elapsed());
        let (created, after_its_end) = shown_after_its_end(place, &commit);
        queued.push(between(at, created));
        shown.push(after_its_end);
        before = commit;
    }
    figures::tell("from a webhook's call to its answer", answered);
    figures::tell("from a webhook's call to the deployment's queued run", queued);
    figures::tell("from a webhook's call to the first process of the new version", started);
    figures::tell("from the end of a delivery to its status on the host", shown);
}

/// Waits until a commit's delivery has ended and that is shown: when it began, and how long that took from its end.
fn shown_after_its_end(place: &Place, commit: &str) -> (Timestamp, Duration) {
    let (context, state) = STAGE;
    wait_until("the host shows its end", || place.host.seen(commit, context, state).is_some());
    let run = delivery(place, commit);
    let time = |field: &str| from_rfc3339(run[field].as_str().unwrap()).unwrap();
    (time("createdAt"), between(time("endedAt"), place.host.seen(commit, context, state).unwrap()))
}

fn delivery(place: &Place, commit: &str) -> Value {
    let answer = place.daemon.get("/api/v1/runs").unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let runs: Value = serde_json::from_str(body).unwrap();
    let is_it = |run: &&Value| run["commit"] == commit && run["kind"] == "sequence";
    runs["items"].as_array().unwrap().iter().find(is_it).unwrap().clone()
}

/// Times are told in whole milliseconds.
fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(to.0 - from.0).unwrap_or_default())
}

fn now() -> Timestamp {
    use launchway::clock::{Clock as _, SystemClock};
    SystemClock.now()
}
