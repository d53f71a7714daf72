//! Images that hooks hand round in a circle of tags: with two that differ, each version starts another one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Value;

use super::deployment_config;
use super::image_trigger::{Streams, followed};
use super::pod_template::{items, text_at};
use super::problem::Problem;
use crate::model::image_stream::stream_and_tag;
use crate::model::object::Location;

/// A stream and a tag of it.
type Tag = (String, String);

/// How an image goes on from one tag to another.
#[derive(Debug)]
struct Step {
    from: Tag,
    to: Tag,
    /// The deployment config whose automatic trigger takes it from there and whose hook gives it to the other, and where the
    /// trigger is; nothing, where the other tag leads to the first.
    by: Option<(String, Location)>,
}

/// Where each automatic image trigger of a deployment config hands its image on to, by the hooks of its containers.
#[derive(Debug, Default)]
pub(crate) struct Steps(Vec<Step>);

impl Steps {
    /// Adds those of a deployment config; `places` are those of its image triggers.
    pub(crate) fn add<'a>(&mut self, name: &str, content: &Value, places: impl Iterator<Item = &'a Location>) {
        let hooks = deployment_config::hooks(content.get("spec").unwrap_or(&Value::Null));
        let given: Vec<(&str, Tag)> = hooks.flat_map(|(_, hook)| given(hook)).collect();
        for (it, place) in followed(content).into_iter().zip(places).filter(|(it, _)| it.automatic) {
            for (_, to) in given.iter().filter(|(container, _)| it.containers.iter().any(|name| name == container)) {
                let (from, by) = ((it.stream.clone(), it.tag.clone()), Some((name.to_owned(), place.clone())));
                self.0.push(Step { from, to: to.clone(), by });
            }
        }
    }

    /// What is to be said of circles. A tag that gets back the image that it has is none: it takes two hooks that exchange
    /// what they have.
    pub(crate) fn problems(mut self, streams: &Streams) -> Vec<Problem> {
        if self.0.len() < 2 {
            return Vec::new();
        }
        self.0.extend(streams.aliases().map(|(to, from)| Step { from, to, by: None }));
        let mut out: BTreeMap<&Tag, Vec<&Step>> = BTreeMap::new();
        for step in &self.0 {
            out.entry(&step.from).or_default().push(step);
        }
        let mut told: BTreeSet<Vec<*const Step>> = BTreeSet::new();
        let circles = self.0.iter().filter(|step| step.by.is_some()).filter_map(|step| circle(step, &out));
        let mut problems = Vec::new();
        for circle in circles.filter(|circle| circle.iter().filter(|step| step.by.is_some()).count() > 1) {
            let mut identity: Vec<*const Step> = circle.iter().map(|step| std::ptr::from_ref(*step)).collect();
            identity.sort_unstable();
            if told.insert(identity) {
                problems.extend(problem(&circle));
            }
        }
        problems
    }
}

/// The images that a hook gives: of which container, and to which tag.
fn given(hook: &Value) -> impl Iterator<Item = (&str, Tag)> {
    items(hook, "/tagImages").filter_map(|(_, image)| {
        let (stream, tag) = stream_and_tag(text_at(image, "/to/name"))?;
        Some((text_at(image, "/containerName"), (stream.to_owned(), tag.to_owned())))
    })
}

/// The shortest way of an image back to where a step takes it from.
fn circle<'a>(first: &'a Step, out: &BTreeMap<&Tag, Vec<&'a Step>>) -> Option<Vec<&'a Step>> {
    let mut reached: BTreeMap<&Tag, &'a Step> = BTreeMap::from([(&first.to, first)]);
    let mut waiting = VecDeque::from([&first.to]);
    while let Some(tag) = waiting.pop_front() {
        if *tag == first.from {
            let mut way = vec![*reached.get(tag)?];
            while !std::ptr::eq(way[way.len() - 1], first) {
                way.push(*reached.get(&way[way.len() - 1].from)?);
            }
            way.reverse();
            return Some(way);
        }
        for step in out.get(tag).into_iter().flatten() {
            if !reached.contains_key(&step.to) {
                reached.insert(&step.to, step);
                waiting.push_back(&step.to);
            }
        }
    }
    None
}

