//! A deployment: one version of a deployment config brought up, or the previous one kept.

pub mod adoption;
pub mod apply;
pub(in crate::engine) mod beside;
pub mod deployer;
pub(in crate::engine) mod gone;
pub mod machine;
pub mod observed;
pub mod ownership;
mod quarantine;
pub(in crate::engine) mod restored;
pub mod serve;
pub mod strategy;
pub mod tag;
pub mod traffic;
pub(in crate::engine) mod trigger;
pub(in crate::engine) mod turn;
