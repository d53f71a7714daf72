//! Pods of the local runtime, with real shims and real processes.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failing test panics")]

mod another_life;
mod crash;
mod damage;
mod ending;
mod groups;
mod isolation;
mod kernel;
mod once;
mod replicas;
mod results;
mod running;
mod secrets;
mod surroundings;
mod versions;
mod world;

#[path = "../support/program.rs"]
mod program;
