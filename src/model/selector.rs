//! Which labels a selector takes.

use std::collections::BTreeMap;

/// Labels of pods, or those that select them.
pub type Labels = BTreeMap<String, String>;

/// Whether a selector takes what has these labels: it has all that it names. One that names none takes nothing. Source:
/// `spec.selector` of `Service` in `core/v1`.
pub fn selects(selector: &Labels, labels: &Labels) -> bool {
    !selector.is_empty() && selector.iter().all(|(key, value)| labels.get(key) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_a_selector_names_is_there() {
        let labels = |pairs: &[(&str, &str)]| -> Labels {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let front = [("app", "web"), ("tier", "front")];
        for (selector, pod, taken) in [
            (&front[..1], &front[..], true),
            (&front, &front, true),
            (&front, &front[..1], false),
            (&[("app", "api")], &front, false),
            (&[("team", "web")], &front, false),
            (&[], &front, false),
            (&[], &[], false),
        ] {
            assert_eq!(selects(&labels(selector), &labels(pod)), taken, "{selector:?} of {pod:?}");
        }
    }
}
