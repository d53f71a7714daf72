//! What image triggers bring: the images that the tags of image streams lead to, in the containers of deployment configs.
//!
//! Source of the rules: OpenShift's image trigger controller, and what `rollout latest` has it do; other than there, a
//! trigger that is not automatic brings nothing by itself.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::image;
use super::pod_template::{CONTAINER_LISTS, items, text_at};
use crate::model::deployment_config::{IMAGE_CHANGE, ImageReference};
use crate::model::ids::Destination;
use crate::model::image_stream::{DOCKER_IMAGE, IMAGE_STREAM_TAG, ImageStreamSpec, TagReference, stream_and_tag};
use crate::model::object::{Kind, Object};
use crate::model::state::{Handed, Tagged};

/// A tag that a deployment config's trigger follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Followed {
    /// Which trigger.
    pub(crate) index: usize,
    /// The stream.
    pub(crate) stream: String,
    /// The tag.
    pub(crate) tag: String,
    /// Whether it brings images by itself.
    pub(crate) automatic: bool,
    /// The containers that get them.
    pub(crate) containers: Vec<String>,
}

/// The tags that a deployment config follows. Where the stream is, the stage decides, as it does for everything.
pub(crate) fn followed(content: &Value) -> Vec<Followed> {
    let of_images = items(content, "/spec/triggers").filter(|(_, trigger)| text_at(trigger, "/type") == IMAGE_CHANGE);
    let followed = |(index, trigger): (usize, &Value)| {
        let params = trigger.get("imageChangeParams")?;
        let (stream, tag) = stream_and_tag(text_at(params, "/from/name"))?;
        let containers = items(params, "/containerNames").filter_map(|(_, name)| name.as_str());
        Some(Followed {
            index,
            stream: stream.to_owned(),
            tag: tag.to_owned(),
            automatic: params.get("automatic") == Some(&Value::Bool(true)),
            containers: containers.map(str::to_owned).collect(),
        })
    };
    of_images.filter_map(followed).collect()
}

/// A tag as its file says it, and what it leads to.
#[derive(Clone, Debug, Default)]
struct Tag {
    from: Option<ImageReference>,
    source: Option<Source>,
    handed: Vec<Handed>,
}

/// The streams of its stage whose tags a deployment config follows.
pub fn streams_of(object: &Object) -> impl Iterator<Item = String> {
    let content = object.content.value();
    let is_of_stage = |it: &Followed| content.pointer(&last_image(it.index)).is_some();
    let followed: Vec<Followed> = followed(&content).into_iter().filter(is_of_stage).collect();
    followed.into_iter().map(|it| it.stream)
}

/// What a tag leads to.
#[derive(Clone, Debug)]
enum Source {
    Image(String),
    Tag(String, String),
}

/// The image streams of a stage.
#[derive(Clone, Debug, Default)]
pub struct Streams(BTreeMap<String, BTreeMap<String, Tag>>);

/// Which triggers bring an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bring {
    /// Those that do it by themselves.
    Automatic,
    /// All: a person asks for it.
    All,
}

/// An image whose tag leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unresolved(pub String);

