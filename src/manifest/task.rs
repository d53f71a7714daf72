//! `Task` objects: how a shipyard task runs.

use std::time::Duration;

use serde_json::Value;

use super::findings::Findings;
use super::pod_template::defaults::{apply_to_variable, objects};
use super::pod_template::validate::variables;
use super::pod_template::{items, text_at};
use super::shape::{self, Strictness, check};
use super::{metadata, names};
use crate::model::duration;
use crate::model::ids::{ServiceName, StageName};
use crate::model::pod::EnvVar;
use crate::model::project::TaskDefinition;

/// Checks a `Task` and reads it; its image is not resolved yet.
pub(crate) fn normalise(value: &mut Value, findings: &mut Findings<'_>) -> Option<TaskDefinition> {
    check(value, &shape::own::TASK, Strictness::Own, findings);
    // Keptn itself has no rule for task names, but a dot would break the names of their events.
    metadata::normalise(value, names::label, findings);
    for variable in objects(value.pointer_mut("/spec/env")) {
        apply_to_variable(variable);
    }
    let spec = value.get("spec").filter(|spec| spec.is_object())?;
    variables(spec, "/spec", names::variable, findings);
    let timeout_seconds = timeout_seconds(spec, findings);
    if text_at(spec, "/image") == "host" && items(spec, "/command").next().is_none() {
        findings.error("/spec/command", "required", "this is required: the image `host` has nothing of its own to run");
    }
    for (index, service) in items(spec, "/services") {
        let name = service.as_str().unwrap_or_default();
        if let Err(wrong) = names::config(name) {
            let message = format!("`{name}` is no name of a service: it {wrong}");
            findings.error(&format!("/spec/services/{index}"), "invalid", message);
        }
    }
    if findings.has_errors() {
        return None;
    }
    Some(TaskDefinition {
        command: texts(spec, "/command").collect(),
        image: text_at(spec, "/image").to_owned(),
        env: environment(spec, findings)?,
        timeout_seconds,
        retries: spec.get("retries").and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok()).unwrap_or(0),
        stages: texts(spec, "/stages").map(StageName::new).collect(),
        services: texts(spec, "/services").map(ServiceName::new).collect(),
        properties: spec.get("properties").and_then(Value::as_object).cloned().unwrap_or_default(),
        location: findings.location(""),
    })
}

fn timeout_seconds(spec: &Value, findings: &mut Findings<'_>) -> Option<u64> {
    let text = text_at(spec, "/timeout");
    if text.is_empty() {
        return None;
    }
    match duration::parse(text) {
        Some(timeout) if timeout >= Duration::from_secs(1) => Some(timeout.as_secs()),
        _ => {
            let message = format!("`{text}` is not a duration of a second or more");
            findings.error("/spec/timeout", "invalid", message).hint = Some("such as 90s, 10m or 1h30m".to_owned());
            None
        }
    }
}

fn environment(spec: &Value, findings: &mut Findings<'_>) -> Option<Vec<EnvVar>> {
    let list = spec.get("env").cloned().unwrap_or_else(|| Value::Array(Vec::new()));
    serde_json::from_value(list)
        .map_err(|error| findings.error("/spec/env", "invalid", format!("cannot be used: {error}")).severity)
        .ok()
}

fn texts<'a>(spec: &'a Value, pointer: &'a str) -> impl Iterator<Item = String> + 'a {
    items(spec, pointer).filter_map(|(_, item)| item.as_str().map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::yaml;

    fn normalised(spec: &str) -> (Option<TaskDefinition>, Vec<String>) {
        let text = format!("{{apiVersion: launchway.dev/v1, kind: Task, metadata: {{name: test}}, spec: {spec}}}");
        let reading = yaml::read(text.as_bytes());
        assert_eq!(reading.errors, [], "{text}");
        let document = &reading.documents[0];
        let mut findings = Findings::new("a.yaml", document, "");
        let task = normalise(&mut document.value.clone(), &mut findings);
        let found = findings.problems.iter().map(|problem| format!("{}: {}", problem.field, problem.code));
        (task, found.collect())
    }

    #[test]
    fn a_task_has_defaults() {
        let (task, problems) = normalised("{image: 'git:tests'}");
        assert_eq!(problems, [] as [&str; 0]);
        let task = task.expect("it has no errors");
        assert_eq!((task.timeout_seconds, task.retries, task.command.len()), (None, 0, 0));
    }

    #[test]
    fn everything_that_a_task_says_is_read() {
        let (task, _) = normalised(
            "{image: host, command: [sh, -c, 'true'], timeout: 1h30m, retries: 2, env: [{name: A, value: b}], \
             stages: [dev], services: [web, api], properties: {teststrategy: performance, hours: 2}}",
        );
        let task = task.expect("it has no errors");
        assert_eq!(task.command, ["sh", "-c", "true"]);
        assert_eq!((task.timeout_seconds, task.retries), (Some(5400), 2));
        assert_eq!(task.env[0].value.as_deref(), Some("b"));
        assert_eq!((task.stages.len(), task.services.len()), (1, 2));
        assert_eq!(Value::Object(task.properties), serde_json::json!({"teststrategy": "performance", "hours": 2}));
    }

    #[test]
    fn a_task_that_cannot_run_is_refused() {
        let table: [(&str, &[&str]); 9] = [
            ("{}", &["spec.image: required"]),
            ("{image: host}", &["spec.command: required"]),
            ("{image: 'git:a', timeout: soon}", &["spec.timeout: invalid"]),
            ("{image: 'git:a', timeout: 10ms}", &["spec.timeout: invalid"]),
            ("{image: 'git:a', retries: -1}", &["spec.retries: invalid"]),
            ("{image: 'git:a', properties: performance}", &["spec.properties: type"]),
            ("{image: 'git:a', services: [web, A B]}", &["spec.services[1]: invalid"]),
            ("{image: 'git:a', comand: [a]}", &["spec.comand: unknown-key"]),
            ("{image: 'git:a', env: [{name: 'a=b'}]}", &["spec.env[0].name: invalid"]),
        ];
        for (spec, expected) in table {
            let (task, problems) = normalised(spec);
            assert!(task.is_none(), "{spec}");
            assert_eq!(problems, expected, "{spec}");
        }
    }
}
