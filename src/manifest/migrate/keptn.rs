//! A project as Keptn kept it in Git, a branch or a folder for each stage, as a repository for launchway: the shipyard with the objectives
//! of its stages, and everything else where nobody takes it for declarations. Source: Keptn's resource service.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::manifest::edit::{Change, edit, in_lines, read};
use crate::manifest::findings::Findings;
use crate::manifest::pod_template::{items, text_at};
use crate::manifest::problem::Problem;
use crate::manifest::shipyard::{self, evaluation};
use crate::manifest::yaml::Document;
use crate::model::shipyard::EVALUATION_TASK;

/// The file that says what the stages are.
pub const SHIPYARD: &str = "shipyard.yaml";
/// What Keptn notes of projects, stages and services.
const METADATA: &str = "metadata.yaml";
/// Objectives.
const SLO: &str = "slo.yaml";
/// What indicators are asked of a Prometheus.
const SLI: &str = "prometheus/sli.yaml";
/// Where files go that no other place has.
const KEPT: &str = "keptn";
/// What stands for something in every query.
const FILLED: [&str; 4] = ["PROJECT", "STAGE", "SERVICE", "DURATION_SECONDS"];
/// Folders and files of Keptn's executors, and what there is in their place.
const EXECUTORS: [(&str, &str); 6] = [
    ("helm", "charts are for an executor, which finds them in Git; a `Deployment` is deployed by launchway itself"),
    ("job", "jobs are for an executor; a `Task` object runs a pod for a task by itself"),
    ("webhook", "webhooks are for an executor; `sinks` in the daemon's configuration tell others what happens"),
    ("dynatrace", "indicators of Dynatrace are for an executor of `evaluation`"),
    ("datadog", "indicators of Datadog are for an executor of `evaluation`"),
    ("remediation.yaml", "it is for an executor of `get-action`"),
];

/// A file of the project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptnFile {
    /// Its path in its stage or, outside of stages, in the project.
    pub path: String,
    /// What messages call it.
    pub shown: String,
    /// What it holds.
    pub content: Vec<u8>,
    /// Whether it can be executed.
    pub executable: bool,
}

/// All files of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptnProject {
    /// Those outside of stages.
    pub own: Vec<KeptnFile>,
    /// Those of each stage that has a branch or a folder.
    pub stages: BTreeMap<String, Vec<KeptnFile>>,
}

/// What becomes of a project.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The shipyard.
    pub shipyard: String,
    /// All files, the shipyard too, with their paths in the new repository.
    pub files: Vec<KeptnFile>,
    /// What has no counterpart, or is said in another way.
    pub notes: Vec<String>,
}

/// The stages that a shipyard declares.
///
/// # Errors
/// What is wrong with it.
pub fn stages(shipyard: &KeptnFile) -> Result<Vec<String>, Box<Problem>> {
    let (_, document, _) = migrated(shipyard)?;
    Ok(items(&document.value, "/spec/stages").map(|(_, stage)| text_at(stage, "/name").to_owned()).collect())
}

