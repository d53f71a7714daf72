use serde_json::json;

use super::*;
use crate::manifest::problem::Severity;
use crate::manifest::yaml;

mod overriding;
mod trial;

/// A deployment config of one container, without anything that has a default.
fn minimal() -> Value {
    json!({
        "apiVersion": "apps.openshift.io/v1",
        "kind": "DeploymentConfig",
        "metadata": {"name": "web"},
        "spec": {
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "git:web"}]},
            },
        },
    })
}

/// Sets the value at a pointer, making what leads there; null removes it.
fn set(value: &mut Value, pointer: &str, new: Value) {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    if value.pointer(parent).is_none() {
        set(value, parent, json!({}));
    }
    let parent = value.pointer_mut(parent).expect("it was made");
    let key = &key.replace("~1", "/");
    match parent.as_array_mut() {
        Some(list) => list[key.parse::<usize>().expect("an index")] = new,
        None if new.is_null() => drop(parent.as_object_mut().expect("a mapping").remove(key)),
        None => parent[key] = new,
    }
}

fn normalised(value: &Value) -> (Value, Vec<(Severity, String, String)>) {
    normalised_for(value, Terms::default())
}

fn normalised_for(value: &Value, terms: Terms) -> (Value, Vec<(Severity, String, String)>) {
    let reading = yaml::read(value.to_string().as_bytes());
    let document = &reading.documents[0];
    let mut findings = Findings::new("a.json", document, "");
    let mut value = document.value.clone();
    normalise(&mut value, terms, &mut findings);
    let found = findings.problems.into_iter().map(|problem| (problem.severity, problem.code, problem.field));
    (value, found.collect())
}

fn errors(changes: &[(&str, Value)]) -> Vec<(String, String)> {
    let mut value = minimal();
    for (pointer, new) in changes {
        set(&mut value, pointer, new.clone());
    }
    let (_, found) = normalised(&value);
    found.into_iter().filter(|found| found.0 == Severity::Error).map(|(_, code, field)| (code, field)).collect()
}

/// Changes of the minimal config, and the one error that they make.
macro_rules! refused {
    ($($name:ident: [$($pointer:literal = $value:tt),*] => $code:literal at $field:literal;)*) => {$(
        #[test]
        fn $name() {
            assert_eq!(errors(&[$(($pointer, json!($value))),*]), [($code.to_owned(), $field.to_owned())]);
        }
    )*};
}

