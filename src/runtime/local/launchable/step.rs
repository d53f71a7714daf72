//! `launchway build-step <folder>`: puts everything in place for a launchable's `bin/build`, then becomes it. What goes
//! wrong is written to standard input, which is a pipe to the builder.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use rustix::process::{Pid, Resource, Rlimit, getppid, getrlimit, setrlimit, umask};

use super::folder::{Folder, Order};
use super::limits::BuildLimits;
use crate::model::pod::{Resources, Scalar};
use crate::runtime::local::host::cgroup::{Limits, PodGroups};
use crate::runtime::local::host::isolation::{Hiding, Isolation, Own};
use crate::runtime::local::host::mount::Space;
use crate::runtime::local::host::unrunnable;
use crate::runtime::local::host::user::become_user;

/// The verb.
pub(super) const VERB: &str = "build-step";
/// The name of what a build runs in, as of a pod's container.
const CONTAINER: &str = "build";
/// The exit code if it could not be started, as shells have it.
const CANNOT_START: u8 = 127;

/// Runs the verb; returns only if `bin/build` could not be started.
pub(super) fn run(folder: &Folder) -> ExitCode {
    let failure = rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3);
    let problem = start(folder).unwrap_or_else(|problem| problem);
    if let Ok(failure) = failure {
        // If nobody listens any more, nobody needs to know.
        File::from(failure).write_all(problem.as_bytes()).ok();
    }
    ExitCode::from(CANNOT_START)
}

fn start(folder: &Folder) -> Result<String, String> {
    let order = folder.read_order().map_err(|error| format!("cannot read the order: {error}"))?;
    let order = order.ok_or("there is no order")?;
    let program = folder.builder().ok_or("is gone")?;
    let build = &order.limits.build;
    // Where the machine has no groups for this user, the limit of each process is what there is.
    groups(folder, getppid(), build).enter(CONTAINER, memory(build)).ok();
    let (isolation, hiding) = isolate(folder, &order)?;
    bound(build).map_err(|error| format!("its limits cannot be set: {error}"))?;
    umask(rustix::fs::Mode::from_raw_mode(0o022));
    become_user(order.run_as())?;
    if let Err(problem) = isolation.confine(hiding) {
        writeln!(io::stderr(), "launchway: not all is kept from this build that is not its own: {problem}").ok();
    }
    let error = Command::new(&program).current_dir(folder.tree()).stdin(Stdio::null()).exec();
    Ok(unrunnable::why(&program, &error))
}

/// Hides all of the daemon's state but the tree and the home of the build.
fn isolate(folder: &Folder, order: &Order) -> Result<(Isolation, Hiding), String> {
    let scratch = folder.scratch();
    let space = Space::enter(&scratch);
    let (home, tree) = (Own::at(folder.home(), false)?, Own::at(folder.tree(), false)?);
    let isolation = Isolation::new(order.hidden.clone(), home, vec![tree])?;
    let hidden = space.and_then(|space| isolation.hide(&space));
    Ok((isolation, if hidden.is_ok() { Hiding::Covered } else { Hiding::Visible }))
}

/// The control groups of the build that this builder runs, which are made where they are not there. Another daemon on this
/// machine may build the same.
pub(super) fn groups(folder: &Folder, builder: Option<Pid>, limits: &BuildLimits) -> PodGroups {
    let builder = builder.map_or(0, |builder| builder.as_raw_nonzero().get());
    PodGroups::make(&format!("{}-{builder}", folder.group()), &[memory(limits)])
}

fn memory(limits: &BuildLimits) -> Limits {
    let bytes = Scalar::Text(limits.memory.to_string());
    Limits::of(&Resources { limits: [("memory".to_owned(), bytes)].into(), ..Resources::default() })
}

/// What holds for each process by itself: it stops at once what the builder would notice too late.
fn bound(limits: &BuildLimits) -> io::Result<()> {
    [(Resource::Data, limits.memory), (Resource::Fsize, limits.disk), (Resource::Core, 0)].into_iter().try_for_each(
        |(resource, most)| {
            let most = Some(getrlimit(resource).maximum.map_or(most, |maximum| maximum.min(most)));
            Ok(setrlimit(resource, Rlimit { current: most, maximum: most })?)
        },
    )
}
