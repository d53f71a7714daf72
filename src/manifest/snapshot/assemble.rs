//! From files to stages: which objects each has, their services, and what may not be there twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::FileMap;
use super::file::Resolved;
use super::layout::{Layout, StageLayout};
use super::tasks::tasks;
use crate::manifest::autoscaler::Autoscaler;
use crate::manifest::content_trigger;
use crate::manifest::digest;
use crate::manifest::discover::is_under;
use crate::manifest::image_circle::Steps;
use crate::manifest::image_trigger::{self, Bring, Streams};
use crate::manifest::need::{self, Need};
use crate::manifest::object::{Declared, Follows};
use crate::manifest::problem::Problem;
use crate::manifest::replication_controller::{self, Belongs};
use crate::manifest::service;
use crate::manifest::stage_context::{Runtime, is_for};
use crate::model::ids::{Destination, ServiceName, StageName};
use crate::model::object::{Kind, Location, Object, ObjectKey};
use crate::model::project::{Project, StageContent, StageObjects};

/// All stages, and what is wrong between files.
#[derive(Clone, Debug)]
pub(super) struct Assembled {
    pub(super) project: Arc<Project>,
    pub(super) problems: Vec<Problem>,
    /// The folder of each stage of the project.
    folders: Vec<String>,
    /// Whether a deployment config follows the content of objects that it reads.
    follows_content: bool,
    /// What autoscalers name.
    autoscaled: BTreeSet<ObjectKey>,
    /// The deployment configs that deploy replication controllers.
    leaders: BTreeSet<ObjectKey>,
}

/// Builds all stages. Objects that are as they were `before` are shared with it.
pub(super) fn assemble(layout: &Layout, files: &FileMap, before: Option<&Assembled>) -> Assembled {
    let mut problems = Vec::new();
    let known = |name: &StageName| before?.project.stage(name);
    let stages = layout.stages.iter();
    let stages = stages.map(|stage| self::stage(stage, layout, files, known(&stage.name), &mut problems)).collect();
    let (name, shipyard) = (layout.name.clone(), layout.shipyard.clone());
    let (statuses, on_failure, previews) = (layout.statuses, layout.on_failure, layout.previews.clone());
    let project = Project { name, shipyard, stages, statuses, on_failure, previews };
    let folders = layout.stages.iter().map(|stage| stage.folder.clone()).collect();
    let mut declared = files.iter().flat_map(|(_, file)| &file.parsed.declarations.objects);
    let follows_content = declared.any(|declared| !declared.follows_content.kinds.is_empty());
    let autoscaled = files.iter().flat_map(|(_, file)| &file.parsed.declarations.autoscalers);
    let autoscaled = autoscaled.map(Autoscaler::key).collect();
    let declared = files.iter().flat_map(|(_, file)| &file.parsed.declarations.objects);
    let leaders = declared.filter_map(|declared| declared.belongs.as_ref().map(Belongs::key)).collect();
    Assembled { project: Arc::new(project), problems, folders, follows_content, autoscaled, leaders }
}

fn stage(
    stage: &StageLayout,
    layout: &Layout,
    files: &FileMap,
    before: Option<&StageContent>,
    problems: &mut Vec<Problem>,
) -> StageContent {
    let in_stage = || files.iter().filter(|(path, _)| is_under(path, &stage.folder)).map(|(_, file)| file);
    let pairs = in_stage().flat_map(|file| file.parsed.declarations.objects.iter().zip(&file.objects));
    let pairs = pairs.filter(|(declared, _)| is_for(&declared.stages, &stage.name));
    let (declared, resolved): (Vec<&Declared>, Vec<&Arc<Object>>) = pairs.unzip();
    let services = service::assign(&declared);
    let mut objects = StageObjects::default();
    for (object, service) in resolved.into_iter().zip(services) {
        let known = before.and_then(|stage| stage.objects.get(&object.key));
        let object = with_service(object, service, known);
        if let Some(first) = objects.insert(Arc::clone(&object)) {
            problems.push(match (first.declared_kind(), object.declared_kind()) {
                (one, other) if one == other => {
                    twice(&format!("{one}/{}", object.key.name), &first.location, &object.location)
                }
                kinds => both(kinds, &first, &object),
            });
        }
    }
    let autoscalers = in_stage().flat_map(|file| &file.parsed.declarations.autoscalers);
    let autoscalers = autoscalers.filter(|autoscaler| is_for(&autoscaler.stages, &stage.name));
    let destination = match stage.context.terms.runtime {
        Runtime::Local => Destination::local(stage.namespace.clone()),
        Runtime::Kubernetes => Destination::kubernetes(stage.namespace.clone()),
    };
    problems.extend(without_traffic(stage, &declared));
    bring_images(stage, &declared, &mut objects, (&destination, before), problems);
    bring_content(&declared, &mut objects);
    bring_controllers(stage, &declared, &mut objects, before, problems);
    leave_numbers(autoscalers, &stage.name, &mut objects, before, problems);
    let of_tasks = in_stage().flat_map(|file| &file.parsed.declarations.tasks);
    let of_tasks = of_tasks.filter(|task| task.runs_in(&stage.name)).flat_map(|task| &task.needs);
    let needs = declared.iter().flat_map(|declared| &declared.needs).chain(of_tasks);
    if stage.context.terms.runtime == Runtime::Local {
        problems.extend(need::missing(&stage.name, needs, &objects, &declared));
    }
    let tasks = tasks(stage, layout, in_stage(), problems);
    StageContent {
        name: stage.name.clone(),
        destination,
        delivery: stage.delivery.clone(),
        objects,
        tasks,
        prune: stage.prune,
    }
}

