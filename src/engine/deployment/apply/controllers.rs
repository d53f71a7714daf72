//! The replication controllers of a deployment config get their next versions with its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::start::{begin, deployment_run};
use super::{config_or_new, next_version, typed};
use crate::engine::records::{Lookup, Records, Undecided};
use crate::engine::transition::Transition;
use crate::manifest::digest;
use crate::manifest::generated::marks;
use crate::manifest::replication_controller::inside;
use crate::model::deployment_config::{CONTROLLER_OF, DeploymentConfigSpec};
use crate::model::ids::{ConfigKey, RunId};
use crate::model::object::{Kind, Location, Object, ObjectKey};
use crate::model::plan::{Change, Decision};
use crate::model::run::{Controlled, Controllers, DeploymentRun, Leader, Run, SequenceRun};
use crate::model::state::{Attempt, ConfigState, Version, spec_of};
use crate::plan::{controllers as plan, generated};

/// Starts the deployments of those whose templates differ from what serves, and says which belong to the version of the leading
/// deployment. Those in `go` end once it is complete.
pub(super) fn start(
    transition: &mut Transition<'_>,
    (parent, change): (&SequenceRun, &Change),
    leader: &DeploymentRun,
    go: Vec<String>,
) -> Result<Controllers, Undecided> {
    let mut all = Vec::new();
    for (name, template) in &leader.spec.controllers {
        let config = leader.controller(name);
        if let Some(object) = declared(transition.records, leader, &config, template)? {
            all.push(start_one(transition, (parent, change), leader, &config, &object)?);
        }
    }
    Ok(Controllers { all, go, waited_at: None })
}

/// The replication controllers that a deployment config has had, and that its next version does not have.
pub(super) fn superfluous(
    records: &Records,
    leader: &ConfigKey,
    spec: &DeploymentConfigSpec,
) -> Result<Vec<String>, Undecided> {
    let mut found = Vec::new();
    for name in known(records.configs.get(leader)?).into_iter().filter(|name| !spec.controllers.contains_key(name)) {
        let state = records.configs.get(&ConfigKey { name: name.clone(), ..leader.clone() })?;
        if state.is_some_and(|state| !state.removed && belongs(state, leader)) {
            found.push(name);
        }
    }
    Ok(found)
}

/// Whether each replication controller of a deployment config serves its template.
pub(super) fn all_serve(records: &Records, leader: &ConfigKey, spec: &DeploymentConfigSpec) -> Result<bool, Undecided> {
    Ok(lacking(records, leader, &spec.controllers)?.is_none())
}

/// A change of a deployment config, which is deployed also where nothing of it differs but a replication controller does not
/// serve its template.
pub(super) fn bring(records: &Records, leader: &ConfigKey, change: Change) -> Result<Change, Undecided> {
    let Some(object) = change.object.as_ref().filter(|_| plan::is_open(&change)) else { return Ok(change) };
    let spec = spec_of(object).unwrap_or_default();
    let is_there = records.configs.get(leader)?.is_some_and(|state| !state.removed);
    Ok(match lacking(records, leader, &spec.controllers)?.filter(|_| is_there) {
        Some((name, template)) => plan::bring(change, name, Some(template.clone())),
        None => change,
    })
}

fn lacking<'a>(
    records: &Records,
    leader: &ConfigKey,
    controllers: &'a BTreeMap<String, Value>,
) -> Result<Option<(&'a str, &'a Value)>, Undecided> {
    for (name, template) in controllers {
        let state = records.configs.get(&ConfigKey { name: name.clone(), ..leader.clone() })?;
        if plan::lacks(Some(template), state) {
            return Ok(Some((name, template)));
        }
    }
    Ok(None)
}

/// Whether a replication controller that is declared no longer stays for now: what serves was deployed with it, so that it goes
/// with the deployment that takes the place of that.
pub(super) fn stays(records: &Records, run: &SequenceRun, key: &ConfigKey) -> Result<bool, Undecided> {
    let Some(leader) = records.configs.get(key)?.and_then(|state| plan::leader_of(&state.object)) else {
        return Ok(false);
    };
    let goes = run.changes().iter().any(|change| change.key == leader && change.decision == Decision::Delete);
    let leader = records.configs.get(&run.service.config(&leader.name))?;
    Ok(!goes && leader.is_some_and(|leader| plan::serves_with(leader, &key.name)))
}

/// The replication controllers that a deployment config serves with, attempts, or declares.
fn known(state: Option<&ConfigState>) -> BTreeSet<String> {
    let Some(state) = state else { return BTreeSet::new() };
    let attempted = state.attempted.as_ref().map(|attempt| &attempt.version.object);
    let serving = state.serving.as_ref().map(|serving| &serving.object);
    let objects = [Some(&state.object), attempted, serving].into_iter().flatten();
    objects.flat_map(|object| object.controllers()).collect()
}