refused! {
    a_name_is_required: ["/metadata/name" = null] => "required" at "metadata.name";
    metadata_is_required: ["/metadata" = null] => "required" at "metadata";
    a_name_follows_the_rules: ["/metadata/name" = "-foo"] => "invalid" at "metadata.name";
    a_service_label_follows_the_rules: ["/metadata/labels/launchway.dev~1service" = "A B"] => "invalid" at "metadata.labels.launchway.dev/service";
    a_spec_is_required: ["/spec" = null] => "required" at "spec";
    a_template_is_required: ["/spec/template" = null, "/spec/selector" = {"a": "b"}] => "required" at "spec.template";
    replicas_are_not_negative: ["/spec/replicas" = (-1)] => "invalid" at "spec.replicas";
    replicas_are_bounded: ["/spec/replicas" = 1001] => "invalid" at "spec.replicas";
    replicas_are_a_number: ["/spec/replicas" = "2"] => "type" at "spec.replicas";
    the_history_limit_is_not_negative: ["/spec/revisionHistoryLimit" = (-1)] => "invalid" at "spec.revisionHistoryLimit";
    the_ready_time_is_not_negative: ["/spec/minReadySeconds" = (-1)] => "invalid" at "spec.minReadySeconds";
    the_ready_time_is_less_than_the_timeout: ["/spec/minReadySeconds" = 600] => "invalid" at "spec.minReadySeconds";
    a_selector_is_required: ["/spec/template/metadata/labels" = {}] => "required" at "spec.selector";
    a_selector_matches_the_template: ["/spec/selector" = {"app": "x"}] => "invalid" at "spec.template.metadata.labels";
    a_misspelt_trigger_is_refused: ["/spec/triggers" = [{"type": "ConfigChang"}]] => "unsupported-value" at "spec.triggers[0].type";
    a_trigger_has_a_type: ["/spec/triggers" = [{"imageChangeParams": {"containerNames": ["web"]}}]] => "required" at "spec.triggers[0].type";
    an_image_trigger_has_parameters: ["/spec/triggers" = [{"type": "ImageChange"}]] => "required" at "spec.triggers[0].imageChangeParams";
    an_image_trigger_has_a_source: ["/spec/triggers" = [{"type": "ImageChange", "imageChangeParams": {"containerNames": ["web"]}}]]
        => "required" at "spec.triggers[0].imageChangeParams.from";
    an_image_triggers_source_is_a_tag: ["/spec/triggers" = [{"type": "ImageChange", "imageChangeParams": {"from": {"kind": "Invalid", "name": "a:b"}, "containerNames": ["web"]}}]]
        => "invalid" at "spec.triggers[0].imageChangeParams.from.kind";
    an_image_triggers_source_has_a_name: ["/spec/triggers" = [{"type": "ImageChange", "imageChangeParams": {"from": {"kind": "ImageStreamTag"}, "containerNames": ["web"]}}]]
        => "required" at "spec.triggers[0].imageChangeParams.from.name";
    an_image_triggers_source_has_a_tag: ["/spec/triggers" = [{"type": "ImageChange", "imageChangeParams": {"from": {"name": "a"}, "containerNames": ["web"]}}]]
        => "invalid" at "spec.triggers[0].imageChangeParams.from.name";
    an_image_trigger_names_containers: ["/spec/triggers" = [{"type": "ImageChange", "imageChangeParams": {"from": {"name": "a:b"}}}]]
        => "required" at "spec.triggers[0].imageChangeParams.containerNames";
    an_unknown_strategy_is_refused: ["/spec/strategy/type" = "BigBang"] => "unsupported-value" at "spec.strategy.type";
    update_periods_are_positive: ["/spec/strategy/rollingParams/updatePeriodSeconds" = 0] => "invalid" at "spec.strategy.rollingParams.updatePeriodSeconds";
    intervals_are_positive: ["/spec/strategy/rollingParams/intervalSeconds" = (-20)] => "invalid" at "spec.strategy.rollingParams.intervalSeconds";
    timeouts_are_positive: ["/spec/strategy/rollingParams/timeoutSeconds" = 0] => "invalid" at "spec.strategy.rollingParams.timeoutSeconds";
    recreate_timeouts_are_positive: ["/spec/strategy/type" = "Recreate", "/spec/strategy/recreateParams/timeoutSeconds" = (-1)]
        => "invalid" at "spec.strategy.recreateParams.timeoutSeconds";
    a_surge_is_not_negative: ["/spec/strategy/rollingParams/maxSurge" = (-1)] => "invalid" at "spec.strategy.rollingParams.maxSurge";
    a_surge_is_whole: ["/spec/strategy/rollingParams/maxSurge" = "10.5%"] => "invalid" at "spec.strategy.rollingParams.maxSurge";
    a_surge_in_words_is_a_percentage: ["/spec/strategy/rollingParams/maxSurge" = "3"] => "invalid" at "spec.strategy.rollingParams.maxSurge";
    not_more_pods_than_all_are_unavailable: ["/spec/strategy/rollingParams/maxUnavailable" = "101%"] => "invalid" at "spec.strategy.rollingParams.maxUnavailable";
    both_limits_cannot_be_zero: ["/spec/strategy/rollingParams/maxUnavailable" = 0, "/spec/strategy/rollingParams/maxSurge" = "0%"]
        => "invalid" at "spec.strategy.rollingParams.maxUnavailable";
    the_deadline_is_more_than_the_timeout: ["/spec/strategy/activeDeadlineSeconds" = 600] => "invalid" at "spec.strategy.activeDeadlineSeconds";
    the_deadline_is_positive: ["/spec/strategy/activeDeadlineSeconds" = 0] => "invalid" at "spec.strategy.activeDeadlineSeconds";
    a_hook_has_a_policy: ["/spec/strategy/rollingParams/pre" = {"execNewPod": {"command": ["a"]}}] => "required" at "spec.strategy.rollingParams.pre.failurePolicy";
    a_hooks_policy_is_known: ["/spec/strategy/rollingParams/post" = {"failurePolicy": "Panic", "execNewPod": {"command": ["a"]}}]
        => "unsupported-value" at "spec.strategy.rollingParams.post.failurePolicy";
    a_hook_does_something: ["/spec/strategy/rollingParams/pre" = {"failurePolicy": "Retry"}] => "required" at "spec.strategy.rollingParams.pre";
    a_hook_does_one_thing: ["/spec/strategy/rollingParams/pre" = {"failurePolicy": "Retry", "execNewPod": {"command": ["a"]}, "tagImages": [{}]}]
        => "invalid" at "spec.strategy.rollingParams.pre";
    a_hook_has_a_command: ["/spec/strategy/rollingParams/mid" = {"failurePolicy": "Retry", "execNewPod": {}}]
        => "required" at "spec.strategy.rollingParams.mid.execNewPod.command";
    a_hooks_variables_are_identifiers: ["/spec/strategy/rollingParams/pre" = {"failurePolicy": "Retry", "execNewPod": {"command": ["a"], "env": [{"name": "1.A"}]}}]
        => "invalid" at "spec.strategy.rollingParams.pre.execNewPod.env[0].name";
    a_hooks_variables_have_names: ["/spec/strategy/rollingParams/pre" = {"failurePolicy": "Retry", "execNewPod": {"command": ["a"], "env": [{"value": "x"}]}}]
        => "required" at "spec.strategy.rollingParams.pre.execNewPod.env[0].name";
    a_hooks_volumes_have_names: ["/spec/strategy/rollingParams/pre" = {"failurePolicy": "Retry", "execNewPod": {"command": ["a"], "volumes": [""]}}]
        => "invalid" at "spec.strategy.rollingParams.pre.execNewPod.volumes[0]";
    a_hook_names_one_of_several_containers: [
        "/spec/template/spec/containers" = [{"name": "a", "image": "host"}, {"name": "b", "image": "host"}],
        "/spec/strategy/rollingParams/pre" = {"failurePolicy": "Retry", "execNewPod": {"command": ["a"]}}
    ] => "required" at "spec.strategy.rollingParams.pre.execNewPod.containerName";
    a_hooks_timeout_is_positive: ["/spec/strategy/rollingParams/pre" = {"failurePolicy": "Retry", "timeoutSeconds": 0, "execNewPod": {"command": ["a"]}}]
        => "invalid" at "spec.strategy.rollingParams.pre.timeoutSeconds";
    containers_are_required: ["/spec/template/spec/containers" = []] => "required" at "spec.template.spec.containers";
    a_container_has_a_name: ["/spec/template/spec/containers" = [{"image": "host"}]] => "required" at "spec.template.spec.containers[0].name";
    a_containers_name_follows_the_rules: ["/spec/template/spec/containers/0/name" = "A"] => "invalid" at "spec.template.spec.containers[0].name";
    containers_have_different_names: ["/spec/template/spec/initContainers" = [{"name": "web", "image": "host"}]]
        => "duplicate" at "spec.template.spec.containers[0].name";
    a_container_has_an_image: ["/spec/template/spec/containers/0/image" = ""] => "required" at "spec.template.spec.containers[0].image";
    pods_that_serve_are_restarted: ["/spec/template/spec/restartPolicy" = "Never"] => "unsupported-value" at "spec.template.spec.restartPolicy";
    pods_that_serve_have_no_deadline: ["/spec/template/spec/activeDeadlineSeconds" = 5] => "invalid" at "spec.template.spec.activeDeadlineSeconds";
    a_grace_period_is_not_negative: ["/spec/template/spec/terminationGracePeriodSeconds" = (-1)] => "invalid" at "spec.template.spec.terminationGracePeriodSeconds";
    a_port_is_in_range: ["/spec/template/spec/containers/0/ports" = [{"containerPort": 70000}]] => "invalid" at "spec.template.spec.containers[0].ports[0].containerPort";
    ports_have_different_names: ["/spec/template/spec/containers/0/ports" = [{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]]
        => "duplicate" at "spec.template.spec.containers[0].ports[1].name";
    a_mount_names_a_volume: ["/spec/template/spec/containers/0/volumeMounts" = [{"name": "x", "mountPath": "/x"}]]
        => "not-found" at "spec.template.spec.containers[0].volumeMounts[0].name";
    a_mount_stays_in_its_volume: ["/spec/template/spec/volumes" = [{"name": "x"}], "/spec/template/spec/containers/0/volumeMounts" = [{"name": "x", "mountPath": "/x", "subPath": "a/../../b"}]]
        => "invalid" at "spec.template.spec.containers[0].volumeMounts[0].subPath";
    a_volume_has_one_source: ["/spec/template/spec/volumes" = [{"name": "x", "emptyDir": {}, "hostPath": {"path": "/x"}}]] => "invalid" at "spec.template.spec.volumes[0]";
    volumes_have_different_names: ["/spec/template/spec/volumes" = [{"name": "x"}, {"name": "x"}]] => "duplicate" at "spec.template.spec.volumes[1].name";
    a_variable_has_one_value: ["/spec/template/spec/containers/0/env" = [{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]]
        => "invalid" at "spec.template.spec.containers[0].env[0].valueFrom";
    a_variable_has_one_source: ["/spec/template/spec/containers/0/env" = [{"name": "A", "valueFrom": {}}]] => "required" at "spec.template.spec.containers[0].env[0].valueFrom";
    a_value_is_text: ["/spec/template/spec/containers/0/env" = [{"name": "A", "value": true}]] => "type" at "spec.template.spec.containers[0].env[0].value";
    a_set_of_variables_has_a_source: ["/spec/template/spec/containers/0/envFrom" = [{"prefix": "A"}]] => "required" at "spec.template.spec.containers[0].envFrom[0]";
    a_probe_does_one_thing: ["/spec/template/spec/containers/0/livenessProbe" = {"periodSeconds": 5}] => "required" at "spec.template.spec.containers[0].livenessProbe";
    a_probe_has_a_port: ["/spec/template/spec/containers/0/readinessProbe" = {"httpGet": {"path": "/"}}] => "required" at "spec.template.spec.containers[0].readinessProbe.httpGet.port";
    one_success_is_enough_to_live: ["/spec/template/spec/containers/0/livenessProbe" = {"exec": {"command": ["a"]}, "successThreshold": 2}]
        => "invalid" at "spec.template.spec.containers[0].livenessProbe.successThreshold";
    init_containers_have_no_probes: ["/spec/template/spec/initContainers" = [{"name": "init", "image": "host", "readinessProbe": {"exec": {"command": ["a"]}}}]]
        => "invalid" at "spec.template.spec.initContainers[0].readinessProbe";
    an_amount_is_an_amount: ["/spec/template/spec/containers/0/resources/limits" = {"memory": "lots"}] => "invalid" at "spec.template.spec.containers[0].resources.limits.memory";
    a_request_is_within_its_limit: ["/spec/template/spec/containers/0/resources" = {"limits": {"memory": "1Gi"}, "requests": {"memory": "1025Mi"}}]
        => "invalid" at "spec.template.spec.containers[0].resources.requests.memory";
    a_volume_is_one_that_this_runtime_has: ["/spec/template/spec/volumes" = [{"name": "x", "nfs": {"server": "a", "path": "/b"}}]]
        => "not-supported" at "spec.template.spec.volumes[0].nfs";
    a_probe_is_one_that_this_runtime_has: ["/spec/template/spec/containers/0/livenessProbe" = {"grpc": {"port": 1}}]
        => "not-supported" at "spec.template.spec.containers[0].livenessProbe.grpc";
    sidecars_are_not_supported_yet: ["/spec/template/spec/containers/0/restartPolicy" = "Always"]
        => "not-supported" at "spec.template.spec.containers[0].restartPolicy";
    a_divisor_is_an_amount: ["/spec/template/spec/containers/0/env" = [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "x"}}}]]
        => "invalid" at "spec.template.spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor";
}

