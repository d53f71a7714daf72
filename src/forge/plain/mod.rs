//! Plain Git: statuses as Git notes, and signed calls of one's own.

mod notes;
mod webhook;

pub use notes::{NoteLine, Notes, NotesWriter};
pub(super) use webhook::{GENERIC, STANDARD};
