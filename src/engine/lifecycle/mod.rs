//! Lifecycle hooks of a deployment: their pods, and what their outcome means.

pub mod pod;
pub mod policy;
