//! From a document to declared objects, before it is known which stage they are for.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::autoscaler::Autoscaler;
use super::content_trigger::Followed;
use super::findings::{Findings, Moved};
use super::need::Need;
use super::pod_template::references::{self, Reference};
use super::pod_template::{items, text_at};
use super::problem::{NOT_APPLIED, Problem};
use super::program::{self, Place, ProgramUse};
use super::replication_controller::Belongs;
use super::shape::nearest;
use super::stage_context::{Runtime, StageContext, Stages, Terms, is_for};
use super::template::{self, Expanded, Generated};
use super::yaml::Document;
use super::{
    autoscaler, content_trigger, core, deployment, deployment_config, foreign, image_stream, image_trigger, metadata,
    need, replication_controller, slip, task,
};
use crate::model::ids::{ServiceName, StageName};
use crate::model::object::{CONFIG_LABEL, Kind, Location, Object, ObjectKey};
use crate::model::project::TaskDefinition;

mod uses;

pub(crate) use uses::ImageUse;
use uses::{DEPLOYER, image_use, image_uses, program_uses};

/// An object as its file says it: checked, every default applied, images not resolved yet.
#[derive(Debug)]
pub(crate) struct Declared {
    pub(crate) key: ObjectKey,
    pub(crate) location: Location,
    pub(crate) images: Vec<ImageUse>,
    pub(crate) programs: Vec<ProgramUse>,
    pub(crate) links: Links,
    /// The objects without which its pods do not start.
    pub(crate) needs: Vec<Need>,
    /// The keys of a ConfigMap or Secret.
    pub(crate) entries: BTreeSet<String>,
    /// The tags that its image triggers follow, and where it says so.
    pub(crate) follows: Vec<Follows>,
    /// What it follows the content of.
    pub(crate) follows_content: Followed,
    /// The deployment config that deploys it, if it is a replication controller.
    pub(crate) belongs: Option<Belongs>,
    pub(crate) stages: Stages,
}

/// A tag that an image trigger follows.
#[derive(Debug)]
pub(crate) struct Follows {
    /// The stream.
    pub(crate) stream: String,
    /// The tag.
    pub(crate) tag: String,
    pub(crate) location: Location,
}

/// What decides which service an object belongs to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Links {
    /// The label, or a deployment config's own name.
    pub(crate) service: Option<ServiceName>,
    /// The labels of a deployment config's pods.
    pub(crate) pod_labels: Box<[(String, String)]>,
    /// What a deployment config reads.
    pub(crate) references: BTreeSet<ObjectKey>,
    /// What a `Service` selects.
    pub(crate) selector: BTreeMap<String, String>,
}

/// A `Task` as its file says it.
#[derive(Debug)]
pub(crate) struct DeclaredTask {
    pub(crate) name: String,
    pub(crate) definition: TaskDefinition,
    pub(crate) image: Option<ImageUse>,
    pub(crate) program: Option<ProgramUse>,
    /// The objects without which its pod does not start.
    pub(crate) needs: Vec<Need>,
    pub(crate) stages: Stages,
}

impl DeclaredTask {
    /// Whether it is for a stage that has its file.
    pub(crate) fn runs_in(&self, stage: &StageName) -> bool {
        is_for(&self.stages, stage) && self.definition.runs_in(stage)
    }
}

/// A value that is read as an object, and all that is known of it besides.
#[derive(Clone, Debug)]
pub(crate) struct Source<'a> {
    file: &'a str,
    document: &'a Document,
    value: &'a Value,
    /// Where it stands in the document.
    base: String,
    /// What stands under other keys in the document.
    moved: Vec<Moved>,
    /// What is made up in it, if it is part of a template.
    generated: Option<Generated>,
    context: &'a StageContext,
    stages: Stages,
}

impl<'a> Source<'a> {
    /// A whole document, read for a stage, and meant for `stages`.
    pub(crate) fn new(file: &'a str, document: &'a Document, context: &'a StageContext, stages: Stages) -> Self {
        let (base, moved, generated) = (String::new(), Vec::new(), None);
        Self { file, document, value: &document.value, base, moved, generated, context, stages }
    }

