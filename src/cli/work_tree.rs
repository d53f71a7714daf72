//! A folder on disk as the files that `manifest` reads: what is there now, committed or not.

use std::fs::{self, FileType};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::{Context, Failure, Result};
use crate::manifest::{Absence, Content, FileEntry, FileKind, Files, LARGEST};
use crate::runtime::local;
use crate::server::presence::presence_path;

/// The most files of a folder.
const MOST_ENTRIES: usize = 1_000_000;
/// The most folders in one another.
const DEEPEST: usize = 128;
/// The most bytes of one file; the daemon's own default.
const LARGEST_FILE: u64 = 4 << 20;

/// A folder on disk.
#[derive(Clone, Debug)]
pub(super) struct WorkTree {
    root: PathBuf,
    /// Whether this is a machine that runs pods.
    runs_here: bool,
}

impl WorkTree {
    /// The folder that declares what stands at `path`: the nearest one above it with a `launchway.yaml`, a
    /// `shipyard.yaml` or a `.git`, else itself or, for a file, its own folder.
    pub(super) fn around(path: &Path) -> Result<Self> {
        let unreadable = || format!("cannot read `{}`", path.display());
        let path = path.canonicalize().or_stalled(unreadable)?;
        let folder = if path.is_dir() { path.as_path() } else { path.parent().unwrap_or(&path) };
        let marked =
            |folder: &&Path| ["launchway.yaml", "shipyard.yaml", ".git"].iter().any(|mark| folder.join(mark).exists());
        let root = folder.ancestors().find(marked).unwrap_or(folder).to_owned();
        Ok(Self { root, runs_here: false })
    }

    /// The same on a machine whose own state folder shows whether it runs pods: then its programs are searched for, too.
    pub(super) fn on_machine_of(self, state: Option<&Path>) -> Self {
        Self { runs_here: state.is_some_and(|state| presence_path(state).exists()), ..self }
    }

    /// Its last name, which names the project unless a file does.
    pub(super) fn name(&self) -> String {
        self.root.file_name().map_or_else(|| "project".to_owned(), |name| name.to_string_lossy().into_owned())
    }

    /// Where a path from its root is on disk.
    pub(super) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// A path from its root, as problems name it.
    pub(super) fn relative(&self, path: &Path) -> Result<String> {
        let unreadable = || format!("cannot read `{}`", path.display());
        let path = path.canonicalize().or_stalled(unreadable)?;
        Ok(path.strip_prefix(&self.root).unwrap_or(&path).to_string_lossy().into_owned())
    }

    fn walk(&self, folder: &Path, depth: usize, found: &mut Vec<FileEntry>) -> Result<()> {
        let unreadable = || format!("cannot read `{}`", folder.display());
        if depth > DEEPEST {
            return Err(Failure::stalled(format!(
                "more than {DEEPEST} folders in one another: `{}`",
                folder.display()
            )));
        }
        for entry in fs::read_dir(folder).or_stalled(unreadable)? {
            let entry = entry.or_stalled(unreadable)?;
            let kind = entry.file_type().or_stalled(unreadable)?;
            let path = entry.path();
            if kind.is_dir() {
                if entry.file_name() != ".git" {
                    self.walk(&path, depth + 1, found)?;
                }
                continue;
            }
            found.extend(self.entry(&path, kind));
            if found.len() > MOST_ENTRIES {
                let message = format!("`{}` holds more than {MOST_ENTRIES} files", self.root.display());
                return Err(Failure::stalled(message).hint("name the folder of one repository"));
            }
        }
        Ok(())
    }

    /// Sockets, devices and names that are no text are nothing that Git would keep.
    fn entry(&self, path: &Path, kind: FileType) -> Option<FileEntry> {
        let relative = path.strip_prefix(&self.root).ok()?.to_str()?.to_owned();
        let kind = match kind {
            kind if kind.is_symlink() => FileKind::Symlink,
            kind if kind.is_file() => FileKind::File { executable: false },
            _ => return None,
        };
        Some(FileEntry { id: relative.clone(), path: relative, kind })
    }
}

