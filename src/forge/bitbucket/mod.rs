//! Bitbucket Cloud and Bitbucket Data Center, which have little in common but the name: commit statuses, and calls about
//! pushes.

mod cloud;
mod data_center;
mod status;
mod webhook;

pub use cloud::writer as cloud;
pub use data_center::writer as data_center;
pub(super) use webhook::{CLOUD, DATA_CENTER};
