//! GitLab: commit statuses, and calls about pushes.

mod status;
mod webhook;
mod writer;

pub(super) use webhook::DIALECT;
pub use writer::writer;
