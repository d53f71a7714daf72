//! Canary, blue/green and A/B.

use super::*;
use crate::model::deployment_config::HookPoint;
use crate::model::trial::Pause;

const TYPE: &str = "/spec/strategy/type";
const CANARY: &str = "/spec/strategy/canaryParams";

fn canary(steps: Value) -> Vec<(&'static str, Value)> {
    vec![(TYPE, json!("Canary")), (CANARY, json!({ "steps": steps }))]
}

fn refused(changes: &[(&str, Value)], code: &str, field: &str) {
    assert_eq!(errors(changes), [(code.to_owned(), field.to_owned())], "{changes:?}");
}

#[test]
fn a_canary_has_steps_with_weights_and_readable_pauses() {
    let step = |step: Value| canary(json!([step]));
    let at = |key: &str| format!("spec.strategy.canaryParams.steps[0]{key}");
    refused(&[(TYPE, json!("Canary"))], "required", "spec.strategy.canaryParams");
    refused(&canary(json!([])), "required", "spec.strategy.canaryParams.steps");
    refused(&canary(vec![json!({"weight": 5}); 101].into()), "invalid", "spec.strategy.canaryParams.steps");
    refused(&step(json!({"pause": "5m"})), "required", &at(".weight"));
    refused(&step(json!({"weight": 100})), "invalid", &at(".weight"));
    refused(&step(json!({"weight": 10, "pause": "soon"})), "invalid", &at(".pause"));
    refused(&step(json!({"weight": 10, "pause": 5})), "invalid", &at(".pause"));
    refused(&step(json!({"weight": 10, "pause": {"duration": "5"}})), "invalid", &at(".pause.duration"));
    refused(
        &step(json!({"weight": 10, "analysis": {"execNewPod": {}}})),
        "required",
        &at(".analysis.execNewPod.command"),
    );
    let both = json!({"steps": [{"weight": 10}], "maxSurge": 0, "maxUnavailable": 0});
    refused(&[(TYPE, json!("Canary")), (CANARY, both)], "invalid", "spec.strategy.canaryParams.maxUnavailable");
    for pause in [json!("90s"), json!({}), json!({"duration": "1h30m"}), json!(null)] {
        assert!(errors(&step(json!({"weight": 10, "pause": pause}))).is_empty(), "{pause}");
    }
}

#[test]
fn what_the_others_lack_is_said() {
    refused(&[(TYPE, json!("AB"))], "required", "spec.strategy.abParams");
    refused(
        &[(TYPE, json!("AB")), ("/spec/strategy/abParams", json!({"weight": 0}))],
        "invalid",
        "spec.strategy.abParams.weight",
    );
    let keep = |keep: &str| [(TYPE, json!("BlueGreen")), ("/spec/strategy/blueGreenParams/keep", json!(keep))];
    refused(&keep("for ever"), "invalid", "spec.strategy.blueGreenParams.keep");
    assert!(errors(&keep("0s")).is_empty());
    assert!(errors(&[(TYPE, json!("BlueGreen"))]).is_empty(), "everything has a default");
}

#[test]
fn a_pause_that_was_left_empty_waits_for_a_person() {
    let mut value = minimal();
    let steps =
        json!([{"weight": 10, "pause": null, "analysis": {"execNewPod": {"command": ["true"]}}}, {"weight": 50}]);
    for (pointer, new) in canary(steps) {
        set(&mut value, pointer, new);
    }
    let (content, problems) = normalised(&value);
    assert!(problems.is_empty(), "{problems:?}");
    let spec: DeploymentConfigSpec = serde_json::from_value(content["spec"].clone()).expect("it is read");
    let strategy = &spec.strategy;
    assert_eq!(strategy.canary_step(1).and_then(|step| step.pause), Some(Pause::UntilResumed));
    assert_eq!(strategy.canary_step(2).and_then(|step| step.pause), None);
    assert!(strategy.hook(HookPoint::Analysis(1)).is_some() && strategy.hook(HookPoint::Analysis(2)).is_none());
    assert_eq!((strategy.hooks(), strategy.canary_step(3)), (1, None));
    assert_eq!(content.pointer("/spec/strategy/canaryParams/maxSurge"), Some(&json!("25%")), "as for Rolling");
    let analysis = &content["spec"]["strategy"]["canaryParams"]["steps"][0]["analysis"];
    assert_eq!(
        (&analysis["failurePolicy"], &analysis["execNewPod"]["containerName"]),
        (&json!("Abort"), &json!("web"))
    );
    assert_eq!(normalised(&content).0, content, "a second time changes nothing");
}