fn problem(circle: &[&Step]) -> Option<Problem> {
    let first = circle.first()?;
    let (_, place) = first.by.as_ref()?;
    let name = |(stream, tag): &Tag| format!("`{stream}:{tag}`");
    let step = |step: &&Step| match &step.by {
        Some((config, _)) => format!(" → {} (by `{config}`)", name(&step.to)),
        None => format!(" → {}", name(&step.to)),
    };
    let way = name(&first.from) + &circle.iter().map(step).collect::<String>();
    let message = format!("`tagImages` hooks hand the image of this trigger round in a circle: {way}");
    let hint = "a version that brings back what was there is held; leave out one of the hooks, or say `automatic: false` in \
                one of the triggers";
    Some(Problem::error(place, "image-circle", message).warning().hint(hint))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::manifest::image_trigger::tests::streams;
    use crate::model::image_stream::{DOCKER_IMAGE, IMAGE_STREAM_TAG};

    /// A deployment config that gives tags the images of containers, each as `<tag followed> <container> <tag given>`.
    fn config(automatic: bool, steps: &[&str]) -> Value {
        let words = |step: &&str| step.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let steps: Vec<Vec<String>> = steps.iter().map(words).collect();
        let trigger = |step: &Vec<String>| {
            let from = json!({"kind": "ImageStreamTag", "name": format!("app:{}", step[0])});
            let params = json!({"automatic": automatic, "containerNames": [step[1]], "from": from});
            json!({"type": "ImageChange", "imageChangeParams": params})
        };
        let tag = |step: &Vec<String>| json!({"containerName": step[1], "to": {"name": format!("app:{}", step[2])}});
        let tags: Vec<Value> = steps.iter().map(tag).collect();
        let strategy = json!({"type": "Recreate", "recreateParams": {"post": {"tagImages": tags}}});
        json!({"spec": {"triggers": steps.iter().map(trigger).collect::<Vec<_>>(), "strategy": strategy}})
    }

    #[test]
    fn only_what_may_come_back_as_another_image_is_a_circle() {
        let swap = &["a one b", "b two a"][..];
        let told_of_swap = "`app:a` → `app:b` (by `c0`) → `app:a` (by `c0`)";
        for (automatic, configs, expected) in [
            (true, &[swap][..], &[told_of_swap][..]),
            (false, &[swap], &[]),
            (true, &[&["a one b"], &["b one a"]], &["`app:a` → `app:b` (by `c0`) → `app:a` (by `c1`)"]),
            (true, &[&["a one b"], &["b one c"], &["c one d"]], &[]),
            (true, &[&["a one a"]], &[]),
            (true, &[&["latest main stable", "stable side x"]], &[]),
            (
                true,
                &[&["alias one b"], &["b one a"]],
                &["`app:alias` → `app:b` (by `c0`) → `app:a` (by `c1`) → `app:alias`"],
            ),
            (true, &[&["alias one a"]], &[]),
        ] {
            let mut steps = Steps::default();
            for (index, config) in configs.iter().enumerate() {
                let places: Vec<Location> =
                    (0..config.len()).map(|_| Location { file: "a.yaml".into(), line: 3, column: 1 }).collect();
                steps.add(&format!("c{index}"), &self::config(automatic, config), places.iter());
            }
            let streams = streams(&[("a", DOCKER_IMAGE, "git:a"), ("alias", IMAGE_STREAM_TAG, "a")]);
            let told: Vec<String> = steps.problems(&streams).iter().map(ToString::to_string).collect();
            assert_eq!(told.len(), expected.len(), "{configs:?}: {told:?}");
            for (told, expected) in told.iter().zip(expected) {
                assert!(told.starts_with("a.yaml:3:1: warning") && told.contains(expected), "{told}");
            }
        }
    }
}
