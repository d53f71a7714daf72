//! The simulated world with interleavings: a daemon's tasks, people, pods and pushes take turns at every call of the
//! store and of the runtime, in an order that a seed chooses.

pub mod alarm;
pub mod checks;
pub mod daemon;
mod events;
mod executors;
pub mod fault;
mod hosted;
pub mod hosting;
mod people;
pub mod random;
mod runtime;
pub mod scheduler;
pub mod story;
mod trace;
mod world;
