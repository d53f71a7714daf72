//! What the files of a story's repository declare, changed line by line.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::error::{Failure, Result};
use crate::manifest::digest;
use crate::manifest::metadata::SERVICE_LABEL;
use crate::manifest::replication_controller::with_controllers;
use crate::model::ids::{ProjectName, ServiceName, StageName};
use crate::model::object::{Kind, Location, Object, ObjectKey};
use crate::model::project::{OnFailure, Project, StageObjects, StatusDetail, TaskDefinition};
use crate::model::shipyard::{
    Condition, Operator, QueuePolicy, Requirement, Sequence, SequenceTrigger, Shipyard, Stage, Task,
};
use crate::model::state::spec_of;
use crate::plan::build::default_namespace;
use crate::testing::script::{duration, number};
use crate::testing::world;

/// `key=value` words.
type Settings = BTreeMap<String, String>;

/// What the files declare.
#[derive(Clone, Debug)]
pub(crate) struct Declared {
    pub(crate) name: ProjectName,
    statuses: StatusDetail,
    on_failure: OnFailure,
    shipyard: Shipyard,
    tasks: BTreeMap<String, TaskDefinition>,
    objects: BTreeMap<StageName, BTreeMap<ObjectKey, Settings>>,
}

impl Default for Declared {
    fn default() -> Self {
        Self {
            name: ProjectName::new("shop"),
            statuses: StatusDetail::Hooks,
            on_failure: OnFailure::default(),
            shipyard: Shipyard::default(),
            tasks: BTreeMap::new(),
            objects: BTreeMap::new(),
        }
    }
}

impl Declared {
    /// Whether a line edits files.
    pub(crate) fn knows(words: &[&str]) -> bool {
        const VERBS: [&str; 13] = [
            "project",
            "on-failure",
            "statuses",
            "shipyard",
            "sequence",
            "drop",
            "triggered",
            "limit",
            "queue",
            "task",
            "declare",
            "object",
            "remove",
        ];
        words.first().is_some_and(|verb| VERBS.contains(verb))
    }

    /// Edits the files.
    pub(crate) fn change(&mut self, words: &[&str]) -> Result<()> {
        match words {
            ["project", name] => self.name = ProjectName::new(*name),
            ["on-failure", "pull-request"] => self.on_failure = OnFailure::PullRequest,
            ["on-failure", "both"] => self.on_failure = OnFailure::AutomaticAndPullRequest,
            ["statuses", "auto"] => self.statuses = StatusDetail::Auto,
            ["shipyard", stages @ ..] => {
                self.shipyard.stages = stages.iter().map(|word| stage(word)).collect::<Result<_>>()?;
            }
            ["sequence", stage, sequence] => self.sequence(stage, sequence)?,
            ["drop", sequence] => {
                let (stage, sequence) = sequence.split_once('.').unwrap_or((sequence, "delivery"));
                self.stage(stage)?.sequences.retain(|declared| declared.name != sequence);
            }
            ["triggered", stage, "on", event, selector @ ..] => self.trigger(stage, event, selector)?,
            ["queue", sequence, policy] => self.sequence_named(sequence)?.queue = QueuePolicy::named(policy),
            ["limit", sequence, task, settings @ ..] => self.limit(sequence, task, &read(settings)?)?,
            ["task", name, settings @ ..] => {
                self.tasks.insert((*name).to_owned(), task(&read(settings)?)?);
            }
            ["declare", name, settings @ ..] => self.declare(Kind::DeploymentConfig, name, read(settings)?),
            ["object", kind, name, settings @ ..] => self.declare(kind_of(kind), name, read(settings)?),
            ["remove", name, rest @ ..] => {
                let only = read(rest)?.remove("stage");
                for (_, objects) in self.objects.iter_mut().filter(|(stage, _)| fits(only.as_ref(), stage)) {
                    objects.retain(|key, _| key.name != *name);
                }
            }
            _ => return Err(Failure::stalled("this is no declaration")),
        }
        Ok(())
    }

