//! The API, the pages and the commands over a real store and real HTTP; the runtime is pretended.

#![expect(clippy::unwrap_used, reason = "a failing test panics")]

mod acting;
mod bounds;
mod commands;
mod openshift;
mod pages;
mod reading;
mod support;
mod watching;
