//! OpenShift's `ImageStream`: tags by which images are found.
//!
//! Source of fields and defaults: `image.openshift.io/v1`.

use serde::{Deserialize, Serialize};

use super::deployment_config::ImageReference;

/// `ImageStreamSpec`, as far as it is executed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ImageStreamSpec {
    /// What its tags lead to.
    pub tags: Vec<TagReference>,
}

/// `TagReference`: one tag.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TagReference {
    /// Its name.
    pub name: String,
    /// What it leads to; nothing, if only others give it an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<ImageReference>,
    /// Whether it is looked up again and again.
    pub import_policy: ImportPolicy,
}

/// `TagImportPolicy`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ImportPolicy {
    /// Whether the registry is asked from time to time what the tag leads to.
    pub scheduled: bool,
    /// Whether the registry may be asked without TLS.
    pub insecure: bool,
}

/// An image in a registry, or a launchable.
pub const DOCKER_IMAGE: &str = "DockerImage";
/// Another tag.
pub const IMAGE_STREAM_TAG: &str = "ImageStreamTag";
/// An image that a stream has had, by its digest.
pub const IMAGE_STREAM_IMAGE: &str = "ImageStreamImage";

/// What `<stream>:<tag>` names.
pub fn stream_and_tag(name: &str) -> Option<(&str, &str)> {
    name.split_once(':').filter(|(stream, tag)| !stream.is_empty() && !tag.is_empty())
}
