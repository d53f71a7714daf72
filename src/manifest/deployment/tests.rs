use super::*;
use crate::manifest::problem::Severity;
use crate::manifest::yaml;

const HEAD: &str = "apiVersion: apps/v1\nkind: Deployment\n";

/// A `Deployment` with some annotations, and more of its spec, each as YAML that is indented as far as it stands.
fn file(annotations: &str, spec: &str) -> String {
    format!(
        "{HEAD}metadata:\n  name: web\n{annotations}spec:\n{spec}  selector: {{matchLabels: {{app: web}}}}\n  template:\n    \
         metadata: {{labels: {{app: web, tier: front}}}}\n    spec: {{containers: [{{name: web, image: 'git:web'}}]}}\n"
    )
}

fn normalised(text: &str) -> (Value, Vec<String>) {
    let reading = yaml::read(text.as_bytes());
    assert_eq!(reading.errors, [], "{text}");
    let document = &reading.documents[0];
    let mut findings = Findings::new("web.yaml", document, "");
    let mut value = document.value.clone();
    normalise(&mut value, Terms::default(), &mut findings);
    let problems = findings.problems.iter().filter(|problem| problem.severity == Severity::Error);
    let told = problems.map(|it| format!("{}:{} {} {}", it.line, it.column, it.code, it.field));
    (value, told.collect())
}

fn content(text: &str) -> Value {
    let (value, errors) = normalised(text);
    assert_eq!(errors, [] as [String; 0], "{text}");
    value
}

#[test]
fn kubernetes_defaults_are_applied() {
    let content = content(&file("", ""));
    let at = |pointer: &str| content.pointer(pointer).cloned().unwrap_or_default();
    for (pointer, expected) in [
        ("/kind", json!("Deployment")),
        ("/spec/replicas", Value::Null),
        ("/spec/selector", json!({"app": "web"})),
        ("/spec/triggers", json!([{"type": "ConfigChange"}])),
        ("/spec/revisionHistoryLimit", json!(10)),
        ("/spec/strategy/type", json!("Rolling")),
        ("/spec/strategy/rollingParams/maxSurge", json!("25%")),
        ("/spec/strategy/rollingParams/maxUnavailable", json!("25%")),
        ("/spec/strategy/rollingParams/timeoutSeconds", json!(600)),
        ("/spec/template/spec/restartPolicy", json!("Always")),
    ] {
        assert_eq!(at(pointer), expected, "{pointer}");
    }
}

#[test]
fn one_limit_leaves_the_other_at_a_quarter() {
    let content = content(&file("", "  strategy: {rollingUpdate: {maxSurge: 0}}\n"));
    assert_eq!(content.pointer("/spec/strategy/rollingParams/maxSurge"), Some(&json!(0)));
    assert_eq!(content.pointer("/spec/strategy/rollingParams/maxUnavailable"), Some(&json!("25%")));
}

#[test]
fn recreate_has_the_progress_deadline_too() {
    let content = content(&file("", "  strategy: {type: Recreate}\n  progressDeadlineSeconds: 30\n  replicas: 0\n"));
    let strategy = content.pointer("/spec/strategy");
    let expected =
        json!({"type": "Recreate", "recreateParams": {"timeoutSeconds": 30}, "activeDeadlineSeconds": 21600});
    assert_eq!(strategy, Some(&expected));
    assert_eq!(content.pointer("/spec/replicas"), Some(&json!(0)));
}

#[test]
fn annotations_give_it_hooks_a_strategy_and_triggers() {
    let annotations = "  annotations:
    team: shop
    launchway.dev/hooks: |
      pre: {failurePolicy: Abort, execNewPod: {command: [bin/check]}}
    launchway.dev/strategy: '{rollingParams: {timeoutSeconds: 60}, activeDeadlineSeconds: 900}'
    launchway.dev/triggers: '[]'
    image.openshift.io/triggers: '[{\"from\":{\"kind\":\"ImageStreamTag\",\"name\":\"web:prod\"},\"fieldPath\":\"spec.template.spec.containers[?(@.name==\\\"web\\\")].image\"}]'
";
    let content = content(&file(&annotations.replace("\\\\", "\\"), ""));
    assert_eq!(content.pointer("/metadata/annotations"), Some(&json!({"team": "shop"})));
    let params = content.pointer("/spec/strategy/rollingParams").expect("the strategy's block");
    assert_eq!(params["timeoutSeconds"], 60);
    assert_eq!(params["maxSurge"], "25%");
    assert_eq!(params["pre"]["execNewPod"], json!({"command": ["bin/check"], "containerName": "web"}));
    assert_eq!(content.pointer("/spec/strategy/activeDeadlineSeconds"), Some(&json!(900)));
    let from = json!({"kind": "ImageStreamTag", "name": "web:prod"});
    let params = json!({"automatic": true, "containerNames": ["web"], "from": from});
    assert_eq!(content.pointer("/spec/triggers"), Some(&json!([{"type": "ImageChange", "imageChangeParams": params}])));
}

#[test]
fn how_an_annotation_is_written_is_no_difference() {
    let block =
        "  annotations:\n    launchway.dev/strategy: |\n      # slowly\n      rollingParams:\n        maxSurge: 1\n";
    let flow = "  annotations: {launchway.dev/strategy: '{\"rollingParams\": {\"maxSurge\": 1}}'}\n";
    assert_eq!(content(&file(block, "")), content(&file(flow, "")));
}