impl Streams {
    /// The streams among objects of a destination, by what their files say of tags.
    pub fn of<'a>(objects: impl Iterator<Item = &'a Object>, destination: &Destination) -> Self {
        let mut streams = Self::default();
        for object in objects.filter(|object| object.key.kind == Kind::ImageStream) {
            streams.add(object, destination);
        }
        streams
    }

    /// Adds a stream.
    pub fn add(&mut self, object: &Object, destination: &Destination) {
        let name = &object.key.name;
        let spec: ImageStreamSpec = object.spec().unwrap_or_default();
        let source = |from: &ImageReference| match from.kind.as_str() {
            DOCKER_IMAGE if !destination.is_local() || is_launchable(&from.name) => {
                Some(Source::Image(from.name.clone()))
            }
            IMAGE_STREAM_TAG => {
                let (stream, tag) = stream_and_tag(&from.name).unwrap_or((name, &from.name));
                Some(Source::Tag(stream.to_owned(), tag.to_owned()))
            }
            _ => None,
        };
        let tag = |tag: TagReference| {
            let source = tag.from.as_ref().and_then(source);
            (tag.name, Tag { source, from: tag.from, handed: Vec::new() })
        };
        self.0.insert(name.clone(), spec.tags.into_iter().map(tag).collect());
    }

    /// Gives tags of a stream the images that they were given beside the files, as far as these say of them what they said
    /// then.
    pub fn tag(&mut self, stream: &str, tagged: &BTreeMap<String, Tagged>) {
        let Some(tags) = self.0.get_mut(stream) else { return };
        for (name, tagged) in tagged {
            let from = tags.get(name).and_then(|tag| tag.from.clone());
            if from == tagged.instead_of {
                let (source, handed) = (Some(Source::Image(tagged.image.clone())), tagged.handed.clone());
                tags.insert(name.clone(), Tag { from, source, handed });
            }
        }
    }

    /// Adds a stream of which nothing is known yet.
    pub fn declare(&mut self, stream: &str) {
        self.0.entry(stream.to_owned()).or_default();
    }

    /// The streams that tags lead to, some perhaps twice.
    pub fn led_to(&self) -> impl Iterator<Item = String> {
        let sources = self.0.values().flatten().filter_map(|(_, tag)| tag.source.as_ref());
        sources.filter_map(|source| match source {
            Source::Tag(stream, _) => Some(stream.clone()),
            Source::Image(_) => None,
        })
    }

    /// The tags of a stream.
    pub fn tags(&self, stream: &str) -> impl Iterator<Item = &str> {
        self.0.get(stream).into_iter().flat_map(|tags| tags.keys().map(String::as_str))
    }

    /// What files say of a tag.
    pub fn from(&self, stream: &str, tag: &str) -> Option<&ImageReference> {
        self.0.get(stream)?.get(tag)?.from.as_ref()
    }

    /// Whether there is a stream of this name.
    pub fn has(&self, stream: &str) -> bool {
        self.0.contains_key(stream)
    }

    /// The tags that lead to others, each with that one.
    pub(crate) fn aliases(&self) -> impl Iterator<Item = ((String, String), (String, String))> {
        let tags = self.0.iter().flat_map(|(stream, tags)| tags.iter().map(move |(name, tag)| (stream, name, tag)));
        tags.filter_map(|(stream, name, tag)| match tag.source.as_ref()? {
            Source::Tag(next, tag) => Some(((stream.clone(), name.clone()), (next.clone(), tag.clone()))),
            Source::Image(_) => None,
        })
    }

    /// The image that a tag leads to, also by way of other tags.
    pub fn image(&self, stream: &str, tag: &str) -> Option<&str> {
        self.end(stream, tag).map(|(image, _)| image)
    }

    /// The versions whose hooks have handed the image on that a tag leads to, the last one last.
    pub fn handed(&self, stream: &str, tag: &str) -> &[Handed] {
        self.end(stream, tag).map_or(&[], |(_, tag)| &tag.handed)
    }

    /// Where a tag leads to.
    fn end(&self, stream: &str, tag: &str) -> Option<(&str, &Tag)> {
        let (mut stream, mut tag) = (stream, tag);
        let mut passed = BTreeSet::new();
        while passed.insert((stream, tag)) {
            let here = self.0.get(stream)?.get(tag)?;
            match here.source.as_ref()? {
                Source::Image(image) => return Some((image, here)),
                Source::Tag(next_stream, next_tag) => (stream, tag) = (next_stream, next_tag),
            }
        }
        None
    }
}

