//! Older kinds as those that took their place; here a `DeploymentConfig` as the `Deployment` that means the same, in the
//! words of its file.
//!
//! Everything moves to where a `Deployment` says it: hooks, triggers and what only launchway's strategies have to its
//! annotations. Comments go along with what they stand at.

mod check;
pub mod keptn;
mod shipyard;
mod strategy;
mod triggers;

use serde::Serialize;
use serde_json::{Value, json};

use super::deployment::annotations::{HOOKS, INERT};
use super::deployment_config::in_words_of_the_proposal;
use super::edit::{Change, Config, below, configs, words};
use super::pod_template::text_at;
use super::problem::Problem;
use crate::model::object::{CONFIG_LABEL, Kind};

pub use shipyard::shipyard;

/// A file with what took the place of older kinds.
#[derive(Clone, Debug, Serialize)]
pub struct Migrated {
    /// All of it.
    pub text: String,
    /// The names of what was migrated.
    pub names: Vec<String>,
    /// What has no counterpart, or was said in another way: sentences that begin with the object's name.
    pub notes: Vec<String>,
}

/// Migrates every `DeploymentConfig` of a file, also those in its lists and templates.
///
/// # Errors
/// What is wrong with the file, or why one of them cannot be migrated.
pub fn deployment_configs(file: &str, text: &str) -> Result<Migrated, Box<Problem>> {
    let mut migrated = Migrated { text: text.to_owned(), names: Vec::new(), notes: Vec::new() };
    let mut origins = configs(file, text)?.into_iter().filter(|config| config.kind == Kind::DeploymentConfig);
    let mut read = check::problems(file, text);
    let written = read.clone();
    // What is migrated is none any more, so that the next one is the first.
    while let Some(config) = first(file, &migrated.text)? {
        let mut step = Step { config, text: migrated.text, notes: Vec::new() };
        step.migrate()?;
        let now = check::problems(file, &step.text);
        if let Some(origin) = origins.next() {
            check::nothing_new(&origin, &written, (&read, &now))?;
        }
        read = now;
        let name = &step.config.name;
        migrated.notes.extend(step.notes.iter().map(|note| format!("{name}: {note}")));
        migrated.names.push(name.clone());
        migrated.text = step.text;
    }
    migrated.notes.extend(lost_comments(text, &migrated.text));
    Ok(migrated)
}

fn first(file: &str, text: &str) -> Result<Option<Config>, Box<Problem>> {
    Ok(configs(file, text)?.into_iter().find(|config| config.kind == Kind::DeploymentConfig))
}

/// The comments that nothing is left of which they stood at. Texts of annotations keep theirs, also where they stand in one line.
fn lost_comments(before: &str, after: &str) -> Vec<String> {
    let mut kept = comments(after);
    for document in &super::yaml::read(after.as_bytes()).documents {
        in_one_line(&document.value, after, &mut |text| kept.extend(comments(text)));
    }
    let mut lost = comments(before);
    lost.retain(|comment| match kept.iter().position(|other| other == comment) {
        Some(at) => {
            kept.swap_remove(at);
            false
        }
        None => true,
    });
    lost.into_iter().map(|comment| format!("the comment `{comment}` stood at something that is gone")).collect()
}

fn comments(text: &str) -> Vec<String> {
    let comment = |line: &str| Some(line[comment_at(line)?..].trim().to_owned()).filter(|comment| comment.len() > 1);
    text.lines().filter_map(comment).collect()
}

/// Where the comment of a line begins; what stands between quotes is none.
fn comment_at(line: &str) -> Option<usize> {
    let (mut quote, mut before) = (None, ' ');
    for (at, this) in line.char_indices() {
        match quote {
            Some(open) if this == open && before != '\\' => quote = None,
            Some(_) => {}
            None if this == '#' && before.is_whitespace() => return Some(at),
            None if matches!(this, '\'' | '"') && (before.is_whitespace() || "[{,:".contains(before)) => {
                quote = Some(this);
            }
            None => {}
        }
        before = this;
    }
    None
}

/// Has the texts of several lines taken that a file has in one.
fn in_one_line(value: &Value, file: &str, take: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) if text.contains('\n') && file.contains(&value.to_string()) => take(text),
        Value::Array(items) => items.iter().for_each(|item| in_one_line(item, file, take)),
        Value::Object(map) => map.values().for_each(|value| in_one_line(value, file, take)),
        _ => {}
    }
}

/// One of them on its way.
struct Step {
    config: Config,
    text: String,
    notes: Vec<String>,
}

impl Step {
    fn migrate(&mut self) -> Result<(), Box<Problem>> {
        let spec = self.spec();
        if let Some(place) = in_words_of_the_proposal(self.config.value()) {
            let problem = self.config.problem(place, "this is in the words of a proposal, which are not migrated");
            return Err(Box::new(problem.hint("write `spec.template`, `spec.replicas` and `spec.selector` first")));
        }
        self.inert()?;
        self.selector(&spec)?;
        self.labels(&spec)?;
        if spec.get("replicas").is_none_or(Value::is_null) {
            self.change(vec![Change::set("/spec/replicas", 0)])?;
        }
        if spec.get("test") == Some(&json!(true)) {
            self.notes.push("`test: true` has no counterpart: scale it to zero instead".to_owned());
        }
        self.drop_if_there("/spec/test")?;
        self.drop_if_there("/status")?;
        self.hooks()?;
        self.strategy()?;
        self.triggers()?;
        self.change(vec![Change::set("/apiVersion", "apps/v1"), Change::set("/kind", "Deployment")])
    }

