//! The daemon: the only room that names adapters and puts everything together.

pub mod command;
pub mod commands;
pub mod deliver;
pub mod reporter;
pub mod state_folder;
