//! What a person's word sets off: all image triggers bring what their tags lead to now, also those that are not automatic.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::engine::records::{Needs, Records, Undecided};
use crate::error::Failure;
use crate::manifest::digest;
use crate::manifest::image_trigger::{self, Bring, Streams, Unresolved};
use crate::model::ids::{ConfigKey, Destination};
use crate::model::object::{Kind, Object, ObjectKey};
use crate::model::state::ConfigState;
use crate::model::transaction::ObjectPlace;

/// What is declared of a deployment config now, with the newest image of every tag that it follows.
///
/// # Errors
/// If one of them leads nowhere, or something must be read first.
pub(in crate::engine) fn newest(records: &Records, state: &ConfigState) -> Result<Arc<Object>, Undecided> {
    let wanted: BTreeSet<String> = image_trigger::streams_of(&state.object).collect();
    if wanted.is_empty() {
        return Ok(Arc::clone(&state.object));
    }
    let streams = streams(records, &state.key, &state.destination, wanted)?;
    let mut content = state.object.content.value();
    let recorded = content.clone();
    image_trigger::bring(&mut content, &streams, Some(&recorded), Bring::All).map_err(|Unresolved(tag)| {
        let failure = Failure::stalled(format!("the tag `{tag}` of its image trigger leads to no image"));
        failure.hint("`launchway get imagestreams` shows what tags lead to")
    })?;
    let mut object = Object::clone(&state.object);
    digest::exchange(&mut object, content);
    Ok(Arc::new(object))
}

/// The image streams of a deployment config's stage, as they are applied, with those that their tags lead to.
///
/// # Errors
/// If something must be read first.
pub(super) fn streams(
    records: &Records,
    config: &ConfigKey,
    destination: &Destination,
    mut wanted: BTreeSet<String>,
) -> Result<Streams, Undecided> {
    let (mut streams, mut known) = (Streams::default(), BTreeSet::new());
    while !wanted.is_empty() {
        let mut needs = Needs::default();
        for name in wanted.difference(&known) {
            needs.of(add(records, (config, destination), name, &mut streams))?;
        }
        needs.none()?;
        known.append(&mut wanted);
        wanted = streams.led_to().filter(|name| !known.contains(name)).collect();
    }
    Ok(streams)
}

/// Where a stream of a deployment config's stage is.
pub(super) fn place(config: &ConfigKey, stream: &str) -> ObjectPlace {
    let (project, stage) = (config.project.clone(), config.stage.clone());
    ObjectPlace { project, stage, key: ObjectKey { kind: Kind::ImageStream, name: stream.to_owned() } }
}

/// Adds a stream of the stage as it is applied; one that is not has no tags yet.
fn add(
    records: &Records,
    (config, destination): (&ConfigKey, &Destination),
    name: &str,
    streams: &mut Streams,
) -> Result<(), Undecided> {
    match records.objects.get(&place(config, name))? {
        Some(stream) => {
            streams.add(&stream.object, destination);
            streams.tag(name, &stream.tagged);
        }
        None => streams.declare(name),
    }
    Ok(())
}