#[test]
fn the_ready_time_is_less_than_the_deadline() {
    let found = errors(&[("/spec/minReadySeconds", json!(700)), ("/spec/strategy/activeDeadlineSeconds", json!(650))]);
    let expected = ("invalid".to_owned(), "spec.minReadySeconds".to_owned());
    assert_eq!(found, [expected.clone(), expected], "of the timeout, and of the deadline");
}

/// What is set, and all that is found: warnings are said to be some.
fn found(changes: &[(&str, Value)]) -> Vec<String> {
    let mut value = minimal();
    for (pointer, new) in changes {
        set(&mut value, pointer, new.clone());
    }
    let (_, found) = normalised(&value);
    found.into_iter().map(|(severity, code, field)| format!("{severity} {field}: {code}")).collect()
}

#[test]
fn what_has_no_effect_is_told_beside_what_upstream_would_refuse() {
    let custom = ("/spec/strategy/type", json!("Custom"));
    let params = json!({"environment": [{"name": "A.B"}]});
    let hook = json!({"failurePolicy": "Abort", "tagImages": [{"containerName": "x", "to": {"kind": "Image"}}]});
    let tags = json!({"failurePolicy": "Abort", "tagImages": [{"to": {"kind": "ImageStreamTag", "name": "a:b"}}]});
    let trigger =
        json!({"type": "ImageChange", "imageChangeParams": {"from": {"name": "a:b"}, "containerNames": ["web"]}});
    let pre = "spec.strategy.rollingParams.pre.tagImages";
    let table = [
        (vec![custom.clone(), ("/spec/strategy/customParams", json!({"image": "a/b"}))], vec![]),
        (
            vec![custom.clone(), ("/spec/strategy/customParams", params)],
            vec![
                "warning spec.strategy.customParams: incomplete".to_owned(),
                "error spec.strategy.customParams.environment[0].name: invalid".into(),
            ],
        ),
        (
            vec![custom, ("/spec/strategy/rollingParams/maxSurge", json!("x"))],
            vec![
                "error spec.strategy.rollingParams.maxSurge: invalid".into(),
                "error spec.strategy.customParams: required".into(),
            ],
        ),
        (vec![("/spec/strategy/rollingParams/pre", tags)], vec![]),
        (
            vec![("/spec/strategy/rollingParams/pre", hook)],
            vec![
                format!("error {pre}[0].containerName: not-found"),
                format!("error {pre}[0].to.kind: invalid"),
                format!("error {pre}[0].to.name: required"),
            ],
        ),
        (vec![("/spec/triggers", json!([trigger]))], vec![]),
        (
            vec![
                ("/spec/strategy/resources", json!({"limits": {"cpu": 1}})),
                ("/spec/strategy/customParams", json!({"image": "a/b"})),
            ],
            vec![],
        ),
        (
            vec![("/spec/strategy/customParams", json!({"environment": [{"name": "A"}]}))],
            vec!["warning spec.strategy.customParams: no-effect".into()],
        ),
        (
            vec![
                ("/spec/strategy", json!({"type": "BlueGreen"})),
                ("/spec/strategy/customParams", json!({"image": "a/b"})),
            ],
            vec!["warning spec.strategy.customParams: no-effect".into()],
        ),
        (
            vec![("/spec/strategy/resources", json!({})), ("/spec/strategy/labels", json!({"a": "b"}))],
            vec!["warning spec.strategy.labels: no-effect".into()],
        ),
    ];
    for (changes, expected) in table {
        assert_eq!(found(&changes), expected, "{changes:?}");
    }
}

