//! The `launchway` program.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// It gives back what a large push needed, which the allocator of the C library keeps.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    launchway::cli::run()
}
