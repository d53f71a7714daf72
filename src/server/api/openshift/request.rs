//! What OpenShift's clients send.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::status::{invalid, invalid_value};
use crate::engine::by_hand::Images;
use crate::model::ids::ConfigKey;
use crate::model::rollback::{Rollback, RollbackParts, RollbackTo};
use crate::server::problem::{Answer, Problem};
use crate::server::view::openshift::{ObjectReference, RollbackSpec};

/// What stands before every one of these.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct TypeMeta {
    /// The kind.
    pub kind: String,
    /// In which version of the API.
    pub api_version: String,
}

impl TypeMeta {
    /// Refuses another kind; none is as good as the right one.
    fn check(&self, kind: &str) -> Answer<()> {
        if self.kind.is_empty() || self.kind == kind {
            return Ok(());
        }
        let message = format!("this takes a {kind}, not a {}", self.kind);
        Err(Problem::new(axum::http::StatusCode::BAD_REQUEST, message))
    }
}

/// A trigger that is left out.
const IMAGE_CHANGE: &str = "ImageChange";

/// A new version is asked for.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct DeploymentRequest {
    /// What this is.
    #[serde(flatten)]
    pub kind: TypeMeta,
    /// The deployment config.
    pub name: String,
    /// Whether its image triggers bring what their tags lead to now.
    pub latest: bool,
    /// Whether it is deployed although nothing of it differs.
    pub force: bool,
    /// Types of triggers that bring nothing this time.
    pub exclude_triggers: Vec<String>,
}

impl DeploymentRequest {
    const KIND: &str = "DeploymentRequest";

    /// Which images are meant, if it is meant for `name`.
    pub(super) fn images(&self, name: &str) -> Answer<Images> {
        self.kind.check(Self::KIND)?;
        named(Self::KIND, &self.name, name)?;
        let known = |kind: &&String| [IMAGE_CHANGE, "ConfigChange"].contains(&kind.as_str());
        if let Some(other) = self.exclude_triggers.iter().find(|kind| !known(kind)) {
            let why = "no type of trigger; there are ConfigChange and ImageChange";
            return Err(invalid_value(Self::KIND, name, "excludeTriggers", &json!(other), why));
        }
        let is_excluded = self.exclude_triggers.iter().any(|kind| kind == IMAGE_CHANGE);
        Ok(if self.latest && !is_excluded { Images::Newest } else { Images::AsTheyAre })
    }

    /// In upstream's words.
    pub(super) fn paused(name: &str) -> Problem {
        let why = format!("deployment config \"{name}\" is paused - unpause to request a new deployment");
        invalid_value(Self::KIND, name, "spec.paused", &json!(true), &why)
    }
}

/// A deployment config that goes back is asked for.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct DeploymentConfigRollback {
    /// What this is.
    #[serde(flatten)]
    pub kind: TypeMeta,
    /// The deployment config; the older of the two calls names only the version.
    pub name: String,
    /// Annotations that it gets.
    pub updated_annotations: Map<String, Value>,
    /// What comes back.
    pub spec: RollbackSpec,
}

impl DeploymentConfigRollback {
    const KIND: &str = "DeploymentConfigRollback";

    /// Whose rollback this is, where the path does not say it.
    pub(super) fn subject(&self) -> Answer<&str> {
        let of_version = || self.spec.from.as_ref()?.name.rsplit_once('-').map(|(name, _)| name);
        let named = Some(self.name.as_str()).filter(|name| !name.is_empty());
        named.or_else(of_version).ok_or_else(|| missing(Self::KIND, ""))
    }

    /// What it means for `name`, which the path says.
    pub(super) fn spec(&self, name: &str) -> Answer<&RollbackSpec> {
        self.kind.check(Self::KIND)?;
        if !self.name.is_empty() || self.spec.from.is_none() {
            named(Self::KIND, &self.name, name)?;
        }
        if !self.updated_annotations.is_empty() {
            let why = "Forbidden: annotations are what Git says: change them there";
            return Err(invalid(Self::KIND, name, "updatedAnnotations", why));
        }
        Ok(&self.spec)
    }

    /// A refusal in upstream's words.
    pub(super) fn refused(name: &str, why: &str) -> Problem {
        invalid_value(Self::KIND, name, "name", &json!(name), why)
    }
}

impl RollbackSpec {
    /// The rollback of a deployment config that this asks for.
    pub(super) fn read(&self, config: ConfigKey) -> Answer<Rollback> {
        let (kind, name) = (DeploymentConfigRollback::KIND, config.name.clone());
        let Ok(version) = u32::try_from(self.revision) else {
            let why = if self.revision < 0 { "must be non-negative" } else { "there is no such version" };
            return Err(invalid_value(kind, &name, "spec.revision", &json!(self.revision), why));
        };
        let of_from = self.from.as_ref().map(|from| version_of(&name, from)).transpose()?;
        let to = match (version, of_from) {
            (0, None) => RollbackTo::LastComplete,
            (0, Some(version)) | (version, None) => RollbackTo::Version(version),
            (version, Some(from)) if version == from => RollbackTo::Version(version),
            (_, Some(from)) => {
                let why = format!("`spec.from` names version {from}: leave out one of the two");
                return Err(invalid_value(kind, &name, "spec.revision", &json!(self.revision), &why));
            }
        };
        if self.include_triggers {
            let why = "Forbidden: triggers are what Git says; until somebody releases the hold of the rollback, none of them \
                       starts anything";
            return Err(invalid(kind, &name, "spec.includeTriggers", why));
        }
        let parts = RollbackParts {
            labels: false,
            strategy: self.include_strategy,
            template: self.include_template,
            replication: self.include_replication_meta,
        };
        Ok(Rollback { config, to, parts, notes: String::new(), may_be_absent: false })
    }

    /// The same once it is known to which version.
    pub(super) fn to(&self, version: u32) -> Self {
        Self { from: None, revision: version.into(), ..self.clone() }
    }
}

/// The version that an object stands for.
fn version_of(config: &str, from: &ObjectReference) -> Answer<u32> {
    let kind = DeploymentConfigRollback::KIND;
    if !from.kind.is_empty() && from.kind != "ReplicationController" {
        let why = "the kind of the rollback target must be 'ReplicationController'";
        return Err(invalid_value(kind, config, "spec.from.kind", &json!(from.kind), why));
    }
    let number = from.name.strip_prefix(config).and_then(|rest| rest.strip_prefix('-'));
    number.and_then(|number| number.parse().ok()).filter(|number| *number > 0).ok_or_else(|| {
        let why = format!("no version of it, such as {config}-1");
        invalid_value(kind, config, "spec.from.name", &json!(from.name), &why)
    })
}

/// Refuses a request that is for another one than the path says, or for none.
fn named(kind: &str, named: &str, name: &str) -> Answer<()> {
    match named {
        "" => Err(missing(kind, name)),
        named if named == name => Ok(()),
        other => {
            let message = format!("the name of the object ({other}) does not match the name on the URL ({name})");
            Err(Problem::new(axum::http::StatusCode::BAD_REQUEST, message))
        }
    }
}

fn missing(kind: &str, name: &str) -> Problem {
    invalid(kind, name, "name", "Required value: name of the deployment config is missing")
}
