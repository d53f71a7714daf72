//! The command line: one file a verb.

use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the program.
pub fn run() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    crate::runtime::local::process_entry(&arguments).unwrap_or(ExitCode::SUCCESS)
}