    fn findings(&self) -> Findings<'a> {
        let mut findings = Findings::new(self.file, self.document, &self.base);
        self.moved.iter().for_each(|moved| findings.moved(&moved.from, &moved.to));
        findings
    }

    /// An object in a list.
    fn item(&self, pointer: &str, value: &'a Value) -> Self {
        let inside = |moved: &Moved| {
            let inside = |whole: &str| whole.strip_prefix(pointer).map(str::to_owned);
            Some(Moved { from: inside(&moved.from)?, to: inside(&moved.to)? })
        };
        let moved = self.moved.iter().filter_map(inside).collect();
        Self { value, base: format!("{}{pointer}", self.base), moved, ..self.clone() }
    }

    /// An object of a template.
    fn object<'b>(&'b self, expanded: &'b Expanded, generated: &Generated) -> Source<'b> {
        Source {
            value: &expanded.value,
            base: format!("{}{}", self.base, expanded.pointer),
            moved: expanded.moved.clone(),
            generated: Some(generated.clone()),
            ..self.clone()
        }
    }

    /// A problem as it may be told.
    fn told(&self, problem: Problem) -> Problem {
        match &self.generated {
            Some(generated) => Problem { message: generated.hide(&problem.message), ..problem },
            None => problem,
        }
    }
}

/// What a file declares for stages.
#[derive(Debug, Default)]
pub(crate) struct Declarations {
    pub(crate) objects: Vec<Declared>,
    /// What is in each of them, with images as they are written.
    pub(crate) contents: Vec<Value>,
    pub(crate) tasks: Vec<DeclaredTask>,
    pub(crate) autoscalers: Vec<Autoscaler>,
    pub(crate) problems: Vec<Problem>,
}

/// `apiVersion` and `kind`; without both a document is not ours.
pub(crate) fn type_of(value: &Value) -> Option<(&str, &str)> {
    Some((value.get("apiVersion")?.as_str()?, value.get("kind")?.as_str()?))
}

impl Declarations {
    /// Whether there is nothing to keep.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { objects, tasks, autoscalers, problems, contents: _ } = self;
        objects.is_empty() && tasks.is_empty() && autoscalers.is_empty() && problems.is_empty()
    }

    /// Adds what another document declares.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.objects.append(&mut other.objects);
        self.contents.append(&mut other.contents);
        self.tasks.append(&mut other.tasks);
        self.autoscalers.append(&mut other.autoscalers);
        self.problems.append(&mut other.problems);
    }

    /// Takes out the warnings of blocks of parameters that are another strategy's.
    pub(crate) fn take_leftover_blocks(&mut self) -> Vec<Problem> {
        self.problems.extract_if(.., |problem| deployment_config::is_leftover_block(problem)).collect()
    }

    /// Adds what a value declares.
    pub(crate) fn add(&mut self, source: &Source<'_>) {
        let value = source.value;
        let mut findings = source.findings();
        if source.base.matches('/').count() > DEEPEST {
            findings.error("", "limit", "lists are nested too deeply");
        } else {
            match type_of(value) {
                Some((version, kind)) if is_list(version, kind, value) => {
                    slip::in_list(value, &mut findings);
                    for (index, item) in items(value, "/items") {
                        self.add(&source.item(&format!("/items/{index}"), item));
                    }
                }
                Some((version, "Template"))
                    if template::API_VERSIONS.contains(&version) && source.generated.is_none() =>
                {
                    let expansion = template::expand(value, source.file, source.context, &mut findings);
                    for expanded in &expansion.objects {
                        self.add(&source.object(expanded, &expansion.generated));
                    }
                }
                Some((version, kind)) => self.add_object(version, kind, source, &mut findings),
                None => slip::in_keys(value, &mut findings),
            }
        }
        self.problems.extend(findings.problems.into_iter().map(|problem| source.told(problem)));
    }

    fn add_object(&mut self, api_version: &str, kind: &str, source: &Source<'_>, findings: &mut Findings<'_>) {
        let (terms, mut content) = (source.context.terms, source.value.clone());
        if (api_version, kind) == ("launchway.dev/v1", "Task") {
            return self.add_task(&mut content, source, findings);
        }
        if autoscaler::is_one(api_version, kind) {
            self.autoscalers.extend(autoscaler::read(&content, &source.stages, findings));
        }
        let Some(kind) = normalised(api_version, kind, &mut content, terms, findings) else { return };
        let images = image_uses(&content, &kind, terms.runtime, findings);
        // What a tag leads to runs with the command of whoever follows it.
        let of_config = if kind == Kind::DeploymentConfig { &images[..] } else { &[] };
        let programs = program_uses(&content, of_config, findings);
        let follows_content = match kind {
            Kind::DeploymentConfig => {
                super::code::check(&content, findings);
                content_trigger::followed(&content, findings)
            }
            _ => Followed::default(),
        };
        let name = text_at(&content, "/metadata/name").to_owned();
        if !findings.has_errors() {
            let references = references(&content, &kind);
            let needs = need::needs(&references, findings);
            let entries = need::entries(&content, &kind);
            let links = links(&content, &kind, &name, references);
            let follows = follows(&content, &kind, findings);
            let belongs =
                (kind == Kind::DeploymentConfig).then(|| replication_controller::belongs(&content, findings)).flatten();
            let (location, stages) = (findings.location(""), source.stages.clone());
            if let Some(generated) = &source.generated {
                generated.mark(&mut content);
            }
            let key = ObjectKey { kind, name };
            self.objects.push(Declared {
                key,
                location,
                images,
                programs,
                links,
                needs,
                entries,
                follows,
                follows_content,
                belongs,
                stages,
            });
            self.contents.push(content);
        }
    }

    fn add_task(&mut self, content: &mut Value, source: &Source<'_>, findings: &mut Findings<'_>) {
        let Some(definition) = task::normalise(content, findings) else { return };
        let image = image_use(&definition.image, "/spec/image", source.context.terms.runtime, findings);
        let spec = content.get("spec").unwrap_or(&Value::Null);
        let program = image.as_ref().and_then(|image| {
            let place = Place { folder: &image.folder, holder: "/spec", container: &Value::Null };
            program::of_command(spec.get("command").unwrap_or(&Value::Null), place, findings)
        });
        let name = text_at(content, "/metadata/name").to_owned();
        if !findings.has_errors() {
            let needs = need::needs(&references::of_variables(content, "/spec"), findings);
            let stages = source.stages.clone();
            self.tasks.push(DeclaredTask { name, definition, image, program, needs, stages });
        }
    }
}

