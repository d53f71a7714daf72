//! The layer rules of `docs/architecture.md`, checked on the parsed code: who may use whom, what stays pure, which
//! folder owns which heavy library, and how large things may get.

#![expect(clippy::expect_used, reason = "a failing test panics")]

mod layers;
mod questions;
mod size;
mod sources;
