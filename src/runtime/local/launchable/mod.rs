//! Launchables.

use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the program as a builder, if the arguments ask for it.
pub fn process_entry(_arguments: &[OsString]) -> Option<ExitCode> {
    None
}
