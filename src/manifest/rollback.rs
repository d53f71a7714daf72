//! Requests to go back, as people write them: one a document, several documents or a list of them for several deployment
//! configs. Source of the fields and their defaults: OpenShift's proposal "Deployments", section "Rollbacks".

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::findings::Findings;
use super::problem::{Problem, field_path};
use super::shape::own::ROLLBACK_REQUEST;
use super::shape::{Strictness, check};
use super::yaml;
use crate::error::Failure;
use crate::model::ids::{CommitId, ConfigKey};
use crate::model::object::Location;
use crate::model::rollback::{Rollback, RollbackParts, RollbackTo};

/// The most requests in a file.
pub const MOST_REQUESTS: usize = 1000;
/// The most characters of a request's notes: they stand in the cause of a version, in tables and on commits.
pub const MOST_OF_NOTES: usize = 200;

/// One deployment config is to go back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RollbackRequest {
    /// The name of the deployment config.
    pub id: String,
    /// `DeploymentConfig` or `Deployment`, which mean the same here.
    #[serde(default = "deployment_config")]
    pub kind: String,
    /// To what, and what of it comes back.
    #[serde(default)]
    pub rollback: RollbackSettings,
}

fn deployment_config() -> String {
    "DeploymentConfig".to_owned()
}

/// To what something goes back, and what of it comes back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RollbackSettings {
    /// `<id>-<version>`; the last complete one if absent, but for what serves, unless a later one was attempted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// Whether labels and strategy come back.
    pub config: bool,
    /// Whether the template, the number of pods and the selector come back.
    pub application: bool,
    /// Whether the strategy comes back; as `config` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<bool>,
    /// Why, for people.
    pub notes: String,
}

impl Default for RollbackSettings {
    fn default() -> Self {
        Self { release: None, config: true, application: true, strategy: None, notes: String::new() }
    }
}

impl RollbackRequest {
    /// For one deployment config, with what is asked for.
    pub fn new(id: String, rollback: RollbackSettings) -> Self {
        Self { id, kind: deployment_config(), rollback }
    }

    /// What it means; `revision` is what it goes back to where it names no version.
    ///
    /// # Errors
    /// If it contradicts itself.
    pub fn read(&self, config: ConfigKey, revision: Option<&CommitId>) -> Result<Rollback, Failure> {
        let RollbackSettings { release, config: labels, application, strategy, notes } = &self.rollback;
        let to = match (release, revision) {
            (Some(_), Some(_)) => {
                let both = format!("`{}` names a version and a revision", self.id);
                return Err(Failure::stalled(both).hint("leave out one or the other"));
            }
            (Some(release), None) => RollbackTo::Version(version(&self.id, release)?),
            (None, Some(commit)) => RollbackTo::Revision(commit.clone()),
            (None, None) => RollbackTo::LastComplete,
        };
        let length = notes.chars().count();
        if length > MOST_OF_NOTES {
            return Err(Failure::stalled(format!("notes have at most {MOST_OF_NOTES} characters, not {length}")));
        }
        let strategy = strategy.unwrap_or(*labels);
        let parts = RollbackParts { labels: *labels, strategy, template: *application, replication: *application };
        let notes = notes.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(Rollback { config, to, parts, notes, may_be_absent: false })
    }
}

/// The version that `<id>-<version>` names.
fn version(id: &str, release: &str) -> Result<u32, Failure> {
    let number = release.strip_prefix(id).and_then(|rest| rest.strip_prefix('-'));
    number.and_then(|number| number.parse().ok()).ok_or_else(|| {
        Failure::stalled(format!("`{release}` is no version of `{id}`")).hint(format!("such as `{id}-1`"))
    })
}

