//! `launchway simulate`.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::output::{Complaint, Exit, Outcome, Output};
use super::work_file::refused;
use super::work_tree::WorkTree;
use crate::error::{Context, Failure, Result};
use crate::manifest::{Content, FileEntry, FileKind, Files, LARGEST, Options, Snapshot};
use crate::model::ids::RepositoryName;
use crate::model::project::Project;
use crate::model::seed::Seed;
use crate::simulation::play::{Played, play};
use crate::simulation::script::{self, COMMANDS, Script};

/// Where a shipyard stands in a repository.
const SHIPYARD: &str = "shipyard.yaml";

/// Play a script of events, results and time: what would be told, and where everything would stand, without a server
#[derive(Debug, Args)]
#[command(after_help = help())]
pub(super) struct Arguments {
    /// A shipyard, whose tasks are all done as the script says, or the folder of a repository, whose deployments and `Task`s
    /// are done by pods that only pretend
    #[arg(value_name = "SHIPYARD")]
    shipyard: PathBuf,
    /// What happens, a command a line; `-` reads it from the standard input
    #[arg(long, value_name = "FILE")]
    script: PathBuf,
}

fn help() -> String {
    let width = COMMANDS.iter().map(|(usage, _)| usage.chars().count()).max().unwrap_or_default();
    let commands = COMMANDS.iter().map(|(usage, does)| format!("  {usage:width$}  {does}\n"));
    let example = "printf 'answer *\\ntrigger dev.delivery cart\\n' | launchway simulate shipyard.yaml --script -";
    format!(
        "Commands of a script, where `#` begins a comment; TASK is `test`, or `dev/cart/test` where several are open:\n{}\n\
         Examples:\n  launchway simulate shipyard.yaml --script failing-test.txt\n  {example}",
        commands.collect::<String>()
    )
}

pub(super) async fn run(arguments: &Arguments, output: &mut Output) -> Outcome {
    let project = project(&arguments.shipyard)?;
    let (name, text) = read(&arguments.script)?;
    let script = Script::read(&name, &text).map_err(|problems| several(&problems))?;
    let Played { simulation, stopped } = play(&project, &script).await.map_err(Complaint::failed)?;
    output.show(&simulation, |simulation| simulation.text())?;
    stopped.map_or(Ok(Exit::Good), |problem| Err(refused(&problem)))
}

/// What a shipyard, or a repository's folder, declares.
fn project(path: &Path) -> Outcome<Arc<Project>> {
    let named = path.display().to_string();
    let read = if path.is_dir() {
        let tree = WorkTree::around(path)?;
        Snapshot::read(&tree, &options(&tree.name()))?
    } else {
        Snapshot::read(&Alone::read(path)?, &options(&folder_of(path)))?
    };
    let outcome = read.project();
    let mut problems = outcome.problems.clone();
    problems.iter_mut().filter(|it| !path.is_dir() && it.file == SHIPYARD).for_each(|it| it.file.clone_from(&named));
    match &outcome.project {
        Some(project) => Ok(project.clone()),
        None => Err(several(&problems.into_iter().filter(|problem| problem.is_error()).collect::<Vec<_>>())),
    }
}

/// The name of a file's folder, as a repository has the one of its own.
fn folder_of(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_default();
    let folder = path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    folder.unwrap_or_else(|| "project".to_owned())
}

fn options(name: &str) -> Options {
    Options { repository: RepositoryName::new(name), seed: Seed::NONE }
}

/// All that is wrong, a line each.
fn several(problems: &[crate::manifest::Problem]) -> Complaint {
    match problems {
        [problem] => refused(problem),
        problems => {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            Complaint::failed(Failure::stalled(lines.join("\n")))
        }
    }
}

fn read(file: &Path) -> Outcome<(String, String)> {
    let (name, most) = (file.display().to_string(), script::LARGEST as u64 + 1);
    let unreadable = || format!("cannot read `{name}`");
    let mut text = String::new();
    if file == Path::new("-") {
        std::io::stdin().take(most).read_to_string(&mut text).or_stalled(unreadable)?;
        return Ok(("<stdin>".to_owned(), text));
    }
    File::open(file).and_then(|file| file.take(most).read_to_string(&mut text)).or_stalled(unreadable)?;
    Ok((name, text))
}

/// A repository with nothing in it but a shipyard.
struct Alone {
    content: Vec<u8>,
}

impl Alone {
    fn read(path: &Path) -> Outcome<Self> {
        let unreadable = || format!("cannot read `{}`", path.display());
        let mut content = Vec::new();
        File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut content)).or_stalled(unreadable)?;
        Ok(Self { content })
    }
}

impl Files for Alone {
    fn entries(&self) -> Result<Vec<FileEntry>> {
        let kind = FileKind::File { executable: false };
        Ok(vec![FileEntry { id: SHIPYARD.to_owned(), path: SHIPYARD.to_owned(), kind }])
    }

    fn read(&self, _entry: &FileEntry) -> Result<Content> {
        let size = self.content.len() as u64;
        Ok(if size > LARGEST { Content::TooLarge(size) } else { Content::Whole(self.content.clone()) })
    }

    fn limit(&self) -> u64 {
        LARGEST
    }

    fn tree_id(&self, path: &str) -> Result<Option<String>> {
        Ok(path.is_empty().then(|| "0".repeat(40)))
    }

    fn kind(&self, path: &str) -> Result<Option<FileKind>> {
        Ok((path == SHIPYARD).then_some(FileKind::File { executable: false }))
    }
}