/// The object as one of a service; the known one if it is the same, since copying content is what costs.
fn with_service(object: &Arc<Object>, service: ServiceName, known: Option<&Arc<Object>>) -> Arc<Object> {
    if object.service == service {
        return Arc::clone(object);
    }
    let is_same = |known: &&Arc<Object>| {
        known.service == service && known.digest == object.digest && known.location == object.location
    };
    known.filter(is_same).map_or_else(|| Arc::new(Object { service, ..Object::clone(object) }), Arc::clone)
}

/// Where the stage asks for a strategy that shares out traffic, and none leads to the pods.
fn without_traffic(stage: &StageLayout, declared: &[&Declared]) -> Vec<Problem> {
    let Some(strategy) = stage.context.terms.strategy else { return Vec::new() };
    let problem = |config: &Declared| {
        let message = format!(
            "no Service of stage `{}` selects these pods, and its `deploymentstrategy` asks for {}: only pods are exchanged \
             so, and no traffic",
            stage.name,
            strategy.as_str()
        );
        Problem::error(&config.location, "no-effect", message).warning()
    };
    service::unselected(declared).into_iter().map(problem).collect()
}

/// Deployment configs get the images of the tags that they follow, as far as files say them.
fn bring_images(
    stage: &StageLayout,
    declared: &[&Declared],
    objects: &mut StageObjects,
    (destination, before): (&Destination, Option<&StageContent>),
    problems: &mut Vec<Problem>,
) {
    let followers: Vec<&&Declared> = declared.iter().filter(|declared| !declared.follows.is_empty()).collect();
    if followers.is_empty() {
        return;
    }
    let streams = Streams::of(objects.iter().map(AsRef::as_ref), destination);
    let mut steps = Steps::default();
    for follower in followers {
        problems.extend(follower.follows.iter().filter(|it| !streams.has(&it.stream)).map(|it| unknown(it, stage)));
        let Some(object) = objects.get(&follower.key).cloned() else { continue };
        let mut content = object.content.value();
        steps.add(&follower.key.name, &content, follower.follows.iter().map(|it| &it.location));
        // What is missing, the plan waits for.
        drop(image_trigger::bring(&mut content, &streams, None, Bring::Automatic));
        let mut brought = Object::clone(&object);
        digest::exchange(&mut brought, content);
        objects.insert(shared(brought, before));
    }
    problems.extend(steps.problems(&streams));
}

/// The known object, if that is the same.
fn shared(object: Object, before: Option<&StageContent>) -> Arc<Object> {
    let known = before.and_then(|stage| stage.objects.get(&object.key)).filter(|known| ***known == object);
    known.map_or_else(|| Arc::new(object), Arc::clone)
}

/// Deployment configs that follow objects that they read get the identity of these.
fn bring_content(declared: &[&Declared], objects: &mut StageObjects) {
    for follower in declared.iter().filter(|declared| !declared.follows_content.kinds.is_empty()) {
        let Some(mut object) = objects.get(&follower.key).map(|object| Object::clone(object)) else { continue };
        let mut content = object.content.value();
        let read = |key: &ObjectKey| objects.get(key).map(AsRef::as_ref);
        content_trigger::put(&mut content, &follower.follows_content.kinds, &follower.links.references, read);
        digest::exchange(&mut object, content);
        objects.insert(Arc::new(object));
    }
}

/// Deployment configs get the templates of the replication controllers that they deploy.
fn bring_controllers(
    stage: &StageLayout,
    declared: &[&Declared],
    objects: &mut StageObjects,
    before: Option<&StageContent>,
    problems: &mut Vec<Problem>,
) {
    let mut by_leader: BTreeMap<&str, Vec<(&Belongs, Arc<Object>)>> = BTreeMap::new();
    for declared in declared {
        if let (Some(belongs), Some(object)) = (&declared.belongs, objects.get(&declared.key)) {
            by_leader.entry(&belongs.to).or_default().push((belongs, Arc::clone(object)));
        }
    }
    for controllers in by_leader.into_values() {
        let Some(leader) = controllers.first().map(|(belongs, _)| belongs.key()) else { continue };
        match replication_controller::led(&stage.name, objects, &leader, &controllers) {
            Ok(led) => drop(objects.insert(shared(led, before))),
            Err(found) => problems.extend(found),
        }
    }
}

