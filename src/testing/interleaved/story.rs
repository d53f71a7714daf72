//! A story whose lines happen while others are still under way: `order N` chooses who takes turns when, `turns N` lets
//! so many turns be taken before the next line. Lines are those of [`crate::testing::script`], and:
//!
//! ```text
//! order 17                       who takes turns when; the first line
//! project shop, statuses auto    what the repository declares itself to be, and how much is written on its commits
//! @two push                      a line about another repository than `one`; each has files of its own
//! push broken, push rewritten    files that cannot be read; a commit that takes the place of the whole history
//! push back                      the commit before the head is the head again, by force
//! accept-rewrite                 a person takes such a head
//! turns 30                       so many turns are taken; without it the next line happens at once
//! trigger STAGE SERVICE [FORCED] by hand; like every command it is under way while the next lines happen
//! approve STAGE SERVICE, reject  what waits for approval
//! abort STAGE SERVICE            a sequence ends
//! rerun STAGE SERVICE [from-start]   the last sequence, from the task that failed
//! executor NAME starts STAGE SERVICE, reports, finishes   of the task that is left to executors; `finishes dev web fail`
//! tell again N                   the event that was told N events ago
//! tell late PHASE STAGE SERVICE, early, mistaken, unknown   of a task that has ended, one that was not asked for yet, one by the
//!                                name of another, one that nobody has asked for: none of them may have an effect
//! tell sequence STAGE SEQUENCE SERVICE, tell domain KIND STAGE SERVICE   what starts sequences
//! tell approved ID STAGE SERVICE   what was asked for by that id is approved
//! pause-delivery STAGE SERVICE [all], resume-delivery   what is under way of a service, in its stage or in all
//! pause-stage STAGE, resume-stage STAGE   all that is in a stage or comes to it
//! listen, refuse-events, take-events   somebody is told all that happens; who listens takes nothing, or everything
//! refuse-statuses busy, rights   statuses are refused for a while, or for want of rights; `take-statuses` ends that
//! prepare IMAGE                  images whose names contain this are being prepared until `prepared IMAGE`
//! prune MOST                     what nothing needs is deleted; of the rest so many of each kind stay
//! takeover                       a second daemon takes the store over while the first goes on
//! backup NAME, restore NAME      a copy of the store; the daemon dies, and its next life begins with the copy
//! lose-store                     the daemon dies, and its next life begins with nothing
//! ```
//!
//! After its last line everything heals: what hangs comes to its end, time passes, holds are released, what is down
//! comes up. What must hold then, and after every single turn, is in [`crate::testing::interleaved::checks`].

use std::fmt;

use crate::error::Failure;
use crate::testing::interleaved::checks::{Invariant, Violation};
use crate::testing::interleaved::world::World;

/// Lines, and the order in which tasks take turns while they happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Story {
    /// Chooses whose turn it is.
    pub order: u64,
    /// What happens.
    pub lines: Vec<String>,
}

/// What a story came to.
#[derive(Debug)]
pub enum End {
    /// Everything held. So many turns were taken.
    Well(u64),
    /// Something did not hold.
    Violated(Violation),
    /// A line cannot be understood, or the simulation itself failed.
    Unplayable(Failure),
}

impl Story {
    /// Reads a story.
    pub fn read(text: &str) -> Self {
        let line = |line: &str| line.split_once('#').map_or(line, |(line, _)| line).trim().to_owned();
        let lines = text.lines().map(line).filter(|line| !line.is_empty());
        let (orders, lines): (Vec<String>, Vec<String>) = lines.partition(|line| line.starts_with("order "));
        let order = orders.first().and_then(|line| line.split_once(' ')).and_then(|(_, number)| number.parse().ok());
        Self { order: order.unwrap_or(0), lines }
    }

    /// Plays it to its end, or to the first thing that does not hold.
    pub fn play(&self) -> End {
        self.play_for(None)
    }

    /// Plays it to its end, or to where `only` does not hold, whatever else does not.
    pub fn play_for(&self, only: Option<Invariant>) -> End {
        // Timeouts of the daemon need a runtime to be made in; nobody drives it, so that none ever fires.
        let timers = match tokio::runtime::Builder::new_current_thread().enable_time().build() {
            Ok(timers) => timers,
            Err(error) => return End::Unplayable(Failure::stalled("cannot make timers").because(error)),
        };
        let _entered = timers.enter();
        let mut world = World::new(self.order, &self.lines, only);
        match world.play(&self.lines) {
            Ok(Ok(())) => End::Well(world.turns()),
            Ok(Err(violation)) => End::Violated(violation),
            Err(failure) => End::Unplayable(failure),
        }
    }
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "order {}", self.order)?;
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}
