//! What was decided earlier, decided again on what is there by then.

use std::sync::Arc;

use super::controllers;
use super::object::place;
use crate::engine::records::{Records, Undecided};
use crate::model::ids::{ConfigKey, ServiceKey};
use crate::model::object::{Kind, Object};
use crate::model::plan::Change;
use crate::model::run::Run;
use crate::plan::change::{deletion, object_change};
use crate::plan::{config_change, gate};

/// What a change that was decided earlier comes to on what is applied now, whatever held it then, but for images that came
/// round: they are what it brings. What a person asked for stays as asked.
///
/// # Errors
/// If something must be read first.
pub fn decide_again(records: &Records, service: &ServiceKey, change: &Change) -> Result<Change, Undecided> {
    let Some(object) = change.object.as_ref().filter(|_| !change.is_by_hand()) else {
        let goes = || Change { needed_by: change.needed_by.clone(), ..deletion(&change.key) };
        return Ok(if change.is_held() { goes() } else { change.clone() });
    };
    if change.key.kind == Kind::DeploymentConfig {
        let config = service.config(&change.key.name);
        let object = &let_go(records, &config, object)?;
        let mut applied = records.configs.get(&config)?.cloned();
        if let Some(state) = &mut applied {
            let run = match state.open_attempt() {
                Some(attempt) => records.runs.get(&attempt.run)?.and_then(Run::sequence),
                None => None,
            };
            config_change::foresee(state, run);
        }
        let came_round = Some(&*change.cause).filter(|_| change.came_round());
        let again = config_change::held_back(config_change::decide(object, applied.as_ref()), came_round);
        return controllers::bring(records, &config, again);
    }
    let again = object_change(object, records.objects.get(&place(service, change))?);
    Ok(Change { needed_by: change.needed_by.clone(), ..again })
}

/// A deployment config as its file declares it, but for a pause that a person has lifted since.
fn let_go(records: &Records, config: &ConfigKey, object: &Arc<Object>) -> Result<Arc<Object>, Undecided> {
    let is_lifted = records.holds.get(&config.project)?.is_some_and(|holds| holds.has_lifted(config));
    let let_go = is_lifted.then(|| gate::unpaused(object)).flatten();
    Ok(let_go.map_or_else(|| Arc::clone(object), Arc::new))
}
