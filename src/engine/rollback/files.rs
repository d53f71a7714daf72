//! Which files of the head change to what, so that Git says again what an earlier version was: whole files where they
//! differ in nothing else, else the document alone, with its comments; and the folders that `git:` images name. What comes of
//! it is checked on what the changed files declare: the one thing that may change is what goes back.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value;

use crate::error::{Failure, Result};
use crate::manifest::yaml::Position;
use crate::manifest::yaml::documents::{document_at, documents};
use crate::model::ids::StageName;
use crate::model::object::{Kind, Location, Object, ObjectKey};
use crate::model::project::{Project, StageContent};
use crate::plan::same_tasks;

/// How many changed objects are named.
const MOST_NAMES: usize = 5;

/// A revision's tree.
pub trait Tree {
    /// The content of a file; nothing, if there is none.
    ///
    /// # Errors
    /// If it cannot be read, or is no file of text.
    fn file(&self, path: &str) -> Result<Option<String>>;

    /// The id of a folder, the empty path being the root; nothing, if there is none.
    ///
    /// # Errors
    /// If the tree cannot be read.
    fn folder(&self, path: &str) -> Result<Option<String>>;
}

/// What becomes of the head's files, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edits {
    /// Folders that become what has this id; the root, for the empty path.
    pub folders: BTreeMap<String, String>,
    /// Files that are written, after that.
    pub files: BTreeMap<String, String>,
    /// What the images of what is restored name, whether or not it differs: the folder's id, and who names it.
    named: BTreeMap<String, (String, String)>,
}

/// What is to be restored.
#[derive(Clone, Copy, Debug)]
pub struct Restored<'a> {
    /// In which stage.
    pub stage: &'a StageName,
    /// As the earlier version had it.
    pub earlier: &'a Object,
    /// As the head declares it; nothing, if it does not.
    pub now: Option<&'a Object>,
}

impl Edits {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.folders.is_empty() && self.files.is_empty()
    }

    /// The paths that change; folders end with `/`.
    pub fn paths(&self) -> impl Iterator<Item = String> {
        let folders = self.folders.keys().map(|path| format!("{path}/"));
        folders.chain(self.files.keys().cloned())
    }

    /// Adds the folders that the images of what is restored name, where they are not what they were.
    ///
    /// # Errors
    /// If the head's tree cannot be read.
    pub fn add_folders(&mut self, restored: &Restored<'_>, head: &dyn Tree) -> Result<()> {
        for (folder, id) in images(&restored.earlier.content.value()) {
            self.name(&folder, &id, restored)?;
            if head.folder(&folder)?.as_deref() != Some(&*id) {
                self.folders.insert(folder, id);
            }
        }
        // One within another comes back with it.
        let folders: Vec<String> = self.folders.keys().cloned().collect();
        self.folders.retain(|folder, _| !folders.iter().any(|other| other != folder && is_within(folder, other)));
        Ok(())
    }

    /// A folder can come back as one thing alone: two of its users may go back to versions that had it differently.
    fn name(&mut self, folder: &str, id: &str, restored: &Restored<'_>) -> Result<()> {
        let name = &restored.earlier.key.name;
        match self.named.get(folder) {
            Some((other, by)) if other != id => {
                let folder = if folder.is_empty() { "." } else { folder };
                let message =
                    format!("`{by}` and `{name}` go back to versions that had the folder `{folder}` differently");
                let hint = "name a revision at which both were as they are to be: `--to-revision REV` (`launchway history` lists them)";
                Err(Failure::stalled(message).hint(hint))
            }
            Some(_) => Ok(()),
            None => {
                self.named.insert(folder.to_owned(), (id.to_owned(), name.clone()));
                Ok(())
            }
        }
    }

    /// Adds the file that declares what is restored, unless it comes back with a folder; `before` is the tree of the earlier
    /// version's revision.
    ///
    /// # Errors
    /// If it cannot be told from the rest of its file, or one of the trees cannot be read.
    pub fn add_file(&mut self, restored: &Restored<'_>, before: &dyn Tree, head: &dyn Tree) -> Result<()> {
        let was = &restored.earlier.location;
        let earlier = before.file(&was.file)?.ok_or_else(|| lost(&was.file))?;
        let document = document_at(&earlier, place(was)).ok_or_else(|| lost(&was.file))?;
        let path = restored.now.map_or(&was.file, |now| &now.location.file);
        if self.folders.keys().any(|folder| is_within(path, folder)) {
            return Ok(());
        }
        let pending = self.files.get(path).cloned();
        // A list has several in one document, and came back with the first of them.
        let has_it = |pending: &String| {
            documents(pending).into_iter().any(|range| pending[range].trim() == earlier[document.clone()].trim())
        };
        if pending.as_ref().is_some_and(has_it) {
            return Ok(());
        }
        let is_pending = pending.is_some();
        let content = match pending {
            Some(pending) => Some(pending),
            None => head.file(path)?,
        };
        let new = match (&content, restored.now) {
            (None, _) if documents(&earlier).len() == 1 => earlier,
            (None, _) => earlier[document].to_owned(),
            (Some(content), None) => appended(content, &earlier[document]),
            (Some(content), Some(now)) => {
                // What was written for another member has moved the lines, so that its own document is searched for again.
                let there = match is_pending {
                    true => moved(content, now, restored)?,
                    false => document_at(content, place(&now.location)).ok_or_else(|| lost(path))?,
                };
                exchanged((content, there), (&earlier, document))
            }
        };
        if content.as_ref() != Some(&new) {
            self.files.insert(path.clone(), new);
        }
        Ok(())
    }
}

