//! Waiting for what nobody announces.

use std::thread;
use std::time::{Duration, Instant};

/// Examines a condition every `pause` until it holds, at most for `patience`; whether it does.
pub(crate) fn wait_until(patience: Duration, pause: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + patience;
    while !condition() {
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(pause);
    }
    true
}
