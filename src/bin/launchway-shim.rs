//! The program that owns pods: `launchway shim` without all the rest, so that hundreds of them stay small.

use std::ffi::OsString;
use std::process::ExitCode;

use launchway::runtime::local;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    local::pod_entry(&arguments).unwrap_or(ExitCode::from(2))
}
