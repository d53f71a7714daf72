//! The program that owns pods and services: what of `launchway` outlives the daemon, without all the rest, so that
//! hundreds of its processes stay small.

use std::ffi::OsString;
use std::process::ExitCode;

use launchway::runtime::local;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    local::shim_entry(&arguments).unwrap_or(ExitCode::from(2))
}
