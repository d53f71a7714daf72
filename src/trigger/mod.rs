//! What asks for a sync of a repository. A trigger carries no state: it only says "sync".

pub mod debounce;
pub mod poll;
pub mod schedule;
pub mod watch;