/// What the proposals call things, with what it is called now.
#[test]
fn the_proposals_words_are_understood() {
    let hook = json!({"failurePolicy": "Ignore", "execNewPod": {"command": ["a"]}});
    let of_old = json!({"failurePolicy": "Continue", "execNewPod": {"command": ["a"]}});
    let template = minimal()["spec"]["template"].clone();
    let from = json!({"kind": "ImageStreamTag", "name": "shop/web:v1"});
    let triggers = |params: Value| json!([{"type": "ImageChange", "imageChangeParams": params}]);
    let controller = |more: Value| {
        let mut controller = json!({"podTemplate": template, "replicaSelector": {"app": "web"}, "replicas": 2});
        for (key, value) in more.as_object().into_iter().flatten() {
            controller[key] = value.clone();
        }
        controller
    };
    let shipped = json!({"template": template, "selector": {"app": "web"}, "replicas": 2});
    let recreate = json!({"type": "Recreate", "recreateParams": {"pre": hook, "post": hook}});
    let table = [
        (
            json!({"template": template, "strategy": {"lifecycle": {"pre": of_old}}}),
            json!({"template": template, "strategy": {"rollingParams": {"pre": hook}}}),
        ),
        (
            json!({"template": template, "strategy": {"type": "Recreate", "lifecycle": {"pre": of_old, "post": hook}}}),
            json!({"template": template, "strategy": recreate}),
        ),
        (
            json!({"template": template, "triggers": triggers(json!({"repositoryName": "shop/web", "tag": "v1", "containerNames": ["web"]}))}),
            json!({"template": template, "triggers": triggers(json!({"from": from, "containerNames": ["web"]}))}),
        ),
        (json!({"controllerTemplate": controller(json!({}))}), shipped.clone()),
        (
            json!({"controllerTemplate": {"template": template, "selector": {"app": "web"}, "replicas": 2}}),
            shipped.clone(),
        ),
        (json!({"template": {"controllerTemplate": controller(json!({})), "strategy": recreate}}), {
            let mut shipped = shipped;
            shipped["strategy"] = recreate;
            shipped
        }),
    ];
    for (proposed, shipped) in table {
        let normalised_with = |spec: &Value| {
            let mut value = minimal();
            value["spec"] = spec.clone();
            normalised(&value)
        };
        assert_eq!(normalised_with(&proposed), normalised_with(&shipped), "{proposed}");
    }
}

