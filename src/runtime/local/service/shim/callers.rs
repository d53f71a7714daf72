//! Who speaks to the shim: the daemon, and those who have sockets for it.

use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::{SocketFlags, accept_with};

use super::super::channel::{self, Message};

/// The most at once; more wait at the entrance.
const MOST: usize = 32;
/// How long one may take to receive what the shim says; who is stopped must not stop it too.
const PATIENCE: Duration = Duration::from_secs(2);

/// All of them, and where others come in.
pub(super) struct Callers {
    entrance: OwnedFd,
    let_in: Vec<Caller>,
}

/// One of them.
pub(super) struct Caller {
    channel: OwnedFd,
    /// Whether it has given all its sockets, and waits to be relieved of them.
    pub(super) has_given: bool,
}

/// What one has said, with what came along.
pub(super) type Heard = (Caller, Message, Vec<TcpListener>);

impl Caller {
    pub(super) fn answer(&self, message: &Message) -> io::Result<()> {
        channel::send(&self.channel, message)
    }

    pub(super) fn channel(&self) -> &OwnedFd {
        &self.channel
    }
}

impl Callers {
    pub(super) fn new(entrance: OwnedFd) -> Self {
        Self { entrance, let_in: Vec::new() }
    }

    /// What becomes readable when somebody speaks or comes in: the entrance is the first.
    pub(super) fn sources(&self) -> impl Iterator<Item = &OwnedFd> {
        std::iter::once(&self.entrance).chain(self.let_in.iter().map(|caller| &caller.channel))
    }

    /// What those of the sources that are readable say. Who has spoken is kept again if it may go on; others are gone.
    pub(super) fn hear(&mut self, readable: &[bool]) -> Vec<Heard> {
        let mut heard = Vec::new();
        let mut silent = Vec::new();
        for (caller, readable) in self.let_in.drain(..).zip(readable.iter().skip(1)) {
            if !readable {
                silent.push(caller);
            } else if let Ok(Some((message, sockets))) = channel::receive(&caller.channel) {
                heard.push((caller, message, sockets));
            }
        }
        self.let_in = silent;
        if readable.first() == Some(&true) {
            self.let_others_in(heard.len());
        }
        heard
    }

    pub(super) fn keep(&mut self, caller: Caller) {
        self.let_in.push(caller);
    }

    /// Tells those who have given all their sockets that these are in good hands.
    pub(super) fn relieve(&mut self) {
        for caller in self.let_in.extract_if(.., |caller| caller.has_given) {
            // Who is gone need not be told.
            caller.answer(&Message::Relieved).ok();
        }
    }

    fn let_others_in(&mut self, heard: usize) {
        while self.let_in.len() + heard < MOST {
            let Ok(channel) = accept_with(&self.entrance, SocketFlags::CLOEXEC) else { return };
            if channel::be_patient(&channel, PATIENCE).is_ok() {
                self.let_in.push(Caller { channel, has_given: false });
            }
        }
    }
}
