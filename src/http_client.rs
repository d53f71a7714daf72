//! What all clients of other programs' HTTP APIs have in common.

use std::path::Path;
use std::time::Duration;

use reqwest::{Certificate, Client, ClientBuilder, redirect};

use crate::error::{Context as _, Result};

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
    builder.tls_certs_merge(certificates.or_stalled(unusable)?).build().or_stalled(unusable)
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
