//! OpenShift's `ImageStream`: keys, defaults, rules.
//!
//! Source of the rules and of the fields' names: `ValidateImageStream` of `image.openshift.io/v1`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::findings::Findings;
use super::pod_template::defaults::{objects, set_absent};
use super::pod_template::{items, text_at};
use super::problem::Problem;
use super::shape::image_stream::IMAGE_STREAM;
use super::shape::{Strictness, check};
use super::stage_context::Runtime;
use super::{metadata, names};
use crate::model::image_stream::{DOCKER_IMAGE, IMAGE_STREAM_IMAGE, IMAGE_STREAM_TAG, stream_and_tag};

const KINDS: &str = "one of DockerImage, ImageStreamImage, ImageStreamTag";

/// Checks a document, applies every default, and leaves the content that is compared.
pub(crate) fn normalise(value: &mut Value, runtime: Runtime, findings: &mut Findings<'_>) {
    check(value, &IMAGE_STREAM, Strictness::Users, findings);
    metadata::normalise(value, names::image_stream, findings);
    for tag in objects(value.pointer_mut("/spec/tags")) {
        set_absent(tag, [("referencePolicy", json!({"type": "Source"}))]);
    }
    let mut seen = BTreeSet::new();
    for (index, tag) in items(value, "/spec/tags") {
        let name = text_at(tag, "/name");
        let place = Place { index, name };
        if !name.is_empty() && !is_tag(name) {
            let message = format!("`{name}` must be letters, digits, `_`, `-` and `.`, and at most 128 of them");
            place.error("/name", "invalid", message, findings);
        }
        if !seen.insert(name) {
            place.error("/name", "duplicate", format!("the tag `{name}` is declared twice"), findings);
        }
        if tag.get("from").is_some() {
            source(tag, &place, runtime, findings);
        }
        let policy = text_at(tag, "/referencePolicy/type");
        if !matches!(policy, "Source" | "Local") {
            let message = format!("`{policy}` is not supported");
            place.error("/referencePolicy/type", "invalid", message, findings).hint =
                Some("valid values are \"Source\", \"Local\"".to_owned());
        }
    }
    loops(value, findings);
}

/// A tag, as problems name it.
struct Place<'a> {
    index: usize,
    name: &'a str,
}

impl Place<'_> {
    fn pointer(&self, field: &str) -> String {
        format!("/spec/tags/{}{field}", self.index)
    }

    /// Upstream finds tags by their names.
    fn error<'b>(&self, field: &str, code: &str, message: String, findings: &'b mut Findings<'_>) -> &'b mut Problem {
        let problem = findings.error(&self.pointer(field), code, message);
        if !self.name.is_empty() {
            problem.field = format!("spec.tags[{}]{}", self.name, field.replace('/', "."));
        }
        problem
    }
}

fn is_tag(name: &str) -> bool {
    let may_begin = |first: char| first.is_ascii_alphanumeric() || first == '_';
    name.len() <= 128
        && name.starts_with(may_begin)
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

fn source(tag: &Value, place: &Place<'_>, runtime: Runtime, findings: &mut Findings<'_>) {
    let name = text_at(tag, "/from/name");
    if name.is_empty() {
        place.error("/from/name", "required", "this is required".to_owned(), findings);
    }
    let is_scheduled = tag.pointer("/importPolicy/scheduled") == Some(&Value::Bool(true));
    match text_at(tag, "/from/kind") {
        DOCKER_IMAGE if name.contains("@sha256:") && is_scheduled => {
            let message = "only tags can be scheduled for import".to_owned();
            place.error("/from/name", "invalid", message, findings);
        }
        DOCKER_IMAGE if !name.is_empty() && name.contains(char::is_whitespace) => {
            place.error("/from/name", "invalid", format!("`{name}` names no image"), findings);
        }
        DOCKER_IMAGE if is_scheduled && runtime == Runtime::Local => {
            let message = "a launchable is looked at when a revision is planned, not on a schedule";
            findings.warning(&place.pointer("/importPolicy/scheduled"), "no-effect", message);
        }
        DOCKER_IMAGE => {}
        IMAGE_STREAM_TAG | IMAGE_STREAM_IMAGE if is_scheduled => {
            let message = "only tags pointing to Docker repositories may be scheduled for background import".to_owned();
            place.error("/importPolicy/scheduled", "invalid", message, findings);
        }
        IMAGE_STREAM_TAG => {}
        IMAGE_STREAM_IMAGE => {
            let message = "images by the digest that a stream has had are not found: nothing follows this tag";
            findings.warning(&place.pointer("/from/kind"), "not-supported", message).hint =
                Some("name the image itself with `kind: DockerImage`".to_owned());
        }
        _ => {
            place.error("/from/kind", "required", "this is required".to_owned(), findings).hint =
                Some(KINDS.to_owned());
        }
    }
}

/// The tag of its own stream that a tag points to: by the stream's name and its own, or by its own alone.
fn own_tag<'a>(stream: &str, from: &'a Value) -> Option<&'a str> {
    let name = text_at(from, "/name");
    match stream_and_tag(name) {
        _ if text_at(from, "/kind") != IMAGE_STREAM_TAG => None,
        Some((named, tag)) => (named == stream).then_some(tag),
        None => Some(name),
    }
}

