//! Deployment configs that are deployed anew when what they read changes, which upstream never does: opt-in, by an annotation.

use std::collections::BTreeSet;

use aws_lc_rs::digest::{Context, SHA256};
use serde_json::{Map, Value, json};

use super::digest::named;
use super::findings::Findings;
use super::pod_template::text_at;
use super::shape::nearest;
use super::{globs, image};
use crate::model::object::{CONTENT, Kind, Location, Object, ObjectKey};

/// Says of a deployment config which kinds of objects that it reads, and which files, deploy it when they change.
pub(crate) const ANNOTATION: &str = "launchway.dev/trigger-on";
const POINTER: &str = "/metadata/annotations/launchway.dev~1trigger-on";
/// Begins what names files, as it does in images.
const FILES: &str = "git:";
const WORDS: [(&str, Kind); 2] = [("configmaps", Kind::ConfigMap), ("secrets", Kind::Secret)];

/// What a deployment config follows the content of.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    /// Kinds of objects, of which it follows those that it reads.
    pub(crate) kinds: BTreeSet<Kind>,
    /// Files of the repository.
    pub(crate) files: Vec<FollowedFiles>,
}

/// Files of the repository, and where they are named.
#[derive(Debug)]
pub(crate) struct FollowedFiles {
    /// A path or a glob, from a `/` that stands for the root: no folder that an image names has that.
    pub(crate) pattern: String,
    pub(crate) location: Location,
}

/// What a deployment config follows the content of.
pub(crate) fn followed(content: &Value, findings: &mut Findings<'_>) -> Followed {
    let mut found = Followed::default();
    for word in text_at(content, POINTER).split(',').map(str::trim).filter(|word| !word.is_empty()) {
        if let Some(path) = word.strip_prefix(FILES) {
            found.files.extend(files(path, findings));
            continue;
        }
        match WORDS.iter().find(|(known, _)| *known == word) {
            Some((_, kind)) => drop(found.kinds.insert(kind.clone())),
            None => {
                let near = nearest(word, WORDS.iter().map(|(known, _)| *known));
                let problem =
                    findings.error(POINTER, "unsupported-value", format!("`{word}` is nothing to trigger on"));
                problem.hint = Some(match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!(
                        "`{ANNOTATION}` takes `configmaps`, `secrets` and `git:<path or glob>`, separated by commas"
                    ),
                });
            }
        }
    }
    found
}

fn files(path: &str, findings: &mut Findings<'_>) -> Option<FollowedFiles> {
    let is_glob = || globs::is_valid(path);
    match image::folder(path).filter(|_| is_glob()) {
        Some(path) => Some(FollowedFiles { pattern: format!("/{path}"), location: findings.location(POINTER) }),
        None => {
            let message = format!("`{FILES}{path}` names no files of the repository");
            findings.error(POINTER, "invalid", message).hint = Some(
                "write a path from the root, such as `git:config/app.conf`, or a glob; several are separated by commas"
                    .to_owned(),
            );
            None
        }
    }
}

/// Puts the identity of files into a template, whose change is a change of it: `ids` are what the tree has at their patterns.
pub(crate) fn put_files<'a>(content: &mut Value, ids: impl Iterator<Item = (&'a str, &'a str)>) {
    let mut context = Context::new(&SHA256);
    for (pattern, id) in ids {
        context.update(format!("{pattern} {id}\n").as_bytes());
    }
    set(content, named(&context.finish()).as_str());
}

/// The same with objects that it reads; files come first.
pub(crate) fn put<'a>(
    content: &mut Value,
    kinds: &BTreeSet<Kind>,
    references: &BTreeSet<ObjectKey>,
    object: impl Fn(&ObjectKey) -> Option<&'a Object>,
) {
    let mut context = Context::new(&SHA256);
    let files = content.pointer(&format!("/spec/template/metadata/annotations/{}", CONTENT.replace('/', "~1")));
    context.update(files.and_then(Value::as_str).unwrap_or_default().as_bytes());
    for object in references.iter().filter(|key| kinds.contains(&key.kind)).filter_map(object) {
        context.update(format!("{} {}\n", object.key, object.digest).as_bytes());
    }
    set(content, named(&context.finish()).as_str());
}

fn set(content: &mut Value, identity: &str) {
    let Some(template) = content.pointer_mut("/spec/template").and_then(Value::as_object_mut) else { return };
    let map = |parent: &mut Map<String, Value>, key: &str| {
        let child = parent.entry(key).or_insert(Value::Null);
        if !child.is_object() {
            *child = json!({});
        }
    };
    map(template, "metadata");
    let Some(metadata) = template.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    map(metadata, "annotations");
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.insert(CONTENT.to_owned(), json!(identity));
    }
}