/// The proposal's shape has no `spec`, and says beside what is declared how far it is.
#[test]
fn a_config_of_the_proposal_is_read_as_it_stands_there() {
    let template = minimal()["spec"]["template"].clone();
    let from = json!({"repositoryName": "shop/web", "containerNames": ["web"]});
    let controller = json!({"podTemplate": template, "replicaSelector": {"app": "web"}, "replicas": 2});
    let proposed = |name: Value| {
        let mut proposed = json!({
            "kind": "DeploymentConfig", "labels": {"tier": "front"}, "latestVersion": 3, "details": {"message": "x"},
            "template": {"strategy": {"type": "Recreate"}, "controllerTemplate": controller},
            "triggers": [{"type": "ConfigChange"}, {"type": "ImageChange", "imageChangeParams": from}],
        });
        proposed.as_object_mut().expect("a map").extend(name.as_object().expect("a map").clone());
        proposed
    };
    let mut shipped = minimal();
    shipped["metadata"] = json!({"name": "web", "labels": {"tier": "front"}});
    let from = json!({"from": {"kind": "ImageStreamTag", "name": "shop/web:latest"}, "containerNames": ["web"]});
    shipped["spec"] = json!({
        "replicas": 2, "selector": {"app": "web"}, "template": template, "strategy": {"type": "Recreate"},
        "triggers": [{"type": "ConfigChange"}, {"type": "ImageChange", "imageChangeParams": from}],
    });
    for name in [json!({"id": "web"}), json!({"metadata": {"name": "web"}})] {
        assert_eq!(normalised(&proposed(name)), normalised(&shipped));
    }
    let (_, found) = normalised(&proposed(json!({"id": "web", "metadata": {"name": "api"}})));
    assert_eq!(found, [(Severity::Error, "duplicate".into(), "id".into())], "one name is enough");
    let mistaken =
        json!({"kind": "DeploymentConfig", "metadata": {"name": "web"}, "replicas": 2, "template": template});
    let (_, found) = normalised(&mistaken);
    assert!(
        found.contains(&(Severity::Error, "required".into(), "spec".into())),
        "what lacks a spec by mistake is no proposal: {found:?}"
    );
}