/// Imports a project. Objectives are judged by launchway where it is said which Prometheus is asked.
///
/// # Errors
/// What is wrong with one of the files.
pub fn project(project: &KeptnProject, prometheus: Option<&str>) -> Result<Imported, Box<Problem>> {
    let missing = || Box::new(Problem::in_file(SHIPYARD, "missing", "the project has no such file"));
    let shipyard = project.own.iter().find(|file| file.path == SHIPYARD).ok_or_else(missing)?;
    let (text, document, mut notes) = migrated(shipyard)?;
    let (mut changes, mut known) = (Vec::new(), BTreeSet::new());
    for (index, declared) in items(&document.value, "/spec/stages") {
        let name = text_at(declared, "/name");
        known.insert(name);
        let Some(files) = project.stages.get(name) else {
            notes.push(format!("{name}: the stage has neither a branch nor a folder"));
            continue;
        };
        let mut stage = Stage { name, own: &project.own, files, notes: &mut notes };
        stage.tell_of_executors();
        if let Some(objectives) = stage.objectives(prometheus)? {
            changes.extend(judged(declared, &format!("/spec/stages/{index}"), &objectives));
        }
    }
    let unknown = project.stages.keys().filter(|name| !known.contains(name.as_str()));
    notes
        .extend(unknown.map(|name| format!("{name}: the shipyard has no such stage, and nothing of it is taken over")));
    let text = edit(&shipyard.shown, &text, 0, &changes)?;
    check(SHIPYARD, &one(SHIPYARD, &text)?)?;
    let name = name(project, &document, &mut notes)?;
    let kept = project.stages.iter().filter(|(stage, _)| known.contains(stage.as_str()));
    let kept = kept.flat_map(|(stage, files)| files.iter().map(move |file| (format!("{KEPT}/{stage}"), file)));
    let kept = kept.chain(project.own.iter().map(|file| (KEPT.to_owned(), file)));
    let kept = kept.filter(|(_, file)| !is_taken_over(&file.path));
    let kept = kept.map(|(folder, file)| KeptnFile { path: format!("{folder}/{}", file.path), ..file.clone() });
    let files = [written("launchway.yaml", &described(&name)), written(SHIPYARD, &text)].into_iter().chain(kept);
    Ok(Imported { shipyard: text, files: files.collect(), notes })
}

fn written(path: &str, text: &str) -> KeptnFile {
    KeptnFile { path: path.to_owned(), shown: path.to_owned(), content: text.as_bytes().to_vec(), executable: false }
}

/// Executors find their files in Git, and nobody else is to read them.
fn described(name: &str) -> String {
    in_lines(&json!({
        "apiVersion": "launchway.dev/v1",
        "kind": "Project",
        "metadata": {"name": name},
        "spec": {"exclude": [format!("{KEPT}/**")]},
    }))
}

/// Whether a file is the shipyard, also where a stage's branch has it from the one that it was made from, or only Keptn's own notes.
fn is_taken_over(path: &str) -> bool {
    path == SHIPYARD || path.rsplit('/').next() == Some(METADATA)
}

/// The shipyard as one of 0.2, read, with what that has come to.
fn migrated(shipyard: &KeptnFile) -> Result<(String, Document, Vec<String>), Box<Problem>> {
    let migrated = super::shipyard(&shipyard.shown, &text(shipyard)?)?;
    let document = one(&shipyard.shown, &migrated.text)?;
    check(&shipyard.shown, &document)?;
    Ok((migrated.text, document, migrated.notes))
}

/// That launchway reads a shipyard without errors.
fn check(file: &str, document: &Document) -> Result<(), Box<Problem>> {
    let mut findings = Findings::new(file, document, "");
    shipyard::read(&document.value, &mut findings);
    first_error(findings)
}

fn first_error(findings: Findings<'_>) -> Result<(), Box<Problem>> {
    let mut errors = findings.problems.into_iter().filter(Problem::is_error);
    errors.next().map_or(Ok(()), |error| Err(Box::new(error)))
}

fn text(file: &KeptnFile) -> Result<String, Box<Problem>> {
    let not_text = |_| Box::new(Problem::in_file(&file.shown, "unreadable", "the file is not UTF-8"));
    String::from_utf8(file.content.clone()).map_err(not_text)
}

/// A file's only document.
fn one(file: &str, text: &str) -> Result<Document, Box<Problem>> {
    let mut documents = read(file, text)?;
    match (documents.pop(), documents.len()) {
        (Some(document), 0) => Ok(document),
        _ => Err(Box::new(Problem::in_file(file, "documents", "the file is to hold one document"))),
    }
}

