//! A project as the environment of a pull request: one of its stages, under names of its own, and nothing of the others.

use std::collections::BTreeMap;
use std::sync::Arc;

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};

use super::names;
use crate::model::cloud_event::short;
use crate::model::deployment_config::DeploymentConfigSpec;
use crate::model::ids::{Destination, Namespace, ProjectName, RepositoryName, StageName};
use crate::model::object::Kind;
use crate::model::project::{OnFailure, Project, StageContent, TaskDefinition};
use crate::model::seed::Seed;
use crate::model::shipyard::{Sequence, SequenceTrigger, Shipyard, Stage};

/// What an environment is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvironmentNames {
    /// Its project, and the namespace in which its only stage lives.
    pub project: ProjectName,
    /// Its only stage.
    pub stage: StageName,
}

impl EnvironmentNames {
    /// Those of a pull request's environment of a project.
    pub fn new(project: &ProjectName, number: u64) -> Self {
        let stage = StageName::of_pull(number);
        Self { project: ProjectName::new(format!("{project}-{stage}")), stage }
    }

    /// The project and the pull request of which these are the names, if they are those of an environment.
    pub fn origin(&self) -> Option<(ProjectName, u64)> {
        let number = self.stage.pull()?;
        let project = self.project.as_str().strip_suffix(&format!("-{}", self.stage))?;
        Some((ProjectName::new(project), number))
    }
}

/// What the values are derived from that templates generate in an environment: a pull request is not given those of a stage
/// that serves.
pub fn seed(seed: &Seed, environment: &RepositoryName) -> Seed {
    let key = Key::new(HMAC_SHA256, seed.reveal());
    let derived = sign(&key, environment.as_str().as_bytes());
    derived.as_ref().try_into().map_or(Seed::NONE, Seed::new)
}

/// The stage `template` of a project as one that is alone, under other names.
///
/// # Errors
/// If there is no such stage, or the names are none.
pub fn environment(project: &Project, template: &StageName, names: &EnvironmentNames) -> Result<Project, String> {
    let (content, declared) = project.stage(template).zip(project.shipyard.stage(template)).ok_or_else(|| {
        let there: Vec<&str> = project.stages.iter().map(|stage| stage.name.as_str()).collect();
        format!("there is no stage `{template}` to make an environment after; there are {}", there.join(", "))
    })?;
    if project.shipyard.stage(&names.stage).is_some() {
        return Err(format!("the shipyard has a stage `{}` of its own", names.stage));
    }
    let namespace = Namespace::new(names.project.as_str());
    names::label(namespace.as_str()).map_err(|wrong| format!("the namespace `{namespace}` {wrong}"))?;
    let sequences = declared.sequences.iter().map(|sequence| alone(sequence, template, &names.stage));
    let stage = Stage { name: names.stage.clone(), sequences: sequences.collect() };
    let on_failure = match project.on_failure {
        // What a pull request brings is put right in it.
        it if it.proposes() => OnFailure::Automatic,
        other => other,
    };
    Ok(Project {
        name: names.project.clone(),
        shipyard: Shipyard { stages: vec![stage], ..project.shipyard.clone() },
        stages: vec![StageContent {
            name: names.stage.clone(),
            destination: Destination { namespace, ..content.destination.clone() },
            tasks: tasks(&content.tasks, template, &names.stage),
            prune: true,
            ..content.clone()
        }],
        statuses: project.statuses,
        on_failure,
        previews: None,
    })
}

/// A sequence that hears of nothing but its own stage, by the name that this has now.
fn alone(sequence: &Sequence, template: &StageName, stage: &StageName) -> Sequence {
    let own = |trigger: &SequenceTrigger| {
        let Some((of, rest)) = short(&trigger.event).split_once('.') else { return Some(trigger.clone()) };
        (of == template.as_str()).then(|| SequenceTrigger { event: format!("{stage}.{rest}"), ..trigger.clone() })
    };
    Sequence { triggered_on: sequence.triggered_on.iter().filter_map(own).collect(), ..sequence.clone() }
}

/// How tasks run there that name the stage.
fn tasks(
    tasks: &BTreeMap<String, Vec<TaskDefinition>>,
    template: &StageName,
    stage: &StageName,
) -> BTreeMap<String, Vec<TaskDefinition>> {
    let renamed = |definition: &TaskDefinition| {
        let mut definition = definition.clone();
        definition.stages.iter_mut().filter(|named| *named == template).for_each(|named| *named = stage.clone());
        definition
    };
    tasks.iter().map(|(name, all)| (name.clone(), all.iter().map(renamed).collect())).collect()
}

/// What a pull request declares for its environment, or what is wrong, each problem on a line.
pub fn declared(
    project: Result<Arc<Project>, Vec<String>>,
    template: &StageName,
    names: &EnvironmentNames,
    is_fork: bool,
) -> Result<Arc<Project>, Vec<String>> {
    let made = environment(&*project?, template, names).map_err(|wrong| vec![wrong])?;
    let taken = taken(&made, is_fork);
    if taken.is_empty() { Ok(Arc::new(made)) } else { Err(taken) }
}

