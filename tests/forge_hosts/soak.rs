//! Thousands of transitions against hosts that fail at random: in the end the host shows what was wanted, nothing stands
//! there twice in a row, and no limit was broken.

use std::collections::BTreeMap;
use std::time::Duration;

use launchway::forge::Refusal;
use launchway::model::commit_status::{CommitStatus, StatusState};

use crate::host::{Fault, Host};
use crate::{COMMIT, OTHER, Writer, github, gitlab, status};

/// How many transitions; what nobody waits for is played by the suite's own command.
const TRANSITIONS: u64 = 600;

/// A small generator of numbers, the same each time.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn transitions() -> u64 {
    std::env::var("TRANSITIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(TRANSITIONS)
}

async fn play(host: &Host, writer: &Writer, name: &str, words: fn(StatusState) -> &'static str) {
    let mut numbers = Numbers(7);
    let mut wanted: BTreeMap<(String, String), CommitStatus> = BTreeMap::new();
    for transition in 0..transitions() {
        if numbers.below(4) == 0 {
            let faults = [Fault::Status(409), Fault::Status(502), Fault::Status(503), Fault::Lost];
            host.fail_next([faults[usize::try_from(numbers.below(4)).unwrap()]]);
        }
        let commit = [COMMIT, OTHER][usize::try_from(numbers.below(2)).unwrap()];
        let states = [StatusState::Pending, StatusState::Running, StatusState::Success, StatusState::Failure];
        let state = states[usize::try_from(numbers.below(4)).unwrap()];
        let stage = format!("s{}", numbers.below(5));
        let next = status(commit, &stage, state, &format!("transition {transition}"));
        wanted.insert((commit.to_owned(), next.context.clone()), next.clone());
        loop {
            match writer.writer.write(std::slice::from_ref(&next)).await {
                Ok(()) => break,
                Err(Refusal::Busy(_)) => writer.clock.advance(Duration::from_secs(20)),
                Err(refusal) => panic!("{refusal:?}"),
            }
        }
    }
    let world = host.shared.world();
    assert_eq!(world.limits_broken, 0);
    for ((commit, context), status) in &wanted {
        let rows: Vec<_> =
            world.rows.iter().filter(|(sha, row)| sha == commit && row[name] == context.as_str()).collect();
        let last = rows.last().unwrap();
        assert_eq!(last.1["state"], words(status.state), "{context} of {commit}");
        let seen = |row: &serde_json::Value| (row["state"].clone(), row["description"].clone());
        assert!(rows.windows(2).all(|pair| seen(&pair[0].1) != seen(&pair[1].1)), "{context} stands there twice");
    }
}

#[tokio::test]
async fn github_shows_what_was_wanted_whatever_fails() {
    let (host, writer) = github::start().await;
    let words = |state| match state {
        StatusState::Pending | StatusState::Running => "pending",
        StatusState::Success => "success",
        _ => "failure",
    };
    play(&host, &writer, "context", words).await;
}

#[tokio::test]
async fn gitlab_shows_what_was_wanted_whatever_fails() {
    let (host, writer) = gitlab::start().await;
    let words = |state| match state {
        StatusState::Pending => "pending",
        StatusState::Running => "running",
        StatusState::Success => "success",
        _ => "failed",
    };
    play(&host, &writer, "name", words).await;
}
