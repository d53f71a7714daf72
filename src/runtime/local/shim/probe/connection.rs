//! A check over TCP or HTTP that never blocks: whoever polls it calls [`Connection::advance`] when something
//! happened.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, ipproto, socket_with};

use crate::model::pod::HttpGetHandler;

/// The most that is read of an answer: its first line decides.
const MAX_ANSWER: usize = 4096;

/// A check under way.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    target: SocketAddr,
    step: Step,
}

#[derive(Debug)]
enum Step {
    Connecting { request: Option<Vec<u8>> },
    Writing { request: Vec<u8>, sent: usize },
    Reading { answer: Vec<u8> },
}

impl Connection {
    /// Begins a check. With a request, its answer must be a success; without, being accepted is enough.
    pub(crate) fn open(target: SocketAddr, request: Option<Vec<u8>>) -> Result<Self, String> {
        let stream = TcpStream::from(begin(target).map_err(|error| refused(target, &error.into()))?);
        Ok(Self { stream, target, step: Step::Connecting { request } })
    }

    /// What to poll for.
    pub(crate) fn interest(&self) -> PollFlags {
        match self.step {
            Step::Connecting { .. } | Step::Writing { .. } => PollFlags::OUT,
            Step::Reading { .. } => PollFlags::IN,
        }
    }

    /// Goes on as far as possible; the result once there is one.
    pub(crate) fn advance(&mut self) -> Option<Result<(), String>> {
        loop {
            let step = std::mem::replace(&mut self.step, Step::Reading { answer: Vec::new() });
            match self.take_step(step) {
                Ok(Progress::Next(next)) => self.step = next,
                Ok(Progress::Wait(same)) => {
                    self.step = same;
                    return None;
                }
                Ok(Progress::Done(result)) => return Some(result),
                Err(error) => return Some(Err(refused(self.target, &error))),
            }
        }
    }

    fn take_step(&mut self, step: Step) -> std::io::Result<Progress> {
        match step {
            Step::Connecting { request } => self.connected(request),
            Step::Writing { request, sent } if sent == request.len() => {
                Ok(Progress::Next(Step::Reading { answer: Vec::new() }))
            }
            Step::Writing { request, sent } => match self.stream.write(request.get(sent..).unwrap_or_default()) {
                Ok(count) => Ok(Progress::Next(Step::Writing { request, sent: sent + count })),
                Err(error) if waits(error.kind()) => Ok(Progress::Wait(Step::Writing { request, sent })),
                Err(error) => Err(error),
            },
            Step::Reading { answer } => self.read(answer),
        }
    }

    fn connected(&self, request: Option<Vec<u8>>) -> std::io::Result<Progress> {
        if let Some(error) = self.stream.take_error()? {
            return Err(error);
        }
        match (self.stream.peer_addr(), request) {
            (Err(error), request) if error.kind() == ErrorKind::NotConnected => {
                Ok(Progress::Wait(Step::Connecting { request }))
            }
            (Err(error), _) => Err(error),
            (Ok(_), None) => Ok(Progress::Done(Ok(()))),
            (Ok(_), Some(request)) => Ok(Progress::Next(Step::Writing { request, sent: 0 })),
        }
    }

