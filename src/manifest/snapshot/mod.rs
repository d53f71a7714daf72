//! A revision's files as a project, kept so that the next revision costs what changed in it.
//!
//! Three layers, each shared with the next snapshot where it stays the same: the *layout* (project file and shipyard:
//! which files are read, which stages exist), the *files* (parsed, images resolved), and the *outcome* (stages with
//! their objects). [`Snapshot::update`] gives exactly what [`Snapshot::read`] would.

mod assemble;
mod file;
mod layout;
mod tasks;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use rpds::{RedBlackTreeMapSync, RedBlackTreeSetSync};
use serde_json::Value;

use super::discover::is_under;
use super::files::{Absence, FileEntry, Files};
use super::problem::{Problem, Severity};
use super::program::Program;
use super::{digest, globs};
use crate::error::Result;
use crate::model::ids::RepositoryName;
use crate::model::project::Project;
use crate::model::seed::Seed;
use assemble::{Assembled, assemble, replace};
use file::{Parsed, Resolved};
use layout::Layout;

pub(super) use file::problem;

/// What is known besides the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The project's name unless `launchway.yaml` says otherwise.
    pub repository: RepositoryName,
    /// What the generated values of templates are derived from; [`Seed::NONE`] where nothing is deployed.
    pub seed: Seed,
}

/// Everything parsed of one revision. Cloning costs nothing.
#[derive(Clone, Debug)]
pub struct Snapshot(Arc<State>);

/// A project, or what is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Absent if any problem is an error.
    pub project: Option<Arc<Project>>,
    /// Errors and warnings, by file and line.
    pub problems: Vec<Problem>,
}

#[derive(Debug)]
struct State {
    options: Options,
    layout: Arc<Layout>,
    files: FileMap,
    wrong: Paths,
    folders: Folders,
    assembled: Assembled,
    outcome: Outcome,
}

/// Files that declare something or are wrong, by path. A revision's map shares all but what changed with the one before.
type FileMap = RedBlackTreeMapSync<Arc<str>, Arc<Resolved>>;

/// Paths of files, of which revisions share all but what changed, too.
type Paths = RedBlackTreeSetSync<Arc<str>>;

/// The folders that images name, and what else deployment configs follow, with their ids and the files that name them.
type Folders = RedBlackTreeMapSync<Arc<str>, Folder>;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Folder {
    id: Result<Arc<str>, Absence>,
    used_by: Paths,
}

/// A changed path: what is there now, or nothing.
pub type Changed = (String, Option<FileEntry>);

impl Snapshot {
    /// Reads a whole tree.
    ///
    /// # Errors
    /// If the tree cannot be read; what is wrong in its files is in [`Snapshot::project`].
    pub fn read(files: &dyn Files, options: &Options) -> Result<Self> {
        Self::read_reusing(files, options, &FileMap::default(), None)
    }

    /// Reads a whole tree as if a file of it were the project's shipyard.
    ///
    /// # Errors
    /// If the tree cannot be read.
    pub fn read_for_shipyard(files: &dyn Files, options: &Options, shipyard: &str) -> Result<Self> {
        Self::read_reusing(files, options, &FileMap::default(), Some(shipyard))
    }

    /// The next revision's snapshot. `changed` are all paths that differ; the work is proportional to them unless
    /// the project file, the shipyard or a chart is among them.
    ///
    /// # Errors
    /// If the tree cannot be read.
    pub fn update(&self, changed: &[Changed], files: &dyn Files, options: &Options) -> Result<Self> {
        let state = &*self.0;
        if *options != state.options || changed.iter().any(|change| state.layout.depends_on(change)) {
            return Self::read_reusing(files, options, &state.files, None);
        }
        let mut next = Next {
            files: state.files.clone(),
            wrong: state.wrong.clone(),
            folders: state.folders.clone(),
            ..Next::default()
        };
        for (path, entry) in changed {
            next.renew_file(path, entry.as_ref(), &state.layout, files)?;
        }
        next.renew_folders(changed, files)?;
        let assembled = replace(&state.assembled, &state.files, &next.files, &next.touched)
            .unwrap_or_else(|| assemble(&state.layout, &next.files, Some(&state.assembled)));
        next.finish(options, Arc::clone(&state.layout), assembled, files)
    }

    /// What the files declare.
    pub fn project(&self) -> &Outcome {
        &self.0.outcome
    }

