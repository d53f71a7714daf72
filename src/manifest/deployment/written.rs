//! Where a `Deployment` says what a `DeploymentConfig` says elsewhere.

/// Pointers of a deployment config's content, and of the `Deployment` that says it; the first one that fits counts.
const PLACES: [(&str, &str); 11] = [
    ("/spec/strategy/rollingParams/maxSurge", "/spec/strategy/rollingUpdate/maxSurge"),
    ("/spec/strategy/rollingParams/maxUnavailable", "/spec/strategy/rollingUpdate/maxUnavailable"),
    ("/spec/strategy/rollingParams/timeoutSeconds", "/spec/progressDeadlineSeconds"),
    ("/spec/strategy/recreateParams/timeoutSeconds", "/spec/progressDeadlineSeconds"),
    ("/spec/strategy/rollingParams", HOOKS),
    ("/spec/strategy/recreateParams", HOOKS),
    ("/spec/strategy/type", "/spec/strategy/type"),
    ("/spec/strategy", "/metadata/annotations/launchway.dev~1strategy"),
    ("/spec/triggers", "/metadata/annotations/launchway.dev~1triggers"),
    ("/spec/selectorExpressions", "/spec/selector/matchExpressions"),
    ("/spec/selector", "/spec/selector/matchLabels"),
];

const HOOKS: &str = "/metadata/annotations/launchway.dev~1hooks";

/// The pointer of a `Deployment` where it says what its content has at `pointer`.
pub(in crate::manifest) fn as_written(pointer: &str) -> String {
    let fits = |place: &str| pointer.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    match PLACES.iter().find(|(read, _)| fits(read)) {
        Some((read, written)) => format!("{written}{}", &pointer[read.len()..]),
        None => pointer.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_told_where_it_is_written() {
        for (read, written) in [
            ("/spec/replicas", "/spec/replicas"),
            ("/spec/template/spec/containers/0/image", "/spec/template/spec/containers/0/image"),
            ("/spec/strategy/rollingParams/maxSurge", "/spec/strategy/rollingUpdate/maxSurge"),
            ("/spec/strategy/rollingParams/timeoutSeconds", "/spec/progressDeadlineSeconds"),
            (
                "/spec/strategy/recreateParams/pre/failurePolicy",
                "/metadata/annotations/launchway.dev~1hooks/pre/failurePolicy",
            ),
            ("/spec/strategy/type", "/spec/strategy/type"),
            ("/spec/strategy/customParams/image", "/metadata/annotations/launchway.dev~1strategy/customParams/image"),
            ("/spec/selector/app", "/spec/selector/matchLabels/app"),
        ] {
            assert_eq!(as_written(read), written);
        }
    }
}