/// The requests in a file.
///
/// # Errors
/// What is wrong with it.
pub fn requests(file: &str, bytes: &[u8]) -> Result<Vec<RollbackRequest>, Vec<Problem>> {
    let reading = yaml::read(bytes);
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for error in &reading.errors {
        let yaml::Position { line, column } = error.position;
        let mut problem = Problem::error(&Location { file: file.into(), line, column }, error.code, &*error.message);
        (problem.hint, problem.field) = (error.hint.clone(), field_path(&error.pointer));
        problem.pointer.clone_from(&error.pointer);
        problems.push(problem);
    }
    for document in &reading.documents {
        let parts: Vec<(String, Value)> = match &document.value {
            Value::Array(items) => {
                items.iter().enumerate().map(|(at, item)| (format!("/{at}"), item.clone())).collect()
            }
            value => vec![(String::new(), value.clone())],
        };
        for (base, value) in parts {
            let mut findings = Findings::new(file, document, &base);
            found.extend(request(value, &mut findings));
            problems.append(&mut findings.problems);
        }
    }
    if problems.is_empty() && !(1..=MOST_REQUESTS).contains(&found.len()) {
        let message = format!("this has {} requests, not one to {MOST_REQUESTS}", found.len());
        problems.push(Problem::in_file(file, "required", message));
    }
    if problems.is_empty() { Ok(found) } else { Err(problems) }
}

fn request(mut value: Value, findings: &mut Findings<'_>) -> Option<RollbackRequest> {
    check(&mut value, &ROLLBACK_REQUEST, Strictness::Own, findings);
    if findings.has_errors() {
        return None;
    }
    let request: RollbackRequest = serde_json::from_value(value).ok()?;
    let name = ConfigKey { project: "".into(), stage: "".into(), name: request.id.clone() };
    if let Err(wrong) = request.read(name, None) {
        let field = if request.rollback.notes.chars().count() > MOST_OF_NOTES { "notes" } else { "release" };
        let problem = findings.error(&format!("/rollback/{field}"), "invalid", wrong.to_string());
        problem.hint = wrong.hint_text().map(str::to_owned);
        return None;
    }
    Some(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(text: &str) -> Vec<Rollback> {
        let config = |name: &str| ConfigKey { project: "shop".into(), stage: "dev".into(), name: name.into() };
        let read = requests("back.yaml", text.as_bytes()).expect("requests");
        read.iter().map(|request| request.read(config(&request.id), None).expect("it is meant")).collect()
    }

    #[test]
    fn the_proposals_request_is_read_as_it_stands_there() {
        let text = r#"{
            "id":"hello-deployment-config",
            "kind":"DeploymentConfig",
            "rollback": {
                "release": "hello-deployment-config-1",	#optional, if not set defaults to n-1
                "config":  true, 	#optional, default true
                "application": false, 	#optional, default true
                "notes": "I messed up my app"	#optional, default blank
            }
        }"#;
        let [rollback] = &meant(text)[..] else { unreachable!("one") };
        assert_eq!((&*rollback.config.name, &rollback.to), ("hello-deployment-config", &RollbackTo::Version(1)));
        assert_eq!((rollback.parts, &*rollback.notes), (RollbackParts::CONFIG, "I messed up my app"));
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        let [one, two, three] = &meant(
            "id: web\n---\n- id: api\n  kind: Deployment\n  rollback: {strategy: false}\n- {id: cart, rollback: {config: false}}\n",
        )[..] else {
            unreachable!("three")
        };
        assert_eq!((&one.to, one.parts, &*one.notes), (&RollbackTo::LastComplete, RollbackParts::ALL, ""));
        assert_eq!(two.parts, RollbackParts { strategy: false, ..RollbackParts::ALL });
        assert_eq!(three.parts, RollbackParts::APPLICATION);
    }

    #[test]
    fn what_is_wrong_is_said_where_it_stands() {
        let long = format!("id: web\nrollback:\n  notes: {}\n", "a".repeat(201));
        for (text, expected) in [
            ("kind: DeploymentConfig\n", "back.yaml:1:1: error: id: "),
            ("id: web\nkind: Pod\n", "back.yaml:2:7: error: kind: "),
            ("id: web\nrollback: {relase: web-1}\n", "back.yaml:2:12: error: rollback.relase: "),
            ("id: web\nrollback: {config: 1}\n", "back.yaml:2:20: error: rollback.config: "),
            (
                "id: web\nrollback:\n  release: api-1\n",
                "back.yaml:3:12: error: rollback.release: `api-1` is no version of `web` (such as `web-1`)",
            ),
            (&long, "back.yaml:3:10: error: rollback.notes: notes have at most 200 characters, not 201"),
            ("id: [\n", "back.yaml:"),
            ("", "back.yaml:1:1: error: this has 0 requests, not one to 1000"),
        ] {
            let problems = requests("back.yaml", text.as_bytes()).expect_err("it is wrong");
            assert!(problems[0].to_string().starts_with(expected), "{text}: {problems:?}");
        }
    }
}
