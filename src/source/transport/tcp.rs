//! The `git://` protocol.

use tokio::net::TcpStream;

use super::stream::{Stream, wait};
use super::{Deadline, Protocol, Service};
use crate::error::{Context as _, Failure, Result};
use crate::source::Remote;
use crate::source::pkt_line;
use crate::source::url::UrlParts;

pub(super) fn open(remote: &Remote, service: Service, protocol: Protocol, deadline: Deadline) -> Result<Stream> {
    let UrlParts::Git { host, port, path } = remote.url.parts() else {
        return Err(Failure::stalled(format!("`{}` is not a git:// address", remote.url)));
    };
    let target = (host.clone(), *port);
    let limit = deadline.step().min(remote.time.connect);
    let socket =
        wait(limit, TcpStream::connect(target)).or_transient(|| format!("cannot connect to `{}`", remote.url))?;
    let (reader, writer) = socket.into_split();
    let peer = format!("`{}`", remote.url);
    let mut stream = Stream::new(Box::new(reader), Some(Box::new(writer)), deadline, peer);
    stream.send(&request(service, protocol, host, path)).map_err(|error| stream.explain(error))?;
    Ok(stream)
}

fn request(service: Service, protocol: Protocol, host: &str, path: &str) -> Vec<u8> {
    let mut line = format!("{} {path}\0host={host}\0", service.name());
    if protocol == Protocol::V2 {
        line.push_str("\0version=2\0");
    }
    let mut request = Vec::new();
    pkt_line::push_line(&mut request, line.as_bytes());
    request
}
