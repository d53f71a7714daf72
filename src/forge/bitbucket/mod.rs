//! Bitbucket Cloud and Bitbucket Data Center, which have little in common but the name: commit statuses, and calls about
//! pushes.

mod cloud;
mod cloud_pull_request;
mod cloud_registration;
mod data_center;
mod data_center_pull_request;
mod data_center_registration;
mod listing;
mod status;
mod webhook;

pub use cloud::writer as cloud;
pub use cloud_pull_request::pull_requests as cloud_pull_requests;
pub use cloud_registration::webhooks as cloud_webhooks;
pub use data_center::writer as data_center;
pub use data_center_pull_request::pull_requests as data_center_pull_requests;
pub use data_center_registration::webhooks as data_center_webhooks;
pub(super) use webhook::{CLOUD, DATA_CENTER};