/// What an object is, once its content is checked and has every default; nothing, if it is none of a stage.
fn normalised(
    api_version: &str,
    kind: &str,
    content: &mut Value,
    terms: Terms,
    findings: &mut Findings<'_>,
) -> Option<Kind> {
    let runtime = terms.runtime;
    Some(match (api_version, kind) {
        ("v1" | "apps.openshift.io/v1", "DeploymentConfig") => {
            deployment_config::normalise(content, terms, findings);
            Kind::DeploymentConfig
        }
        ("apps/v1", "Deployment") => {
            deployment::normalise(content, terms, findings);
            Kind::DeploymentConfig
        }
        ("v1", "ReplicationController") if replication_controller::names_its_own(content) => {
            replication_controller::normalise(content, terms, findings);
            Kind::DeploymentConfig
        }
        ("v1", "Service") => {
            core::normalise_service(content, runtime, findings);
            Kind::Service
        }
        ("v1", "Endpoints") => {
            core::normalise_endpoints(content, findings);
            Kind::Endpoints
        }
        ("v1", "ConfigMap") => {
            core::normalise_config_map(content, findings);
            Kind::ConfigMap
        }
        ("v1", "Secret") => {
            core::normalise_secret(content, findings);
            Kind::Secret
        }
        ("v1", "PersistentVolumeClaim") => {
            core::normalise_claim(content, runtime, findings);
            Kind::PersistentVolumeClaim
        }
        ("v1" | "image.openshift.io/v1", "ImageStream") => {
            image_stream::normalise(content, runtime, findings);
            Kind::ImageStream
        }
        _ if without_room(api_version, kind, content, runtime, findings) => return None,
        _ => {
            foreign::normalise(content, findings);
            Kind::Other(format!("{api_version}/{kind}"))
        }
    })
}

/// More slashes in the place of an object are lists in lists.
const DEEPEST: usize = 10;

/// `List`, and the lists of one kind that older programs write.
fn is_list(version: &str, kind: &str, value: &Value) -> bool {
    let has_objects = || items(value, "/items").any(|(_, item)| type_of(item).is_some());
    (version, kind) == ("v1", "List") || kind.ends_with("List") && has_objects()
}