/// Whether something is still deployed by the deployment config that is deployed now.
fn belongs(state: &ConfigState, leader: &ConfigKey) -> bool {
    state.spec().is_ok_and(|spec| spec.controller_of.as_deref() == Some(&leader.name))
}

/// A replication controller as it is to be: as it is declared, or was last, with the template of the leading deployment. Nothing, if
/// something else has its name by now.
fn declared(
    records: &Records,
    leader: &DeploymentRun,
    config: &ConfigKey,
    template: &Value,
) -> Result<Option<Arc<Object>>, Undecided> {
    let base = match records.configs.get(config)?.filter(|state| !state.removed) {
        Some(state) if !belongs(state, &leader.config) => return Ok(None),
        Some(state) => Some(Arc::clone(&state.object)),
        None => last(records, leader, config)?,
    };
    let mut base = base.unwrap_or_else(|| Arc::new(bare(leader, config)));
    if base.service != leader.service {
        Arc::make_mut(&mut base).service = leader.service.clone();
    }
    if base.template().as_ref() == Some(template) {
        return Ok(Some(base));
    }
    let mut content = base.content.value();
    if let Some(spec) = content.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert("template".to_owned(), template.clone());
    }
    generated::mark_as_in(&mut content, &marked(leader, config));
    let mut object = Object::clone(&base);
    digest::exchange(&mut object, content);
    Ok(Some(Arc::new(object)))
}

/// What it was in its last version, if that is remembered.
fn last(records: &Records, leader: &DeploymentRun, config: &ConfigKey) -> Result<Option<Arc<Object>>, Undecided> {
    let newest = records.number(Lookup::NewestVersion(config.clone()))?;
    let Some(Run::Deployment(run)) = records.runs.get(&config.deployment(newest))? else { return Ok(None) };
    let is_its = run.spec.controller_of.as_deref() == Some(&leader.config.name);
    Ok(is_its.then(|| Arc::clone(&run.object)))
}

/// One of which nothing is remembered but its template.
fn bare(leader: &DeploymentRun, config: &ConfigKey) -> Object {
    let content = json!({
        "kind": Kind::ReplicationController.name(),
        "metadata": {"name": config.name},
        "spec": {CONTROLLER_OF: leader.config.name, "replicas": 1, "triggers": []},
    });
    Object {
        key: ObjectKey { kind: Kind::DeploymentConfig, name: config.name.clone() },
        service: leader.service.clone(),
        location: Location::default(),
        digest: digest::of(&content),
        content: content.into(),
        autoscaled_at: None,
    }
}

/// Where the template of a replication controller has generated values, as content that says so.
fn marked(leader: &DeploymentRun, config: &ConfigKey) -> Value {
    let content = leader.object.content.value();
    let inside = marks(&content).lines().filter_map(inside);
    let own: Vec<String> = inside.filter(|(name, _)| *name == config.name).map(|(_, pointer)| pointer).collect();
    generated::marking(&own.join("\n"))
}

fn start_one(
    transition: &mut Transition<'_>,
    (parent, change): (&SequenceRun, &Change),
    leader: &DeploymentRun,
    config: &ConfigKey,
    object: &Arc<Object>,
) -> Result<Controlled, Undecided> {
    let (next, now) = (next_version(transition.records, config)?, transition.now);
    let (spec, template) = (typed(object)?, object.template());
    let state = config_or_new(transition.records, parent, object)?;
    let failed = state.attempted.take().filter(|attempt| attempt.outcome.is_some() && change.retry.is_some());
    let again = failed.filter(|attempt| attempt.version.object.template() == template);
    state.declare(object, &spec, &parent.commit, now);
    state.planned_at = parent.planned_at.or(state.planned_at);
    let name = config.name.clone();
    if let Some(serving) = state.serving.as_ref().filter(|serving| serving.object.template() == template) {
        return Ok(Controlled { name, version: serving.number, is_new: false, reached: None, has_left: false });
    }
    let number = again.map_or(next, |attempt| attempt.version.number);
    let previous = state.serving.as_ref().map(|serving| serving.number);
    let version = Version { number, commit: parent.commit.clone(), object: Arc::clone(object) };
    state.latest_version = state.latest_version.max(number);
    state.attempted = Some(Attempt { version, run: parent.id.clone(), outcome: None });
    let replicas = state.replicas(&spec);
    let fresh = deployment_run(parent, change, (config.clone(), number), (Arc::clone(object), spec), previous, now);
    let led_by = Some(led_by(&leader.id, leader));
    begin(transition, &parent.id, DeploymentRun { replicas, led_by, on_failure: leader.on_failure, ..fresh })?;
    Ok(Controlled { name, version: number, is_new: true, reached: None, has_left: false })
}

fn led_by(run: &RunId, leader: &DeploymentRun) -> Leader {
    Leader { run: run.clone(), timeout_seconds: leader.spec.strategy.timeout().as_secs(), told: None }
}
