//! In whose hands it is what a deployment config should run: one run's at a time.

use crate::model::event::Event;
use crate::model::ids::RunId;
use crate::model::state::ConfigState;
use crate::model::wanted::Wanted;

/// A run takes what should run into its hands; hands back the one that had it.
pub fn take(wanted: &mut Wanted, by: &RunId) -> Option<RunId> {
    wanted.owner.replace(by.clone()).filter(|before| before != by)
}

/// What a run hears that lost what should run to another, whom `owner` tells a person.
pub fn lost(owner: &str) -> Event {
    Event::Disowned { reason: format!("{owner} has taken over") }
}

/// What a run hears that may not change what a deployment config should run; nothing if it may. `owner` tells a person who
/// has it.
pub fn refusal(state: Option<&ConfigState>, by: &RunId, owner: &str) -> Option<Event> {
    let reason = match state.map(|state| (&state.wanted.owner, state.removed)) {
        Some((Some(id), _)) if id == by => return None,
        Some((Some(_), _)) => return Some(lost(owner)),
        Some((None, false)) => "it was taken out of its hands".to_owned(),
        Some((None, true)) | None => "it is declared no longer".to_owned(),
    };
    Some(Event::Disowned { reason })
}

/// A run that ended has nothing in its hands; what serves now has nothing to fall back to.
pub fn give_back(wanted: &mut Wanted, by: &RunId) {
    if wanted.owner.as_ref() == Some(by) {
        wanted.owner = None;
        wanted.fallback = None;
    }
}
