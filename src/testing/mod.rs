//! Stories told in the simulated world, for tests.

pub mod guarded_store;
pub mod interleaved;
pub mod rerun;
pub mod script;
pub mod world;
