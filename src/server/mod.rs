//! HTTP: API and pages.

pub mod access;
pub mod api;
mod page;
pub mod presence;
pub mod problem;
pub mod query;
pub mod router;
pub mod state;
pub mod view;
