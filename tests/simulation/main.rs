//! The real decisions, driver, outbox and reconciler over a pretended runtime: whole deliveries without waiting.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failing test panics")]

/// As the daemon's: half of the time of many small stories is spent in the allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod costs;
mod crash;
mod damage;
mod deliveries;
mod groups;
mod interleavings;
mod mortal;
mod ownership;
mod random;
mod retention;
mod simulations;
mod stories;
mod traffic;
mod transitions;

/// A folder for a store, in memory where the machine has a place for that: syncing to disk is what takes time here.
fn folder() -> tempfile::TempDir {
    let memory = std::path::Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}
