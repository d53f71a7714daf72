//! What the project file and the shipyard say: which files are read, and which stages there are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::file;
use super::{Changed, FileMap, Options};
use crate::error::Result;
use crate::manifest::discover::{chart_of, is_read, is_under};
use crate::manifest::files::{Absence, FileEntry, Files};
use crate::manifest::findings::Findings;
use crate::manifest::problem::{Problem, Severity};
use crate::manifest::project::{self, PROJECT_FILE, SHIPYARD_FILE, Settings, StageSettings};
use crate::manifest::shipyard::{self, Doubt};
use crate::manifest::stage_context::{StageContext, Terms};
use crate::manifest::{names, yaml};
use crate::model::environment::EnvironmentSettings;
use crate::model::ids::{Namespace, ProjectName, StageName};
use crate::model::object::Location;
use crate::model::project::{OnFailure, StatusDetail};
use crate::model::shipyard::{Shipyard, Stage};

/// The frame that stages are filled into.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) name: ProjectName,
    pub(super) shipyard: Shipyard,
    pub(super) doubts: Vec<Doubt>,
    pub(super) stages: Vec<StageLayout>,
    pub(super) statuses: StatusDetail,
    pub(super) on_failure: OnFailure,
    pub(super) previews: Option<EnvironmentSettings>,
    pub(super) problems: Vec<Problem>,
    settings: Settings,
    shipyard_file: String,
    /// The files that it was read from.
    pub(super) files: Vec<String>,
    charts: BTreeSet<String>,
}

/// A stage without its objects.
#[derive(Debug)]
pub(super) struct StageLayout {
    pub(super) name: StageName,
    pub(super) namespace: Namespace,
    pub(super) delivery: Option<String>,
    pub(super) prune: bool,
    /// Empty for the whole tree.
    pub(super) folder: String,
    pub(super) context: Arc<StageContext>,
}

impl Layout {
    /// `shipyard` is the file that takes the place of the project's.
    pub(super) fn read(
        entries: &[FileEntry],
        files: &dyn Files,
        options: &Options,
        shipyard: Option<&str>,
    ) -> Result<Self> {
        let by_path: BTreeMap<_, _> = entries.iter().map(|entry| (entry.path.as_str(), entry)).collect();
        let mut problems = Vec::new();
        let settings = match by_path.get(PROJECT_FILE) {
            Some(entry) => settings(entry, files, &mut problems)?,
            None => Settings::default(),
        };
        let (shipyard_file, said_at) = match (shipyard, &settings.shipyard) {
            (Some(path), _) => (path.to_owned(), None),
            (None, Some((path, place))) => (path.clone(), Some(place)),
            (None, None) => (SHIPYARD_FILE.to_owned(), None),
        };
        let (shipyard, doubts) = match (by_path.get(shipyard_file.as_str()), said_at) {
            (Some(entry), _) => self::shipyard(entry, files, &mut problems)?,
            (None, Some(place)) => {
                let message = format!("the repository has no file `{shipyard_file}`");
                problems.push(Problem::error(place, "not-found", message));
                (Shipyard::implicit(), Vec::new())
            }
            (None, None) => (Shipyard::implicit(), Vec::new()),
        };
        let name = ProjectName::new(settings.name.clone().unwrap_or_else(|| default_name(options)));
        let stages = stages(&name, &shipyard, &settings, options, &mut problems);
        let previews = previews(&shipyard, &settings, &mut problems);
        let charts = entries.iter().filter_map(|entry| chart_of(&entry.path)).map(str::to_owned).collect();
        let (statuses, on_failure) = (settings.statuses, settings.on_failure);
        let read = [PROJECT_FILE, shipyard_file.as_str()].into_iter().filter(|file| by_path.contains_key(file));
        let files = read.map(str::to_owned).collect();
        Ok(Self {
            name,
            shipyard,
            doubts,
            stages,
            statuses,
            on_failure,
            previews,
            problems,
            settings,
            shipyard_file,
            files,
            charts,
        })
    }

    /// Whether a file is read for what stages declare.
    pub(super) fn reads(&self, path: &str) -> bool {
        let is_in_a_stage = || self.stages.iter().any(|stage| is_under(path, &stage.folder));
        path == PROJECT_FILE
            || path != self.shipyard_file && is_read(path, &self.settings, &self.charts) && is_in_a_stage()
    }