/// What an environment would take from others on the machine: a port of it, which its template's stage may have, and where a fork
/// brings it, folders that the repository's own stages use.
fn taken(environment: &Project, is_fork: bool) -> Vec<String> {
    let mut found = Vec::new();
    let objects = environment.stages.iter().flat_map(|stage| stage.objects.iter());
    for object in objects.filter(|object| object.key.kind == Kind::DeploymentConfig) {
        let Ok(DeploymentConfigSpec { template, .. }) = object.spec() else { continue };
        let containers = template.spec.containers.iter().chain(&template.spec.init_containers);
        let port =
            containers.flat_map(|container| &container.ports).filter_map(|port| port.host_port).find(|it| *it > 0);
        let place = format!("{}: `{}`", object.location, object.key);
        if let Some(port) = port {
            found
                .push(format!("{place} has the machine's port {port} (`hostPort`), which an environment may not take"));
        }
        if is_fork && template.spec.volumes.iter().any(|volume| volume.host_path.is_some()) {
            found.push(format!("{place} has a `hostPath`, which the environment of a fork may not use"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::shipyard::Task;
    use crate::testing::world::{self, deployment_config};

    fn shop() -> Project {
        let sequence = |name: &str, on: &[&str]| Sequence {
            name: name.into(),
            triggered_on: on
                .iter()
                .map(|event| SequenceTrigger { event: (*event).into(), selector: Default::default() })
                .collect(),
            tasks: vec![Task::named("deployment")],
            ..Sequence::default()
        };
        let dev = vec![
            sequence("delivery", &["build.delivery.finished"]),
            sequence("mail", &["dev.delivery.finished", "production.delivery.finished", "push"]),
        ];
        let production = vec![sequence("delivery", &["dev.delivery.finished"])];
        let stage = |name: &str, sequences| Stage { name: name.into(), sequences };
        let stages = vec![stage("dev", dev), stage("production", production)];
        let web = deployment_config("web", "a", 1, serde_json::json!({}));
        let shipyard = Shipyard { stages, ..Shipyard::default() };
        Project { on_failure: OnFailure::PullRequest, ..world::project(shipyard, &[web]) }
    }

    #[test]
    fn one_stage_is_left_under_names_of_its_own() {
        let names = EnvironmentNames::new(&"shop".into(), 12);
        let made = environment(&shop(), &"dev".into(), &names).unwrap();
        assert_eq!(made.name.as_str(), "shop-pr-12");
        let [stage] = made.stages.as_slice() else { unreachable!("{:?}", made.stages) };
        assert_eq!((stage.name.as_str(), stage.destination.namespace.as_str()), ("pr-12", "shop-pr-12"));
        assert_eq!(stage.objects, shop().stages[0].objects);
        let [declared] = made.shipyard.stages.as_slice() else { unreachable!("{:?}", made.shipyard) };
        let triggers = |index: usize| -> Vec<&str> {
            declared.sequences[index].triggered_on.iter().map(|trigger| trigger.event.as_str()).collect()
        };
        assert_eq!((triggers(0), triggers(1)), (vec![], vec!["pr-12.delivery.finished", "push"]));
        assert_eq!((made.on_failure, made.previews), (OnFailure::Automatic, None));
    }

    #[test]
    fn what_cannot_be_made_is_said() {
        let names = EnvironmentNames::new(&"shop".into(), 12);
        let unknown = environment(&shop(), &"qa".into(), &names).unwrap_err();
        assert_eq!(unknown, "there is no stage `qa` to make an environment after; there are dev, production");
        let taken = EnvironmentNames { stage: "production".into(), ..names };
        let why = environment(&shop(), &"dev".into(), &taken).unwrap_err();
        assert_eq!(why, "the shipyard has a stage `production` of its own");
        let long = EnvironmentNames::new(&ProjectName::new("s".repeat(60)), 12);
        assert!(environment(&shop(), &"dev".into(), &long).unwrap_err().contains("at most 63"));
    }

    #[test]
    fn what_others_have_on_the_machine_is_not_taken() {
        let names = EnvironmentNames::new(&"shop".into(), 12);
        let made = |spec: serde_json::Value, is_fork: bool| {
            let template = serde_json::json!({"template": {"spec": spec}});
            let web = deployment_config("web", "a", 1, template);
            let stages = vec![Stage { name: "dev".into(), sequences: Vec::new() }];
            let project = world::project(Shipyard { stages, ..Shipyard::default() }, &[web]);
            declared(Ok(Arc::new(project)), &"dev".into(), &names, is_fork).map(drop).map_err(|wrong| wrong.join(", "))
        };
        let port = |port: u16| serde_json::json!({"containers": [{"name": "a", "ports": [{"containerPort": 80, "hostPort": port}]}]});
        assert!(made(port(8080), false).is_err_and(|why| why.contains("the machine's port 8080")));
        assert_eq!(made(port(0), true), Ok(()), "zero is none");
        let folder = serde_json::json!({"volumes": [{"name": "data", "hostPath": {"path": "/srv/data"}}]});
        assert_eq!(made(folder.clone(), false), Ok(()));
        assert!(made(folder, true).is_err_and(|why| why.contains("`hostPath`")));
    }

    #[test]
    fn generated_values_are_those_of_no_other_environment() {
        let (store, shop) = (Seed::new([7; 32]), RepositoryName::new("shop"));
        let [one, other] = [12, 13].map(|number| seed(&store, &shop.environment(number)));
        assert!(one != store && one != other && one == seed(&store, &shop.environment(12)));
    }
}
