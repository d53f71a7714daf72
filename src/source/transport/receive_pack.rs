//! A push into a repository on this machine, as its owner would make it: by `git receive-pack`, which knows what
//! `core.sharedRepository` asks for, checks what it is sent, and moves references as one of several writers.

use std::path::Path;

use tokio::process::Command;

use super::Deadline;
use super::program::{Program, last_lines};
use super::stream::Stream;
use crate::error::{Failure, Result};
use crate::source::git;
use crate::source::ownership::{Ownership, Writer};

/// By its path: a program that is searched for is started by a copy of this process, which costs what that has in memory.
const SHELL: &str = "/bin/sh";
/// Sets the mask in a process of its own: it is the process's, not the thread's.
const MASKED: &str = "umask \"$1\" && shift && exec \"$@\"";

/// Whoever names a path to us has said that it may be used; but what its configuration names is not run by us, who may be
/// another user: hooks neither keep us from a branch nor hear of it. Notes and branches of our own are no branch that is
/// checked out, and somebody's next push cleans up.
const SETTINGS: [&str; 6] = [
    "safe.directory=*",
    "core.hooksPath=/dev/null",
    "core.alternateRefsCommand=true",
    "core.fsmonitor=false",
    "receive.denyCurrentBranch=refuse",
    "receive.autogc=false",
];

pub(super) fn open(path: &Path, peer: String, deadline: Deadline) -> Result<Stream> {
    let repository = git::open_local(path)?;
    let folder = repository.commondir();
    let Writer { user, umask } = Ownership::of(&repository)?.writer(folder)?;
    let mut command = Command::new(SHELL);
    // Nothing of ours: neither our variables nor a folder that its owner may not enter.
    let search_path = std::env::var_os("PATH");
    command.env_clear().envs(search_path.map(|path| ("PATH", path))).env("LC_ALL", "C");
    command.env("GIT_ALLOW_PROTOCOL", "none").current_dir("/"); // nor does it fetch what is missing
    command.args(["-c", MASKED, "sh", &format!("{umask:03o}"), "git"]);
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }
    command.arg("receive-pack").arg(folder);
    if let Some((user, group)) = user {
        command.uid(user).gid(group);
    }
    Program::start(command, deadline, peer, explain, "results are written to repositories on this machine by `sh`")
}

fn explain(peer: &str, complaint: &str, code: Option<i32>) -> Failure {
    let failure = match code {
        Some(127) => Failure::stalled("there is no program `git`, by which notes are written to repositories here")
            .hint("install Git"),
        _ if complaint.contains("Permission denied") || complaint.contains("dubious ownership") => Failure::stalled(
            format!("{peer} may not be written to"),
        )
        .hint(
            "run launchway as its owner, or as root; what root has left there, `chown -R OWNER REPOSITORY` gives back",
        ),
        _ => Failure::transient(format!("writing to {peer} failed")),
    };
    match last_lines(complaint) {
        Some(lines) => failure.because(lines),
        None => failure,
    }
}
