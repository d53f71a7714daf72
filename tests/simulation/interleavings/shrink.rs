//! The shortest story that still shows what a long one does.

use launchway::testing::interleaved::checks::{Invariant, Violation};
use launchway::testing::interleaved::story::{End, Story};

/// In how many other orders a shorter story is tried: what depends on an interleaving needs another one when less
/// happens.
const ORDERS: u64 = 8;

/// The same story in the first of so many orders of turns, its own before them, in which `invariant` does not hold,
/// whatever else does not.
pub(crate) fn violating(story: &Story, invariant: Invariant, orders: u64) -> Option<Story> {
    let violates = |story: &Story| matches!(story.play_for(Some(invariant)), End::Violated(_));
    in_some_order(story, orders).find(violates)
}

/// A story in which the same invariant is the first that does not hold, and from which nothing can be left out.
pub(crate) fn shortest(story: &Story, violation: Violation) -> (Story, Violation) {
    let mut best = (story.clone(), violation);
    let mut size = story.lines.len() / 2;
    while size > 0 {
        let before = best.0.lines.len();
        let mut start = 0;
        while start < best.0.lines.len() {
            let mut shorter = best.0.clone();
            shorter.lines.drain(start..(start + size).min(shorter.lines.len()));
            match violated_first(&shorter, best.1.invariant) {
                Some(shorter) => best = shorter,
                None => start += size,
            }
        }
        let unchanged = best.0.lines.len() == before;
        if size > 1 || unchanged {
            size /= 2;
        }
    }
    best
}

fn violated_first(story: &Story, invariant: Invariant) -> Option<(Story, Violation)> {
    in_some_order(story, ORDERS).find_map(|story| match story.play() {
        End::Violated(violation) if violation.invariant == invariant => Some((story, violation)),
        End::Violated(_) | End::Well(_) | End::Unplayable(_) => None,
    })
}

fn in_some_order(story: &Story, orders: u64) -> impl Iterator<Item = Story> {
    let others = (0..orders).map(|order| Story { order, ..story.clone() });
    std::iter::once(story.clone()).chain(others)
}
