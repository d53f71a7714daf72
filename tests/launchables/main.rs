//! Launchables against the real thing: real files, archives and builders.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod build;
mod download;
mod install;
mod support;
