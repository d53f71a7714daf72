//! Pods, services and launchables on this machine, with nothing else installed.

pub(crate) mod files;
pub mod launchable;
pub mod service;

use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the program as one of the runtime's own small processes, if the arguments ask for one.
pub fn process_entry(arguments: &[OsString]) -> Option<ExitCode> {
    service::process_entry(arguments).or_else(|| launchable::process_entry(arguments))
}
