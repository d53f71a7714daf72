//! What must hold would be noticed if it did not: stories of all kinds, in a world that makes a mistake.

use launchway::testing::interleaved::checks::Invariant;
use launchway::testing::interleaved::fault::Fault;
use launchway::testing::interleaved::story::{End, Story};

use super::generator::{Family, story_of};

/// In so many stories of a family a mistake has to show.
const STORIES: u64 = 100;

/// Where each mistake shows, and as what.
const SHOWS: [(Fault, Family, Invariant); 19] = [
    (Fault::IgnoresReads, Family::People, Invariant::HoldsHold),
    (Fault::KeepsWhatFailed, Family::Pushes, Invariant::RecordedServes),
    (Fault::ReadsTheLast, Family::Pushes, Invariant::CreditIsDue),
    (Fault::ReadsTheLast, Family::Pushes, Invariant::PlanIsEmpty),
    (Fault::EndsOneMore, Family::Pushes, Invariant::PodsAsPromised),
    (Fault::StartsAgain, Family::Deaths, Invariant::RunsOnce),
    (Fault::KeepsPods, Family::People, Invariant::DownIsDown),
    (Fault::KeepsPods, Family::Pushes, Invariant::RecordedServes),
    (Fault::LosesServices, Family::Services, Invariant::ServicesLead),
    (Fault::TellsNothing, Family::Pushes, Invariant::EveryRunEnds),
    (Fault::LosesPushes, Family::Pushes, Invariant::HeadsAreSeen),
    (Fault::HidesFailures, Family::Pushes, Invariant::StatusesAreFresh),
    (Fault::ForgetsTold, Family::Events, Invariant::EventsCountOnce),
    (Fault::ForgetsHolders, Family::Events, Invariant::OneRunPerSlot),
    (Fault::ReopensTasks, Family::Events, Invariant::TasksInOrder),
    (Fault::LosesTimers, Family::Events, Invariant::EveryRunEnds),
    (Fault::LosesEvents, Family::Events, Invariant::EverythingIsHeard),
    (Fault::SaysNothing, Family::Events, Invariant::SaysWhatItWaitsFor),
    (Fault::TellsNothing, Family::Pushes, Invariant::SaysWhatItWaitsFor),
];

#[test]
fn a_mistake_of_the_world_is_noticed() {
    let mut unnoticed = Vec::new();
    for (fault, family, invariant) in SHOWS {
        let shown = (0..STORIES).find(|&seed| shows(story_of(family, seed), fault, invariant));
        println!("{fault:?} shows as {invariant:?} in story {shown:?} of {family:?}");
        if shown.is_none() {
            unnoticed.push((fault, invariant));
        }
    }
    assert!(unnoticed.is_empty(), "{unnoticed:?}");
}

fn shows(story: Story, fault: Fault, invariant: Invariant) -> bool {
    let word = Fault::ALL.iter().find(|(_, known)| *known == fault).unwrap().0;
    let lines = std::iter::once(format!("fault {word}")).chain(story.lines).collect();
    match (Story { lines, ..story }).play_for(Some(invariant)) {
        End::Violated(violation) => violation.invariant == invariant,
        End::Well(_) | End::Unplayable(_) => false,
    }
}
