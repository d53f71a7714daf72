//! What would be applied if a revision had been deployed whole: what a plan from Git alone compares with.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::ids::{CommitId, ConfigKey, RepositoryName, StageName};
use crate::model::object::{Kind, Object};
use crate::model::project::{Project, StageContent};
use crate::model::state::{AppliedDigest, ConfigState, ObjectState, Version};
use crate::plan::build::Applied;

/// Every stage of `project` as it is once `commit` has passed everywhere.
pub fn assumed(project: &Project, repository: &RepositoryName, commit: &CommitId) -> BTreeMap<StageName, Applied> {
    let of_stage = |stage: &StageContent| (stage.name.clone(), applied(project, stage, repository, commit));
    project.stages.iter().map(of_stage).collect()
}

fn applied(project: &Project, stage: &StageContent, repository: &RepositoryName, commit: &CommitId) -> Applied {
    let mut seen = Applied::default();
    for object in stage.objects.iter() {
        let (key, digest) = (object.key.clone(), object.digest.clone());
        seen.digests.push(AppliedDigest { key, digest, settled: true });
        if object.key.kind == Kind::DeploymentConfig {
            let state = config(project, stage, object, repository, commit);
            seen.configs.insert(object.key.clone(), state);
        } else {
            let (home, destination) = ((project.name.clone(), stage.name.clone()), stage.destination.clone());
            let state = ObjectState::new(home, destination, repository.clone(), Arc::clone(object));
            seen.objects.insert(object.key.clone(), state);
        }
    }
    seen
}

fn config(
    project: &Project,
    stage: &StageContent,
    object: &Arc<Object>,
    repository: &RepositoryName,
    commit: &CommitId,
) -> ConfigState {
    let key = ConfigKey { project: project.name.clone(), stage: stage.name.clone(), name: object.key.name.clone() };
    let serving = Version { number: 1, commit: commit.clone(), object: object.clone() };
    let declared = ConfigState::new(key, stage.destination.clone(), repository.clone(), object.clone(), commit.clone());
    ConfigState { latest_version: 1, serving: Some(serving), ..declared }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::shipyard::Shipyard;
    use crate::model::time::Timestamp;
    use crate::plan::build::{Revision, build};
    use crate::testing::world::{deployment_config, project};

    fn changes(from: &Project, to: &Project) -> Vec<(String, &'static str)> {
        let repository = RepositoryName::new("repo");
        let revision = Revision {
            repository: repository.clone(),
            commit: CommitId::new("b".repeat(40)),
            subject: String::new(),
            at: Timestamp(0),
            prune_allowed: true,
        };
        let applied = assumed(from, &repository, &CommitId::new("a".repeat(40)));
        let plan = build(to, &revision, &applied).expect("nothing is refused");
        let services = plan.stages.iter().flat_map(|stage| &stage.services);
        let changes = services.flat_map(|service| &service.changes);
        changes.map(|change| (change.key.name.clone(), change.decision.as_str())).collect()
    }

    #[test]
    fn a_revision_changes_nothing_against_itself() {
        let shop = project(Shipyard::implicit(), &[deployment_config("web", "a", 2, json!({}))]);
        assert_eq!(changes(&shop, &shop), []);
    }

    #[test]
    fn only_what_differs_is_planned() {
        let shop = |image: &str, replicas: u32| {
            let web = deployment_config("web", image, replicas, json!({}));
            project(Shipyard::implicit(), &[web, deployment_config("cart", "a", 1, json!({}))])
        };
        assert_eq!(changes(&shop("a", 2), &shop("b", 2)), [("web".to_owned(), "deploy")]);
        assert_eq!(changes(&shop("a", 2), &shop("a", 3)), [("web".to_owned(), "scale")]);
        let without = project(Shipyard::implicit(), &[deployment_config("cart", "a", 1, json!({}))]);
        assert_eq!(changes(&shop("a", 2), &without), [("web".to_owned(), "delete")]);
    }
}
