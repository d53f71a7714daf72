//! What is said over an upgraded connection on which a command runs in a pod. A frame is its length in four bytes, the
//! highest first, the number of its channel, and its content. The channels that Kubernetes' `v5.channel.k8s.io` has
//! as well have its numbers.

use std::io;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use tokio_util::codec::{Decoder, Encoder, LengthDelimitedCodec};

use crate::runtime::exec::TerminalSize;

/// What the connection is upgraded to.
pub const PROTOCOL: &str = "launchway-exec.v1";
/// The most bytes of content in a frame.
pub const MOST_CONTENT: usize = 64 << 10;
/// How many frames of a client may be under way: it waits for [`Frame::Taken`] before it sends more. So the server never has
/// to leave unread what follows, such as the client's end, while a command reads nothing.
pub const WINDOW: usize = 8;

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ENDED: u8 = 3;
const RESIZE: u8 = 4;
const TAKEN: u8 = 5;
const ALIVE: u8 = 6;
const CLOSE: u8 = 255;

/// One thing that is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// The client: more standard input.
    Stdin(Bytes),
    /// The client: no more standard input.
    EndOfInput,
    /// The client: its terminal has another size.
    Resize(TerminalSize),
    /// The server: more standard output.
    Stdout(Bytes),
    /// The server: more standard error.
    Stderr(Bytes),
    /// The server: the command has taken one of the client's frames.
    Taken,
    /// The server: there is nothing to say, which keeps proxies from giving up.
    Alive,
    /// The server: how it ended; nothing follows.
    Ended(Ending),
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ending {
    /// With an exit code; 128 + the signal's number if a signal ended it.
    Code(i32),
    /// Nobody knows how, because of this.
    Problem(String),
}

/// Reads and writes [`Frame`]s.
#[derive(Debug)]
pub struct FrameCodec(LengthDelimitedCodec);

impl Default for FrameCodec {
    fn default() -> Self {
        Self(LengthDelimitedCodec::builder().max_frame_length(MOST_CONTENT + 1).new_codec())
    }
}

impl Encoder<Frame> for FrameCodec {
    type Error = io::Error;

    fn encode(&mut self, frame: Frame, buffer: &mut BytesMut) -> io::Result<()> {
        let (channel, content) = match frame {
            Frame::Stdin(content) => (STDIN, content),
            Frame::Stdout(content) => (STDOUT, content),
            Frame::Stderr(content) => (STDERR, content),
            Frame::Ended(ending) => (ENDED, serde_json::to_vec(&ending)?.into()),
            Frame::Resize(size) => (RESIZE, serde_json::to_vec(&size)?.into()),
            Frame::Taken => (TAKEN, Bytes::new()),
            Frame::Alive => (ALIVE, Bytes::new()),
            Frame::EndOfInput => (CLOSE, Bytes::new()),
        };
        let mut whole = BytesMut::with_capacity(content.len() + 1);
        whole.put_u8(channel);
        whole.put(content);
        self.0.encode(whole.freeze(), buffer)
    }
}

impl Decoder for FrameCodec {
    type Item = Frame;
    type Error = io::Error;

    fn decode(&mut self, buffer: &mut BytesMut) -> io::Result<Option<Frame>> {
        let Some(mut whole) = self.0.decode(buffer)? else { return Ok(None) };
        let channel = whole.try_get_u8().map_err(io::Error::other)?;
        let content = whole.freeze();
        Ok(Some(match channel {
            STDIN => Frame::Stdin(content),
            STDOUT => Frame::Stdout(content),
            STDERR => Frame::Stderr(content),
            ENDED => Frame::Ended(serde_json::from_slice(&content)?),
            RESIZE => Frame::Resize(serde_json::from_slice(&content)?),
            TAKEN => Frame::Taken,
            ALIVE => Frame::Alive,
            CLOSE => Frame::EndOfInput,
            other => return Err(io::Error::new(io::ErrorKind::InvalidData, format!("there is no channel {other}"))),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_arrive_as_they_were_sent_however_they_are_cut() {
        let sent = [
            Frame::Stdin(Bytes::from_static(b"\0\xff\n")),
            Frame::Stdout(Bytes::from(vec![7; MOST_CONTENT])),
            Frame::Stderr(Bytes::new()),
            Frame::Ended(Ending::Code(137)),
            Frame::Ended(Ending::Problem("lost".into())),
            Frame::Resize(TerminalSize { rows: 24, columns: 80 }),
            Frame::Taken,
            Frame::Alive,
            Frame::EndOfInput,
        ];
        let (mut codec, mut written) = (FrameCodec::default(), BytesMut::new());
        sent.iter().for_each(|frame| codec.encode(frame.clone(), &mut written).unwrap());
        let (mut came, mut read) = (Vec::new(), BytesMut::new());
        for piece in written.chunks(1000) {
            read.extend_from_slice(piece);
            came.extend(std::iter::from_fn(|| codec.decode(&mut read).unwrap()));
        }
        assert_eq!(came, sent);
        assert!(read.is_empty());
    }

    #[test]
    fn what_is_too_large_or_of_no_channel_is_refused() {
        for bad in [&[0xff, 0xff, 0xff, 0xff, 1][..], &[0, 0, 0, 0], &[0, 0, 0, 1, 77], &[0, 0, 0, 2, 4, b'?']] {
            assert!(FrameCodec::default().decode(&mut BytesMut::from(bad)).is_err(), "{bad:?}");
        }
        let large = Frame::Stdin(Bytes::from(vec![0; MOST_CONTENT + 1]));
        assert!(FrameCodec::default().encode(large, &mut BytesMut::new()).is_err());
    }
}