    /// The stages that a file is read for.
    pub(super) fn contexts(&self, path: &str) -> Vec<Arc<StageContext>> {
        let stages = self.stages.iter().filter(|stage| is_under(path, &stage.folder));
        stages.map(|stage| Arc::clone(&stage.context)).collect()
    }

    /// The stages' folders that do not exist.
    pub(super) fn missing_folders(&self, files: &dyn Files) -> Result<Vec<Problem>> {
        let mut problems = Vec::new();
        let said = self.settings.stages.values().filter_map(|stage| stage.path.as_ref());
        for (folder, place) in said.filter(|(folder, _)| !folder.is_empty()) {
            if files.tree_id(folder)?.is_none() {
                let (message, hint) = Absence::of(folder, files)?.explain(folder);
                problems.push(Problem::error(place, "not-found", message).hint(hint));
            }
        }
        Ok(problems)
    }

    /// Warns of what `spec.include` names in vain, given the files of stages that declare something or are wrong.
    pub(super) fn idle_globs(&self, files: &FileMap) -> Vec<Problem> {
        let Some(include) = &self.settings.include else { return Vec::new() };
        let of_stages = files.keys().map(|path| &**path);
        include.idle(&of_stages.chain(self.files.iter().map(String::as_str)).collect::<Vec<_>>())
    }

    /// Whether a changed path may change the layout itself.
    pub(super) fn depends_on(&self, (path, _): &Changed) -> bool {
        path == PROJECT_FILE || path == SHIPYARD_FILE || *path == self.shipyard_file || chart_of(path).is_some()
    }

    pub(super) fn is_strict(&self) -> bool {
        self.settings.strict
    }
}

fn settings(entry: &FileEntry, files: &dyn Files, problems: &mut Vec<Problem>) -> Result<Settings> {
    // Other documents of the file, and its syntax errors, are read with the stages' files.
    let Ok(bytes) = file::content(entry, files)? else { return Ok(Settings::default()) };
    let reading = yaml::read(&bytes);
    let is_project = |document: &&yaml::Document| document.value.get("kind").is_some_and(|kind| kind == "Project");
    let mut projects = reading.documents.iter().filter(is_project);
    let Some(document) = projects.next() else {
        if reading.errors.is_empty() {
            let hint = "write `apiVersion: launchway.dev/v1` and `kind: Project`";
            problems.push(Problem::in_file(PROJECT_FILE, "required", "this file holds no Project").hint(hint));
        }
        return Ok(Settings::default());
    };
    let mut findings = Findings::new(PROJECT_FILE, document, "");
    if document.value.get("apiVersion").is_none_or(|version| version != "launchway.dev/v1") {
        findings.error("/apiVersion", "unsupported-value", "must be `launchway.dev/v1`");
    }
    let settings = project::read(&document.value, &mut findings);
    problems.append(&mut findings.problems);
    if let Some(second) = projects.next() {
        let mut findings = Findings::new(PROJECT_FILE, second, "");
        findings.error("", "duplicate", "a repository declares one Project");
        problems.append(&mut findings.problems);
    }
    Ok(settings)
}

fn shipyard(entry: &FileEntry, files: &dyn Files, problems: &mut Vec<Problem>) -> Result<(Shipyard, Vec<Doubt>)> {
    let implicit = || (Shipyard::implicit(), Vec::new());
    let bytes = match file::content(entry, files)? {
        Ok(bytes) => bytes,
        Err(problem) => {
            problems.push(Problem { severity: Severity::Error, ..problem });
            return Ok(implicit());
        }
    };
    let reading = yaml::read(&bytes);
    problems.extend(reading.errors.iter().map(|error| file::problem(&entry.path, error)));
    let [document] = reading.documents.as_slice() else {
        if reading.errors.is_empty() {
            let message = "the shipyard's file must hold exactly one document";
            problems.push(Problem::in_file(&entry.path, "invalid", message));
        }
        return Ok(implicit());
    };
    let mut findings = Findings::new(&entry.path, document, "");
    let shipyard = shipyard::read(&document.value, &mut findings);
    problems.append(&mut findings.problems);
    let with_doubts = |shipyard| {
        let doubts = shipyard::doubts(&shipyard, &findings);
        (shipyard, doubts)
    };
    Ok(shipyard.map_or_else(implicit, with_doubts))
}

