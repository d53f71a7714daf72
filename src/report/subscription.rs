//! Which events a sink is told. Pure.

use crate::model::cloud_event::{CloudEvent, short};
use crate::model::sink::Subscription;
use crate::plan::selector;

/// Whether one of the subscriptions of a sink takes an event; without any, the sink is told everything.
pub fn is_told(subscriptions: &[Subscription], event: &CloudEvent) -> bool {
    subscriptions.is_empty() || subscriptions.iter().any(|subscription| takes(subscription, event))
}

fn takes(subscription: &Subscription, event: &CloudEvent) -> bool {
    let Subscription { types, projects, stages, services, selector } = subscription;
    let (project, stage, service) = (event.text("project"), event.text("stage"), event.text("service"));
    (types.is_empty() || types.iter().any(|pattern| matches(short(pattern), event.short_kind())))
        && (projects.is_empty() || projects.iter().any(|it| it.as_str() == project))
        && (stages.is_empty() || stages.iter().any(|it| it.as_str() == stage))
        && (services.is_empty() || services.iter().any(|it| it.as_str() == service))
        && selector::all_hold(selector, &event.data)
}

/// Whether a text is as a pattern says, in which `*` stands for any letters, dots included.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut left) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::shipyard::{Operator, Requirement};

    #[test]
    fn a_star_stands_for_any_letters() {
        for (pattern, text, expected) in [
            ("test.finished", "test.finished", true),
            ("test.finished", "test.started", false),
            ("*", "", true),
            ("*", "dev.delivery.finished", true),
            ("*.finished", "dev.delivery.finished", true),
            ("*.finished", "finished", false),
            ("dev.*.finished", "dev.delivery.finished", true),
            ("dev.*.finished", "dev.finished", false),
            ("dev.*", "production.dev.x", false),
            ("*.a*a", "x.a", false),
            ("*e*e*", "delivery.e", true),
            ("", "x", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn all_that_a_subscription_says_must_hold_and_one_of_several_is_enough() {
        let data = json!({"project": "shop", "stage": "dev", "service": "web", "result": "fail", "test": {"score": 3}});
        let event = CloudEvent::of("sh.keptn.event.test.finished", "1", data);
        let of_types = |types: &[&str]| Subscription {
            types: types.iter().map(|it| (*it).to_owned()).collect(),
            ..Subscription::default()
        };
        let asks = |key: &str, operator, values: &[&str]| {
            let values = values.iter().map(|it| (*it).to_owned()).collect();
            let selector = [Requirement { key: key.to_owned(), operator, values }].into_iter().collect();
            Subscription { selector, ..Subscription::default() }
        };
        for (subscription, expected) in [
            (Subscription::default(), true),
            (of_types(&["sh.keptn.event.test.finished"]), true),
            (of_types(&["test.started", "*.finished"]), true),
            (of_types(&["sh.keptn.event.*.started"]), false),
            (Subscription { stages: vec!["dev".into()], ..Subscription::default() }, true),
            (Subscription { stages: vec!["production".into()], ..of_types(&["*"]) }, false),
            (Subscription { projects: vec!["shop".into()], services: vec!["api".into()], ..of_types(&["*"]) }, false),
            (asks("result", Operator::In, &["fail", "warning"]), true),
            (asks("result", Operator::NotIn, &["fail"]), false),
            (asks("test.score", Operator::Exists, &[]), true),
        ] {
            assert_eq!(takes(&subscription, &event), expected, "{subscription:?}");
        }
        let (no, yes) = (of_types(&["x"]), of_types(&["*"]));
        assert!(is_told(&[], &event) && is_told(&[no.clone(), yes], &event) && !is_told(&[no], &event));
    }
}
