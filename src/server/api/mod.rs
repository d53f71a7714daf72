//! `/api/v1`: resources to read, and actions on them.

pub mod act;
pub mod deployer;
pub mod exec;
pub mod extract;
pub mod hooks;
pub mod keptn;
pub mod openapi;
pub mod openshift;
pub mod output;
pub mod read;
pub mod rollback;
