//! Deliveries that events ask for and nobody starts.

use super::*;
use crate::model::event::Event;
use crate::model::slot::Refused;

fn noted(memory: &Memory, by: &str) -> Made<()> {
    memory
        .decide(|transition| crate::engine::sync::refused::note(transition, &service("dev"), by, "it is held"))
        .expect("nothing is wrong")
}

#[test]
fn what_is_refused_is_told_once_and_stands_in_the_slot_until_something_is_delivered() {
    let made = noted(&Memory::default(), "tag v1");
    let event = Event::NotDelivered { by: "tag v1".into(), reason: "it is held".into() };
    assert_eq!(made.told(&service("dev").events()), [&event]);
    let slot = made.only::<SlotState>().clone();
    assert_eq!(slot.refused, Some(Refused { by: "tag v1".into(), reason: "it is held".into(), at: NOW }));
    let memory = Memory::default().with(slot).with(repository());
    assert!(noted(&memory, "tag v1").told(&service("dev").events()).is_empty(), "told again, it is no news");
    assert_eq!(noted(&memory, "tag v2").told(&service("dev").events()).len(), 1);
    let started = memory.decide(|transition| transition.start(run_of("s9", "b"))).expect("nothing is in its way");
    assert_eq!(started.only::<SlotState>().refused, None);
}
