//! Running a command in a pod: what is asked for, and the conversation with it.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::error::Result;

/// What to run beside the processes of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecCommand {
    /// The command and its arguments, not run by a shell.
    pub words: Vec<String>,
    /// Whether it has a standard input; without one it reads nothing.
    pub stdin: bool,
    /// The terminal that it runs on; without one its outputs are kept apart.
    pub terminal: Option<Terminal>,
}

/// A terminal for a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Terminal {
    /// What it understands, as in `TERM`.
    pub kind: String,
    /// How large it is at first.
    pub size: TerminalSize,
}

/// How large a terminal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

/// What a command is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecInput {
    /// More of its standard input.
    Stdin(Bytes),
    /// Its standard input ends here.
    EndOfInput,
    /// Its terminal has another size now.
    Resize(TerminalSize),
}

/// What is heard of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecOutput {
    /// More of its standard output, or of what its terminal shows.
    Stdout(Bytes),
    /// More of its standard error.
    Stderr(Bytes),
    /// Its exit code, or 128 + the number of the signal that ended it; nothing follows.
    Ended(i32),
}

/// A conversation with a command that runs. Both ends are bounded: a command whose output nobody takes has to wait, and so has
/// whoever writes more than it reads. Where this is dropped before its end, the command is told to hang up, and is killed
/// if it does not.
#[derive(Debug)]
pub struct ExecSession {
    /// What it is told, in order.
    pub input: mpsc::Sender<ExecInput>,
    /// What is heard of it, in order; one that ends without [`ExecOutput::Ended`] was lost.
    pub output: mpsc::Receiver<Result<ExecOutput>>,
}