    /// One more sequence of a stage, as `verify:check,test`.
    fn sequence(&mut self, name: &str, sequence: &str) -> Result<()> {
        let mut sequence = stage(sequence)?;
        let delivers = sequence.sequences.remove(0);
        let sequence = Sequence { name: sequence.name.to_string(), ..delivers };
        self.stage(name)?.sequences.push(sequence);
        Ok(())
    }

    fn stage(&mut self, name: &str) -> Result<&mut Stage> {
        let found = self.shipyard.stages.iter_mut().find(|declared| declared.name.as_str() == name);
        found.ok_or_else(|| Failure::stalled(format!("there is no stage {name}")))
    }

    /// How long the tasks of a name in a sequence may take, how often they are tried again, who has to finish them, and after which
    /// ends of others they run.
    fn limit(&mut self, what: &str, name: &str, settings: &Settings) -> Result<()> {
        let time = |key: &str| settings.get(key).map(|value| milliseconds(value)).transpose();
        let (timeout_ms, start_timeout_ms, heartbeat_ms) = (time("timeout")?, time("start")?, time("heartbeat")?);
        let retries = settings.get("retries").map_or(Ok(0), |value| number(value))?;
        let executors = settings.get("executors").map(|names| names.split(',').map(str::to_owned).collect());
        let executors: Vec<String> = executors.unwrap_or_default();
        let condition = settings.get("condition").and_then(|word| Condition::named(word)).unwrap_or_default();
        for task in self.sequence_named(what)?.tasks.iter_mut().filter(|task| task.name == name) {
            let executors = executors.clone();
            *task = Task { timeout_ms, start_timeout_ms, heartbeat_ms, retries, executors, condition, ..task.clone() };
        }
        Ok(())
    }

    fn sequence_named(&mut self, what: &str) -> Result<&mut Sequence> {
        let (stage, sequence) = what.split_once('.').unwrap_or((what, "delivery"));
        let found = self.stage(stage)?.sequences.iter_mut().find(|declared| declared.name == sequence);
        found.ok_or_else(|| Failure::stalled(format!("there is no sequence {sequence}")))
    }

    fn trigger(&mut self, what: &str, event: &str, selector: &[&str]) -> Result<()> {
        let sequence = self.sequence_named(what)?;
        let selector = selector.iter().map(|word| requirement(word)).collect::<Result<_>>()?;
        sequence.triggered_on.push(SequenceTrigger { event: event.to_owned(), selector });
        Ok(())
    }

    fn declare(&mut self, kind: Kind, name: &str, mut settings: Settings) {
        let only = settings.remove("stage");
        let key = ObjectKey { kind, name: name.to_owned() };
        for stage in self.shipyard.stages.iter().filter(|stage| fits(only.as_ref(), &stage.name)) {
            let object = self.objects.entry(stage.name.clone()).or_default().entry(key.clone()).or_default();
            object.extend(settings.clone());
            object.retain(|_, value| !value.is_empty());
        }
    }

    /// The project that a push of these files reads as.
    pub(crate) fn project(&self) -> Result<Project> {
        let mut project = world::project(self.shipyard.clone(), &[]);
        for stage in &mut project.stages {
            stage.destination.namespace = default_namespace(&self.name, &stage.name);
            stage.tasks = self.tasks.iter().map(|(name, task)| (name.clone(), vec![task.clone()])).collect();
            let nothing = BTreeMap::new();
            let declared = self.objects.get(&stage.name).unwrap_or(&nothing);
            for (key, settings) in declared.iter().filter(|(_, settings)| is_led_well(settings, declared)) {
                stage.objects.insert(Arc::new(object(key, settings)?));
            }
            bring_controllers(&mut stage.objects);
        }
        project.name = self.name.clone();
        project.statuses = self.statuses;
        project.on_failure = self.on_failure;
        Ok(project)
    }
}

