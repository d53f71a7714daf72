use serde_json::json;

use super::*;

fn normalise_service(value: &mut Value, findings: &mut Findings<'_>) {
    super::normalise_service(value, Runtime::Local, findings);
}

fn normalise_claim(value: &mut Value, findings: &mut Findings<'_>) {
    super::normalise_claim(value, Runtime::Local, findings);
}
use crate::manifest::yaml;

type Normalise = fn(&mut Value, &mut Findings<'_>);

fn normalised(normalise: Normalise, text: &str) -> (Value, Vec<String>) {
    let reading = yaml::read(text.as_bytes());
    assert_eq!(reading.errors, [], "{text}");
    let document = &reading.documents[0];
    let mut findings = Findings::new("a.yaml", document, "");
    let mut value = document.value.clone();
    normalise(&mut value, &mut findings);
    let found = findings.problems.iter().filter(|problem| problem.is_error());
    (value, found.map(|problem| format!("{}: {}", problem.field, problem.code)).collect())
}

#[test]
fn objects_get_upstreams_defaults() {
    let table: [(Normalise, &str, Value); 6] = [
        (
            normalise_service,
            "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80, nodePort: 0}], clusterIP: '', selector: {a: b}}}",
            json!({"metadata": {"name": "a"}, "spec": {"type": "ClusterIP", "sessionAffinity": "None", "selector": {"a": "b"}, "ports": [{"port": 80, "targetPort": 80, "protocol": "TCP"}]}}),
        ),
        (
            normalise_service,
            "{metadata: {name: a}, spec: {type: ExternalName, externalName: db.example}}",
            json!({"metadata": {"name": "a"}, "spec": {"type": "ExternalName", "sessionAffinity": "None", "externalName": "db.example"}}),
        ),
        (
            normalise_endpoints,
            "{metadata: {name: a}, subsets: [{addresses: [{ip: 10.0.0.1}], ports: [{port: 5432}]}]}",
            json!({"metadata": {"name": "a"}, "subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 5432, "protocol": "TCP"}]}]}),
        ),
        (
            normalise_config_map,
            "{metadata: {name: a}, data: {k: v, empty: }, binaryData: {b: 'AAEC\n'}}",
            json!({"metadata": {"name": "a"}, "data": {"k": "v", "empty": ""}, "binaryData": {"b": "AAEC"}}),
        ),
        (
            normalise_secret,
            "{metadata: {name: a}, data: {k: b2xk, j: eA==}, stringData: {k: new}}",
            json!({"metadata": {"name": "a"}, "type": "Opaque", "data": {"k": "bmV3", "j": "eA=="}}),
        ),
        (
            normalise_claim,
            "{metadata: {name: a}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1024Mi}}}}",
            json!({"metadata": {"name": "a"}, "spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem", "resources": {"requests": {"storage": "1Gi"}}}}),
        ),
    ];
    for (normalise, text, expected) in table {
        let (value, problems) = normalised(normalise, text);
        assert_eq!(problems, [] as [&str; 0], "{text}");
        assert_eq!(value, expected, "{text}");
    }
}

#[test]
fn settling_again_changes_nothing() {
    let table: [(Normalise, &str); 3] = [
        (normalise_service, "{metadata: {name: a}, spec: {ports: [{port: 80}]}}"),
        (normalise_secret, "{metadata: {name: a}, stringData: {k: new}}"),
        (
            normalise_claim,
            "{metadata: {name: a}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1}}}}",
        ),
    ];
    for (normalise, text) in table {
        let (once, _) = normalised(normalise, text);
        assert_eq!(normalised(normalise, &once.to_string()).0, once, "{text}");
    }
}

#[test]
fn what_upstream_refuses_is_refused() {
    let table: [(Normalise, &str, &[&str]); 18] = [
        (normalise_service, "{metadata: {name: a.b}, spec: {ports: [{port: 80}]}}", &["metadata.name: invalid"]),
        (normalise_service, "{metadata: {name: a}}", &["spec: required"]),
        (normalise_service, "{metadata: {name: a}, spec: {selector: {a: b}}}", &["spec.ports: required"]),
        (normalise_service, "{metadata: {name: a}, spec: {clusterIP: None}}", &[]),
        (normalise_service, "{metadata: {name: a}, spec: {type: ExternalName}}", &["spec.externalName: required"]),
        (
            normalise_service,
            "{metadata: {name: a}, spec: {type: External, ports: [{port: 1}]}}",
            &["spec.type: unsupported-value"],
        ),
        (
            normalise_service,
            "{metadata: {name: a}, spec: {ports: [{port: 80}, {port: 81, name: b}]}}",
            &["spec.ports[0].name: required"],
        ),
        (
            normalise_service,
            "{metadata: {name: a}, spec: {ports: [{port: 80, name: b}, {port: 81, name: b}]}}",
            &["spec.ports[1].name: duplicate"],
        ),
        (
            normalise_service,
            "{metadata: {name: a}, spec: {ports: [{port: 80, name: b}, {port: 80, name: c}]}}",
            &["spec.ports[1].port: duplicate"],
        ),
        (
            normalise_service,
            "{metadata: {name: a}, spec: {ports: [{port: 0, targetPort: 1}]}}",
            &["spec.ports[0].port: invalid"],
        ),
        (
            normalise_service,
            "{metadata: {name: a}, spec: {ports: [{port: 1, targetPort: 70000}]}}",
            &["spec.ports[0].targetPort: invalid"],
        ),
        (
            normalise_service,
            "{metadata: {name: a}, spec: {selector: {a: yes}, ports: [{port: 1}]}}",
            &["spec.selector.a: type"],
        ),
        (
            normalise_endpoints,
            "{metadata: {name: a}, subsets: [{addresses: [{ip: db}]}]}",
            &["subsets[0].addresses[0].ip: invalid"],
        ),
        (
            normalise_config_map,
            "{metadata: {name: a}, data: {a/b: x, port: 80}}",
            &["data.port: type", "data.a/b: invalid"],
        ),
        (
            normalise_config_map,
            "{metadata: {name: a}, data: {a: x}, binaryData: {a: eA==}}",
            &["binaryData.a: duplicate"],
        ),
        (normalise_secret, "{metadata: {name: a}, data: {a: not base64!}}", &["data.a: invalid"]),
        (
            normalise_claim,
            "{metadata: {name: a}, spec: {accessModes: [Often], resources: {requests: {cpu: 1}}}}",
            &["spec.accessModes[0]: unsupported-value", "spec.resources.requests.storage: required"],
        ),
        (
            normalise_claim,
            "{metadata: {name: a}, spec: {}}",
            &["spec.accessModes: required", "spec.resources: required"],
        ),
    ];
    for (normalise, text, expected) in table {
        assert_eq!(normalised(normalise, text).1, expected, "{text}");
    }
}

#[test]
fn no_message_shows_a_secret() {
    let text = "{metadata: {name: a}, data: {a: hunter2!, b: 4711, c: yes}, stringData: {d: 8.5}}";
    let reading = yaml::read(text.as_bytes());
    let document = &reading.documents[0];
    let mut findings = Findings::new("a.yaml", document, "");
    normalise_secret(&mut document.value.clone(), &mut findings);
    let codes: Vec<&str> = findings.problems.iter().map(|problem| &*problem.code).collect();
    assert_eq!(codes, ["type", "type", "type", "invalid"]);
    for problem in findings.problems {
        let text = format!("{problem:?}");
        assert!(["hunter2", "4711", "yes", "8.5"].iter().all(|secret| !text.contains(secret)), "{text}");
    }
}

#[test]
fn what_of_a_secret_is_not_masked_is_said_once() {
    let text = "metadata: {name: a}\ndata:\n  url: cG9zdGdyZXM6Ly9kYi9zaG9w\n  user: c2hvcA==\nstringData:\n  host: db.example.org\n  word: hunter2\n";
    let reading = yaml::read(text.as_bytes());
    let document = &reading.documents[0];
    let mut findings = Findings::new("a.yaml", document, "");
    normalise_secret(&mut document.value.clone(), &mut findings);
    let said: Vec<String> = findings.problems.iter().map(ToString::to_string).collect();
    let expected = "a.yaml:4:3: warning: data.user: the value of `user` (too short), `host` (too common) is not masked in \
                    what pods print (other output would hold it by chance; what is no secret can be in a ConfigMap)";
    assert_eq!(said, [expected]);
}
