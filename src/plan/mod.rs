//! From declared and applied to a plan: what a revision would do, and why. Pure.
//!
//! Planning has two phases, so that its work is proportional to what changed: [`build::differing`] compares digests
//! and names the records that have to be read; [`build::build`] decides about those.

pub mod assumed;
pub mod build;
pub mod change;
pub mod config_change;
pub mod controllers;
pub mod diff;
pub mod gate;
pub mod generated;
pub mod images;
pub mod kept;
pub mod line_diff;
pub mod order;
pub mod passed;
mod procedure;
pub mod prune;
pub mod selector;
pub mod summary;
mod trigger;
pub mod triggered;
pub mod under_way;

pub use self::procedure::{delivery_procedure, passed_procedure, procedure, same_procedure, same_tasks, sequence_for};
