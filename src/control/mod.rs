//! The daemon: the only room that names adapters and puts everything together.

pub mod act;
pub mod command;
pub mod commands;
pub mod deliver;
pub mod look;
pub mod reporter;
pub mod state_folder;
pub mod watcher;
