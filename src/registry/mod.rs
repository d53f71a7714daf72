//! The port to registries of OCI images: which digest does a tag lead to now?

pub mod http;
mod name;

use async_trait::async_trait;

use crate::error::Result;

pub use self::name::ImageName;

/// What is known of a tag, so that a registry may say that nothing is new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The digest, as `sha256:<hex>`.
    pub digest: String,
    /// The registry's word for that answer.
    pub etag: Option<String>,
}

/// A registry.
#[async_trait]
pub trait Registry: Send + Sync {
    /// What a tag leads to; what is known, if nothing is new.
    ///
    /// # Errors
    /// If the registry cannot be reached, refuses, or has no such tag.
    async fn look_up(&self, image: &ImageName, known: Option<&Known>) -> Result<Known>;
}
