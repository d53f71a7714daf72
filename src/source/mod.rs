//! Git: mirrors, transports, trees and notes. The only room that knows `git2`.
//!
//! ```text
//!  RemoteUrl ─┐
//!             ├─ Remote ──▶ remote_head ......... the cheap question: one ref, nothing written
//!  Credentials┘      ├────▶ remote_tags ......... only where somebody waits for new ones
//!                    └────▶ Mirror::fetch ....... only when the head moved
//!                                 └─▶ Repository ─▶ commits, Tree, changed paths, notes (reads)
//!                           Mirror::write_notes . back to the watched repository
//! ```
//!
//! Everything is synchronous and bounded by [`TimeLimits`]: call it where blocking is allowed. Nothing here makes a
//! work tree; content is read from the object database.

use std::path::PathBuf;
use std::time::Duration;

use crate::error::{Failure, Result};

mod branch;
mod changes;
mod credentials;
mod damage;
mod export;
mod git;
mod head;
mod history;
mod local;
mod ls_refs;
mod merge;
mod mirror;
mod notes;
mod ownership;
mod packs;
mod pkt_line;
mod process;
mod push;
mod signature;
mod tags;
mod transport;
mod tree;
mod url;

pub use branch::{BranchPush, Edit};
pub use changes::PathChange;
pub use credentials::Credentials;
pub use export::Exported;
pub use git::ObjectId;
pub use head::{default_branch, named_by_head, remote_head, without_branch};
pub use history::{CommitInfo, Repository};
pub use merge::Merged;
pub use mirror::Mirror;
pub use notes::{NOTES_REF, NoteLine, Signature};
pub use signature::Said;
pub use tags::remote_tags;
pub use tree::{Blob, Entry, EntryKind, Tree};
pub use url::{RemoteUrl, Slug};

/// A branch of a repository somewhere, and how to get at it.
#[derive(Clone, Debug)]
pub struct Remote {
    /// Where it is.
    pub url: RemoteUrl,
    /// The branch's name, without `refs/heads/`.
    pub branch: String,
    /// What to identify oneself with.
    pub credentials: Credentials,
    /// Whether unencrypted transports to other machines are allowed.
    pub insecure: bool,
    /// How long things may take.
    pub time: TimeLimits,
    /// The program that carries `ssh://` addresses, called with OpenSSH's options.
    pub ssh_program: PathBuf,
}

impl Remote {
    /// A branch without credentials, with the usual limits.
    pub fn new(url: RemoteUrl, branch: impl Into<String>) -> Self {
        Self {
            url,
            branch: branch.into(),
            credentials: Credentials::default(),
            insecure: false,
            time: TimeLimits::default(),
            ssh_program: PathBuf::from("ssh"),
        }
    }

    /// The branch's full name. Fails as `Stalled` if Git would not allow it.
    fn branch_ref(&self) -> Result<String> {
        let name = format!("refs/heads/{}", self.branch);
        let refused = || Failure::stalled(format!("`{}` is not a branch name", self.branch.escape_debug()));
        git::is_reference_name(&name).then_some(name).ok_or_else(refused)
    }
}

/// How long talking to a remote may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimits {
    /// Until a connection stands.
    pub connect: Duration,
    /// Between two bytes.
    pub idle: Duration,
    /// One ref is read, from beginning to end.
    pub list: Duration,
    /// A fetch or a push, from beginning to end.
    pub transfer: Duration,
}

impl Default for TimeLimits {
    /// Patient enough for a first fetch over a slow line, short enough that a dead host is noticed within a minute.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(15),
            idle: Duration::from_secs(60),
            list: Duration::from_secs(30),
            transfer: Duration::from_secs(30 * 60),
        }
    }
}

/// How much of a repository is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one manifest.
    pub manifest: u64,
    /// Bytes of all files of one launchable.
    pub launchable: u64,
    /// Entries of one tree, all folders counted.
    pub entries: usize,
    /// Folders inside folders.
    pub depth: usize,
    /// Bytes of one fetch.
    pub fetch: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { manifest: 4 << 20, launchable: 2 << 30, entries: 1_000_000, depth: 128, fetch: 8 << 30 }
    }
}
