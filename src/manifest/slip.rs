//! Slips in what tells a document's type: taken for somebody else's, what it declared would be deleted.

use serde_json::{Map, Value};

use super::findings::Findings;
use super::pod_template::text_at;
use super::shape::nearest;
use crate::model::object::{Kind, ObjectKey};

/// A kind that is read, with its API versions; the one to write comes first.
struct Known {
    kind: &'static str,
    /// The word that `kubectl` and `oc` take for it, if they do.
    short: &'static str,
    versions: &'static [&'static str],
}

const fn known(kind: &'static str, short: &'static str, versions: &'static [&'static str]) -> Known {
    Known { kind, short, versions }
}

const CORE: &[&str] = &["v1"];
const OWN: &[&str] = &["launchway.dev/v1"];
const KNOWN: [Known; 13] = [
    known("DeploymentConfig", "dc", &["apps.openshift.io/v1", "v1"]),
    known("Deployment", "deploy", &["apps/v1"]),
    known("Service", "svc", CORE),
    known("Endpoints", "ep", CORE),
    known("ConfigMap", "cm", CORE),
    known("Secret", "", CORE),
    known("PersistentVolumeClaim", "pvc", CORE),
    known("List", "", CORE),
    known("Template", "", &["template.openshift.io/v1", "v1"]),
    known("ImageStream", "is", &["image.openshift.io/v1", "v1"]),
    known("Task", "", OWN),
    known("Hook", "", OWN),
    known("Project", "", OWN),
];

/// Kubernetes' own word, which only resembles one of those.
const NO_SLIP: &str = "PodTemplate";

/// What lists have their objects under.
const ITEMS: &str = "items";
/// The key of what a template declares.
const OBJECTS: &str = "objects";

/// What holds an object's content.
const CONTENT: [&str; 5] = ["spec", "data", "stringData", "binaryData", "subsets"];

impl Known {
    fn named(kind: &str) -> Option<&'static Known> {
        KNOWN.iter().find(|known| known.kind == kind)
    }

    /// The one that was meant by a word that is none of them.
    fn meant_by(kind: &str) -> Option<&'static Known> {
        let short = KNOWN.iter().find(|known| !known.short.is_empty() && known.short.eq_ignore_ascii_case(kind));
        if short.is_some() {
            return short;
        }
        let near = (kind != NO_SLIP).then(|| nearest(kind, KNOWN.iter().map(|known| known.kind)))?;
        near.and_then(Self::named)
    }

    fn is_own(&self) -> bool {
        self.versions == OWN
    }

    /// Whether no other program can mean something by this kind in that version. A group of its own is somebody else's, and
    /// OpenShift has a `Project` too.
    fn is_meant_in(&self, version: &str) -> bool {
        let is_of_the_core = !version.contains('/') || KNOWN.iter().any(|known| known.versions.contains(&version));
        self.versions.contains(&version)
            || nearest(version, self.versions.iter().copied()).is_some()
            || is_of_the_core && !self.is_own()
    }

    fn wrong_version(&self, version: &str, findings: &mut Findings<'_>) {
        let near = nearest(version, self.versions.iter().copied()).unwrap_or(self.versions[0]);
        let message = format!("`{version}` is no version of {}", self.kind);
        findings.error("/apiVersion", "misspelt", message).hint = Some(did_you_mean(near));
    }
}

fn did_you_mean(word: &str) -> String {
    format!("did you mean `{word}`?")
}

/// Reports a kind or version that is misspelt; whether it did.
pub(crate) fn in_words(version: &str, kind: &str, findings: &mut Findings<'_>) -> bool {
    let (meant, is_misspelt) = match Known::named(kind) {
        Some(known) => (known, false),
        None => match Known::meant_by(kind) {
            Some(known) => (known, true),
            None => return false,
        },
    };
    if !meant.is_meant_in(version) {
        return false;
    }
    if is_misspelt {
        let problem = findings.error("/kind", "misspelt", format!("there is no `{kind}` in `{version}`"));
        problem.hint = Some(did_you_mean(meant.kind));
    }
    let is_wrong_version = !meant.versions.contains(&version);
    if is_wrong_version {
        meant.wrong_version(version, findings);
    }
    is_misspelt || is_wrong_version
}