impl Files for WorkTree {
    fn entries(&self) -> Result<Vec<FileEntry>> {
        let mut found = Vec::new();
        self.walk(&self.root, 0, &mut found)?;
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    fn read(&self, entry: &FileEntry) -> Result<Content> {
        let path = self.root.join(&entry.path);
        let unreadable = || format!("cannot read `{}`", path.display());
        let size = fs::symlink_metadata(&path).or_stalled(unreadable)?.len();
        if size > LARGEST {
            return Ok(Content::TooLarge(size));
        }
        fs::read(&path).or_stalled(unreadable).map(Content::Whole)
    }

    fn limit(&self) -> u64 {
        LARGEST_FILE
    }

    /// Any word will do where nothing is deployed: only whether the folder is there matters.
    fn tree_id(&self, path: &str) -> Result<Option<String>> {
        let is_there = self.root.join(path).is_dir() && Absence::of(path, self)? == Absence::Nothing;
        Ok(is_there.then(|| "0".repeat(40)))
    }

    /// As Git would see it: any right to execute counts, and nothing is followed.
    fn kind(&self, path: &str) -> Result<Option<FileKind>> {
        let path = self.root.join(path);
        let Ok(found) = fs::symlink_metadata(&path) else { return Ok(None) };
        let executable = found.permissions().mode() & 0o111 != 0;
        Ok(match found.file_type() {
            kind if kind.is_symlink() => Some(FileKind::Symlink),
            kind if kind.is_file() => Some(FileKind::File { executable }),
            _ => path.join(".git").exists().then_some(FileKind::Submodule),
        })
    }

    fn link_target(&self, path: &str) -> Result<Option<String>> {
        let target = fs::read_link(self.root.join(path)).ok();
        Ok(target.and_then(|target| target.into_os_string().into_string().ok()))
    }

    fn missing_interpreter(&self, path: &str) -> Option<String> {
        if self.runs_here { local::missing_interpreter(&self.root.join(path)) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{Options, Snapshot};
    use crate::model::seed::Seed;

    #[test]
    fn the_root_is_where_a_project_begins() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("there");
        fs::create_dir_all(root.join("deploy/dev")).expect("made");
        fs::write(root.join("launchway.yaml"), "").expect("written");
        fs::write(root.join("deploy/dev/web.yaml"), "").expect("written");
        let tree = WorkTree::around(&root.join("deploy/dev/web.yaml")).expect("readable");
        assert_eq!(tree.root, root);
        assert_eq!(tree.relative(&root.join("deploy/dev")).expect("inside"), "deploy/dev");
        let paths: Vec<_> = tree.entries().expect("readable").into_iter().map(|entry| entry.path).collect();
        assert_eq!(paths, ["deploy/dev/web.yaml", "launchway.yaml"]);
    }

    #[test]
    fn what_is_in_the_place_of_a_folder_is_what_git_has_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("real/inner")).expect("made");
        fs::create_dir_all(path("sub/.git")).expect("made");
        fs::create_dir(path("sub/app")).expect("made");
        fs::write(path("file"), "").expect("written");
        std::os::unix::fs::symlink("real", path("link")).expect("linked");
        let tree = WorkTree { root: folder.path().to_owned(), runs_here: false };
        for (place, expected, is_there) in [
            ("real/inner", Absence::Nothing, true),
            ("sub/app", Absence::Submodule("sub".to_owned()), false),
            ("link/inner", Absence::Symlink("link".to_owned()), false),
            ("file/inner", Absence::Nothing, false),
            ("gone", Absence::Nothing, false),
        ] {
            assert_eq!(Absence::of(place, &tree).expect("readable"), expected, "{place}");
            assert_eq!(tree.tree_id(place).expect("readable").is_some(), is_there, "{place}");
        }
    }

    #[test]
    fn a_file_that_is_too_large_is_said_to_be_a_daemons_to_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = fs::File::create(folder.path().join("launchway.yaml")).expect("made");
        file.set_len(LARGEST_FILE + 1).expect("grown");
        let tree = WorkTree::around(folder.path()).expect("readable");
        let read = Snapshot::read(&tree, &Options { repository: "shop".into(), seed: Seed::NONE }).expect("readable");
        let problem = &read.project().problems[0];
        assert!(problem.is_error() && problem.to_string().contains("only a daemon reads more"), "{problem}");
    }

    #[test]
    fn what_is_not_there_is_named() {
        let failure = WorkTree::around(Path::new("/nowhere/at/all")).expect_err("not there");
        assert!(failure.to_string().contains("/nowhere/at/all"));
    }
}
