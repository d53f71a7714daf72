//! What people and machines learn about a revision.
//!
//! [`status`] renders what is written on its commit: `plan_line` what it would do, [`service_report`] what is said of
//! each service, `service` what became of it, `step` of its hooks and tasks. [`rest`] decides whether
//! it has come to its end, and for whom it waits. [`pull_request`] says what a proposed rollback is about, [`preview`] what merging any
//! pull request would do, [`answer`] what came of a command in one. [`deployments`] are what a
//! host's environments show. [`ledger`] knows what was written before. [`cloud_event`] tells
//! what happened to a sequence, and [`subscription`] to whom.

pub mod answer;
pub mod cloud_event;
pub mod code;
mod delivery;
pub mod deployments;
pub mod environment;
pub mod ledger;
mod line;
pub(crate) mod markdown;
mod plan_line;
pub mod preview;
pub mod pull_request;
pub mod rest;
mod service;
pub mod service_report;
pub mod status;
mod step;
pub mod subscription;

pub(crate) use step::IGNORED;
