//! `launchway.yaml`: what it may say, and what it means.

use std::collections::BTreeMap;

use serde_json::Value;

use super::findings::Findings;
use super::globs::Globs;
use super::image::folder;
use super::pod_template::text_at;
use super::shape::own::PROJECT;
use super::shape::{Strictness, check};
use super::stage_context::Runtime;
use super::{metadata, names, previews};
use crate::model::environment::EnvironmentSettings;
use crate::model::object::Location;
use crate::model::project::{OnFailure, StatusDetail};

/// Where the project file is.
pub const PROJECT_FILE: &str = "launchway.yaml";
/// Where the shipyard is unless the project says otherwise.
pub const SHIPYARD_FILE: &str = "shipyard.yaml";

/// What `launchway.yaml` says; without the file, its defaults.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    pub(crate) name: Option<String>,
    pub(crate) stages: BTreeMap<String, StageSettings>,
    /// Only these files, if set.
    pub(crate) include: Option<Globs>,
    pub(crate) exclude: Globs,
    /// From the root; with the place where it is said.
    pub(crate) shipyard: Option<(String, Location)>,
    pub(crate) statuses: StatusDetail,
    pub(crate) on_failure: OnFailure,
    /// With the place where the stage is said.
    pub(crate) previews: Option<(EnvironmentSettings, Location)>,
    pub(crate) strict: bool,
}

/// What it says about a stage, each with its place.
#[derive(Debug)]
pub(crate) struct StageSettings {
    pub(crate) location: Location,
    /// Normalised; empty for the whole tree.
    pub(crate) path: Option<(String, Location)>,
    pub(crate) namespace: Option<(String, Location)>,
    pub(crate) delivery: Option<(String, Location)>,
    pub(crate) prune: bool,
    pub(crate) runtime: Runtime,
    /// Values for the parameters of templates, as they are written.
    pub(crate) parameters: BTreeMap<String, String>,
}

/// Reads a `Project` document.
pub(crate) fn read(value: &Value, findings: &mut Findings<'_>) -> Settings {
    let mut value = value.clone();
    check(&mut value, &PROJECT, Strictness::Own, findings);
    metadata::normalise(&mut value, names::entity, findings);
    let stages = value.pointer("/spec/stages").and_then(Value::as_object).into_iter().flatten();
    Settings {
        name: Some(text_at(&value, "/metadata/name").to_owned()).filter(|name| !name.is_empty()),
        stages: stages.map(|(name, stage)| (name.clone(), self::stage(name, stage, findings))).collect(),
        include: value.pointer("/spec/include").map(|_| Globs::read(&value, "/spec/include", findings)),
        exclude: Globs::read(&value, "/spec/exclude", findings),
        shipyard: path(&value, "/spec/shipyard", "/spec/shipyard", findings),
        statuses: statuses(text_at(&value, "/spec/statuses")),
        on_failure: on_failure(text_at(&value, "/spec/rollback/onFailure")),
        previews: previews::read(&value, findings),
        strict: value.pointer("/spec/strict") == Some(&Value::Bool(true)),
    }
}

fn statuses(word: &str) -> StatusDetail {
    match word {
        "hooks" => StatusDetail::Hooks,
        "services" => StatusDetail::Services,
        "stages" => StatusDetail::Stages,
        _ => StatusDetail::Auto,
    }
}

fn on_failure(word: &str) -> OnFailure {
    match word {
        "pull-request" => OnFailure::PullRequest,
        "automatic-and-pull-request" => OnFailure::AutomaticAndPullRequest,
        "none" => OnFailure::None,
        _ => OnFailure::Automatic,
    }
}