/// A tag must lead somewhere.
fn loops(value: &Value, findings: &mut Findings<'_>) {
    let stream = text_at(value, "/metadata/name");
    let tags: BTreeMap<&str, (usize, Option<&str>)> = items(value, "/spec/tags")
        .map(|(index, tag)| {
            let from = tag.get("from").unwrap_or(&Value::Null);
            (text_at(tag, "/name"), (index, own_tag(stream, from)))
        })
        .collect();
    for (name, (index, next)) in &tags {
        let place = Place { index: *index, name };
        let (mut passed, mut next) = (BTreeSet::new(), *next);
        while let Some(tag) = next.filter(|tag| passed.insert(*tag)) {
            next = tags.get(tag).and_then(|(_, next)| *next);
        }
        if passed.contains(name) {
            let message = format!("the tag `{name}` points to itself");
            place.error("/from/name", "invalid", message, findings).hint =
                Some("one of the tags on the way must name an image".to_owned());
        }
    }
}

/// The images that tags name, with their pointers.
pub(crate) fn images(content: &Value) -> impl Iterator<Item = (String, &str)> {
    let named = items(content, "/spec/tags").filter(|(_, tag)| text_at(tag, "/from/kind") == DOCKER_IMAGE);
    named.map(|(index, tag)| (format!("/spec/tags/{index}/from/name"), text_at(tag, "/from/name")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::problem::Severity;
    use crate::manifest::yaml;

    fn found(tags: &str, runtime: Runtime) -> (Value, Vec<String>) {
        let text = format!("{{metadata: {{name: app}}, spec: {{tags: {tags}}}}}");
        let reading = yaml::read(text.as_bytes());
        let document = &reading.documents[0];
        let mut findings = Findings::new("a.yaml", document, "");
        let mut value = document.value.clone();
        normalise(&mut value, runtime, &mut findings);
        let told = |problem: Problem| {
            let severity = if problem.severity == Severity::Error { "error" } else { "warning" };
            format!("{severity} {}: {}", problem.field, problem.code)
        };
        (value, findings.problems.into_iter().map(told).collect())
    }

    #[test]
    fn upstreams_rules_are_told_at_upstreams_fields() {
        let image = "from: {kind: DockerImage, name: 'quay.io/a/b:1'}";
        let digest = format!("quay.io/a/b@sha256:{}", "a".repeat(64));
        let pinned =
            format!("[{{name: a, from: {{kind: DockerImage, name: '{digest}'}}, importPolicy: {{scheduled: true}}}}]");
        let table = [
            (format!("[{{name: a, {image}, importPolicy: {{scheduled: true}}}}]"), vec![]),
            ("[{name: a}]".to_owned(), vec![]),
            (format!("[{{{image}}}]"), vec!["error spec.tags[0].name: required"]),
            ("[{name: 'a b'}]".to_owned(), vec!["error spec.tags[a b].name: invalid"]),
            ("[{name: a}, {name: a}]".to_owned(), vec!["error spec.tags[a].name: duplicate"]),
            ("[{name: a, from: {kind: DockerImage}}]".to_owned(), vec!["error spec.tags[a].from.name: required"]),
            ("[{name: a, from: {name: b}}]".to_owned(), vec!["error spec.tags[a].from.kind: required"]),
            ("[{name: a, from: {kind: Pod, name: b}}]".to_owned(), vec!["error spec.tags[a].from.kind: required"]),
            (pinned, vec!["error spec.tags[a].from.name: invalid"]),
            (
                "[{name: a, from: {kind: ImageStreamTag, name: b}, importPolicy: {scheduled: true}}]".to_owned(),
                vec!["error spec.tags[a].importPolicy.scheduled: invalid"],
            ),
            (
                "[{name: a, referencePolicy: {type: Remote}}]".to_owned(),
                vec!["error spec.tags[a].referencePolicy.type: invalid"],
            ),
            ("[{name: a, form: {}}]".to_owned(), vec!["warning spec.tags[0].form: unknown-key"]),
        ];
        for (tags, expected) in table {
            assert_eq!(found(&tags, Runtime::Kubernetes).1, expected, "{tags}");
        }
    }

    #[test]
    fn a_tag_that_leads_back_to_itself_is_refused() {
        let to = |name: &str, to: &str| format!("{{name: {name}, from: {{kind: ImageStreamTag, name: '{to}'}}}}");
        let invalid = |tag: &str| format!("error spec.tags[{tag}].from.name: invalid");
        for (tags, expected) in [
            (vec![to("a", "b"), "{name: b}".to_owned()], vec![]),
            (vec![to("a", "other:a")], vec![]),
            (vec![to("a", "a")], vec![invalid("a")]),
            (vec![to("a", "app:a")], vec![invalid("a")]),
            (vec![to("a", "b"), to("b", "app:a"), to("c", "a")], vec![invalid("a"), invalid("b")]),
        ] {
            let tags = format!("[{}]", tags.join(", "));
            assert_eq!(found(&tags, Runtime::Local).1, expected, "{tags}");
        }
    }

    #[test]
    fn defaults_are_applied() {
        let (value, _) = found("[{name: a, generation: 2}]", Runtime::Local);
        assert_eq!(value["spec"]["tags"], json!([{"name": "a", "referencePolicy": {"type": "Source"}}]));
    }
}