/// Whether no file would be refused for what deploys it: only the strategy Custom knows replication controllers.
fn is_led_well(settings: &Settings, declared: &BTreeMap<ObjectKey, Settings>) -> bool {
    let Some(name) = settings.get("leader") else { return true };
    let leader = declared.get(&ObjectKey { kind: Kind::DeploymentConfig, name: name.clone() });
    leader.is_some_and(|leader| {
        leader.get("strategy").is_some_and(|strategy| strategy == "Custom") && !leader.contains_key("kind")
    })
}

/// Deployment configs get the templates of the replication controllers that belong to them.
fn bring_controllers(objects: &mut StageObjects) {
    let leader = |object: &Object| spec_of(object).ok().and_then(|spec| spec.controller_of);
    let names: BTreeSet<String> = objects.iter().filter_map(|object| leader(object)).collect();
    for name in names {
        let key = ObjectKey { kind: Kind::DeploymentConfig, name: name.clone() };
        let controllers = objects.iter().filter(|object| leader(object).as_ref() == Some(&name));
        let controllers = controllers.map(|object| &**object);
        let led = objects.get(&key).map(|found| with_controllers(found, controllers));
        led.into_iter().for_each(|led| drop(objects.insert(Arc::new(led))));
    }
}

fn fits(only: Option<&String>, stage: &StageName) -> bool {
    only.is_none_or(|only| only == stage.as_str())
}

fn read(words: &[&str]) -> Result<Settings> {
    let pair = |word: &&str| {
        let (key, value) = word.split_once('=').ok_or_else(|| Failure::stalled(format!("`{word}` is no key=value")))?;
        Ok((key.to_owned(), value.to_owned()))
    };
    words.iter().map(pair).collect()
}

/// `result=fail`, `result=fail|warning` or `status!=aborted`.
fn requirement(word: &str) -> Result<Requirement> {
    let (key, values) = word.split_once('=').ok_or_else(|| Failure::stalled(format!("`{word}` selects by nothing")))?;
    let (key, operator) = key.strip_suffix('!').map_or((key, Operator::In), |key| (key, Operator::NotIn));
    Ok(Requirement { key: key.to_owned(), operator, values: values.split('|').map(str::to_owned).collect() })
}

/// `dev`, or `dev:deployment,test+5m`.
fn stage(word: &str) -> Result<Stage> {
    let (name, tasks) = word.split_once(':').unwrap_or((word, "deployment"));
    let task = |word: &str| {
        let (name, pause) = word.split_once('+').unwrap_or((word, "0s"));
        Ok(Task { triggered_after_ms: milliseconds(pause)?, ..Task::named(name) })
    };
    let tasks = tasks.split(',').map(task).collect::<Result<_>>()?;
    let delivery = Sequence { name: "delivery".into(), tasks, ..Sequence::default() };
    Ok(Stage { name: StageName::new(name), sequences: vec![delivery] })
}

fn milliseconds(word: &str) -> Result<u64> {
    Ok(u64::try_from(duration(word)?.as_millis()).unwrap_or(u64::MAX))
}

fn task(settings: &Settings) -> Result<TaskDefinition> {
    let given = |key: &str| settings.get(key).map(|value| number(value)).transpose();
    Ok(TaskDefinition {
        command: vec!["true".into()],
        image: "host".into(),
        env: Vec::new(),
        timeout_seconds: given("timeout")?,
        retries: settings.get("retries").map_or(Ok(0), |value| number(value))?,
        stages: Vec::new(),
        services: Vec::new(),
        properties: Default::default(),
        location: Location::default(),
    })
}

fn kind_of(word: &str) -> Kind {
    match word {
        "ConfigMap" => Kind::ConfigMap,
        "Secret" => Kind::Secret,
        "Service" => Kind::Service,
        "ImageStream" => Kind::ImageStream,
        other => Kind::Other(format!("v1/{other}")),
    }
}

