//! What a `Deployment` says, where a `DeploymentConfig` says it.

use serde_json::{Map, Value, json};

use super::annotations::{Annotation, Annotations};
use crate::manifest::deployment_config::{block_of, write_out_pauses};
use crate::manifest::findings::{Elsewhere, Findings};
use crate::manifest::pod_template::defaults::set_absent;
use crate::manifest::shape::deployment::HOOKS;
use crate::manifest::shape::deployment_config::{STRATEGY, TRIGGER};
use crate::manifest::shape::{Strictness, Type, check_at};

/// Kubernetes' default for `progressDeadlineSeconds`.
pub(super) const PROGRESS_DEADLINE: i64 = 600;
/// Kubernetes' default for `maxSurge` and for `maxUnavailable`, each by itself.
const QUARTER: &str = "25%";
/// Where hooks may stand.
const POINTS: [&str; 3] = ["pre", "mid", "post"];

/// Turns a checked `Deployment` into the content of a deployment config, without its defaults.
pub(super) fn convert(value: &mut Value, said: Annotations, findings: &mut Findings<'_>) {
    let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) else { return };
    selector(spec);
    let strategy = strategy(spec, &said, findings);
    spec.insert("strategy".to_owned(), strategy);
    spec.insert("triggers".to_owned(), triggers(said, findings));
}

/// A deployment config selects by labels alone; what else a `Deployment` asks for is kept beside them.
fn selector(spec: &mut Map<String, Value>) {
    let Some(Value::Object(mut selector)) = spec.remove("selector") else { return };
    if let Some(expressions) = selector.remove("matchExpressions") {
        spec.insert("selectorExpressions".to_owned(), expressions);
    }
    let labels = selector.remove("matchLabels").unwrap_or_else(|| json!({}));
    spec.insert("selector".to_owned(), labels);
}

/// The strategy of the annotation, with what the `Deployment` says itself where that says nothing else.
fn strategy(spec: &mut Map<String, Value>, said: &Annotations, findings: &mut Findings<'_>) -> Value {
    let own = Own::take(spec);
    let mut strategy = json!({});
    if let Some(annotation) = &said.strategy {
        findings.said_elsewhere(annotation.says("/spec/strategy", ""));
        strategy = annotation.value().clone();
        write_out_pauses(&mut strategy);
        check_at("/spec/strategy", &mut strategy, Type::Object(&STRATEGY), Strictness::Own, findings);
    }
    let Some(fields) = strategy.as_object_mut() else { return strategy };
    own.contradictions(fields, findings);
    set_absent(fields, [("type", json!(own.kind()))]);
    let block = block_of(fields.get("type").and_then(Value::as_str).unwrap_or_default());
    if said.strategy.is_none() {
        own.say_where(block, findings);
    }
    let params = fields.entry(block).or_insert_with(|| json!({}));
    if let Some(params) = params.as_object_mut() {
        own.put_into(block, params);
        if let Some(hooks) = &said.hooks {
            add_hooks(hooks, block, params, findings);
        }
    }
    strategy
}

/// What a `Deployment` says of its strategy in fields of its own.
struct Own {
    kind: Option<String>,
    surge: Option<Value>,
    unavailable: Option<Value>,
    deadline: Option<Value>,
}

impl Own {
    fn take(spec: &mut Map<String, Value>) -> Self {
        let strategy = spec.remove("strategy").unwrap_or_default();
        let limit = |key: &str| strategy.pointer(&format!("/rollingUpdate/{key}")).cloned();
        Self {
            kind: strategy.get("type").and_then(Value::as_str).map(str::to_owned),
            surge: limit("maxSurge"),
            unavailable: limit("maxUnavailable"),
            deadline: spec.remove("progressDeadlineSeconds"),
        }
    }

