//! What a run does next. Pure: values in, values out; no IO, no clock, no randomness.
//!
//! A run is a state machine: [`step`] takes the run, a fact and the time, and gives the run's new state and what it
//! asks for. What serves is kept by level instead: [`deployment::serve::decide`] compares what is wanted with what is
//! there.

pub mod by_hand;
pub mod deployment;
pub mod environments;
pub mod evaluation;
#[cfg(test)]
pub(crate) mod fixtures;
pub mod given_up;
pub mod holds;
pub mod leftover;
pub mod lifecycle;
pub mod names;
pub mod records;
pub mod rollback;
pub mod sequence;
pub mod sync;
pub mod transition;
pub mod unreadable;

use crate::model::action::Decided;
use crate::model::event::Event;
use crate::model::run::Run;
use crate::model::time::Timestamp;

/// What a run becomes when it receives `event` at `now`. A fact that it does not wait for changes nothing.
pub fn step(run: &Run, event: &Event, now: Timestamp) -> (Run, Decided) {
    match run {
        Run::Sequence(sequence) => {
            let (next, decided) = sequence::machine::step(sequence, event, now);
            (Run::Sequence(Box::new(next)), decided)
        }
        Run::Deployment(deployment) => {
            let (next, decided) = deployment::machine::step(deployment, event, now);
            (Run::Deployment(Box::new(next)), decided)
        }
    }
}
