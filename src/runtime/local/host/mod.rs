//! What pods and services need of the machine.

pub(crate) mod address;
pub(crate) mod allow;
pub(crate) mod cgroup;
pub(crate) mod files;
pub(crate) mod format;
pub mod open_files;
pub(crate) mod process;
pub(crate) mod program;
pub(crate) mod signals;
