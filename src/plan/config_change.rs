//! What a change of a deployment config means.
//!
//! The template is compared with the one that serves, everything else with what was last declared. Source of the
//! rules: OpenShift's deployment config controller (only the template triggers) and the design's "what is compared".

use std::sync::Arc;

use serde_json::Value;

use crate::manifest::generated::{mark, marks};
use crate::model::cause::{Cause, in_words};
use crate::model::deployment_config::{AUTOSCALER_POINTER, CONTROLLERS, CONTROLLERS_POINTER, DeploymentConfigSpec};
use crate::model::object::{Kind, Object};
use crate::model::outcome::Status;
use crate::model::plan::{Change, Decision, Difference, PAUSED, QUARANTINED};
use crate::model::run::{SequenceRun, SequenceState};
use crate::model::state::{ConfigState, spec_of};
use crate::plan::diff::diff;
use crate::plan::trigger;

/// Below this pointer a difference is one of the template.
const TEMPLATE: &str = "/spec/template";
/// The one value that is changed without a new version.
const REPLICAS: &str = "/spec/replicas";
/// What helps where no trigger deploys it.
const BY_HAND: &str = "`launchway rollout latest` deploys it";
/// Which pods belong to it.
const SELECTOR: [&str; 2] = ["/spec/selector", "/spec/selectorExpressions"];

/// An attempt that is being ended counts as ended, because nobody plans again once it has. `run` is the one that makes the
/// open attempt, if there is one.
pub fn foresee(applied: &mut ConfigState, run: Option<&SequenceRun>) {
    if let Some(SequenceState::Ending { outcome, .. }) = run.map(|run| &run.state)
        && let Some(attempt) = applied.open_attempt_mut()
    {
        attempt.outcome = Some(*outcome);
    }
}

/// What to do about a declared deployment config, given what is applied.
pub fn decide(declared: &Arc<Object>, applied: Option<&ConfigState>) -> Change {
    let spec = spec_of(declared).unwrap_or_default();
    let Some(applied) = applied.filter(|applied| !applied.removed) else {
        return first(declared, &spec);
    };
    if let Some(leader) = &spec.controller_of {
        return led(leader, declared, &spec, applied);
    }
    if let Some(cause) = attempted_before(declared, applied) {
        return change(declared, Decision::None, Vec::new(), cause);
    }
    let reasons = differences(declared, &spec, applied);
    if let Some(quarantined) = applied.quarantine_of(declared) {
        let cause = format!(
            "{QUARANTINED}{}; change it, or `launchway release {}` lets it be deployed again",
            quarantined.reason,
            declared.target()
        );
        return change(declared, Decision::Wait, reasons, cause);
    }
    let (decision, cause, causes) = judge(&spec, declared, applied, &reasons);
    Change { causes, ..change(declared, decision, reasons, cause) }
}

/// A version that only images would bring which came round waits, and says so: it would start the next one.
pub fn held_back(change: Change, came_round: Option<&str>) -> Change {
    match came_round.filter(|_| change.decision == Decision::Deploy) {
        Some(cause) => Change { decision: Decision::Wait, cause: cause.to_owned(), ..change },
        None => change,
    }
}

/// A replication controller's template is deployed with that of its deployment config, whose content it is a part of: that one says
/// whether. What else is declared of it is put on record.
fn led(leader: &str, declared: &Arc<Object>, spec: &DeploymentConfigSpec, applied: &ConfigState) -> Change {
    let reasons = differences(declared, spec, applied);
    if applied.service != declared.service {
        return change(declared, Decision::Update, reasons, deployed_by(leader));
    }
    if !reasons.iter().any(in_template) {
        let (decision, cause, _) = judge(spec, declared, applied, &reasons);
        return change(declared, decision, reasons, cause);
    }
    match applied.object.digest == declared.digest {
        true => change(declared, Decision::None, Vec::new(), String::new()),
        false => change(declared, Decision::Update, reasons, deployed_by(leader)),
    }
}

fn deployed_by(leader: &str) -> String {
    format!("dc/{leader} deploys it")
}

/// Whether a difference is one of what is deployed: of the template, or of that of a replication controller.
fn in_template(reason: &Difference) -> bool {
    [TEMPLATE, CONTROLLERS_POINTER].iter().any(|place| reason.pointer.starts_with(place))
}

