//! A project: what one revision declares, read whole and without an error.

use std::collections::BTreeMap;
use std::sync::Arc;

use rpds::RedBlackTreeMapSync;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::environment::EnvironmentSettings;
use super::ids::{Destination, ProjectName, ServiceName, StageName};
use super::object::{Kind, Location, Object, ObjectKey};
use super::pod::EnvVar;
use super::shipyard::{Sequence, Shipyard, Task};

/// Everything a revision declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// From `launchway.yaml`, else the repository's name.
    pub name: ProjectName,
    /// From its file, else the implicit one.
    pub shipyard: Shipyard,
    /// Per stage, in the shipyard's order: settings and objects.
    pub stages: Vec<StageContent>,
    /// Which statuses are written.
    pub statuses: StatusDetail,
    /// What follows by itself from a deployment that failed.
    pub on_failure: OnFailure,
    /// Which environments pull requests get, if any.
    pub previews: Option<EnvironmentSettings>,
}

/// What follows by itself from a deployment that failed, beside that a version which never got ready takes nothing over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// What served before serves again at once, also where a post hook failed.
    #[default]
    Automatic,
    /// It is proposed as a pull request; where a post hook failed, the new version serves until that is merged.
    PullRequest,
    /// What served before serves again at once, from what is remembered, and that Git says so too is proposed as a pull request.
    AutomaticAndPullRequest,
    /// Nothing.
    None,
}

impl OnFailure {
    /// Whether it is what holds where nobody says anything.
    pub fn is_automatic(&self) -> bool {
        *self == OnFailure::Automatic
    }

    /// Whether what served before serves again at once.
    pub fn goes_back(self) -> bool {
        matches!(self, OnFailure::Automatic | OnFailure::AutomaticAndPullRequest)
    }

    /// Whether a rollback is proposed as a pull request.
    pub fn proposes(self) -> bool {
        matches!(self, OnFailure::PullRequest | OnFailure::AutomaticAndPullRequest)
    }
}

/// How much is written on a commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StatusDetail {
    /// `hooks` while a commit has at most 20 of them, after that only failures below the stages.
    #[default]
    Auto,
    /// Plan and stages.
    Stages,
    /// Also services.
    Services,
    /// Also hooks and tasks.
    Hooks,
}

/// One stage as declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageContent {
    /// The stage.
    pub name: StageName,
    /// Where its objects live.
    pub destination: Destination,
    /// The name of its delivery sequence, if there is one.
    pub delivery: Option<String>,
    /// What it declares.
    pub objects: StageObjects,
    /// How tasks run.
    pub tasks: BTreeMap<String, Vec<TaskDefinition>>,
    /// Whether objects that vanish from the files are deleted.
    pub prune: bool,
}

/// The objects of a stage, found by identity and by service. A clone shares everything with the original, and what is
/// changed in it afterwards costs only that: a revision changes one of thousands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageObjects {
    by_key: RedBlackTreeMapSync<ObjectKey, Arc<Object>>,
    /// In order. Most services have one or two, for which a tree would have room for eleven.
    by_service: RedBlackTreeMapSync<ServiceName, Vec<ObjectKey>>,
}

/// A `Task` object: how a shipyard task of its name runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskDefinition {
    /// The command, not run by a shell.
    pub command: Vec<String>,
    /// What it runs in, resolved.
    pub image: String,
    /// Its variables.
    #[serde(default)]
    pub env: Vec<EnvVar>,
    /// How long one attempt may take, in seconds; as the daemon is configured if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// How often it runs again after a failure.
    #[serde(default)]
    pub retries: u32,
    /// Only in these stages; all when empty.
    #[serde(default)]
    pub stages: Vec<StageName>,
    /// Only for these services; all when empty.
    #[serde(default)]
    pub services: Vec<ServiceName>,
    /// Only for tasks to which the shipyard gives these properties, and perhaps others.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub properties: Map<String, Value>,
    /// Where it is declared.
    pub location: Location,
}

/// A sequence, with how its tasks run for one service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Procedure {
    /// The sequence.
    pub sequence: Sequence,
    /// How tasks run that are not built in, by name.
    pub tasks: BTreeMap<String, TaskDefinition>,
    /// How those run for whose properties there is a definition, by their place in the sequence; that one counts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_properties: BTreeMap<usize, TaskDefinition>,
}

/// Everything that can run in a revision: its shipyard, with how tasks run in each stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Procedures {
    /// The shipyard.
    pub shipyard: Shipyard,
    /// The definitions of tasks, by stage and name.
    pub tasks: BTreeMap<StageName, BTreeMap<String, Vec<TaskDefinition>>>,
}

