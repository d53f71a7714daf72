//! Projects with their stages and services in Keptn's shapes.

use std::collections::{BTreeMap, BTreeSet};

use super::{MOST, Query};
use crate::model::ids::StageName;
use crate::model::state::RepositoryState;
use crate::server::problem::{Answer, Problem};
use crate::server::view::{ProjectPage, ProjectView, ServiceOfStage, StageOfProject};
use crate::store::RunFilter;

/// The version of the shipyard's format that launchway writes and reads at most: that of a project without a file of its own.
const SHIPYARD_VERSION: &str = "spec.keptn.sh/0.2.4";

impl Query {
    /// All projects that watched repositories declare.
    pub async fn keptn_projects(&self) -> Answer<ProjectPage> {
        let mut projects = Vec::new();
        for state in self.store.repositories().await?.found {
            projects.extend(self.project_of(&state.value).await?);
        }
        Ok(ProjectPage::of(projects))
    }

    /// One of them.
    pub async fn keptn_project(&self, name: &str) -> Answer<ProjectView> {
        let state = self.declaring_project(name).await?;
        self.project_of(&state).await?.ok_or_else(|| undeclared(name))
    }

    /// The repository that declares a project.
    pub(super) async fn declaring_project(&self, name: &str) -> Answer<RepositoryState> {
        let declares = |state: &RepositoryState| state.project.as_ref().is_some_and(|it| it.as_str() == name);
        let mut states = self.store.repositories().await?.found.into_iter().map(|state| state.value);
        states.find(declares).ok_or_else(|| undeclared(name))
    }

    async fn project_of(&self, state: &RepositoryState) -> Answer<Option<ProjectView>> {
        let (Some(project), Some(applied)) = (&state.project, &state.applied) else { return Ok(None) };
        let revision = self.store.outline(&state.name, applied.as_str()).await?;
        let Some(plan) = revision.as_ref().and_then(|revision| revision.plan()) else { return Ok(None) };
        let mut services: BTreeMap<StageName, BTreeSet<String>> = BTreeMap::new();
        for config in self.store.configs(Some(project), None).await?.found {
            let config = config.value;
            services.entry(config.key.stage).or_default().insert(config.service.to_string());
        }
        let filter =
            RunFilter { project: Some(project.clone()), sequences: Some(true), limit: MOST, ..RunFilter::default() };
        for run in self.store.runs(&filter).await?.found {
            let service = run.value.service();
            services.entry(service.stage).or_default().insert(service.service.to_string());
        }
        let creation_date = (i128::from(plan.at.0) * 1_000_000).to_string();
        let service = |service_name: &String| ServiceOfStage {
            service_name: service_name.clone(),
            creation_date: creation_date.clone(),
        };
        let stages = plan.procedures.shipyard.stages.iter().map(|stage| StageOfProject {
            stage_name: stage.name.to_string(),
            services: services.get(&stage.name).into_iter().flatten().map(service).collect(),
        });
        Ok(Some(ProjectView {
            project_name: project.to_string(),
            shipyard_version: match plan.procedures.shipyard.version.as_str() {
                "" => SHIPYARD_VERSION.to_owned(),
                version => version.to_owned(),
            },
            stages: stages.collect(),
            creation_date: creation_date.clone(),
        }))
    }
}

fn undeclared(project: &str) -> Problem {
    Problem::not_found(format!("no repository declares project `{project}`"))
}
