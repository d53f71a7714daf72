//! A file of a work tree that a verb changes: found by what it declares, shown as a difference, written whole.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::arguments::Global;
use super::output::{Complaint, Exit, Outcome, Output, remark};
use super::work_tree::WorkTree;
use crate::error::{Context, Failure};
use crate::manifest::edit::{Config, configs};
use crate::manifest::{Options, Problem, Snapshot};
use crate::model::ids::RepositoryName;
use crate::model::object::{Kind, ObjectKey};
use crate::model::project::Project;
use crate::model::seed::Seed;
use crate::plan::line_diff::LineDiff;

/// What every verb takes that changes a file.
#[derive(Debug, Args)]
pub(super) struct HowToEdit {
    /// The file, where several declare it
    #[arg(short, long, value_name = "FILE")]
    filename: Option<PathBuf>,
    /// Print the difference, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// A file as it is now.
#[derive(Debug)]
pub(super) struct WorkFile {
    path: PathBuf,
    /// As messages name it.
    pub(super) name: String,
    pub(super) text: String,
}

/// What became of a file.
#[derive(Debug, Serialize)]
struct Edited {
    object: String,
    file: String,
    changed: bool,
    /// Where nothing was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<String>,
}

/// Nothing is changed through a link, which may lead out of the work tree.
fn require_regular(path: &Path, name: &str) -> Outcome<()> {
    let found = fs::symlink_metadata(path).or_stalled(|| format!("cannot read `{name}`"))?;
    if found.is_file() {
        return Ok(());
    }
    let failure = Failure::stalled(format!("`{name}` is no regular file, and is not changed"));
    Err(Complaint::failed(failure.hint("name the file itself: nothing is read through symlinks")))
}

impl WorkFile {
    /// Reads a file.
    ///
    /// # Errors
    /// If it is none, or not text.
    pub(super) fn read(path: &Path, name: &str) -> Outcome<Self> {
        let unreadable = || format!("cannot read `{name}`");
        require_regular(path, name)?;
        let bytes = fs::read(path).or_stalled(unreadable)?;
        let not_text = |_| Complaint::failed(Failure::stalled(format!("`{name}` is not UTF-8, and is not changed")));
        let text = String::from_utf8(bytes).map_err(not_text)?;
        Ok(Self { path: path.to_owned(), name: name.to_owned(), text })
    }

    /// The one deployment config of a name in the work tree here, in the chosen stage, or in the file that is named.
    ///
    /// # Errors
    /// If there is none, or several.
    pub(super) fn declaring(name: &str, how: &HowToEdit, global: &Global) -> Outcome<(Self, Config)> {
        if let Some(file) = &how.filename {
            require_regular(file, &file.to_string_lossy())?;
        }
        let around = how.filename.as_deref().unwrap_or(Path::new("."));
        let tree = WorkTree::around(around)?;
        let options = Options { repository: RepositoryName::new(tree.name()), seed: Seed::NONE };
        let files: Vec<String> = match &how.filename {
            Some(file) => vec![tree.relative(file)?],
            None => Snapshot::read(&tree, &options)?.files().map(str::to_owned).collect(),
        };
        let in_stage = match &global.stage {
            Some(stage) => Some(place_in(stage, name, &Snapshot::read(&tree, &options)?)?),
            None => None,
        };
        let (mut found, mut broken) = (Vec::new(), None);
        for file in &files {
            let read = Self::read(&tree.path(file), file)?;
            match configs(file, &read.text) {
                Ok(declared) => found.extend(declared.into_iter().filter(|config| config.name == name)),
                Err(problem) if read.text.contains(name) => broken = broken.or(Some(problem)),
                Err(_) => {}
            }
        }
        found.retain(|config| in_stage.as_ref().is_none_or(|place| *place == config.location.file));
        let config = match (found.pop(), broken) {
            (Some(config), _) if found.is_empty() => config,
            (Some(config), _) => return Err(several(name, found.iter().chain([&config]))),
            (None, Some(problem)) => return Err(refused(&problem)),
            (None, None) => return Err(Complaint::failed(none(name, how, global))),
        };
        let file = Self::read(&tree.path(&config.location.file), &config.location.file)?;
        Ok((file, config))
    }

