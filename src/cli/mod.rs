//! The command line: one file a verb.

use std::process::ExitCode;

/// Runs the program.
pub fn run() -> ExitCode {
    ExitCode::SUCCESS
}
