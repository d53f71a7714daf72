//! Programs that tests copy and run.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// Copies a program to where anybody can run it. Another process writes the copy: what this one has open for writing, a
/// child inherits that another test starts meanwhile, and until that runs its own program, the copy would be busy (`ETXTBSY`).
pub(crate) fn install(program: impl AsRef<OsStr>, to: &Path) {
    assert!(Command::new("install").arg("--mode=755").arg(program).arg(to).status().unwrap().success());
}