    /// The files that declare something, or are wrong.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let of_stages = self.0.files.keys().map(|path| &**path);
        of_stages.chain(self.0.layout.files.iter().map(String::as_str))
    }

    /// Reads everything, except files that were parsed before. `shipyard` takes the place of the project's.
    fn read_reusing(files: &dyn Files, options: &Options, known: &FileMap, shipyard: Option<&str>) -> Result<Self> {
        let entries = files.entries()?;
        let layout = Layout::read(&entries, files, options, shipyard)?;
        let mut next = Next::default();
        for entry in entries.iter().filter(|entry| layout.reads(&entry.path)) {
            let contexts = layout.contexts(&entry.path);
            let is_same = |file: &&Arc<Resolved>| file.parsed.id == entry.id && file.parsed.is_for(&contexts);
            let (parsed, contents) = match known.get(entry.path.as_str()).filter(is_same) {
                Some(file) => (Arc::clone(&file.parsed), file.contents()),
                None => Parsed::read(entry, contexts, files)?,
            };
            next.put(&entry.path, parsed, contents, files)?;
        }
        let assembled = assemble(&layout, &next.files, None);
        next.finish(options, Arc::new(layout), assembled, files)
    }
}

/// Files and folders on their way to the next snapshot.
#[derive(Default)]
struct Next {
    files: FileMap,
    /// The files of which there is a problem to report.
    wrong: Paths,
    folders: Folders,
    /// The files that are not what they were.
    touched: BTreeSet<Arc<str>>,
    /// What is known of the tree's programs, by folder and path.
    programs: BTreeMap<(String, String), Program>,
    /// All of the tree, once somebody asked for it.
    entries: Option<Vec<FileEntry>>,
}

impl Next {
    fn renew_file(&mut self, path: &str, entry: Option<&FileEntry>, layout: &Layout, files: &dyn Files) -> Result<()> {
        self.forget(path);
        match entry.filter(|entry| layout.reads(&entry.path)) {
            Some(entry) => {
                let (parsed, contents) = Parsed::read(entry, layout.contexts(path), files)?;
                self.put(path, parsed, contents, files)
            }
            None => Ok(()),
        }
    }

    fn forget(&mut self, path: &str) {
        let known = self.files.get_key_value(path).map(|(path, file)| (Arc::clone(path), Arc::clone(file)));
        let Some((path, file)) = known else { return };
        self.files.remove_mut(&path);
        self.wrong.remove_mut(&path);
        for folder in file.parsed.folders() {
            let Some(known) = self.folders.get_mut(folder) else { continue };
            known.used_by.remove_mut(&path);
            if known.used_by.is_empty() {
                self.folders.remove_mut(folder);
            }
        }
        self.touched.insert(path);
    }

    fn put(&mut self, path: &str, parsed: Arc<Parsed>, contents: Vec<Value>, files: &dyn Files) -> Result<()> {
        if parsed.is_empty() {
            return Ok(());
        }
        let path: Arc<str> = path.into();
        for folder in parsed.folders() {
            if !self.folders.contains_key(folder) {
                let id = self.id(files, folder)?;
                self.folders.insert_mut(folder.into(), Folder { id, used_by: Paths::default() });
            }
            if let Some(known) = self.folders.get_mut(folder) {
                known.used_by.insert_mut(Arc::clone(&path));
            }
        }
        self.resolve(path, parsed, contents, files)
    }

    fn resolve(&mut self, path: Arc<str>, parsed: Arc<Parsed>, contents: Vec<Value>, files: &dyn Files) -> Result<()> {
        let lacking = self.lacking(&parsed, files)?;
        let ids = |folder: &str| match self.folders.get(folder) {
            Some(Folder { id, .. }) => id.as_deref().map_err(Clone::clone),
            None => Err(Absence::Nothing),
        };
        let resolved = Resolved::new(parsed, contents, &ids, lacking);
        self.touched.insert(Arc::clone(&path));
        if resolved.problems().next().is_some() {
            self.wrong.insert_mut(Arc::clone(&path));
        } else {
            self.wrong.remove_mut(&path);
        }
        self.files.insert_mut(path, Arc::new(resolved));
        Ok(())
    }

    /// The programs that the folders of a file's images lack.
    fn lacking(&mut self, parsed: &Parsed, files: &dyn Files) -> Result<Vec<Problem>> {
        let mut problems = Vec::new();
        let is_there = |folder: &str| self.folders.get(folder).is_some_and(|folder| folder.id.is_ok());
        for program in parsed.programs().filter(|program| is_there(&program.folder)) {
            let key = (program.folder.clone(), program.path.clone());
            let found = match self.programs.get(&key) {
                Some(known) => known.clone(),
                None => Program::at(&program.path, &program.folder, files)?,
            };
            problems.extend(program.problem(&found));
            self.programs.insert(key, found);
        }
        Ok(problems)
    }

