//! The daemon: the only room that names adapters and puts everything together.

pub mod act;
pub mod app;
pub mod command;
pub mod commands;
pub mod deliver;
pub mod housekeeping;
mod report_lane;
pub mod reporter;
pub mod repository;
pub mod state_folder;
pub mod sync;
pub mod watcher;
pub mod wiring;