    fn read(&mut self, mut answer: Vec<u8>) -> std::io::Result<Progress> {
        let mut buffer = [0; 512];
        match self.stream.read(&mut buffer) {
            Err(error) if waits(error.kind()) => Ok(Progress::Wait(Step::Reading { answer })),
            Err(error) => Err(error),
            Ok(count) => {
                answer.extend_from_slice(buffer.get(..count).unwrap_or_default());
                let complete = count == 0 || answer.contains(&b'\n') || answer.len() > MAX_ANSWER;
                let next =
                    if complete { Progress::Done(judge(&answer)) } else { Progress::Next(Step::Reading { answer }) };
                Ok(next)
            }
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

enum Progress {
    Next(Step),
    Wait(Step),
    Done(Result<(), String>),
}

fn waits(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn begin(target: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if target.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    match connect(&socket, &target) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error),
    }
}

fn refused(target: SocketAddr, error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => format!("nothing listens on {target}"),
        _ => format!("no connection to {target}: {error}"),
    }
}

/// 200 to 399 is good.
fn judge(answer: &[u8]) -> Result<(), String> {
    let line = String::from_utf8_lossy(answer.split(|byte| *byte == b'\n').next().unwrap_or_default());
    let mut words = line.split_ascii_whitespace();
    let code = words.next().filter(|version| version.starts_with("HTTP/")).and(words.next());
    match code.and_then(|code| code.parse::<u16>().ok()) {
        Some(200..=399) => Ok(()),
        Some(code) => Err(format!("HTTP status {code}")),
        None => Err("the answer is not HTTP".to_owned()),
    }
}

/// The request of an `httpGet` check. Fails if it would not be one request.
pub(crate) fn request(check: &HttpGetHandler, target: SocketAddr) -> Result<Vec<u8>, String> {
    let path = check.path.as_deref().filter(|path| !path.is_empty()).unwrap_or("/");
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let mut text = format!("GET {path} HTTP/1.1\r\n");
    let named = |name: &str| check.http_headers.iter().any(|header| header.name.eq_ignore_ascii_case(name));
    let own =
        [("Host", target.to_string()), ("User-Agent", "launchway-probe/1".to_owned()), ("Accept", "*/*".to_owned())];
    let own = own.into_iter().filter(|(name, _)| !named(name));
    let asked = check.http_headers.iter().map(|header| (header.name.as_str(), header.value.clone()));
    for (name, value) in own.chain(asked).chain([("Connection", "close".to_owned())]) {
        if name.is_empty()
            || name.contains(|c: char| c.is_control() || c == ':' || c == ' ')
            || value.contains(char::is_control)
        {
            return Err(format!("header `{}` is not valid", name.escape_debug()));
        }
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if path.contains(|c: char| c.is_control() || c == ' ') {
        return Err(format!("path `{}` is not valid", path.escape_debug()));
    }
    text.push_str("\r\n");
    Ok(text.into_bytes())
}

/// The address that a handler's `host` names; names are not looked up, because that may block for long.
pub(crate) fn host_address(host: &str) -> Result<IpAddr, String> {
    match host {
        "localhost" => Ok(IpAddr::from([127, 0, 0, 1])),
        other => other.parse().ok().ok_or_else(|| format!("probe host `{other}` is not an address")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::pod::{HttpHeader, Scalar};

    fn check(path: &str, headers: &[(&str, &str)]) -> HttpGetHandler {
        let headers = headers.iter().map(|(name, value)| HttpHeader { name: (*name).into(), value: (*value).into() });
        HttpGetHandler {
            path: Some(path.into()),
            port: Scalar::Number(1),
            host: None,
            scheme: None,
            http_headers: headers.collect(),
        }
    }

    #[test]
    fn the_first_line_of_the_answer_decides() {
        let cases: [(&[u8], bool); 6] = [
            (b"HTTP/1.1 200 OK\r\n", true),
            (b"HTTP/1.0 399\r\n", true),
            (b"HTTP/1.1 400 Bad\r\n", false),
            (b"HTTP/1.1 503\n", false),
            (b"", false),
            (b"SSH-2.0 200\r\n", false),
        ];
        for (answer, good) in cases {
            assert_eq!(judge(answer).is_ok(), good, "{answer:?}");
        }
    }

    #[test]
    fn a_request_cannot_smuggle_another() {
        let target = SocketAddr::from(([127, 0, 0, 1], 80));
        let text = String::from_utf8(request(&check("health", &[("Host", "shop")]), target).unwrap()).unwrap();
        assert!(text.starts_with("GET /health HTTP/1.1\r\n") && text.contains("Host: shop\r\n"));
        assert_eq!(text.matches("Host:").count(), 1);
        assert!(request(&check("/ HTTP/1.1\r\n", &[]), target).is_err());
        assert!(request(&check("/", &[("A", "b\r\nC: d")]), target).is_err());
    }
}
