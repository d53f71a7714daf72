//! What a deployment config would be deployed as, if somebody asked for it now. Source: OpenShift's proposal "Deployments",
//! sections "Generation of Pod Templates" and "Generator".

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{is_paused, rolled_out};
use crate::engine::deployment::apply::next_version;
use crate::engine::deployment::trigger;
use crate::engine::records::{Records, Undecided};
use crate::model::ids::ConfigKey;
use crate::model::object::Object;
use crate::model::state::ConfigState;

/// Which images a deployment that a person asks for brings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Images {
    /// Those to which the tags of all image triggers lead now, also of those that are not automatic.
    #[default]
    Newest,
    /// Those that are there, whatever the tags lead to by now.
    AsTheyAre,
}

/// What a person has deployed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latest {
    /// The version that it becomes.
    pub version: u32,
    /// What that is.
    pub object: Arc<Object>,
}

/// What a deployment config would be deployed as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// It, with the images that its triggers bring.
    pub object: Arc<Object>,
    /// The version that it would become; the last one, if nothing of it is new.
    pub version: u32,
    /// Whether it differs from the version that was attempted last.
    pub is_new: bool,
    /// Whether somebody or a file has paused it.
    pub is_paused: bool,
}

/// Works that out. It changes nothing, and what would refuse a deployment does not refuse this.
///
/// # Errors
/// If it is not there, or a tag leads nowhere.
pub fn generate(records: &Records, config: &ConfigKey, images: Images) -> Result<Generated, Undecided> {
    let state = rolled_out(records, config)?;
    let is_paused = is_paused(records, &state)?;
    let object = with_images(records, &state, images)?;
    let is_new = state.last_version().is_none_or(|last| last.object.digest != object.digest);
    let version = if is_new { next_version(records, config)? } else { state.latest_version };
    Ok(Generated { object, version, is_new, is_paused })
}

/// What is declared now, with the images that are meant.
pub(super) fn with_images(records: &Records, state: &ConfigState, images: Images) -> Result<Arc<Object>, Undecided> {
    match images {
        Images::Newest => trigger::newest(records, state),
        Images::AsTheyAre => Ok(Arc::clone(&state.object)),
    }
}
