//! What opens a host's API: a token that somebody has made, or one that a program gets for itself.

use std::fmt;

use async_trait::async_trait;

use crate::error::{Context, Result};
use crate::secret::{Secret, SecretSource};

/// Gives tokens for a host's API.
#[async_trait]
pub trait Credential: Send + Sync + fmt::Debug {
    /// The token that is valid now; asked for each request.
    ///
    /// # Errors
    /// `Transient` if whoever gives it is out of reach, `Stalled` if a person has to act.
    async fn token(&self) -> Result<Secret>;

    /// Another one where the host takes `refused` no more; nothing, if only a person can give one.
    ///
    /// # Errors
    /// As [`Credential::token`].
    async fn instead_of(&self, _refused: &Secret) -> Result<Option<Secret>> {
        Ok(None)
    }
}

/// What somebody has made, read again for each request.
#[async_trait]
impl Credential for SecretSource {
    async fn token(&self) -> Result<Secret> {
        let source = self.clone();
        let read = tokio::task::spawn_blocking(move || source.read());
        read.await.or_transient(|| "reading the token broke off".to_owned())?
    }
}
