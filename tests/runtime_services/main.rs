//! Services against the real thing: real processes, sockets and requests.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod crash;
mod http;
mod patience;
mod raw;
mod relay;
mod renewal;
mod spec;
mod support;
