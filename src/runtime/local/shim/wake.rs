//! How a shim is woken when something was asked of it: by a byte in a pipe that has a name in the pod's folder. It needs
//! one descriptor, where watching the folder would need one of the few inotify instances that a user has.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{CWD, Mode, OFlags, mkfifoat, open};
use rustix::io::{Errno, read, write};

use crate::runtime::local::pod::paths::PodDir;

/// The end at which a shim listens.
#[derive(Debug)]
pub(crate) struct Wake(OwnedFd);

impl Wake {
    /// Listens; whatever is asked from now on is heard.
    pub(crate) fn listen(dir: &PodDir) -> io::Result<Self> {
        match mkfifoat(CWD, dir.wake(), Mode::RUSR | Mode::WUSR) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        // Open for writing too, so that it never comes to its end.
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(Self(open(dir.wake(), flags, Mode::empty())?))
    }

    /// Becomes readable when the shim is to examine everything.
    pub(crate) fn source(&self) -> &OwnedFd {
        &self.0
    }

    /// Takes what was heard so far; says whether anything was.
    pub(crate) fn take(&self) -> bool {
        let (mut buffer, mut heard) = ([0_u8; 64], false);
        while matches!(read(&self.0, &mut buffer), Ok(count) if count > 0) {
            heard = true;
        }
        heard
    }
}

/// Wakes the shim of a pod, if one listens: another one examines everything when it starts.
pub(crate) fn wake(dir: &PodDir) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match open(dir.wake(), flags, Mode::empty()).and_then(|pipe| write(&pipe, b"!")) {
        // A full pipe wakes as well.
        Ok(_) | Err(Errno::NOENT | Errno::NXIO | Errno::AGAIN) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    fn is_woken(listening: &Wake) -> bool {
        let mut fds = [PollFd::new(listening.source(), PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::try_from(Duration::ZERO).unwrap())).unwrap() == 1
    }

    #[test]
    fn who_listens_is_woken_until_it_has_taken_it() {
        let folder = tempfile::tempdir().unwrap();
        let dir = PodDir::new(folder.path());
        wake(&dir).unwrap(); // nobody listens, which is fine
        let listening = Wake::listen(&dir).unwrap();
        assert!(!is_woken(&listening));
        (0..100_000).for_each(|_| wake(&dir).unwrap());
        assert!(is_woken(&listening));
        assert!(listening.take() && !listening.take());
        assert!(!is_woken(&listening));
        drop(listening);
        wake(&dir).unwrap();
        assert!(!is_woken(&Wake::listen(&dir).unwrap()), "what was asked of an earlier one is not heard");
    }
}
