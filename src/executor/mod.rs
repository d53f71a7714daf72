//! Drives runs: tells them facts, commits what they decide, and performs what they ask for.
//!
//! [`drive::Driver`] reads what a decision of the engine asks for and commits what it decided, [`outbox`] takes actions
//! from the outbox and performs them, [`writer_lanes`] knows who writes statuses, and [`reconciler`] brings what is there
//! to what is wanted.

pub mod applied;
pub mod drive;
pub mod outbox;
pub mod perform;
pub mod reconciler;

pub mod services;
pub mod writer_lanes;
