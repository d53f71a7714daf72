//! How far pods are kept apart on this machine: found out by a process that tries, because it could not go back.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use serde::{Deserialize, Serialize};

use super::isolation::{Hiding, Isolation};
use super::mount::Space;
use crate::error::{Context, Failure, Result};
use crate::runtime::local::pod::launch::OWN_PROGRAM;

/// The verb of the process that tries.
const VERB: &str = "isolation";
/// The first version of Landlock that closes sockets: Linux 7.1.
const CLOSES_SOCKETS: i32 = 9;

/// What the pods of this user's daemons are kept from on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reach {
    /// The daemon's files, and those of other pods.
    pub files: bool,
    /// The sockets by which the daemon takes commands.
    pub sockets: bool,
    /// The variables and open files of processes that are not the pod's.
    pub processes: bool,
    /// What the machine does not allow, for people.
    pub problems: Vec<String>,
}

impl Reach {
    /// What is reached by one way of hiding, and by Landlock as the kernel has it.
    fn by(hiding: &Result<(), String>, landlock: &Result<Option<i32>, String>, is_root: bool) -> Self {
        let (covers, version) = (hiding.is_ok(), landlock.as_ref().ok().copied().flatten());
        let mut problems: Vec<String> =
            [hiding.as_ref().err(), landlock.as_ref().err()].into_iter().flatten().cloned().collect();
        if landlock == &Ok(None) {
            problems.push("this kernel has no Landlock, or one from before Linux 5.19".to_owned());
        }
        Self {
            files: covers || version.is_some(),
            sockets: covers || version.is_some_and(|version| version >= CLOSES_SOCKETS),
            // Users' namespaces keep processes apart by themselves; root's pods share the machine's.
            processes: version.is_some() || covers && !is_root,
            problems,
        }
    }

    /// Tries it.
    ///
    /// # Errors
    /// If no process can be started, or a temporary folder not made.
    pub fn on_this_machine() -> Result<Self> {
        let failed = || "cannot find out how far pods are kept apart".to_owned();
        let folder = std::env::temp_dir().join(format!("launchway-isolation-{}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&folder).or_transient(failed)?;
        let folder = folder.canonicalize().or_transient(failed)?;
        let tried = fs::create_dir(folder.join("scratch")).and_then(|()| {
            let mut command = Command::new(OWN_PROGRAM);
            command.arg0("launchway").arg(VERB).arg(&folder).stdin(Stdio::null()).output()
        });
        let removed = fs::remove_dir_all(&folder);
        let told = tried.and_then(|tried| removed.map(|()| tried)).or_transient(failed)?;
        serde_json::from_slice(&told.stdout).map_err(|_garbled| Failure::transient(failed()))
    }
}

/// Runs the program as the process that tries, in a folder that is hidden from it, if the arguments ask for it; it says what
/// came of it.
pub(crate) fn process_entry(arguments: &[OsString]) -> Option<ExitCode> {
    let [verb, folder] = arguments else { return None };
    (verb == VERB).then(|| tell(Path::new(folder)))
}

fn tell(folder: &Path) -> ExitCode {
    let reach = try_out(folder);
    let told = serde_json::to_vec(&reach).map_err(io::Error::other).and_then(|told| io::stdout().write_all(&told));
    if told.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn try_out(folder: &Path) -> Reach {
    let isolation = Isolation { hidden: vec![folder.to_owned()], own: Vec::new() };
    let hiding = Space::enter(&folder.join("scratch")).and_then(|space| isolation.hide(&space));
    let landlock = isolation.confine(if hiding.is_ok() { Hiding::Covered } else { Hiding::Visible });
    Reach::by(&hiding, &landlock, rustix::process::geteuid().is_root())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_depends_on_the_namespace_the_kernel_and_the_user() {
        let (covered, visible) = (Ok(()), Err("no mounts".to_owned()));
        let told = |hiding: &Result<(), String>, landlock: Option<i32>, is_root: bool| {
            let Reach { files, sockets, processes, problems } = Reach::by(hiding, &Ok(landlock), is_root);
            (files, sockets, processes, problems.len())
        };
        assert_eq!(told(&covered, Some(7), true), (true, true, true, 0));
        assert_eq!(told(&covered, None, false), (true, true, true, 1));
        assert_eq!(told(&covered, None, true), (true, true, false, 1));
        assert_eq!(told(&visible, Some(7), false), (true, false, true, 1));
        assert_eq!(told(&visible, Some(9), false), (true, true, true, 1));
        assert_eq!(told(&visible, None, false), (false, false, false, 2));
    }
}
