//! What serves where that is not what Git says.

use crate::model::outcome::{Outcome, Status};
use crate::model::pod::{ObservedPod, Origin};
use crate::model::run::SequenceRun;
use crate::model::state::ConfigState;

/// Why what serves is not what Git says: the last attempt at that ended badly, or a delivery that `waits` brings it. Nothing,
/// as long as something is under way.
pub(super) fn drift(config: &ConfigState, pods: &[ObservedPod], waits: &[SequenceRun]) -> Option<String> {
    if config.open_attempt().is_some() {
        return None;
    }
    let waiting = waits.iter().rfind(|run| run.brings(&config.key.name) && !run.message.is_empty());
    let waiting = waiting.map(|run| format!("{} is {}", run.commit.short(), run.message));
    attempted(config, pods).or(waiting)
}

/// What the last attempt has left, if that ended badly.
pub(super) fn attempted(config: &ConfigState, pods: &[ObservedPod]) -> Option<String> {
    let is_left = |pod: &ObservedPod| {
        pod.lives() && pod.origin != Origin::Own && pod.version().is_some_and(|(of, _)| of == &config.key)
    };
    let attempt = config.attempted.as_ref().filter(|_| !config.object.is_led())?; // what deploys it says it
    let word = ended_badly(attempt.outcome?, attempt.version.object.digest == config.object.digest)?;
    let serving = match &config.serving {
        Some(version) => format!("version {} serves", version.number),
        None if pods.iter().any(is_left) => "what served before the store was lost serves on".to_owned(),
        None => "nothing serves".to_owned(),
    };
    Some(format!("version {} of {} {word}, {serving}", attempt.version.number, config.key.name))
}

/// How something ended that somebody has to put right; nothing, if it did well or something newer took its place.
pub(super) fn ended_badly(outcome: Outcome, is_newest: bool) -> Option<&'static str> {
    match outcome.status {
        _ if outcome.passes() => None,
        Status::Superseded if !is_newest => None,
        Status::Superseded | Status::Aborted => Some("was cancelled"),
        Status::Succeeded | Status::Errored | Status::TimedOut | Status::Unknown => Some("failed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fixtures;

    #[test]
    fn what_waits_and_what_has_failed_keeps_git_from_what_serves_and_what_is_under_way_does_not() {
        let delivery = fixtures::delivery("s2", "b");
        let waits = SequenceRun { message: "held by ann: a rollback".to_owned(), ..delivery.clone() };
        let other = SequenceRun { delivery: None, message: "held by bob".to_owned(), ..delivery.clone() };
        let told = format!("{} is held by ann: a rollback", waits.commit.short());
        for (outcome, waits, expected) in [
            (None, vec![], None),
            (None, vec![waits.clone(), other.clone()], Some(told.as_str())),
            (None, vec![other], None),
            (Some(None), vec![waits.clone()], None),
            (Some(Some(Outcome::PASS)), vec![], None),
            (Some(Some(Outcome::FAIL)), vec![waits], Some("version 2 of web failed, version 1 serves")),
        ] {
            let state = fixtures::serving(1, "a");
            let state = match outcome {
                Some(outcome) => fixtures::attempted(state, "b", &delivery, outcome),
                None => state,
            };
            assert_eq!(drift(&state, &[], &waits).as_deref(), expected, "{outcome:?}");
        }
    }
}
