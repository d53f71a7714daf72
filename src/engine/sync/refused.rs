//! Deliveries that events ask for and nobody starts: whoever sent the event may be gone by then, so that they are told where
//! people ask why nothing happens.

use crate::engine::records::Undecided;
use crate::engine::transition::Transition;
use crate::model::event::Event;
use crate::model::ids::ServiceKey;
use crate::model::slot::{Refused, SlotState};
use crate::model::transaction::Write;

/// Notes that a delivery which `by` asked for was not started; what is noted already is no news.
///
/// # Errors
/// If something must be read first.
pub fn note(transition: &mut Transition<'_>, service: &ServiceKey, by: &str, reason: &str) -> Result<(), Undecided> {
    let slot = transition.records.slots.get(service)?.cloned();
    let mut slot = slot.unwrap_or_else(|| SlotState::free(service.clone()));
    if !slot.refused.as_ref().is_some_and(|known| known.by == by && known.reason == reason) {
        let event = Box::new(Event::NotDelivered { by: by.to_owned(), reason: reason.to_owned() });
        transition.write(Write::Event { run: service.events(), at: transition.now, event });
    }
    slot.refused = Some(Refused { by: by.to_owned(), reason: reason.to_owned(), at: transition.now });
    transition.records.slots.put(service, Some(slot))
}
