//! Lends our connections to libgit2.
//!
//! libgit2 makes a transport from nothing but an address, on the thread that fetches. The address is
//! therefore a number, `launchway://7`, of a [`Session`] that knows the real one with its credentials and limits;
//! libgit2 never sees them. What goes wrong is kept in the session, because libgit2's errors carry only text.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use git2::transport::{Service as GitService, SmartSubtransport, SmartSubtransportStream, Transport};

use super::http::HttpRemote;
use super::{Deadline, Protocol, Service, Stream};
use crate::error::{Failure, Result};
use crate::source::Remote;
use crate::source::git::failed;
use crate::source::ls_refs::{MAX_LIST_BYTES, too_many};
use crate::source::url::UrlParts;

/// The scheme that libgit2 knows us by.
pub(in crate::source) const SCHEME: &str = "launchway";

/// What we have, so that it is not sent again: kilobytes. More than this is not sent from memory.
const MAX_REQUEST_BYTES: usize = 64 << 20;

/// How libgit2 begins what the server's error packet says.
const REMOTE_SAYS: &str = "remote error: ";

static SESSIONS: Mutex<BTreeMap<u64, Arc<Session>>> = Mutex::new(BTreeMap::new());

/// One fetch.
struct Session {
    remote: Remote,
    deadline: Deadline,
    /// How many bytes the server may still send, in all.
    left: AtomicU64,
    /// As the bound was.
    most: u64,
    /// Whether the server's own history ends somewhere.
    is_shallow: AtomicBool,
    failure: Mutex<Option<Failure>>,
}

/// Makes a remote reachable for libgit2 as long as this lives.
pub(in crate::source) struct Lent {
    number: u64,
    session: Arc<Session>,
}

impl Lent {
    /// `most` is how many bytes the server may send.
    pub(in crate::source) fn new(remote: &Remote, deadline: Deadline, most: u64) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (remote, left) = (remote.clone(), AtomicU64::new(most));
        let (is_shallow, failure) = (AtomicBool::new(false), Mutex::default());
        let session = Arc::new(Session { remote, deadline, left, most, is_shallow, failure });
        sessions().insert(number, Arc::clone(&session));
        Self { number, session }
    }

    /// The address under which libgit2 finds it.
    pub(in crate::source) fn url(&self) -> String {
        format!("{SCHEME}://{}", self.number)
    }

    /// What really went wrong behind an error of libgit2.
    pub(in crate::source) fn explain(&self, error: git2::Error) -> Failure {
        let url = &self.session.remote.url;
        if let Some(failure) = self.session.lock_failure().take() {
            return failure;
        }
        if self.session.deadline.has_passed() {
            return Failure::transient(format!("fetching from `{url}` took too long"));
        }
        if self.session.is_shallow.load(Ordering::Relaxed) {
            return Failure::stalled(format!("`{url}` is a shallow clone, which lacks its older history"))
                .hint("complete it with `git fetch --unshallow` there, or watch what it was cloned from");
        }
        if let Some(words) = error.message().strip_prefix(REMOTE_SAYS) {
            return refused(&self.session.remote, words);
        }
        failed(|| format!("fetching from `{url}` failed"))(error)
    }
}

/// What a server says in place of what it was asked for.
fn refused(remote: &Remote, words: &str) -> Failure {
    let words: String = words.chars().filter(|character| !character.is_control()).take(200).collect();
    Failure::stalled(format!("`{}` refuses", remote.url))
        .hint("check the repository's address, and who may read it, and write to it for notes")
        .because(words)
}

/// The refusal of what is larger than a fetch may be.
pub(in crate::source) fn too_much(from: impl Display, most: u64) -> Failure {
    Failure::stalled(format!("`{from}` sends more than {most} bytes at once"))
        .hint("if it is as large as that, raise `limits: {fetch: …}` of the repository")
}

impl Drop for Lent {
    fn drop(&mut self) {
        sessions().remove(&self.number);
    }
}

fn sessions() -> MutexGuard<'static, BTreeMap<u64, Arc<Session>>> {
    SESSIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    fn lock_failure(&self) -> MutexGuard<'_, Option<Failure>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the first failure, which is the cause of the others.
    fn keep(&self, failure: Failure) -> io::Error {
        self.lock_failure().get_or_insert(failure);
        io::Error::other("the connection failed")
    }

    /// Counts what was received; too much of it ends the session.
    fn received(&self, length: usize) -> io::Result<usize> {
        let bytes = u64::try_from(length).unwrap_or(u64::MAX);
        let spent = self.left.try_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        spent.map(|_left| length).map_err(|_left| self.keep(too_much(&self.remote.url, self.most)))
    }

    fn checked<T>(&self, result: Result<T>) -> io::Result<T> {
        result.map_err(|failure| self.keep(failure))
    }
}

/// Makes a transport for an address of ours.
pub(in crate::source) fn create(remote: &git2::Remote<'_>) -> std::result::Result<Transport, git2::Error> {
    let number = remote.url()?.strip_prefix(SCHEME).and_then(|rest| rest.strip_prefix("://"));
    let session = number.and_then(|number| number.parse().ok()).and_then(|number| sessions().get(&number).cloned());
    let session = session.ok_or_else(|| git2::Error::from_str("this address is not one of ours"))?;
    let stateless = matches!(session.remote.url.parts(), UrlParts::Http { .. });
    Transport::smart(remote, stateless, Dialer { session, http: Arc::default() })
}