/// Says of a kind that is no object of a stage on a runtime why not; whether it is none.
fn without_room(api_version: &str, kind: &str, value: &Value, runtime: Runtime, findings: &mut Findings<'_>) -> bool {
    const OWN: [&str; 3] = ["Project", "Task", "Hook"];
    match (api_version, kind) {
        ("launchway.dev/v1", "Project") => {
            findings.error("", "misplaced", "a Project must be in launchway.yaml at the repository's root");
        }
        ("launchway.dev/v1", "Hook") => {
            findings.error("/kind", "not-supported", "node hooks are not supported yet");
        }
        (version, _) if version.starts_with("launchway.dev/") => {
            let problem = findings.error("/kind", "unknown-kind", format!("there is no `{kind}` in `{version}`"));
            problem.hint = match nearest(kind, OWN.into_iter()) {
                Some(known) => Some(format!("did you mean `{known}` in `launchway.dev/v1`?")),
                None => Some("launchway.dev/v1 has Project and Task".to_owned()),
            };
        }
        (version, "Shipyard") if version.starts_with("spec.keptn.sh/") => {
            findings.warning("", "ignored", "this shipyard is not the project's, and is ignored").hint =
                Some("the project's is `shipyard.yaml` at the root, or `spec.shipyard` of launchway.yaml".to_owned());
        }
        (version, "DeploymentConfig") => {
            let message = format!("`{version}` is no version of DeploymentConfig");
            findings.error("/apiVersion", "unsupported-value", message).hint =
                Some("write `apps.openshift.io/v1`".to_owned());
        }
        _ if slip::in_words(api_version, kind, findings) => {}
        _ if runtime == Runtime::Kubernetes => return false,
        _ => {
            let message = format!("{kind} ({api_version}) is not applied on the local runtime");
            let problem = findings.warning("/kind", NOT_APPLIED, message);
            problem.may_stand_for = slip::may_stand_for(value);
            problem.hint = autoscaler::is_one(api_version, kind).then(|| autoscaler::BY_HAND.to_owned());
        }
    }
    true
}

fn follows(content: &Value, kind: &Kind, findings: &Findings<'_>) -> Vec<Follows> {
    if *kind != Kind::DeploymentConfig {
        return Vec::new();
    }
    let followed = image_trigger::followed(content).into_iter();
    let at = |index: usize| findings.location(&format!("/spec/triggers/{index}"));
    followed.map(|it| Follows { location: at(it.index), stream: it.stream, tag: it.tag }).collect()
}

/// The places where a deployment config names objects that its pods, hooks or deployer read.
fn references(content: &Value, kind: &Kind) -> Vec<Reference> {
    if *kind != Kind::DeploymentConfig {
        return Vec::new();
    }
    let mut found = references::of_template(content, "/spec/template");
    let spec = content.get("spec").unwrap_or(&Value::Null);
    for (pointer, _) in deployment_config::hooks(spec) {
        found.extend(references::of_variables(content, &format!("/spec{pointer}")));
        found.extend(references::of_variables(content, &format!("/spec{pointer}/execNewPod")));
    }
    found.extend(references::of_environment(content, &format!("{DEPLOYER}/environment")));
    found
}

/// The ConfigMaps, Secrets and claims that the pods of a deployment config read.
pub(crate) fn read_by_pods(config: &Object) -> BTreeSet<ObjectKey> {
    let found = references::of_template(&config.content.value(), "/spec/template");
    found.into_iter().map(|reference| reference.key).collect()
}

/// The same with what its hooks and its deployer read.
pub(crate) fn referenced(config: &Object) -> BTreeSet<ObjectKey> {
    references(&config.content.value(), &config.key.kind).into_iter().map(|reference| reference.key).collect()
}

/// What `Service` objects may select pods by, whatever their version is.
fn pod_labels(content: &Value, name: &str) -> Box<[(String, String)]> {
    let mut labels = text_map(content.pointer("/spec/template/metadata/labels"));
    let is_of_another_kind = content.get("kind").is_some(); // see `Object::declared_kind`
    if !is_of_another_kind {
        labels.insert(CONFIG_LABEL.to_owned(), name.to_owned());
    }
    labels.into_iter().collect()
}

fn links(content: &Value, kind: &Kind, name: &str, references: Vec<Reference>) -> Links {
    let label = metadata::label(content, metadata::SERVICE_LABEL).map(ServiceName::new);
    match kind {
        Kind::DeploymentConfig => {
            let streams = image_trigger::followed(content).into_iter().map(|followed| followed.stream);
            let streams = streams.map(|name| ObjectKey { kind: Kind::ImageStream, name });
            Links {
                service: label.or_else(|| Some(ServiceName::new(name))),
                pod_labels: pod_labels(content, name),
                references: references.into_iter().map(|reference| reference.key).chain(streams).collect(),
                ..Links::default()
            }
        }
        Kind::Service => {
            Links { service: label, selector: text_map(content.pointer("/spec/selector")), ..Links::default() }
        }
        _ => Links { service: label, ..Links::default() },
    }
}

fn text_map(value: Option<&Value>) -> BTreeMap<String, String> {
    let entries = value.and_then(Value::as_object).into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}
