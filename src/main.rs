//! The `launchway` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    launchway::cli::run()
}
