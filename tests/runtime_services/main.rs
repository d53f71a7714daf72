//! Services against the real thing: real processes, sockets and requests.

mod crash;
mod http;
mod raw;
mod spec;
mod support;
