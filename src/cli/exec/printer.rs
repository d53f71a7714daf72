//! Where the output of a command in a pod goes.

use std::io::{self, Write};

use serde::Serialize;

use crate::cli::output::{Complaint, Format, Outcome, Output, written};
use crate::error::Failure;

/// The most that is kept of both outputs for scripts.
const MOST_KEPT: usize = 16 << 20;

/// Passes the output on byte by byte, or keeps it for scripts.
pub(super) enum Printer {
    /// To the standard streams of this process.
    Streams,
    /// Until it is known how the command ends.
    Kept(Kept),
}

/// All of a command's output.
#[derive(Default)]
pub(super) struct Kept {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

/// The result of a command, for scripts.
#[derive(Serialize)]
struct Result<'a> {
    code: i32,
    stdout: &'a str,
    stderr: &'a str,
}

impl Printer {
    /// Scripts get it whole.
    pub(super) fn new(format: Format) -> Self {
        match format {
            Format::Human | Format::Name => Self::Streams,
            Format::Json | Format::Yaml => Self::Kept(Kept::default()),
        }
    }

    /// Takes standard output.
    pub(super) fn stdout(&mut self, bytes: &[u8]) -> Outcome<()> {
        match self {
            Self::Streams => pass_on(io::stdout(), bytes),
            Self::Kept(kept) => kept.take(bytes, |kept| &mut kept.stdout),
        }
    }

    /// Takes standard error.
    pub(super) fn stderr(&mut self, bytes: &[u8]) -> Outcome<()> {
        match self {
            Self::Streams => pass_on(io::stderr(), bytes),
            Self::Kept(kept) => kept.take(bytes, |kept| &mut kept.stderr),
        }
    }

    /// Prints what was kept, with the exit code.
    pub(super) fn finish(&self, code: i32, output: &mut Output) -> Outcome<()> {
        let Self::Kept(Kept { stdout, stderr }) = self else { return Ok(()) };
        let (stdout, stderr) = (String::from_utf8_lossy(stdout), String::from_utf8_lossy(stderr));
        output.show(&Result { code, stdout: &stdout, stderr: &stderr }, |_| String::new())
    }
}

impl Kept {
    fn take(&mut self, bytes: &[u8], of: impl Fn(&mut Self) -> &mut Vec<u8>) -> Outcome<()> {
        if self.stdout.len() + self.stderr.len() + bytes.len() > MOST_KEPT {
            let failure = Failure::stalled(format!("the command printed more than {} MiB", MOST_KEPT >> 20));
            return Err(Complaint::failed(failure.hint("leave `--output` out, and its output comes as it is")));
        }
        of(self).extend_from_slice(bytes);
        Ok(())
    }
}

/// Whoever waits for it sees it at once, also where lines have no end.
fn pass_on(mut stream: impl Write, bytes: &[u8]) -> Outcome<()> {
    written(stream.write_all(bytes).and_then(|()| stream.flush()))
}