/// The repository's name as a project's.
fn default_name(options: &Options) -> String {
    let lower = options.repository.as_str().to_lowercase();
    let allowed = |c: char| if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '-' };
    let name: String = lower.chars().map(allowed).collect();
    let name = name.trim_matches('-');
    match name.chars().next() {
        None => "project".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("p{name}"),
        Some(_) => name.to_owned(),
    }
}

fn stages(
    project: &ProjectName,
    shipyard: &Shipyard,
    settings: &Settings,
    options: &Options,
    problems: &mut Vec<Problem>,
) -> Vec<StageLayout> {
    for (name, stage) in &settings.stages {
        if shipyard.stage(&StageName::new(name.as_str())).is_none() {
            let known: Vec<_> = shipyard.stages.iter().map(|stage| stage.name.as_str()).collect();
            let message = format!("the shipyard has no stage `{name}`");
            let hint = format!("it has {}", known.join(", "));
            problems.push(Problem::error(&stage.location, "not-found", message).hint(hint));
        }
    }
    let mut targets: BTreeMap<Namespace, &StageName> = BTreeMap::new();
    let mut stages = Vec::new();
    for declared in &shipyard.stages {
        let settings = settings.stages.get(declared.name.as_str());
        let stage = stage(project, declared, settings, options, problems);
        let place = settings.map_or_else(in_project_file, |settings| settings.location.clone());
        if let Err(wrong) = names::label(stage.namespace.as_str()) {
            let message = format!("the namespace `{}` of the stage `{}` {wrong}", stage.namespace, stage.name);
            let hint = format!("set `spec.stages.{}.namespace` in {PROJECT_FILE}", stage.name);
            problems.push(Problem::error(&place, "invalid", message).hint(hint));
        }
        if let Some(other) = targets.insert(stage.namespace.clone(), &declared.name) {
            let message =
                format!("the stages `{other}` and `{}` both use the namespace `{}`", stage.name, stage.namespace);
            problems.push(Problem::error(&place, "duplicate", message).hint("give each stage a namespace of its own"));
        }
        stages.push(stage);
    }
    stages
}

/// Which environments pull requests get, if the stage is there that they are made after.
fn previews(shipyard: &Shipyard, settings: &Settings, problems: &mut Vec<Problem>) -> Option<EnvironmentSettings> {
    let (wanted, place) = settings.previews.as_ref()?;
    if shipyard.stage(&wanted.stage).is_none() {
        let known: Vec<_> = shipyard.stages.iter().map(|stage| stage.name.as_str()).collect();
        let message = format!("the shipyard has no stage `{}`", wanted.stage);
        let hint = format!("environments are made after a stage: one of {}", known.join(", "));
        problems.push(Problem::error(place, "not-found", message).hint(hint));
    }
    Some(wanted.clone())
}

fn in_project_file() -> Location {
    Location { file: PROJECT_FILE.to_owned(), line: 1, column: 1 }
}

fn stage(
    project: &ProjectName,
    declared: &Stage,
    settings: Option<&StageSettings>,
    options: &Options,
    problems: &mut Vec<Problem>,
) -> StageLayout {
    let named = settings.and_then(|settings| settings.delivery.as_ref());
    let delivery = declared.delivery_sequence(named.map(|(name, _)| name.as_str()));
    if let (Some((name, place)), None) = (named, delivery) {
        let message = format!("the stage `{}` has no sequence `{name}`", declared.name);
        problems.push(Problem::error(place, "not-found", message));
    }
    let namespace = settings.and_then(|settings| settings.namespace.as_ref()).map(|(name, _)| name.clone());
    let context = StageContext {
        project: project.clone(),
        stage: declared.name.clone(),
        terms: Terms {
            runtime: settings.map(|settings| settings.runtime).unwrap_or_default(),
            strategy: declared.overriding_strategy(delivery.map(|sequence| sequence.name.as_str())),
        },
        parameters: settings.map(|settings| settings.parameters.clone()).unwrap_or_default(),
        seed: options.seed.clone(),
    };
    StageLayout {
        name: declared.name.clone(),
        namespace: Namespace::new(namespace.unwrap_or_else(|| format!("{project}-{}", declared.name))),
        delivery: delivery.map(|sequence| sequence.name.clone()),
        prune: settings.is_none_or(|settings| settings.prune),
        folder: settings.and_then(|settings| settings.path.as_ref()).map(|(path, _)| path.clone()).unwrap_or_default(),
        context: Arc::new(context),
    }
}