fn object(key: &ObjectKey, settings: &Settings) -> Result<Object> {
    let mut settings = settings.clone();
    let service = settings.remove("service").unwrap_or_else(|| key.name.clone());
    let mut object = match key.kind {
        Kind::DeploymentConfig => deployment_config(&key.name, &settings)?,
        Kind::Service => {
            let port: u16 = settings.remove("port").map_or(Ok(80), |port| number(&port))?;
            plain(key, "spec", &json!({"selector": settings, "ports": [{"port": port}]}))
        }
        Kind::ImageStream => plain(key, "spec", &json!({"tags": tags(&settings)})),
        _ => plain(key, "data", &json!(settings)),
    };
    if key.kind == Kind::DeploymentConfig && service != key.name {
        let mut content = object.content.value();
        content["metadata"]["labels"][SERVICE_LABEL] = json!(service);
        digest::exchange(&mut object, content);
    }
    object.service = ServiceName::new(service);
    Ok(object)
}

fn plain(key: &ObjectKey, field: &str, value: &Value) -> Object {
    let content = json!({"metadata": {"name": key.name}, field: value});
    let digest = digest::of(&content);
    Object {
        key: key.clone(),
        service: ServiceName::new(""),
        location: Location::default(),
        autoscaled_at: None,
        content: content.into(),
        digest,
    }
}

/// The tags of a stream, each with its image.
fn tags(settings: &Settings) -> Vec<Value> {
    let tag = |(name, image): (&String, &String)| json!({"name": name, "from": {"kind": "DockerImage", "name": format!("git:{image}")}});
    settings.iter().map(tag).collect()
}

/// `a>b,b>c`: containers that each get the image of a tag of the stream `app`, and whose images a post hook gives to other tags.
fn hand_on(words: &str, spec: &mut Value) {
    let steps: Vec<(&str, &str)> = words.split(',').filter_map(|step| step.split_once('>')).collect();
    let tag = |name: &str| json!({"kind": "ImageStreamTag", "name": format!("app:{name}")});
    let trigger = |(from, _): &(&str, &str)| {
        let params = json!({"automatic": true, "containerNames": [from], "from": tag(from), "lastTriggeredImage": ""});
        json!({"type": "ImageChange", "imageChangeParams": params})
    };
    let given = |(from, to): &(&str, &str)| json!({"containerName": from, "to": tag(to)});
    let triggers = steps.iter().map(trigger).chain([json!({"type": "ConfigChange"})]);
    let containers = steps.iter().map(|(from, _)| json!({"name": from, "image": " "}));
    spec["triggers"] = triggers.collect();
    spec["template"] = json!({"spec": {"containers": containers.collect::<Vec<_>>()}});
    let given: Vec<Value> = steps.iter().map(given).collect();
    spec["strategy"]["rollingParams"]["post"] = json!({"failurePolicy": "Abort", "tagImages": given});
}

fn deployment_config(name: &str, settings: &Settings) -> Result<Object> {
    let text = |key: &str| settings.get(key).map(String::as_str);
    let count = |key: &str| text(key).map(number::<u64>).transpose();
    let mut params = Map::new();
    let (kind, block) = match text("strategy") {
        Some("Recreate") => ("Recreate", "recreateParams"),
        Some("BlueGreen") => ("BlueGreen", "blueGreenParams"),
        Some("Canary") => ("Canary", "canaryParams"),
        Some("AB") => ("AB", "abParams"),
        Some("Custom") => ("Custom", "rollingParams"),
        _ => ("Rolling", "rollingParams"),
    };
    if matches!(kind, "Rolling" | "Custom" | "Canary" | "AB") {
        params.insert("maxSurge".into(), json!(count("surge")?.unwrap_or(1)));
        params.insert("maxUnavailable".into(), json!(count("unavailable")?.unwrap_or(0)));
    }
    params.extend(count("timeout")?.map(|seconds| ("timeoutSeconds".to_owned(), json!(seconds))));
    for point in ["pre", "mid", "post"] {
        params.extend(text(point).map(|policy| (point.to_owned(), hook(policy))));
    }
    match kind {
        "Canary" => params.extend([("steps".to_owned(), steps(text("steps").unwrap_or("50")))]),
        "BlueGreen" => {
            params.extend(text("keep").map(|keep| ("keep".to_owned(), json!(keep))));
            params.extend(text("analysis").map(|policy| ("analysis".to_owned(), hook(policy))));
        }
        "AB" => params.extend([("weight".to_owned(), json!(count("weight")?.unwrap_or(20)))]),
        _ => {}
    }
    let mut spec = json!({"strategy": strategy((kind, block), &params, settings)?});
    if let Some(seconds) = count("ready")? {
        spec["minReadySeconds"] = json!(seconds);
    }
    if text("trigger") == Some("none") {
        spec["triggers"] = json!([]);
    }
    for flag in ["paused", "test"].into_iter().filter(|flag| text(flag) == Some("true")) {
        spec[flag] = json!(true);
    }
    if let Some(words) = text("hands") {
        hand_on(words, &mut spec);
    }
    let replicas = count("replicas")?.and_then(|replicas| u32::try_from(replicas).ok()).unwrap_or(1);
    let mut object = world::deployment_config(name, text("image").unwrap_or("a"), replicas, spec);
    say_more(&mut object, settings);
    Ok(object)
}

