//! What is remembered of objects that are no deployment configs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::deployment_config::ImageReference;
use crate::model::ids::{Destination, Digest, ProjectName, RepositoryName, RunId, StageName};
use crate::model::object::Object;
use crate::model::state::Version;
use crate::model::time::Timestamp;

/// Any other object as applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectState {
    /// Which project declares it.
    pub project: ProjectName,
    /// In which stage.
    pub stage: StageName,
    /// Where it lives.
    pub destination: Destination,
    /// Which repository declares it.
    pub repository: RepositoryName,
    /// As last declared and accepted.
    pub object: Arc<Object>,
    /// When the newest revision was planned that has changed it here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_at: Option<Timestamp>,
    /// Since when it stands as another life of the store has recorded it: what is there may be newer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherited: Option<Timestamp>,
    /// Of an `ImageStream`: the tags that were given an image beside the files.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tagged: BTreeMap<String, Tagged>,
    /// The deployment configs that keep it although files declare it no longer: it goes with the last of them that needs it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub kept_by: BTreeSet<String>,
    /// What it was before it changed, for versions that run while another is to take their place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Earlier>,
}

/// What an object was for a version that runs, before it changed for the one that is to take its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Earlier {
    /// The deployment config, in the object's stage.
    pub config: String,
    /// Its version.
    pub version: u32,
    /// The sequence that changed the object: while it is open, what it declares of the deployment config may still come.
    pub by: RunId,
    /// Whether the version went back to one for which the object was that: it is so until Git declares the deployment config again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub went_back: bool,
    /// What the object was.
    pub object: Arc<Object>,
}

/// An image that a tag was given beside the files, until they say something else of that tag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tagged {
    /// The image.
    pub image: String,
    /// What the file said of the tag then.
    pub instead_of: Option<ImageReference>,
    /// Who or what gave it the image, for people.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// What the registry said last, of a tag that is looked up there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
    /// The versions whose hooks have handed the image on, each started by what the one before it gave a tag; the last one
    /// last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handed: Vec<Handed>,
}

/// A version whose hook gave a tag an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handed {
    /// Its deployment config, in the stage of the tag.
    pub config: String,
    /// What that was.
    pub content: Digest,
}

/// What a registry has said of a tag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// The digest that it led to.
    pub digest: String,
    /// The registry's word for that answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
}

impl ObjectState {
    /// One that was declared now.
    pub fn new(
        (project, stage): (ProjectName, StageName),
        destination: Destination,
        repository: RepositoryName,
        object: Arc<Object>,
    ) -> Self {
        Self {
            project,
            stage,
            destination,
            repository,
            object,
            planned_at: None,
            inherited: None,
            tagged: BTreeMap::new(),
            kept_by: BTreeSet::new(),
            earlier: Vec::new(),
        }
    }

    /// Whether files declare it no longer.
    pub fn is_kept(&self) -> bool {
        !self.kept_by.is_empty()
    }

    /// The digest of what was last declared and accepted: that of nothing, once it is only kept.
    pub fn declared_digest(&self) -> Digest {
        if self.is_kept() { Digest::new("") } else { self.object.digest.clone() }
    }

    /// What it is for a version of a deployment config in its stage.
    pub fn of_version(&self, config: &str, version: u32) -> &Arc<Object> {
        let earlier = self.earlier.iter().find(|it| (&*it.config, it.version) == (config, version));
        earlier.map_or(&self.object, |earlier| &earlier.object)
    }

    /// Whether it is a `Service` that leads to the pods of a version.
    pub fn leads_to(&self, version: &Version) -> bool {
        self.of_version(&version.object.key.name, version.number).leads_to(&version.pod_labels())
    }
}
