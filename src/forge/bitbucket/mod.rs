//! Bitbucket Cloud and Bitbucket Data Center, which have little in common but the name.

mod webhook;

pub(in crate::forge) use webhook::{CLOUD, DATA_CENTER};
