//! Which triggers of a deployment config a change of its template sets off.
//!
//! Source of the rules: OpenShift's deployment config controller (`triggerActivated`). Other than there, an image trigger that
//! is not automatic never sets anything off, images of init containers and images that are exchanged between containers
//! count, and all that sets off one version is named with it.

use serde_json::Value;

use crate::model::cause::Cause;
use crate::model::deployment_config::{CONTROLLERS_POINTER, DeploymentConfigSpec, ImageChangeParams, ImageReference};
use crate::model::object::CONTENT;
use crate::model::plan::Difference;
use crate::model::pod::Container;
use crate::model::state::{ConfigState, spec_of};

const TEMPLATE: &str = "/spec/template";

/// What sets off a new version: as far as nothing is deployed of it yet, everything that may.
pub(super) fn causes(spec: &DeploymentConfigSpec, applied: &ConfigState, reasons: &[Difference]) -> Vec<Cause> {
    if applied.latest_version == 0 && !spec.starts_by_itself() {
        return Vec::new();
    }
    let images = Images::of(spec, applied);
    let is_deployed =
        |reason: &Difference| [TEMPLATE, CONTROLLERS_POINTER].iter().any(|place| reason.pointer.starts_with(place));
    let by_config = |reason: &Difference| is_deployed(reason) && !images.brought(reason);
    let config = spec.has_config_change_trigger() && reasons.iter().any(|it| by_config(it) && !is_content(it));
    let content = reasons.iter().any(is_content);
    let changed = images.changed();
    let mut tags: Vec<&ImageReference> = changed.iter().filter_map(|(_, by)| Some(&by.as_ref()?.from)).collect();
    tags.sort_unstable_by_key(|tag| &*tag.name);
    tags.dedup_by_key(|tag| &*tag.name);
    // One that the file says counts as well, as long as any may come by itself.
    let is_said = tags.is_empty() && !changed.is_empty() && !config && images.any_automatic();
    let mut causes = Vec::new();
    causes.extend(config.then_some(Cause::ConfigChange));
    causes.extend(content.then_some(Cause::ContentChange));
    causes.extend(is_said.then_some(Cause::ImageChange { from: None }));
    causes.extend(tags.into_iter().map(|tag| Cause::ImageChange { from: Some(tag.clone()) }));
    causes
}

/// Whether a difference is one of the content of what pods read. Where nothing else stood there, it is that of the map.
fn is_content(reason: &Difference) -> bool {
    let key = reason.pointer.strip_prefix(TEMPLATE).and_then(|inner| inner.strip_prefix("/metadata/annotations"));
    let stands_alone = |map: &Value| map.as_object().is_some_and(|map| map.len() == 1 && map.contains_key(CONTENT));
    match key {
        Some("") => reason.old.is_none() && reason.new.as_ref().is_some_and(stands_alone),
        Some(key) => key.strip_prefix('/').is_some_and(|key| key == CONTENT.replace('/', "~1")),
        None => false,
    }
}

/// What stands for content might be guessed from: that it is another is all that is told.
pub(super) fn hide_content(reason: &mut Difference) {
    let is_it = reason.pointer.ends_with(&CONTENT.replace('/', "~1"));
    for (side, word) in [(&mut reason.old, "(content)"), (&mut reason.new, "(other content)")] {
        match side {
            Some(value) if is_it => *value = word.into(),
            Some(value) => hide_within(value, word),
            None => {}
        }
    }
}

fn hide_within(value: &mut Value, word: &str) {
    let Some(map) = value.as_object_mut() else { return };
    if let Some(content) = map.get_mut(CONTENT) {
        *content = word.into();
    }
    map.values_mut().for_each(|inner| hide_within(inner, word));
}

fn unique(mut names: Vec<&str>) -> Vec<&str> {
    names.sort_unstable();
    names.dedup();
    names
}

