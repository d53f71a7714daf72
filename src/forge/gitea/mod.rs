//! Gitea, and Forgejo, which speaks the same API: commit statuses, and calls about pushes.

mod status;
mod webhook;
mod writer;

pub(super) use webhook::{FORGEJO, GITEA, GOGS};
pub use writer::writer;