impl StageObjects {
    /// Adds an object; gives the one that it replaces.
    pub fn insert(&mut self, object: Arc<Object>) -> Option<Arc<Object>> {
        let (key, service) = (object.key.clone(), object.service.clone());
        let replaced = self.by_key.get(&key).cloned();
        self.by_key.insert_mut(key.clone(), object);
        if replaced.as_ref().is_some_and(|replaced| replaced.service == service) {
            return replaced;
        }
        if let Some(replaced) = &replaced {
            self.leave(&replaced.service, &key);
        }
        match self.by_service.get_mut(&service) {
            Some(keys) => {
                if let Err(place) = keys.binary_search(&key) {
                    keys.insert(place, key);
                }
            }
            None => self.by_service.insert_mut(service, vec![key]),
        }
        replaced
    }

    fn leave(&mut self, service: &ServiceName, key: &ObjectKey) {
        let Some(keys) = self.by_service.get_mut(service) else { return };
        keys.retain(|known| known != key);
        if keys.is_empty() {
            self.by_service.remove_mut(service);
        }
    }

    /// The object of an identity.
    pub fn get(&self, key: &ObjectKey) -> Option<&Arc<Object>> {
        self.by_key.get(key)
    }

    /// Whether an object of this identity is declared.
    pub fn contains(&self, key: &ObjectKey) -> bool {
        self.by_key.contains_key(key)
    }

    /// All, by identity.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.by_key.values()
    }

    /// Those of one service, by identity.
    pub fn of_service(&self, service: &ServiceName) -> impl Iterator<Item = &Arc<Object>> {
        self.by_service.get(service).into_iter().flatten().filter_map(|key| self.by_key.get(key))
    }

    /// The services that declare anything, by name.
    pub fn services(&self) -> impl Iterator<Item = &ServiceName> {
        self.by_service.keys()
    }

    /// The image streams, by name.
    pub fn image_streams(&self) -> impl Iterator<Item = &Arc<Object>> {
        let first = ObjectKey { kind: Kind::ImageStream, name: String::new() };
        let from = self.by_key.range(first..).map(|(_, object)| object);
        from.take_while(|object| object.key.kind == Kind::ImageStream)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_key.size()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }
}

impl FromIterator<Arc<Object>> for StageObjects {
    fn from_iter<T: IntoIterator<Item = Arc<Object>>>(objects: T) -> Self {
        let mut all = Self::default();
        for object in objects {
            all.insert(object);
        }
        all
    }
}

impl Project {
    /// Whether no stage declares any object.
    pub fn declares_nothing(&self) -> bool {
        self.stages.iter().all(|stage| stage.objects.is_empty())
    }

    /// What it declares for a stage.
    pub fn stage(&self, name: &StageName) -> Option<&StageContent> {
        self.stages.iter().find(|stage| &stage.name == name)
    }

    /// Whether an object is to be there: it is declared, or its stage deletes nothing.
    pub fn wants(&self, stage: &StageName, key: &ObjectKey) -> bool {
        self.stage(stage).is_some_and(|stage| !stage.prune || stage.objects.contains(key))
    }
}

impl StageContent {
    /// How a sequence runs here for a service.
    pub fn procedure(&self, sequence: &Sequence, service: &ServiceName) -> Procedure {
        procedure(&self.name, &self.tasks, sequence, service)
    }
}

impl Procedures {
    /// How a sequence of a stage runs for a service.
    pub fn procedure(&self, stage: &StageName, sequence: &Sequence, service: &ServiceName) -> Procedure {
        let none = BTreeMap::new();
        procedure(stage, self.tasks.get(stage).unwrap_or(&none), sequence, service)
    }
}

impl Procedure {
    /// How the task at `index` runs, if something says so.
    pub fn definition(&self, index: usize) -> Option<&TaskDefinition> {
        let by_name = || self.tasks.get(&self.sequence.tasks.get(index)?.name);
        self.by_properties.get(&index).or_else(by_name)
    }
}

impl TaskDefinition {
    /// Those of several definitions of a task's name that are for it in a stage, for a service or for one that none of them
    /// names, and over which none of the others wins. There is one at most, unless they are ambiguous.
    pub fn best<'a>(
        definitions: &'a [Self],
        (stage, service): (&StageName, Option<&ServiceName>),
        task: &Task,
    ) -> Vec<&'a Self> {
        let fits = |it: &&Self| {
            (it.services.is_empty() || service.is_some_and(|service| it.services.contains(service)))
                && it.runs_in(stage)
                && it.is_for(task)
        };
        let fitting: Vec<&Self> = definitions.iter().filter(fits).collect();
        fitting.iter().filter(|it| !fitting.iter().any(|other| other.wins_over(it))).copied().collect()
    }

    /// Whether it is for a stage, by name or because it names none.
    pub fn runs_in(&self, stage: &StageName) -> bool {
        self.stages.is_empty() || self.stages.contains(stage)
    }

    /// Whether a task has the properties that it is for.
    pub fn is_for(&self, task: &Task) -> bool {
        self.properties.iter().all(|(key, value)| task.properties.get(key) == Some(value))
    }

    /// Whether it is for less than the other one: for services that it names rather than for all, or for more properties, and
    /// in neither for more.
    fn wins_over(&self, other: &Self) -> bool {
        let names = |it: &Self| !it.services.is_empty();
        let has_all = other.properties.iter().all(|(key, value)| self.properties.get(key) == Some(value));
        let is_less = names(self) != names(other) || self.properties.len() > other.properties.len();
        (names(self) || !names(other)) && has_all && is_less
    }
}

