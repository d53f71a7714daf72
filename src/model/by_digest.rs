//! Values that are stored once, however many records refer to them.

use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ids::Digest;

/// A value that records refer to by its digest. Written down it is the digest alone: the store keeps the value once, and
/// fills it in when it reads a record that refers to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent, bound(serialize = "", deserialize = "T: Default"))]
pub struct ByDigest<T> {
    /// Of the value's canonical form.
    pub digest: Digest,
    /// The value.
    #[serde(skip)]
    pub value: Arc<T>,
}

impl<T> Deref for ByDigest<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}
