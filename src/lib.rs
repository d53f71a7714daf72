//! launchway makes a Git push a deployment.
//!
//! ```text
//!  webhook ─┐
//!  poll ────┤                      files          objects         changes            actions
//!  cron ────┼─ trigger ─▶ source ─────▶ manifest ─────▶ plan ─────────▶ engine ─────────────▶ runtime (local)
//!  notify ──┘  "sync       (git2)      (parse,         (diff against   (pure step           ▶ forge   (commit statuses,
//!              again"                  validate)       applied)        functions)                      notes)
//!                                                                        ▲   │
//!                                                                        │   ▼
//!                                                                     store: runs, events, outbox, history
//! ```
//!
//! The modules stand in the order in which data passes. Arrows of use point one way only:
//! `model`, `clock`, `error` ← pure rooms (`manifest`, `plan`, `engine`, `report::status`) ← ports (`store`, `runtime`,
//! `forge`, `registry`, `indicators`) ← their adapters ← `executor`, `control` ← `server`, `cli`. `tests/architecture.rs` checks that.

pub mod clock;
pub mod error;
mod folder_id;
mod http_client;
pub mod model;
pub mod secret;
mod shares;

pub mod trigger;

pub mod source;

pub mod manifest;

pub mod plan;

pub mod engine;

pub mod store;

pub mod runtime;

pub mod forge;

pub mod registry;

pub mod indicators;

pub mod sinks;

pub mod report;

pub mod executor;

pub mod control;

pub mod server;

pub mod cli;

pub mod config;
pub mod telemetry;

pub mod simulation;

pub mod testing;
