use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::manifest::object::{Declarations, Source};
use crate::manifest::stage_context::{Runtime, Terms};
use crate::manifest::yaml;
use crate::model::seed::Seed;

fn context(stage: &str, parameters: &[(&str, &str)]) -> StageContext {
    let parameters: BTreeMap<_, _> =
        parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let (project, terms) = ("shop".into(), Terms { runtime: Runtime::Kubernetes, ..Terms::default() });
    StageContext { project, stage: stage.into(), terms, parameters, seed: Seed::new([7; 32]) }
}

fn declared_for(text: &str, context: &StageContext) -> Declarations {
    let reading = yaml::read(text.as_bytes());
    assert_eq!(reading.errors, [], "{text}");
    let mut declarations = Declarations::default();
    for document in &reading.documents {
        declarations.add(&Source::new("app.yaml", document, context, None));
    }
    declarations
}

fn declared(text: &str, parameters: &[(&str, &str)]) -> Declarations {
    declared_for(text, &context("dev", parameters))
}

fn told(declarations: &Declarations) -> Vec<String> {
    declarations.problems.iter().map(ToString::to_string).collect()
}

/// A template of one config map.
fn template(parameters: &str, map: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Template, metadata: {{name: app}}, parameters: {parameters},\n\
         labels: {{app: '${{NAME}}', tier: x}}, objects: [\n{map}]}}"
    )
}

const NAME: &str = "[{name: NAME, value: web}]";

#[test]
fn objects_are_declared_with_the_values_of_the_stage() {
    let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: '${NAME}', namespace: fixed, \
               labels: {tier: own, '${NAME}': y}}, data: {'${NAME}.conf': 'a ${NAME} ${UNKNOWN} $(X)'}}";
    for (parameters, name) in
        [(&[][..], "web"), (&[("NAME", "front"), ("OTHER", "1")], "front"), (&[("NAME", "")], "web")]
    {
        let declared = declared(&template(NAME, map), parameters);
        assert_eq!(told(&declared), [] as [&str; 0], "{parameters:?}");
        assert_eq!(declared.objects[0].key.to_string(), format!("ConfigMap/{name}"));
        let expected = json!({
            "metadata": {"name": name, "labels": {"app": name, "tier": "x", name: "y"}},
            "data": {format!("{name}.conf"): format!("a {name} ${{UNKNOWN}} $(X)")},
        });
        assert_eq!(declared.contents[0], expected);
    }
}

#[test]
fn numbers_flags_and_structures_stand_in_place_of_whole_texts() {
    let config = "{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, metadata: {name: web}, spec: {\
                  replicas: '${{REPLICAS}}', test: '${{TEST}}', triggers: '${{TRIGGERS}}', \
                  template: {metadata: {labels: {a: b}}, spec: {containers: [\
                  {name: web, image: 'shop/web:${TAG}', env: [{name: N, value: '${REPLICAS}'}]}]}}}}";
    let parameters = "[{name: REPLICAS, value: '3'}, {name: TEST, value: 'true'}, {name: TRIGGERS, value: '[]'}, {name: TAG, value: v1}]";
    let declared = declared(&template(parameters, config), &[]);
    assert_eq!(told(&declared), [] as [&str; 0]);
    let at = |pointer: &str| declared.contents[0].pointer(pointer).cloned().unwrap_or_default();
    assert_eq!([at("/spec/replicas"), at("/spec/test"), at("/spec/triggers")], [json!(3), json!(true), json!([])],);
    assert_eq!(at("/spec/template/spec/containers/0/image"), json!("shop/web:v1"));
    assert_eq!(at("/spec/template/spec/containers/0/env/0/value"), json!("3"));
    assert_eq!(at("/spec/template/metadata/labels"), json!({"a": "b"}), "labels are the objects' own");
    assert_eq!(at("/metadata/labels"), json!({"app": "${NAME}", "tier": "x"}), "an unknown one stays");
}

#[test]
fn what_is_wrong_is_told_at_its_place_in_the_template() {
    let map = |more: &str| format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: '${{NAME}}'}}{more}}}");
    let table = [
        (
            "[{name: NAME, required: true}]",
            map(""),
            vec![
                "1:70: error: parameters[0]: the parameter `NAME` is required, and has no value in the stage `dev` (set `spec.stages.dev.parameters.NAME` in launchway.yaml)",
            ],
        ),
        (
            "[{name: NAME, required: true}, {name: X, required: true}, {name: Y}]",
            map(""),
            vec!["1:70: error: parameters[0]: the parameter `NAME`", "1:100: error: parameters[1]: the parameter `X`"],
        ),
        (
            "[{name: A-B, value: x}]",
            map(""),
            vec!["1:77: error: parameters[0].name: `A-B` must be letters, digits and `_`"],
        ),
        ("[{value: x}]", map(""), vec!["1:70: error: parameters[0].name: this is required"]),
        ("[{name: X, value: 5}]", map(""), vec!["1:87: error: parameters[0].value: must be text"]),
        ("[{name: X, generate: uuid}]", map(""), vec!["1:90: error: parameters[0].generate: `uuid` is not supported"]),
        (
            "[{name: X, generate: expression, from: '[z-a]{3}'}]",
            map(""),
            vec!["1:108: error: parameters[0].from: `z-a` is no range"],
        ),
        ("[{name: NAME, value: -x}]", map(""), vec!["3:52: error: metadata.name: `-x` must be"]),
        (NAME, map(", data: {'${NAME}/b': c}"), vec!["3:71: error: data.web/b: the key `web/b` must be"]),
        (NAME, map(", dat: {}"), vec!["3:64: warning: dat: the key `dat` is not known"]),
        ("[{name: NAME}]", map(""), vec!["3:52: error: metadata.name: this is required"]),
    ];
    for (parameters, map, expected) in table {
        let found = told(&declared(&template(parameters, &map), &[]));
        assert_eq!(found.len(), expected.len(), "{parameters}: {found:#?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(&format!("app.yaml:{expected}")), "{found}\n{expected}");
        }
    }
}