fn first(declared: &Arc<Object>, spec: &DeploymentConfigSpec) -> Change {
    if let Some(leader) = &spec.controller_of {
        return change(declared, Decision::Create, Vec::new(), deployed_by(leader));
    }
    let (decision, cause) = match blocked(spec) {
        Some(cause) => (Decision::Wait, cause),
        None if spec.starts_by_itself() => (Decision::Create, "first deployment".to_owned()),
        None => (Decision::Create, format!("created; it has {}, {BY_HAND}", trigger::lacking(spec))),
    };
    // As upstream, whichever triggers it has.
    let causes = (decision == Decision::Create && spec.starts_by_itself()).then_some(Cause::ConfigChange);
    Change { causes: Vec::from_iter(causes), ..change(declared, decision, Vec::new(), cause) }
}

/// What is to be said if exactly this content is being attempted, or was and did not complete. One that a newer
/// revision took the place of is as good as not attempted, and so is one that is under way for another service: it gives way.
fn attempted_before(declared: &Object, applied: &ConfigState) -> Option<String> {
    let attempt = applied.attempted.as_ref().filter(|attempt| attempt.version.object.digest == declared.digest)?;
    let number = attempt.version.number;
    match attempt.outcome {
        None if attempt.version.object.service != declared.service => None,
        None => Some(format!("version {number} of the same content is under way")),
        Some(outcome) if outcome.passes() || outcome.status == Status::Superseded => None,
        Some(_) => {
            Some(format!("version {number} of the same content failed; `launchway rollout retry` tries it again"))
        }
    }
}

/// What differs. A number of replicas that is declared no longer stays as it is.
fn differences(declared: &Object, spec: &DeploymentConfigSpec, applied: &ConfigState) -> Vec<Difference> {
    let mut reasons = diff(&baseline(applied), &declared.content.value());
    reasons.retain(|reason| reason.pointer != REPLICAS || spec.asked_replicas().is_some());
    reasons.iter_mut().for_each(trigger::hide_content);
    // The image itself says it.
    if reasons.iter().any(in_template) {
        reasons.retain(|reason| !reason.pointer.ends_with("/lastTriggeredImage"));
    }
    reasons
}

/// Why a declaration cannot be applied to what is there, if so. Kubernetes never changes the selector of a `Deployment`.
pub fn refusal(declared: &Object, applied: &ConfigState) -> Option<String> {
    let are_deployments =
        || [declared, &applied.object].iter().all(|object| object.declared_kind() == Kind::Deployment);
    let differs = |pointer: &&str| declared.content.at(pointer) != applied.object.content.at(pointer);
    let changes = !applied.removed && SELECTOR.iter().any(differs) && are_deployments();
    changes.then(|| {
        let name = &declared.key.name;
        format!("the selector of Deployment/{name} cannot be changed ({}); give it another name, or the selector that it had", declared.location)
    })
}

/// What a new declaration is compared with: what was last declared, but with the template that serves.
fn baseline(applied: &ConfigState) -> Value {
    let mut content = applied.object.content.value();
    let serving = applied.serving.as_ref().map(|serving| serving.object.content.value()).unwrap_or_default();
    mark(&mut content, marks(&serving));
    let deployed = [("template", TEMPLATE), (CONTROLLERS, CONTROLLERS_POINTER)];
    let deployed = deployed.map(|(field, pointer)| (field, serving.pointer(pointer).cloned()));
    for (field, serving) in deployed {
        let Some(spec) = content.get_mut("spec").and_then(Value::as_object_mut) else { break };
        match serving {
            Some(serving) => spec.insert(field.into(), serving),
            None => spec.remove(field), // nothing serves: any template is a change
        };
    }
    content
}

