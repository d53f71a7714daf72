//! The terminal and the signals of this process while a command runs elsewhere.

use std::future::pending;
use std::io::{self, IsTerminal};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::runtime::exec::TerminalSize;

/// The terminal of standard input while every key is the command's; as it was before once this is dropped, however that
/// comes.
pub(super) struct RawTerminal(Termios);

impl RawTerminal {
    /// Passes on every key from now on, those that would end this process included.
    pub(super) fn enter() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        Ok(Self(before))
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing any more.
        tcsetattr(io::stdin(), OptionalActions::Now, &self.0).ok();
    }
}

/// How large the terminal here is.
pub(super) fn size() -> io::Result<TerminalSize> {
    let size = if io::stdin().is_terminal() { tcgetwinsize(io::stdin())? } else { tcgetwinsize(io::stdout())? };
    Ok(TerminalSize { rows: size.ws_row, columns: size.ws_col })
}

/// The signals that would end this process.
pub(super) struct Signals {
    hang_up: Signal,
    interrupt: Signal,
    quit: Signal,
    terminate: Signal,
}

impl Signals {
    /// They end this process no more.
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            hang_up: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// The number of the next one; without an end where nobody listens.
    pub(super) async fn next(listening: Option<&mut Self>) -> u8 {
        let Some(Self { hang_up, interrupt, quit, terminate }) = listening else { return pending().await };
        tokio::select! {
            _ = hang_up.recv() => 1,
            _ = interrupt.recv() => 2,
            _ = quit.recv() => 3,
            _ = terminate.recv() => 15,
        }
    }
}
