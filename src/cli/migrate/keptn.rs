//! `launchway migrate keptn CLONE`.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use crate::cli::output::{Complaint, Exit, Format, Outcome, Output, remark};
use crate::cli::work_file::refused;
use crate::error::{Context, Failure};
use crate::manifest::migrate::keptn::{self, Imported, KeptnFile, KeptnProject, SHIPYARD};
use crate::source::{EntryKind, Limits, Repository};

/// Where Keptn keeps stages that are no branches.
const STAGES: &str = ".keptn-stages/";
/// A larger file is left where it is.
const LARGEST: u64 = 4 << 20;
/// All files together.
const MOST_BYTES: usize = 256 << 20;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// A clone of the project's repository, or that itself
    #[arg(value_name = "CLONE", default_value = ".")]
    clone: PathBuf,
    /// Write all files into this folder, which is new or empty, instead of printing the shipyard
    #[arg(long, value_name = "FOLDER")]
    into: Option<PathBuf>,
    /// The Prometheus that has the indicators: with it, launchway judges the objectives of stages itself
    #[arg(long, value_name = "URL")]
    prometheus: Option<String>,
}

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> Outcome {
    let repository = Repository::around(&arguments.clone, Limits::default())?;
    let mut notes = Vec::new();
    let project = read(&repository, &mut notes)?;
    let imported = keptn::project(&project, arguments.prometheus.as_deref()).map_err(|problem| refused(&problem))?;
    notes.iter().chain(&imported.notes).for_each(remark);
    match &arguments.into {
        None if output.format() == Format::Json => {
            let notes = [notes, imported.notes].concat();
            let printed = json!({"text": imported.shipyard, "notes": notes});
            output.show(&printed, |_| String::new())?;
        }
        None => output.bytes(imported.shipyard.as_bytes())?,
        Some(folder) => {
            write(&imported, folder)?;
            let (count, folder) = (imported.files.len(), folder.display());
            remark(format!(
                "{count} files are in `{folder}`: read them, then commit and push them to a repository of their own"
            ));
        }
    }
    Ok(Exit::Good)
}

/// The project's files, from folders or from branches.
fn read(repository: &Repository, notes: &mut Vec<String>) -> Outcome<KeptnProject> {
    let mut reader = Reader { repository, notes, bytes: 0 };
    let (own, of_stages): (Vec<_>, Vec<_>) =
        reader.files("HEAD")?.into_iter().partition(|file| !file.path.starts_with(STAGES));
    let missing = || {
        let failure = Failure::stalled(format!("its head has no `{SHIPYARD}`: it is none of Keptn's projects"));
        Complaint::failed(
            failure.hint("name a clone of the project's upstream repository, with its main branch checked out"),
        )
    };
    let shipyard = own.iter().find(|file| file.path == SHIPYARD).ok_or_else(missing)?;
    let declared = keptn::stages(shipyard).map_err(|problem| refused(&problem))?;
    let mut stages: BTreeMap<String, Vec<KeptnFile>> = BTreeMap::new();
    for file in of_stages {
        let within = file.path.strip_prefix(STAGES).and_then(|path| path.split_once('/'));
        if let Some((stage, path)) = within {
            let (stage, path) = (stage.to_owned(), path.to_owned());
            stages.entry(stage).or_default().push(KeptnFile { path, ..file });
        }
    }
    if stages.is_empty() {
        for stage in declared {
            let names = [format!("refs/heads/{stage}"), format!("refs/remotes/origin/{stage}")];
            if let Some(branch) = names.iter().find(|name| repository.resolve(name).is_ok()) {
                stages.insert(stage, reader.files(branch)?);
            }
        }
    }
    Ok(KeptnProject { own, stages })
}

/// Reads revisions, and says what of them is not taken over.
struct Reader<'a> {
    repository: &'a Repository,
    notes: &'a mut Vec<String>,
    bytes: usize,
}

impl Reader<'_> {
    fn files(&mut self, revision: &str) -> Outcome<Vec<KeptnFile>> {
        let tree = self.repository.tree(&self.repository.resolve(revision)?)?;
        let shown = revision.rsplit('/').next().unwrap_or(revision);
        let mut files = Vec::new();
        for entry in tree.entries()? {
            let shown = format!("{shown}:{}", entry.path);
            let executable = match entry.kind {
                EntryKind::File => false,
                EntryKind::Executable => true,
                EntryKind::Symlink | EntryKind::Submodule | EntryKind::Refused(_) => {
                    self.notes.push(format!("{shown}: it is no regular file, and is not taken over"));
                    continue;
                }
            };
            match tree.read(&entry, LARGEST) {
                Ok(content) => {
                    self.bytes = self.bytes.saturating_add(content.len());
                    files.push(KeptnFile { path: entry.path, shown, content, executable });
                }
                Err(failure) => self.notes.push(format!("{shown}: it is not taken over: {}", failure.one_line())),
            }
            if self.bytes > MOST_BYTES {
                let failure = Failure::stalled(format!("the project has more than {} MiB", MOST_BYTES >> 20));
                return Err(Complaint::failed(failure));
            }
        }
        Ok(files)
    }
}

/// Writes all files into a folder that has none.
fn write(imported: &Imported, folder: &Path) -> Outcome<()> {
    let describe = |path: &Path| format!("cannot write `{}`", path.display());
    fs::create_dir_all(folder).or_stalled(|| describe(folder))?;
    if fs::read_dir(folder).or_stalled(|| describe(folder))?.next().is_some() {
        let failure = Failure::stalled(format!("`{}` is not empty", folder.display()));
        return Err(Complaint::failed(failure.hint("name a new folder: nothing is overwritten")));
    }
    for file in &imported.files {
        let path = folder.join(&file.path);
        let above = path.parent().unwrap_or(folder);
        fs::create_dir_all(above).or_stalled(|| describe(above))?;
        fs::write(&path, &file.content).or_stalled(|| describe(&path))?;
        if file.executable {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).or_stalled(|| describe(&path))?;
        }
    }
    Ok(())
}