fn judge(
    spec: &DeploymentConfigSpec,
    declared: &Object,
    applied: &ConfigState,
    reasons: &[Difference],
) -> (Decision, String, Vec<Cause>) {
    let without_version = |decision, cause: String| (decision, cause, Vec::new());
    let is_replicas = |reason: &Difference| reason.pointer == REPLICAS || reason.pointer == AUTOSCALER_POINTER;
    // What its record says already may never have been deployed.
    let is_recorded = applied.attempted.is_none() && applied.object.digest == declared.digest;
    if reasons.iter().any(in_template) {
        if let Some(cause) = blocked(spec) {
            return without_version(Decision::Wait, cause);
        }
        let causes = trigger::causes(spec, applied, reasons);
        if !causes.is_empty() {
            return (Decision::Deploy, in_words(&causes), causes);
        }
        let decision = if is_recorded { Decision::None } else { Decision::Update };
        return without_version(decision, format!("{}; {BY_HAND}", trigger::lacking(spec)));
    }
    let (decision, cause) = match reasons {
        [] if is_recorded => (Decision::None, String::new()),
        [] if spec.asked_replicas().is_none() && applied.attempted.is_none() => {
            (Decision::Update, left(spec, declared))
        }
        [] => (Decision::Update, "restored: equal to what serves".into()),
        reasons if reasons.iter().all(is_replicas) => match spec.asked_replicas() {
            Some(_) => (Decision::Scale, "only replicas differ".into()),
            None => (Decision::Update, left(spec, declared)),
        },
        _ => (Decision::Update, "no new version: the template is the same".into()),
    };
    without_version(decision, cause)
}

/// Why there are as many pods as before.
fn left(spec: &DeploymentConfigSpec, declared: &Object) -> String {
    let stays = "the number of replicas stays as it is";
    match (&spec.autoscaler, &declared.autoscaled_at) {
        (Some(name), Some(at)) => format!("{stays}: HorizontalPodAutoscaler/{name} ({at}) says it"),
        _ => stays.into(),
    }
}

/// Why nothing may start now, if so.
pub(super) fn blocked(spec: &DeploymentConfigSpec) -> Option<String> {
    if spec.paused {
        return Some(PAUSED.into());
    }
    spec.not_carried_out().or_else(|| trigger::awaited(spec))
}

