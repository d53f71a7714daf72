//! What a run hears of an action that can never be performed, so that it does not wait for it.

use crate::model::event::{Event, Timer};
use crate::model::outcome::PodOutcome;

/// The event for the run that asked for the action with this key; nothing, if no run waits for it. The key is all that
/// is left of an action whose record cannot be read.
pub fn told(key: &str, problem: &str) -> Option<Event> {
    let message = problem.to_owned();
    let (kind, subject) = key.split_once('/').unwrap_or((key, ""));
    match kind {
        "prepare" => Some(Event::PrepareFailed { message }),
        // Whether it runs is not known: the policy decides.
        "run-pod" | "stop-pod" => Some(Event::pod_ended(subject.into(), PodOutcome::unknown(message))),
        "measure" => subject.parse().ok().map(|task| Event::NotMeasured { task, message }),
        // It has come due, and that is all there is to it.
        "timer" => Timer::ALL.into_iter().find(|timer| timer.as_str() == subject).map(|timer| Event::Timer { timer }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::action::Action;
    use crate::model::pod::PodId;
    use crate::model::time::Timestamp;

    #[test]
    fn whoever_waits_for_an_action_is_told_whatever_its_record_says() {
        let pod = PodId { namespace: "shop-dev".into(), name: "web-1-hook-pre".into() };
        let unknown = PodOutcome::unknown("damaged");
        let ended = Event::pod_ended(pod.name.clone(), unknown);
        assert_eq!(told(&Action::StopPod { pod: pod.clone() }.key(), "damaged"), Some(ended.clone()));
        assert_eq!(told(&format!("run-pod/{}", pod.name), "damaged"), Some(ended));
        assert_eq!(told("prepare", "damaged"), Some(Event::PrepareFailed { message: "damaged".into() }));
        let not_measured = Event::NotMeasured { task: 2, message: "damaged".into() };
        assert_eq!(told("measure/2", "damaged"), Some(not_measured));
        for timer in Timer::ALL {
            let key = Action::SetTimer { timer, due: Timestamp(0) }.key();
            assert_eq!(told(&key, "damaged"), Some(Event::Timer { timer }));
        }
        for key in ["advance", "report/shop/1/notes", "unheard/of", ""] {
            assert_eq!(told(key, "damaged"), None, "{key}");
        }
    }
}
