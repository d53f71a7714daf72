//! The daemon: the only room that names adapters and puts everything together.

pub mod accounts;
mod addresses;
pub mod app;
mod approvals;
pub mod aside;
mod code_writer;
pub mod commands;
pub mod comments;
mod environment;
mod environment_news;
pub mod environments;
pub mod housekeeping;
mod imports;
pub mod previews;
pub mod proposals;
pub(crate) mod replanning;
pub(crate) mod report_lane;
pub mod reporter;
pub mod repository;
pub mod reruns;
mod restoring;
pub mod state_folder;
pub mod watched;
pub mod watcher;
pub mod wiring;