#[test]
fn pointers_are_those_of_the_document() {
    let list = format!(
        "{{apiVersion: v1, kind: List, items: [{}]}}",
        template(
            NAME,
            "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {'${NAME}': 1}}]}"
        )
    );
    let declared = declared(&list, &[]);
    let pointers: Vec<_> = declared.problems.iter().map(|problem| problem.pointer.as_str()).collect();
    assert_eq!(pointers, ["/items/0/objects/0/items/0/data/${NAME}"]);
    assert_eq!(declared.problems[0].field, "data.web");
}

#[test]
fn a_generated_value_is_made_once_a_stage_and_not_shown() {
    let parameters = "[{name: PASSWORD, generate: expression, from: '[a-zA-Z0-9]{16}'}]";
    let map = |name: &str| {
        format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {{url: 'db://u:${{PASSWORD}}@db', plain: x}}}}"
        )
    };
    let value = |text: &str, context: &StageContext| {
        let declared = declared_for(text, context);
        assert_eq!(told(&declared), [] as [&str; 0]);
        let content = &declared.contents[0];
        assert_eq!(content["metadata"]["annotations"], json!({GENERATED: "/data/url"}), "it is noted where it is");
        content["data"]["url"].as_str().expect("text").to_owned()
    };
    let (dev, live) = (context("dev", &[]), context("live", &[]));
    let one = value(&template(parameters, &map("a")), &dev);
    assert_eq!(one.len(), "db://u:@db".len() + 16);
    assert_eq!(value(&template(parameters, &map("b")), &dev), one);
    assert_ne!(value(&template(parameters, &map("a")), &live), one);
    let given = declared(&template(parameters, &map("a")), &[("PASSWORD", "mine")]);
    assert_eq!(given.contents[0]["data"]["url"], json!("db://u:mine@db"));
    assert_eq!(given.contents[0]["metadata"].get("annotations"), None);
    let wrong = told(&declared(
        &template(parameters, "{apiVersion: v1, kind: ConfigMap, metadata: {name: '-${PASSWORD}'}}"),
        &[],
    ));
    assert!(wrong[0].contains("`-(generated)` must be"), "{wrong:?}");
}

#[test]
fn a_template_inside_a_template_is_not_expanded() {
    let inner = "{apiVersion: v1, kind: Template, metadata: {name: inner}, objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}";
    let declared = declared(&template(NAME, inner), &[]);
    assert_eq!(told(&declared), [] as [&str; 0]);
    assert_eq!(declared.objects.iter().map(|object| object.key.to_string()).collect::<Vec<_>>(), ["Template/inner"]);
}

#[test]
fn what_values_add_is_bounded() {
    let long = "x".repeat(1 << 20);
    let many = vec!["'${NAME}'"; 40].join(", ");
    let map = format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}, x: [{many}]}}");
    let found = told(&declared(&template("[{name: NAME}]", &map), &[("NAME", &long)]));
    assert!(found.len() == 1 && found[0].contains("more than 32 MiB"), "{found:?}");
}