/// Connects when libgit2 asks for a service.
struct Dialer {
    session: Arc<Session>,
    http: Arc<Mutex<Option<HttpRemote>>>,
}

impl SmartSubtransport for Dialer {
    fn action(
        &self,
        _url: &str,
        action: GitService,
    ) -> std::result::Result<Box<dyn SmartSubtransportStream>, git2::Error> {
        let first = match action {
            GitService::UploadPackLs => true,
            GitService::UploadPack => false,
            GitService::ReceivePackLs | GitService::ReceivePack => {
                return Err(git2::Error::from_str("nothing is pushed this way"));
            }
        };
        let stream = self.session.checked(self.connect(first));
        stream.map_err(|error| git2::Error::from_str(&error.to_string()))
    }

    fn close(&self) -> std::result::Result<(), git2::Error> {
        Ok(())
    }
}

impl Dialer {
    fn connect(&self, first: bool) -> Result<Box<dyn SmartSubtransportStream>> {
        let Session { remote, deadline, .. } = &*self.session;
        let session = Arc::clone(&self.session);
        if !matches!(remote.url.parts(), UrlParts::Http { .. }) {
            let stream = super::Connection::open(remote, Service::UploadPack, Protocol::V0, *deadline)?.stream;
            return Ok(Box::new(Conversation::new(session, stream)));
        }
        if !first {
            return Ok(Box::new(Exchange { session, http: Arc::clone(&self.http), state: State::Asking(Vec::new()) }));
        }
        let mut http = HttpRemote::new(remote, Protocol::V0, *deadline)?;
        let stream = http.advertisement(Service::UploadPack)?;
        *self.http.lock().unwrap_or_else(PoisonError::into_inner) = Some(http);
        Ok(Box::new(Conversation::new(session, stream)))
    }
}

/// A connection that both sides write to as they like; of HTTP, its first answer.
struct Conversation {
    session: Arc<Session>,
    stream: Stream,
    /// The bytes of the list of references, with which the server begins; nothing once it was answered. libgit2 keeps the
    /// list in memory.
    listed: Option<u64>,
    /// The end of what was read of the list.
    tail: Vec<u8>,
}

impl Conversation {
    fn new(session: Arc<Session>, stream: Stream) -> Self {
        Self { session, stream, listed: Some(0), tail: Vec::new() }
    }

    fn received(&mut self, data: &[u8]) -> io::Result<usize> {
        if let Some(listed) = &mut self.listed {
            *listed += u64::try_from(data.len()).unwrap_or(u64::MAX);
            if *listed > MAX_LIST_BYTES {
                return Err(self.session.keep(too_many(&self.session.remote)));
            }
            self.tail.extend_from_slice(data);
            if has_shallow_line(&self.tail) {
                self.session.is_shallow.store(true, Ordering::Relaxed);
            }
            let seen = self.tail.len().saturating_sub(SHALLOW_LINE - 1);
            self.tail.drain(..seen);
        }
        self.session.received(data.len())
    }
}

/// The bytes by which a line is known that says where the server's own history ends, after the references.
const SHALLOW_LINE: usize = 12;

/// libgit2 does not know these lines, and says that it does not.
fn has_shallow_line(list: &[u8]) -> bool {
    list.windows(SHALLOW_LINE).any(|line| matches!(line, b"0034shallow " | b"0035shallow "))
}

impl Read for Conversation {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.stream.read(buffer) {
            Ok(0) if !buffer.is_empty() => {
                let failure = self.stream.explain(io::ErrorKind::UnexpectedEof.into());
                drop(self.session.keep(failure));
                Ok(0)
            }
            Ok(length) => self.received(buffer.get(..length).unwrap_or_default()),
            Err(error) => Err(self.session.keep(self.stream.explain(error))),
        }
    }
}

impl Write for Conversation {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.listed = None;
        self.stream.write(data).map_err(|error| self.session.keep(self.stream.explain(error)))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One request over HTTP and its answer.
struct Exchange {
    session: Arc<Session>,
    http: Arc<Mutex<Option<HttpRemote>>>,
    state: State,
}

enum State {
    Asking(Vec<u8>),
    Answered(Box<Stream>),
}

impl Exchange {
    /// The answer; the request is sent when it is first asked for.
    fn answer(&mut self) -> Result<&mut Stream> {
        if let State::Asking(request) = &mut self.state {
            let request = std::mem::take(request);
            let http = self.http.lock().unwrap_or_else(PoisonError::into_inner);
            let http = http.as_ref().ok_or_else(|| Failure::transient("a request came before the connection"))?;
            self.state = State::Answered(Box::new(http.call(Service::UploadPack, request)?));
        }
        match &mut self.state {
            State::Answered(stream) => Ok(stream),
            State::Asking(_) => Err(Failure::transient("a request was not answered")),
        }
    }
}

impl Read for Exchange {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let session = Arc::clone(&self.session);
        let stream = session.checked(self.answer())?;
        let length = stream.read(buffer).map_err(|error| session.keep(stream.explain(error)))?;
        session.received(length)
    }
}

impl Write for Exchange {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match &mut self.state {
            State::Asking(request) if request.len() + data.len() <= MAX_REQUEST_BYTES => {
                request.extend_from_slice(data);
                Ok(data.len())
            }
            _ => Err(self.session.keep(Failure::stalled("a request to the Git server is too large"))),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
