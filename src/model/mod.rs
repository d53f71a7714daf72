//! The nouns of launchway: plain values that every other room passes around.
//!
//! Nothing here does IO, reads a clock or draws a random number; only `serde` and `std` are used,
//! `serde_json::Value` for content whose shape belongs to the users, and `rpds` for maps that revisions share.

pub mod action;
pub mod by_digest;
pub mod cause;
pub mod cloud_event;
pub mod comment;
pub mod commit_status;
pub mod data;
pub mod deployment_config;
pub mod duration;
pub mod environment;
pub mod evaluation;
pub mod event;
pub mod git_event;
pub mod hold;
pub mod host;
pub mod ids;
pub mod image_stream;
pub mod json;
pub mod masking;
pub mod object;
pub mod outcome;
pub mod plan;
pub mod pod;
pub mod preview;
pub mod project;
pub mod proposal;
pub mod rerun;
pub mod rollback;
pub mod run;
pub mod seed;
pub mod selector;
pub mod shipyard;
pub mod sink;
pub mod slot;
pub mod state;
pub mod tag;
pub mod time;
pub mod trailer;
pub mod transaction;
pub mod trial;
pub mod unique_name;
pub mod wanted;
pub mod webhook_call;
