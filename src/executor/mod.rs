//! Drives runs: tells them facts, commits what they decide, and performs what they ask for.
//!
//! [`drive::Driver`] reads what a decision of the engine asks for and commits what it decided, [`outbox`] takes actions
//! from the outbox and performs them, [`writer_lanes`] knows who writes statuses, [`renderings`] what they say, [`sinks`] who is told what happens, and [`reconciler`] brings what is there
//! to what is wanted. [`sync()`](sync::sync) plans a new head and starts what is due, [`admission`] keeps what is under way
//! bounded, however much a push starts.

pub mod admission;
pub mod applied;
pub mod comments;
pub mod declarations;
pub mod deployer_tokens;
pub mod drive;
mod evaluations;
pub mod git_events;
pub mod hindrances;
pub mod imports;
mod inherited;
mod line;
mod lookup;
pub mod outbox;
pub mod pace;
pub mod perform;
pub mod previews;
pub mod proposals;
mod recent;
pub mod reconciler;
pub mod renderings;
pub mod selector_index;
pub mod services;
pub mod set_aside;
pub mod sink_lane;
pub mod sinks;
pub mod switch;
pub mod sync;
mod traffic;
pub(crate) mod work_queue;
pub mod writer_lanes;
