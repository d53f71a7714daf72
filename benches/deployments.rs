//! What deployments cost that go wrong, and many that are only read: `cargo bench --bench deployments`.
//!
//! Measured are the real program and real pods: reading, validating and planning 2,000 deployment configs of which nothing is
//! known yet, and how long customers get answers of a version whose hook after the rollout has failed.

#![expect(clippy::unwrap_used, reason = "a benchmark that fails has no result")]
#![expect(clippy::print_stdout, reason = "that is its result")]

mod support {
    pub(crate) mod cold;
    pub(crate) mod daemon;
    pub(crate) mod figures;
    pub(crate) mod git;
    pub(crate) mod import;
}
mod deploying {
    pub(crate) mod customers;
    pub(crate) mod failed_hook;
    pub(crate) mod looked_at;
}

fn main() {
    deploying::looked_at::measure();
    deploying::failed_hook::measure();
}
