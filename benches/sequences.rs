//! What sequences cost whose tasks executors do: `cargo bench --bench sequences`.
//!
//! First as fast as they become durable, with the real decisions and the real store; then a real daemon that is told events
//! over HTTP, at a pace.

#![expect(clippy::unwrap_used, reason = "a benchmark that fails has no result")]
#![expect(clippy::print_stdout, reason = "that is its result")]

mod support {
    pub(crate) mod daemon;
    pub(crate) mod figures;
    pub(crate) mod git;
    pub(crate) mod import;
    pub(crate) mod kernel;
    pub(crate) mod processor;
}
mod events {
    pub(crate) mod daemon;
    pub(crate) mod durable;

    /// The tasks of each sequence.
    const TASKS: [&str; 4] = ["build", "verify", "release", "announce"];
}

fn main() {
    events::durable::measure();
    events::daemon::measure();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap();
    println!("load {load}");
}