#[test]
fn what_is_wrong_with_a_moved_part_is_told_where_it_is_written() {
    let text = "{apiVersion: v1, kind: DeploymentConfig, metadata: {name: web}, spec: {strategy: {lifecycle: {\n\
                pre: {failurePolicy: Never, execNewPod: {command: [a]}}, post: {failurePolicy: Abort}},\n\
                rollingParams: {post: {failurePolicy: Abort}}},\n\
                controllerTemplate: {podTemplate: {metadata: {labels: {a: b}},\n\
                spec: {containers: [{name: web, image: host, command: [a], ports: [{containerPort: 0}]}]}}}}}";
    let reading = yaml::read(text.as_bytes());
    let mut findings = Findings::new("a.yaml", &reading.documents[0], "");
    normalise(&mut reading.documents[0].value.clone(), Terms::default(), &mut findings);
    let told: Vec<_> = findings
        .problems
        .iter()
        .filter(|problem| problem.is_error())
        .map(|problem| format!("{}:{} {} {}", problem.line, problem.column, problem.pointer, problem.field))
        .collect();
    let port = "/spec/controllerTemplate/podTemplate/spec/containers/0/ports/0/containerPort";
    assert_eq!(
        told,
        [
            "2:58 /spec/strategy/lifecycle/post spec.strategy.lifecycle.post".to_owned(),
            format!("5:84 {port} spec.template.spec.containers[0].ports[0].containerPort"),
            "2:22 /spec/strategy/lifecycle/pre/failurePolicy spec.strategy.rollingParams.pre.failurePolicy".to_owned(),
            "3:23 /spec/strategy/rollingParams/post spec.strategy.rollingParams.post".to_owned(),
        ]
    );
}

#[test]
fn everything_that_is_left_out_gets_upstreams_default() {
    let (value, found) = normalised(&minimal());
    assert_eq!(found, []);
    assert_eq!(
        value,
        json!({
            "metadata": {"name": "web"},
            "spec": {
                "replicas": 0,
                "test": false,
                "paused": false,
                "minReadySeconds": 0,
                "revisionHistoryLimit": 10,
                "selector": {"app": "web"},
                "triggers": [{"type": "ConfigChange"}],
                "strategy": {
                    "type": "Rolling",
                    "activeDeadlineSeconds": 21600,
                    "rollingParams": {
                        "updatePeriodSeconds": 1,
                        "intervalSeconds": 1,
                        "timeoutSeconds": 600,
                        "maxUnavailable": "25%",
                        "maxSurge": "25%",
                    },
                },
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {
                        "restartPolicy": "Always",
                        "dnsPolicy": "ClusterFirst",
                        "terminationGracePeriodSeconds": 30,
                        "schedulerName": "default-scheduler",
                        "containers": [{
                            "name": "web",
                            "image": "git:web",
                            "imagePullPolicy": "IfNotPresent",
                            "terminationMessagePath": "/dev/termination-log",
                            "terminationMessagePolicy": "File",
                        }],
                    },
                },
            },
        })
    );
}

