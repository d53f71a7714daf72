//! What a stage's `deploymentstrategy` makes of a config's own strategy.

use super::*;
use crate::model::deployment_config::StrategyKind;

/// The strategy that is deployed by, without its defaults, and what is said of it.
fn overridden(strategy: Value, by: StrategyKind) -> (Value, Vec<(Severity, String, String)>) {
    let mut value = minimal();
    set(&mut value, "/spec/strategy", strategy);
    let terms = Terms { strategy: Some(by), ..Terms::default() };
    let (content, found) = normalised_for(&value, terms);
    let again = normalised_for(&content, terms).0;
    assert_eq!(again, content, "a second time changes nothing");
    (content["spec"]["strategy"].clone(), found)
}

fn hook(command: &str) -> Value {
    json!({"failurePolicy": "Abort", "execNewPod": {"command": [command], "containerName": "web"}})
}

#[test]
fn the_stages_strategy_takes_the_place_of_a_configs_own() {
    let limits = json!({"maxSurge": 1, "maxUnavailable": 0, "timeoutSeconds": 60});
    let default = json!({"maxSurge": "25%", "maxUnavailable": "25%", "timeoutSeconds": 600});
    let with = |base: &Value, more: Value| {
        let mut all = base.clone();
        more.as_object().into_iter().flatten().for_each(|(key, value)| all[key] = value.clone());
        all
    };
    let steps = json!([{"weight": 10, "pause": "1m"}, {"weight": 50, "pause": "1m"}]);
    for (own, by, kind, params, overrides) in [
        (json!(null), StrategyKind::Canary, "canaryParams", with(&default, json!({"steps": steps})), "Rolling"),
        (
            json!({"rollingParams": with(&limits, json!({"pre": hook("a"), "post": hook("b")}))}),
            StrategyKind::Canary,
            "canaryParams",
            with(&limits, json!({"pre": hook("a"), "post": hook("b"), "steps": steps})),
            "Rolling",
        ),
        (
            json!({"type": "Recreate", "recreateParams": {"timeoutSeconds": 60, "pre": hook("a")}}),
            StrategyKind::BlueGreen,
            "blueGreenParams",
            json!({"timeoutSeconds": 60, "pre": hook("a"), "keep": "10m"}),
            "Recreate",
        ),
        (
            json!({"rollingParams": limits, "blueGreenParams": {"keep": "1h", "analysis": hook("c")}}),
            StrategyKind::BlueGreen,
            "blueGreenParams",
            json!({"keep": "1h", "analysis": hook("c"), "timeoutSeconds": 60}),
            "Rolling",
        ),
        (
            json!({"rollingParams": {"post": hook("own")}, "canaryParams": {"steps": [{"weight": 5}], "post": hook("a")}}),
            StrategyKind::Canary,
            "canaryParams",
            with(&default, json!({"steps": [{"weight": 5}], "post": hook("a")})),
            "Rolling",
        ),
    ] {
        let (strategy, found) = overridden(own.clone(), by);
        assert_eq!(found, [], "{own}");
        let whole = json!({"type": by.as_str(), "overrides": overrides, kind: params, "activeDeadlineSeconds": 21600});
        assert_eq!(strategy, whole, "{own}");
    }
    let own = json!({"type": "Canary", "canaryParams": {"steps": [{"weight": 5}]}});
    assert_eq!(overridden(own, StrategyKind::Canary).0.get("overrides"), None, "which is its own");
}

#[test]
fn what_is_carried_over_is_checked_where_it_is_written() {
    let wrong = json!({"failurePolicy": "Abort", "execNewPod": {"command": []}});
    let (_, found) = overridden(json!({"rollingParams": {"post": wrong}}), StrategyKind::Canary);
    let field = "spec.strategy.rollingParams.post.execNewPod.command";
    assert_eq!(found, [(Severity::Error, "required".to_owned(), field.to_owned())]);
}

#[test]
fn what_cannot_be_or_is_lost_is_said() {
    let (error, warning) = (Severity::Error, Severity::Warning);
    let judged = json!([{"weight": 5, "analysis": hook("a")}]);
    for (own, by, severity, field) in [
        (json!({"type": "Custom", "customParams": {"image": "git:a"}}), StrategyKind::Canary, error, "type"),
        (json!({"customParams": {"command": ["a"]}}), StrategyKind::BlueGreen, error, "customParams"),
        (
            json!({"type": "Recreate", "recreateParams": {"mid": hook("a")}}),
            StrategyKind::Canary,
            warning,
            "recreateParams.mid",
        ),
        (
            json!({"type": "BlueGreen", "blueGreenParams": {"analysis": hook("a")}}),
            StrategyKind::Canary,
            warning,
            "blueGreenParams.analysis",
        ),
        (
            json!({"type": "Canary", "canaryParams": {"steps": judged}}),
            StrategyKind::BlueGreen,
            warning,
            "canaryParams.steps",
        ),
    ] {
        let (strategy, found) = overridden(own.clone(), by);
        assert_eq!(found, [(severity, "strategy".to_owned(), format!("spec.strategy.{field}"))], "{own}");
        assert_eq!(strategy["type"] == by.as_str(), severity == warning, "{own}");
    }
}