fn stage(name: &str, stage: &Value, findings: &mut Findings<'_>) -> StageSettings {
    let mut at = "/spec/stages".to_owned();
    super::yaml::push_segment(&mut at, name);
    for key in ["windows", "approval", "signers"] {
        if stage.get(key).is_some() {
            let message = format!("`{key}` is not supported yet");
            findings.error_at_key(&format!("{at}/{key}"), "not-supported", message).hint =
                Some("remove it: a rule that nobody enforces would be worse than none".to_owned());
        }
    }
    let runtime = match text_at(stage, "/runtime") {
        "kubernetes" => Runtime::Kubernetes,
        _ => Runtime::Local,
    };
    if runtime == Runtime::Kubernetes {
        let message = "nothing can be deployed to Kubernetes yet: what is declared there is checked and planned";
        findings.warning(&format!("{at}/runtime"), "not-supported", message);
    }
    let namespace = text_with_place(stage, "namespace", &at, findings);
    if let Some((namespace, _)) = &namespace
        && let Err(wrong) = names::label(namespace)
    {
        findings.error(&format!("{at}/namespace"), "invalid", format!("`{namespace}` {wrong}"));
    }
    StageSettings {
        location: findings.key_location(&at),
        path: path(stage, "/path", &format!("{at}/path"), findings),
        namespace,
        delivery: text_with_place(stage, "delivery", &at, findings),
        prune: stage.get("prune") != Some(&Value::Bool(false)),
        runtime,
        parameters: parameters(stage, &format!("{at}/parameters"), findings),
    }
}

/// The values of parameters as text: numbers and the like as they are written, lists and mappings as JSON.
fn parameters(stage: &Value, at: &str, findings: &Findings<'_>) -> BTreeMap<String, String> {
    let entries = stage.get("parameters").and_then(Value::as_object).into_iter().flatten();
    let as_text = |(name, value): (&String, &Value)| {
        let mut pointer = at.to_owned();
        super::yaml::push_segment(&mut pointer, name);
        let text = match value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => findings.written(&pointer).map_or_else(|| other.to_string(), str::to_owned),
        };
        (name.clone(), text)
    };
    entries.map(as_text).collect()
}

fn text_with_place(stage: &Value, key: &str, at: &str, findings: &Findings<'_>) -> Option<(String, Location)> {
    let text = stage.get(key)?.as_str()?;
    Some((text.to_owned(), findings.location(&format!("{at}/{key}"))))
}

