//! A channel whose end is noticed at once, although nobody speaks.

use std::io;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::Shutdown;

/// The thread that waits for it, as lists of threads show it.
const THREAD: &str = "services";

/// This process' end.
#[derive(Debug)]
pub(super) struct WatchedChannel(OwnedFd);

impl WatchedChannel {
    /// Has a thread of its own do something once either end is closed, with how long it was open.
    pub(super) fn new(channel: OwnedFd, once_closed: impl FnOnce(Duration) + Send + 'static) -> io::Result<Self> {
        let (watched, since) = (channel.try_clone()?, Instant::now());
        thread::Builder::new().name(THREAD.to_owned()).spawn(move || {
            wait_until_closed(&watched);
            drop(watched);
            once_closed(since.elapsed());
        })?;
        Ok(Self(channel))
    }

    pub(super) fn end(&self) -> &OwnedFd {
        &self.0
    }
}

impl Drop for WatchedChannel {
    /// The thread has this end too.
    fn drop(&mut self) {
        rustix::net::shutdown(&self.0, Shutdown::Both).ok();
    }
}

/// Answers are somebody else's: of all that may happen only that is awaited which a poll always tells.
fn wait_until_closed(channel: &OwnedFd) {
    let mut closing = [PollFd::new(channel, PollFlags::empty())];
    while closing.iter().all(|it| it.revents().is_empty()) {
        // A poll that a signal ended is begun again.
        poll(&mut closing, None).ok();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::super::channel::{self, Message};
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    #[test]
    fn the_end_of_either_side_is_noticed_and_nothing_else() {
        for closes_here in [true, false] {
            let (here, there) = channel::pair().unwrap();
            let (tell, told) = mpsc::channel();
            let watched = WatchedChannel::new(here, move |_| tell.send(()).unwrap()).unwrap();
            channel::send(&there, &Message::Done).unwrap();
            assert!(told.recv_timeout(Duration::from_millis(50)).is_err());
            assert_eq!(channel::receive(watched.end()).unwrap().unwrap().0, Message::Done);
            if closes_here {
                drop(watched);
                assert!(channel::receive(&there).unwrap().is_none(), "the other side sees it as well");
            } else {
                drop(there);
            }
            told.recv_timeout(PATIENCE).unwrap();
        }
    }
}