/// Written after the kinds of files that people have published for OpenShift; each is accepted there.
#[test]
fn files_as_people_have_them_are_accepted() {
    let old_json = "{\n\t\"kind\": \"Template\",\n\t\"apiVersion\": \"v1\",\n\t\"metadata\": {\"name\": \"db\", \"annotations\": {\"tags\": \"db,x\"}, \"creationTimestamp\": null},\n\
        \t\"labels\": {\"template\": \"db\"},\n\t\"objects\": [\n\
        \t\t{\"kind\": \"Secret\", \"apiVersion\": \"v1\", \"metadata\": {\"name\": \"${NAME}\"}, \"stringData\": {\"user\": \"${USER}\", \"password\": \"${PASSWORD}\"}},\n\
        \t\t{\"kind\": \"Service\", \"apiVersion\": \"v1\", \"metadata\": {\"name\": \"${NAME}\", \"creationTimestamp\": null}, \"spec\": {\"ports\": [{\"name\": \"db\", \"port\": 5432, \"nodePort\": 0}], \"selector\": {\"name\": \"${NAME}\"}, \"portalIP\": \"\", \"sessionAffinity\": \"None\"}, \"status\": {\"loadBalancer\": {}}},\n\
        \t\t{\"kind\": \"DeploymentConfig\", \"apiVersion\": \"v1\", \"metadata\": {\"name\": \"${NAME}\"}, \"spec\": {\"strategy\": {\"type\": \"Recreate\", \"resources\": {}}, \"replicas\": 1, \"selector\": {\"name\": \"${NAME}\"},\n\
        \t\t\t\"triggers\": [{\"type\": \"ImageChange\", \"imageChangeParams\": {\"automatic\": true, \"containerNames\": [\"db\"], \"from\": {\"kind\": \"ImageStreamTag\", \"name\": \"db:${VERSION}\", \"namespace\": \"${NAMESPACE}\"}, \"lastTriggeredImage\": \"\"}}, {\"type\": \"ConfigChange\"}],\n\
        \t\t\t\"template\": {\"metadata\": {\"labels\": {\"name\": \"${NAME}\"}}, \"spec\": {\"containers\": [{\"name\": \"db\", \"image\": \" \", \"capabilities\": {}, \"securityContext\": {\"capabilities\": {}, \"privileged\": false},\n\
        \t\t\t\t\"resources\": {\"limits\": {\"memory\": \"${MEMORY}\"}}, \"env\": [{\"name\": \"P\", \"valueFrom\": {\"secretKeyRef\": {\"name\": \"${NAME}\", \"key\": \"password\"}}}], \"terminationMessagePath\": \"/dev/termination-log\"}],\n\
        \t\t\t\t\"volumes\": [{\"name\": \"d\", \"downwardAPI\": {\"items\": []}}], \"restartPolicy\": \"Always\", \"dnsPolicy\": \"ClusterFirst\"}}}, \"status\": {}}],\n\
        \t\"parameters\": [{\"name\": \"NAME\", \"displayName\": \"Name\", \"value\": \"db\", \"required\": true}, {\"name\": \"NAMESPACE\"}, {\"name\": \"MEMORY\", \"value\": \"512Mi\"}, {\"name\": \"VERSION\", \"value\": \"9.5\"},\n\
        \t\t{\"name\": \"USER\", \"generate\": \"expression\", \"from\": \"user[A-Z0-9]{3}\", \"required\": true}, {\"name\": \"PASSWORD\", \"generate\": \"expression\", \"from\": \"[a-zA-Z0-9]{16}\"}]\n}\n";
    let application = "apiVersion: template.openshift.io/v1\nkind: Template\nmetadata: {name: shop}\nparameters:\n\
        - {name: APP, value: shop}\n- {name: REPLICAS, value: '2'}\n- {name: HOST}\n- {name: PORT, value: '8080'}\nobjects:\n\
        - apiVersion: image.openshift.io/v1\n  kind: ImageStream\n  metadata: {name: '${APP}'}\n\
        - apiVersion: route.openshift.io/v1\n  kind: Route\n  metadata: {name: '${APP}'}\n  spec: {host: '${HOST}', to: {kind: Service, name: '${APP}'}}\n\
        - apiVersion: v1\n  kind: Service\n  metadata: {name: '${APP}', annotations: {description: x}}\n  spec: {ports: [{name: web, port: '${{PORT}}', targetPort: '${{PORT}}'}], selector: {name: '${APP}'}}\n\
        - apiVersion: apps.openshift.io/v1\n  kind: DeploymentConfig\n  metadata: {name: '${APP}'}\n  spec:\n    replicas: '${{REPLICAS}}'\n    triggers:\n    strategy:\n      type: Recreate\n      recreateParams:\n\
        \x20       mid: {failurePolicy: Abort, execNewPod: {containerName: '${APP}', command: [./migrate], env: []}}\n        post: {failurePolicy: Ignore, tagImages: [{containerName: '${APP}', to: {kind: ImageStreamTag, name: 'shop:live'}}]}\n\
        \x20   template:\n      metadata: {labels: {name: '${APP}'}}\n      spec:\n        containers:\n        - {name: '${APP}', image: 'registry.example/shop:1', ports: [{containerPort: '${{PORT}}'}], livenessProbe: {tcpSocket: {port: '${{PORT}}'}, timeoutSeconds: 3}}\n";
    for (text, kinds) in [
        (old_json.to_owned(), "Secret Service DeploymentConfig"),
        (application.to_owned(), "ImageStream Route Service DeploymentConfig"),
        (format!("---\n{application}---\n"), "ImageStream Route Service DeploymentConfig"),
    ] {
        let declared = declared(&text, &[]);
        let errors: Vec<_> = declared.problems.iter().filter(|problem| problem.is_error()).collect();
        assert!(errors.is_empty(), "{errors:#?}");
        let found: Vec<_> = declared.objects.iter().map(|object| object.key.kind.name()).collect();
        assert_eq!(found.join(" "), kinds);
    }
}