/// Whether a path lies in a folder, the empty path being the root.
fn is_within(path: &str, folder: &str) -> bool {
    folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// Where an object is declared.
fn place(Location { line, column, .. }: &Location) -> Position {
    Position { line: *line, column: *column }
}

/// The document that names the object, in a file that was changed.
fn moved(content: &str, now: &Object, restored: &Restored<'_>) -> Result<Range<usize>> {
    let named = |range: &Range<usize>| {
        let reading = crate::manifest::yaml::read(content[range.clone()].as_bytes());
        reading.documents.iter().any(|document| {
            document.value.pointer("/metadata/name").and_then(Value::as_str) == Some(&*now.key.name)
                && document.value.get("kind").and_then(Value::as_str) == Some(now.declared_kind().name())
        })
    };
    let several = || {
        let message = format!("`{}` and another one that goes back are declared in one document", now.key.name);
        Failure::stalled(message).hint(format!("roll them back one after the other in stage {}", restored.stage))
    };
    documents(content).into_iter().find(named).ok_or_else(several)
}

/// A file whose only document, or whose others are the same, is restored whole.
fn exchanged((content, there): (&str, Range<usize>), (earlier, document): (&str, Range<usize>)) -> String {
    let others = |text: &str, own: &Range<usize>| {
        let others = documents(text).into_iter().filter(|range| range != own);
        others.map(|range| text[range].trim().to_owned()).collect::<Vec<_>>()
    };
    if others(content, &there) == others(earlier, &document) {
        return earlier.to_owned();
    }
    let (before, after) = (&content[..there.start], &content[there.end..]);
    let mut new = earlier[document].trim_start_matches('\u{feff}').to_owned();
    if before.is_empty() && content.starts_with('\u{feff}') {
        new.insert(0, '\u{feff}');
    }
    if before.ends_with("---") && !new.starts_with(char::is_whitespace) {
        new.insert(0, '\n');
    }
    if (after.starts_with("---") || after.is_empty() && content.ends_with('\n')) && !new.ends_with('\n') {
        new.push('\n');
    }
    format!("{before}{new}{after}")
}

fn appended(content: &str, document: &str) -> String {
    let line = if content.is_empty() || content.ends_with('\n') { "" } else { "\n" };
    let own = if document.starts_with(char::is_whitespace) { "" } else { "\n" };
    format!("{content}{line}---{own}{document}")
}

fn lost(file: &str) -> Failure {
    Failure::stalled(format!("`{file}` is not what was read of it"))
        .hint("look at the file's history, and restore it by hand")
}

/// The folders of `git:` images with the ids that they had, wherever an object names them.
fn images(content: &Value) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    collect(content, &mut found);
    found
}

