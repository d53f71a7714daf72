//! What the end of a hook means for its deployment.

use std::time::Duration;

use crate::model::deployment_config::FailurePolicy;
use crate::model::outcome::PodOutcome;

/// What follows a hook's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consequence {
    /// The deployment goes on.
    GoOn,
    /// The hook runs again after a pause.
    TryAgain {
        /// The pause.
        after: Duration,
    },
    /// The deployment fails.
    Fail,
}

/// The longest pause between two tries of a hook or task.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// What follows the end of a hook's try number `tries`, counted from 1, where it is run again `retries` times at most, if
/// that is said. An outcome that nobody knows is treated as a failure: the policy decides, never a guess.
pub fn consequence(policy: FailurePolicy, outcome: &PodOutcome, tries: u32, retries: Option<u32>) -> Consequence {
    match (outcome, policy) {
        (PodOutcome::Succeeded, _) | (_, FailurePolicy::Ignore) => Consequence::GoOn,
        (_, FailurePolicy::Retry) if retries.is_some_and(|retries| tries > retries) => Consequence::Fail,
        (_, FailurePolicy::Retry) => Consequence::TryAgain { after: pause(tries) },
        (_, FailurePolicy::Abort) => Consequence::Fail,
    }
}

/// The pause after try number `tries`: one second, doubled with every try.
pub fn pause(tries: u32) -> Duration {
    Duration::from_secs(1).saturating_mul(2_u32.saturating_pow(tries.saturating_sub(1))).min(LONGEST_PAUSE)
}

/// How many of the last lines that a pod printed are told with its end: it stands in tables, in holds and on commits.
const LINES_SHOWN: usize = 3;
/// The most characters of these.
const MOST_SHOWN: usize = 200;

/// Begins how a pod ended that took longer than it may.
pub(crate) const TOO_LONG: &str = "took too long";

/// How a pod ended, for people: `exit 3 after 2.1s: last line`.
pub fn describe(outcome: &PodOutcome, took: Duration) -> String {
    let took = format_duration(took);
    match outcome {
        PodOutcome::Succeeded => format!("succeeded in {took}"),
        PodOutcome::Failed { code, reason, message } => {
            use crate::model::outcome::FailureReason as Reason;
            let what = match reason {
                Reason::Error => format!("failed with exit code {code} after {took}"),
                Reason::DeadlineExceeded => format!("{TOO_LONG} and was ended after {took}"),
                Reason::StartError => "could not start".to_owned(),
                Reason::Cancelled => format!("was cancelled after {took}"),
            };
            with_last_lines(what, message)
        }
        PodOutcome::Unknown { message, .. } => with_last_lines("ended in an unknown way".to_owned(), message),
    }
}

/// The last lines of what was printed, as many as there is room for; of the last one the beginning at least.
fn with_last_lines(what: String, message: &str) -> String {
    let lines = message.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    let (mut last, mut room) = (Vec::new(), MOST_SHOWN);
    for line in lines.take(LINES_SHOWN) {
        let length = line.chars().count();
        if length > room {
            if last.is_empty() {
                last.push(line.chars().take(room).chain(['…']).collect());
            }
            break;
        }
        room -= length;
        last.push(line.to_owned());
    }
    last.reverse();
    if last.is_empty() { what } else { format!("{what}: {}", last.join(" | ")) }
}

/// `850ms`, `2.1s`, `4m05s`, `2h10m`.
pub fn format_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{}ms", duration.as_millis()),
        1..60 => format!("{:.1}s", duration.as_secs_f64()),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::outcome::FailureReason;

    #[test]
    fn the_policy_decides_also_about_the_unknown() {
        let failed = PodOutcome::Failed { code: 1, reason: FailureReason::Error, message: String::new() };
        let unknown = PodOutcome::unknown("");
        for outcome in [failed, unknown] {
            assert_eq!(consequence(FailurePolicy::Abort, &outcome, 1, None), Consequence::Fail);
            assert_eq!(consequence(FailurePolicy::Ignore, &outcome, 1, None), Consequence::GoOn);
            let again = Consequence::TryAgain { after: Duration::from_secs(4) };
            assert_eq!(consequence(FailurePolicy::Retry, &outcome, 3, None), again);
            assert_eq!(consequence(FailurePolicy::Retry, &outcome, 3, Some(3)), again);
            assert_eq!(consequence(FailurePolicy::Retry, &outcome, 3, Some(2)), Consequence::Fail);
            assert_eq!(consequence(FailurePolicy::Retry, &outcome, 1, Some(0)), Consequence::Fail);
        }
        assert_eq!(consequence(FailurePolicy::Abort, &PodOutcome::Succeeded, 1, None), Consequence::GoOn);
    }

    #[test]
    fn pauses_double_and_are_bounded() {
        let pauses: Vec<u64> = [1, 2, 3, 9, 10, 4000].map(|tries| pause(tries).as_secs()).into();
        assert_eq!(pauses, [1, 2, 4, 256, 300, 300]);
    }

    #[test]
    fn a_failure_shows_the_last_lines() {
        let outcome = PodOutcome::Failed { code: 3, reason: FailureReason::Error, message: "a\nb\n\nc\nd\n".into() };
        assert_eq!(describe(&outcome, Duration::from_millis(2100)), "failed with exit code 3 after 2.1s: b | c | d");
    }

    #[test]
    fn of_long_lines_only_the_beginning_of_the_last_is_shown() {
        let long = "é".repeat(5000);
        for (message, expected) in [
            (long.clone(), format!("{}…", "é".repeat(200))),
            (format!("{long}\nthen"), "then".to_owned()),
            (format!("first\n{}\nlast", "x".repeat(196)), format!("{} | last", "x".repeat(196))),
            (format!("first\n{}\nlast", "x".repeat(197)), "last".to_owned()),
        ] {
            let outcome = PodOutcome::Failed { code: 3, reason: FailureReason::Error, message };
            let told = describe(&outcome, Duration::from_millis(2100));
            assert_eq!(told, format!("failed with exit code 3 after 2.1s: {expected}"));
        }
    }
}
