//! Ways to a Git server: HTTP by reqwest, SSH by the `ssh` program, `git://` by a socket; and into a repository on this
//! machine, which is read without any, by the program `git`.
//!
//! One [`Connection`] serves both our own `ls-refs` and libgit2 (through [`smart`]), so that credentials, time limits
//! and messages are the same for both.

use std::time::{Duration, Instant};

use super::Remote;
use super::url::UrlParts;
use crate::error::{Failure, Result};

mod http;
mod program;
mod receive_pack;
pub(super) mod smart;
mod ssh;
mod stream;
mod tcp;

pub(super) use program::answer;
pub(super) use stream::Stream;

/// What a server is asked to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    UploadPack,
    ReceivePack,
}

impl Service {
    fn name(self) -> &'static str {
        match self {
            Service::UploadPack => "git-upload-pack",
            Service::ReceivePack => "git-receive-pack",
        }
    }
}

/// The protocol that is asked for; servers that do not know it answer in an older one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// References first: the only one that libgit2 speaks.
    V0,
    /// Capabilities first.
    V2,
}

/// When an operation must be done, and how long each byte may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    at: Instant,
    idle: Duration,
}

impl Deadline {
    pub(super) fn after(limit: Duration, idle: Duration) -> Self {
        Self { at: Instant::now() + limit, idle }
    }

    pub(super) fn has_passed(&self) -> bool {
        self.at <= Instant::now()
    }

    /// How long the next step may take.
    fn step(&self) -> Duration {
        self.at.saturating_duration_since(Instant::now()).min(self.idle)
    }
}

/// A conversation with a server.
#[derive(Debug)]
pub(super) struct Connection {
    http: Option<http::HttpRemote>,
    service: Service,
    stream: Stream,
}

impl Connection {
    /// Connects and asks for a service; the server's first words are in [`Connection::stream`].
    pub(super) fn open(remote: &Remote, service: Service, protocol: Protocol, deadline: Deadline) -> Result<Self> {
        let (http, stream) = match remote.url.parts() {
            UrlParts::Http { .. } => {
                let mut http = http::HttpRemote::new(remote, protocol, deadline)?;
                let stream = http.advertisement(service)?;
                (Some(http), stream)
            }
            UrlParts::Ssh { .. } => (None, ssh::open(remote, service, protocol, deadline)?),
            UrlParts::Git { .. } => (None, tcp::open(remote, service, protocol, deadline)?),
            UrlParts::Local(path) if service == Service::ReceivePack => {
                (None, receive_pack::open(path, format!("`{}`", remote.url), deadline)?)
            }
            UrlParts::Local(path) => {
                return Err(Failure::stalled(format!("`{}` is not reached over a network", path.display())));
            }
        };
        Ok(Self { http, service, stream })
    }

    /// Sends a whole request; its answer is in [`Connection::stream`].
    pub(super) fn send(&mut self, request: Vec<u8>) -> Result<()> {
        match &self.http {
            Some(http) => self.stream = http.call(self.service, request)?,
            None => self.stream.send(&request).map_err(|error| self.stream.explain(error))?,
        }
        Ok(())
    }

    pub(super) fn service(&self) -> Service {
        self.service
    }

    pub(super) fn stream(&mut self) -> &mut Stream {
        &mut self.stream
    }
}
