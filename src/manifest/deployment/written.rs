//! Where a `Deployment` says what a `DeploymentConfig` says elsewhere.

/// Pointers of a deployment config's content, and of the `Deployment` that says it; the first one that fits counts.
const PLACES: [(&str, &str); 6] = [
    ("/spec/strategy/type", "/spec/strategy/type"),
    // What the stage has changed stands in no file.
    ("/spec/strategy/overrides", "/spec/strategy/overrides"),
    ("/spec/strategy", "/metadata/annotations/launchway.dev~1strategy"),
    ("/spec/triggers", "/metadata/annotations/launchway.dev~1triggers"),
    ("/spec/selectorExpressions", "/spec/selector/matchExpressions"),
    ("/spec/selector", "/spec/selector/matchLabels"),
];

/// The same in whatever block of parameters.
const IN_PARAMETERS: [(&str, &str); 6] = [
    ("maxSurge", "/spec/strategy/rollingUpdate/maxSurge"),
    ("maxUnavailable", "/spec/strategy/rollingUpdate/maxUnavailable"),
    ("timeoutSeconds", "/spec/progressDeadlineSeconds"),
    ("pre", "/metadata/annotations/launchway.dev~1hooks/pre"),
    ("mid", "/metadata/annotations/launchway.dev~1hooks/mid"),
    ("post", "/metadata/annotations/launchway.dev~1hooks/post"),
];

/// The pointer of a `Deployment` where it says what its content has at `pointer`.
pub(in crate::manifest) fn as_written(pointer: &str) -> String {
    let rest = |path: &str, place: &str| {
        path.strip_prefix(place).filter(|rest| rest.is_empty() || rest.starts_with('/')).map(str::to_owned)
    };
    let parameter = pointer.strip_prefix("/spec/strategy/").and_then(|inside| inside.split_once("Params/"));
    let in_parameters = parameter.into_iter().flat_map(|(_, path)| {
        IN_PARAMETERS.iter().filter_map(move |(read, written)| Some(format!("{written}{}", rest(path, read)?)))
    });
    let elsewhere = PLACES.iter().filter_map(|(read, written)| Some(format!("{written}{}", rest(pointer, read)?)));
    in_parameters.chain(elsewhere).next().unwrap_or_else(|| pointer.to_owned())
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
            ("/spec/strategy/canaryParams/post/image", "/metadata/annotations/launchway.dev~1hooks/post/image"),
            (
                "/spec/strategy/canaryParams/steps/0/weight",
                "/metadata/annotations/launchway.dev~1strategy/canaryParams/steps/0/weight",
            ),
            ("/spec/strategy/type", "/spec/strategy/type"),
            ("/spec/strategy/overrides", "/spec/strategy/overrides"),
            ("/spec/strategy/customParams/image", "/metadata/annotations/launchway.dev~1strategy/customParams/image"),
            ("/spec/selector/app", "/spec/selector/matchLabels/app"),
        ] {
            assert_eq!(as_written(read), written);
        }
    }
}
