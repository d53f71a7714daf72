//! Tags that a deployment's hook gives the images of its containers: beside the files, until these say something else of a tag.

use crate::engine::records::{Needs, Records, Undecided};
use crate::engine::transition::Transition;
use crate::manifest::image_trigger::Streams;
use crate::model::deployment_config::ImageReference;
use crate::model::event::Event;
use crate::model::ids::{PodName, RunId};
use crate::model::image_stream::stream_and_tag;
use crate::model::object::{Kind, ObjectKey};
use crate::model::outcome::{FailureReason, PodOutcome};
use crate::model::run::{DeploymentRun, Run};
use crate::model::state::{Imported, Tagged};
use crate::model::time::Timestamp;
use crate::model::transaction::ObjectPlace;

/// Gives all the tags their images, or none of them. Who follows one of them learns it when the head is planned again.
pub(in crate::engine) fn tag_images(
    transition: &mut Transition<'_>,
    by: &RunId,
    pod: PodName,
    tags: &[(String, String)],
) -> Result<(), Undecided> {
    let Some(Run::Deployment(run)) = transition.records.runs.get(by)?.cloned() else { return Ok(()) };
    let outcome = match refusal(transition.records, &run, tags)? {
        Some(message) => PodOutcome::Failed { code: 1, reason: FailureReason::StartError, message },
        None => {
            let mut any = false;
            for (tag, image) in tags {
                any |= give(transition.records, &run, (tag, image), transition.now)?;
            }
            if any {
                transition.plan_again(&run.repository)?;
            }
            PodOutcome::Succeeded
        }
    };
    transition.tell(by.clone(), Event::PodEnded { pod, outcome });
    Ok(())
}

/// Where a stream of the deployment's stage is.
fn place(run: &DeploymentRun, stream: &str) -> ObjectPlace {
    let (project, stage) = (run.config.project.clone(), run.config.stage.clone());
    ObjectPlace { project, stage, key: ObjectKey { kind: Kind::ImageStream, name: stream.to_owned() } }
}

/// Why the tags cannot be given, for people.
fn refusal(records: &Records, run: &DeploymentRun, tags: &[(String, String)]) -> Result<Option<String>, Undecided> {
    let mut needs = Needs::default();
    let mut refused = None;
    for (tag, image) in tags {
        let Some((stream, _)) = stream_and_tag(tag) else { return Ok(Some(format!("`{tag}` is no tag"))) };
        let known = needs.of(records.objects.get(&place(run, stream)))?;
        if known.is_some_and(|stream| stream.is_none()) {
            let stage = &run.config.stage;
            refused =
                refused.or(Some(format!("there is no ImageStream `{stream}` in stage {stage} to tag `{tag}` in")));
        }
        if image.is_empty() {
            refused = refused.or(Some(format!("the container whose image `{tag}` is to name is not there")));
        }
    }
    needs.none()?;
    Ok(refused)
}

/// Whether the tag leads elsewhere now.
fn give(
    records: &mut Records,
    run: &DeploymentRun,
    (tag, image): (&str, &str),
    at: Timestamp,
) -> Result<bool, Undecided> {
    let Some((stream, name)) = stream_and_tag(tag) else { return Ok(false) };
    let Some(state) = records.objects.get_mut(&place(run, stream))? else { return Ok(false) };
    let mut streams = Streams::default();
    streams.add(&state.object, &state.destination);
    let instead_of = streams.from(stream, name).cloned();
    streams.tag(stream, &state.tagged);
    if streams.image(stream, name) == Some(image) {
        return Ok(false);
    }
    let by = format!("version {} of {}", run.version, run.config.name);
    // What a registry said stays known: only if it says something else is that newer.
    let imported = state.tagged.get(name).and_then(|tagged| tagged.imported.clone());
    state.tagged.insert(name.to_owned(), Tagged { image: image.to_owned(), instead_of, by, at, imported });
    Ok(true)
}

/// What a registry says of a tag that its file has looked up there: another digest than it said before is an image that the
/// tag is given. Says whether it is. What the file says no longer is of no interest.
///
/// # Errors
/// If something must be read first.
pub fn import(
    transition: &mut Transition<'_>,
    place: &ObjectPlace,
    (tag, from): (&str, &ImageReference),
    image: &str,
    imported: &Imported,
) -> Result<bool, Undecided> {
    let (now, records) = (transition.now, &mut *transition.records);
    let Some(state) = records.objects.get_mut(place)? else { return Ok(false) };
    let mut streams = Streams::default();
    streams.add(&state.object, &state.destination);
    if streams.from(&place.key.name, tag) != Some(from) {
        return Ok(false);
    }
    if let Some(before) = state.tagged.get_mut(tag)
        && before.imported.as_ref().is_some_and(|before| before.digest == imported.digest)
    {
        before.imported = Some(imported.clone());
        return Ok(false);
    }
    let (instead_of, by, imported) = (Some(from.clone()), "the registry".to_owned(), Some(imported.clone()));
    state.tagged.insert(tag.to_owned(), Tagged { image: image.to_owned(), instead_of, by, at: now, imported });
    let repository = state.repository.clone();
    transition.plan_again(&repository)?;
    Ok(true)
}
