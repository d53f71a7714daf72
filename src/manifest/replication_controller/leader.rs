//! A deployment config that deploys replication controllers beside its own pods.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Belongs, LABEL_POINTER, place};
use crate::manifest::digest;
use crate::manifest::generated;
use crate::manifest::problem::{Problem, field_path};
use crate::manifest::shape::nearest;
use crate::model::deployment_config::{CONTROLLERS, DeploymentConfigSpec, StrategyKind};
use crate::model::ids::StageName;
use crate::model::object::{Kind, Object, ObjectKey};
use crate::model::project::StageObjects;
use crate::model::selector::selects;
use crate::model::state::spec_of;

/// A deployment config with the replication controllers that belong to it.
///
/// # Errors
/// If it is not there, does not deploy others, or what belongs to it gets in its way.
pub(crate) fn led(
    stage: &StageName,
    objects: &StageObjects,
    leader: &ObjectKey,
    controllers: &[(&Belongs, Arc<Object>)],
) -> Result<Object, Vec<Problem>> {
    let of_label = |belongs: &Belongs, code: &str, message: &str, hint: &str| {
        at(Problem::error(&belongs.said_at, code, message).hint(hint), LABEL_POINTER)
    };
    let to_each = |code: &str, message: &str, hint: &str| {
        Err(controllers.iter().map(|(belongs, _)| of_label(belongs, code, message, hint)).collect())
    };
    let name = &leader.name;
    let Some(found) = objects.get(leader) else {
        let hint = match nearest(name, leading(objects)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "declare it with the strategy Custom, or remove the label".to_owned(),
        };
        let message = format!("stage `{stage}` declares no DeploymentConfig/{name}, which would deploy it");
        return to_each("not-found", &message, &hint);
    };
    let spec = spec_of(found).unwrap_or_default();
    match found.declared_kind() {
        Kind::DeploymentConfig if spec.strategy.kind == StrategyKind::Custom => {}
        Kind::DeploymentConfig => {
            let kind = spec.strategy.kind.as_str();
            let message = format!(
                "DeploymentConfig/{name} ({}) is deployed by {kind}, which knows no other controllers",
                found.location
            );
            let hint = "write `strategy.type: Custom` there, with a deployer that scales them, or remove the label";
            return to_each("invalid", &message, hint);
        }
        kind => {
            let message = format!("{kind}/{name} ({}) deploys no other controllers", found.location);
            return to_each("invalid", &message, "name a DeploymentConfig with the strategy Custom");
        }
    }
    let problems = misplaced(found, &spec, controllers);
    let templates = controllers.iter().map(|(_, controller)| &**controller);
    if problems.is_empty() { Ok(with_controllers(found, templates)) } else { Err(problems) }
}

/// The deployment configs that might deploy replication controllers.
fn leading(objects: &StageObjects) -> impl Iterator<Item = &str> {
    let configs = objects.iter().filter(|object| object.key.kind == Kind::DeploymentConfig);
    configs.filter(|object| object.declared_kind() == Kind::DeploymentConfig).map(|object| object.key.name.as_str())
}

/// What is delivered elsewhere, or would take the pods of another one.
fn misplaced(leader: &Object, own: &DeploymentConfigSpec, controllers: &[(&Belongs, Arc<Object>)]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut known = vec![(title(leader), own.clone())];
    for (belongs, controller) in controllers {
        if let Some((service, place)) =
            belongs.service.as_ref().filter(|(service, _)| service != leader.service.as_str())
        {
            let message = format!("`{service}` is not the service of {}, with which it is delivered", title(leader));
            let problem = Problem::error(place, "invalid", message);
            let hint = format!("write `{}`, or remove the label", leader.service);
            problems.push(at(problem.hint(hint), "/metadata/labels/launchway.dev~1service"));
        }
        let spec = spec_of(controller).unwrap_or_default();
        let labels = &spec.template.metadata.labels;
        let is_shared = |other: &DeploymentConfigSpec| {
            selects(&spec.selector, &other.template.metadata.labels) || selects(&other.selector, labels)
        };
        if let Some((other, _)) = known.iter().find(|(_, other)| is_shared(other)) {
            let message = format!("the selectors do not tell its pods from those of {other}");
            let problem = Problem::error(&belongs.selector_at, "invalid", message);
            let hint = format!(
                "give each, also {}, a label of its own, such as `region`, in its selector and its template",
                title(leader)
            );
            problems.push(at(problem.hint(hint), "/spec/selector"));
        }
        known.push((title(controller), spec));
    }
    problems
}

fn at(problem: Problem, pointer: &str) -> Problem {
    Problem { pointer: pointer.to_owned(), field: field_path(pointer), ..problem }
}

fn title(object: &Object) -> String {
    format!("{}/{}", object.declared_kind(), object.key.name)
}

/// A deployment config with the templates of replication controllers: what is generated in these stays hidden.
pub(crate) fn with_controllers<'a>(leader: &Object, controllers: impl Iterator<Item = &'a Object>) -> Object {
    let mut content = leader.content.value();
    let (mut templates, mut marks) = (Map::new(), Vec::new());
    for controller in controllers {
        let name = &controller.key.name;
        let before = controller.content.value();
        let place = place(name);
        let of_template = generated::marks(&before).lines().filter_map(|it| it.strip_prefix("/spec/template"));
        marks.extend(of_template.map(|rest| format!("{place}{rest}")));
        templates.insert(name.clone(), before.pointer("/spec/template").cloned().unwrap_or_default());
    }
    if let Some(spec) = content.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert(CONTROLLERS.to_owned(), Value::Object(templates));
    }
    generated::mark(&mut content, &marks.join("\n"));
    let mut object = leader.clone();
    digest::exchange(&mut object, content);
    object
}