/// What events call the project.
fn name(project: &KeptnProject, shipyard: &Document, notes: &mut Vec<String>) -> Result<String, Box<Problem>> {
    if let Some(file) = project.own.iter().find(|file| file.path == METADATA) {
        let metadata = one(&file.shown, &text(file)?)?.value;
        let named = |(key, value): (&String, &Value)| {
            key.eq_ignore_ascii_case("projectname").then(|| value.as_str().unwrap_or_default().to_owned())
        };
        let name = metadata.as_object().and_then(|fields| fields.iter().find_map(named));
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            return Ok(name);
        }
    }
    let name = text_at(&shipyard.value, "/metadata/name");
    let name = name.strip_prefix("shipyard-").unwrap_or(name);
    let name = if name.is_empty() { "project" } else { name }.to_owned();
    notes.push(format!(
        "no `{METADATA}` says what the project is called: events are to name `{name}`, as launchway.yaml says"
    ));
    Ok(name)
}

/// A stage on its way.
struct Stage<'a> {
    name: &'a str,
    own: &'a [KeptnFile],
    files: &'a [KeptnFile],
    notes: &'a mut Vec<String>,
}

impl<'a> Stage<'a> {
    fn note(&mut self, note: impl std::fmt::Display) {
        self.notes.push(format!("{}: {note}", self.name));
    }

    fn tell_of_executors(&mut self) {
        for (what, instead) in EXECUTORS {
            if self.files.iter().any(|file| file.path.split('/').any(|part| part == what)) {
                self.note(format!("`{what}`: {instead}"));
            }
        }
    }

    /// The services: folders of which Keptn has noted something.
    fn services(&self) -> Vec<&'a str> {
        let service = |file: &'a KeptnFile| match file.path.split_once('/') {
            Some((service, METADATA)) => Some(service),
            _ => None,
        };
        self.files.iter().filter_map(service).collect()
    }

    /// A file of the project, the stage and the service, as far as there is one.
    fn of_all_levels(&self, service: &str, path: &str) -> impl Iterator<Item = &'a KeptnFile> {
        let find = |files: &'a [KeptnFile], path: &str| files.iter().find(|file| file.path == path);
        let of_service = find(self.files, &format!("{service}/{path}"));
        [find(self.own, path), find(self.files, path), of_service].into_iter().flatten()
    }

    /// What the stage's evaluations are judged by, if that is the same for all services and launchway can do it.
    fn objectives(&mut self, prometheus: Option<&str>) -> Result<Option<Value>, Box<Problem>> {
        let services = self.services();
        let services = if services.is_empty() { vec![""] } else { services };
        let mut found: Vec<(&str, Option<Value>)> = Vec::new();
        for service in services {
            found.push((service, self.objectives_of(service)?));
        }
        let judged: Vec<&str> = found.iter().filter(|(_, own)| own.is_some()).map(|(service, _)| *service).collect();
        let Some((_, Some(first))) = found.iter().find(|(_, own)| own.is_some()) else { return Ok(None) };
        if found.iter().any(|(_, own)| own.as_ref() != Some(first)) {
            let judged = judged.join(", ");
            self.note(format!("not all services have the same objectives ({judged} have some): none are taken over, and `evaluation` is left to an executor"));
            return Ok(None);
        }
        let Some(url) = prometheus else {
            self.note(
                "its objectives are taken over with `--prometheus URL`; without, `evaluation` is left to an executor",
            );
            return Ok(None);
        };
        let mut objectives = first.clone();
        objectives["prometheus"]["url"] = url.into();
        self.tell_of_queries(&objectives);
        Ok(Some(objectives))
    }

    /// The objectives of a service, with the queries of their indicators.
    fn objectives_of(&self, service: &str) -> Result<Option<Value>, Box<Problem>> {
        let Some(file) = self.of_all_levels(service, SLO).last() else { return Ok(None) };
        let document = one(&file.shown, &text(file)?)?;
        let mut objectives = document.value.clone();
        let mut findings = Findings::new(&file.shown, &document, "");
        match objectives.is_object() {
            true => evaluation::read(&mut objectives, "", &mut findings),
            false => drop(findings.error("", "invalid", "must be a mapping with `objectives`")),
        }
        first_error(findings)?;
        let mut indicators = Map::new();
        for file in self.of_all_levels(service, SLI) {
            indicators.extend(queries(file)?);
        }
        let mut value = document.value;
        let is_asked = |sli: &String| items(&value, "/objectives").any(|(_, it)| text_at(it, "/sli") == sli);
        indicators.retain(|sli, _| is_asked(sli));
        if let Some(fields) = value.as_object_mut() {
            fields.remove("spec_version");
            fields.insert("prometheus".to_owned(), json!({"url": "", "queries": indicators}));
        }
        Ok(Some(value))
    }

    fn tell_of_queries(&mut self, objectives: &Value) {
        let queries = objectives["prometheus"]["queries"].as_object().cloned().unwrap_or_default();
        for (_, objective) in items(objectives, "/objectives") {
            let sli = text_at(objective, "/sli");
            if !queries.contains_key(sli) {
                self.note(format!("no `{SLI}` has a query for `{sli}`: events have to give its value"));
            }
        }
        let filter = objectives["filter"].as_object().cloned().unwrap_or_default();
        let is_filled = |name: &str| {
            let name = name.to_uppercase();
            FILLED.contains(&name.as_str()) || filter.keys().any(|key| key.to_uppercase() == name)
        };
        for (sli, query) in &queries {
            let asked = query.as_str().unwrap_or_default().split('$').skip(1);
            let name =
                |rest: &str| rest.chars().take_while(|it| it.is_alphanumeric() || *it == '_').collect::<String>();
            for name in asked.map(name).filter(|name| !name.is_empty() && !is_filled(name)) {
                self.note(format!("the query of `{sli}` has `${name}`, for which nothing stands here"));
            }
        }
    }
}