    /// Looks again at the folders in which something changed, and at the files that name them.
    fn renew_folders(&mut self, changed: &[Changed], files: &dyn Files) -> Result<()> {
        let mut users = BTreeSet::new();
        for folder in self.folders_around(changed) {
            let id = self.id(files, &folder)?;
            let Some(known) = self.folders.get_mut(&folder).filter(|known| known.id != id) else { continue };
            known.id = id;
            users.extend(known.used_by.iter().cloned());
        }
        for path in users {
            if let Some(file) = self.files.get(&path) {
                let (parsed, contents) = (Arc::clone(&file.parsed), file.contents());
                self.resolve(path, parsed, contents, files)?;
            }
        }
        Ok(())
    }

    fn finish(
        self,
        options: &Options,
        layout: Arc<Layout>,
        assembled: Assembled,
        files: &dyn Files,
    ) -> Result<Snapshot> {
        let outcome = outcome(&layout, layout.missing_folders(files)?, (&self.files, &self.wrong), &assembled);
        let Self { files, wrong, folders, .. } = self;
        Ok(Snapshot(Arc::new(State { options: options.clone(), layout, files, wrong, folders, assembled, outcome })))
    }

    /// What the tree has of a folder, or of files that somebody follows.
    fn id(&mut self, files: &dyn Files, name: &str) -> Result<Result<Arc<str>, Absence>> {
        let Some(pattern) = name.strip_prefix('/') else { return folder_id(files, name) };
        if !globs::is_glob(pattern)
            && let Some(id) = files.tree_id(pattern)?
        {
            return Ok(Ok(id.into()));
        }
        if self.entries.is_none() {
            self.entries = Some(files.entries()?);
        }
        let mut found = String::new();
        for entry in self.entries.iter().flatten().filter(|entry| follows(pattern, &entry.path)) {
            found.extend([&*entry.path, " ", &*entry.id, "\n"]);
        }
        if found.is_empty() {
            return Absence::of(pattern, files).map(Err);
        }
        Ok(Ok(digest::of(&found.into()).as_str().into()))
    }

    fn folders_around(&self, changed: &[Changed]) -> BTreeSet<Arc<str>> {
        let mut found = BTreeSet::new();
        let followed = self.folders.range::<str, _>((Bound::Included("/"), Bound::Excluded("0")));
        for (name, _) in followed {
            let pattern = name.trim_start_matches('/');
            if changed.iter().any(|(path, _)| follows(pattern, path)) {
                found.insert(Arc::clone(name));
            }
        }
        for (path, _) in changed {
            let parents = path.match_indices('/').map(|(at, _)| &path[..at]);
            for parent in parents.chain(["", path]) {
                found.extend(self.folders.get_key_value(parent).map(|(folder, _)| Arc::clone(folder)));
            }
        }
        found
    }
}

/// Whether a path, or all that is in a folder, is followed by a pattern.
fn follows(pattern: &str, path: &str) -> bool {
    match globs::is_glob(pattern) {
        true => globs::is_match(pattern, path),
        false => is_under(path, pattern),
    }
}

fn folder_id(files: &dyn Files, folder: &str) -> Result<Result<Arc<str>, Absence>> {
    Ok(match files.tree_id(folder)? {
        Some(id) => Ok(id.into()),
        None => Err(Absence::of(folder, files)?),
    })
}

/// Puts everything together that readers of a snapshot see; of the files, those that are wrong have problems.
fn outcome(
    layout: &Layout,
    missing: Vec<Problem>,
    (files, wrong): (&FileMap, &Paths),
    assembled: &Assembled,
) -> Outcome {
    let of_files = wrong.iter().filter_map(|path| files.get(path)).flat_map(|file| file.problems());
    let mut problems: Vec<_> = layout.problems.iter().chain(of_files).chain(&assembled.problems).cloned().collect();
    problems.extend(missing);
    problems.extend(layout.idle_globs(files));
    if layout.is_strict() {
        for problem in problems.iter_mut().filter(|problem| problem.code == "unknown-key") {
            problem.severity = Severity::Error;
        }
    }
    problems.sort();
    problems.dedup();
    let is_usable = !problems.iter().any(Problem::is_error);
    Outcome { project: is_usable.then(|| Arc::clone(&assembled.project)), problems }
}

#[cfg(test)]
mod tests;