/// Reports the keys `kind` and `apiVersion` that are misspelt or missing, where the document looks like one of ours.
pub(crate) fn in_keys(value: &Value, findings: &mut Findings<'_>) {
    let Some(map) = value.as_object() else { return };
    let (kind, version) = (Key::find(map, "kind"), Key::find(map, "apiVersion"));
    if !looks_like_ours(value, &kind, &version) {
        return;
    }
    let word = kind.text(map);
    let known = word.and_then(|word| Known::named(word).or_else(|| Known::meant_by(word)));
    let versions = known.map_or("v1", |known| known.versions[0]);
    kind.report(findings, || match known {
        Some(known) => format!("write `kind: {}`", known.kind),
        None => "write it, such as `kind: Service`; what is none of ours can stand under `spec.exclude`".to_owned(),
    });
    version.report(findings, || format!("write `apiVersion: {versions}`"));
    if let (Some(word), Some(known)) = (word, known.filter(|known| Some(known.kind) != word)) {
        let pointer = format!("/{}", kind.written.unwrap_or_default());
        let problem = findings.error(&pointer, "misspelt", format!("there is no kind `{word}`"));
        problem.hint = Some(did_you_mean(known.kind));
    }
}

/// Reports a list without what it lists, or with that under another key: it would declare nothing, and what it declared
/// before would be deleted.
pub(crate) fn in_list(value: &Value, findings: &mut Findings<'_>) {
    let Some(map) = value.as_object() else { return };
    let items = Key::find(map, ITEMS);
    match items.written.and_then(|key| map.get(key)) {
        Some(Value::Array(_)) => items.report_spelling(findings),
        Some(Value::Null) => report_empty("List", items.written.unwrap_or(ITEMS), findings),
        Some(_) => {
            let problem =
                findings.error(&format!("/{}", items.written.unwrap_or(ITEMS)), "type", "`items` must be a list");
            problem.hint = Some("write each object as an entry of it".to_owned());
        }
        None => {
            let problem = findings.error("", "misspelt", "this List has no `items`");
            problem.hint = Some("write `items:` before what it lists, or `items: []` if that is nothing".to_owned());
        }
    }
}

/// Reports a template without objects, or with none written where they belong: what it declared before would be deleted.
pub(crate) fn in_template(value: &Value, findings: &mut Findings<'_>) {
    if value.get(OBJECTS).is_none_or(Value::is_null) {
        report_empty("Template", OBJECTS, findings);
    }
}

fn report_empty(kind: &str, key: &str, findings: &mut Findings<'_>) {
    let problem = findings.error(&format!("/{key}"), "required", format!("this {kind} has nothing in `{key}`"));
    problem.hint = Some(format!("write `{key}: []` if that is nothing"));
}

/// A known kind tells it, or an object's frame. A chart's description has an `apiVersion`, and neither.
fn looks_like_ours(value: &Value, kind: &Key<'_>, version: &Key<'_>) -> bool {
    let Some(map) = value.as_object() else { return false };
    let has_frame = version.written.is_some() || value.get("metadata").is_some_and(Value::is_object);
    let by_kind = kind.text(map).is_some_and(|word| match Known::named(word) {
        Some(_) => kind.is_right() || has_frame,
        None => has_frame && Known::meant_by(word).is_some(),
    });
    let has_content = CONTENT.iter().any(|key| map.get(*key).is_some_and(|content| !content.is_null()));
    let lists_objects = version.text(map) == Some("v1") && value.pointer("/items/0/kind").is_some();
    by_kind || lists_objects || has_content && !text_at(value, "/metadata/name").is_empty()
}

/// One of the two keys, as a document has it.
struct Key<'a> {
    name: &'static str,
    /// How it is written, if it is there at all.
    written: Option<&'a str>,
    is_text: bool,
}

impl<'a> Key<'a> {
    fn find(map: &'a Map<String, Value>, name: &'static str) -> Self {
        let right = map.get_key_value(name).map(|(key, _)| key.as_str());
        let similar = || map.keys().map(String::as_str).find(|key| nearest(key, std::iter::once(name)).is_some());
        let written = right.or_else(similar);
        Self { name, written, is_text: written.is_some_and(|key| map[key].is_string()) }
    }

    fn is_right(&self) -> bool {
        self.written == Some(self.name)
    }

