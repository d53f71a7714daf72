//! Deployment configs by their namespaces, as OpenShift's clients ask for them.

use super::Query;
use crate::clock::{Clock, SystemClock};
use crate::engine::deployment::observed::Observed;
use crate::error::Result;
use crate::model::hold::{HoldKind, ProjectHolds};
use crate::model::ids::{ConfigKey, Namespace, ProjectName, StageName};
use crate::model::object::Kind;
use crate::model::state::{ConfigState, Versioned};
use crate::model::unique_name::UniqueName;
use crate::server::problem::{Answer, Problem};
use crate::server::view::openshift::Described;
use crate::store::{Damaged, Listing};

impl Query {
    /// The deployment configs of a namespace, by name, and what of them cannot be read.
    pub async fn in_namespace(&self, namespace: &str) -> Answer<(Vec<Described>, Vec<Damaged>)> {
        let Some((project, stage)) = self.stage_in(namespace).await? else { return Ok((Vec::new(), Vec::new())) };
        let Listing { found: configs, damaged } = self.store.configs(Some(&project), Some(&stage)).await?;
        let mut described = Vec::new();
        for config in configs.into_iter().filter(|config| is_of_openshift(&config.value)) {
            described.push(self.describe(config).await?);
        }
        described.sort_by(|one, other| one.state.key.cmp(&other.state.key));
        Ok((described, damaged))
    }

    /// One of them. Without a namespace all are searched for it, and there must be one.
    pub async fn named_in(&self, namespace: Option<&str>, name: &str) -> Answer<Described> {
        let found = match namespace {
            Some(namespace) => match self.stage_in(namespace).await? {
                Some((project, stage)) => {
                    let key = ConfigKey { project, stage, name: name.to_owned() };
                    self.store.config(&key).await?.into_iter().collect()
                }
                None => Vec::new(),
            },
            None => self.store.configs(None, None).await?.found,
        };
        let is_it = |config: &Versioned<ConfigState>| config.value.key.name == name && is_of_openshift(&config.value);
        let mut found: Vec<_> = found.into_iter().filter(is_it).collect();
        if let [_, _, ..] = &found[..] {
            let there: Vec<&str> = found.iter().map(|config| config.value.destination.namespace.as_str()).collect();
            let several = format!("several namespaces have a deployment config \"{name}\"");
            let hint = format!("choose one of them with `?namespace=`: {}", there.join(", "));
            return Err(Problem::new(axum::http::StatusCode::BAD_REQUEST, several).hint(hint));
        }
        let missing = || Problem::not_found(format!("deploymentconfigs.apps.openshift.io \"{name}\" not found"));
        self.describe(found.pop().ok_or_else(missing)?).await
    }

    /// The stage that lives in a namespace.
    async fn stage_in(&self, namespace: &str) -> Result<Option<(ProjectName, StageName)>> {
        let name = UniqueName::Namespace(Namespace::from(namespace));
        let owner = self.store.name_owner(&name).await?.map(|owner| owner.value);
        Ok(owner.and_then(|owner| Some((owner.project, owner.stage?))))
    }

    async fn describe(&self, config: Versioned<ConfigState>) -> Answer<Described> {
        let Versioned { version: record, value: state } = config;
        let pods = self.pods_of(&state).await?.map(|pods| {
            let now = SystemClock.now();
            let observed = Observed::count(&pods, &state.key, state.wanted.min_ready_seconds, now);
            (observed, Described::ready(&pods))
        });
        let run = match state.last_version() {
            Some(version) => self.deployment(&state.key.deployment(version.number)).await?,
            None => None,
        };
        let holds = self.store.holds_of(&state.key.project).await?.map(|holds| holds.value);
        let is_paused = is_paused(&state, holds.as_ref());
        Ok(Described { state, record, is_paused, run, pods })
    }
}

/// Whether it is there and declared as a `DeploymentConfig`: OpenShift's clients know no other.
fn is_of_openshift(state: &ConfigState) -> bool {
    !state.removed && state.object.declared_kind() == Kind::DeploymentConfig
}

fn is_paused(state: &ConfigState, holds: Option<&ProjectHolds>) -> bool {
    let service = state.service_key();
    let pauses = |holds: &ProjectHolds| {
        let mut all = holds.holds.iter();
        all.any(|hold| hold.kind == HoldKind::Pause && hold.scope.one_service().as_ref() == Some(&service))
    };
    let is_lifted = holds.is_some_and(|holds| holds.has_lifted(&state.key));
    holds.is_some_and(pauses) || (!is_lifted && state.spec().is_ok_and(|spec| spec.paused))
}