/// What is set, where to look, and what is there then.
#[test]
fn defaults_depend_on_what_is_given() {
    let rolling = "/spec/strategy/rollingParams";
    let pre = json!({"failurePolicy": "Continue", "execNewPod": {"command": ["a"]}});
    let probe = json!({"httpGet": {"port": 1}, "timeoutSeconds": 0, "initialDelaySeconds": 0});
    let container = "/spec/template/spec/containers/0";
    let at = |base: &str, rest: &str| format!("{base}{rest}");
    let table = [
        ("/apiVersion".to_owned(), json!("v1"), "/spec/revisionHistoryLimit".to_owned(), json!(10)),
        ("/spec/revisionHistoryLimit".into(), json!(0), "/spec/revisionHistoryLimit".into(), json!(0)),
        ("/spec/triggers".into(), json!([]), "/spec/triggers".into(), json!([])),
        (
            "/spec/strategy".into(),
            json!({"type": "Recreate"}),
            "/spec/strategy".into(),
            json!({"type": "Recreate", "activeDeadlineSeconds": 21600, "recreateParams": {"timeoutSeconds": 600}}),
        ),
        (at(rolling, "/maxSurge"), json!(3), at(rolling, "/maxUnavailable"), json!(0)),
        (at(rolling, "/maxSurge"), json!(0), at(rolling, "/maxUnavailable"), json!("25%")),
        (at(rolling, "/maxSurge"), json!("0%"), at(rolling, "/maxUnavailable"), json!("25%")),
        (at(rolling, "/maxUnavailable"), json!("10%"), at(rolling, "/maxSurge"), json!(0)),
        (at(rolling, "/maxUnavailable"), json!(0), at(rolling, "/maxSurge"), json!("25%")),
        (at(rolling, "/pre"), pre.clone(), at(rolling, "/pre/failurePolicy"), json!("Ignore")),
        (at(rolling, "/pre"), pre, at(rolling, "/pre/execNewPod/containerName"), json!("web")),
        (at(container, "/image"), json!("a/b:1"), at(container, "/imagePullPolicy"), json!("IfNotPresent")),
        (at(container, "/image"), json!("a/b:latest"), at(container, "/imagePullPolicy"), json!("Always")),
        (at(container, "/image"), json!("localhost:5000/b"), at(container, "/imagePullPolicy"), json!("Always")),
        (at(container, "/ports"), json!([{"containerPort": 80}]), at(container, "/ports/0/protocol"), json!("TCP")),
        (
            at(container, "/readinessProbe"),
            probe,
            at(container, "/readinessProbe"),
            json!({
                "httpGet": {"port": 1, "path": "/", "scheme": "HTTP"},
                "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3,
            }),
        ),
        (
            "/spec/template/spec/volumes".into(),
            json!([{"name": "a"}]),
            "/spec/template/spec/volumes/0/emptyDir".into(),
            json!({}),
        ),
        (
            "/spec/template/spec/volumes".into(),
            json!([{"name": "a", "secret": {"secretName": "s"}}]),
            "/spec/template/spec/volumes/0/secret/defaultMode".into(),
            json!(420),
        ),
        (
            "/spec/template/spec/serviceAccount".into(),
            json!("me"),
            "/spec/template/spec/serviceAccountName".into(),
            json!("me"),
        ),
        (
            "/spec/triggers".into(),
            json!([{"type": "ImageChange", "imageChangeParams": {"containerNames": ["web"], "lastTriggeredImage": "x", "from": {"kind": "ImageStream", "name": "a"}}}]),
            "/spec/triggers/0/imageChangeParams".into(),
            json!({"containerNames": ["web"], "from": {"kind": "ImageStreamTag", "name": "a:latest"}}),
        ),
    ];
    for (pointer, given, looked_at, expected) in table {
        let mut value = minimal();
        set(&mut value, &pointer, given.clone());
        let (value, _) = normalised(&value);
        assert_eq!(value.pointer(&looked_at).cloned().unwrap_or_default(), expected, "{pointer} = {given}");
    }
}

/// Pairs of spellings that mean the same and must not deploy anything.
#[test]
fn what_means_the_same_becomes_the_same() {
    let container = "/spec/template/spec/containers/0";
    let table = [
        ("/spec/triggers", json!(null), json!([{"type": "ConfigChange"}])),
        ("/spec/strategy/rollingParams", json!(null), json!({"timeoutSeconds": 600})),
        ("/status", json!(null), json!({"latestVersion": 7})),
        ("/metadata/creationTimestamp", json!(null), json!("2015-01-01T00:00:00Z")),
        ("/spec/template/metadata/creationTimestamp", json!(null), json!("2015-01-01T00:00:00Z")),
        (&format!("{container}/resources"), json!({}), json!(null)),
        (
            &format!("{container}/resources"),
            json!({"limits": {"cpu": "1000m", "memory": "1Gi"}}),
            json!({"limits": {"cpu": 1, "memory": "1024Mi"}}),
        ),
        (&format!("{container}/env"), json!([{"name": "A", "value": ""}]), json!([{"name": "A"}])),
        (&format!("{container}/env"), json!([]), json!(null)),
        (&format!("{container}/securityContext"), json!({"privileged": false, "capabilities": {}}), json!(null)),
        (
            &format!("{container}/ports"),
            json!([{"containerPort": 80}]),
            json!([{"containerPort": 80, "protocol": "TCP"}]),
        ),
    ];
    for (pointer, one, other) in table {
        let normalised_with = |new: &Value| {
            let mut value = minimal();
            if new.is_null() {
                let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
                set(&mut value, &format!("{parent}/{key}"), json!(null));
            } else {
                set(&mut value, pointer, new.clone());
            }
            normalised(&value).0
        };
        assert_eq!(normalised_with(&one), normalised_with(&other), "{pointer}: {one} and {other}");
    }
}

