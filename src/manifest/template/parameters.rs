//! Which value each parameter of a template has in a stage.

use serde_json::Value;

use super::expression;
use super::substitute::{Values, is_name};
use crate::manifest::findings::Findings;
use crate::manifest::pod_template::{items, text_at};
use crate::manifest::stage_context::StageContext;

/// The values in a stage, and those among them that were made up and are not to be shown.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    pub(super) values: Values,
    pub(super) generated: Vec<String>,
}

/// Resolves all parameters of a template that has a name of its own: what the stage says, else the template's value, else a
/// generated one, else nothing. A required one without a value is an error.
pub(super) fn resolve(template: &Value, name: &str, context: &StageContext, findings: &mut Findings<'_>) -> Resolved {
    let mut resolved = Resolved::default();
    for (index, parameter) in items(template, "/parameters") {
        let at = format!("/parameters/{index}");
        let key = text_at(parameter, "/name");
        if key.is_empty() {
            continue;
        }
        if !is_name(key) {
            let message = format!("`{key}` must be letters, digits and `_`");
            findings.error(&format!("{at}/name"), "invalid", message);
            continue;
        }
        let given = context.parameters.get(key).map_or("", String::as_str);
        let value = match (given, text_at(parameter, "/value")) {
            ("", "") => {
                let value = generated(
                    parameter,
                    &at,
                    [context.project.as_str(), context.stage.as_str(), name, key],
                    context,
                    findings,
                );
                resolved.generated.extend(value.clone());
                value.unwrap_or_default()
            }
            ("", own) => own.to_owned(),
            (given, _) => given.to_owned(),
        };
        if value.is_empty() && parameter.get("required") == Some(&Value::Bool(true)) {
            let message =
                format!("the parameter `{key}` is required, and has no value in the stage `{}`", context.stage);
            findings.error(&at, "required", message).hint =
                Some(format!("set `spec.stages.{}.parameters.{key}` in launchway.yaml", context.stage));
        }
        resolved.values.insert(key.to_owned(), value);
    }
    resolved
}

fn generated(
    parameter: &Value,
    at: &str,
    purpose: [&str; 4],
    context: &StageContext,
    findings: &mut Findings<'_>,
) -> Option<String> {
    match text_at(parameter, "/generate") {
        "" => None,
        "expression" => match expression::generate(text_at(parameter, "/from"), &purpose, &context.seed) {
            Ok(value) => Some(value).filter(|value| !value.is_empty()),
            Err(wrong) => {
                findings.error(&format!("{at}/from"), "invalid", wrong);
                None
            }
        },
        other => {
            let message = format!("`{other}` is not supported");
            findings.error(&format!("{at}/generate"), "unsupported-value", message).hint =
                Some("write `expression`".to_owned());
            None
        }
    }
}