    fn kind(&self) -> &'static str {
        if self.kind.as_deref() == Some("Recreate") { "Recreate" } else { "Rolling" }
    }

    /// What is said twice must be the same: nobody could know which one holds.
    fn contradictions(&self, annotated: &Map<String, Value>, findings: &mut Findings<'_>) {
        let kind = annotated.get("type").and_then(Value::as_str);
        let differs = |own: &str| kind.is_some_and(|kind| (kind == "Recreate") != (own == "Recreate"));
        if let Some(own) = self.kind.as_deref().filter(|own| differs(own)) {
            let message = format!("contradicts `spec.strategy.type`, which is {own}");
            findings.error("/spec/strategy/type", "invalid", message);
        }
        for (block, params) in annotated.iter().filter(|(key, _)| key.ends_with("Params")) {
            let said = [
                ("maxSurge", "spec.strategy.rollingUpdate.maxSurge", &self.surge),
                ("maxUnavailable", "spec.strategy.rollingUpdate.maxUnavailable", &self.unavailable),
                ("timeoutSeconds", "spec.progressDeadlineSeconds", &self.deadline),
            ];
            for (key, field, own) in said {
                if let (Some(own), Some(_)) =
                    (own.as_ref(), params.get(key).filter(|other| Some(*other) != own.as_ref()))
                {
                    let message = format!("contradicts `{field}`, which is {own}");
                    findings.error(&format!("/spec/strategy/{block}/{key}"), "invalid", message);
                }
            }
        }
    }

    fn put_into(&self, block: &str, params: &mut Map<String, Value>) {
        let deadline = self.deadline.clone().unwrap_or_else(|| json!(PROGRESS_DEADLINE));
        set_absent(params, [("timeoutSeconds", deadline)]);
        if matches!(block, "rollingParams" | "canaryParams" | "abParams") {
            let limit = |own: &Option<Value>| own.clone().unwrap_or_else(|| json!(QUARTER));
            let (surge, unavailable) = (limit(&self.surge), limit(&self.unavailable));
            set_absent(params, [("maxSurge", surge), ("maxUnavailable", unavailable)]);
        }
    }

    /// Where a `Deployment` says what was put into `block`.
    fn say_where(&self, block: &str, findings: &mut Findings<'_>) {
        let mut elsewhere = |read: String, written: &str| {
            findings.said_elsewhere(Elsewhere { read, written: written.to_owned(), is_field: true, within: None });
        };
        elsewhere(format!("/spec/strategy/{block}"), "/spec/strategy/rollingUpdate");
        elsewhere(format!("/spec/strategy/{block}/timeoutSeconds"), "/spec/progressDeadlineSeconds");
    }
}

fn add_hooks(hooks: &Annotation, block: &str, params: &mut Map<String, Value>, findings: &mut Findings<'_>) {
    let mut said = hooks.value().clone();
    for (point, inner) in POINTS.into_iter().zip(["/pre", "/mid", "/post"]) {
        findings.said_elsewhere(hooks.says(&format!("/spec/strategy/{block}/{point}"), inner));
    }
    let at = format!("/spec/strategy/{block}/hooks");
    findings.said_elsewhere(hooks.says(&at, ""));
    check_at(&at, &mut said, Type::Object(&HOOKS), Strictness::Own, findings);
    for (point, hook) in said.as_object_mut().into_iter().flat_map(std::mem::take) {
        if params.contains_key(&point) {
            let message = "contradicts the annotation `launchway.dev/strategy`, which has this hook too";
            findings.error(&format!("/spec/strategy/{block}/{point}"), "invalid", message);
        }
        params.insert(point, hook);
    }
}

/// A change of the template starts a deployment unless the annotation says otherwise.
fn triggers(said: Annotations, findings: &mut Findings<'_>) -> Value {
    let mut triggers = match &said.triggers {
        Some(annotation) => {
            findings.said_elsewhere(annotation.says("/spec/triggers", ""));
            let mut triggers = annotation.value().clone();
            check_at("/spec/triggers", &mut triggers, Type::List(&Type::Object(&TRIGGER)), Strictness::Own, findings);
            triggers
        }
        None => json!([{"type": "ConfigChange"}]),
    };
    if let Some(list) = triggers.as_array_mut() {
        list.extend(said.image_triggers);
    }
    triggers
}
