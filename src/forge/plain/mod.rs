//! Plain Git: statuses as Git notes, and signed calls of one's own.
//!
//! Repositories on GitHub write their statuses here too; its status API is not spoken yet.

mod notes;
mod webhook;

pub use notes::{NoteLine, Notes, NotesWriter};
pub(super) use webhook::{GENERIC, STANDARD};
