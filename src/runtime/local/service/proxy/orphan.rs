//! A proxy whose shim died has the only sockets: it gives them to another one, which it starts if there is none.

use std::io;
use std::process::Child;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::sleep;

use super::super::channel::{self, Message, Port};
use super::super::record::ServicesDir;
use super::super::shim::{complain, spawn_again};

/// The pause between two tries.
const RETRY: Duration = Duration::from_millis(20);
/// How long a shim may take to have a proxy for the sockets.
const PATIENCE: Duration = Duration::from_secs(5);

/// Returns when a shim, and its proxy, have the sockets, or when nobody wants them any more.
pub(super) async fn find_shim<'a, I>(dir: &ServicesDir, sockets: impl Fn() -> I)
where
    I: IntoIterator<Item = (Port, &'a Arc<TcpListener>)>,
{
    let mut started: Option<Child> = None;
    while dir.path().exists() {
        match give(dir, sockets()) {
            Ok(()) => return,
            // What was started is not listening yet, or has ended.
            Err(_) if started.as_mut().is_some_and(lives) => {}
            Err(_) => match spawn_again(dir) {
                Ok(shim) => started = Some(shim),
                Err(error) => complain(&format!("cannot start a shim: {error}")),
            },
        }
        sleep(RETRY).await;
    }
}

fn give<'a>(dir: &ServicesDir, sockets: impl IntoIterator<Item = (Port, &'a Arc<TcpListener>)>) -> io::Result<()> {
    let shim = channel::connect(dir, PATIENCE)?;
    channel::send_sockets(&shim, sockets)?;
    channel::send(&shim, &Message::Done)?;
    match channel::receive(&shim)? {
        Some((Message::Relieved, _)) => Ok(()),
        _ => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

fn lives(process: &mut Child) -> bool {
    matches!(process.try_wait(), Ok(None))
}
