//! HTTP: webhooks, API, pages.

pub mod listener;
pub mod problem;
pub mod webhook;