#[test]
fn what_upstream_only_notices_later_is_a_warning() {
    let trigger =
        json!({"type": "ImageChange", "imageChangeParams": {"from": {"name": "a:b"}, "containerNames": ["web"]}});
    let exec = json!({"command": ["a"], "volumes": ["x"]});
    let table = [
        (
            "/spec/triggers",
            json!([trigger, trigger]),
            "duplicate",
            "spec.triggers[1].imageChangeParams.containerNames[0]",
        ),
        ("/spec/triggers", json!([{"type": "Webhook"}]), "unsupported-value", "spec.triggers[0].type"),
        ("/spec/strategy/recreateParams", json!({"timeoutSeconds": 5}), "leftover", "spec.strategy.recreateParams"),
        (
            "/spec/strategy/rollingParams/pre",
            json!({"failurePolicy": "Abort", "execNewPod": exec}),
            "not-found",
            "spec.strategy.rollingParams.pre.execNewPod.volumes[0]",
        ),
        (
            "/spec/strategy/rollingParams/pre",
            json!({"failurePolicy": "Abort", "execNewPod": {"command": ["a"], "containerName": "x"}}),
            "not-found",
            "spec.strategy.rollingParams.pre.execNewPod.containerName",
        ),
        ("/metadata/namespace", json!("x"), "ignored", "metadata.namespace"),
        (
            "/spec/template/spec/containers/0/ports",
            json!([{"containerPort": 80, "hostPort": 80}]),
            "fixed-port",
            "spec.template.spec.containers[0].ports[0].hostPort",
        ),
        ("/spec/template/spec/contaners", json!([]), "unknown-key", "spec.template.spec.contaners"),
    ];
    for (pointer, new, code, field) in table {
        let mut value = minimal();
        set(&mut value, pointer, new);
        let (_, mut found) = normalised(&value);
        found.retain(|(_, code, _)| code != "not-supported");
        assert_eq!(found, [(Severity::Warning, code.to_owned(), field.to_owned())]);
    }
}

#[test]
fn a_generated_name_is_refused_where_there_is_no_other() {
    let mut value = minimal();
    set(&mut value, "/metadata/generateName", json!("a-"));
    let found = |severity, code: &str| (severity, code.to_owned(), "metadata.generateName".to_owned());
    assert_eq!(normalised(&value).1, [found(Severity::Warning, "ignored")]);
    value["metadata"].as_object_mut().unwrap().remove("name");
    assert!(normalised(&value).1.contains(&found(Severity::Error, "not-supported")));
}

#[test]
fn what_the_file_says_of_an_image_that_a_trigger_brings_does_not_decide_how_it_is_pulled() {
    let names = json!({"from": {"name": "a:b"}, "containerNames": ["web"]});
    let trigger = ("/spec/triggers", json!([{"type": "ImageChange", "imageChangeParams": names}]));
    let policy = |image: &str, trigger: Option<&(&str, serde_json::Value)>| {
        let mut value = minimal();
        set(&mut value, "/spec/template/spec/containers/0/image", json!(image));
        trigger.iter().for_each(|(pointer, new)| set(&mut value, pointer, new.clone()));
        normalised(&value).0["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"].clone()
    };
    for (image, own) in [("acme/hello", "Always"), ("acme/hello:2", "IfNotPresent"), ("acme/hello:latest", "Always")] {
        assert_eq!(policy(image, None), own, "{image}");
        assert_eq!(policy(image, Some(&trigger)), "IfNotPresent", "{image}");
    }
}

#[test]
fn an_image_trigger_may_bring_the_image() {
    let trigger =
        json!([{"type": "ImageChange", "imageChangeParams": {"from": {"name": "a:b"}, "containerNames": ["web"]}}]);
    for (blank, severity, code) in [("", Severity::Error, "required"), (" ", Severity::Warning, "blank")] {
        let image = ("/spec/template/spec/containers/0/image", json!(blank));
        assert_eq!(errors(&[image.clone(), ("/spec/triggers", trigger.clone())]), []);
        let mut value = minimal();
        set(&mut value, image.0, image.1);
        let expected = (severity, code.to_owned(), "spec.template.spec.containers[0].image".to_owned());
        assert_eq!(normalised(&value).1, [expected], "nothing else brings it");
    }
}

proptest::proptest! {
    #[test]
    fn settling_again_changes_nothing(
        surge in proptest::option::of("(0|3|25%|0%)"),
        unavailable in proptest::option::of("(0|1|10%|0%)"),
        strategy in proptest::option::of("(Rolling|Recreate)"),
        version in "(v1|apps\\.openshift\\.io/v1)",
        zero in proptest::bool::ANY,
    ) {
        let mut value = minimal();
        let number = |text: String| text.parse::<i64>().map_or_else(|_| json!(text), |number| json!(number));
        let changes = [
            ("/apiVersion", Some(json!(version))),
            ("/spec/strategy/type", strategy.map(|text| json!(text))),
            ("/spec/strategy/rollingParams/maxSurge", surge.map(number)),
            ("/spec/strategy/rollingParams/maxUnavailable", unavailable.map(number)),
            ("/spec/template/spec/containers/0/readinessProbe", zero.then(|| json!({"tcpSocket": {"port": "http"}, "failureThreshold": 0}))),
            ("/spec/template/spec/hostNetwork", Some(json!(zero))),
        ];
        for (pointer, new) in changes {
            if let Some(new) = new {
                set(&mut value, pointer, new);
            }
        }
        let once = normalised(&value).0;
        let mut again = once.clone();
        again["apiVersion"] = json!(version);
        again["kind"] = json!("DeploymentConfig");
        proptest::prop_assert_eq!(normalised(&again).0, once);
    }
}