/// A path inside the repository at `pointer` of `value`, which stands at `field` of the document.
fn path(value: &Value, pointer: &str, field: &str, findings: &mut Findings<'_>) -> Option<(String, Location)> {
    let text = value.pointer(pointer)?.as_str()?;
    let normal = folder(text);
    if normal.is_none() {
        findings.error(field, "invalid", format!("`{text}` must be a path inside the repository, from its root"));
    }
    Some((normal?, findings.location(field)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::yaml;

    fn read_spec(spec: &str) -> (Settings, Vec<String>) {
        let text = format!("{{apiVersion: launchway.dev/v1, kind: Project, metadata: {{name: shop}}, spec: {spec}}}");
        let reading = yaml::read(text.as_bytes());
        assert_eq!(reading.errors, [], "{text}");
        let mut findings = Findings::new(PROJECT_FILE, &reading.documents[0], "");
        let settings = read(&reading.documents[0].value, &mut findings);
        let found =
            findings.problems.iter().map(|problem| format!("{} {}: {}", problem.severity, problem.field, problem.code));
        (settings, found.collect())
    }

    #[test]
    fn what_follows_from_a_failure_is_one_of_four_words() {
        use OnFailure::{Automatic, AutomaticAndPullRequest, None, PullRequest};
        for (word, expected, goes_back, proposes) in [
            ("automatic", Automatic, true, false),
            ("pull-request", PullRequest, false, true),
            ("automatic-and-pull-request", AutomaticAndPullRequest, true, true),
            ("none", None, false, false),
        ] {
            let (settings, problems) = read_spec(&format!("{{rollback: {{onFailure: {word}}}}}"));
            assert_eq!((problems, settings.on_failure), (Vec::new(), expected), "{word}");
            assert_eq!((expected.goes_back(), expected.proposes()), (goes_back, proposes), "{word}");
        }
        let (settings, problems) = read_spec("{rollback: {onFailure: revert}}");
        assert_eq!((settings.on_failure, problems.len()), (Automatic, 1), "{problems:?}");
    }

    #[test]
    fn settings_are_read() {
        let (settings, problems) = read_spec(
            "{statuses: services, strict: true, shipyard: ./ci/shipyard.yaml, include: ['deploy/**'], exclude: ['**/old/*'], \
             rollback: {onFailure: automatic}, stages: {dev: {path: deploy/dev/, runtime: local, delivery: ship, \
             parameters: {A: 1, B: 1.10, C: 'x y', D: yes, E: [1, a], F: null}, prune: false}}}",
        );
        assert_eq!(problems, [] as [&str; 0]);
        assert_eq!((settings.name.as_deref(), settings.strict), (Some("shop"), true));
        assert_eq!(settings.statuses, StatusDetail::Services);
        assert_eq!(settings.shipyard.expect("said").0, "ci/shipyard.yaml");
        let include = settings.include.expect("said");
        assert!(include.is_match("deploy/a/b.yaml") && !include.is_match("a.yaml"));
        assert!(settings.exclude.is_match("x/old/a.yaml") && !settings.exclude.is_match("x/old/b/a.yaml"));
        let dev = &settings.stages["dev"];
        assert_eq!(dev.path.as_ref().expect("said").0, "deploy/dev");
        assert_eq!((dev.delivery.as_ref().expect("said").0.as_str(), dev.prune), ("ship", false));
        let parameters = [("A", "1"), ("B", "1.10"), ("C", "x y"), ("D", "yes"), ("E", "[1,\"a\"]"), ("F", "")];
        assert_eq!(dev.parameters, parameters.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    }

    #[test]
    fn environments_are_five_for_three_days_after_the_stage_dev_unless_said() {
        assert!(read_spec("{}").0.previews.is_none());
        for (said, stage, max, hours) in
            [("{}", "dev", 5, 72), ("{stage: qa, max: 1, ttl: 90m}", "qa", 1, 1), ("{ttl: 1d12h}", "dev", 5, 36)]
        {
            let (settings, problems) = read_spec(&format!("{{previews: {said}}}"));
            let (previews, _) = settings.previews.expect("said");
            let read = (previews.stage.as_str(), previews.max, previews.ttl_seconds / 3600);
            assert_eq!((read, problems.len()), ((stage, max, hours), 0), "{said}: {problems:?}");
        }
    }

    #[test]
    fn what_cannot_be_kept_is_told() {
        let table: [(&str, &[&str]); 18] = [
            ("{stage: {}}", &["error spec.stage: unknown-key"]),
            ("{statuses: all}", &["error spec.statuses: unsupported-value"]),
            ("{include: ['a[']}", &["error spec.include[0]: invalid"]),
            ("{shipyard: ../x.yaml}", &["error spec.shipyard: invalid"]),
            ("{rollback: {onFailure: automatic}}", &[]),
            ("{rollback: {onFailure: none}}", &[]),
            ("{previews: {max: 50, ttl: 36h}}", &[]),
            ("{previews: {max: 0}}", &["error spec.previews.max: invalid"]),
            ("{previews: {max: 51}}", &["error spec.previews.max: invalid"]),
            ("{previews: {ttl: soon}}", &["error spec.previews.ttl: invalid"]),
            ("{previews: {ttl: 30s}}", &["error spec.previews.ttl: invalid"]),
            ("{previews: {stages: dev}}", &["error spec.previews.stages: unknown-key"]),
            ("{stages: {dev: {path: /etc}}}", &["error spec.stages.dev.path: invalid"]),
            ("{stages: {dev: {runtime: kubernetes}}}", &["warning spec.stages.dev.runtime: not-supported"]),
            ("{stages: {dev: {namespace: A}}}", &["error spec.stages.dev.namespace: invalid"]),
            ("{stages: {dev: {windows: [{}]}}}", &["error spec.stages.dev.windows: not-supported"]),
            ("{stages: {dev: {approval: manual}}}", &["error spec.stages.dev.approval: not-supported"]),
            ("{stages: {dev: {signers: [a]}}}", &["error spec.stages.dev.signers: not-supported"]),
        ];
        for (spec, expected) in table {
            assert_eq!(read_spec(spec).1, expected, "{spec}");
        }
    }
}
