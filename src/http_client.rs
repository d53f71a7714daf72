//! What all clients of other programs' HTTP APIs have in common.

use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::{Certificate, Client, ClientBuilder, Response, redirect};

use crate::error::{Context as _, Failure, Result};

/// The client, which trusts the certificate authorities of a file beside the machine's, if there is one.
///
/// # Errors
/// If they cannot be used.
pub(crate) fn trusting(builder: ClientBuilder, ca_file: Option<&Path>) -> Result<Client> {
    let Some(path) = ca_file else {
        return builder.build().or_stalled(|| "cannot prepare requests by HTTP".to_owned());
    };
    let unusable = || format!("cannot use the certificates in `{}`", path.display());
    let certificates = Certificate::from_pem_bundle(&std::fs::read(path).or_stalled(unusable)?);
    let certificates = certificates.or_stalled(unusable)?;
    if certificates.is_empty() {
        return Err(Failure::stalled(unusable()).hint("there are none in PEM form"));
    }
    builder.tls_certs_merge(certificates).build().or_stalled(unusable)
}

/// The same, for who must not wait for a disk.
///
/// # Errors
/// If they cannot be used.
pub(crate) async fn trusting_aside(builder: ClientBuilder, ca_file: Option<PathBuf>) -> Result<Client> {
    let made = tokio::task::spawn_blocking(move || trusting(builder, ca_file.as_deref()));
    made.await.or_transient(|| "preparing requests by HTTP broke off".to_owned())?
}

/// Reads the answer of `whom` to its end; nothing, if it is longer than that.
///
/// # Errors
/// If it is interrupted.
pub(crate) async fn read(mut answer: Response, limit: usize, whom: &str) -> Result<Option<Vec<u8>>> {
    let mut body = Vec::new();
    let interrupted = || format!("the answer of {whom} was interrupted");
    while let Some(chunk) = answer.chunk().await.map_err(reqwest::Error::without_url).or_transient(interrupted)? {
        body.extend_from_slice(&chunk);
        if body.len() > limit {
            return Ok(None);
        }
    }
    Ok(Some(body))
}

/// A client that waits so long for a connection, and so long from the first byte of a request to the last of its answer.
///
/// It follows no redirects: followed blindly, one would carry what a request tells, a token among it, to wherever it leads, and
/// turn a POST into a GET.
pub(crate) fn bounded(connect: Duration, whole: Duration) -> ClientBuilder {
    Client::builder()
        .redirect(redirect::Policy::none())
        .connect_timeout(connect)
        .timeout(whole)
        .user_agent(concat!("launchway/", env!("CARGO_PKG_VERSION")))
}
