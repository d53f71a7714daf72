//! The local runtime: pods are processes of this machine.
//!
//! ```text
//!  runtime.rs ── start ──▶ <root>/pods/<namespace>/<pod>/pod.json        (record.rs: what was asked for)
//!      ▲  │                        │
//!      │  └── spawns ──▶ launchway shim <pod dir>                        (shim/: one a pod, outlives the daemon)
//!      │                     │     └── launchway container … ─▶ command  (container.rs: limits, user, environment)
//!      │                     ▼
//!      │                status.json, ready, logs/                        (status.rs, logs.rs: what became of it)
//!      └── <root>/changes/ ◀─┘                                           (watch.rs: one folder tells all)
//! ```

pub(crate) mod files;
mod follow;
pub mod launchable;
pub mod service;

mod address;
mod cgroup;
mod container;
mod data;
mod environment;
mod expand;
mod launch;
mod logs;
mod mount;
mod paths;
mod probe;
mod process;
mod quantity;
mod record;
mod shim;
mod status;
mod volume;
mod wake;

mod allow;
mod exec;
pub mod image;
mod program;
mod runtime;
mod scale;
pub mod service_table;
mod shims;
mod start;
mod table;
mod watch;

use std::ffi::OsString;
use std::process::ExitCode;

pub use self::allow::Allow;
pub use self::paths::PodDir;
pub use self::program::Program;
pub use self::runtime::{LocalOptions, LocalRuntime};

/// `pod-ip` on a pod says that its processes bind `POD_IP` with their declared ports, not `PORT`.
pub const LISTEN_ANNOTATION: &str = "launchway.dev/listen";

/// Runs the program as one of the runtime's own processes, if that is what the arguments (without the program's name)
/// say. To be asked before anything else is set up: these processes stay small.
pub fn process_entry(arguments: &[OsString]) -> Option<ExitCode> {
    shim_entry(arguments).or_else(|| launchable::process_entry(arguments))
}

/// Like [`process_entry`], for the processes alone that own pods and services and outlive the daemon.
pub fn shim_entry(arguments: &[OsString]) -> Option<ExitCode> {
    let (verb, rest) = arguments.split_first()?;
    match verb.to_str()? {
        "shim" => Some(shim::run(rest)),
        "container" => Some(container::run(rest)),
        program::BUILD_VERB => Some(program::tell_build()),
        _ => service::process_entry(arguments),
    }
}