    fn spec(&self) -> Value {
        self.config.value().get("spec").cloned().unwrap_or_default()
    }

    /// Makes changes, and reads the file again.
    fn change(&mut self, changes: Vec<Change>) -> Result<(), Box<Problem>> {
        self.text = self.config.with(&self.text, changes)?;
        let same = |other: &Config| other.document == self.config.document && other.pointer == self.config.pointer;
        if let Some(now) = configs(&self.config.location.file, &self.text)?.into_iter().find(same) {
            self.config = now;
        }
        Ok(())
    }

    fn drop_if_there(&mut self, pointer: &str) -> Result<(), Box<Problem>> {
        if self.config.value().pointer(pointer).is_none() {
            return Ok(());
        }
        self.change(vec![Change::moved(pointer)])
    }

    /// The lines of a value as they stand in the file, where they can move.
    fn words(&self, pointer: &str, with_key: bool) -> Option<String> {
        words(&self.text, self.config.document, &format!("{}{pointer}", self.config.pointer), with_key)
    }

    fn annotate(&mut self, name: &str, text: &str) -> Result<(), Box<Problem>> {
        self.change(vec![Change::set(below("/metadata/annotations", name), text)])
    }

    /// Annotations that only a `Deployment` has an effect of: what they say was never so.
    fn inert(&mut self) -> Result<(), Box<Problem>> {
        let annotations = || self.config.value().pointer("/metadata/annotations").and_then(Value::as_object);
        let found: Vec<&str> =
            INERT.into_iter().filter(|name| annotations().is_some_and(|all| all.contains_key(*name))).collect();
        if annotations().is_some_and(|all| !found.is_empty() && all.len() == found.len()) {
            self.drop_if_there("/metadata/annotations")?;
        }
        for name in found {
            self.notes.push(format!("the annotation `{name}` had no effect, and is gone"));
            self.drop_if_there(&below("/metadata/annotations", name))?;
        }
        Ok(())
    }

    /// What a `Deployment` selects by is a level deeper, and never left out.
    fn selector(&mut self, spec: &Value) -> Result<(), Box<Problem>> {
        let own = spec.get("selector").filter(|own| own.as_object().is_some_and(|own| !own.is_empty()));
        let Some(labels) = own.or_else(|| spec.pointer("/template/metadata/labels")).cloned() else {
            return Err(self.config.problem("/spec", "this has neither a selector nor labels of the template"));
        };
        let (at, wanted) = ("/spec/selector", json!({"matchLabels": labels}));
        let change = match own.and_then(|_| self.words(at, false)) {
            Some(words) => {
                let lines: String = words.lines().map(|line| format!("  {line}\n")).collect();
                Change::written(at, wanted, format!("matchLabels:\n{lines}"))
            }
            None => Change::set(at, wanted),
        };
        self.change(vec![change])
    }

    /// Pods of a `DeploymentConfig` are labelled with its name by themselves; of a `Deployment` they are where its file says so, which
    /// it has to where something of the file selects by that.
    fn labels(&mut self, spec: &Value) -> Result<(), Box<Problem>> {
        let at = format!("/spec/template/metadata/labels/{CONFIG_LABEL}");
        let is_declared = spec.pointer(&at["/spec".len()..]).is_some();
        let name = self.config.name.clone();
        if is_declared || !is_selected_by(&self.text, &name) {
            return Ok(());
        }
        self.notes.push(format!(
            "its pods get the label `{CONFIG_LABEL}: {name}` from its file now, as something selects by it"
        ));
        self.change(vec![Change::set(at, name)])
    }

    /// Hooks go to an annotation, with the comments above and in them.
    fn hooks(&mut self) -> Result<(), Box<Problem>> {
        let strategy = self.config.value().pointer("/spec/strategy").cloned().unwrap_or_default();
        let block = super::deployment_config::block_of(text_at(&strategy, "/type"));
        let (mut text, mut moved) = (String::new(), Vec::new());
        for place in [block, "lifecycle"] {
            for point in ["pre", "mid", "post"] {
                let pointer = format!("/spec/strategy/{place}/{point}");
                let Some(hook) = self.config.value().pointer(&pointer).cloned() else { continue };
                moved.push(Change::moved(&*pointer));
                if !hook.is_null() {
                    let words = self.words(&pointer, true).filter(|words| says(words, &json!({point: hook})));
                    text.push_str(&words.unwrap_or_else(|| block_of(&json!({point: hook}))));
                }
            }
        }
        if text.is_empty() {
            return self.change(moved);
        }
        moved.push(Change::moved("/spec/strategy/lifecycle"));
        moved.retain(|change| self.config.value().pointer(&change.pointer).is_some());
        self.change(moved)?;
        self.annotate(HOOKS, &text)
    }
}

/// Whether something of a file names a deployment config by the label that its pods have by themselves.
fn is_selected_by(text: &str, name: &str) -> bool {
    let label = format!("{CONFIG_LABEL}: {name}");
    let ends = |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric() || matches!(next, '-' | '.' | '_'));
    text.match_indices(&label).any(|(at, _)| ends(&text[at + label.len()..]))
}

/// Whether lines mean a value without the rest of their file.
fn says(words: &str, value: &Value) -> bool {
    let reading = super::yaml::read(words.as_bytes());
    reading.errors.is_empty() && reading.documents.len() == 1 && reading.documents[0].value == *value
}

/// A value as lines of a block.
fn block_of(value: &Value) -> String {
    super::edit::in_lines(value)
}

#[cfg(test)]
mod tests;
