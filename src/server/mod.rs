//! HTTP: webhooks, API, pages.

pub mod access;
pub mod api;
pub mod events;
pub mod frame;
pub mod host;
pub mod listener;
pub mod origin;
mod page;
pub mod presence;
pub mod problem;
pub mod query;
pub mod router;
pub mod socket;
pub mod state;
pub mod view;
pub mod webhook;
