//! The signals that a shim listens to.

use std::io;
use std::os::unix::net::UnixStream;

use signal_hook::consts::{SIGHUP, SIGTERM};

/// SIGTERM and SIGHUP, as streams that can be polled.
pub(super) struct Signals {
    terminate: UnixStream,
    reload: UnixStream,
}

impl Signals {
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self { terminate: signal_stream(SIGTERM)?, reload: signal_stream(SIGHUP)? })
    }

    /// Can be read from once SIGTERM came.
    pub(super) fn terminate(&self) -> &UnixStream {
        &self.terminate
    }

    /// Can be read from once SIGHUP came.
    pub(super) fn reload(&self) -> &UnixStream {
        &self.reload
    }

    /// Whether SIGTERM came.
    pub(super) fn terminated(&self) -> bool {
        take_byte(&self.terminate)
    }

    /// Forgets every SIGHUP that came.
    pub(super) fn take_reload(&self) {
        while take_byte(&self.reload) {}
    }
}

fn signal_stream(signal: i32) -> io::Result<UnixStream> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(signal, theirs)?;
    Ok(ours)
}

fn take_byte(mut stream: &UnixStream) -> bool {
    matches!(io::Read::read(&mut stream, &mut [0]), Ok(1))
}
