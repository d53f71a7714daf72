//! Drives runs: tells them facts, commits what they decide, and performs what they ask for.
//!
//! [`transition`] turns inputs into one transaction, [`drive::Driver`] commits it, [`outbox`] takes actions from the
//! outbox and performs them, [`writer_lanes`] knows who writes statuses, and [`reconciler`] brings what is there to what is
//! wanted.

pub mod drive;
pub mod outbox;
mod pending;
pub mod perform;
pub mod reconciler;

pub mod services;
pub mod start;
pub mod transition;
pub mod writer_lanes;
