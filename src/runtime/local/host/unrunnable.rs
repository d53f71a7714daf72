//! Why a program that is there, and may be run, cannot be: the kernel names the program where it means another file that the
//! program asks for.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::io::Errno;

/// How much of a script the kernel reads to find its interpreter.
const FIRST_LINE: u64 = 256;

/// Why the kernel refused to run a program.
pub(crate) fn why(program: &Path, error: &io::Error) -> String {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    let cause = beginning(program).ok().and_then(|beginning| cause(&beginning, errno?));
    cause.unwrap_or_else(|| error.to_string())
}

/// The interpreter that a program names and that is not there.
pub(crate) fn missing_interpreter(program: &Path) -> Option<String> {
    let beginning = beginning(program).ok()?;
    let interpreter = interpreter(beginning.strip_prefix(b"#!")?);
    (!interpreter.is_empty() && !Path::new(&interpreter).exists()).then_some(interpreter)
}

/// What the beginning of a program says about an error.
fn cause(beginning: &[u8], errno: Errno) -> Option<String> {
    let Some(line) = beginning.strip_prefix(b"#!") else {
        return match errno {
            Errno::NOENT => Some("the loader that it asks for is not on this machine".to_owned()),
            Errno::NOEXEC => Some("it is no program of this machine, and has no `#!` line".to_owned()),
            _ => None,
        };
    };
    let interpreter = interpreter(line);
    match (errno, interpreter.strip_suffix('\r')) {
        (Errno::NOENT | Errno::NOEXEC, _) if interpreter.is_empty() => {
            Some("its `#!` line names no interpreter".to_owned())
        }
        (Errno::NOENT, Some(meant)) => Some(format!(
            "its `#!` line ends as on Windows, so that no interpreter `{meant}` is found: lines have to end with LF"
        )),
        (Errno::NOENT, None) => Some(format!("its interpreter `{interpreter}` is missing on this machine")),
        (Errno::ACCESS, _) => Some(format!("its interpreter `{interpreter}` may not be run")),
        _ => None,
    }
}

/// What stands first in the rest of a `#!` line.
fn interpreter(line: &[u8]) -> String {
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    line.trim_start_matches([' ', '\t']).split([' ', '\t']).next().unwrap_or_default().to_owned()
}

fn beginning(program: &Path) -> io::Result<Vec<u8>> {
    let mut beginning = Vec::new();
    File::open(program)?.take(FIRST_LINE).read_to_end(&mut beginning)?;
    Ok(beginning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let table: [(&[u8], Errno, Option<&str>); 10] = [
            (
                b"#!/usr/bin/foo -x\nrun\n",
                Errno::NOENT,
                Some("its interpreter `/usr/bin/foo` is missing on this machine"),
            ),
            (b"#! \t/usr/bin/foo\n", Errno::NOENT, Some("its interpreter `/usr/bin/foo` is missing on this machine")),
            (b"#!/usr/bin/foo", Errno::NOENT, Some("its interpreter `/usr/bin/foo` is missing on this machine")),
            (
                b"#!/bin/sh\r\nrun\r\n",
                Errno::NOENT,
                Some(
                    "its `#!` line ends as on Windows, so that no interpreter `/bin/sh` is found: lines have to end with LF",
                ),
            ),
            (b"#!/etc/passwd\n", Errno::ACCESS, Some("its interpreter `/etc/passwd` may not be run")),
            (b"#!\n", Errno::NOEXEC, Some("its `#!` line names no interpreter")),
            (b"\x7fELF", Errno::NOENT, Some("the loader that it asks for is not on this machine")),
            (b"echo hello\n", Errno::NOEXEC, Some("it is no program of this machine, and has no `#!` line")),
            (b"\x7fELF", Errno::NOMEM, None),
            (b"#!/bin/sh\n", Errno::TOOBIG, None),
        ];
        for (beginning, errno, expected) in table {
            assert_eq!(cause(beginning, errno).as_deref(), expected, "{:?}", String::from_utf8_lossy(beginning));
        }
    }
}
