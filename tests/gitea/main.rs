//! What only a real Gitea can tell: `cargo test --test gitea -- --ignored`.
//!
//! One server for the whole suite, a repository of its own for each test. A server that cannot be built or started
//! fails every test; nothing is skipped. Pushes are made with the `git` program.

#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test, both are how it fails")]

mod daemon;
mod receiver;
mod repository;
mod server;
mod statuses;
mod webhooks;
mod work_tree;
