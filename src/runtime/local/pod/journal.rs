//! The machine's journal: a datagram for each line that a container prints, by journald's native protocol.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

use super::record::PodRecord;

/// A line that is longer is sent in parts; journald's own limit for a line.
const LINE_BYTES: usize = 48 << 10;
/// `info`, as for what services print.
const PRIORITY: &str = "6";

/// Sends what a container prints to the journal. A journal that is not there or has no room loses lines, never the container.
#[derive(Debug)]
pub(crate) struct Journal {
    socket: UnixDatagram,
    path: PathBuf,
    /// What stands beside each line.
    fields: String,
    line: Vec<u8>,
}

impl Journal {
    /// The journal of a container, if the pod's output goes to one.
    pub(crate) fn of(record: &PodRecord, container: &str) -> io::Result<Option<Self>> {
        let Some(path) = record.journal.clone() else { return Ok(None) };
        let socket = UnixDatagram::unbound()?;
        // A journal that has no room must not hold the container up.
        socket.set_nonblocking(true)?;
        let id = &record.pod.id;
        let fields = format!(
            "PRIORITY={PRIORITY}\nSYSLOG_IDENTIFIER={name}\nLAUNCHWAY_NAMESPACE={}\nLAUNCHWAY_POD={name}\nLAUNCHWAY_CONTAINER={container}\n",
            id.namespace,
            name = id.name,
        );
        Ok(Some(Self { socket, path, fields, line: Vec::new() }))
    }

    /// Takes some output, and sends the lines that end with it.
    pub(crate) fn write(&mut self, output: &[u8]) {
        for piece in output.split_inclusive(|byte| *byte == b'\n') {
            let text = piece.strip_suffix(b"\n").unwrap_or(piece);
            self.line.extend_from_slice(text);
            if text.len() < piece.len() || self.line.len() >= LINE_BYTES {
                self.end_line();
            }
        }
    }

    /// Sends a line that has no end.
    pub(crate) fn end_line(&mut self) {
        if !self.line.is_empty() {
            let message = [self.fields.as_bytes(), b"MESSAGE=", &self.line, b"\n"].concat();
            // What it does not take is kept in the files all the same.
            self.socket.send_to(&message, &self.path).ok();
            self.line.clear();
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.end_line();
    }
}
