//! The signals that a shim listens to.

use std::io;
use std::os::unix::net::UnixStream;

use signal_hook::consts::SIGTERM;

/// A signal, as a stream that can be polled.
#[derive(Debug)]
pub(crate) struct SignalStream(UnixStream);

impl SignalStream {
    /// SIGTERM does not end this process any more; it is told.
    pub(crate) fn terminate() -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(SIGTERM, theirs)?;
        Ok(Self(ours))
    }

    /// Can be read from once the signal came.
    pub(crate) fn source(&self) -> &UnixStream {
        &self.0
    }

    /// Whether it came since the last time.
    pub(crate) fn take(&self) -> bool {
        let mut came = false;
        while matches!(io::Read::read(&mut &self.0, &mut [0; 16]), Ok(1..)) {
            came = true;
        }
        came
    }
}