/// What a deployment config's file says besides its spec, and what others say of it.
fn say_more(object: &mut Object, settings: &Settings) {
    let text = |key: &str| settings.get(key).map(String::as_str);
    let mut content = object.content.value();
    if text("kind") == Some("Deployment") {
        content["kind"] = json!("Deployment");
    }
    if let Some(leader) = text("leader") {
        content["kind"] = json!("ReplicationController");
        content["spec"]["controllerOf"] = json!(leader);
        content["spec"]["triggers"] = json!([]);
    }
    if let Some(map) = text("needs") {
        content["spec"]["template"]["spec"]["containers"][0]["envFrom"] = json!([{"configMapRef": {"name": map}}]);
    }
    if let Some(autoscaler) = text("autoscaler") {
        content["spec"]["autoscaler"] = json!(autoscaler);
        object.autoscaled_at = Some(Location { file: format!("{autoscaler}.yaml"), line: 1, column: 1 });
    }
    digest::exchange(object, content);
}

/// A strategy with what it has beside its block.
fn strategy((kind, block): (&str, &str), params: &Map<String, Value>, settings: &Settings) -> Result<Value> {
    let text = |key: &str| settings.get(key).map(String::as_str);
    let deadline = text("deadline").map(number::<u64>).transpose()?;
    let mut strategy = json!({"type": kind, block: params});
    if kind == "Custom" || text("deployer") == Some("yes") {
        strategy["customParams"] = json!({"image": "host", "command": ["bin/deploy"]});
    }
    if let Some(seconds) = deadline {
        strategy["activeDeadlineSeconds"] = json!(seconds);
    }
    Ok(strategy)
}

/// `Abort`, or `Retry:30` with a timeout in seconds.
fn hook(word: &str) -> Value {
    let (policy, timeout) = word.split_once(':').unwrap_or((word, ""));
    let mut hook = world::hook(policy);
    if let Ok(seconds) = timeout.parse::<u64>() {
        hook["timeoutSeconds"] = json!(seconds);
    }
    hook
}

/// `10+5m?Abort,50+resume`: steps of a canary with their weights, pauses and analyses.
fn steps(words: &str) -> Value {
    let step = |word: &str| {
        let (word, policy) = word.split_once('?').map_or((word, None), |(word, policy)| (word, Some(policy)));
        let (weight, pause) = word.split_once('+').map_or((word, None), |(weight, pause)| (weight, Some(pause)));
        let mut step = json!({"weight": weight.parse::<u64>().unwrap_or(50)});
        match pause {
            Some("resume") => step["pause"] = json!({}),
            Some(length) => step["pause"] = json!(length),
            None => {}
        }
        if let Some(policy) = policy {
            step["analysis"] = hook(policy);
        }
        step
    };
    words.split(',').map(step).collect()
}
