//! GitHub, as a service and as GitHub Enterprise Server: commit statuses, deployments, and calls about pushes.

mod deployment;
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
