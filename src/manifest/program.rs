//! Programs that launchables of the repository have to bring along: `bin/launch`, or the path that a command begins with.

use serde_json::Value;

use super::discover::is_under;
use super::files::{FileKind, Files};
use super::findings::Findings;
use super::image;
use super::pod_template::{items, text_at};
use super::problem::{Problem, field_path};
use crate::error::Result;
use crate::model::object::Location;

/// What runs without a command.
const ENTRY_POINT: &str = "bin/launch";
/// What may make every other program, before anything runs.
const BUILD: &str = "bin/build";

/// A program of a launchable, and where it is asked for.
#[derive(Debug)]
pub(crate) struct ProgramUse {
    /// The launchable's folder, normalised.
    pub(crate) folder: String,
    /// From the repository's root.
    pub(crate) path: String,
    pointer: String,
    location: Location,
}

/// What is at a program's path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// It, or something that can only be judged once it is built or a link is followed.
    Likely,
    /// A file that cannot be run.
    NotExecutable,
    /// Nothing.
    Missing,
    /// It is reached by a symbolic link, at this path, that leads out of the launchable.
    LeadsOut(String),
    /// A script whose interpreter is missing on this machine, which runs pods.
    WithoutInterpreter(String),
}

/// Where a command stands that runs in a launchable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    /// The launchable's folder, normalised.
    pub(crate) folder: &'a str,
    /// The pointer of what holds `command` and perhaps `image`.
    pub(crate) holder: &'a str,
    /// What says `workingDir` and `volumeMounts`.
    pub(crate) container: &'a Value,
}

/// The program of a command, if the launchable has to bring it along: the search path leads elsewhere, as do the paths of
/// the machine, and what a variable or a volume holds is not known.
pub(crate) fn of_command(command: &Value, place: Place<'_>, findings: &Findings<'_>) -> Option<ProgramUse> {
    let word = items(command, "").next().and_then(|(_, word)| word.as_str());
    let (inside, pointer) = match word {
        None => (ENTRY_POINT.to_owned(), format!("{}/image", place.holder)),
        Some(word) => (inside(word, place.container)?, format!("{}/command/0", place.holder)),
    };
    let path = image::folder(&format!("./{}/{inside}", place.folder))?;
    let location = findings.location(&pointer);
    Some(ProgramUse { folder: place.folder.to_owned(), path, pointer, location })
}

/// The path of a command's first word from the launchable's root.
fn inside(word: &str, container: &Value) -> Option<String> {
    let working_dir = text_at(container, "/workingDir");
    let is_elsewhere = |path: &str| path.starts_with('/') || path.contains("$(");
    if !word.contains('/') || is_elsewhere(word) || is_elsewhere(working_dir) {
        return None;
    }
    let path = image::folder(&format!("./{working_dir}/{word}"))?;
    let is_mounted = |mount: &Value| {
        let target = image::folder(&format!("./{working_dir}/{}", text_at(mount, "/mountPath")));
        target.is_some_and(|target| is_under(&path, &target))
    };
    (!items(container, "/volumeMounts").any(|(_, mount)| is_mounted(mount))).then_some(path)
}

impl Program {
    /// Looks for it in the tree. What `bin/build` makes is there later.
    pub(crate) fn at(path: &str, folder: &str, files: &dyn Files) -> Result<Self> {
        let parents = path.match_indices('/').map(|(at, _)| &path[..at]);
        for part in parents.chain([path]) {
            if files.kind(part)? != Some(FileKind::Symlink) {
                continue;
            }
            if files.link_target(part)?.is_some_and(|target| leaves(&target, part, folder)) {
                return Ok(Self::LeadsOut(part.to_owned()));
            }
            if part != path {
                return Ok(Self::Likely);
            }
        }
        let build = image::folder(&format!("./{folder}/{BUILD}")).unwrap_or_default();
        if files.kind(&build)? == Some(FileKind::File { executable: true }) {
            return Ok(Self::Likely);
        }
        Ok(match files.kind(path)? {
            None => Self::Missing,
            Some(FileKind::File { executable: false }) => Self::NotExecutable,
            Some(_) => files.missing_interpreter(path).map_or(Self::Likely, Self::WithoutInterpreter),
        })
    }
}

/// Whether the link at a path leaves the launchable by its first steps. Where it leads after a folder, which may be a link
/// itself, is not followed.
fn leaves(target: &str, link: &str, folder: &str) -> bool {
    let inside = link.strip_prefix(folder).unwrap_or(link).trim_start_matches('/');
    let depth = inside.matches('/').count();
    let parts = target.split('/').filter(|part| !part.is_empty() && *part != ".");
    target.starts_with('/') || parts.take_while(|part| *part == "..").count() > depth
}

impl ProgramUse {
    /// What is wrong with the program.
    pub(crate) fn problem(&self, found: &Program) -> Option<Problem> {
        let path = &self.path;
        let is_entry_point = self.pointer.ends_with("/image");
        let (message, hint) = match found {
            Program::Likely => return None,
            Program::WithoutInterpreter(interpreter) => {
                let hint =
                    "install it, or name another one in the first line; pods that run on another machine may have it";
                (
                    format!("`{path}` needs the interpreter `{interpreter}`, which is missing on this machine"),
                    hint.to_owned(),
                )
            }
            Program::LeadsOut(link) => {
                let hint = "links may only lead to files of the launchable: commit the program itself, or a script \
                            that runs what is elsewhere";
                (format!("the link `{link}` leads out of the launchable"), hint.to_owned())
            }
            Program::NotExecutable => {
                let hint = format!("`git update-index --chmod=+x {path}`, then commit");
                (format!("`{path}` is not executable"), hint)
            }
            Program::Missing if is_entry_point => {
                let hint = format!("commit it with `git add --chmod=+x {path}`, or give a `command`");
                (format!("there is no `{path}`, which runs unless there is a `command`"), hint)
            }
            Program::Missing => {
                let hint =
                    format!("commit it with `git add --chmod=+x {path}`; an executable `{BUILD}` may also make it");
                (format!("the command is not there: the repository has no file `{path}`"), hint)
            }
        };
        let mut problem = Problem::error(&self.location, "executable", message).hint(hint);
        problem.field = field_path(&self.pointer);
        problem.pointer.clone_from(&self.pointer);
        Some(if matches!(found, Program::WithoutInterpreter(_)) { problem.warning() } else { problem })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_the_launchable_itself_has_to_bring_is_looked_for() {
        let mounts = json!({"volumeMounts": [{"mountPath": "data"}]});
        let table = [
            ("bin/x", json!({}), Some("bin/x")),
            ("./x", json!({}), Some("x")),
            ("./x", json!({"workingDir": "sub"}), Some("sub/x")),
            ("x", json!({}), None),
            ("/bin/sh", json!({}), None),
            ("$(TOOLS)/x", json!({}), None),
            ("bin/x", json!({"workingDir": "/srv"}), None),
            ("../x", json!({}), None),
            ("data/x", mounts.clone(), None),
            ("bin/x", mounts, Some("bin/x")),
        ];
        for (word, container, expected) in table {
            assert_eq!(inside(word, &container).as_deref(), expected, "{word} in {container}");
        }
    }
}
