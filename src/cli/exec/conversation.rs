//! What is said between this process and a command in a pod.

use std::future::pending;
use std::io::{self, Read};
use std::thread;

use bytes::Bytes;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt as _, StreamExt as _};
use reqwest::Upgraded;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::codec::Framed;

use super::here;
use super::printer::Printer;
use crate::cli::output::Outcome;
use crate::error::Failure;
use crate::server::frame::{Ending, Frame, FrameCodec, WINDOW};

/// The most that is read of standard input at once.
const CHUNK: usize = 32 << 10;

type Frames = Framed<Upgraded, FrameCodec>;

/// A conversation with a command.
pub(super) struct Conversation {
    sink: SplitSink<Frames, Frame>,
    stream: SplitStream<Frames>,
    here: Here,
}

/// What this side has to say.
struct Here {
    /// What is typed; none once it has ended.
    typed: Option<mpsc::Receiver<Bytes>>,
    /// The terminal here got another size.
    resized: Option<Signal>,
}

impl Conversation {
    /// Begins to listen to standard input and to the terminal here.
    pub(super) fn new(upgraded: Upgraded, has_stdin: bool, has_terminal: bool) -> io::Result<Self> {
        let (sink, stream) = Framed::new(upgraded, FrameCodec::default()).split();
        let typed = has_stdin.then(type_on).transpose()?;
        let resized = has_terminal.then(|| signal(SignalKind::window_change())).transpose()?;
        Ok(Self { sink, stream, here: Here { typed, resized } })
    }

    /// Talks until the command has ended.
    pub(super) async fn hold(mut self, printer: &mut Printer) -> Outcome<Ending> {
        let mut window = WINDOW;
        loop {
            tokio::select! {
                frame = self.stream.next() => match frame {
                    Some(Ok(Frame::Stdout(bytes))) => printer.stdout(&bytes)?,
                    Some(Ok(Frame::Stderr(bytes))) => printer.stderr(&bytes)?,
                    Some(Ok(Frame::Taken)) => window += 1,
                    Some(Ok(Frame::Alive)) => {}
                    Some(Ok(Frame::Ended(ending))) => return Ok(ending),
                    Some(Ok(Frame::Stdin(_) | Frame::EndOfInput | Frame::Resize(_))) | None => {
                        return Err(broke_off().into());
                    }
                    Some(Err(error)) => return Err(broke_off().because(error).into()),
                },
                frame = self.here.next(), if window > 0 => {
                    window -= 1;
                    // What keeps the other side from listening is heard of it.
                    self.sink.send(frame).await.ok();
                }
            }
        }
    }
}

impl Here {
    async fn next(&mut self) -> Frame {
        tokio::select! {
            typed = received(&mut self.typed) => match typed {
                Some(bytes) => Frame::Stdin(bytes),
                None => {
                    self.typed = None;
                    Frame::EndOfInput
                }
            },
            size = resized(&mut self.resized) => Frame::Resize(size),
        }
    }
}

async fn received(typed: &mut Option<mpsc::Receiver<Bytes>>) -> Option<Bytes> {
    match typed {
        Some(typed) => typed.recv().await,
        None => pending().await,
    }
}

async fn resized(resized: &mut Option<Signal>) -> crate::runtime::exec::TerminalSize {
    if let Some(resized) = resized {
        while resized.recv().await.is_some() {
            // Without an answer it has the size that it had.
            if let Ok(size) = here::size() {
                return size;
            }
        }
    }
    pending().await
}

/// Reads standard input on a thread of its own, which nobody waits for: reading cannot be interrupted.
fn type_on() -> io::Result<mpsc::Receiver<Bytes>> {
    let (typed, receiver) = mpsc::channel(1);
    let read = move || {
        let mut chunk = vec![0; CHUNK];
        loop {
            match io::stdin().lock().read(&mut chunk) {
                Ok(count) if count > 0 => {
                    let bytes = Bytes::copy_from_slice(chunk.get(..count).unwrap_or_default());
                    if typed.blocking_send(bytes).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => return,
            }
        }
    };
    thread::Builder::new().name("stdin".to_owned()).spawn(read)?;
    Ok(receiver)
}

fn broke_off() -> Failure {
    Failure::transient("the connection to the command broke off; what becomes of it is not known")
}
