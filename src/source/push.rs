//! One push of one reference.

use std::cell::Cell;

use git2::{ErrorCode, Oid, PushOptions, RemoteCallbacks};

use super::Remote;
use super::ls_refs::MAX_LIST_BYTES;
use super::transport::{Deadline, smart::Lent};
use crate::error::Result;

/// What became of a push.
pub(super) enum Pushed {
    /// The remote has it.
    Taken,
    /// The remote's reference does not lead to what was pushed, in these words; or it is nothing that could.
    Behind(String),
    /// The remote did not take it, in these words.
    Refused(String),
}

/// Pushes what a refspec says.
///
/// # Errors
/// If the remote cannot be reached, or takes nothing.
pub(super) fn push(mirror: &git2::Repository, remote: &Remote, refspec: &str) -> Result<Pushed> {
    push_over(mirror, remote, refspec, None)
}

/// The same, but only over what is expected to be there, if anything is: whatever else the remote has stays.
///
/// # Errors
/// As [`push`].
pub(super) fn push_over(
    mirror: &git2::Repository,
    remote: &Remote,
    refspec: &str,
    expected: Option<Oid>,
) -> Result<Pushed> {
    let deadline = Deadline::after(remote.time.transfer, remote.time.idle);
    let lent = Lent::new(remote, deadline, 2 * MAX_LIST_BYTES);
    let (mut rejection, moved) = (None, Cell::new(false));
    let mut callbacks = RemoteCallbacks::new();
    callbacks.push_update_reference(|_name, status| {
        rejection = status.map(str::to_owned);
        Ok(())
    });
    callbacks.push_negotiation(|updates| {
        moved.set(expected.is_some_and(|expected| updates.iter().any(|update| update.src() != expected)));
        if moved.get() { Err(git2::Error::from_str("the reference was moved")) } else { Ok(()) }
    });
    let mut options = PushOptions::new();
    options.remote_callbacks(callbacks);
    let mut connection = mirror.remote_anonymous(&lent.url()).map_err(|error| lent.explain("pushing to", error))?;
    let pushed = connection.push(&[refspec], Some(&mut options));
    drop(options);
    match (pushed, rejection) {
        (Err(error), _) if moved.get() => Ok(Pushed::Behind(error.message().to_owned())),
        // It may also not have followed on something that is no commit.
        (Err(error), _)
            if error.code() == ErrorCode::NotFastForward || error.message() == "object is no commit object" =>
        {
            Ok(Pushed::Behind(error.message().to_owned()))
        }
        (Err(error), _) => Err(lent.explain("pushing to", error)),
        (Ok(()), None) => Ok(Pushed::Taken),
        (Ok(()), Some(reason)) => Ok(Pushed::Refused(reason)),
    }
}

/// Whether a server's words may mean that the reference was not where we thought it was.
pub(super) fn means_moved(reason: &str) -> bool {
    let moved =
        ["failed to update ref", "fetch first", "non-fast-forward", "lock", "stale", "already exists", "but expected"];
    moved.iter().any(|words| reason.contains(words))
}
