//! Tags that a deployment's hook gives the images of its containers: beside the files, until these say something else of a tag.

use std::collections::BTreeMap;

use crate::engine::by_hand::deployment;
use crate::engine::deployment::trigger::{place, streams};
use crate::engine::records::{Needs, Records, Undecided};
use crate::engine::transition::Transition;
use crate::manifest::image_trigger::{self, Streams, brought_alone};
use crate::model::deployment_config::ImageReference;
use crate::model::event::Event;
use crate::model::ids::{PodName, RunId};
use crate::model::image_stream::stream_and_tag;
use crate::model::outcome::{FailureReason, PodOutcome};
use crate::model::run::{DeploymentRun, Run};
use crate::model::state::{Handed, Imported, Tagged};
use crate::model::time::Timestamp;
use crate::model::transaction::ObjectPlace;

/// How many versions are remembered that have handed an image on. No circle of tags is that long before a version comes back.
const MOST_HANDED: usize = 64;

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
            if give(transition.records, &run, tags, transition.now)? {
                transition.plan_again(&run.repository)?;
            }
            PodOutcome::Succeeded
        }
    };
    transition.tell(by.clone(), Event::pod_ended(pod, outcome));
    Ok(())
}

/// Why the tags cannot be given, for people.
fn refusal(records: &Records, run: &DeploymentRun, tags: &[(String, String)]) -> Result<Option<String>, Undecided> {
    let mut needs = Needs::default();
    let mut refused = None;
    for (tag, image) in tags {
        let Some((stream, _)) = stream_and_tag(tag) else { return Ok(Some(format!("`{tag}` is no tag"))) };
        let known = needs.of(records.objects.get(&place(&run.config, stream)))?;
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

/// Whether any of the tags leads elsewhere now. One that has its image already stays as it is; of several images for one tag
/// it is given the last.
fn give(
    records: &mut Records,
    run: &DeploymentRun,
    tags: &[(String, String)],
    at: Timestamp,
) -> Result<bool, Undecided> {
    let given: BTreeMap<&str, &str> = tags.iter().map(|(tag, image)| (&**tag, &**image)).collect();
    let given: Vec<(&str, &str, &str)> = given
        .into_iter()
        .filter_map(|(tag, image)| stream_and_tag(tag).map(|(stream, tag)| (stream, tag, image)))
        .collect();
    let named = given.iter().map(|(stream, ..)| (*stream).to_owned());
    let wanted = named.chain(image_trigger::streams_of(&run.object)).collect();
    let streams = streams(records, &run.config, &run.destination, wanted)?;
    let handed = handed(records, run, &streams)?;
    let by = format!("version {} of {}", run.version, run.config.name);
    let mut any = false;
    for (stream, tag, image) in given {
        let Some(state) = records.objects.get_mut(&place(&run.config, stream))? else { continue };
        if streams.image(stream, tag) == Some(image) {
            continue;
        }
        // What a registry said stays known: only if it says something else is that newer.
        let imported = state.tagged.get(tag).and_then(|tagged| tagged.imported.clone());
        let (instead_of, image) = (streams.from(stream, tag).cloned(), image.to_owned());
        let tagged = Tagged { image, instead_of, by: by.clone(), at, imported, handed: handed.clone() };
        state.tagged.insert(tag.to_owned(), tagged);
        any = true;
    }
    Ok(any)
}

/// The versions that have led to this one, each by an image that its hook gave a tag, and this one at the end. What was started
/// by something else, such as a push of its files, is the first.
fn handed(records: &Records, run: &DeploymentRun, streams: &Streams) -> Result<Vec<Handed>, Undecided> {
    let own = Handed { config: run.config.name.clone(), content: run.object.digest.clone() };
    let before = run.version.checked_sub(1).filter(|before| *before > 0);
    let before = before.map(|before| deployment(records, &run.config, before)).transpose()?.flatten();
    let brought = before.map(|before| brought_alone(&run.object.content.value(), &before.object.content.value()));
    let mut handed: Vec<Handed> = Vec::new();
    for earlier in brought.iter().flatten().flat_map(|(stream, tag)| streams.handed(stream, tag)).chain([&own]) {
        handed.retain(|other| other != earlier);
        handed.push(earlier.clone());
    }
    handed.drain(..handed.len().saturating_sub(MOST_HANDED));
    Ok(handed)
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
    state.tagged.insert(
        tag.to_owned(),
        Tagged { image: image.to_owned(), instead_of, by, at: now, imported, handed: Vec::new() },
    );
    let repository = state.repository.clone();
    transition.plan_again(&repository)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::engine::fixtures::{Memory, NOW, delivery, deployed, deployment, repository};
    use crate::manifest::digest;
    use crate::model::ids::{Destination, ServiceName};
    use crate::model::object::{Kind, Location, Object, ObjectKey};
    use crate::model::run::Phase;
    use crate::model::state::ObjectState;
    use crate::testing::world::{config_key, deployment_config};

    /// The stream `app`, whose tag `t` leads to `git:a` by its file, and to what a hook gave it.
    fn stream(tagged: Option<(&str, Vec<Handed>)>) -> ObjectState {
        let from = ImageReference { kind: "DockerImage".into(), name: "git:a".into(), namespace: None };
        let content = json!({"metadata": {"name": "app"}, "spec": {"tags": [{"name": "t", "from": from}]}});
        let object = Object {
            key: ObjectKey { kind: Kind::ImageStream, name: "app".into() },
            service: ServiceName::new("app"),
            location: Location::default(),
            autoscaled_at: None,
            digest: digest::of(&content),
            content: content.into(),
        };
        let given = |(image, handed): (&str, Vec<Handed>)| {
            let (image, instead_of, by) = (image.to_owned(), Some(from.clone()), "another".to_owned());
            ("t".to_owned(), Tagged { image, instead_of, by, at: NOW, imported: None, handed })
        };
        let destination = Destination::local("shop-dev".into());
        let state = ObjectState::new(("shop".into(), "dev".into()), destination, "repo".into(), object.into());
        ObjectState { tagged: tagged.map(given).into_iter().collect(), ..state }
    }

    /// A version that follows the tag, and has an image of it.
    fn version(number: u32, image: &str, replicas: u32) -> DeploymentRun {
        let from = json!({"kind": "ImageStreamTag", "name": "app:t"});
        let params = json!({"automatic": true, "containerNames": ["web"], "from": from, "lastTriggeredImage": image});
        let triggers = json!({"triggers": [{"type": "ImageChange", "imageChangeParams": params}]});
        let object = Arc::new(deployment_config("web", image, replicas, triggers));
        DeploymentRun { object, ..deployment(number, image, &delivery("r1", image), Phase::Running) }
    }

    fn handed_by(config: &str, content: &str) -> Handed {
        Handed { config: config.to_owned(), content: content.into() }
    }

    #[test]
    fn a_tag_is_given_another_image_with_who_handed_it_on() {
        let (first, second, scaled) = (version(1, "git:a", 1), version(2, "git:b", 1), version(2, "git:b", 2));
        let own = |run: &DeploymentRun| Handed { config: "web".to_owned(), content: run.object.digest.clone() };
        let earlier = || vec![handed_by("web", "z"), handed_by("api", "y")];
        let tagged = || Some(("git:b", earlier()));
        let chain = |own: Handed| Some([earlier(), vec![own]].concat());
        let again = vec![own(&second), handed_by("api", "y")];
        for (run, tagged, given, expected) in [
            (&second, None, &["git:a"][..], None),
            (&second, None, &["git:x", "git:a"], None),
            (&second, tagged(), &["git:b"], None),
            (&second, tagged(), &["git:x"], chain(own(&second))),
            (&second, Some(("git:b", again)), &["git:x"], Some(vec![handed_by("api", "y"), own(&second)])),
            (&second, Some(("git:b", Vec::new())), &["git:x"], Some(vec![own(&second)])),
            (&scaled, tagged(), &["git:x"], Some(vec![own(&scaled)])),
            (&first, tagged(), &["git:x"], Some(vec![own(&first)])),
        ] {
            let memory = Memory::default().with(repository()).with(stream(tagged)).with(deployed(first.clone()));
            let memory = if run.version == 1 { memory } else { memory.with(deployed(run.clone())) };
            let tags: Vec<(String, String)> = given.iter().map(|it| ("app:t".to_owned(), (*it).to_owned())).collect();
            let by = config_key("dev", "web").deployment(run.version);
            let made = memory.decide(|it| tag_images(it, &by, PodName::new("p"), &tags)).expect("it is decided");
            let written: Vec<&ObjectState> = made.written();
            assert_eq!(written.first().map(|stream| stream.tagged["t"].handed.clone()), expected, "{given:?}");
            assert_eq!(made.touched.unseen.is_empty(), expected.is_none(), "{given:?}");
        }
    }
}
