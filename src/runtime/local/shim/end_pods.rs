//! `launchway end-pods <state>/local`: ends all pods as a machine that shuts down should, which tells everything to end at
//! once: a program that takes no notice of that itself would be gone before its `preStop` has begun. Whoever knows that the
//! machine is about to shut down runs this first, once the daemon has ended. Nothing of it is remembered: the next daemon
//! starts the pods again.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use crate::runtime::local::host::process::{ProcessId, kill};
use crate::runtime::local::pod::paths::Root;
use crate::runtime::local::pod::status::PodStatus;

/// How often it is examined which pods are left.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Runs the verb. How long it may take is for who runs it to say: each pod has the grace period that it asks for.
pub(super) fn run(arguments: &[OsString]) -> ExitCode {
    let [root] = arguments else { return ExitCode::from(2) };
    match shims(&Root::new(root)) {
        Ok(shims) => {
            shims.iter().for_each(|shim| kill(*shim, Signal::TERM));
            while shims.iter().any(|shim| shim.lives()) {
                thread::sleep(LOOK_AGAIN);
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            // Where it is told is for who runs it to say, too.
            writeln!(io::stderr(), "cannot read which pods run in `{}`: {error}", Path::new(root).display()).ok();
            ExitCode::FAILURE
        }
    }
}

/// The shims of the pods that have not ended, as far as they have said that they live.
fn shims(root: &Root) -> io::Result<Vec<ProcessId>> {
    let pods = root.all_pods()?;
    let statuses = pods.iter().filter_map(|(_, dir)| PodStatus::read(dir).ok().flatten());
    Ok(statuses.filter(|status| !status.ended()).filter_map(|status| status.shim).filter(|shim| shim.lives()).collect())
}
