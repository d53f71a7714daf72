//! What pods and services need of the machine.

pub(crate) mod address;
pub(crate) mod allow;
pub(crate) mod beneath;
pub(crate) mod cgroup;
pub(crate) mod files;
pub(crate) mod format;
pub(crate) mod isolation;
pub(crate) mod mount;
pub mod open_files;
mod powers;
pub(crate) mod process;
pub(crate) mod program;
pub(crate) mod reach;
mod rights;
pub(crate) mod signals;
pub(crate) mod unrunnable;
pub(crate) mod user;
pub(crate) mod wait;