fn change(declared: &Arc<Object>, decision: Decision, reasons: Vec<Difference>, cause: String) -> Change {
    Change { reasons, cause, object: Some(declared.clone()), ..Change::of(declared.key.clone(), decision) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::ids::{CommitId, ConfigKey, Destination, Digest, Namespace, RunId, ServiceName};
    use crate::model::object::{Location, ObjectKey};
    use crate::model::outcome::Outcome;
    use crate::model::state::{Attempt, Version};

    fn object(image: &str, replicas: u32, patch: Value) -> Arc<Object> {
        let mut content = json!({
            "metadata": {"name": "web"},
            "spec": {
                "replicas": replicas,
                "triggers": [{"type": "ConfigChange"}],
                "template": {"spec": {"containers": [{"name": "web", "image": image}]}},
            },
        });
        for (key, value) in patch.as_object().into_iter().flatten() {
            content["spec"][key] = value.clone();
        }
        let digest = Digest::new(content.to_string());
        let key = ObjectKey { kind: Kind::DeploymentConfig, name: "web".into() };
        Arc::new(Object {
            key,
            service: ServiceName::new("web"),
            location: Location::default(),
            autoscaled_at: None,
            content: content.into(),
            digest,
        })
    }

    fn version(number: u32, object: &Arc<Object>) -> Version {
        Version { number, commit: CommitId::new("c"), object: object.clone() }
    }

    fn applied(object: &Arc<Object>, serving: Option<Version>, attempted: Option<Attempt>) -> ConfigState {
        let key = ConfigKey { project: "shop".into(), stage: "dev".into(), name: "web".into() };
        let destination = Destination::local(Namespace::new("shop-dev"));
        let declared = ConfigState::new(key, destination, "shop".into(), object.clone(), "c".into());
        ConfigState { latest_version: 1, serving, attempted, ..declared }
    }

    #[test]
    fn each_kind_of_change_has_its_decision() {
        let old = object("a", 1, json!({}));
        let serves = applied(&old, Some(version(1, &old)), None);
        for (declared, expected) in [
            (object("a", 1, json!({})), Decision::None),
            (object("b", 1, json!({})), Decision::Deploy),
            (object("b", 3, json!({})), Decision::Deploy),
            (object("a", 3, json!({})), Decision::Scale),
            (object("a", 3, json!({"minReadySeconds": 5})), Decision::Update),
            (object("a", 1, json!({"minReadySeconds": 5})), Decision::Update),
            (object("b", 1, json!({"triggers": []})), Decision::Update),
            (object("b", 1, json!({"paused": true})), Decision::Wait),
            (object(" ", 1, json!({})), Decision::Wait),
            (object("b", 1, json!({"strategy": {"type": "Custom"}})), Decision::Wait),
            (object("b", 1, json!({"strategy": {"customParams": {"image": "c"}}})), Decision::Deploy),
            (object("b", 1, json!({"strategy": {"rollingParams": {"post": {"tagImages": [{}]}}}})), Decision::Deploy),
        ] {
            assert_eq!(decide(&declared, Some(&serves)).decision, expected, "{:?}", declared.content);
        }
        assert_eq!(decide(&old, None).decision, Decision::Create);
    }

    #[test]
    fn a_number_of_pods_that_is_declared_no_longer_is_no_difference() {
        let (two, any) = (object("a", 2, json!({})), object("a", 2, json!({"replicas": null})));
        let serves = applied(&two, Some(version(1, &two)), None);
        let left = decide(&any, Some(&serves));
        assert_eq!((left.decision, left.reasons), (Decision::Update, Vec::new()));
        let again = applied(&any, Some(version(1, &two)), None);
        assert_eq!(decide(&any, Some(&again)).decision, Decision::None);
        assert_eq!(decide(&two, Some(&again)).decision, Decision::Scale);
    }

    #[test]
    fn an_autoscaler_says_how_many_pods_there_are() {
        let scaled = |image: &str, replicas: u32| {
            let object = object(image, replicas, json!({"autoscaler": "hpa"}));
            let at = Location { file: "hpa.yaml".into(), line: 3, column: 1 };
            Arc::new(Object { autoscaled_at: Some(at), ..Object::clone(&object) })
        };
        let left = "the number of replicas stays as it is: HorizontalPodAutoscaler/hpa (hpa.yaml:3:1) says it";
        let (asked, two) = (object("a", 2, json!({})), scaled("a", 2));
        for (before, after, decision, cause, reasons) in [
            (&asked, &two, Decision::Update, left, &["/spec/autoscaler"][..]),
            (&two, &two, Decision::None, "", &[]),
            (&two, &scaled("a", 5), Decision::Update, left, &[]),
            (&two, &scaled("b", 5), Decision::Deploy, "config change", &["/spec/template/spec/containers/0/image"]),
            (&two, &asked, Decision::Scale, "only replicas differ", &["/spec/autoscaler"]),
        ] {
            let change = decide(after, Some(&applied(before, Some(version(1, before)), None)));
            let pointers: Vec<&str> = change.reasons.iter().map(|reason| &*reason.pointer).collect();
            assert_eq!((change.decision, &*change.cause, &pointers[..]), (decision, cause, reasons));
        }
    }

    #[test]
    fn a_replication_controller_is_deployed_by_what_it_belongs_to() {
        let led = |image: &str, replicas: u32| {
            let found = object(image, replicas, json!({"controllerOf": "web", "triggers": []}));
            let mut content = found.content.value();
            content["kind"] = "ReplicationController".into();
            Arc::new(Object { content: content.into(), ..Object::clone(&found) })
        };
        let old = led("a", 1);
        let serves = applied(&old, Some(version(1, &old)), None);
        let failed = Attempt { version: version(2, &led("b", 1)), run: RunId::new("s1"), outcome: Some(Outcome::FAIL) };
        let went_back = applied(&led("b", 1), Some(version(1, &old)), Some(failed));
        let by_it = "dc/web deploys it";
        for (applied, declared, expected, cause) in [
            (None, &old, Decision::Create, by_it),
            (Some(&serves), &old, Decision::None, ""),
            (Some(&serves), &led("b", 1), Decision::Update, by_it),
            (Some(&serves), &led("b", 3), Decision::Update, by_it),
            (Some(&serves), &led("a", 3), Decision::Scale, "only replicas differ"),
            (Some(&went_back), &led("b", 1), Decision::None, ""),
            (Some(&went_back), &led("c", 1), Decision::Update, by_it),
            (Some(&went_back), &old, Decision::Update, "restored: equal to what serves"),
        ] {
            let change = decide(declared, applied);
            assert_eq!((change.decision, &*change.cause), (expected, cause), "{:?}", declared.content);
            assert!(!change.starts_deployment() && !change.is_not_deployed(), "{:?}", declared.content);
        }
    }

    #[test]
    fn what_belongs_to_a_deployment_config_is_a_part_of_what_it_deploys() {
        let with = |controllers: Value| object("a", 1, json!({"controllers": controllers}));
        let template = |image: &str| json!({"spec": {"containers": [{"name": "web", "image": image}]}});
        let old = with(json!({"east": template("a"), "west": template("a")}));
        let serves = applied(&old, Some(version(1, &old)), None);
        let image = "/spec/controllers/east/spec/containers/0/image";
        for (controllers, pointer) in [
            (json!({"east": template("b"), "west": template("a")}), image),
            (json!({"east": template("a"), "west": template("a"), "north": template("a")}), "/spec/controllers/north"),
            (json!({"east": template("a")}), "/spec/controllers/west"),
        ] {
            let change = decide(&with(controllers), Some(&serves));
            assert_eq!((change.decision, &*change.cause), (Decision::Deploy, "config change"), "{pointer}");
            let pointers: Vec<&str> = change.reasons.iter().map(|reason| &*reason.pointer).collect();
            assert_eq!(pointers, [pointer]);
        }
        assert_eq!(decide(&old, Some(&serves)).decision, Decision::None);
    }

    #[test]
    fn only_the_selector_of_a_deployment_is_fixed() {
        let with = |kind: &str, labels: Value| {
            let found = object("a", 1, json!({"selector": labels}));
            let mut content = found.content.value();
            content["kind"] = kind.into();
            Object { content: content.into(), ..Object::clone(&found) }
        };
        for (before, after, label, is_refused) in [
            ("Deployment", "Deployment", "b", true),
            ("Deployment", "Deployment", "a", false),
            ("DeploymentConfig", "DeploymentConfig", "b", false),
            ("DeploymentConfig", "Deployment", "b", false),
        ] {
            let state = applied(&Arc::new(with(before, json!({"app": "a"}))), None, None);
            let refused = refusal(&with(after, json!({"app": label})), &state).is_some();
            assert_eq!(refused, is_refused, "{before} to {after} with {label}");
        }
    }

    #[test]
    fn what_failed_is_not_tried_again_by_itself() {
        let (good, bad) = (object("a", 1, json!({})), object("b", 1, json!({})));
        for (outcome, expected) in [
            (Outcome::FAIL, Decision::None),
            (Outcome::ERRORED, Decision::None),
            (Outcome::ABORTED, Decision::None),
            (Outcome::SUPERSEDED, Decision::Deploy),
        ] {
            let attempt = Attempt { version: version(2, &bad), run: RunId::new("s1"), outcome: Some(outcome) };
            let state = applied(&bad, Some(version(1, &good)), Some(attempt));
            assert_eq!(decide(&bad, Some(&state)).decision, expected, "{outcome:?}");
        }
    }

    #[test]
    fn a_revert_of_a_failed_change_restores() {
        let (good, bad) = (object("a", 1, json!({})), object("b", 1, json!({})));
        let attempt = Attempt { version: version(2, &bad), run: RunId::new("s1"), outcome: Some(Outcome::FAIL) };
        let state = applied(&bad, Some(version(1, &good)), Some(attempt));
        assert_eq!(decide(&good, Some(&state)).decision, Decision::Update);
    }

    #[test]
    fn a_revert_of_what_was_declared_and_not_deployed_is_declared() {
        let (old, waits) = (object("a", 1, json!({"triggers": []})), object("b", 1, json!({"triggers": []})));
        let state = applied(&waits, Some(version(1, &old)), None);
        assert_eq!(decide(&old, Some(&state)).decision, Decision::Update);
        let again = decide(&waits, Some(&state));
        assert_eq!(again.decision, Decision::None, "that is what its record says");
        assert!(again.is_not_deployed(), "and it does not serve");
    }

    #[test]
    fn a_change_after_a_failure_is_compared_with_what_serves() {
        let (good, bad, other) = (object("a", 1, json!({})), object("b", 1, json!({})), object("c", 1, json!({})));
        let attempt = Attempt { version: version(2, &bad), run: RunId::new("s1"), outcome: Some(Outcome::FAIL) };
        let state = applied(&bad, Some(version(1, &good)), Some(attempt));
        let change = decide(&other, Some(&state));
        assert_eq!(change.decision, Decision::Deploy);
        assert_eq!(change.reasons[0].pointer, "/spec/template/spec/containers/0/image");
        assert_eq!(
            (change.reasons[0].old.clone(), change.reasons[0].new.clone()),
            (Some("a".into()), Some("c".into()))
        );
    }
}