/// What is to come before anything can be deployed: the image of a trigger or, where none brings it, of a container. What
/// only a person brings is not waited for.
pub(super) fn awaited(spec: &DeploymentConfigSpec) -> Option<String> {
    let awaited = spec.image_triggers().filter(|params| params.is_awaited()).map(|params| params.from.name.as_str());
    match &unique(awaited.collect())[..] {
        [] => {}
        [tag] => return Some(format!("the tag `{tag}` of its image trigger leads to no image yet")),
        // They come together, so that those that lead to one bring none either.
        tags => {
            let tags = tags.join("`, `");
            return Some(format!("not all of the tags `{tags}` of its image triggers lead to an image yet"));
        }
    }
    let is_blank = |container: &&Container| container.image.trim().is_empty();
    let comes_by_hand = |container: &Container| spec.image_triggers().any(|params| brings(params, container));
    let blank = containers(spec).map(|(_, container)| container).filter(is_blank);
    let mut blank = blank.filter(|container| !comes_by_hand(container));
    blank.next().map(|container| format!("container `{}` has no image yet", container.name))
}

/// Why nothing sets off a version, for people.
pub(super) fn lacking(spec: &DeploymentConfigSpec) -> String {
    match spec.image_triggers().find(|params| !params.automatic && !params.has_brought()) {
        Some(params) => format!("an image trigger (`{}`) that is not automatic", params.from.name),
        None => "no ConfigChange trigger".to_owned(),
    }
}

fn brings(params: &ImageChangeParams, container: &Container) -> bool {
    params.container_names.contains(&container.name)
}

/// The containers of a template, with where they are.
fn containers(spec: &DeploymentConfigSpec) -> impl Iterator<Item = (String, &Container)> {
    let pod = &spec.template.spec;
    let in_list = |list: &'static str| move |(index, it)| (format!("{TEMPLATE}/spec/{list}/{index}"), it);
    let init = pod.init_containers.iter().enumerate().map(in_list("initContainers"));
    init.chain(pod.containers.iter().enumerate().map(in_list("containers")))
}

/// The images that are to run, beside those that do.
struct Images<'a> {
    spec: &'a DeploymentConfigSpec,
    /// Those of what serves, by container.
    serving: Vec<(String, String)>,
}

impl<'a> Images<'a> {
    fn of(spec: &'a DeploymentConfigSpec, applied: &ConfigState) -> Self {
        let serving = applied.serving.as_ref().and_then(|serving| spec_of(&serving.object).ok()).unwrap_or_default();
        let serving = containers(&serving).map(|(_, it)| (it.name.clone(), it.image.clone())).collect();
        Self { spec, serving }
    }

    /// As upstream, also one whose stream is not there: an image that no version had is a change of it.
    fn any_automatic(&self) -> bool {
        self.spec.declared_image_triggers().any(|params| params.automatic)
    }