#[test]
fn an_annotation_gives_it_the_strategies_that_it_never_had() {
    let annotations = "  annotations:\n    launchway.dev/strategy: |\n      type: Canary\n      canaryParams:\n        steps:\n        - {weight: 10, pause: }\n    \
        launchway.dev/hooks: \"post: {failurePolicy: Ignore, execNewPod: {command: [a]}}\"\n";
    let content = content(&file(annotations, "  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 2}}\n"));
    let params = content.pointer("/spec/strategy/canaryParams").expect("the strategy's block");
    assert_eq!(params["steps"], json!([{"weight": 10, "pause": {}}]));
    assert_eq!((&params["maxSurge"], &params["maxUnavailable"]), (&json!(2), &json!("25%")));
    assert_eq!(params["post"]["failurePolicy"], "Ignore");
}

/// What is wrong is told at its place in the file, also inside the text of an annotation.
#[test]
fn bad_files_are_told_with_their_place() {
    let annotated = |text: &str| file(&format!("  annotations:\n{text}"), "");
    let table = [
        (file("", "  replicas: -1\n"), vec!["6:13 invalid spec.replicas"]),
        (
            file("", "  progressDeadlineSeconds: 5\n  minReadySeconds: 5\n"),
            vec!["6:28 invalid spec.progressDeadlineSeconds"],
        ),
        (file("", "  strategy: {type: Rolling}\n"), vec!["6:20 unsupported-value spec.strategy.type"]),
        (
            file("", "  strategy: {type: Recreate, rollingUpdate: {maxSurge: 1}}\n"),
            vec!["6:45 invalid spec.strategy.rollingUpdate"],
        ),
        (
            file("", "  strategy:\n    rollingUpdate:\n      maxSurge: 0\n      maxUnavailable: 0\n"),
            vec!["9:23 invalid spec.strategy.rollingUpdate.maxUnavailable"],
        ),
        (
            file("", "  strategy: {rollingUpdate: {maxSurge: 10.5%}}\n"),
            vec!["6:40 invalid spec.strategy.rollingUpdate.maxSurge"],
        ),
        (file("", "").replace("{app: web}}\n", "{app: other}}\n"), vec!["8:24 invalid spec.template.metadata.labels"]),
        (file("", "").replace("{matchLabels: {app: web}}", "{}"), vec!["6:13 required spec.selector"]),
        (
            file("", "").replace(
                "{matchLabels: {app: web}}",
                "{matchExpressions: [{key: tier, operator: In, values: [back]}]}",
            ),
            vec!["8:24 invalid spec.template.metadata.labels"],
        ),
        (
            annotated(
                "    launchway.dev/hooks: |\n      pre:\n        failurePolicy: Panic\n        execNewPod: {command: [a]}\n",
            ),
            vec!["8:24 unsupported-value metadata.annotations.launchway.dev/hooks.pre.failurePolicy"],
        ),
        (
            annotated("    launchway.dev/hooks: |\n      befor: {}\n"),
            vec!["7:7 unknown-key metadata.annotations.launchway.dev/hooks.befor"],
        ),
        (annotated("    launchway.dev/hook: '{}'\n"), vec!["6:5 misspelt metadata.annotations.launchway.dev/hook"]),
        (
            annotated("    launchway.dev/strategy: |\n      rollingParams: {\n"),
            vec!["7:22 syntax metadata.annotations.launchway.dev/strategy"],
        ),
        (
            annotated("    launchway.dev/strategy: ''\n"),
            vec!["6:29 invalid metadata.annotations.launchway.dev/strategy"],
        ),
        (
            annotated("    launchway.dev/triggers: '[{type: ConfigChang}]'\n"),
            vec!["6:29 unsupported-value metadata.annotations.launchway.dev/triggers[0].type"],
        ),
        (
            annotated("    image.openshift.io/triggers: '[{fieldPath: spec.image}]'\n"),
            vec!["6:34 invalid metadata.annotations.image.openshift.io/triggers"],
        ),
        (annotated("    image.openshift.io/triggers: '[{from: {name: a}, fieldPath: spec.image}]'\n"), vec![]),
    ];
    for (text, expected) in table {
        assert_eq!(normalised(&text).1, expected, "{text}");
    }
}

#[test]
fn an_annotation_cannot_contradict_the_deployment() {
    let annotations = |text: &str| format!("  annotations: {{launchway.dev/strategy: '{text}'}}\n");
    for (annotation, spec, field) in [
        ("{type: Recreate}", "{type: RollingUpdate}", "type"),
        ("{type: Rolling}", "{type: Recreate}", "type"),
        ("{rollingParams: {maxSurge: 2}}", "{rollingUpdate: {maxSurge: 1}}", "rollingParams.maxSurge"),
    ] {
        let (_, errors) = normalised(&file(&annotations(annotation), &format!("  strategy: {spec}\n")));
        let told = errors.iter().any(|error| error.ends_with(&format!("launchway.dev/strategy.{field}")));
        assert!(told, "{annotation} {spec}: {errors:?}");
    }
    let same = file(
        &annotations("{type: Rolling, rollingParams: {maxSurge: 1}}"),
        "  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}\n",
    );
    assert_eq!(normalised(&same).1, [] as [String; 0]);
}