/// Autoscalers say how many pods their targets have.
fn leave_numbers<'a>(
    autoscalers: impl Iterator<Item = &'a Autoscaler>,
    stage: &StageName,
    objects: &mut StageObjects,
    before: Option<&StageContent>,
    problems: &mut Vec<Problem>,
) {
    for autoscaler in autoscalers {
        match autoscaler.scaled(objects.get(&autoscaler.key()).map(AsRef::as_ref), stage) {
            Ok(scaled) => scaled.into_iter().for_each(|scaled| drop(objects.insert(shared(scaled, before)))),
            Err(problem) => problems.push(*problem),
        }
    }
}

fn unknown(it: &Follows, stage: &StageLayout) -> Problem {
    let Follows { stream, tag, location } = it;
    let message =
        format!("stage `{}` declares no ImageStream `{stream}`, so that this trigger brings no image", stage.name);
    let hint = format!("declare it with a tag `{tag}`; until then the container has the image that the template says");
    Problem::error(location, "not-found", message).warning().hint(hint)
}

pub(super) fn twice(what: &impl std::fmt::Display, first: &Location, second: &Location) -> Problem {
    Problem::error(second, "duplicate", format!("{what} is declared twice in the same stage"))
        .hint(format!("the other one is at {first}; remove one, or give the stages paths of their own"))
}

/// A `Deployment` takes the place of a `DeploymentConfig` of its name, so that there cannot be both.
fn both((one, other): (Kind, Kind), first: &Object, second: &Object) -> Problem {
    let name = &second.key.name;
    let message = format!("{other}/{name} is the same as {one}/{name}, which is declared in this stage too");
    Problem::error(&second.location, "duplicate", message)
        .hint(format!("the other one is at {}; remove one of them", first.location))
}

/// The same with some files' objects replaced; `None` if that could touch the services of others, or what is
/// declared twice: then everything is put together again.
pub(super) fn replace(
    before: &Assembled,
    old: &FileMap,
    new: &FileMap,
    touched: &BTreeSet<Arc<str>>,
) -> Option<Assembled> {
    let nothing = |path| !old.contains_key(path) && !new.contains_key(path);
    let mut pairs = Vec::new();
    for path in touched.iter().filter(|path| !nothing(*path)) {
        let (was, is) = (old.get(path)?, new.get(path)?);
        let is_changed_here =
            |declared: &Declared| before.autoscaled.contains(&declared.key) || before.leaders.contains(&declared.key);
        let concerns_all = |file: &Resolved| {
            before.follows_content && declares_content(file)
                || file.parsed.declarations.objects.iter().any(is_changed_here)
        };
        if !before.problems.is_empty() || !declares_alike(was, is) || concerns_all(is) {
            return None;
        }
        pairs.push((path, was, is));
    }
    let mut project = Arc::clone(&before.project);
    if !pairs.is_empty() {
        let stages = &mut Arc::make_mut(&mut project).stages;
        for (stage, folder) in stages.iter_mut().zip(&before.folders) {
            for (_, _, is) in pairs.iter().filter(|(path, ..)| is_under(path, folder)) {
                put_into(stage, is);
            }
        }
    }
    Some(Assembled { project, ..before.clone() })
}

/// Whether a file declares what deployment configs may follow the content of.
fn declares_content(file: &Resolved) -> bool {
    let mut objects = file.parsed.declarations.objects.iter();
    objects.any(|declared| matches!(declared.key.kind, Kind::ConfigMap | Kind::Secret))
}

fn declares_alike(was: &Resolved, is: &Resolved) -> bool {
    let (was, is) = (&was.parsed.declarations, &is.parsed.declarations);
    let reaches_out = |object: &Declared| {
        object.key.kind == Kind::ImageStream
            || object.belongs.is_some()
            || !object.follows.is_empty()
            || !object.follows_content.kinds.is_empty()
    };
    if was.objects.iter().chain(&is.objects).any(reaches_out) {
        return false;
    }
    let need_alike =
        |was: &[Need], is: &[Need]| was.len() == is.len() && was.iter().zip(is).all(|(was, is)| was.is_like(is));
    let same = |(was, is): (&Declared, &Declared)| {
        (&was.key, &was.links, &was.entries, &was.stages) == (&is.key, &is.links, &is.entries, &is.stages)
            && need_alike(&was.needs, &is.needs)
    };
    was.tasks.is_empty()
        && is.tasks.is_empty()
        && was.autoscalers.is_empty()
        && is.autoscalers.is_empty()
        && was.objects.len() == is.objects.len()
        && was.objects.iter().zip(&is.objects).all(same)
}

fn put_into(stage: &mut StageContent, file: &Resolved) {
    let pairs = file.parsed.declarations.objects.iter().zip(&file.objects);
    for (_, object) in pairs.filter(|(declared, _)| is_for(&declared.stages, &stage.name)) {
        if let Some(service) = stage.objects.get(&object.key).map(|known| known.service.clone()) {
            stage.objects.insert(with_service(object, service, None));
        }
    }
}
