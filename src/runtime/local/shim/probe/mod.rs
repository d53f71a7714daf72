//! Probes: when to check, what counts as healthy, and the check over a connection.

pub(crate) mod connection;
pub(crate) mod schedule;