/// The queries of a file of indicators.
fn queries(file: &KeptnFile) -> Result<Map<String, Value>, Box<Problem>> {
    let document = one(&file.shown, &text(file)?)?;
    let mut findings = Findings::new(&file.shown, &document, "");
    let queries = document.value.get("indicators").and_then(Value::as_object).cloned();
    if queries.is_none() {
        findings.error("/indicators", "required", "must be a mapping of indicators to queries");
    }
    for (sli, _) in queries.iter().flatten().filter(|(_, query)| !query.is_string()) {
        findings.error(&format!("/indicators/{sli}"), "invalid", "must be text, a query");
    }
    first_error(findings)?;
    Ok(queries.unwrap_or_default())
}

/// What has a stage's evaluations judged: its tasks of that name or, if it has none, the sequence that Keptn has in every stage.
fn judged(stage: &Value, at: &str, objectives: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    for (sequence, declared) in items(stage, "/sequences") {
        for (task, declared) in items(declared, "/tasks").filter(|(_, task)| text_at(task, "/name") == EVALUATION_TASK)
        {
            let mut properties = declared.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
            if !properties.contains_key("objectives") {
                properties.extend(objectives.as_object().cloned().unwrap_or_default());
                changes.push(Change::set(format!("{at}/sequences/{sequence}/tasks/{task}/properties"), properties));
            }
        }
    }
    let is_declared = items(stage, "/sequences").any(|(_, it)| text_at(it, "/name") == EVALUATION_TASK);
    if changes.is_empty() && !is_declared {
        let task = json!({"name": EVALUATION_TASK, "properties": objectives});
        let sequence = json!({"name": EVALUATION_TASK, "tasks": [task]});
        changes.push(match items(stage, "/sequences").count() {
            0 => Change::set(format!("{at}/sequences"), json!([sequence])),
            several => Change::set(format!("{at}/sequences/{several}"), sequence),
        });
    }
    changes
}

#[cfg(test)]
mod tests;