/// What tags were given beside the files, without those of which the stream's file says something else now.
pub fn still_tagged(tagged: &BTreeMap<String, Tagged>, stream: &Object) -> BTreeMap<String, Tagged> {
    if tagged.is_empty() {
        return BTreeMap::new();
    }
    let spec: ImageStreamSpec = stream.spec().unwrap_or_default();
    let said = |name: &str| spec.tags.iter().find(|tag| tag.name == name).and_then(|tag| tag.from.as_ref());
    let stays = |(name, tagged): &(&String, &Tagged)| said(name) == tagged.instead_of.as_ref();
    tagged.iter().filter(stays).map(|(name, tagged)| (name.clone(), tagged.clone())).collect()
}

/// Whether an image names a launchable; that of a folder carries the folder's id by then.
fn is_launchable(name: &str) -> bool {
    name.starts_with("git:") || image::parse(name).is_ok()
}

/// Puts the images of all triggers where they belong, or none: as long as the tag of one leads nowhere that should bring
/// its image, and never brought one, the others wait for it. `recorded` is the deployment config as it was accepted last;
/// what its triggers have brought stays as long as nothing newer is brought.
///
/// # Errors
/// If the tag of a trigger that is to bring an image leads nowhere; what was brought before is put back all the same.
pub fn bring(content: &mut Value, streams: &Streams, recorded: Option<&Value>, which: Bring) -> Result<(), Unresolved> {
    let followed: Vec<Followed> = followed(content).into_iter().filter(|it| streams.has(&it.stream)).collect();
    let brought = |it: &Followed| recorded.and_then(|recorded| brought_before(recorded, it));
    let current = |it: &Followed| streams.image(&it.stream, &it.tag).map(str::to_owned);
    let is_asked = |it: &&Followed| it.automatic || which == Bring::All;
    let missing = followed.iter().filter(is_asked).find(|it| current(it).or_else(|| brought(it)).is_none());
    for it in &followed {
        let newer = if is_asked(&it) && missing.is_none() { current(it) } else { None };
        put(content, it, newer.or_else(|| brought(it)));
    }
    missing.map_or(Ok(()), |it| Err(Unresolved(format!("{}:{}", it.stream, it.tag))))
}

/// The tags whose images are all that differs between a deployment config and what it was before; none, where anything else
/// differs too.
pub fn brought_alone(content: &Value, before: &Value) -> Vec<(String, String)> {
    let followed = followed(content);
    let image = |it: &Followed| Some(text_at(content, &last_image(it.index)).to_owned()).filter(|it| !it.is_empty());
    let mut as_now = before.clone();
    followed.iter().for_each(|it| put(&mut as_now, it, image(it)));
    if as_now != *content {
        return Vec::new();
    }
    let is_another = |it: &Followed| brought_before(before, it) != image(it);
    followed.into_iter().filter(is_another).map(|it| (it.stream, it.tag)).collect()
}

/// What a trigger for the same tag has brought.
fn brought_before(recorded: &Value, it: &Followed) -> Option<String> {
    let mut same = followed(recorded).into_iter().filter(|other| (&other.stream, &other.tag) == (&it.stream, &it.tag));
    same.find_map(|other| {
        Some(text_at(recorded, &last_image(other.index)).to_owned()).filter(|image| !image.is_empty())
    })
}

/// Where a trigger says what it has brought.
fn last_image(index: usize) -> String {
    format!("/spec/triggers/{index}/imageChangeParams/lastTriggeredImage")
}

fn put(content: &mut Value, it: &Followed, image: Option<String>) {
    let params = content.pointer_mut(&format!("/spec/triggers/{}/imageChangeParams", it.index));
    if let Some(params) = params.and_then(Value::as_object_mut) {
        params.insert("lastTriggeredImage".to_owned(), json!(image.as_deref().unwrap_or_default()));
    }
    let Some(image) = image else { return };
    for list in CONTAINER_LISTS {
        let containers = content.pointer_mut(&format!("/spec/template{list}")).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            if it.containers.iter().any(|name| text_at(container, "/name") == name) {
                container["image"] = json!(image);
            }
        }
    }
}

