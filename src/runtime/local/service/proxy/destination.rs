//! Where a connection leads.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long connecting may take. On this machine it takes microseconds; a full queue of the pod costs a second or two.
const CONNECT: Duration = Duration::from_secs(5);

/// A port of a pod, or of a machine outside. Ports are used again by other pods, so the pod belongs to its identity.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Destination {
    /// The folder of the pod, unless it leads outside.
    pub(super) pod: Option<Arc<Path>>,
    /// An address or a name.
    pub(super) host: Arc<str>,
    /// The port.
    pub(super) port: u16,
}

impl Destination {
    /// Connects to it.
    pub(super) async fn connect(&self) -> io::Result<TcpStream> {
        let stream = timeout(CONNECT, TcpStream::connect((&*self.host, self.port))).await??;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}