    fn text(&self, map: &'a Map<String, Value>) -> Option<&'a str> {
        map.get(self.written?)?.as_str()
    }

    fn report_spelling(&self, findings: &mut Findings<'_>) {
        if let Some(key) = self.written.filter(|key| *key != self.name) {
            let message = format!("the key `{key}` is not known");
            findings.error_at_key(&format!("/{key}"), "misspelt", message).hint = Some(did_you_mean(self.name));
        }
    }

    fn report(&self, findings: &mut Findings<'_>, what_to_write: impl Fn() -> String) {
        match self.written {
            Some(key) if key != self.name => self.report_spelling(findings),
            Some(key) if !self.is_text => {
                let problem = findings.error(&format!("/{key}"), "type", format!("`{key}` must be text"));
                problem.hint = Some(what_to_write());
            }
            Some(_) => {}
            None => {
                let problem = findings.error("", "misspelt", format!("this has no `{}`", self.name));
                problem.hint = Some(what_to_write());
            }
        }
    }
}

/// The objects that a document of a kind which is not read could have stood for, judging by its content.
pub(crate) fn may_stand_for(value: &Value) -> Vec<ObjectKey> {
    let name = text_at(value, "/metadata/name");
    let has = |pointer: &str| value.pointer(pointer).is_some();
    let kinds = [
        (has("/spec/template"), Kind::DeploymentConfig),
        (has("/spec/ports") || has("/spec/externalName"), Kind::Service),
        (has("/data") || has("/binaryData"), Kind::ConfigMap),
        (has("/data") || has("/stringData"), Kind::Secret),
        (has("/spec/accessModes") || has("/spec/resources"), Kind::PersistentVolumeClaim),
        (has("/subsets"), Kind::Endpoints),
    ];
    let likely = kinds.into_iter().filter(|(is_likely, _)| *is_likely && !name.is_empty());
    likely.map(|(_, kind)| ObjectKey { kind, name: name.to_owned() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::object::{Declarations, Source};
    use crate::manifest::problem::Problem;
    use crate::manifest::stage_context::StageContext;
    use crate::manifest::yaml;

    fn problems(text: &str) -> Vec<Problem> {
        let reading = yaml::read(text.as_bytes());
        assert_eq!(reading.errors, [], "{text}");
        let mut declarations = Declarations::default();
        for document in &reading.documents {
            declarations.add(&Source::new("a.yaml", document, &StageContext::nowhere(), None));
        }
        declarations.problems
    }

    #[test]
    fn a_slip_is_an_error_that_says_what_was_meant() {
        let table = [
            ("{apiVersion: v1, kind: deploymentconfig}", "1:24", "did you mean `DeploymentConfig`?"),
            ("{apiVersion: apps.openshift.io/v1, kind: DeploymentConfg}", "1:42", "did you mean `DeploymentConfig`?"),
            ("{apiVersion: v1, kind: service}", "1:24", "did you mean `Service`?"),
            ("{apiVersion: v1, kind: Endpoint}", "1:24", "did you mean `Endpoints`?"),
            ("{apiVersion: v1, kind: svc}", "1:24", "did you mean `Service`?"),
            ("{apiVersion: v1, kind: DC}", "1:24", "did you mean `DeploymentConfig`?"),
            ("{kind: cm, metadata: {name: a}, data: {}}", "1:8", "did you mean `ConfigMap`?"),
            // Letters that only look like those.
            ("{apiVersion: v1, kind: Ѕервісе}", "1:24", "did you mean `Service`?"),
            ("{apiVersion: v1, kind: Ѕеrvісе}", "1:24", "did you mean `Service`?"),
            ("{аріVersіоn: v1, kіnd: Service}", "1:2", "did you mean `apiVersion`?"),
            ("{apiVersion: v1, kind: Lst, items: []}", "1:24", "did you mean `List`?"),
            ("{apiVersion: v2, kind: Service}", "1:14", "did you mean `v1`?"),
            ("{apiVersion: v1beta3, kind: Service}", "1:14", "did you mean `v1`?"),
            ("{apiVersion: apps/v1, kind: Service}", "1:14", "did you mean `v1`?"),
            ("{apiVersion: v1, kind: Deployment}", "1:14", "did you mean `apps/v1`?"),
            ("{apiVersion: lauchway.dev/v1, kind: Task}", "1:14", "did you mean `launchway.dev/v1`?"),
            ("{kind: Service}", "1:1", "write `apiVersion: v1`"),
            ("{Kind: Service, apiVersion: v1}", "1:2", "did you mean `kind`?"),
            ("{kind: Service, apiversion: v1}", "1:17", "did you mean `apiVersion`?"),
            ("{kind: 7, apiVersion: v1, metadata: {name: a}, spec: {}}", "1:8", "write it, such as `kind: Service`"),
            ("{apiVersion: v1, metadata: {name: a}, data: {}}", "1:1", "write it, such as `kind: Service`"),
            ("{apiVersion: v1, items: [{kind: Service}]}", "1:1", "write it, such as `kind: Service`"),
            ("{apiVersion: v1, kind: List, item: []}", "1:30", "did you mean `items`?"),
            ("{apiVersion: v1, kind: List, Items: [{kind: Service}]}", "1:30", "did you mean `items`?"),
            ("{apiVersion: v1, kind: List, objects: []}", "1:1", "write `items:`"),
            ("{apiVersion: v1, kind: List, items: {a: 1}}", "1:37", "write each object"),
            ("{apiVersion: v1, kind: List, items: null}", "1:37", "write `items: []`"),
            ("{apiVersion: v1, kind: Template, metadata: {name: a}, objects: null}", "1:64", "write `objects: []`"),
            ("{apiVersion: v1, kind: Template, metadata: {name: a}}", "1:1", "write `objects: []`"),
        ];
        for (text, place, hint) in table {
            let found = problems(text);
            let told = found.iter().any(|problem| {
                let is_there = format!("{}:{}", problem.line, problem.column) == place;
                problem.is_error() && is_there && problem.hint.as_ref().is_some_and(|given| given.starts_with(hint))
            });
            assert!(told, "{text}: {found:#?}");
        }
    }

    #[test]
    fn everything_that_is_wrong_with_a_type_is_told_at_once() {
        let both = problems("{Kind: servce, metadata: {name: a}, spec: {}}");
        let told: Vec<_> = both.iter().filter_map(|problem| problem.hint.as_deref()).collect();
        assert_eq!(told, ["did you mean `kind`?", "write `apiVersion: v1`", "did you mean `Service`?"]);
        let neither = problems("{metadata: {name: a}, spec: {}}");
        let told: Vec<_> = neither.iter().map(|problem| problem.message.as_str()).collect();
        assert_eq!(told, ["this has no `kind`", "this has no `apiVersion`"]);
    }

    #[test]
    fn what_is_somebody_elses_is_no_error() {
        let table = [
            "{apiVersion: v2, name: web, type: application, version: 1.0.0, appVersion: '1.0'}",
            "{apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: a}, spec: {}}",
            "{apiVersion: tekton.dev/v1, kind: Task, metadata: {name: a}, spec: {}}",
            "{apiVersion: project.openshift.io/v1, kind: Project, metadata: {name: a}}",
            "{apiVersion: v1, kind: Project, metadata: {name: a}}",
            "{apiVersion: v1, kind: PodTemplate, metadata: {name: a}}",
            "{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}, spec: {}}",
            "{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}}",
            "{apiVersion: extensions/v1beta1, kind: Deployment, metadata: {name: a}, spec: {}}",
            "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {}}",
            "{version: '3', services: {web: {image: a}}}",
            "{kind: service, port: 80}",
            "{kind: svc, port: 80}",
            "{apiVersion: example.org/v1, kind: svc, metadata: {name: a}}",
            "{kid: Service, kty: RSA}",
            "{name: a, spec: {}, data: {}}",
            "[{kind: Service}]",
        ];
        for text in table {
            let found = problems(text);
            assert!(!found.iter().any(Problem::is_error), "{text}: {found:#?}");
        }
    }

    #[test]
    fn what_a_document_may_have_stood_for_is_seen_in_its_content() {
        let table = [
            ("{metadata: {name: a}, spec: {template: {}}}", vec!["DeploymentConfig/a"]),
            ("{metadata: {name: a}, spec: {ports: []}}", vec!["Service/a"]),
            ("{metadata: {name: a}, data: {}}", vec!["ConfigMap/a", "Secret/a"]),
            ("{metadata: {name: a}, spec: {to: {kind: Service, name: a}}}", vec![]),
            ("{spec: {template: {}}}", vec![]),
        ];
        for (text, expected) in table {
            let value = &yaml::read(text.as_bytes()).documents[0].value;
            let found: Vec<_> = may_stand_for(value).iter().map(ToString::to_string).collect();
            assert_eq!(found, expected, "{text}");
        }
    }
}