#[cfg(test)]
pub(in crate::manifest) mod tests {
    use super::*;
    use crate::manifest::digest;
    use crate::model::ids::{Namespace, ServiceName};
    use crate::model::object::{Location, ObjectKey};

    /// A stream `app` of tags, each with the kind and the name of what it leads to.
    pub(in crate::manifest) fn streams(tags: &[(&str, &str, &str)]) -> Streams {
        let tags: Vec<Value> =
            tags.iter().map(|(name, kind, from)| json!({"name": name, "from": {"kind": kind, "name": from}})).collect();
        let content = json!({"metadata": {"name": "app"}, "spec": {"tags": tags}});
        let object = Object {
            key: ObjectKey { kind: Kind::ImageStream, name: "app".into() },
            service: ServiceName::new("app"),
            location: Location::default(),
            autoscaled_at: None,
            digest: digest::of(&content),
            content: content.into(),
        };
        Streams::of([&object].into_iter(), &Destination::local(Namespace::new("n")))
    }

    /// A deployment config with a trigger for each `(automatic, tag, container)`.
    fn config(triggers: &[(bool, &str, &str)]) -> Value {
        let trigger = |(automatic, tag, container): &(bool, &str, &str)| {
            let from = json!({"kind": "ImageStreamTag", "name": format!("app:{tag}")});
            let params = json!({"automatic": automatic, "containerNames": [container], "from": from});
            json!({"type": "ImageChange", "imageChangeParams": params})
        };
        let containers = ["a", "b"].map(|name| json!({"name": name, "image": " "}));
        let init = [json!({"name": "i", "image": "host"})];
        json!({"spec": {
            "triggers": triggers.iter().map(trigger).collect::<Vec<_>>(),
            "template": {"spec": {"initContainers": init, "containers": containers}},
        }})
    }

    /// The images of `i`, `a` and `b`, and what each trigger has brought.
    fn told(content: &Value) -> String {
        let list = |pointer: &str, field: &str| {
            items(content, pointer).map(|(_, it)| text_at(it, field).to_owned()).collect::<Vec<_>>()
        };
        let images =
            [list("/spec/template/spec/initContainers", "/image"), list("/spec/template/spec/containers", "/image")];
        let last = list("/spec/triggers", "/imageChangeParams/lastTriggeredImage");
        format!("{} <- {}", images.concat().join(","), last.join(","))
    }

    #[test]
    fn images_are_put_in_all_or_none() {
        let all = streams(&[("one", DOCKER_IMAGE, "git:one@1"), ("two", DOCKER_IMAGE, "git:two@2")]);
        let one = streams(&[("one", DOCKER_IMAGE, "git:one@1")]);
        let (both, mixed) = ([(true, "one", "a"), (true, "two", "b")], [(true, "one", "a"), (false, "two", "b")]);
        let before = |streams: &Streams, triggers: &[(bool, &str, &str)]| {
            let mut content = config(triggers);
            bring(&mut content, streams, None, Bring::All).map(|()| content).ok()
        };
        let none = Unresolved("app:two".to_owned());
        for (triggers, streams, recorded, which, expected, result) in [
            (&both[..], &all, None, Bring::Automatic, "host,git:one@1,git:two@2 <- git:one@1,git:two@2", Ok(())),
            (&both, &one, None, Bring::Automatic, "host, ,  <- ,", Err(none.clone())),
            (
                &both,
                &one,
                before(&all, &both),
                Bring::Automatic,
                "host,git:one@1,git:two@2 <- git:one@1,git:two@2",
                Ok(()),
            ),
            (&mixed, &all, None, Bring::Automatic, "host,git:one@1,  <- git:one@1,", Ok(())),
            (&mixed, &all, None, Bring::All, "host,git:one@1,git:two@2 <- git:one@1,git:two@2", Ok(())),
            (&mixed, &one, None, Bring::All, "host, ,  <- ,", Err(none)),
            (
                &mixed,
                &all,
                before(&all, &mixed),
                Bring::Automatic,
                "host,git:one@1,git:two@2 <- git:one@1,git:two@2",
                Ok(()),
            ),
            (&[(true, "one", "i")], &all, None, Bring::Automatic, "git:one@1, ,  <- git:one@1", Ok(())),
            (&[(true, "one", "x")], &all, None, Bring::Automatic, "host, ,  <- git:one@1", Ok(())),
        ] {
            let mut content = config(triggers);
            assert_eq!(bring(&mut content, streams, recorded.as_ref(), which), result, "{triggers:?}");
            assert_eq!(told(&content), expected, "{triggers:?} {which:?}");
            let once = content.clone();
            assert_eq!(bring(&mut content, streams, recorded.as_ref(), which), result);
            assert_eq!(content, once, "a second time changes nothing");
        }
    }