/// Of several definitions of a task, the one that is for the least counts.
fn procedure(
    stage: &StageName,
    definitions: &BTreeMap<String, Vec<TaskDefinition>>,
    sequence: &Sequence,
    service: &ServiceName,
) -> Procedure {
    let mut procedure = Procedure { sequence: sequence.clone(), ..Procedure::default() };
    for (index, task) in sequence.tasks.iter().enumerate() {
        let Some(definitions) = definitions.get(&task.name) else { continue };
        let best = TaskDefinition::best(definitions, (stage, Some(service)), task).first().copied().cloned();
        match best {
            Some(best) if best.properties.is_empty() => drop(procedure.tasks.insert(task.name.clone(), best)),
            Some(best) => drop(procedure.by_properties.insert(index, best)),
            None => {}
        }
    }
    procedure
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A definition that is called by its image.
    fn definition(image: &str, services: &[&str], properties: Value) -> TaskDefinition {
        let services = services.iter().map(|name| ServiceName::new(*name)).collect();
        let properties = properties.as_object().cloned().unwrap_or_default();
        let (command, env, stages) = (Vec::new(), Vec::new(), Vec::new());
        let (timeout_seconds, retries, location) = (None, 0, Location::default());
        TaskDefinition {
            command,
            image: image.into(),
            env,
            timeout_seconds,
            retries,
            stages,
            services,
            properties,
            location,
        }
    }

    #[test]
    fn the_definition_that_is_for_the_least_counts() {
        let definitions = [
            definition("all", &[], json!({})),
            definition("performance", &[], json!({"teststrategy": "performance"})),
            definition("long", &[], json!({"teststrategy": "performance", "hours": 2})),
            definition("web", &["web"], json!({})),
            definition("web-performance", &["web"], json!({"teststrategy": "performance"})),
        ];
        for (service, properties, expected) in [
            ("api", json!(null), "all"),
            ("api", json!({"teststrategy": "functional"}), "all"),
            ("api", json!({"teststrategy": "performance"}), "performance"),
            ("api", json!({"teststrategy": "performance", "hours": 2, "more": []}), "long"),
            ("api", json!({"teststrategy": "performance", "hours": "2"}), "performance"),
            ("web", json!({"teststrategy": "functional"}), "web"),
            ("web", json!({"teststrategy": "performance"}), "web-performance"),
            ("web", json!({"teststrategy": "performance", "hours": 2}), "long web-performance"),
        ] {
            let task = Task { properties: properties.clone(), ..Task::named("test") };
            let (stage, service) = (StageName::new("dev"), ServiceName::new(service));
            let best = TaskDefinition::best(&definitions, (&stage, Some(&service)), &task);
            let best: Vec<&str> = best.iter().map(|it| it.image.as_str()).collect();
            assert_eq!(best.join(" "), expected, "{service} {properties}");
        }
    }

    #[test]
    fn two_tasks_of_one_name_run_as_their_properties_say_and_what_has_none_is_stored_as_before() {
        let of = |properties: Value| Task { properties, ..Task::named("test") };
        let tasks = vec![of(json!({"kind": "load"})), of(json!(null)), Task::named("mail"), of(json!({"kind": "ui"}))];
        let sequence = Sequence { name: "check".into(), tasks, ..Sequence::default() };
        let definitions = |list: &[TaskDefinition]| BTreeMap::from([("test".to_owned(), list.to_vec())]);
        let run = |list: &[TaskDefinition]| procedure(&"dev".into(), &definitions(list), &sequence, &"web".into());
        let (all, load) = (definition("all", &[], json!({})), definition("load", &[], json!({"kind": "load"})));
        let images = |procedure: &Procedure| -> Vec<String> {
            let image = |index| procedure.definition(index).map_or("-".to_owned(), |it| it.image.clone());
            (0..4).map(image).collect()
        };
        assert_eq!(images(&run(&[all.clone(), load.clone()])), ["load", "all", "-", "all"]);
        assert_eq!(images(&run(&[load])), ["load", "-", "-", "-"]);
        let plain = serde_json::to_value(run(&[all])).expect("it is written");
        assert_eq!(
            plain.as_object().map(|it| it.keys().cloned().collect()),
            Some(vec!["sequence".to_owned(), "tasks".into()])
        );
        assert!(plain["tasks"]["test"].get("properties").is_none());
    }
}