fn collect(value: &Value, found: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(entries) => {
            let image = entries.get("image").and_then(Value::as_str).and_then(|image| image.strip_prefix("git:"));
            if let Some((folder, id)) = image.and_then(|image| image.rsplit_once('@')) {
                let folder = if folder == "." { "" } else { folder };
                found.insert(folder.to_owned(), id.to_owned());
            }
            entries.values().for_each(|value| collect(value, found));
        }
        Value::Array(entries) => entries.iter().for_each(|value| collect(value, found)),
        _ => {}
    }
}

/// Makes sure that the changed files bring back what goes back, and change nothing else: `restored` as they were, whatever
/// else declares them. The same objects in other stages may follow, where the files are shared.
///
/// # Errors
/// With what else would change, or did not come back.
pub fn check(restored: &[Restored<'_>], head: &Project, composed: &Project) -> Result<()> {
    for member in restored {
        let key = &member.earlier.key;
        let object = composed.stage(member.stage).and_then(|stage| stage.objects.get(key));
        if object.is_none_or(|object| object.digest != member.earlier.digest) {
            let message =
                format!("restoring the files does not bring back what `{}` was in {}", key.name, member.stage);
            let hint = "what it is made from stands elsewhere too, such as in `launchway.yaml` or the shipyard: restore it by hand";
            return Err(Failure::stalled(message).hint(hint));
        }
    }
    let goes_back = |key: &ObjectKey| restored.iter().any(|member| &member.earlier.key == key);
    let changed = changed(head, composed);
    let follows: Vec<&(StageName, ObjectKey)> = changed.iter().filter(|(_, key)| !goes_back(key)).collect();
    let mut others: Vec<String> = follows.iter().map(|(stage, key)| format!("{key} in {stage}")).collect();
    let together = together(restored, &follows);
    if head.shipyard != composed.shipyard || tasks_differ(head, composed) {
        others.push("the shipyard or its tasks".to_owned());
    }
    if others.is_empty() {
        return Ok(());
    }
    let more = others.len().saturating_sub(MOST_NAMES);
    others.truncate(MOST_NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let message = format!("restoring the files would also change {}{more}", others.join(", "));
    let hint = format!(
        "they share a file, a template or a folder that has changed since: name all of them, as in `launchway \
         rollback {together} --pull-request`, or restore what is meant by hand"
    );
    Err(Failure::stalled(message).hint(hint))
}

/// What to name so that all go back together, where all of them can be: the deployment configs of one stage.
fn together(restored: &[Restored<'_>], follows: &[&(StageName, ObjectKey)]) -> String {
    let Some(stage) = restored.first().map(|member| member.stage) else { return String::new() };
    let can_be = |(of, key): &(StageName, ObjectKey)| of == stage && key.kind == Kind::DeploymentConfig;
    if follows.is_empty() || follows.len() > MOST_NAMES || !follows.iter().all(|other| can_be(other)) {
        return "dc/ONE dc/OTHER".to_owned();
    }
    let keys = restored.iter().map(|member| &member.earlier.key).chain(follows.iter().map(|(_, key)| key));
    let names: Vec<String> = keys.map(|key| format!("dc/{}", key.name)).collect();
    format!("{} -s {stage}", names.join(" "))
}

fn changed(head: &Project, composed: &Project) -> Vec<(StageName, ObjectKey)> {
    let mut found = Vec::new();
    for stage in &head.stages {
        let other = composed.stage(&stage.name);
        let differs = |object: &Object, other: Option<&StageContent>| {
            other.and_then(|other| other.objects.get(&object.key)).is_none_or(|it| it.digest != object.digest)
        };
        let gone = stage.objects.iter().filter(|object| differs(object, other));
        found.extend(gone.map(|object| (stage.name.clone(), object.key.clone())));
        let new = other.into_iter().flat_map(|other| other.objects.iter());
        let new = new.filter(|object| !stage.objects.contains(&object.key));
        found.extend(new.map(|object| (stage.name.clone(), object.key.clone())));
    }
    found
}

/// Where tasks are declared may move with the lines of a file, and a folder that comes back is what they run from then on.
fn tasks_differ(head: &Project, composed: &Project) -> bool {
    let alike =
        |(one, other): (&StageContent, &StageContent)| one.name == other.name && same_tasks(&one.tasks, &other.tasks);
    head.stages.len() != composed.stages.len() || !head.stages.iter().zip(&composed.stages).all(alike)
}

#[cfg(test)]
mod tests;
