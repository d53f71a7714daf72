//! The simulated world for tests: the real decisions, driver, outbox and reconciler over a runtime that only pretends.

pub mod guarded_store;
pub mod interleaved;
pub mod memory_store;
pub mod runtime;
pub mod script;
pub mod world;
