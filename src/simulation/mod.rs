//! What would come, without a server: the real decisions, driver, outbox and reconciler over a runtime that only pretends,
//! and a clock that moves when it is told to.

pub mod hosting;
pub mod indicators;
pub mod memory_store;
pub mod outcome;
pub mod play;
pub mod runtime;
pub mod script;
pub mod world;