    /// Writes what the text has become, or shows it; `done` says what was done to the object.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn put(&self, new: &str, object: String, done: &str, how: &HowToEdit, output: &mut Output) -> Outcome {
        let changed = new != self.text;
        let difference = how.dry_run.then(|| self.difference(new));
        if changed && !how.dry_run {
            self.write(new)?;
        }
        let edited = Edited { object, file: self.name.clone(), changed, difference };
        output.show(&edited, |edited| match &edited.difference {
            Some(difference) => difference.clone(),
            None if edited.changed => format!("{} {done}\n", edited.object),
            None => String::new(),
        })?;
        match (changed, how.dry_run) {
            (true, false) => remark(format!("`{}` is changed: commit and push it", self.name)),
            (true, true) => {}
            (false, _) => remark(format!("nothing to change in `{}`", self.name)),
        }
        Ok(Exit::Good)
    }

    fn difference(&self, new: &str) -> String {
        LineDiff::of(&self.text, new).unified(&format!("a/{}", self.name), &format!("b/{}", self.name))
    }

    /// Whole or not at all, with the rights that the file had.
    pub(super) fn write(&self, new: &str) -> Outcome<()> {
        let unwritable = || format!("cannot write `{}`", self.name);
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let draft = self.path.with_file_name(format!(".{name}.launchway-{}", std::process::id()));
        let rights = fs::metadata(&self.path).or_stalled(unwritable)?.permissions();
        let written = fs::write(&draft, new)
            .and_then(|()| fs::set_permissions(&draft, rights))
            .and_then(|()| fs::rename(&draft, &self.path));
        if written.is_err() {
            // What could not be written is not there, or in the way of nobody.
            drop(fs::remove_file(&draft));
        }
        Ok(written.or_stalled(unwritable)?)
    }
}

/// The file that declares a deployment config for a stage.
fn place_in(stage: &str, name: &str, snapshot: &Snapshot) -> Outcome<String> {
    let outcome = snapshot.project();
    let Some(project) = &outcome.project else {
        let first = outcome.problems.iter().find(|problem| problem.is_error());
        let failure = Failure::stalled("the files are broken, so that nobody can tell what belongs to the stage");
        return Err(Complaint::failed(failure.hint(first.map(ToString::to_string).unwrap_or_default())));
    };
    file_in(stage, name, project).ok_or_else(|| {
        Complaint::failed(Failure::stalled(format!("stage `{stage}` declares no deployment config `{name}`")))
    })
}

fn file_in(stage: &str, name: &str, project: &Project) -> Option<String> {
    let stage = project.stages.iter().find(|content| content.name.as_str() == stage)?;
    let key = ObjectKey { kind: Kind::DeploymentConfig, name: name.to_owned() };
    Some(stage.objects.get(&key)?.location.file.clone())
}

fn several<'a>(name: &str, found: impl Iterator<Item = &'a Config>) -> Complaint {
    let places: Vec<String> =
        found.map(|config| format!("-f {} (line {})", config.location.file, config.location.line)).collect();
    let failure = Failure::stalled(format!("there is more than one deployment config `{name}`"));
    Complaint::usage(failure.hint(format!("choose a stage with -s, or one file:\n  {}", places.join("\n  "))))
}

fn none(name: &str, how: &HowToEdit, global: &Global) -> Failure {
    let place = match (&how.filename, &global.stage) {
        (Some(file), _) => format!("in `{}`", file.display()),
        (None, Some(stage)) => format!("in the work tree here for stage `{stage}`"),
        (None, None) => "in the work tree here".to_owned(),
    };
    Failure::stalled(format!("there is no deployment config `{name}` {place}"))
        .hint("this verb changes files: run it where they are, or name one with `-f FILE`")
}

/// A file that cannot be read or changed so, said where.
pub(super) fn refused(problem: &Problem) -> Complaint {
    let place = format!("{}:{}:{}: {}", problem.file, problem.line, problem.column, problem.message);
    let failure = Failure::stalled(place);
    Complaint::failed(match &problem.hint {
        Some(hint) => failure.hint(hint.clone()),
        None => failure,
    })
}
