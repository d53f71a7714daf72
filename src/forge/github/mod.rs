//! GitHub, as a service and as GitHub Enterprise Server: commit statuses, or check runs of an App, deployments, and calls about
//! pushes.

pub mod app;
mod check_run;
mod checks;
mod deployment;
mod jwt;
mod pull_request;
mod registration;
mod status;
mod webhook;
mod writer;

pub use deployment::deployments;
pub use pull_request::pull_requests;
pub use registration::webhooks;
pub(super) use webhook::DIALECT;
pub use writer::writer;
