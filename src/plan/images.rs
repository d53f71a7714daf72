//! What only the store knows of images: what triggers have brought, and tags that were given an image beside the files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::manifest::digest;
use crate::manifest::image_trigger::{self, Bring, Streams};
use crate::model::ids::StageName;
use crate::model::object::{Kind, Object, ObjectKey};
use crate::model::plan::CAME_ROUND;
use crate::model::project::{Project, StageContent};
use crate::model::state::{ConfigState, Handed, ObjectState};

/// What is recorded of one stage.
#[derive(Clone, Debug, Default)]
pub struct RecordedImages {
    /// Its image streams.
    pub streams: Vec<ObjectState>,
    /// The deployment configs that [`asked`] names.
    pub configs: BTreeMap<ObjectKey, ConfigState>,
}

/// The deployment configs whose images do not follow from the files alone: one of their triggers brings none by itself, or
/// follows a tag that leads nowhere or may have been given an image beside the files.
pub fn asked(stage: &StageContent, streams: &[ObjectState]) -> BTreeSet<ObjectKey> {
    if stage.objects.image_streams().next().is_none() {
        return BTreeSet::new();
    }
    let any_tagged = streams.iter().any(|stream| !stream.tagged.is_empty());
    let mark = if any_tagged { r#""lastTriggeredImage":"# } else { r#""lastTriggeredImage":"""# };
    let configs = stage.objects.iter().filter(|object| object.key.kind == Kind::DeploymentConfig);
    configs.filter(|object| object.content.text().contains(mark)).map(|object| object.key.clone()).collect()
}

/// A project with the images that are to run by what is recorded as well.
pub fn follow(project: &Arc<Project>, recorded: &BTreeMap<StageName, RecordedImages>) -> Arc<Project> {
    let mut changed: Option<Project> = None;
    for (index, stage) in project.stages.iter().enumerate() {
        let Some(recorded) = recorded.get(&stage.name) else { continue };
        let asked = asked(stage, &recorded.streams);
        if asked.is_empty() {
            continue;
        }
        let streams = streams(stage, &recorded.streams);
        for object in asked.iter().filter_map(|key| stage.objects.get(key)) {
            if let Some(object) = followed(object, &streams, recorded.configs.get(&object.key)) {
                let project = changed.get_or_insert_with(|| (**project).clone());
                project.stages[index].objects.insert(Arc::new(object));
            }
        }
    }
    changed.map_or_else(|| Arc::clone(project), Arc::new)
}

/// The deployment configs that would be again what they were, in a stage as [`follow`] leaves it, because the images of tags came
/// round by hooks, each of a version that the one before it had started. Nothing else differs. With what is to be said of it.
pub fn came_round(stage: &StageContent, recorded: &RecordedImages) -> BTreeMap<ObjectKey, String> {
    if recorded.streams.iter().all(|stream| stream.tagged.is_empty()) {
        return BTreeMap::new();
    }
    let streams = streams(stage, &recorded.streams);
    let cause = |key: &ObjectKey, state: &ConfigState| -> Option<String> {
        let declared = stage.objects.get(key)?;
        let last = state.last_version()?;
        let brought = image_trigger::brought_alone(&declared.content.value(), &last.object.content.value());
        let was_it = |it: &Handed| it.config == key.name && it.content == declared.digest;
        let round = brought.iter().filter(|(stream, tag)| streams.handed(stream, tag).iter().any(was_it));
        let round: Vec<String> = round.map(|(stream, tag)| format!("{stream}:{tag}")).collect();
        (!round.is_empty()).then(|| round_cause(&declared.target(), &round))
    };
    recorded.configs.iter().filter_map(|(key, state)| Some((key.clone(), cause(key, state)?))).collect()
}

fn round_cause(target: &str, tags: &[String]) -> String {
    let tags = tags.join("`, `");
    format!(
        "{CAME_ROUND}`tagImages` hooks handed the image of `{tags}` round, and it was there before: change a hook or a \
         trigger, or `launchway rollout latest {target}` deploys it once"
    )
}

/// The streams as files declare them, with what was tagged beside them.
fn streams(stage: &StageContent, recorded: &[ObjectState]) -> Streams {
    let mut streams = Streams::of(stage.objects.image_streams().map(AsRef::as_ref), &stage.destination);
    recorded.iter().for_each(|state| streams.tag(&state.object.key.name, &state.tagged));
    streams
}

/// A deployment config with the images that it is to run; nothing, if it has them.
fn followed(object: &Object, streams: &Streams, applied: Option<&ConfigState>) -> Option<Object> {
    let recorded = applied.filter(|applied| !applied.removed).map(|applied| applied.object.content.value());
    let mut content = object.content.value();
    // What is missing is waited for.
    drop(image_trigger::bring(&mut content, streams, recorded.as_ref(), Bring::Automatic));
    let mut brought = object.clone();
    digest::exchange(&mut brought, content);
    (brought.digest != object.digest).then_some(brought)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::deployment_config::ImageReference;
    use crate::model::ids::ServiceName;
    use crate::model::ids::{ConfigKey, Destination, Namespace};
    use crate::model::object::Location;
    use crate::model::shipyard::Shipyard;
    use crate::model::state::{Tagged, Version};
    use crate::model::time::Timestamp;
    use crate::testing::world::{config_key, deployment_config, project};

    fn stream(image: &str) -> Object {
        let tags = json!([{"name": "t", "from": {"kind": "DockerImage", "name": image}}]);
        let content = json!({"metadata": {"name": "app"}, "spec": {"tags": tags}});
        let key = ObjectKey { kind: Kind::ImageStream, name: "app".into() };
        let (service, location, digest) = (ServiceName::new("web"), Location::default(), digest::of(&content));
        Object { key, service, location, content: content.into(), digest, autoscaled_at: None }
    }

    fn config(automatic: bool, brought: &str) -> Object {
        let from = json!({"kind": "ImageStreamTag", "name": "app:t"});
        let params =
            json!({"automatic": automatic, "containerNames": ["web"], "from": from, "lastTriggeredImage": brought});
        deployment_config(
            "web",
            brought,
            1,
            json!({"triggers": [{"type": "ImageChange", "imageChangeParams": params}]}),
        )
    }

    fn image(project: &Project) -> Value {
        let key = ObjectKey { kind: Kind::DeploymentConfig, name: "web".into() };
        let found = project.stages[0].objects.get(&key).unwrap();
        found.content.at("/spec/template/spec/containers/0/image").unwrap()
    }

    fn recorded(config: Option<Object>, tagged: &[(&str, &str)]) -> BTreeMap<StageName, RecordedImages> {
        let (stage, destination) = (StageName::new("default"), Destination::local(Namespace::new("shop-default")));
        let ConfigKey { project, .. } = config_key("default", "web");
        let state = config.map(|object| {
            let key = config_key("default", "web");
            (object.key.clone(), ConfigState::new(key, destination.clone(), "shop".into(), object.into(), "c".into()))
        });
        let tagged = tagged.iter().map(|(image, instead_of)| {
            let from = ImageReference { kind: "DockerImage".into(), name: (*instead_of).into(), namespace: None };
            let (image, by, at) = ((*image).to_owned(), "hook".to_owned(), Timestamp(0));
            ("t".to_owned(), Tagged { image, instead_of: Some(from), by, at, imported: None, handed: Vec::new() })
        });
        let declared = stream("git:a@1").into();
        let stream = ObjectState::new((project, stage.clone()), destination, "shop".into(), declared);
        let stream = ObjectState { tagged: tagged.collect(), ..stream };
        BTreeMap::from([(stage, RecordedImages { streams: vec![stream], configs: state.into_iter().collect() })])
    }

    #[test]
    fn what_is_recorded_decides_where_files_do_not() {
        let (kept, tagged) = (Some(config(false, "git:a@0")), [("git:b@2", "git:a@1")]);
        let stale = [("git:b@2", "git:a@0")];
        for (declared, config, tagged, expected) in [
            (self::config(true, "git:a@1"), None, &[][..], "git:a@1"),
            (self::config(true, "git:a@1"), None, &tagged, "git:b@2"),
            (self::config(true, "git:a@1"), None, &stale, "git:a@1"),
            (self::config(false, ""), None, &[], ""),
            (self::config(false, ""), None, &tagged, ""),
            (self::config(false, ""), kept, &tagged, "git:a@0"),
        ] {
            let project = Arc::new(project(Shipyard::implicit(), &[stream("git:a@1"), declared]));
            let found = follow(&project, &recorded(config, tagged));
            assert_eq!(image(&found), expected);
            assert_eq!(*found == *project, image(&project) == expected);
        }
    }

    #[test]
    fn what_came_round_is_held_and_nothing_else() {
        let handed = |contents: &[&Object]| -> Vec<Handed> {
            contents.iter().map(|it| Handed { config: it.key.name.clone(), content: it.digest.clone() }).collect()
        };
        let (old, new, other) = (config(true, "git:b@2"), config(true, "git:a@1"), config(true, "git:c@3"));
        let mut another = old.clone();
        another.key.name = "api".to_owned();
        let changed = {
            let mut changed = new.clone();
            let mut content = changed.content.value();
            content["spec"]["replicas"] = json!(3);
            digest::exchange(&mut changed, content);
            changed
        };
        for (last, by, is_held) in [
            (&new, handed(&[&old, &new]), true),
            (&new, handed(&[&new]), false),
            (&new, handed(&[]), false),
            (&new, handed(&[&another, &new]), false),
            (&changed, handed(&[&old, &changed]), false),
            (&old, handed(&[&old]), false),
            (&other, handed(&[&old, &other]), true),
        ] {
            let mut recorded = recorded(Some(last.clone()), &[("git:b@2", "git:a@1")]);
            for here in recorded.values_mut() {
                here.streams[0].tagged.get_mut("t").expect("it was tagged").handed = by.clone();
                let state = here.configs.values_mut().next().expect("it is recorded");
                let object = Arc::clone(&state.object);
                state.serving = Some(Version { number: 1, commit: "c".into(), object });
            }
            let project = Arc::new(project(Shipyard::implicit(), &[stream("git:a@1"), config(true, "git:a@1")]));
            let project = follow(&project, &recorded);
            assert_eq!(image(&project), "git:b@2");
            let stage = &project.stages[0];
            let held = came_round(stage, &recorded[&stage.name]);
            assert_eq!(held.values().any(|cause| cause.contains("`app:t`")), is_held, "{by:?}");
        }
    }
}