    /// The automatic trigger that brings a container its image.
    fn by(&self, container: &Container) -> Option<&'a ImageChangeParams> {
        self.spec.image_triggers().find(|params| params.automatic && params.has_brought() && brings(params, container))
    }

    /// Where an image is another one than what serves has in that container, and the trigger that has brought it.
    fn changed(&self) -> Vec<(String, Option<&'a ImageChangeParams>)> {
        let differs = |container: &Container| {
            !self.serving.iter().any(|(name, image)| name == &container.name && image == &container.image)
        };
        let changed = containers(self.spec).filter(|(_, container)| differs(container));
        changed.map(|(pointer, container)| (format!("{pointer}/image"), self.by(container))).collect()
    }

    /// Whether a difference is an image that a trigger has brought.
    fn brought(&self, reason: &Difference) -> bool {
        let mut containers = containers(self.spec).filter(|(_, container)| self.by(container).is_some());
        containers.any(|(pointer, _)| reason.pointer == format!("{pointer}/image"))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use crate::model::ids::Destination;
    use crate::model::object::{CONTENT, Object};
    use crate::model::plan::{Change, Decision};
    use crate::model::state::{ConfigState, Version};
    use crate::plan::config_change::decide;
    use crate::testing::world::{config_key, deployment_config};

    const CONFIG: &str = "config";

    /// A trigger as `config`, or as `auto <tag> <container> <brought>` and `hand …`; `-` is nothing, `?` a stream that is not declared.
    fn trigger(text: &str) -> Value {
        let words: Vec<&str> = text.split(' ').collect();
        let [kind, tag, container, brought] = words[..] else { return json!({"type": "ConfigChange"}) };
        let from = json!({"kind": "ImageStreamTag", "name": format!("app:{tag}")});
        let brought = brought.trim_matches('-');
        let mut params = json!({"automatic": kind == "auto", "containerNames": [container], "from": from});
        if brought != "?" {
            params["lastTriggeredImage"] = json!(brought);
        }
        json!({"type": "ImageChange", "imageChangeParams": params})
    }

    /// A deployment config of the containers `a` and `b` with these images, and of a variable.
    fn config(triggers: &[&str], (a, b): (&str, &str), variable: &str) -> Arc<Object> {
        let triggers: Vec<Value> = triggers.iter().map(|text| trigger(text)).collect();
        let container =
            |name: &str, image: &str| json!({"name": name, "image": image, "env": [{"name": "A", "value": variable}]});
        let template = json!({"spec": {"containers": [container("a", a), container("b", b)]}});
        Arc::new(deployment_config("web", "", 1, json!({"triggers": triggers, "template": template})))
    }

    fn applied(object: &Arc<Object>, latest_version: u32) -> ConfigState {
        let destination = Destination::local("shop-dev".into());
        let state = ConfigState::new(config_key("dev", "web"), destination, "shop".into(), object.clone(), "c".into());
        let serving = Version { number: latest_version, commit: "c".into(), object: object.clone() };
        ConfigState { latest_version, serving: (latest_version > 0).then_some(serving), ..state }
    }

    fn told(change: &Change) -> String {
        format!("{} {}", change.decision.as_str(), change.cause)
    }

    #[test]
    fn the_first_deployment_waits_for_every_image() {
        let awaited = "wait the tag `app:t` of its image trigger leads to no image yet";
        let by_hand = "create created; it has an image trigger (`app:t`) that is not automatic, `launchway rollout latest` deploys it";
        let none = "create created; it has no ConfigChange trigger, `launchway rollout latest` deploys it";
        let first = "create first deployment";
        for (triggers, images, expected) in [
            (&[][..], ("x", "x"), none),
            (&[CONFIG], ("x", "x"), first),
            (&[CONFIG], ("x", " "), "wait container `b` has no image yet"),
            (&["auto t a i"], ("i", "x"), first),
            (&["auto t a -"], ("x", "x"), awaited),
            (&["auto t a i"], ("i", ""), "wait container `b` has no image yet"),
            (&[CONFIG, "auto t a i"], ("i", "x"), first),
            (&[CONFIG, "auto t a -"], ("x", "x"), awaited),
            (&[CONFIG, "auto s a i", "auto t b -"], (" ", " "), awaited),
            (&["hand t a -"], (" ", "x"), by_hand),
            (&[CONFIG, "hand t a -"], ("x", "x"), by_hand),
            (&[CONFIG, "hand t a i"], ("i", "x"), first),
            (&["hand t a i"], ("i", "x"), none),
            (&[CONFIG, "auto s a i", "hand t b -"], ("i", " "), by_hand),
        ] {
            let declared = config(triggers, images, "1");
            let change = decide(&declared, None);
            assert_eq!(told(&change), expected, "{triggers:?} {images:?}");
            let starts = change.decision == Decision::Create && expected == first;
            assert_eq!(
                (change.starts_deployment(), change.is_not_deployed()),
                (starts, change.decision == Decision::Create && !starts)
            );
            // Declared and never deployed, it is judged in the same way.
            let again = decide(&declared, Some(&applied(&config(&[], ("y", "y"), "0"), 0)));
            assert_eq!(again.decision == Decision::Deploy, expected == first, "{triggers:?}: {}", told(&again));
            assert_eq!(again.decision == Decision::Wait, expected.starts_with("wait"), "{triggers:?}");
        }
    }

    #[test]
    fn later_each_trigger_is_set_off_by_what_is_its() {
        let lacks = "update no ConfigChange trigger; `launchway rollout latest` deploys it";
        // What serves has `i` in `a` and `x` in `b`, and the variable 1.
        for (triggers, images, variable, expected) in [
            (&[CONFIG, "auto t a i"][..], ("i", "x"), "1", "update no new version: the template is the same"),
            (&[CONFIG, "auto t a j"], ("j", "x"), "1", "deploy image change (app:t)"),
            (&[CONFIG, "auto t a j"], ("j", "x"), "2", "deploy config change, image change (app:t)"),
            (&[CONFIG, "auto t a i"], ("i", "x"), "2", "deploy config change"),
            (&[CONFIG, "auto t a i"], ("i", "y"), "1", "deploy config change"),
            (&["auto t a j"], ("j", "x"), "1", "deploy image change (app:t)"),
            (&["auto t a j"], ("j", "x"), "2", "deploy image change (app:t)"),
            (&["auto t a i"], ("i", "x"), "2", lacks),
            (&["auto t a i"], ("i", "y"), "1", "deploy image change"),
            (&["auto t a ?"], ("j", "x"), "1", "deploy image change"),
            (&["auto t a ?"], ("i", "x"), "2", lacks),
            (&["hand t a ?"], ("j", "x"), "1", lacks),
            (&["auto s a j", "auto t b k"], ("j", "k"), "1", "deploy image change (app:s, app:t)"),
            (&["auto t a j", "auto t b j"], ("j", "j"), "1", "deploy image change (app:t)"),
            (&["auto s a x", "auto t b i"], ("x", "i"), "1", "deploy image change (app:s, app:t)"),
            (&["auto s a j", "auto t b -"], ("i", "x"), "1", "update no new version: the template is the same"),
            (
                &["auto s a j", "auto t b -"],
                ("i", "x"),
                "2",
                "wait the tag `app:t` of its image trigger leads to no image yet",
            ),
            (&["hand t a i"], ("i", "x"), "2", lacks),
            (&["hand t a i"], ("i", "y"), "1", lacks),
            (&[CONFIG, "hand t a i"], ("i", "x"), "2", "deploy config change"),
            (&[CONFIG, "hand t a i", "auto s b y"], ("i", "y"), "1", "deploy image change (app:s)"),
            (&[], ("j", "x"), "2", lacks),
            (&[CONFIG, "auto t a j"], ("j", ""), "1", "wait container `b` has no image yet"),
        ] {
            let serves = applied(&config(&["manual"], ("i", "x"), "1"), 1);
            let change = decide(&config(triggers, images, variable), Some(&serves));
            assert_eq!(told(&change), expected, "{triggers:?} {images:?} {variable}");
        }
    }

    #[test]
    fn content_that_is_followed_sets_off_a_version_by_itself() {
        let with = |content: &str, variable: &str, triggers: &[&str]| {
            let mut object = Object::clone(&config(triggers, ("i", "x"), variable));
            let mut value = object.content.value();
            value["spec"]["template"]["metadata"] = json!({"annotations": {CONTENT: content}});
            crate::manifest::digest::exchange(&mut object, value);
            Arc::new(object)
        };
        let without = config(&[CONFIG], ("i", "x"), "1");
        for (serves, declared, expected) in [
            (with("c", "1", &[]), with("d", "1", &[]), "deploy content change"),
            (with("c", "1", &[CONFIG]), with("d", "2", &[CONFIG]), "deploy config change, content change"),
            (without.clone(), with("d", "1", &[CONFIG]), "deploy config change"),
            (with("c", "1", &[CONFIG]), without, "deploy config change"),
        ] {
            let change = decide(&declared, Some(&applied(&serves, 1)));
            assert_eq!(told(&change), expected);
            let reasons = serde_json::to_string(&change.reasons).unwrap();
            assert!(!reasons.contains("\"c\"") && !reasons.contains("\"d\""), "{reasons}");
        }
    }

    #[test]
    fn what_a_trigger_has_brought_is_told_once() {
        let serves = applied(&config(&[CONFIG, "auto t a i"], ("i", "x"), "1"), 1);
        let change = decide(&config(&[CONFIG, "auto t a j"], ("j", "x"), "1"), Some(&serves));
        let pointers: Vec<&str> = change.reasons.iter().map(|reason| reason.pointer.as_str()).collect();
        assert_eq!(pointers, ["/spec/template/spec/containers/0/image"]);
    }
}