    #[test]
    fn what_is_not_automatic_keeps_what_it_has_brought() {
        let (old, new) = (streams(&[("t", DOCKER_IMAGE, "git:app@1")]), streams(&[("t", DOCKER_IMAGE, "git:app@2")]));
        for (automatic, expected) in [(false, "git:app@1"), (true, "git:app@2")] {
            let mut recorded = config(&[(false, "t", "a")]);
            bring(&mut recorded, &old, None, Bring::All).unwrap();
            let mut content = config(&[(automatic, "t", "a")]);
            bring(&mut content, &new, Some(&recorded), Bring::Automatic).unwrap();
            assert_eq!(told(&content), format!("host,{expected},  <- {expected}"));
        }
    }

    #[test]
    fn a_stream_of_somebody_else_brings_nothing() {
        let mut content = config(&[(true, "t", "a")]);
        assert_eq!(bring(&mut content, &Streams::default(), None, Bring::All), Ok(()));
        assert_eq!(content, config(&[(true, "t", "a")]));
    }

    #[test]
    fn a_tag_may_lead_to_another() {
        let streams = streams(&[
            ("prod", IMAGE_STREAM_TAG, "tested"),
            ("tested", IMAGE_STREAM_TAG, "app:built"),
            ("built", DOCKER_IMAGE, "git:app@1"),
            ("x", IMAGE_STREAM_TAG, "y"),
            ("y", IMAGE_STREAM_TAG, "x"),
            ("cluster", DOCKER_IMAGE, "quay.io/a/b:1"),
        ]);
        for (tag, expected) in [("prod", Some("git:app@1")), ("x", None), ("gone", None), ("cluster", None)] {
            assert_eq!(streams.image("app", tag), expected, "{tag}");
        }
    }

    #[test]
    fn what_images_alone_have_changed_is_told_by_their_tags() {
        let both = [(true, "one", "a"), (false, "two", "b")];
        let with = |one: &str, two: &str, triggers: &[(bool, &str, &str)], which: Bring| {
            let mut content = config(triggers);
            let streams = streams(&[("one", DOCKER_IMAGE, one), ("two", DOCKER_IMAGE, two)]);
            bring(&mut content, &streams, None, which).expect("both are there");
            content
        };
        let before = with("git:x", "git:y", &both, Bring::All);
        let replicas = |mut content: Value| {
            content["spec"]["replicas"] = json!(2);
            content
        };
        for (content, expected) in [
            (before.clone(), &[][..]),
            (with("git:z", "git:y", &both, Bring::All), &["one"]),
            (with("git:y", "git:x", &both, Bring::All), &["one", "two"]),
            (replicas(with("git:y", "git:x", &both, Bring::All)), &[]),
            (with("git:y", "git:x", &both[..1], Bring::All), &[]),
        ] {
            let found = brought_alone(&content, &before);
            assert_eq!(found.iter().map(|(_, tag)| &**tag).collect::<Vec<_>>(), expected, "{content}");
        }
    }
}
