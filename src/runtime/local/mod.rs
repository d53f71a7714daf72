//! The local runtime: pods are processes of this machine.
//!
//! ```text
//!  runtime.rs ── start ──▶ <root>/pods/<namespace>/<pod>/pod.json        (pod/record.rs: what was asked for)
//!      ▲  │                        │
//!      │  └── spawns ──▶ launchway shim <pod dir>                        (shim/: one a pod, outlives the daemon)
//!      │                     │     └── launchway container … ─▶ command  (pod/container.rs: limits, user, environment)
//!      │                     ▼
//!      │                status.json, ready, logs/                        (pod/status.rs, pod/logs.rs: what became of it)
//!      └── <root>/changes/ ◀─┘                                           (shim/watch.rs: one folder tells all)
//! ```

pub(crate) mod host;
pub mod launchable;
mod pod;
mod runtime;
pub mod service;
mod shim;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub use self::host::allow::Allow;
pub use self::host::open_files;
pub use self::host::program::Program;
pub use self::host::reach::Reach;
pub use self::pod::logs::LogLimits;
pub use self::pod::paths::PodDir;
pub use self::runtime::{LocalOptions, LocalRuntime};

/// `pod-ip` on a pod says that its processes bind `POD_IP` with their declared ports, not `PORT`.
pub const LISTEN_ANNOTATION: &str = "launchway.dev/listen";

/// The socket for deployers, in a folder of its own.
pub const API_SOCKET: &str = "deployers.sock";
/// The longest path of a socket that the kernel takes, in bytes.
pub const LONGEST_SOCKET_PATH: usize = 107;

/// Whether a process of this machine is one of a pod's whose runtime has its folder at `root`.
pub fn is_of_a_pod(pid: i32, root: &Path) -> bool {
    let pods = pod::paths::Root::new(root).pods();
    host::process::is_of_a_pod(pid, &pods.canonicalize().unwrap_or(pods))
}

/// The folder of the socket for deployers, which no other pod sees, of a runtime that has its folder at `root`.
pub fn api_folder(root: &Path) -> PathBuf {
    pod::paths::Root::new(root).api()
}

/// The interpreter that a program names by its `#!` line, if it is missing on this machine.
pub fn missing_interpreter(program: &Path) -> Option<String> {
    host::unrunnable::missing_interpreter(program)
}

/// Runs the program as one of the runtime's own processes, if that is what the arguments (without the program's name)
/// say. To be asked before anything else is set up: these processes stay small.
pub fn process_entry(arguments: &[OsString]) -> Option<ExitCode> {
    let others = || launchable::process_entry(arguments).or_else(|| host::reach::process_entry(arguments));
    shim_entry(arguments).or_else(others)
}

/// Like [`process_entry`], for the processes alone that own pods and services and outlive the daemon.
pub fn shim_entry(arguments: &[OsString]) -> Option<ExitCode> {
    let (verb, rest) = arguments.split_first()?;
    match verb.to_str()? {
        "shim" => Some(shim::run(rest)),
        "container" => Some(pod::container::run(rest)),
        "end-pods" => Some(shim::end_pods(rest)),
        host::program::BUILD_VERB => Some(host::program::tell_build()),
        _ => service::process_entry(arguments),
    }
}
